"""Means over items, and means of such means: how sure an aggregate of few or many parts is.

A mean is kept with what each of its items adds to its error. Means of metrics add up to means of
capabilities and groups, item by item, so that metrics of one task do not count the same noise as
new. Variance and skewness are summed over all items of all parts before an interval is made. So
parts too small for an interval of their own still make an aggregate that covers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from forgetmap.stats.estimate import Estimate

Floats = NDArray[np.float64]

LEVEL = 0.95
_FEW_MOVED = 10
"""Below so many items that moved, what they did not show counts too."""
_LEAST_FREEDOM = 4.0
"""Degrees of freedom of Student's t where next to nothing moved."""


@dataclass(frozen=True)
class Pulls:
    """What each item of a task adds to the error of a mean."""

    values: Floats
    n: int
    """Items that the mean was taken over; the others add nothing."""


class Bias(NamedTuple):
    """By how much a ratio lies above the truth on average, because its base is noisy."""

    value: float
    variance: float
    """Of the ratio. Its noise hides part of its bias: alone, a ratio needs no correction."""

    def scaled(self, factor: float) -> Bias:
        """The same of the ratio times a factor."""
        return Bias(factor * self.value, factor**2 * self.variance)


@dataclass(frozen=True)
class Mean:
    """A mean over items, or a mean of such means."""

    value: float
    pulls: Mapping[str, Pulls]
    """By task, each over all items of the task in one order."""
    moved: int
    """Items that differ from what most items did."""
    unit: float
    """What one more item that moves all the way would add: the doubt that is left if few moved."""
    biases: tuple[Bias, ...] = ()
    """Of the ratios that it is made of."""
    slack: tuple[float, float] = (0.0, 0.0)
    """How far the answers without a score could shift the value, down and up, at worst."""

    def scaled(self, factor: float) -> Mean:
        """The mean of values times a factor."""
        ends = factor * self.slack[0], factor * self.slack[1]
        return replace(
            self,
            value=factor * self.value,
            pulls={task: Pulls(factor * own.values, own.n) for task, own in self.pulls.items()},
            unit=abs(factor) * self.unit,
            biases=tuple(bias.scaled(factor) for bias in self.biases),
            slack=(min(ends), max(ends)),
        )

    def turned(self, sign: int) -> Mean:
        """The mean with the other sign, where the sign is -1."""
        return self if sign > 0 else self.scaled(-1.0)

    @property
    def certain(self) -> bool:
        """Both models gave the same answers, so that there is nothing to be unsure of."""
        return self.unit == 0 and not any(own.values.any() for own in self.pulls.values())

    def estimate(self, level: float = LEVEL) -> Estimate:
        """The value with its interval, which always holds the value."""
        if self.certain:
            return Estimate(value=self.value, low=self.value, high=self.value)
        moments = self._moments
        reach = float(special.stdtrit(moments.freedom, (1 + level) / 2))
        low, high = (
            moments.centre - moments.error * _skewed(end, moments.lean) for end in (reach, -reach)
        )
        return Estimate(value=self.value, low=min(low, self.value), high=max(high, self.value))

    def p_value(self) -> float:
        """Two-sided chance of such a value if the truth were zero; below .05 as the interval is."""
        if self.certain:
            return 1.0 if self.value == 0 else 0.0
        moments = self._moments
        score = _straight(moments.centre / moments.error, moments.lean)
        return min(1.0, 2 * float(special.stdtr(moments.freedom, -abs(score))))

    def worst(self, level: float = LEVEL) -> tuple[float, float]:
        """The interval if the answers without a score were all as low, or as high, as can be."""
        found = self.estimate(level)
        return found.low + min(self.slack[0], 0.0), found.high + max(self.slack[1], 0.0)

    @cached_property
    def _moments(self) -> _Moments:
        second = third = noise = 0.0
        for own in self.pulls.values():
            square, n = float((own.values**2).sum()), own.n
            second += square * n / (n - 1)
            third += float((own.values**3).sum()) * n**2 / ((n - 1) * (n - 2))
            noise += float((own.values**4).sum()) - square**2 / n
        if self.moved < _FEW_MOVED or not second:  # what few did not show may still happen
            second += self.unit**2
            noise += self.unit**4
        freedom = 2 * second**2 / noise if noise > 0 else math.inf
        bias = sum(one.value * (1 - min(one.variance / second, 1.0)) for one in self.biases)
        return _Moments(
            centre=self.value - bias,
            error=math.sqrt(second),
            lean=third / second**1.5,
            freedom=min(max(freedom, _LEAST_FREEDOM), 1e6),
        )


