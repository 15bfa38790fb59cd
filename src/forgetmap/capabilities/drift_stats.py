"""How sure a change of a metric is: draws of both means over items, intervals, tests.

The item is the unit; its runs stay together. All metrics of a task are drawn with the same items,
so that a capability made of several metrics of one task does not count the same noise as new.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from forgetmap.pairing.scores import MetricPairs
from forgetmap.stats import intervals, tests
from forgetmap.stats.estimate import Estimate
from forgetmap.stats.power import minimum_detectable_effect

Floats = NDArray[np.float64]

FLOOR = 0.05
"""Share of the range below which a base is too near zero for a relative change."""
EVENTS = 5
"""And the sum over items, in units of the range, below which it is."""
_FEW_PATTERNS = 50
"""Up to so many distinct outcomes, items are drawn as counts of outcomes."""
_BLOCK = 500_000
"""Item weights held at one time; what fits the processor's cache is drawn five times quicker."""
_PRIOR = 0.5
"""Pseudo-items on each corner of the range: Jeffreys' prior for 0/1 outcomes."""
_SMALL_TEST = 200
"""Up to so many items the signs are flipped at random; beyond, their sum is normal."""

Kind = Literal["bootstrap", "bayes", "same answers"]


class Means(NamedTuple):
    """A metric's means over items, before and after: the data's, or draws of them."""

    before: Floats
    after: Floats


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


def draw_task(pairs: Sequence[MetricPairs], draws: int, rng: np.random.Generator) -> list[Means]:
    """Draw the means of all metrics of a task by resampling its items."""
    sums = _resampled(_table(pairs), draws, rng)
    # A metric that few of the items have may be missing from a draw altogether.
    counts = np.maximum(sums[0::3], 1)
    return [
        Means(before / count, after / count)
        for count, before, after in zip(counts, sums[1::3], sums[2::3], strict=True)
    ]


