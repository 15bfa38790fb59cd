"""The landscape around the target: Fisher matrix, its eigenvalues, and the rate they promise."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from forgetmap.theory.arguments import Floats, overlapping, share
from forgetmap.theory.numeric import normal_mean
from forgetmap.theory.overlap import bc, joint_misassignment, responsibility

__all__ = ["condition_number", "fisher", "fisher_lower_bound", "fisher_orthogonal"]


def fisher(alpha: ArrayLike, delta: ArrayLike) -> Floats:
    """Fisher matrix in (logit, old mean, new mean): the Hessian of either KL at the target. [D]

    Shape (..., 3, 3). The smallest eigenvalue is the local rate: the loss falls like
    exp(-2 rate t).

    Example:
        >>> np.linalg.eigvalsh(fisher(0.5, 4)).round(6).tolist()
        [0.216742, 0.378913, 0.489172]
    """
    goal, distance = np.broadcast_arrays(share("alpha", alpha), overlapping("delta", delta))

    def outer(z: Floats, alpha: Floats, delta: Floats, at: Floats) -> Floats:
        x, log_odds = at + z, np.log(alpha / (1 - alpha))
        s_old = responsibility(x, log_odds, 0.0, delta)
        score = np.stack([s_old - alpha, s_old * x, (1 - s_old) * (x - delta)])
        return score[:, None] * score[None, :]

    zero = np.zeros_like(distance)
    on_old = normal_mean(outer, goal, distance, zero, steepness=distance)
    on_new = normal_mean(outer, goal, distance, distance, steepness=distance)
    return np.moveaxis(goal * on_old + (1 - goal) * on_new, (0, 1), (-2, -1))


def fisher_lower_bound(alpha: ArrayLike, delta: ArrayLike) -> Floats:
    """Lower bound on the smallest eigenvalue; below 0 it says nothing. [P well conditioned, D]"""
    goal, distance = share("alpha", alpha), overlapping("delta", delta)
    spread = goal * (1 - goal)
    missing = np.sqrt(spread) * bc(distance) * np.maximum(1 + distance**2 / 2, 2) / 2
    return spread - missing


def fisher_orthogonal(alpha: ArrayLike, delta: ArrayLike) -> Floats:
    """Eigenvalues of each direction off the line through the modes, smaller one first. [D]

    Shape (..., 2).

    Example:
        >>> fisher_orthogonal(0.5, 4).round(7).tolist()
        [0.4657013, 0.5]
    """
    goal = share("alpha", alpha)
    blur = joint_misassignment(goal, delta)
    root = np.sqrt((2 * goal - 1) ** 2 + 4 * blur**2)
    return np.stack([(1 - 2 * blur - root) / 2, (1 - 2 * blur + root) / 2], axis=-1)


def condition_number(alpha: ArrayLike, delta: ArrayLike, dimensions: int = 1) -> Floats:
    """Largest over smallest eigenvalue of the Fisher matrix; 1/min(alpha, 1-alpha) far apart. [D]

    In more than one dimension the directions off the line through the modes count too; how many
    there are makes no difference.

    Example:
        >>> condition_number(0.2, [3, 30]).round(3).tolist()
        [10.498, 5.0]
        >>> [round(float(condition_number(0.5, 2, dimensions=d)), 1) for d in (1, 2)]
        [11.4, 15.1]
    """
    values = np.linalg.eigvalsh(fisher(alpha, delta))
    if dimensions > 1:
        values = np.sort(np.concatenate([values, fisher_orthogonal(alpha, delta)], axis=-1))
    return values[..., -1] / values[..., 0]
