"""How sure an estimate is: draws of feature sums, and percentiles of what follows from them.

Items are the sampling unit; all repeats of an item stay together. Because an item matters only by
its outcome pattern, resampling items is one multinomial draw over the pattern histogram: the cost
does not grow with the number of items. Draws of tasks add up to draws of categories and totals.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

Floats = NDArray[np.float64]

PRIOR_MASS = 2.0
"""Pseudo-items of the Dirichlet prior, spread over all possible patterns: 1/2 for each of the four
patterns of single runs, which is Jeffreys' prior."""
SMALL_ITEMS = 100
SMALL_FLIPS = 10
"""Below either, percentiles of a bootstrap cover too little; the Bayesian interval takes over."""

COMMON = 100
"""A pattern that so many items show is drawn by the normal distribution, which is much quicker."""
NOTHING_MOVED = 0.02
"""Sum of squared soft flips below which the spread of the seen items says nothing of others."""


def is_small(n: float, forgotten: float, gained: float) -> bool:
    """Say whether a group is too small for the bootstrap."""
    return n < SMALL_ITEMS or min(forgotten, gained) < SMALL_FLIPS


def bootstrap(counts: ArrayLike, values: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """Draw sums of per-item values by resampling items.

    `counts` is the number of items with each pattern, `values` (patterns, features) what such an
    item contributes. Returns (features, draws).
    """
    count = np.asarray(counts, float)
    common = count >= COMMON
    if common.sum() < 3:
        common[:] = False
    groups = np.append(count[~common], count[common].sum())
    drawn = rng.multinomial(int(count.sum()), groups / count.sum(), size=draws).astype(np.float64)
    sums: Floats = values[~common].T @ drawn[:, :-1].T
    if not common.any():
        return sums
    # Among the common patterns a multinomial draw is normal, with the same covariance.
    share = count[common] / groups[-1]
    noise = rng.standard_normal((draws, len(share))) * np.sqrt(count[common])
    parts = drawn[:, -1:] * share + noise - share * noise.sum(axis=1, keepdims=True)
    more: Floats = values[common].T @ parts.T
    return sums + more


def cluster_bootstrap(sums: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """Draw sums by resampling whole clusters; `sums` (clusters, features) is what each holds."""
    clusters = len(sums)
    weights = rng.multinomial(clusters, np.full(clusters, 1 / clusters), size=draws)
    return sums.T @ weights.T.astype(np.float64)


def posterior(counts: ArrayLike, values: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """Draw sums from the Dirichlet posterior of the pattern shares (for small groups).

    `counts` and `values` must hold all possible patterns, those never seen with count zero.
    """
    count = np.asarray(counts, float)
    weights = rng.gamma(count + PRIOR_MASS / len(count), size=(draws, len(count)))
    shares: Floats = weights / weights.sum(axis=1, keepdims=True)
    return values.T @ shares.T * float(count.sum())


def mean_draws(n: float, powers: ArrayLike, draws: int, rng: np.random.Generator) -> Floats:
    """Draw the sum of a continuous per-item value from the sums of its first three powers.

    For values that are not few patterns (option probabilities): Student's t under Hall's cubic
    transformation, which takes out the skewness that makes the plain t miss on one side.
    """
    first, second, third = (float(value) for value in np.asarray(powers))
    if n < 2:  # one item says nothing of others
        return first + rng.uniform(-1, 1, size=draws)
    mean = first / n
    variance = max(second / n - mean**2, 0.0) * n / (n - 1)
    if variance == 0:
        return np.full(draws, first)
    skewness = (third / n - 3 * mean * second / n + 2 * mean**3) / variance**1.5
    lean = skewness / np.sqrt(n)
    t: Floats = rng.standard_t(n - 1, size=draws)
    if abs(lean) > 1e-6:
        t = 3 / lean * (np.cbrt(1 + lean * (t - lean / 6)) - 1)
    sums: Floats = n * mean - np.sqrt(n * variance) * t
    return sums


def unseen(n: float, draws: int) -> Floats:
    """Share of items that may have flipped although none of the n seen did.

    Where hardly an item moved, the spread of the seen ones says nothing; this is the posterior of
    a share never observed, the same caution that `posterior` takes for counted flips.
    """
    ranks = (np.arange(draws) + 0.5) / draws
    shares: Floats = np.random.default_rng(0).permutation(special.betaincinv(0.5, n + 0.5, ranks))
    return shares


def percentiles(draws: Floats, level: float = 0.95) -> tuple[float, float]:
    """The central interval of the draws.

    Example:
        >>> [round(bound, 6) for bound in percentiles(np.arange(1001.0))]
        [25.0, 975.0]
    """
    return _quantiles(draws, (1 - level) / 2, (1 + level) / 2)


def _quantiles(draws: Floats, low: float, high: float) -> tuple[float, float]:
    """Two quantiles at once, interpolated; NaN draws give NaN."""
    last = len(draws) - 1
    places = np.array([low, high]) * last
    below = np.minimum(places.astype(np.int64), last - 1)
    ordered = np.partition(draws, [*below, *(below + 1), last])
    if np.isnan(ordered[last]):  # NaN sorts to the end
        return float("nan"), float("nan")
    ends = ordered[below] + (places - below) * (ordered[below + 1] - ordered[below])
    return float(ends[0]), float(ends[1])


@lru_cache(maxsize=4096)
def widened(level: float, units: float, pseudo_units: float = 0.0) -> float:
    """The level that makes percentiles of draws as wide as Student's t would be.

    Resampling `units` shrinks the spread by sqrt((units - 1) / units), pseudo-units of a prior do
    so a little more, and the normal distribution has thinner tails than Student's.

    Example:
        >>> round(widened(0.95, 20), 3), round(widened(0.95, 10_000), 3)
        (0.968, 0.95)
    """
    if units < 2:
        return 1.0
    stretch = np.sqrt((units + pseudo_units) / (units - 1))
    return float(2 * special.ndtr(stretch * special.stdtrit(units - 1, (1 + level) / 2)) - 1)


def bca(
    draws: Floats, point: float, without: Floats, weights: Floats, level: float = 0.95
) -> tuple[float, float]:
    """The bias-corrected and accelerated interval, which follows the skewness of small rates.

    `without` are the estimates with one unit (an item with a given pattern, or a cluster) left
    out, `weights` how many such units there are. The level is `widened`, which matters where the
    units are few (clusters).
    """
    spread = (weights * without).sum() / weights.sum() - without
    square = float((weights * spread**2).sum())
    if not square > 0:
        return percentiles(draws, level)
    wider = widened(level, float(weights.sum()))
    if wider >= 1:  # of two units next to nothing is known: all that was drawn
        return percentiles(draws, 1.0)
    lean = float((weights * spread**3).sum()) / (6 * square**1.5)
    below = (np.count_nonzero(draws < point) + np.count_nonzero(draws <= point)) / 2 / len(draws)
    shift = min(max(float(special.ndtri(below)), -1.0), 1.0)
    wide = float(special.ndtri((1 + wider) / 2))
    ends = shift + np.array([-wide, wide])
    low, high = special.ndtr(shift + ends / (1 - lean * ends))
    return _quantiles(draws, float(low), float(high))
