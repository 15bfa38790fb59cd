"""Finite batches: when the old mode is not seen at all, and what replay with weights does about it.

With replay a share `replay` of a batch comes from the old mode, and every sample carries the
importance weight model/behaviour, so that the objective is unchanged.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from forgetmap.base.errors import InputError
from forgetmap.theory.arguments import (
    Floats,
    finite,
    gridded,
    overlapping,
    positive,
    replay_share,
    share,
    target_share,
    whole,
)
from forgetmap.theory.numeric import normal_mean
from forgetmap.theory.overlap import eps_old, responsibility

__all__ = [
    "anchored_variance",
    "behaviour_share",
    "centred_gain",
    "centred_steps",
    "importance_weight",
    "min_batch",
    "min_replay",
    "no_information_prob",
    "relative_variance",
    "starvation_prob",
    "unweighted_leak",
    "weight_bounds",
    "weight_second_moment",
    "wright_fisher",
    "wright_fisher_spread",
]


def behaviour_share(beta: ArrayLike, replay: ArrayLike) -> Floats:
    """Old share of what is sampled: the model's own and the replayed. [D]"""
    kept = replay_share("replay", replay)
    return kept + (1 - kept) * share("beta", beta)


def starvation_prob(beta: ArrayLike, batch: ArrayLike, replay: ArrayLike = 0.0) -> Floats:
    """Chance that a batch holds no old sample. [P mechanism, D formula]

    Example:
        >>> starvation_prob(0.05, 32, replay=[0.0, 0.1]).round(8).tolist()
        [0.19371148, 0.00665144]
    """
    return np.exp(whole("batch", batch) * np.log1p(-behaviour_share(beta, replay)))


def min_batch(
    beta: ArrayLike, eta: ArrayLike, replay: ArrayLike = 0.0, batches: ArrayLike = 1
) -> Floats:
    """Smallest batch for which no one of `batches` starves, but with probability `eta`. [D]

    Several batches are covered by the union bound.

    Example:
        >>> float(min_batch(0.05, 0.01)), float(min_batch(0.05, 0.01, replay=0.1))
        (90.0, 30.0)
    """
    risk = np.log(share("eta", eta)) - np.log(whole("batches", batches))
    size = risk / np.log1p(-behaviour_share(beta, replay))
    return np.ceil(size * (1 - 1e-12))  # a whole number, but for rounding, is that number


def min_replay(beta: ArrayLike, batch: ArrayLike, eta: ArrayLike, batches: ArrayLike = 1) -> Floats:
    """Smallest replay share with which no one of `batches` starves, but with probability `eta`. [D]

    0 where the batch is large enough without.
    """
    risk = np.log(share("eta", eta)) - np.log(whole("batches", batches))
    missed = np.exp(risk / whole("batch", batch))
    return np.maximum(1 - missed / (1 - share("beta", beta)), 0.0)


def importance_weight(x: ArrayLike, beta: ArrayLike, delta: ArrayLike, replay: ArrayLike) -> Floats:
    """Weight model/behaviour of a sample at `x` (old mode at 0, new mode at delta). [D]

    Example:
        >>> importance_weight([0, 4], 0.05, 4, 0.1).round(4).tolist()
        [0.3463, 1.1111]
    """
    weight, kept = share("beta", beta), replay_share("replay", replay)
    position, distance = finite("x", x), overlapping("delta", delta)
    r_old = responsibility(position, logit(weight), 0.0, distance)
    return 1 / (1 - kept + kept * r_old / weight)


def weight_bounds(beta: ArrayLike, replay: ArrayLike) -> tuple[Floats, Floats]:
    """Smallest and largest importance weight there can be. [P bounded, D formula]"""
    kept = replay_share("replay", replay)
    return share("beta", beta) / behaviour_share(beta, kept), 1 / (1 - kept)


def weight_second_moment(beta: ArrayLike, delta: ArrayLike, replay: ArrayLike) -> Floats:
    """Mean squared importance weight; its inverse is the effective share of the batch. [D]

    Never above 1 / (1 - replay). An infinite delta gives the separated limit.

    Example:
        >>> weight_second_moment(0.05, [4, np.inf], 0.1).round(7).tolist()
        [1.0661666, 1.0727969]
    """
    weight, kept = share("beta", beta), replay_share("replay", replay)
    weight, distance, kept = np.broadcast_arrays(weight, gridded("delta", delta), kept)
    separated = weight**2 / behaviour_share(weight, kept) + (1 - weight) / (1 - kept)
    near = np.where(np.isinf(distance), 0.0, distance)

    def under(at: Floats) -> Floats:
        return normal_mean(
            lambda z, at, b, d, kept: importance_weight(at + z, b, d, kept),
            at, weight, near, kept, steepness=near,
        )  # fmt: skip

    exact = weight * under(np.zeros_like(near)) + (1 - weight) * under(near)
    return np.where(np.isinf(distance), separated, exact)[()]


