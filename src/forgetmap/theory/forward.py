"""Forward KL, the objective of supervised fine-tuning, on new data alone or with replay.

The weight alone is trained here, with both means fixed and correct; `drift` trains the means too.
`replay` is the share of old data in the training set: 0 is fine-tuning on new data only.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit, wrightomega

from forgetmap.base.errors import InputError
from forgetmap.theory.arguments import (
    Floats,
    finite,
    gridded,
    not_negative,
    positive,
    replay_share,
    share,
    whole,
)
from forgetmap.theory.divergence import mixture_kl
from forgetmap.theory.numeric import bisect, integrate
from forgetmap.theory.overlap import bc, resolution

__all__ = [
    "forward_flow",
    "forward_grad",
    "forward_grad_bounds",
    "forward_kl",
    "mass_after_stages",
    "replay_clock",
    "replay_clock_inverse",
    "replay_for_stages",
    "replay_share_of",
    "sft_clock",
    "sft_clock_inverse",
]

Dynamics = Literal["logit", "natural", "weight"]

_GONE = 1e-12
"""Gradient flow in beta itself arrives at 0 within finite time; below this it has arrived."""


def forward_kl(beta: ArrayLike, delta: ArrayLike, replay: ArrayLike = 0.0) -> Floats:
    """Loss KL(training data || model) as a function of the old weight. [D]"""
    return mixture_kl(replay_share("replay", replay), share("beta", beta), delta)


def forward_grad(beta: ArrayLike, delta: ArrayLike, replay: ArrayLike = 0.0) -> Floats:
    """Slope of the loss in the logit of beta: (beta - replay) times the resolution. [P sign, D]

    Without replay it is always positive, so the old weight falls. With replay it vanishes only
    where the old weight equals the replay share.
    """
    weight = share("beta", beta)
    return (weight - replay_share("replay", replay)) * resolution(weight, delta)


def forward_grad_bounds(beta: ArrayLike, delta: ArrayLike) -> tuple[Floats, Floats]:
    """Two lower bounds on the slope without replay: Chernoff's, and the Bhattacharyya one. [D]

    The second is negative, so says nothing, when the modes overlap much. The slope is below beta.
    """
    weight, distance = share("beta", beta), gridded("delta", delta)
    chernoff = -weight * np.expm1(-weight * (1 - weight) * distance**2 / 2)
    return chernoff, weight - np.sqrt(weight / (1 - weight)) * bc(distance) / 2


def forward_flow(
    t: ArrayLike,
    beta0: ArrayLike,
    delta: ArrayLike,
    replay: ArrayLike = 0.0,
    dynamics: Dynamics = "logit",
) -> Floats:
    """Old weight at the times `t` (learning rate x steps). [P limit, D path]

    The times become the last axes of the result; the path ends at the replay share. An infinite
    `delta` is the separated limit, where loss is fastest. `dynamics` "logit" descends in the logit
    (beta falls like 1/t), "natural" by the natural gradient (exponentially), "weight" in beta
    itself (it reaches 0 in finite time if the modes are separated).

    Example:
        >>> forward_flow([10, 100], 0.5, np.inf).round(6).tolist()
        [0.101805, 0.010264]
    """
    start, distance = share("beta0", beta0), gridded("delta", delta)
    start, distance, floor = np.broadcast_arrays(start, distance, replay_share("replay", replay))
    gap, limit = distance.ravel(), floor.ravel()

    def in_logit(log_odds: Floats) -> tuple[Floats]:
        weight = expit(np.clip(log_odds, -700, 700))
        speed = (limit - weight) * resolution(weight, gap)
        return (speed if dynamics == "logit" else speed / (weight * expit(-log_odds)),)

    def in_weight(weight: Floats) -> tuple[Floats]:
        inside = np.clip(weight, _GONE, 1 - _GONE)
        speed = (limit - inside) * resolution(inside, gap) / (inside * (1 - inside))
        return (np.where((weight < _GONE) & (limit == 0), 0.0, speed),)

    if dynamics == "weight":
        (path,) = integrate(in_weight, (start,), t, method="DOP853")
        return np.clip(path, 0.0, 1.0)
    if dynamics not in ("logit", "natural"):
        raise InputError(f"dynamics: {dynamics!r} is unknown; known are logit, natural, weight")
    (log_odds,) = integrate(in_logit, (logit(start),), t)
    return expit(log_odds)


def sft_clock(beta: ArrayLike) -> Floats:
    """The clock of separated fine-tuning, C = 1/beta - logit beta: it runs evenly with time. [D]"""
    weight = share("beta", beta)
    return 1 / weight - logit(weight)


def sft_clock_inverse(clock: ArrayLike) -> Floats:
    """The old weight at which the clock of `sft_clock` shows `clock`. [D]

    Example:
        >>> round(float(sft_clock_inverse(sft_clock(0.5) + 10)), 8)
        0.10180526
    """
    # With y = (1 - beta) / beta the clock is 1 + y + ln y, which Wright's omega inverts.
    return 1 / (1 + wrightomega(finite("clock", clock) - 1))


def replay_clock(beta: ArrayLike, replay: ArrayLike) -> Floats:
    """The clock of separated fine-tuning with replay: it falls by t in time t. [D]

    Example:
        >>> beta = replay_clock_inverse(replay_clock(0.5, 0.1) - 5, 0.5, 0.1)
        >>> round(float(beta), 8)
        0.23478349
    """
    weight, limit = share("beta", beta), share("replay", replay)
    with np.errstate(divide="ignore"):  # at the limit itself the clock stands at minus infinity
        near = np.log(np.abs(weight - limit)) / (limit * (1 - limit))
    clock: Floats = near - np.log(weight) / limit - np.log1p(-weight) / (1 - limit)
    return clock


def replay_clock_inverse(clock: ArrayLike, beta0: ArrayLike, replay: ArrayLike) -> Floats:
    """The old weight between `beta0` and the replay share where the clock shows `clock`. [D]

    Example:
        >>> round(float(replay_clock_inverse(replay_clock(0.3, 0.1), 0.5, 0.1)), 6)
        0.3
    """
    start, limit = share("beta0", beta0), share("replay", replay)
    shown = finite("clock", clock)

    def ahead(part: Floats) -> Floats:
        return replay_clock(limit + part * (start - limit), replay) - shown

    part = bisect(ahead, np.zeros(np.broadcast(start, limit, shown).shape), 1.0)
    return limit + part * (start - limit)


def replay_share_of(loss_weight: ArrayLike) -> Floats:
    """Replay share equivalent to adding `loss_weight` x KL(old data || model) to the loss. [D]

    Example:
        >>> float(replay_share_of(0.25))
        0.2
    """
    weight = not_negative("loss_weight", loss_weight)
    return weight / (1 + weight)


def mass_after_stages(mass: ArrayLike, replay: ArrayLike, stages: ArrayLike) -> Floats:
    """First task's mass after stages that each replay a share from the model before. [D]"""
    return positive("mass", mass) * replay_share("replay", replay) ** whole("stages", stages)


def replay_for_stages(floor: ArrayLike, stages: ArrayLike, mass: ArrayLike = 1.0) -> Floats:
    """Replay share that keeps the first task's mass at `floor` over the stages. [D]"""
    return (share("floor", floor) / positive("mass", mass)) ** (1 / whole("stages", stages))
