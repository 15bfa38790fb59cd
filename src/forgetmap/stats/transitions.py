"""What is estimated: forgetting and backward transfer, in five ways.

Every estimator is a function of a few sums over items, so one function serves the data, a bootstrap
draw of them, and any group of tasks: sums add up. Per item, with `p` and `q` the share of right
answers before and after (over repeats), the summed features are

    n, p(1-q), (1-p)q, p, q, (1-p)(1-q), noise before and after with the items that have them

where the noise of an item is its unbiased chance to flip between two runs of the same model,
p(1-p) S/(S-1). Sums are kept apart by k, the number of options.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Sums = Mapping[float, Floats]
"""Options k (infinity for open answers: nothing to guess) -> sums, (features, ...)."""

N, FORGET, GAIN, BEFORE, AFTER, BOTH_WRONG = range(6)
NOISE_BEFORE, NOISY_BEFORE, NOISE_AFTER, NOISY_AFTER = range(6, 10)
FEATURES = 10
_NOISY = (NOISY_BEFORE, NOISY_AFTER)
_NOISE_SHARE = 0.9
"""`excess` needs a noise estimate for at least this share of the items."""


class Estimates(NamedTuple):
    """Every estimator of one group, for forgetting (first) and backward transfer (second).

    Shapes follow the sums that went in; NaN where an estimator is not defined.
    """

    n: Floats
    accuracy: tuple[Floats, Floats]
    """Before and after."""
    raw: tuple[Floats, Floats]
    paper: tuple[Floats, Floats]
    ceiling: tuple[Floats, Floats]
    latent: tuple[Floats, Floats]
    excess: tuple[Floats, Floats]
    both_wrong: Floats
    noise_floor: Floats
    persistence: Floats


def features(
    right_before: ArrayLike, runs_before: ArrayLike, right_after: ArrayLike, runs_after: ArrayLike
) -> Floats:
    """Features of items from their outcome patterns, shape (items, features).

    Example:
        >>> features([1, 0], [1, 1], [0, 0], [1, 1])[:, FORGET].tolist()
        [1.0, 0.0]
    """
    right_b, runs_b = np.asarray(right_before, float), np.asarray(runs_before, float)
    right_a, runs_a = np.asarray(right_after, float), np.asarray(runs_after, float)
    p, q = right_b / runs_b, right_a / runs_a
    out = np.zeros((*p.shape, FEATURES))
    out[..., N] = 1
    out[..., FORGET], out[..., GAIN] = p * (1 - q), (1 - p) * q
    out[..., BEFORE], out[..., AFTER] = p, q
    out[..., BOTH_WRONG] = (1 - p) * (1 - q)
    for noise, noisy, share, runs in (
        (NOISE_BEFORE, NOISY_BEFORE, p, runs_b),
        (NOISE_AFTER, NOISY_AFTER, q, runs_a),
    ):
        repeated = runs > 1
        out[..., noisy] = repeated
        out[..., noise] = np.where(
            repeated, share * (1 - share) * runs / np.where(repeated, runs - 1, 1), 0
        )
    return out


def estimate(sums: Sums) -> Estimates:
    """All estimators from feature sums per k.

    Example:
        The share of items forgotten under the know-or-guess model, k = 4, unchanged model:

        >>> shares = features([1, 1, 0, 0], [1] * 4, [1, 0, 1, 0], [1] * 4)
        >>> cells = np.array([0.625, 0.075, 0.075, 0.225])      # n11, n10, n01, n00
        >>> result = estimate({4.0: cells @ shares})
        >>> round(float(result.raw[0]), 4), round(float(result.paper[0]), 4)
        (0.075, 0.045)
    """
    total = np.sum(list(sums.values()), axis=0)
    n = total[N]
    a, b = total[BEFORE] / n, total[AFTER] / n
    raw = total[FORGET] / n, total[GAIN] / n
    noise = _noise(total, NOISE_BEFORE, NOISY_BEFORE), _noise(total, NOISE_AFTER, NOISY_AFTER)
    floor = (noise[0] + noise[1]) / 2
    rho = persistence(sums)
    means = _means(sums)
    return Estimates(
        n=n,
        accuracy=(a, b),
        raw=raw,
        paper=_over_k(means, _paper),
        ceiling=_over_k(means, _ceiling),
        latent=(raw[0] * np.nan, raw[1] * np.nan) if np.isnan(rho).all() else latent(sums, rho),
        excess=(raw[0] - floor, raw[1] - floor),
        both_wrong=total[BOTH_WRONG] / n,
        noise_floor=floor,
        persistence=rho,
    )


def _noise(total: Floats, noise: int, noisy: int) -> Floats:
    items = total[noisy]
    if not items.any():  # no repeats: the usual case, and quick
        return np.full(np.shape(items), np.nan)
    enough = (items >= _NOISE_SHARE * total[N]) & (items > 0)
    return np.where(enough, total[noise] / np.where(enough, items, 1), np.nan)


def _means(sums: Sums) -> dict[float, tuple[Floats, Floats]]:
    """Per k the item count, and the mean of every feature up to `BOTH_WRONG`."""
    return {
        k: (part[N], part[: BOTH_WRONG + 1] / np.where(part[N] > 0, part[N], 1))
        for k, part in sums.items()
    }


def _over_k(
    means: Mapping[float, tuple[Floats, Floats]],
    rule: Callable[[float, Floats], tuple[Floats, Floats]],
) -> tuple[Floats, Floats]:
    """Apply a rule per k and combine by item count; undefined where no item has options."""
    n = np.asarray(sum(count for count, _ in means.values()))
    if all(math.isinf(k) for k in means):
        undefined = np.full(np.shape(n), np.nan)
        return undefined, undefined
    forgetting, transfer = np.zeros(np.shape(n)), np.zeros(np.shape(n))
    for k, (count, mean) in means.items():
        one, other = rule(1 / k, mean)
        forgetting, transfer = forgetting + count * one, transfer + count * other
    return forgetting / n, transfer / n


def _paper(g: float, mean: Floats) -> tuple[Floats, Floats]:
    """Harmon et al.: subtract (1-a)(1-b)/(k-1) from both, clip at zero."""
    chance = (1 - mean[BEFORE]) * (1 - mean[AFTER]) * g / (1 - g)
    return np.maximum(mean[FORGET] - chance, 0), np.maximum(mean[GAIN] - chance, 0)


def _ceiling(g: float, mean: Floats) -> tuple[Floats, Floats]:
    """The most that could be lost or gained: accuracy beyond guessing, (k a - 1)/(k - 1)."""
    return (
        np.maximum((mean[BEFORE] - g) / (1 - g), 0),
        np.maximum((mean[AFTER] - g) / (1 - g), 0),
    )


def latent(sums: Sums, rho: ArrayLike = 0.0) -> tuple[Floats, Floats]:
    """Share of items known before and not known after, and the reverse, under know-or-guess.

    `rho` is the share of guesses that persist between runs: 0 for guesses drawn afresh, 1 for a
    model that repeats its wrong answers. A deterministic run repeats them, so without an estimate
    of rho only the interval between rho = 0 and rho = 1 is known (`guessing_bounds`).
    """
    persist = np.asarray(rho, float)

    def rule(g: float, mean: Floats) -> tuple[Floats, Floats]:
        guessed_twice = mean[BOTH_WRONG] / ((1 - g) * (persist + (1 - persist) * (1 - g)))
        lucky = guessed_twice * (1 - persist) * g * (1 - g)
        return (mean[FORGET] - lucky) / (1 - g), (mean[GAIN] - lucky) / (1 - g)

    return _over_k(_means(sums), rule)


def guessing_bounds(sums: Sums) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """The interval in which the forgotten share (first) and the gained share (second) must lie.

    From no guess persisting to every guess persisting, cut to [0, 1].
    """
    fresh, fixed = latent(sums, 0.0), latent(sums, 1.0)
    return (
        (np.clip(fresh[0], 0, 1), np.clip(fixed[0], 0, 1)),
        (np.clip(fresh[1], 0, 1), np.clip(fixed[1], 0, 1)),
    )


def persistence(sums: Sums) -> Floats:
    """Estimate rho from repeats: how much rarer than fresh guessing a model flips by itself.

    Under know-or-guess a model flips 1->0 between two of its own runs at the rate
    (1 - accuracy)(1 - rho)/k. Slips on known items flip too and make the estimate too small;
    it is cut to [0, 1]. NaN without repeats or options.
    """
    shape = np.shape(next(iter(sums.values())))[1:]
    if not all(any(part[noisy].any() for part in sums.values()) for noisy in _NOISY):
        return np.full(shape, np.nan)
    flips, possible = np.zeros(shape), np.zeros(shape)
    for k, part in sums.items():
        if np.isinf(k):
            continue
        n = part[N]
        noise = _noise(part, NOISE_BEFORE, NOISY_BEFORE) + _noise(part, NOISE_AFTER, NOISY_AFTER)
        flips = flips + np.where(n > 0, noise, 0) * n
        possible = possible + (2 * n - part[BEFORE] - part[AFTER]) / k
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.clip(np.where(possible > 0, 1 - flips / possible, np.nan), 0, 1)