def relative_variance(beta: ArrayLike, batch: ArrayLike, replay: ArrayLike = 0.0) -> Floats:
    """Relative variance of the old mass estimated from one batch, modes separated. [D]

    Example:
        >>> relative_variance(0.05, 1, replay=[0.0, 0.1]).round(7).tolist()
        [19.0, 5.8965517]
    """
    seen = behaviour_share(beta, replay)
    return (1 - seen) / (seen * whole("batch", batch))


def centred_gain(beta: ArrayLike, batch: ArrayLike) -> Floats:
    """Mean step size left by batch-centred advantages: beta (1-beta) (1-1/batch). [D]"""
    weight = share("beta", beta)
    return weight * (1 - weight) * (1 - 1 / whole("batch", batch))


def no_information_prob(beta: ArrayLike, batch: ArrayLike) -> Floats:
    """Chance that a batch holds one mode only, so that centred advantages are all zero. [D]"""
    weight, size = share("beta", beta), whole("batch", batch)
    return (1 - weight) ** size + weight**size


def unweighted_leak(beta: ArrayLike, replay: ArrayLike, delta: ArrayLike) -> Floats:
    """Gradient that replay without importance weights adds through a constant baseline. [D]"""
    weight = share("beta", beta)
    return replay_share("replay", replay) * (1 - eps_old(weight, delta) - weight)


def wright_fisher(
    beta0: float,
    batch: int,
    steps: int,
    runs: int = 10_000,
    *,
    anchor: float = 0.0,
    alpha: float = 0.5,
    seed: int = 0,
) -> Floats:
    """Simulate refitting to own samples: beta becomes the old share of the last batch. [D]

    `anchor` pulls each refit towards `alpha`; without it one mode is lost in the end. Returns old
    weights, shape (steps + 1, runs).

    Example:
        >>> paths = wright_fisher(0.3, 16, 300, runs=2000)
        >>> paths.shape, bool(abs((paths[-1] == 0).mean() - 0.7) < 0.03)
        ((301, 2000), True)
    """
    size, pull = int(whole("batch", batch)), float(target_share("anchor", anchor))
    goal = float(share("alpha", alpha))
    count, width = int(whole("steps", steps)), int(whole("runs", runs))
    generator = np.random.default_rng(seed)
    paths = np.empty((count + 1, width))
    paths[0] = share("beta0", beta0)
    for step in range(count):
        paths[step + 1] = generator.binomial(size, (1 - pull) * paths[step] + pull * goal) / size
    return paths


def wright_fisher_spread(beta0: ArrayLike, batch: ArrayLike, steps: ArrayLike) -> Floats:
    """Mean of beta (1-beta) after unanchored refits: it shrinks by 1 - 1/batch each time. [D]"""
    start, size = share("beta0", beta0), whole("batch", batch)
    return start * (1 - start) * (1 - 1 / size) ** whole("steps", steps, least=0)


def anchored_variance(alpha: ArrayLike, batch: ArrayLike, anchor: ArrayLike) -> Floats:
    """Variance of beta around `alpha` in the long run of anchored refits. [D]

    Example:
        >>> round(float(anchored_variance(0.3, 16, 0.1)) ** 0.5, 8)
        0.23354968
    """
    goal, kept = share("alpha", alpha), (1 - share("anchor", anchor)) ** 2
    return goal * (1 - goal) / (whole("batch", batch) * (1 - kept) + kept)


def centred_steps(
    beta0: float,
    alpha: float,
    batch: int,
    steps: int,
    runs: int = 10_000,
    *,
    rate: float = 1.0,
    replay: float = 0.0,
    seed: int = 0,
) -> Floats:
    """Simulate on-policy steps with batch-centred advantages towards `alpha`. [D]

    Modes are separated. A starved batch changes nothing: the run is frozen, not worse. With replay
    the samples carry importance weights and are normalised within the batch. Returns old weights,
    shape (steps + 1, runs).

    Example:
        >>> alone = centred_steps(0.02, 0.5, 8, 60, runs=2000)
        >>> helped = centred_steps(0.02, 0.5, 8, 60, runs=2000, replay=0.25)
        >>> bool(helped[-1].std() < alone[-1].std())
        True
    """
    size, width = int(whole("batch", batch)), int(whole("runs", runs))
    count = int(whole("steps", steps))
    kept, goal = float(replay_share("replay", replay)), float(logit(share("alpha", alpha)))
    pace = float(positive("rate", rate))
    if pace > 4:
        raise InputError(f"rate: must be at most 4, or steps overshoot the target; got {pace:g}")
    generator = np.random.default_rng(seed)
    log_odds = np.full(width, float(logit(share("beta0", beta0))))
    paths = np.empty((count + 1, width))
    paths[0] = beta0
    for step in range(count):
        beta = paths[step]
        seen = kept + (1 - kept) * beta
        old = generator.binomial(size, seen) * (beta / seen)
        new = (size - old * (seen / beta)) / (1 - kept)
        part = old / (old + new)
        log_odds = log_odds - pace * part * (1 - part) * (log_odds - goal)
        paths[step + 1] = expit(log_odds)
    return paths
