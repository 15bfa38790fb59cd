"""Reverse KL, the objective of on-policy training, with the weight alone trained.

`alpha` is the old mass of the target. The target decides: alpha = 0, a target that knows the new
behaviour only, forgets like fine-tuning does.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_expit, logit

from forgetmap.theory.arguments import Floats, finite, not_negative, numbers, share, target_share
from forgetmap.theory.divergence import (
    checked_separation,
    logit_or_end,
    mean_log_ratios,
    mixture_kl,
)
from forgetmap.theory.numeric import integrate
from forgetmap.theory.overlap import log_resolution, resolution, total_variation

__all__ = [
    "reverse_curvature",
    "reverse_envelope",
    "reverse_flow",
    "reverse_grad",
    "reverse_kl",
    "reverse_rate",
    "reverse_slope",
]


def reverse_kl(beta: ArrayLike, alpha: ArrayLike, delta: ArrayLike) -> Floats:
    """Loss KL(model || target) as a function of the old weight. [D]

    Example:
        >>> reverse_kl([0.05, 0.6, 0.95], 0.3, 3).round(6).tolist()
        [0.152728, 0.153215, 0.761546]
    """
    return mixture_kl(share("beta", beta), alpha, delta)


def reverse_slope(logit_beta: ArrayLike, logit_alpha: ArrayLike, delta: ArrayLike) -> Floats:
    """Slope of the loss in beta; its sign is that of beta - alpha. [P sign, D formula]

    Takes logits, so that weights beyond the reach of floats can be given; a target of the new mode
    alone has logit minus infinity.

    Example:
        >>> round(float(reverse_slope(-1000, 1000, np.inf)), 7)
        -2000.0
    """
    log_odds = finite("logit_beta", logit_beta)
    target = numbers("logit_alpha", logit_alpha)
    under_old, under_new = mean_log_ratios(log_odds, target, checked_separation(target, delta))
    return under_old - under_new


def reverse_grad(beta: ArrayLike, alpha: ArrayLike, delta: ArrayLike) -> Floats:
    """Slope of the loss in the logit of beta; zero only at beta = alpha. [P limit, D formula]

    Example:
        >>> reverse_grad([0.1, 0.3, 0.6], 0.3, 3).round(4).tolist()
        [-0.0922, 0.0, 0.2404]
    """
    weight = share("beta", beta)
    slope = reverse_slope(logit(weight), logit_or_end(target_share("alpha", alpha)), delta)
    return weight * (1 - weight) * slope


def reverse_curvature(beta: ArrayLike, delta: ArrayLike) -> Floats:
    """Second derivative of the loss in beta: positive, so there is one minimum only. [D]

    Example:
        >>> round(float(reverse_curvature(0.5, np.inf)), 6)
        4.0
    """
    weight = share("beta", beta)
    return resolution(weight, delta) / (weight * (1 - weight))


def reverse_flow(t: ArrayLike, beta0: ArrayLike, alpha: ArrayLike, delta: ArrayLike) -> Floats:
    """Old weight at the times `t` under gradient flow in the logit. [P limit, D path]

    Monotone, and always between `beta0` and `alpha`.

    Example:
        >>> reverse_flow([10, 100], 0.95, 0.3, 3).round(6).tolist()
        [0.666644, 0.3]
    """
    start = logit(share("beta0", beta0))
    goal = logit_or_end(target_share("alpha", alpha))
    start, goal, gap = np.broadcast_arrays(start, goal, checked_separation(goal, delta))
    goal, gap = goal.ravel(), gap.ravel()

    def field(log_odds: Floats) -> tuple[Floats]:
        slope = reverse_slope(log_odds, goal, gap)
        return (-np.exp(log_expit(log_odds) + log_expit(-log_odds)) * slope,)

    (log_odds,) = integrate(field, (start,), t)
    return expit(log_odds)


def reverse_rate(alpha: ArrayLike, delta: ArrayLike) -> Floats:
    """Rate at which the old weight approaches the target, once near it. [P exponential, D rate]"""
    goal = share("alpha", alpha)
    return np.exp(log_resolution(logit(goal), delta)) * goal * (1 - goal)


def reverse_envelope(t: ArrayLike, beta0: ArrayLike, alpha: ArrayLike, delta: ArrayLike) -> Floats:
    """Upper bound on the loss at the times `t`, from any start: exponential decay. [D]

    Example:
        >>> loss = reverse_kl(reverse_flow(20, 0.9, 0.3, 3), 0.3, 3)
        >>> bool(loss < reverse_envelope(20, 0.9, 0.3, 3))
        True
    """
    start, goal, times = share("beta0", beta0), share("alpha", alpha), not_negative("t", t)
    least = np.minimum(start * (1 - start), goal * (1 - goal))
    rate = 4 * least**2 * total_variation(delta) ** 2
    return np.multiply.outer(reverse_kl(start, goal, delta), np.ones(times.shape)) * np.exp(
        -np.multiply.outer(rate, times)
    )