def draw_cautiously(
    pairs: Sequence[MetricPairs],
    bounds: Sequence[tuple[float, float]],
    draws: int,
    rng: np.random.Generator,
) -> list[Means]:
    """Draw the means of metrics that few items moved: what was never seen may still happen.

    The posterior of the items' shares, with a little prior weight on every corner of the range.
    """
    patterns, counts = _patterns(_table(pairs))
    sums = np.empty((patterns.shape[1], draws))
    block = max(1, _BLOCK // len(counts))
    for start in range(0, draws, block):
        stop = min(start + block, draws)
        weights = rng.standard_gamma(counts, size=(stop - start, len(counts)))
        sums[:, start:stop] = (weights @ patterns).T
    corners = rng.standard_gamma(_PRIOR, size=(4, draws))
    means = []
    for column, (low, high) in enumerate(bounds):
        seen, before, after = sums[3 * column : 3 * column + 3]
        total = seen + corners.sum(axis=0)
        first, second = np.array([[low, low, high, high], [low, high, low, high]]) @ corners
        moved = np.trim_zeros(patterns[:, 3 * column + 2] - patterns[:, 3 * column + 1])
        if moved.size and moved[0] < 0:  # so that swapping the sides negates every draw
            first, second = second, first
        means.append(Means((before + first) / total, (after + second) / total))
    return means


def _patterns(table: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """The distinct rows and how often each stands, in the order of the items, not of the values.

    Values change places when the sides are swapped; items do not, and so get the same draws.
    """
    patterns, first, counts = np.unique(table, axis=0, return_index=True, return_counts=True)
    order = np.argsort(first)
    return patterns[order], counts[order]


def _table(pairs: Sequence[MetricPairs]) -> Floats:
    """Per item of a task and for each metric: whether it is paired, its values before and after."""
    items, place = np.unique(np.concatenate([metric.item for metric in pairs]), return_inverse=True)
    table = np.zeros((len(items), 3 * len(pairs)))
    start = 0
    for column, metric in enumerate(pairs):
        rows = place[start : start + len(metric.item)]
        start += len(metric.item)
        keep = metric.paired
        table[rows[keep], 3 * column] = 1
        table[rows[keep], 3 * column + 1] = metric.before[keep]
        table[rows[keep], 3 * column + 2] = metric.after[keep]
    return table


def _resampled(table: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """Sums of the columns over items drawn with replacement: (columns, draws)."""
    patterns, counts = _patterns(table)
    if len(patterns) <= _FEW_PATTERNS:
        return intervals.bootstrap(counts, patterns, draws, rng)
    n = len(table)
    sums = np.empty((table.shape[1], draws))
    block = max(1, _BLOCK // n)
    for start in range(0, draws, block):
        size = min(block, draws - start)
        picks = rng.integers(0, n, size=(size, n))
        picks += n * np.arange(size)[:, None]
        weights = np.bincount(picks.ravel(), minlength=size * n).reshape(size, n)
        sums[:, start : start + size] = (weights.astype(np.float64) @ table).T
    return sums


def is_small(changes: Changes, bounded: bool) -> bool:
    """Say whether too few items moved for the bootstrap; `bounded` metrics have a range."""
    change = changes.change
    fell, rose = int(np.count_nonzero(change < 0)), int(np.count_nonzero(change > 0))
    if not bounded:
        return fell + rose < intervals.SMALL_FLIPS
    return intervals.is_small(len(change), fell, rose)


def interval(
    point: float, drawn: Floats, without: Floats, kind: Kind, level: float = 0.95
) -> tuple[float, float]:
    """The interval of a value, from its draws and its values with one item left out."""
    if kind == "same answers":
        return point, point
    n = len(without)
    if kind == "bayes":
        return intervals.percentiles(drawn, intervals.widened(level, n, 4 * _PRIOR + 1))
    return intervals.bca(drawn, point, without, np.ones(n), level)


def change_of(changes: Changes, drawn: Means, kind: Kind, level: float = 0.95) -> Estimate:
    """The absolute change with its interval."""
    change = changes.change
    point, n = float(change.mean()), len(change)
    without = (change.sum() - change) / max(n - 1, 1)
    low, high = interval(point, drawn.after - drawn.before, without, kind, level)
    return Estimate(value=point, low=low, high=high)


def relative_draws(changes: Changes, drawn: Means) -> Floats:
    """Draws of the relative change; a draw without base is kept finite."""
    if changes.same:
        return np.zeros(len(drawn.before))
    base = float(changes.before.mean())
    result: Floats = drawn.after / np.maximum(drawn.before, base / 1000) - 1
    return result


def relative_of(changes: Changes, drawn: Means, kind: Kind) -> Estimate:
    """The relative change with its interval."""
    if kind == "same answers":  # also where the base is zero
        return Estimate(value=0.0, low=0.0, high=0.0)
    before, after = changes.before, changes.after
    point = float(after.mean() / before.mean() - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        without = (after.sum() - after) / (before.sum() - before) - 1
    without = np.where(np.isfinite(without), without, point)
    low, high = interval(point, relative_draws(changes, drawn), without, kind)
    # At the end of the scale (all lost: -100 %) draws come near the point and never reach it.
    return Estimate(value=point, low=min(low, point), high=max(high, point))


def withheld(changes: Changes, drawn: Means, width: float | None) -> str | None:
    """Why a relative change would mislead; None where it would not."""
    if changes.same:
        return None
    base = float(changes.before.mean())
    low, _ = intervals.percentiles(drawn.before)
    if base <= 0 or low <= 0:
        return "the base is not clear of zero"
    if width is None:
        return None
    if base < FLOOR * width:
        return f"the base is below {FLOOR:g} of the range"
    if changes.before.sum() < EVENTS * width:
        return f"the base has fewer than {EVENTS} events"
    return None


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


def normal_p(value: float, drawn: Floats) -> float:
    """Two-sided p-value of an aggregate, from the spread of its draws."""
    spread = float(np.std(drawn))
    if spread == 0:
        return 1.0 if value == 0 else 0.0
    return float(2 * special.ndtr(-abs(value) / spread))
