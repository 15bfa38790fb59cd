"""Self-distillation fine-tuning (SDFT, arXiv:2601.19897) as two modes.

The student follows, by reverse KL, a teacher that is a moving average of the student and is pulled
to a demonstration anchor. The released code uses per-token forward KL on student samples, which has
the same optimum. The old mass is safe because the teacher keeps it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_expit, logit

from forgetmap.theory.arguments import (
    Floats,
    finite,
    gridded,
    not_negative,
    overlapping,
    positive,
    share,
)
from forgetmap.theory.drift import Joint, drift_gate, reverse_slopes
from forgetmap.theory.numeric import bisect, integrate
from forgetmap.theory.reverse import reverse_slope

__all__ = [
    "SdftJointPath",
    "SdftPath",
    "SdftRates",
    "sdft_drift",
    "sdft_flow",
    "sdft_joint_flow",
    "sdft_largest_drift",
    "sdft_limit",
    "sdft_rates",
]


class SdftPath(NamedTuple):
    """Old mass of the student and of the teacher."""

    student: Floats
    teacher: Floats


class SdftJointPath(NamedTuple):
    """Old mass and both means of the student and of the teacher."""

    student: Joint
    teacher: Joint


class SdftRates(NamedTuple):
    """Eigenvalues of the linearised system, both negative if there is an anchor."""

    fast: Floats
    slow: Floats


def sdft_flow(
    t: ArrayLike,
    beta0: ArrayLike,
    teacher0: ArrayLike,
    anchor_mass: ArrayLike,
    kappa: ArrayLike,
    anchor: ArrayLike,
    delta: ArrayLike = np.inf,
) -> SdftPath:
    """Old mass of student and teacher at the times `t`. [M method, D path]

    Both stay between the smallest and the largest of `beta0`, `teacher0` and `anchor_mass`, the old
    mass of the demonstration-conditioned anchor. `kappa` is the speed of the moving average,
    `anchor` the pull to the anchor; 0 leaves student and teacher to themselves.

    Example:
        >>> sdft_flow([50, 400], 0.2, 0.6, 0.4, 0.1, 0.05).student.round(6).tolist()
        [0.407953, 0.4]
    """
    student, teacher = logit(share("beta0", beta0)), logit(share("teacher0", teacher0))
    arrays = np.broadcast_arrays(
        student,
        teacher,
        logit(share("anchor_mass", anchor_mass)),
        not_negative("kappa", kappa),
        not_negative("anchor", anchor),
        gridded("delta", delta),
    )
    goal, speed, pull, gap = (array.ravel() for array in arrays[2:])

    def field(own: Floats, taught: Floats) -> tuple[Floats, Floats]:
        slope = reverse_slope(own, taught, gap)
        follow = -np.exp(log_expit(own) + log_expit(-own)) * slope
        return follow, speed * (own - taught) + pull * (goal - taught)

    own, taught = integrate(field, (arrays[0], arrays[1]), t)
    return SdftPath(expit(own), expit(taught))


def sdft_joint_flow(
    t: ArrayLike,
    beta0: ArrayLike,
    teacher0: ArrayLike,
    anchor_mass: ArrayLike,
    kappa: ArrayLike,
    anchor: ArrayLike,
    delta: ArrayLike,
    old_mean0: ArrayLike = 0.0,
    new_mean0: ArrayLike | None = None,
) -> SdftJointPath:
    """Paths of old mass and both means, trained together. [M method, D path]

    The student descends KL(student || teacher) in its logit and in its means. The teacher, logit
    and means alike, is a moving average of the student and is pulled to the anchor, whose old mode
    stands at 0 and whose new mode at `delta`. The student's means start there if not given, the
    teacher's always do. `sdft_largest_drift` says how far the old mean moves.

    Example:
        >>> path = sdft_joint_flow([10, 400], 0.2, 0.6, 0.4, 0.1, 0.05, 3)
        >>> path.student.weight.round(3).tolist(), path.student.new_mean.round(3).tolist()
        ([0.375, 0.4], [2.857, 3.0])
    """
    gap, old0 = overlapping("delta", delta), finite("old_mean0", old_mean0)
    new0 = gap if new_mean0 is None else finite("new_mean0", new_mean0)
    arrays = np.broadcast_arrays(
        logit(share("beta0", beta0)),
        old0,
        new0,
        logit(share("teacher0", teacher0)),
        np.zeros_like(gap),
        gap,
        logit(share("anchor_mass", anchor_mass)),
        not_negative("kappa", kappa),
        not_negative("anchor", anchor),
    )
    home, speed, pull = (array.ravel() for array in arrays[6:])
    places = (home, *(array.ravel() for array in arrays[4:6]))

    def field(*state: Floats) -> tuple[Floats, ...]:
        student, (goal, old, new) = state[:3], state[3:]
        # Seen from the teacher's old mode, the teacher is a target as in `joint_reverse_grad`.
        slopes = reverse_slopes(student[0], student[1] - old, student[2] - old, goal, new - old)
        follow = (
            speed * (mine - taught) + pull * (place - taught)
            for mine, taught, place in zip(student, state[3:], places, strict=True)
        )
        return (*(-slope for slope in slopes), *follow)

    paths = integrate(field, arrays[:6], t)
    student, teacher = (Joint(expit(side[0]), *side[1:]) for side in (paths[:3], paths[3:]))
    return SdftJointPath(student, teacher)


def sdft_rates(anchor_mass: ArrayLike, kappa: ArrayLike, anchor: ArrayLike) -> SdftRates:
    """Eigenvalues at the fixed point, modes separated; the slow one is 0 without an anchor. [D]

    Example:
        >>> rates = sdft_rates(0.4, 0.1, 0.05)
        >>> round(float(rates.fast), 8), round(float(rates.slow), 8)
        (-0.35632266, -0.03367734)
    """
    mass = share("anchor_mass", anchor_mass)
    own, pull = mass * (1 - mass), not_negative("anchor", anchor)
    total = own + not_negative("kappa", kappa) + pull
    root = np.sqrt(total**2 - 4 * own * pull)
    return SdftRates(-(total + root) / 2, -2 * own * pull / (total + root))


def sdft_limit(beta0: ArrayLike, teacher0: ArrayLike, kappa: ArrayLike) -> Floats:
    """Where student and teacher meet without an anchor, modes separated. [D]

    From the conserved quantity tau + 2 kappa (l + sinh l) of the two logits.

    Example:
        >>> round(float(sdft_limit(0.2, 0.6, 0.1)), 8)
        0.45607579
    """
    student, teacher = logit(share("beta0", beta0)), logit(share("teacher0", teacher0))
    speed = positive("kappa", kappa)
    kept = teacher + 2 * speed * (student + np.sinh(student))
    low, high = np.minimum(student, teacher), np.maximum(student, teacher)
    return expit(bisect(lambda x: x + 2 * speed * (x + np.sinh(x)) - kept, low, high + 0 * kept))


def sdft_drift(gate: ArrayLike, kappa: ArrayLike, anchor: ArrayLike) -> Floats:
    """Steady drift bound of the old mean for a gate (`drift_bound`), finite if anchored. [D]"""
    return not_negative("gate", gate) * (
        1 + not_negative("kappa", kappa) / positive("anchor", anchor)
    )


def sdft_largest_drift(
    beta0: ArrayLike,
    teacher0: ArrayLike,
    anchor_mass: ArrayLike,
    kappa: ArrayLike,
    anchor: ArrayLike,
    delta: ArrayLike,
    until: float = 100.0,
) -> tuple[Floats, Floats]:
    """Largest drift of the student's old mean, and its bound by the gate on the way. [D]

    The teacher's old mean is at most kappa / (kappa + anchor) of the student's away from home, and
    the student's at most the gate away from the teacher's, so `sdft_drift` of the largest gate
    bounds both. Without an anchor nothing does, and the bound is infinite. Read off at 601 times.

    Example:
        >>> drift, bound = sdft_largest_drift(0.2, 0.6, 0.4, 0.1, 0.05, [3, 6])
        >>> bool((drift < bound).all())
        True
    """
    times = until * np.linspace(0, 1, 601) ** 2
    path = sdft_joint_flow(times, beta0, teacher0, anchor_mass, kappa, anchor, delta)
    own, taught = path
    apart = taught.new_mean - taught.old_mean
    gate = drift_gate(
        own.weight,
        own.old_mean - taught.old_mean,
        own.new_mean - taught.old_mean,
        taught.weight,
        apart,
    ).max(axis=-1)
    pull = not_negative("anchor", anchor)
    held = np.where(pull > 0, pull, 1.0)
    bound = np.where(pull > 0, sdft_drift(gate, kappa, held), np.inf)
    return np.abs(own.old_mean).max(axis=-1), bound