@dataclass(frozen=True)
class _Moments:
    centre: float
    """The value without the bias that parts leave when they are averaged."""
    error: float
    """Standard error."""
    lean: float
    """Skewness of the value."""
    freedom: float
    """Of Student's t: how well the error itself is known, from the fourth powers."""


def mean_over(
    task: str, where: NDArray[np.int64], items: int, values: Floats, width: float
) -> Mean:
    """A plain mean of values, one of each item that was compared.

    Args:
        task: Whose items they are.
        where: Their places among all items of the task.
        items: How many items the task has.
        values: To average.
        width: Of the range of a value.
    """
    n = len(values)
    point = float(values.mean())
    pulls = np.zeros(items)
    pulls[where] = (values - point) / n
    return Mean(point, {task: Pulls(pulls, n)}, _differing(values), width / n)


def ratio_over(
    task: str, where: NDArray[np.int64], items: int, before: Floats, after: Floats, width: float
) -> Mean:
    """The relative change of the mean, from before to after; see `mean_over`."""
    n, base = len(before), float(before.mean())
    ratio = float(after.mean()) / base
    errors = (after - ratio * before) / (n * base)
    # The error as if the item had not helped to set the ratio: an item that holds much of the base
    # bends the ratio to itself.
    own = np.maximum(1 - before / (n * base), 1 / n)
    errors *= (n - 1) / n / own
    pulls = np.zeros(items)
    pulls[where] = errors
    bias = -float((errors * (before - base)).sum()) / (base * (n - 1))
    variance = float((errors**2).sum()) * n / (n - 1)
    return Mean(
        value=ratio - 1,
        pulls={task: Pulls(pulls, n)},
        moved=min(_differing(after - before), _differing(errors)),
        unit=width / (n * base),
        biases=(Bias(bias, variance),),
    )


def mean_of(parts: Sequence[Mean]) -> Mean:
    """The plain mean of means."""
    count = len(parts)
    pulls: dict[str, Pulls] = {}
    for part in parts:
        for task, own in part.pulls.items():
            values = own.values / count
            known = pulls.get(task)
            pulls[task] = (
                Pulls(values, own.n)
                if known is None
                else Pulls(known.values + values, max(known.n, own.n))
            )
    units = float(np.mean([part.unit**2 for part in parts]))
    return Mean(
        value=float(np.mean([part.value for part in parts])),
        pulls=pulls,
        moved=sum(part.moved for part in parts),
        unit=math.sqrt(units) / count,
        biases=tuple(bias.scaled(1 / count) for part in parts for bias in part.biases),
        slack=(
            float(np.mean([min(part.slack[0], 0.0) for part in parts])),
            float(np.mean([max(part.slack[1], 0.0) for part in parts])),
        ),
    )


def _differing(values: Floats) -> int:
    """How many values differ from the commonest, beyond rounding."""
    scale = float(np.abs(values).max()) or 1.0
    counts = np.unique(np.round(values / scale, 9), return_counts=True)[1]
    return len(values) - int(counts.max())


def _skewed(score: float, lean: float) -> float:
    """Hall's cubic transformation of a Student's t: takes out the skewness of the items."""
    if abs(lean) < 1e-6:
        return score
    return 3 / lean * (float(np.cbrt(1 + lean * (score - lean / 6))) - 1)


def _straight(value: float, lean: float) -> float:
    """The reverse of `_skewed`."""
    return value + lean / 3 * value**2 + lean**2 / 27 * value**3 + lean / 6
