"""How sure a mean over items is, without drawing anything.

A mean comes with the first three cumulants of its sampling distribution. They add up over tasks,
so a total of any number of tasks costs no more than one. Limits follow from a shifted gamma
distribution with these cumulants: for counts of rare events that is nearly Jeffreys' interval, for
many items it is the normal interval, and in between it follows the skewness.

What was never seen counts too. The upper limit adds part of one unseen unit that lost everything:
fifty items without a loss do not prove that there is none. The lower limit adds part of one that
lost nothing: two items that were both lost do not prove that all are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

Floats = NDArray[np.float64]

LEVEL = 0.95
UNSEEN = 0.75
"""Part of an unseen unit in a limit. Jeffreys' prior has 1/2, which covers only 90 % where
two or three losses are expected; Clopper and Pearson's limit has 1, which is wider than need be."""


class Spread(NamedTuple):
    """Means and how sure they are: parallel arrays, one entry per cell."""

    mean: Floats
    variance: Floats
    """Of the mean; infinite where one unit is all there is."""
    third: Floats
    """Third cumulant of the mean."""
    freedom: Floats
    """Degrees of freedom of the variance."""
    unit: Floats
    """Share of the mean that one more unit (an item, a cluster, a task) would have."""

    def times(self, share: ArrayLike) -> Spread:
        """A fixed share of this mean, as part of a sum.

        Example:
            >>> half = spread_of([0, 0, 1, 1]).times(0.5)
            >>> float(half.mean), float(half.unit)
            (0.25, 0.0625)
        """
        part = np.asarray(share, float)
        with np.errstate(invalid="ignore"):
            variance = np.where(part == 0, 0.0, self.variance * part**2)
        return Spread(
            self.mean * part, variance, self.third * part**3, self.freedom, self.unit * part**2
        )

    def at(self, cells: NDArray[np.intp] | NDArray[np.bool_]) -> Spread:
        """The entries of some cells."""
        return Spread(*(column[cells] for column in self))


def spread_of(values: ArrayLike) -> Spread:
    """The spread of the mean of some items.

    Example:
        >>> spread = spread_of([0, 1, 1, 1])
        >>> float(spread.mean), round(float(spread.variance), 4), float(spread.freedom)
        (0.75, 0.0625, 3.0)
    """
    items = np.asarray(values, float)
    n = len(items)
    around = items - items.mean()
    return Spread(
        np.asarray(items.mean()),
        np.asarray((around**2).sum() / (n - 1) / n if n > 1 else np.inf),
        np.asarray((around**3).sum() / n**3),
        np.asarray(max(n - 1.0, 1.0)),
        np.asarray(1 / n),
    )


def total(parts: Spread, cell: NDArray[np.intp], cells: int) -> Spread:
    """Add up independent parts by the cell that each belongs to."""

    def add(column: Floats) -> Floats:
        return np.bincount(cell, weights=column, minlength=cells).astype(np.float64)

    variance, unit = add(parts.variance), add(parts.unit)
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = variance**2 / add(parts.variance**2 / parts.freedom)
        # Where nothing varies, the units that were seen still count.
        freedom = np.where(variance == 0, 1 / unit - 1, freedom)
    freedom = np.where(np.isfinite(freedom), np.maximum(freedom, 1.0), 1.0)
    return Spread(add(parts.mean), variance, add(parts.third), freedom, unit)


def plus(*parts: Spread) -> Spread:
    """The sum of independent means, cell by cell."""
    cells = len(np.atleast_1d(parts[0].mean))
    stacked = Spread(
        *(np.concatenate([np.atleast_1d(c) for c in columns]) for columns in zip(*parts))  # noqa: B905
    )
    return total(stacked, np.tile(np.arange(cells), len(parts)), cells)


def average(parts: Spread) -> Spread:
    """The plain mean over cells, as one cell."""
    cells = len(parts.mean)
    return total(parts.times(1 / cells), np.zeros(cells, np.intp), 1)


def limits(
    spread: Spread, level: float = LEVEL, *, least: float = 0.0, most: float = 1.0
) -> tuple[Floats, Floats]:
    """The interval of every mean, for values between `least` and `most`.

    Example:
        No loss among 100 items, and five:

        >>> low, high = limits(spread_of([0] * 100))
        >>> float(low), round(float(high), 3)
        (0.0, 0.031)
        >>> low, high = limits(spread_of([0] * 95 + [1] * 5))
        >>> round(float(low), 3), round(float(high), 3)
        (0.018, 0.111)
    """
    tail = (1 - level) / 2
    return low_limit(spread, tail, least), high_limit(spread, tail, most)


