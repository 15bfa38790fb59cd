"""Weight and means trained together: how far the old component moves, and what gates it.

Means are positions on the line through the modes, in standard deviations: the old mode stands at
0, the new mode at `delta`. Flows descend in the logit of beta and in the whitened means.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_expit, logit

from forgetmap.theory.arguments import (
    Floats,
    finite,
    overlapping,
    positive,
    replay_share,
    separation,
    share,
)
from forgetmap.theory.numeric import bisect, integrate, normal_mean
from forgetmap.theory.overlap import responsibility

__all__ = [
    "Gates",
    "Joint",
    "drift_bound",
    "drift_gate",
    "gates",
    "joint_forward_flow",
    "joint_forward_grad",
    "joint_reverse_flow",
    "joint_reverse_grad",
    "joint_reverse_kl",
    "largest_drift",
    "separation_for_drift",
]


class Joint(NamedTuple):
    """One value for each trained parameter: a gradient's part, or a path."""

    weight: Floats
    """Of the old weight: in gradients in its logit, in paths beta itself."""
    old_mean: Floats
    new_mean: Floats


class Gates(NamedTuple):
    """Misassignment of samples of the model's old component."""

    target: Floats
    """By the target: the share it attributes to the new mode."""
    model: Floats
    """By the model itself: the share it attributes to its new component."""


def joint_forward_grad(
    beta: ArrayLike,
    old_mean: ArrayLike,
    new_mean: ArrayLike,
    delta: ArrayLike,
    replay: ArrayLike = 0.0,
) -> Joint:
    """Gradient of KL(training data || model) in logit, old mean and new mean. [D]

    Without replay the old mean is always pulled towards the new mode.
    """
    weight, kept = share("beta", beta), replay_share("replay", replay)
    old, new = finite("old_mean", old_mean), finite("new_mean", new_mean)
    return _forward(logit(weight), old, new, kept, overlapping("delta", delta))


def _forward(log_odds: Floats, old: Floats, new: Floats, replay: Floats, delta: Floats) -> Joint:
    def pulls(z: Floats, l_: Floats, old: Floats, new: Floats, at: Floats) -> Floats:
        x = at + z
        r_old = responsibility(x, l_, old, new)
        r_new = responsibility(x, -l_, new, old)
        return np.stack([r_old, r_old * (x - old), r_new * (x - new)])

    steep = np.abs(new - old)
    on_old = normal_mean(pulls, log_odds, old, new, np.zeros_like(delta), steepness=steep)
    on_new = normal_mean(pulls, log_odds, old, new, delta, steepness=steep)
    r_old, old_pull, new_pull = replay * on_old + (1 - replay) * on_new
    return Joint(expit(log_odds) - r_old, -old_pull, -new_pull)


def joint_reverse_grad(
    beta: ArrayLike, old_mean: ArrayLike, new_mean: ArrayLike, alpha: ArrayLike, delta: ArrayLike
) -> Joint:
    """Gradient of KL(model || target) in logit, old mean and new mean. [P mechanism, D formula]

    The old mean feels a linear force back to its place, and two perturbations that exist only
    where the modes overlap (`drift_gate`).
    """
    return reverse_slopes(*_state(beta, old_mean, new_mean, alpha, delta))


