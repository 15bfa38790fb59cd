"""More than one old behaviour: which of them goes first.

Every behaviour is a Gaussian mode on a line, with a mean and a spread of its own; the last one is
new. The weights alone are trained, by the log odds of each old mode against the new one. With one
old mode of the same spread this is the picture of `forward` and `reverse`. Integrals are sums over
a fine grid.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp, softmax

from forgetmap.base.errors import InputError
from forgetmap.theory.arguments import Floats, finite, not_negative, positive, replay_share, share
from forgetmap.theory.numeric import integrate

__all__ = ["Modes", "first_to_go", "mode_flow", "mode_grad"]

Objective = Literal["sft", "reverse"]
_REACH = 10.0
"""Spreads beyond the outermost modes that the grid covers."""
_FINE = 40
"""Points of the grid in the smallest spread."""
_MOST_POINTS = 200_000


class Modes(NamedTuple):
    """Old modes and, last, the new one."""

    means: Floats
    spreads: Floats

    @classmethod
    def of(cls, means: ArrayLike, spreads: ArrayLike = 1.0) -> Modes:
        """Check the modes; one spread may stand for all."""
        middle = np.atleast_1d(finite("means", means))
        width = np.broadcast_to(positive("spreads", spreads), middle.shape)
        if middle.ndim != 1 or len(middle) < 2:
            raise InputError("means: name one old mode at least, and the new one last")
        return cls(middle, np.asarray(width, dtype=np.float64))

    def on_grid(self) -> tuple[Floats, float]:
        """The log density of every mode on a grid that all of them fit on, and its step."""
        low = float(np.min(self.means - _REACH * self.spreads))
        high = float(np.max(self.means + _REACH * self.spreads))
        step = float(self.spreads.min()) / _FINE
        points = int((high - low) / step) + 1
        if points > _MOST_POINTS:
            raise InputError(
                "means, spreads: the widest and the narrowest mode differ too much to be put on "
                "one grid; bring them nearer"
            )
        x = low + step * np.arange(points)
        z = (x - self.means[:, None]) / self.spreads[:, None]
        return -(z**2) / 2 - np.log(self.spreads * np.sqrt(2 * np.pi))[:, None], step


def mode_grad(
    weights: ArrayLike, goal: ArrayLike, modes: Modes, objective: Objective = "sft"
) -> Floats:
    """Slope of the loss in the log odds of every old mode against the new one. [D]

    `goal` are the weights of the target: of the training data for "sft", which is KL(data ||
    model), and of the target policy for "reverse", which is KL(model || target).

    Example:
        >>> two = Modes.of([0.0, 3.0])
        >>> mode_grad([0.6, 0.4], [0.3, 0.7], two, "reverse").round(4).tolist()
        [0.2404]
    """
    return _slope(_weights("weights", weights), _goal(goal, objective), *modes.on_grid(), objective)


def _slope(
    weights: Floats, goal: Floats, logs: Floats, step: float, objective: Objective
) -> Floats:
    mass = np.exp(logs) * step
    with np.errstate(divide="ignore"):
        model = logsumexp(logs + np.log(weights)[:, None], axis=0)
        target = logsumexp(logs + np.log(goal)[:, None], axis=0)
        if objective == "sft":
            share_of = np.exp(logs + np.log(weights)[:, None] - model)
            return np.asarray((weights - share_of @ (goal @ mass))[:-1])
    ratio = model - target
    under = mass @ ratio
    return np.asarray((weights * (under - weights @ under))[:-1])


def mode_flow(
    t: ArrayLike,
    weights: ArrayLike,
    modes: Modes,
    *,
    replay: ArrayLike = 0.0,
    objective: Objective = "sft",
) -> Floats:
    """Weight of every mode at the times `t` (learning rate x steps), the new one last. [D]

    The target holds a share `replay` of the old modes, in the proportions that they start with; the
    rest of it is the new mode. Rows are modes, columns are times.

    Example:
        >>> mode_flow([10, 100], [0.5, 0.5], Modes.of([0.0, 40.0]))[0].round(6).tolist()
        [0.101805, 0.010264]
    """
    start, times = _weights("weights", weights), np.atleast_1d(not_negative("t", t))
    if len(start) != len(modes.means):
        raise InputError(f"weights: {len(start)} for {len(modes.means)} modes")
    kept = float(replay_share("replay", replay))
    goal = _goal(np.append(kept * start[:-1] / start[:-1].sum(), 1 - kept), objective)
    grid = modes.on_grid()

    def field(*odds: Floats) -> tuple[Floats, ...]:
        now = softmax(np.append(np.concatenate(odds), 0.0))
        return tuple(-_slope(now, goal, *grid, objective)[:, None])

    paths = integrate(field, tuple(np.atleast_1d(np.log(start[:-1] / start[-1]))[:, None]), times)
    odds = np.vstack([np.asarray(path).reshape(1, -1) for path in paths])
    return softmax(np.vstack([odds, np.zeros((1, times.size))]), axis=0)


def first_to_go(
    weights: ArrayLike,
    modes: Modes,
    *,
    replay: ArrayLike = 0.0,
    objective: Objective = "sft",
    until: float = 1000.0,
) -> Floats:
    """When each old mode has lost half of its weight; infinite if it has not until then. [D]

    Example:
        >>> near, far = first_to_go([0.4, 0.4, 0.2], Modes.of([4.0, 0.0, 6.0]))
        >>> bool(far < near)
        True
    """
    times = np.concatenate([[0.0], float(positive("until", until)) * np.geomspace(1e-4, 1, 400)])
    path = mode_flow(times, weights, modes, replay=replay, objective=objective)[:-1]
    below = path <= path[:, :1] / 2
    place = below.argmax(axis=1)
    rows = np.arange(len(path))
    half = path[:, 0] / 2
    before, after = path[rows, place - 1], path[rows, place]
    part = (before - half) / np.where(before > after, before - after, 1.0)
    when = times[place - 1] + part * (times[place] - times[place - 1])
    return np.where(below.any(axis=1), when, np.inf)


def _weights(name: str, value: ArrayLike) -> Floats:
    found = np.atleast_1d(share(name, value))
    if abs(found.sum() - 1) > 1e-9:
        raise InputError(f"{name}: they add up to {found.sum():g}, and should to 1")
    return np.asarray(found / found.sum())


def _goal(value: ArrayLike, objective: Objective) -> Floats:
    """The weights of a target; some may be zero, where data are learned from."""
    if objective not in ("sft", "reverse"):
        raise InputError(f"objective: {objective!r} is unknown; known are sft, reverse")
    found = np.atleast_1d(finite("goal", value))
    if found.min() < 0 or abs(found.sum() - 1) > 1e-9:
        raise InputError("goal: shares that add up to 1 were expected")
    return found
