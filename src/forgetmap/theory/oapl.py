"""OAPL (arXiv:2602.19362) and KL-regularised RL as two modes: tilts of the odds.

A tilt of strength s multiplies the odds of the old mode by exp(-s). For KL-regularised RL s is the
reward gap (new less old) over the temperature; OAPL tilts once per refresh of its lagged policy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_expit, logit

from forgetmap.base.errors import InputError
from forgetmap.theory.arguments import Floats, finite, overlapping, positive, share, whole
from forgetmap.theory.numeric import bisect, normal_mean
from forgetmap.theory.overlap import bc, responsibility

__all__ = [
    "kl_temperature",
    "max_strength",
    "max_syncs",
    "oapl_fixed_logit",
    "oapl_fixed_point",
    "oapl_gate",
    "oapl_loss",
    "tilt_odds",
]


def tilt_odds(mass: ArrayLike, strength: ArrayLike) -> Floats:
    """Old mass after its odds were multiplied by exp(-strength). [D]

    Example:
        >>> tilt_odds(0.5, [1, 2, 5]).round(6).tolist()
        [0.268941, 0.119203, 0.006693]
    """
    return expit(logit(share("mass", mass)) - finite("strength", strength))


def kl_temperature(
    gap: ArrayLike, reference: ArrayLike, floor: ArrayLike, syncs: ArrayLike = 1
) -> Floats:
    """Temperature from which the old mass stays at `floor` or above. [D]

    `gap` is the mean reward of the new behaviour less that of the old one; 0 or less costs nothing.
    `syncs` counts how often the trained policy replaces the reference, the last time included.

    Example:
        >>> round(float(kl_temperature(1.0, 0.5, 0.05)), 6)
        0.339623
    """
    room = odds_room(reference, floor)
    return np.maximum(whole("syncs", syncs) * finite("gap", gap), 0.0) / room


def max_syncs(reference: ArrayLike, floor: ArrayLike, strength: ArrayLike) -> Floats:
    """Most refreshes of the reference, each a tilt of `strength`, that keep the floor. [D]

    Example:
        >>> float(max_syncs(0.5, 0.05, 0.2))
        14.0
    """
    room = odds_room(reference, floor) / positive("strength", strength)
    return np.floor(room * (1 + 1e-12))  # a whole number, but for rounding, is that number


def max_strength(reference: ArrayLike, floor: ArrayLike, syncs: ArrayLike) -> Floats:
    """Strongest tilt per refresh that keeps the floor over that many refreshes. [D]"""
    return odds_room(reference, floor) / whole("syncs", syncs)


def odds_room(reference: ArrayLike, floor: ArrayLike) -> Floats:
    """How far the log-odds of the old mode may fall from the reference to the floor. [D]"""
    start, least = share("reference", reference), share("floor", floor)
    if np.any(least >= start):
        raise InputError("floor: must lie below the old mass of the reference, or nothing keeps it")
    return logit(start) - logit(least)


def oapl_loss(
    logit_beta: ArrayLike, lagged: ArrayLike, gap: ArrayLike, b1: ArrayLike, b2: ArrayLike
) -> Floats:
    """OAPL's squared loss over the two modes, as a function of the logit of beta. [M loss, D]

    The samples come from a lagged policy with old mass `lagged`. `gap` is the reward of the new
    mode less that of the old one, `b1` the temperature of the value, `b2` of the log-ratio.

    Example:
        >>> round(float(oapl_loss(logit(0.26894142), 0.5, 1.0, 1.0, 1.0)), 12)
        0.0
    """
    old, new = _residuals(finite("logit_beta", logit_beta), lagged, gap, b1, b2)
    mass = share("lagged", lagged)
    return mass * old**2 + (1 - mass) * new**2


def _residuals(
    log_odds: Floats, lagged: ArrayLike, gap: ArrayLike, b1: ArrayLike, b2: ArrayLike
) -> tuple[Floats, Floats]:
    start, reward = logit(share("lagged", lagged)), finite("gap", gap)
    first, second = positive("b1", b1), positive("b2", b2)
    # Only the difference of rewards matters: the old mode gets 0.
    value = first * np.logaddexp(log_expit(start), log_expit(-start) + reward / first)
    old = second * (log_expit(log_odds) - log_expit(start)) + value
    new = second * (log_expit(-log_odds) - log_expit(-start)) - reward + value
    return old, new


def oapl_fixed_logit(lagged: ArrayLike, gap: ArrayLike, b1: ArrayLike, b2: ArrayLike) -> Floats:
    """Logit of the old mass that minimises the loss of one round; it can be extreme. [D]"""
    mass = share("lagged", lagged)
    least = np.minimum(positive("b1", b1), positive("b2", b2))
    furthest = np.abs(logit(mass)) + 4 * (np.abs(finite("gap", gap)) / least + 10)

    def slope(log_odds: Floats) -> Floats:
        old, new = _residuals(log_odds, mass, gap, b1, b2)
        return mass * expit(-log_odds) * old - (1 - mass) * expit(log_odds) * new

    return bisect(slope, -furthest, furthest)


def oapl_fixed_point(lagged: ArrayLike, gap: ArrayLike, b1: ArrayLike, b2: ArrayLike) -> Floats:
    """Old mass that minimises the loss of one round; with b1 = b2 it is the tilt. [D]"""
    return expit(oapl_fixed_logit(lagged, gap, b1, b2))


def oapl_gate(lagged: ArrayLike, gap: ArrayLike, delta: ArrayLike) -> tuple[Floats, Floats]:
    """Pull on the old mean at the start of a round with a smooth advantage, and its bound. [D]

    A reward that is constant on the old mode does not move it at all.
    """
    mass, distance = share("lagged", lagged), overlapping("delta", delta)
    reward = finite("gap", gap)

    def blur(z: Floats, mass: Floats, delta: Floats) -> Floats:
        s_old = responsibility(z, np.log(mass / (1 - mass)), 0.0, delta)
        return s_old * (1 - s_old)

    pull = mass * reward * normal_mean(blur, mass, distance, steepness=distance) * distance
    bound = mass * np.abs(reward) / 2 * np.sqrt((1 - mass) / mass) * distance * bc(distance)
    return pull, bound
