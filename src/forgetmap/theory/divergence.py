"""KL between two mixtures of the same two modes, in logits, so that nothing underflows."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_expit, logit

from forgetmap.base.errors import InputError
from forgetmap.theory.arguments import Floats, gridded, target_share
from forgetmap.theory.numeric import normal_mean

__all__ = ["mixture_kl"]


def mixture_kl(first: ArrayLike, second: ArrayLike, delta: ArrayLike) -> Floats:
    """KL from the mixture with old mass `first` to the one with old mass `second`. [D]

    Example:
        >>> round(float(mixture_kl(0.05, 0.3, 3)), 8)
        0.15272848
    """
    one, two = target_share("first", first), target_share("second", second)
    target = logit_or_end(two)
    under_old, under_new = mean_log_ratios(
        logit_or_end(one), target, checked_separation(target, delta)
    )
    with np.errstate(invalid="ignore"):  # nothing times infinity: that mode is not there
        old_part = np.where(one > 0, one * under_old, 0.0)
        new_part = np.where(one < 1, (1 - one) * under_new, 0.0)
    loss: Floats = np.maximum(old_part + new_part, 0.0)
    return loss


def logit_or_end(mass: Floats) -> Floats:
    """Logit where 0 and 1 are allowed: minus and plus infinity."""
    with np.errstate(divide="ignore"):
        return logit(mass)


def checked_separation(target: Floats, delta: ArrayLike) -> Floats:
    """A separation at which the KL to a target with that logit is finite."""
    distance = gridded("delta", delta)
    if np.any(np.isinf(distance) & np.isinf(target)):
        raise InputError("delta: must be finite when the target has one mode only; the KL is not")
    return distance


def mean_log_ratios(one: Floats, two: Floats, delta: Floats) -> tuple[Floats, Floats]:
    """Mean of ln(mixture one / mixture two) under the old and under the new mode; takes logits."""
    under_old = _log_ratio_under_old(one, two, delta)
    return under_old, _log_ratio_under_old(-one, -two, delta)


def _log_ratio_under_old(one: Floats, two: Floats, delta: Floats) -> Floats:
    one, two, delta = np.broadcast_arrays(one, two, delta)
    separated = log_expit(one) - log_expit(two)
    if np.isinf(delta).all():
        return separated
    near = np.where(np.isinf(delta), 0.0, delta)

    def log_ratio(z: Floats, one: Floats, two: Floats, gap: Floats) -> Floats:
        to_new = gap * z - gap**2 / 2  # ln of new over old density at an old sample z
        above = np.logaddexp(log_expit(one), log_expit(-one) + to_new)
        return above - np.logaddexp(log_expit(two), log_expit(-two) + to_new)

    overlapping = normal_mean(log_ratio, one, two, near, steepness=near)
    return np.where(np.isinf(delta), separated, overlapping)[()]