def low_limit(spread: Spread, tail: float = 0.025, least: float = 0.0) -> Floats:
    """The limit that the true mean falls below with probability `tail`."""
    limit = _quantile(_seen(spread, least), spread, tail)
    return np.where(np.isfinite(spread.variance), np.maximum(limit, least), least)


def high_limit(spread: Spread, tail: float = 0.025, most: float = 1.0) -> Floats:
    """The limit that the true mean exceeds with probability `tail`."""
    limit = _quantile(_with_unseen(spread, most), spread, 1 - tail)
    return np.where(np.isfinite(spread.variance), np.minimum(limit, most), most)


def chance_at_most(spread: Spread, value: ArrayLike, least: float = 0.0) -> Floats:
    """How likely the true mean is at most `value`; below `tail` just where `low_limit` is above it.

    Example:
        >>> spread = spread_of([0] * 95 + [1] * 5)
        >>> at_limit = chance_at_most(spread, low_limit(spread))
        >>> round(float(at_limit), 4)
        0.025
    """
    chance = _probability(_seen(spread, least), spread, np.asarray(value, float))
    return np.where(np.isfinite(spread.variance), chance, 1.0)


def chance_at_least(spread: Spread, value: ArrayLike, most: float = 1.0) -> Floats:
    """How likely the true mean is at least `value`: the counterpart of `high_limit`."""
    chance = 1 - _probability(_with_unseen(spread, most), spread, np.asarray(value, float))
    return np.where(np.isfinite(spread.variance), chance, 1.0)


Cumulants = tuple[Floats, Floats, Floats]


def _seen(spread: Spread, least: float) -> Cumulants:
    """Cumulants for the lower limit: part of a unit that was not seen lies at `least`.

    The step by which single events move the mean is third / variance: 1/n for counts. Half a step
    more is the usual correction for skewness. The unseen unit weighs in by the mean: where losses
    are rare, units without one were seen.
    """
    reach = np.maximum(spread.mean - least, spread.unit)
    step = np.clip(_ratio(spread.third, spread.variance), 0, reach)
    unseen = spread.unit / (1 + spread.unit) * np.clip(spread.mean - least, 0, 1) ** 2
    return (
        spread.mean + step / 2 - UNSEEN * unseen,
        spread.variance + step**2 / 2 + UNSEEN * unseen**2,
        2 * spread.third + step**3 - 2 * UNSEEN * unseen**3,
    )


def _with_unseen(spread: Spread, most: float) -> Cumulants:
    """Cumulants for the upper limit: part of a unit that was not seen lies at `most`."""
    step = spread.unit / (1 + spread.unit) * (most - spread.mean)
    return (
        spread.mean + UNSEEN * step,
        spread.variance + UNSEEN * step**2,
        2 * spread.third + 2 * UNSEEN * step**3,
    )


def _ratio(above: Floats, below: Floats) -> Floats:
    positive = (below > 0) & np.isfinite(below)
    return np.where(positive, above / np.where(positive, below, 1), 0.0)


def _shape(cumulants: Cumulants, spread: Spread) -> tuple[Floats, Floats, Floats]:
    """Width of the distribution, its skewness, and the gamma shape with that skewness."""
    _, variance, third = cumulants
    finite = np.where(np.isfinite(variance), variance, 1.0)
    deviation = np.sqrt(np.maximum(finite, 0))
    skewness = np.clip(_ratio(third, deviation**3), -50, 50)
    shape = 4 / np.maximum(np.abs(skewness), 1e-2) ** 2
    stretch = special.stdtrit(spread.freedom, 0.975) / special.ndtri(0.975)
    return deviation * stretch, skewness, shape


def _quantile(cumulants: Cumulants, spread: Spread, probability: float) -> Floats:
    width, skewness, shape = _shape(cumulants, spread)
    chance = np.where(skewness >= 0, probability, 1 - probability)
    standard = (special.gammaincinv(shape, chance) - shape) / np.sqrt(shape)
    standard = np.where(skewness >= 0, standard, -standard)
    standard = np.where(np.abs(skewness) < 1e-2, special.ndtri(probability), standard)
    quantile: Floats = cumulants[0] + width * standard
    return quantile


def _probability(cumulants: Cumulants, spread: Spread, value: Floats) -> Floats:
    width, skewness, shape = _shape(cumulants, spread)
    away = value - cumulants[0]
    narrow = np.where(away == 0, 0.0, np.copysign(np.inf, away))
    standard = np.where(width > 0, away / np.where(width > 0, width, 1), narrow)
    turned = np.where(skewness >= 0, standard, -standard)
    with np.errstate(invalid="ignore"):
        gamma = special.gammainc(shape, np.maximum(shape + turned * np.sqrt(shape), 0))
    gamma = np.where(skewness >= 0, gamma, 1 - gamma)
    return np.where(np.abs(skewness) < 1e-2, special.ndtr(standard), gamma)
