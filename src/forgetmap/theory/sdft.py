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

from forgetmap.theory.arguments import Floats, gridded, not_negative, positive, share
from forgetmap.theory.numeric import bisect, integrate
from forgetmap.theory.reverse import reverse_slope

__all__ = ["SdftPath", "SdftRates", "sdft_drift", "sdft_flow", "sdft_limit", "sdft_rates"]


class SdftPath(NamedTuple):
    """Old mass of the student and of the teacher."""

    student: Floats
    teacher: Floats


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
