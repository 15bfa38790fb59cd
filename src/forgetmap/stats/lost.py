"""What is lost and gained: the estimand in which gains cannot hide losses.

For item i let p and q be its chance of being right before and after. Then

    lost = mean max(p - q, 0)        gained = mean max(q - p, 0)

With option probabilities p and q are known. From runs they are not, and this module says how much
of the loss is sure. Leave one run out on each side and look at the number of right answers among
the others, x = (i, j). The runs that were left out are then an unbiased look at p - q for items
that show x. So the sum of these looks over any set of patterns is, on average, at most the loss of
all items; a set chosen by its own sum would be too good, and is taken only if it is far beyond
what exchanging the runs of the two models would give.
"""

from __future__ import annotations

from functools import lru_cache
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

_BEYOND, _FAR_BEYOND = 2.6, 3.0
"""Deviations by which a set of patterns, and a single one, must exceed what noise would give."""
_PART_OF_AN_ITEM = 0.75
"""And by how many items more: a few items are too few for deviations to mean much."""


def lost(p: ArrayLike, q: ArrayLike) -> float:
    """The loss of items whose chances are known; swap them for the gain.

    Example:
        >>> round(lost([1, 0.5, 0.2], [0.4, 0.5, 0.9]), 3)
        0.2
    """
    return float(np.maximum(np.asarray(p, float) - np.asarray(q, float), 0).mean())


class Runs(NamedTuple):
    """All outcomes of an item with some runs before and some after.

    An outcome is a number of right runs on each side; outcomes are counted row by row: (0, 0),
    (0, 1), ...
    """

    look: Floats
    """(outcomes, patterns): what the runs that were left out show of p - q, by pattern."""
    right: NDArray[np.intp]
    """Right runs of an outcome, both sides together."""
    exchange: Floats
    """How likely an outcome is if the runs of the two sides are exchanged at random."""
    nested: NDArray[np.bool_]
    """(sets, patterns): patterns that fell at least so far, from those that fell most."""


@lru_cache(maxsize=256)
def runs(before: int, after: int) -> Runs:
    """The outcomes of `before` runs before and `after` runs after."""
    b, a = (
        axis.ravel()
        for axis in np.meshgrid(np.arange(before + 1), np.arange(after + 1), indexing="ij")
    )
    look = np.zeros((len(b), before, after))
    for outcome, (i, j) in enumerate(zip(b, a, strict=True)):
        if i > 0 and j < after:
            look[outcome, i - 1, j] += i / before * (1 - j / after)
        if j > 0 and i < before:
            look[outcome, i, j - 1] -= (1 - i / before) * j / after
    exchange = [
        comb(before, i) * comb(after, j) / comb(before + after, i + j)
        for i, j in zip(b.tolist(), a.tolist(), strict=True)
    ]
    share = [np.arange(side) / max(side - 1, 1) for side in (before, after)]
    fell = np.round(share[0][:, None] - share[1][None, :], 9).ravel()
    nested = fell >= np.unique(fell)[::-1, None]
    return Runs(look.reshape(len(b), -1), b + a, np.array(exchange), nested)


def sure_loss(counts: Floats, before: int, after: int) -> Floats:
    """What each outcome adds to the loss that is sure, in every cell.

    Args:
        counts: (cells, outcomes): items of each outcome, in the order of `runs`.
        before: Runs before.
        after: Runs after.

    Example:
        Three runs a side. Four items went from always to never right; nothing else moved:

        >>> counts = np.zeros((1, 4, 4))
        >>> counts[0, 3, 3], counts[0, 0, 0], counts[0, 3, 0] = 50, 46, 4
        >>> values = sure_loss(counts.reshape(1, -1), 3, 3)
        >>> float((values * counts.reshape(1, -1)).sum())
        4.0
    """
    look, right, exchange, nested = runs(before, after)
    by_right = np.stack(
        [counts[:, right == number].sum(axis=1) for number in range(right.max() + 1)]
    )
    null = by_right.T[:, right] * exchange
    sets = look @ nested.T.astype(float)
    sums = counts @ sets
    sure = sums > _BEYOND * np.sqrt(null @ sets**2) + _PART_OF_AN_ITEM
    best = np.argmax(np.where(sure, sums, -np.inf), axis=1)
    chosen = nested[best] & sure.any(axis=1)[:, None]
    # Where there is enough to see, single patterns join or leave the set.
    sums, noise = counts @ look, np.sqrt(null @ look**2)
    far = _FAR_BEYOND * noise + _PART_OF_AN_ITEM
    chosen = (chosen & (sums >= -far)) | (sums > far)
    values: Floats = chosen.astype(float) @ look.T
    return values


def squared_change(
    right_before: Floats, runs_before: Floats, right_after: Floats, runs_after: Floats
) -> Floats:
    """An unbiased look at (p - q)^2 of items with at least two runs a side; NaN for others.

    Example:
        >>> squared_change(*np.array([[3.0], [3.0], [0.0], [3.0]]))
        array([1.])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        p, q = right_before / runs_before, right_after / runs_after
        noise = p * (1 - p) / (runs_before - 1) + q * (1 - q) / (runs_after - 1)
        return np.where((runs_before > 1) & (runs_after > 1), (p - q) ** 2 - noise, np.nan)


def beyond_chance(
    flips: Floats, p: Floats, q: Floats, k: Floats, accuracy: tuple[Floats, Floats]
) -> Floats:
    """Flips less the lucky guesses of Harmon et al., (1 - a)(1 - b) / (k - 1), item by item.

    The chance term is linear in each item here, so that the mean over items is exactly theirs and
    the spread over items is the spread of the whole.
    """
    a, b = accuracy
    chance = (1 - a) * (1 - b) - (p - a) * (1 - b) - (1 - a) * (q - b)
    result: Floats = flips - np.where(np.isinf(k), 0.0, chance / np.where(np.isinf(k), 2.0, k - 1))
    return result
