"""Sums over the units of every task, from which means and their spread follow.

A unit is an item, or a cluster of items where the log names clusters. For a unit with the value T
(a sum over its items) and the size n, a task keeps the sums of T, T^2, T^3 and their products with
n. That is enough for the mean T / n and its first three cumulants, also where clusters differ in
size, and the sums of small tasks can be pooled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forgetmap.stats.patterns import Patterns
from forgetmap.stats.spread import Spread

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

FEW_UNITS = 10
"""A task with fewer units borrows the spread of all such tasks when it is part of a total."""


class Moments(NamedTuple):
    """Sums over the units of each task: parallel arrays, one entry per task.

    `t2n` is the sum of T^2 n, and so on.
    """

    units: Floats
    n: Floats
    nn: Floats
    nnn: Floats
    t: Floats
    tt: Floats
    ttt: Floats
    tn: Floats
    tnn: Floats
    ttn: Floats

    def spread(self) -> Spread:
        """The mean of every task and how sure it is, from the task's own units."""
        mean = self.t / self.n
        square, cube = self._around(mean)
        alone = self.units < 2
        more = np.where(alone, 1, self.units - 1)
        return Spread(
            mean,
            np.where(alone, np.inf, self.units / more * square / self.n**2),
            cube / self.n**3,
            more,
            1 / self.units,
        )

    def spread_in_total(self) -> Spread:
        """The same for a part of a total: tasks with few units share one spread."""
        own = self.spread()
        few = self.units < FEW_UNITS
        if not few.any():
            return own
        pooled = Moments(*(np.asarray(column[few].sum()) for column in self))
        square, cube = pooled._around(pooled.t / pooled.n)
        if pooled.units < 2:
            return own
        return Spread(
            own.mean,
            np.where(few, square / (pooled.units - 1) * self.units / self.n**2, own.variance),
            np.where(few, cube / pooled.units * self.units / self.n**3, own.third),
            np.where(few, self.units * (1 - 1 / pooled.units), own.freedom),
            own.unit,
        )

    def _around(self, mean: Floats) -> tuple[Floats, Floats]:
        """Sums of the second and third powers of T - mean n."""
        square = self.tt - 2 * mean * self.tn + mean**2 * self.nn
        cube = self.ttt - 3 * mean * self.ttn + 3 * mean**2 * self.tnn - mean**3 * self.nnn
        return np.maximum(square, 0), cube


def clusters(task: Codes, bucket: Floats) -> tuple[Codes, Codes]:
    """The task of each cluster, and the cluster of each row; buckets are whole numbers from -1.

    Example:
        >>> clusters(np.array([0, 0, 1, 1]), np.array([2.0, 2.0, -1.0, 2.0]))
        (array([0, 1, 1]), array([0, 0, 1, 2]))
    """
    span = int(bucket.max(initial=0)) + 2
    named, cluster = np.unique(task * span + bucket.astype(np.intp) + 1, return_inverse=True)
    return named // span, cluster


class Units:
    """The units behind some patterns, and sums over them."""

    def __init__(self, patterns: Patterns, task: Codes, tasks: int) -> None:
        self.task, self.tasks = task, tasks
        self.items = patterns.n
        first = np.full(tasks, np.nan)
        first[task[::-1]] = patterns.bucket[::-1]
        # One cluster alone says nothing about others; its items are then the units.
        clustered = np.zeros(tasks, bool)
        clustered[task[patterns.bucket != first[task]]] = True
        self.clustered = clustered
        self._rows = clustered[task]
        """Rows of clustered tasks."""
        self._task_of_cluster, self._cluster = clusters(
            task[self._rows], patterns.bucket[self._rows]
        )
        sizes = np.bincount(self._cluster, weights=self.items[self._rows])
        self._size: Floats = sizes.astype(np.float64)

    def moments(self, first: Floats, second: Floats, third: Floats) -> Moments:
        """Sums over units, from the sums of a value's first three powers over the items of a row.

        Of the powers only the first is used in clustered tasks, where the cluster is the unit.
        """
        single = ~self._rows
        n, t, tt, ttt = (
            self._by_task(self.task[single], column[single])
            for column in (self.items, first, second, third)
        )
        items = Moments(n, n, n, n, t, tt, ttt, t, t, tt)
        if not self._rows.any():
            return items
        size = self._size
        value: Floats = np.bincount(self._cluster, weights=first[self._rows]).astype(np.float64)
        clusters: tuple[Floats, ...] = (
            *(np.ones_like(size), size, size**2, size**3, value, value**2, value**3),
            *(value * size, value * size**2, value**2 * size),
        )
        return Moments(
            *(
                own + self._by_task(self._task_of_cluster, column)
                for own, column in zip(items, clusters, strict=True)
            )
        )

    def of_values(self, values: Floats) -> Moments:
        """The same for a value that all items of a row share."""
        return self.moments(*(self.items * values**power for power in (1, 2, 3)))

    def _by_task(self, task: Codes, column: Floats) -> Floats:
        sums: Floats = np.bincount(task, weights=column, minlength=self.tasks).astype(np.float64)
        return sums


def by_task(value: Floats, n: Floats) -> Spread:
    """The mean over items as one cell, with whole tasks as the units: tasks like these.

    `value` is the mean of each task, `n` its weight.

    Example:
        >>> spread = by_task(np.array([0.1, 0.3]), np.array([50.0, 50.0]))
        >>> round(float(spread.mean[0]), 3), float(spread.freedom[0])
        (0.2, 1.0)
    """
    tasks, sums = np.array([float(len(n))]), value * n
    columns = (n, n**2, n**3, sums, sums**2, sums**3, sums * n, sums * n**2, sums**2 * n)
    return Moments(tasks, *(np.array([column.sum()]) for column in columns)).spread()
