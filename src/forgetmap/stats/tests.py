"""Whether a change can be chance: exact paired tests, and corrections for asking many times."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

Floats = NDArray[np.float64]

_EXACT_STEPS = 20_000
"""Lattice size up to which the sign-flip distribution is computed exactly."""
_MANY_CLUSTERS, _DRAWS_AT_ONCE = 1_000, 2_000


def mcnemar(forgotten: float, gained: float) -> float:
    """Two-sided exact McNemar test: could 1->0 and 0->1 be equally likely?

    Example:
        >>> round(mcnemar(15, 4), 6)
        0.019211
    """
    flips = forgotten + gained
    if flips == 0:
        return 1.0
    return min(1.0, 2 * float(special.bdtr(min(forgotten, gained), round(flips), 0.5)))


def sign_flip(change: ArrayLike, counts: ArrayLike, unit: int = 1) -> float:
    """Two-sided exact sign-flip test that the mean per-item change is zero.

    `change` are the distinct changes, whole multiples of 1/`unit`; `counts` how many items have
    each. With single runs (changes -1, 0, 1) it is McNemar's exact test. The null distribution
    comes from its characteristic function on the lattice; beyond a large lattice, from the normal
    approximation.

    Example:
        >>> round(sign_flip([-1, 0, 1], [15, 70, 4]), 6) == round(mcnemar(15, 4), 6)
        True
    """
    steps = np.rint(np.asarray(change, float) * unit).astype(np.int64)
    count = np.asarray(counts, np.float64)
    size = np.abs(steps)
    if not (count * size).any():
        return 1.0
    if unit == 1:
        return mcnemar(float(count[steps < 0].sum()), float(count[steps > 0].sum()))
    observed = abs(float((count * steps).sum()))
    reach = int((count * size).sum())
    if reach > _EXACT_STEPS:
        z = observed / np.sqrt((count * size.astype(float) ** 2).sum())
        return float(2 * special.ndtr(-z))
    size_of_lattice = 2 ** (2 * reach + 1).bit_length()
    angles = 2 * np.pi * np.arange(size_of_lattice) / size_of_lattice
    transform = np.ones_like(angles)
    for step in np.unique(size[size > 0]):
        transform *= np.cos(step * angles) ** count[size == step].sum()
    pmf = np.fft.ifft(transform).real
    centred = np.concatenate([pmf[-reach:], pmf[: reach + 1]])
    extreme = np.abs(np.arange(-reach, reach + 1)) >= observed - 1e-9
    return float(np.clip(centred[extreme].sum(), 0, 1))


def cluster_sign_flip(sums: ArrayLike, draws: int, rng: np.random.Generator) -> float:
    """Two-sided sign-flip test with whole clusters as units.

    By Monte Carlo, some draws at a time; with very many clusters from the normal approximation.
    """
    values = np.asarray(sums, float)
    values = values[values != 0]
    if not len(values):
        return 1.0
    observed = abs(float(values.sum()))
    if len(values) > _MANY_CLUSTERS:
        return float(2 * special.ndtr(-observed / np.sqrt((values**2).sum())))
    extreme, width = 0, -(-len(values) // 8)
    for start in range(0, draws, _DRAWS_AT_ONCE):
        some = min(_DRAWS_AT_ONCE, draws - start)
        bits = np.unpackbits(rng.integers(0, 256, (some, width), np.uint8), axis=1)
        drawn = 2 * (bits[:, : len(values)] @ values) - values.sum()
        extreme += int((np.abs(drawn) >= observed - 1e-9).sum())
    return (1 + extreme) / (1 + draws)


def by_luck(right: int, items: int, chance: float) -> float:
    """How likely a guesser has so many right or more, where an option is right by `chance`.

    With items of different numbers of options, `chance` is the mean of theirs. The guesser's count
    is then less spread than this binomial one (Hoeffding 1956), so the test errs on the safe side.

    Example:
        >>> round(by_luck(9, 10, 0.5), 4), by_luck(0, 10, 0.5)
        (0.0107, 1.0)
    """
    return 1.0 if right <= items * chance else float(special.bdtrc(right - 1, items, chance))


def holm(p_values: ArrayLike, weights: ArrayLike | None = None) -> Floats:
    """Adjust p-values by Holm: keeps the chance of any false alarm.

    Args:
        p_values: One for every test.
        weights: How much of the error each test may spend; by default all the same.

    Example:
        >>> [round(float(p), 3) for p in holm([0.01, 0.04, 0.03])]
        [0.03, 0.06, 0.06]
        >>> [round(float(p), 3) for p in holm([0.01, 0.04, 0.03], [2, 1, 1])]
        [0.02, 0.06, 0.06]
    """
    p = np.asarray(p_values, float)
    weight = np.ones_like(p) if weights is None else np.asarray(weights, float)
    order = np.argsort(p / weight, kind="stable")
    left = np.cumsum(weight[order][::-1])[::-1]
    scaled = p[order] * left / weight[order]
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1) if len(p) else scaled
    return adjusted


def benjamini_hochberg(p_values: ArrayLike) -> Floats:
    """Adjust p-values by Benjamini and Hochberg: keeps the share of false alarms among alarms.

    Example:
        >>> [round(float(p), 3) for p in benjamini_hochberg([0.01, 0.04, 0.03])]
        [0.03, 0.04, 0.04]
    """
    p = np.asarray(p_values, float)
    order = np.argsort(p, kind="stable")[::-1]
    scaled = p[order] * len(p) / np.arange(len(p), 0, -1)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.minimum.accumulate(scaled), 1) if len(p) else scaled
    return adjusted


def fisher(right: int, runs: int, other_right: int, other_runs: int) -> float:
    """Fisher's exact test, two-sided, of whether two counts of right runs have one chance.

    Example:
        >>> round(fisher(3, 3, 0, 3), 3), fisher(2, 3, 1, 3)
        (0.1, 1.0)
    """
    of_all, in_all = runs + other_runs, right + other_right
    first, last = max(0, in_all - other_runs), min(runs, in_all)
    ways = {
        x: math.comb(runs, x) * math.comb(other_runs, in_all - x) for x in range(first, last + 1)
    }
    rare = sum(count for count in ways.values() if count <= ways[right])
    return rare / math.comb(of_all, in_all)
