"""What is known of one metric: its items' changes, what a missing answer could do, tests.

The item is the unit; its runs stay together. How sure a mean is, of one metric or of many, is in
`drift_means`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from forgetmap.pairing.scores import MetricPairs
from forgetmap.stats import tests
from forgetmap.stats.power import minimum_detectable_effect

Floats = NDArray[np.float64]

ENOUGH = 30
"""Items above zero on either side that a relative change needs; its bias is at most 2 over them."""
_SMALL_TEST = 200
"""Up to so many items the signs are flipped at random; beyond, their sum is normal."""


class Changes(NamedTuple):
    """All that the statistics need of one metric: the items with a value on both sides."""

    before: Floats
    after: Floats
    same: bool
    """Every answer is the same text, with the same value."""
    binary: bool
    runs: tuple[int, int]
    """Most runs of an item, before and after."""
    even: bool
    """Every item has that many."""

    @property
    def change(self) -> Floats:
        """Change of each item."""
        result: Floats = self.after - self.before
        return result

    @classmethod
    def of(cls, pairs: MetricPairs) -> Changes:
        """Take the items that have a value on both sides."""
        keep = pairs.paired
        before, after = pairs.before[keep], pairs.after[keep]
        runs = pairs.runs_before[keep], pairs.runs_after[keep]
        if not keep.any():
            return cls(before, after, False, False, (0, 0), True)
        return cls(
            before,
            after,
            bool(pairs.same_words[keep].all() and (before == after).all()),
            bool(pairs.binary[keep].all()),
            (int(runs[0].max()), int(runs[1].max())),
            all(bool((count == count.max()).all()) for count in runs),
        )


def items_behind(changes: Changes) -> float:
    """How many items a relative change rests on: those above zero on either side.

    For scores of all sizes it is Kish's effective number. Items that are zero on both sides say
    nothing of a ratio, and the number of the others says nothing of it either. So a rule by this
    number selects neither gains nor losses. A rule by the base that was seen would: bases that
    came out high by chance would pass and then seem to fall.

    Example:
        >>> one, two = np.array([1.0, 1, 0, 0, 0]), np.array([0.0, 1, 1, 0, 0])
        >>> items_behind(Changes(one, two, False, True, (1, 1), True))
        3.0
    """
    largest = np.maximum(changes.before, changes.after)
    total, squares = float(largest.sum()), float((largest**2).sum())
    return total**2 / squares if squares > 0 else 0.0


def withheld(changes: Changes) -> str | None:
    """Why a relative change would mislead; None where it would not."""
    if changes.same:
        return None
    before = changes.before
    if (before < 0).any() or (changes.after < 0).any():
        return "scores below zero have no relative change"
    behind = items_behind(changes)
    if round(behind, 6) < ENOUGH:
        return f"it would rest on {behind:.0f} items above zero on either side, not {ENOUGH}"
    error = float(before.std()) / math.sqrt(len(before))
    if float(before.mean()) <= float(special.ndtri(0.975)) * error:
        return "the score before is not clear of zero"
    return None


class Unscored(NamedTuple):
    """Items without a score on both sides, and what they could add to the sum of changes."""

    items: int
    low: float
    high: float

    def widen(self, n: int, interval: tuple[float, float]) -> tuple[float, float]:
        """The interval of the mean change of all items, at worst; `n` were compared."""
        total = n + self.items
        return (n * interval[0] + self.low) / total, (n * interval[1] + self.high) / total

    def shift(self, n: int, change: float) -> tuple[float, float]:
        """By how much the mean change of all items could differ from that of the `n` compared."""
        low, high = self.widen(n, (change, change))
        return low - change, high - change


def unscored(pairs: MetricPairs, bounds: tuple[float, float]) -> Unscored:
    """Bound what the items without a score on both sides could do.

    A score that is missing can be anything in the range. Items that the metric was not asked of,
    on neither side, are not missing.
    """
    absent_before, absent_after = np.isnan(pairs.before), np.isnan(pairs.after)
    failed = (pairs.failed_before > 0) | (pairs.failed_after > 0)
    missing = ~pairs.paired & (failed | ~(absent_before & absent_after))
    low, high = bounds
    least = np.where(absent_after, low, pairs.after) - np.where(absent_before, high, pairs.before)
    most = np.where(absent_after, high, pairs.after) - np.where(absent_before, low, pairs.before)
    return Unscored(
        int(np.count_nonzero(missing)), float(least[missing].sum()), float(most[missing].sum())
    )


def p_value(changes: Changes, rng: np.random.Generator, draws: int) -> float:
    """Whether the items' changes can be chance: exact for 0/1 metrics."""
    change = changes.change
    unit = math.lcm(*changes.runs)
    if changes.binary and changes.even and unit <= 60:
        steps, counts = np.unique(np.rint(change * unit), return_counts=True)
        return tests.sign_flip(steps / unit, counts, unit)
    if not change.any():
        return 1.0
    if len(change) <= _SMALL_TEST:
        return tests.cluster_sign_flip(change, draws, rng)
    z = abs(float(change.sum())) / math.sqrt(float((change**2).sum()))
    return float(2 * special.ndtr(-z))


def detectable(changes: Changes, width: float | None) -> float:
    """Smallest change that would have been found with 80 % power, in units of the metric."""
    change = changes.change
    square = float((change**2).mean())
    if width is not None:
        return width * minimum_detectable_effect(len(change), square / width**2)
    reach = float(special.ndtri(0.975) + special.ndtri(0.8))
    return reach * math.sqrt(square / len(change))


def standardised(changes: Changes) -> float | None:
    """Difference of the means in units of the items' standard deviation."""
    spread = math.sqrt((float(changes.before.var()) + float(changes.after.var())) / 2)
    change = float(changes.change.mean())
    if spread == 0:
        return 0.0 if change == 0 else None
    return change / spread


def ks_distance(changes: Changes) -> float:
    """Largest distance between the distributions of the items' values.

    Example:
        >>> one, two = np.array([1.0, 2.0, 3.0]), np.array([2.0, 3.0, 9.0])
        >>> round(ks_distance(Changes(one, two, False, False, (1, 1), True)), 3)
        0.333
    """
    before, after = np.sort(changes.before), np.sort(changes.after)
    places = np.concatenate([before, after])
    shares = (np.searchsorted(side, places, side="right") / len(side) for side in (before, after))
    return float(np.abs(np.subtract(*shares)).max())
