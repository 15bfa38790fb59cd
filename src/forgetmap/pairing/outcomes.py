"""Outcome patterns as the join finds them: how many items of a task did the same in both logs."""

from __future__ import annotations

from collections.abc import Iterable
from operator import add
from typing import Any, NamedTuple

import numpy as np

from forgetmap.stats.patterns import Moment, Patterns

SCALE = 10**12
"""Sums of fractions are taken over whole multiples of 1e-12, so that row order cannot matter."""


class Pattern(NamedTuple):
    """Items of one task that did the same in both logs; runs are None where a log lacks them."""

    task: str
    k: int | None
    bucket: int
    runs_before: int | None
    right_before: int | None
    runs_after: int | None
    right_after: int | None
    items: int
    copies_before: Any
    """Duplicated rows; a Decimal on Spark, as the next."""
    copies_after: Any
    unscored_before: Any
    """Runs without a score; not counted where there are no repeats."""
    unscored_after: Any
    other_k: Any
    """Items that have another number of options in the second log."""
    moments: tuple[Any, ...]
    """As in `Patterns`, the sums in whole multiples of 1 / SCALE; None for a sum of nothing."""

    def of_side(self, name: str) -> tuple[int | None, int, int]:
        """Of one side: the runs of each item, and in all its unscored runs and duplicated rows."""
        if name == "before":
            return self.runs_before, int(self.unscored_before), int(self.copies_before)
        return self.runs_after, int(self.unscored_after), int(self.copies_after)


def in_order(pattern: Pattern) -> list[tuple[bool, Any]]:
    """The order of patterns, the same whatever the order of rows."""
    return [(value is not None, value) for value in pattern[:7]]


def merged(patterns: Iterable[Pattern]) -> list[Pattern]:
    """Patterns without moments, in order and each once: what is counted of the same adds up."""
    found: dict[tuple[Any, ...], Pattern] = {}
    for each in patterns:
        known = found.get(each[:7])
        if known is not None:
            counts = map(add, known[7:13], each[7:13])
            each = Pattern._make((*each[:7], *counts, each.moments))
        found[each[:7]] = each
    return sorted(found.values(), key=in_order)


def as_arrays(scored: list[Pattern]) -> Patterns:
    """The patterns as the statistics take them."""
    names, options, *counts = zip(*(each[:8] for each in scored), strict=True)
    sums = [[0 if value is None else value for value in each.moments] for each in scored]
    moments = np.array(sums, dtype=np.float64)
    moments[:, Moment.P :] /= SCALE
    k = np.array([np.inf if k is None else k for k in options])
    columns = [np.array(column, dtype=np.float64) for column in counts]
    return Patterns._make((np.array(names), k, *columns, moments))
