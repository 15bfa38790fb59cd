"""What was lost beside reshuffled guessing, item by item: one kind of training beside another.

A model that does not know an answer still prefers an option, and a training changes which. The
wrong options tell how much of a loss that can explain (`guessing_churn`). What is left is sure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq

from forgetmap.stats.estimate import Estimate
from forgetmap.stats.patterns import guessing_churn
from forgetmap.stats.slopes import mean_over
from forgetmap.study.items import variance_of_mean

COLUMNS = ("task", "item", "option_probabilities", "right_option")
FEWEST = 3
"""Options without which nothing tells what was guessed."""
Item = tuple[str, int]


class Options(NamedTuple):
    """What a model said of an item."""

    probabilities: tuple[float, ...]
    right: int


@lru_cache(maxsize=256)
def read_options(log: Path) -> dict[Item, Options]:
    """The options of each item of a log."""
    rows = pq.read_table(log, columns=list(COLUMNS)).to_pylist()
    return {
        (row["task"], row["item"]): Options(
            tuple(row["option_probabilities"]), int(row["right_option"])
        )
        for row in rows
        if row["option_probabilities"] is not None
    }


def sure_losses(before: Path, after: Path, new: Collection[str]) -> dict[Item, float]:
    """How far each old item fell, less what reshuffled guessing can explain."""
    was, now = read_options(before), read_options(after)
    return {
        item: _sure_loss(was[item], told)
        for item, told in now.items()
        if item in was and item[0] not in new
    }


def _sure_loss(was: Options, now: Options) -> float:
    fall = max(was.probabilities[was.right] - now.probabilities[now.right], 0.0)
    if len(was.probabilities) < FEWEST:
        return fall
    before, after = (np.array([side.probabilities]) for side in (was, now))
    return fall - float(guessing_churn(before, after, np.array([was.right]))[0])


def surely_more(
    one: Sequence[Mapping[Item, float]], other: Sequence[Mapping[Item, float]]
) -> Estimate:
    """How much more was surely lost in some trainings than in others, on the items of all.

    The interval is over trainings and items, as that of `forgetmap.study` is.

    Example:
        >>> lost, kept = {("a", 1): 0.5, ("a", 2): 0.1}, {("a", 1): 0.0, ("a", 2): 0.0}
        >>> found = surely_more([lost, lost], [kept, kept])
        >>> found.value, found.low < 0 < found.high
        (0.3, True)
    """
    shared = sorted(set.intersection(*(set(each) for each in (*one, *other))))
    more = np.array(
        [[a[item] - b[item] for item in shared] for a, b in zip(one, other, strict=True)]
    )
    variance, units = variance_of_mean(more.mean(axis=0), None)
    found = mean_over(more.mean(axis=1), variance, max(units - 1, 1))
    return found.interval or Estimate(value=found.value, low=found.value, high=found.value)
