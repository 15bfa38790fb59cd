"""TTT-Discover (arXiv:2601.16175) as two modes: an entropic utility with a KL penalty.

`log_gain` is eta x (reward of the new mode - reward of the old mode), `reference` the old mass of
the base model, `penalty` the strength of the KL term. Modes are separated unless `delta` is given.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit, logsumexp

from forgetmap.base.errors import InputError
from forgetmap.theory.arguments import Floats, finite, not_negative, overlapping, positive, share
from forgetmap.theory.numeric import bisect, normal_mean
from forgetmap.theory.oapl import odds_room
from forgetmap.theory.overlap import bc, eps_new, responsibility

__all__ = [
    "adaptive_eta",
    "ttt_advantages",
    "ttt_bracket",
    "ttt_fixed_point",
    "ttt_floor",
    "ttt_force",
    "ttt_grad",
    "ttt_penalty",
    "ttt_pressure",
]

ETA_CAP = 2.0**20
"""Where the search for eta ends if the budget cannot be reached, as in the released code."""


def ttt_pressure(beta: ArrayLike, log_gain: ArrayLike) -> Floats:
    """Psi: how strongly the entropic utility pushes against the old mode. [D]

    Example:
        >>> ttt_pressure(0.5, [np.log(4), 1000.0]).round(6).tolist()
        [1.2, 2.0]
    """
    weight, gain = share("beta", beta), finite("log_gain", log_gain)
    shrink = np.exp(-np.abs(gain))
    # The same fraction, divided through by the larger exponential.
    return np.where(
        gain >= 0,
        (1 - shrink) / (weight * shrink + 1 - weight),
        (shrink - 1) / (weight + (1 - weight) * shrink),
    )[()]


def ttt_grad(
    beta: ArrayLike, reference: ArrayLike, log_gain: ArrayLike, penalty: ArrayLike
) -> Floats:
    """Slope of the objective in the logit of beta; it is ascended. [M objective, D reduction]"""
    weight = share("beta", beta)
    pull = not_negative("penalty", penalty) * (logit(weight) - logit(share("reference", reference)))
    return -weight * (1 - weight) * (ttt_pressure(weight, log_gain) + pull)


def ttt_fixed_point(reference: ArrayLike, log_gain: ArrayLike, penalty: ArrayLike) -> Floats:
    """Old mass at which the objective is largest; it attracts from everywhere. [D]"""
    start, strength = logit(share("reference", reference)), positive("penalty", penalty)
    gain = finite("log_gain", log_gain)

    def excess(log_odds: Floats) -> Floats:
        inside = np.clip(expit(log_odds), 1e-300, 1 - 1e-16)
        return ttt_pressure(inside, gain) + strength * (log_odds - start)

    furthest = np.abs(ttt_pressure(share("reference", reference), gain)) / strength + 1
    return expit(bisect(excess, start - furthest, start + furthest))


def ttt_bracket(
    reference: ArrayLike, log_gain: ArrayLike, penalty: ArrayLike
) -> tuple[Floats, Floats]:
    """Lower and upper bound of the fixed point in closed form, new mode rewarded. [D]"""
    start, strength = logit(share("reference", reference)), positive("penalty", penalty)
    gain = not_negative("log_gain", log_gain)
    least = -np.expm1(-gain)
    return (
        expit(start - ttt_pressure(reference, gain) / strength),
        expit(start - least / strength),
    )


def ttt_floor(reference: ArrayLike, penalty: ArrayLike) -> Floats:
    """Old mass that is kept whatever the reward: the entropic gain saturates. [D]

    Example:
        >>> bool(ttt_floor(0.5, 0.5) < ttt_fixed_point(0.5, 1000.0, 0.5))
        True
    """
    mass = share("reference", reference)
    return expit(logit(mass) - 1 / (positive("penalty", penalty) * (1 - mass)))


def ttt_penalty(floor: ArrayLike, reference: ArrayLike, log_gain: ArrayLike) -> Floats:
    """Penalty that keeps the old mass at `floor` or above. [D]"""
    room = odds_room(reference, floor)
    return np.maximum(ttt_pressure(floor, log_gain) / room, 0.0)


def adaptive_eta(rewards: ArrayLike, budget: float = float(np.log(2))) -> Floats:
    """Eta for which the weights of a group lie `budget` nats from even ones. [M]

    The group is the last axis. `ETA_CAP` where no eta reaches the budget, as with two-valued
    rewards of which more than half are the higher one.

    Example:
        >>> adaptive_eta([[0, 0, 0, 1], [1, 1, 1, 0]]).round(7).tolist()
        [2.5532449, 1048576.0]
    """
    group = finite("rewards", rewards)
    nats = float(positive("budget", budget))
    below_best = group - group.max(axis=-1, keepdims=True)

    def beyond(eta: Floats) -> Floats:
        scaled = np.asarray(eta)[..., None] * below_best
        logs = scaled - logsumexp(scaled, axis=-1, keepdims=True)
        spent: Floats = (np.exp(logs) * logs).sum(axis=-1) + np.log(group.shape[-1])
        return spent - nats

    cap = np.full(group.shape[:-1], ETA_CAP)
    root = bisect(beyond, np.zeros_like(cap), cap)
    return np.where(beyond(cap) < 0, cap, root)[()]


def ttt_advantages(rewards: ArrayLike, eta: ArrayLike) -> Floats:
    """Advantage of each sample of a group: its weight, normalised by the others, less one. [M]

    Example:
        >>> ttt_advantages([0, 0, 0, 1], 2.5532449).round(5).tolist()
        [-0.79796, -0.79796, -0.79796, 11.84873]
    """
    logs = finite("eta", eta)[..., None] * finite("rewards", rewards)
    size = logs.shape[-1]
    if size < 2:
        raise InputError("rewards: at least two are needed, each is compared with the others")
    others = np.where(np.eye(size, dtype=bool), -np.inf, logs[..., None, :])
    advantages: Floats = np.expm1(logs - logsumexp(others, axis=-1) + np.log(size - 1))
    return advantages


def ttt_force(
    beta: ArrayLike, reference: ArrayLike, log_gain: ArrayLike, delta: ArrayLike
) -> tuple[Floats, Floats]:
    """Force on the old mean when the reward is smooth, and its bound. [D]

    The reward is the reference's own posterior of the new mode; both means are in place.
    """
    weight, mass = share("beta", beta), share("reference", reference)
    gain, distance = not_negative("log_gain", log_gain), overlapping("delta", delta)

    def terms(z: Floats, at: Floats, gain: Floats, mass: Floats, delta: Floats) -> Floats:
        s_new = responsibility(at + z, np.log((1 - mass) / mass), delta, 0.0)
        lift = np.exp(gain * (s_new - 1))  # relative to the best reward, so that it cannot overflow
        return np.stack([lift, lift * s_new * (1 - s_new)])

    zero, steep = np.zeros_like(distance), 2 * distance
    on_old, gated = normal_mean(terms, zero, gain, mass, distance, steepness=steep)
    on_new, _ = normal_mean(terms, distance, gain, mass, distance, steepness=steep)
    force = weight * gain * gated / (weight * on_old + (1 - weight) * on_new) * distance
    lifted = np.exp(gain * eps_new(mass, distance)) / (2 * (1 - weight))
    bound = weight * gain * lifted * np.sqrt((1 - mass) / mass) * distance * bc(distance)
    return force, bound
