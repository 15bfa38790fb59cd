"""Two modes and how much they overlap: Bhattacharyya coefficient, separation, misassignment.

In whitened coordinates the old mode is N(0, 1) and the new mode N(delta, 1); with a shared
covariance nothing else matters, in any dimension. The old weight is `beta`, its logit `l`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_expit, logit, ndtr

from forgetmap.base.errors import InputError
from forgetmap.theory.arguments import (
    Floats,
    finite,
    gridded,
    not_negative,
    numbers,
    positive,
    separation,
    share,
)
from forgetmap.theory.numeric import log_normal_mean

__all__ = [
    "bc",
    "bc_categorical",
    "bc_normals",
    "behaviour_mass",
    "eps_new",
    "eps_old",
    "eps_old_bound",
    "joint_misassignment",
    "log_eps_old",
    "log_resolution",
    "region_mass",
    "resolution",
    "responsibility",
    "separation_of",
    "shifted_eps_bound",
    "total_variation",
]

LOG_2 = math.log(2)


def bc(delta: ArrayLike) -> Floats:
    """Bhattacharyya coefficient of two modes `delta` apart: exp(-delta^2 / 8). [D]

    1 when they are the same, 0 when they share nothing.

    Example:
        >>> bc([0, 2, 4]).round(4).tolist()
        [1.0, 0.6065, 0.1353]
    """
    distance = separation("delta", delta)
    return np.exp(-(distance**2) / 8)


def bc_normals(
    first_mean: ArrayLike, first_sd: ArrayLike, second_mean: ArrayLike, second_sd: ArrayLike
) -> Floats:
    """Bhattacharyya coefficient of two normals in one dimension with unequal spread. [D]"""
    one, two = positive("first_sd", first_sd), positive("second_sd", second_sd)
    gap = finite("first_mean", first_mean) - finite("second_mean", second_mean)
    spread = one**2 + two**2
    return np.sqrt(2 * one * two / spread) * np.exp(-(gap**2) / (4 * spread))


def bc_categorical(first: ArrayLike, second: ArrayLike) -> float:
    """Bhattacharyya coefficient of two lists of probabilities. [D]

    Example:
        >>> round(bc_categorical([0.7, 0.2, 0.1], [0.1, 0.2, 0.7]), 8)
        0.72915026
    """
    lists = not_negative("first", first), not_negative("second", second)
    for name, chances in zip(("first", "second"), lists, strict=True):
        if abs(chances.sum() - 1) > 1e-6:
            raise InputError(f"{name}: probabilities must sum to 1; they sum to {chances.sum():g}")
    if lists[0].shape != lists[1].shape:
        raise InputError("second: must list the same outcomes as first")
    return float(np.sqrt(lists[0] * lists[1]).sum())


def separation_of(old_mean: ArrayLike, new_mean: ArrayLike, covariance: ArrayLike) -> float:
    """Mahalanobis distance of two modes in any dimension: the one number the rest needs. [D]

    Example:
        >>> round(separation_of([0, 0], [3, 4], [[1, 0], [0, 4]]), 6)
        3.605551
    """
    gap = finite("new_mean", new_mean) - finite("old_mean", old_mean)
    try:
        root = np.linalg.cholesky(finite("covariance", covariance))
    except np.linalg.LinAlgError as error:
        raise InputError(
            "covariance: must be a square, symmetric, positive definite matrix"
        ) from error
    return float(np.linalg.norm(np.linalg.solve(root, np.atleast_1d(gap))))


def total_variation(delta: ArrayLike) -> Floats:
    """Total variation distance of the two modes, 2 Phi(delta/2) - 1. [D]

    Example:
        >>> round(float(total_variation(4)), 6)
        0.9545
    """
    return 2 * ndtr(separation("delta", delta) / 2) - 1


def region_mass(
    beta: ArrayLike, old_mean: ArrayLike, new_mean: ArrayLike, delta: ArrayLike
) -> Floats:
    """Mass on the old side of the midpoint, whatever the components are called. [D]"""
    weight, middle = share("beta", beta), separation("delta", delta) / 2
    old, new = finite("old_mean", old_mean), finite("new_mean", new_mean)
    return weight * ndtr(middle - old) + (1 - weight) * ndtr(middle - new)


def behaviour_mass(
    beta: ArrayLike, old_mean: ArrayLike, new_mean: ArrayLike, delta: ArrayLike
) -> Floats:
    """Region mass on a scale where correct means give back `beta`: the old behaviour. [D]

    Report it beside `beta`: a weight can look healthy after its component has left the old mode.

    Example:
        >>> round(float(behaviour_mass(0.3, 0, 4, 4)), 12), behaviour_mass(0.27, 2, 2, 2) < 0.01
        (0.3, np.True_)
    """
    distance = positive("delta", delta)
    mass = region_mass(beta, old_mean, new_mean, delta)
    return (mass - ndtr(-distance / 2)) / total_variation(distance)


def log_eps_old(logit_beta: ArrayLike, delta: ArrayLike) -> Floats:
    """Logarithm of `eps_old`, from the logit of beta: exact where both would underflow. [D]

    It is the exact factorisation: a half, sqrt((1-beta)/beta), the Bhattacharyya coefficient, and
    a mean of hyperbolic secants that is only polynomial in delta.

    Example:
        >>> log_eps_old([0.0, 1000.0], 40.0).round(3).tolist()
        [-203.466, -1000.0]
    """
    log_odds, distance = np.broadcast_arrays(
        finite("logit_beta", logit_beta), gridded("delta", delta)
    )
    near = np.where(np.isinf(distance), 0.0, distance)
    peak = np.clip(log_odds, -(near**2) / 2, near**2 / 2) / np.maximum(near, 1e-300)
    secant = log_normal_mean(
        lambda u, log_odds, d: log_sech((d * u - log_odds) / 2),
        log_odds,
        near,
        steepness=near,
        centre=peak,
    )
    exact = secant - LOG_2 - log_odds / 2 - near**2 / 8
    return np.minimum(np.where(np.isinf(distance), -np.inf, exact), 0.0)


def eps_old(beta: ArrayLike, delta: ArrayLike) -> Floats:
    """Chance that an old sample is attributed to the new component. [P mechanism, D formula]

    Example:
        >>> eps_old([0.5, 0.2], 4).round(6).tolist()
        [0.034299, 0.065838]
    """
    return np.exp(log_eps_old(logit(share("beta", beta)), delta))


def eps_new(beta: ArrayLike, delta: ArrayLike) -> Floats:
    """Chance that a new sample is attributed to the old component. [P mechanism, D formula]

    Also the old weight after one step of EM, or of refitting to self-labelled new data.
    """
    return np.exp(log_eps_old(-logit(share("beta", beta)), delta))


def joint_misassignment(beta: ArrayLike, delta: ArrayLike) -> Floats:
    """M = E_q[r_o (1 - r_o)] = beta eps_old = (1 - beta) eps_new: how blurred the labels are. [D]

    Example:
        >>> round(float(joint_misassignment(0.5, 4)), 9)
        0.017149352
    """
    return share("beta", beta) * eps_old(beta, delta)


def eps_old_bound(beta: ArrayLike, delta: ArrayLike) -> Floats:
    """Upper bound on `eps_old`: sqrt((1-beta)/beta) BC / 2; above 1 it says nothing. [D]

    For `eps_new` use 1 - beta, for `joint_misassignment` multiply by beta.
    """
    weight = share("beta", beta)
    return np.sqrt((1 - weight) / weight) * bc(delta) / 2


def shifted_eps_bound(alpha: ArrayLike, delta: ArrayLike, shift: ArrayLike) -> Floats:
    """Bound on the misassignment by the target when the old mean has moved by `shift`. [D]

    Example:
        >>> shifted_eps_bound(0.5, 4, 0.0) == eps_old_bound(0.5, 4)
        np.True_
    """
    distance, weight = separation("delta", delta), share("alpha", alpha)
    moved = distance * finite("shift", shift) / 2 - distance**2 / 8
    return np.sqrt((1 - weight) / weight) * np.exp(moved) / 2


def log_resolution(logit_beta: ArrayLike, delta: ArrayLike) -> Floats:
    """Logarithm of `resolution`, from the logit of beta. [D]

    Example:
        >>> log_resolution([-1000.0, 0.0], 1.0).round(6).tolist()
        [-999.458675, -1.589369]
    """
    log_odds, distance = np.broadcast_arrays(
        finite("logit_beta", logit_beta), gridded("delta", delta)
    )
    near = np.where(np.isinf(distance), 0.0, distance)
    reach = np.maximum(
        near / 2, np.minimum(np.abs(log_odds) / np.maximum(near, 1e-300), 1.5 * near)
    )
    gap = log_normal_mean(
        lambda u, log_odds, d: 2 * log_sinh(d * u / 2) + log_sech((d * u - log_odds) / 2),
        log_odds,
        near,
        steepness=near,
        reach=float(reach.max()),
    )
    weight = (log_expit(log_odds) + log_expit(-log_odds)) / 2
    exact = gap + weight + LOG_2 - near**2 / 8
    return np.minimum(np.where(np.isinf(distance), 0.0, exact), 0.0)


def resolution(beta: ArrayLike, delta: ArrayLike) -> Floats:
    """How well a sample tells its mode: 1 - eps_old - eps_new = Var_q(r_o) / (beta (1-beta)). [D]

    0 when the modes are the same, 1 when they are separated. It scales every gradient of the
    weight, and is the efficiency of estimating an old mass from unlabelled samples.

    Example:
        >>> resolution(0.5, [0, 2, 8]).round(4).tolist()
        [0.0, 0.5504, 0.9999]
    """
    return np.exp(log_resolution(logit(share("beta", beta)), delta))


def responsibility(
    x: ArrayLike, logit_beta: ArrayLike, old_mean: ArrayLike, new_mean: ArrayLike
) -> Floats:
    """Chance that the sample `x` came from the old component. [D]

    Example:
        >>> responsibility([0.0, 2.0, 4.0], 0.0, 0.0, 4.0).round(4).tolist()
        [0.9997, 0.5, 0.0003]
    """
    old, new = numbers("old_mean", old_mean), numbers("new_mean", new_mean)
    nearer = (old - new) * (numbers("x", x) - (old + new) / 2)
    return expit(numbers("logit_beta", logit_beta) + nearer)


def log_sech(x: Floats) -> Floats:
    """ln of 1 / cosh x, without overflow."""
    size: Floats = np.abs(x)
    return LOG_2 - size - np.log1p(np.exp(-2 * size))


def log_sinh(x: Floats) -> Floats:
    """ln of |sinh x|, without overflow; minus infinity at 0."""
    size: Floats = np.abs(x)
    with np.errstate(divide="ignore"):
        return size - LOG_2 + np.log(-np.expm1(-2 * size))