def _state(
    beta: ArrayLike, old_mean: ArrayLike, new_mean: ArrayLike, alpha: ArrayLike, delta: ArrayLike
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """The checked arguments, both masses as logits."""
    weight, goal = share("beta", beta), share("alpha", alpha)
    old, new = finite("old_mean", old_mean), finite("new_mean", new_mean)
    return logit(weight), old, new, logit(goal), overlapping("delta", delta)


def reverse_slopes(
    log_odds: Floats, old: Floats, new: Floats, goal: Floats, delta: Floats
) -> Joint:
    """The gradient from logits; a negative `delta` is a target whose modes changed places."""
    ratio_old, q_old, p_old = _under(old, log_odds, old, new, goal, delta)
    ratio_new, q_new, p_new = _under(new, log_odds, old, new, goal, delta)
    beta, rest = expit(log_odds), expit(-log_odds)
    return Joint(
        beta * rest * (ratio_old - ratio_new),
        beta * (old - q_old * (old - new) - p_old * delta),
        rest * (new - delta + (1 - q_new) * (old - new) + (1 - p_new) * delta),
    )


def _under(
    mean: Floats, log_odds: Floats, old: Floats, new: Floats, goal: Floats, delta: Floats
) -> Floats:
    """Means under N(mean, 1): ln(model/target), and the two responsibilities of the new mode."""

    def values(
        z: Floats, at: Floats, l_: Floats, old: Floats, new: Floats, goal: Floats, delta: Floats
    ) -> Floats:
        x = at + z
        log_model = _log_mixture(x, l_, old, new)
        log_target = _log_mixture(x, goal, np.zeros_like(delta), delta)
        r_new = responsibility(x, -l_, new, old)
        s_new = responsibility(x, -goal, delta, np.zeros_like(delta))
        return np.stack([log_model - log_target, r_new, s_new])

    steep = np.maximum(np.abs(new - old), np.abs(delta))
    return normal_mean(values, mean, log_odds, old, new, goal, delta, steepness=steep)


def _log_mixture(x: Floats, log_odds: Floats, old: Floats, new: Floats) -> Floats:
    """Log density of a mixture, up to the constant that both sides share."""
    return np.logaddexp(
        log_expit(log_odds) - (x - old) ** 2 / 2, log_expit(-log_odds) - (x - new) ** 2 / 2
    )


def joint_reverse_kl(
    beta: ArrayLike, old_mean: ArrayLike, new_mean: ArrayLike, alpha: ArrayLike, delta: ArrayLike
) -> Floats:
    """KL(model || target) with the model's means anywhere. [D]

    Example:
        >>> float(joint_reverse_kl(0.3, 0, 4, 0.3, 4))
        0.0
    """
    state, weight = _state(beta, old_mean, new_mean, alpha, delta), share("beta", beta)
    under_old, under_new = (_under(mean, *state)[0] for mean in state[1:3])
    loss: Floats = np.maximum(weight * under_old + (1 - weight) * under_new, 0.0)
    return loss


def gates(
    beta: ArrayLike, old_mean: ArrayLike, new_mean: ArrayLike, alpha: ArrayLike, delta: ArrayLike
) -> Gates:
    """The two misassignments that let reverse KL move the old mean. [P mechanism, D formula]"""
    state = _state(beta, old_mean, new_mean, alpha, delta)
    _, model, target = _under(state[1], *state)
    return Gates(target, model)


def drift_gate(
    beta: ArrayLike, old_mean: ArrayLike, new_mean: ArrayLike, alpha: ArrayLike, delta: ArrayLike
) -> Floats:
    """Size of the perturbation of the old mean; its largest value bounds the whole drift. [D]

    Example:
        >>> float(drift_gate(0.3, 0, 4, 0.3, 4))
        0.0
    """
    state = _state(beta, old_mean, new_mean, alpha, delta)
    _, old, new, _, distance = state
    _, model, target = _under(old, *state)
    size: Floats = np.abs(target * distance + model * (old - new))
    return size


def drift_bound(
    alpha: ArrayLike, beta: ArrayLike, delta: ArrayLike, model_delta: ArrayLike | None = None
) -> Floats:
    """Drift budget: a bound on the gate while the old mean is in place. [P exponential, D constant]

    In standard deviations of the old mode; times beta it bounds the gradient. The exact drift can
    be smaller, since the two gates can cancel. `model_delta` is the separation of the model's
    components now, where it differs: a new component half-way opens the gate much wider.

    Example:
        >>> round(float(0.2 * drift_bound(0.5, 0.2, 4)), 8)
        0.16240234
    """
    goal, weight = share("alpha", alpha), share("beta", beta)
    distance = separation("delta", delta)
    current = distance if model_delta is None else separation("model_delta", model_delta)
    return (
        np.sqrt((1 - goal) / goal) * _gate_width(distance)
        + np.sqrt((1 - weight) / weight) * _gate_width(current)
    ) / 2


def _gate_width(distance: Floats) -> Floats:
    """Delta times the Bhattacharyya coefficient; nothing at an infinite distance."""
    near = np.minimum(distance, 1e3)
    return near * np.exp(-(near**2) / 8)


def separation_for_drift(budget: ArrayLike) -> Floats:
    """Separation from which delta e^(-delta^2/8) / 2 stays within the budget. [D]"""
    most = positive("budget", budget)
    # The gate is widest at delta = 2; a budget above that is kept by every separation.
    root = bisect(lambda d: most - _gate_width(d) / 2, np.full(most.shape, 2.0), 200.0)
    return np.where(most >= _gate_width(np.asarray(2.0)) / 2, 0.0, root)[()]


def joint_forward_flow(
    t: ArrayLike,
    beta0: ArrayLike,
    delta: ArrayLike,
    old_mean0: ArrayLike = 0.0,
    new_mean0: ArrayLike | None = None,
    replay: ArrayLike = 0.0,
) -> Joint:
    """Paths of beta and both means under fine-tuning; the means start in place if not given. [D]

    With overlap beta may stop at a healthy value after both components have moved to the new mode:
    look at `behaviour_mass`.

    Example:
        >>> path = joint_forward_flow(200, 0.5, 2)
        >>> [round(float(part), 4) for part in path]
        [0.2722, 1.8531, 2.0546]
    """
    distance, kept = overlapping("delta", delta), replay_share("replay", replay)
    return _joint_flow(t, beta0, distance, old_mean0, new_mean0, kept, _forward)


def joint_reverse_flow(
    t: ArrayLike,
    beta0: ArrayLike,
    alpha: ArrayLike,
    delta: ArrayLike,
    old_mean0: ArrayLike = 0.0,
    new_mean0: ArrayLike | None = None,
) -> Joint:
    """Paths of beta and both means under reverse KL to the target. [P local limit, D path]

    From a cold start, with no component near the new mode, the flow may take very long, and the
    components may end with swapped labels.

    Example:
        >>> path = joint_reverse_flow([0, 20], 0.8, 0.5, 4)
        >>> [part.round(3).tolist() for part in path]
        [[0.8, 0.505], [0.0, 0.005], [4.0, 4.005]]
    """
    distance, goal = overlapping("delta", delta), logit(share("alpha", alpha))
    return _joint_flow(t, beta0, distance, old_mean0, new_mean0, goal, reverse_slopes)


def _joint_flow(
    t: ArrayLike,
    beta0: ArrayLike,
    delta: Floats,
    old_mean0: ArrayLike,
    new_mean0: ArrayLike | None,
    goal: Floats,
    gradient: Callable[[Floats, Floats, Floats, Floats, Floats], Joint],
) -> Joint:
    start = logit(share("beta0", beta0))
    old = finite("old_mean0", old_mean0)
    new = delta if new_mean0 is None else finite("new_mean0", new_mean0)
    start, old, new, goal, delta = np.broadcast_arrays(start, old, new, goal, delta)
    aims, distances = goal.ravel(), delta.ravel()

    def field(log_odds: Floats, old: Floats, new: Floats) -> tuple[Floats, Floats, Floats]:
        slope = gradient(log_odds, old, new, aims, distances)
        return -slope.weight, -slope.old_mean, -slope.new_mean

    log_odds, old_path, new_path = integrate(field, (start, old, new), t)
    return Joint(expit(log_odds), old_path, new_path)


def largest_drift(
    beta0: ArrayLike,
    alpha: ArrayLike,
    delta: ArrayLike,
    new_mean0: ArrayLike | None = None,
    until: float = 60.0,
) -> tuple[Floats, Floats]:
    """Largest drift of the old mean on the way to the target, and the bound by the gate. [D]

    Both are read off at 601 times up to `until`, closer together at the beginning.

    Example:
        >>> drift, bound = largest_drift(0.8, 0.5, [4, 6])
        >>> drift.round(4).tolist(), bound.round(4).tolist()
        ([0.0628, 0.0045], [0.0738, 0.0064])
    """
    times = until * np.linspace(0, 1, 601) ** 2
    path = joint_reverse_flow(times, beta0, alpha, delta, new_mean0=new_mean0)
    goal, distance = share("alpha", alpha)[..., None], overlapping("delta", delta)[..., None]
    gate = drift_gate(path.weight, path.old_mean, path.new_mean, goal, distance)
    return np.abs(path.old_mean).max(axis=-1), gate.max(axis=-1)
