"""Scores that are more than right or wrong: how far they fell and rose, item by item.

The mean of the falls and the mean of the rises are kept apart: a rise elsewhere does not make up
for a fall. The noise of the runs is in both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from forgetmap.base.model import Frozen
from forgetmap.pairing.pairs import ScoreSums
from forgetmap.stats.estimate import Estimate

_Z = 1.959964


class ScoreChange(Frozen):
    """The scores of some items before and after, on their own scale."""

    n: int
    low: float
    """Where the scale begins."""
    high: float
    before: float
    """Mean score."""
    after: float
    lost: Estimate
    """Mean fall over all items; an item that rose fell by 0."""
    gained: Estimate
    """Mean rise."""


def score_change(sums: Mapping[str, ScoreSums], tasks: Iterable[str]) -> ScoreChange | None:
    """What became of the scores of some tasks.

    None where none is graded, where scales differ, or where scores are too large to be added.

    Example:
        >>> fell = ScoreSums(n=4, before=16.0, after=14.0, fall=3.0, fall_2=5.0, rise=1.0,
        ...                  rise_2=1.0, low=1, high=5)
        >>> change = score_change({"essays": fell}, ["essays"])
        >>> change.before, change.after, change.lost.value, change.gained.value
        (4.0, 3.5, 0.75, 0.25)
    """
    graded = [sums[task] for task in tasks if task in sums]
    if len({(each.low, each.high) for each in graded}) != 1:
        return None
    n, before, after, fall, fall_2, rise, rise_2 = map(
        sum, zip(*(each[:7] for each in graded), strict=True)
    )
    low, high = graded[0].low, graded[0].high
    if not all(map(math.isfinite, (before, after, fall, rise, high - low))):
        return None
    return ScoreChange(
        n=int(n),
        low=low,
        high=high,
        before=before / n,
        after=after / n,
        lost=_mean(fall, fall_2, n, high - low),
        gained=_mean(rise, rise_2, n, high - low),
    )


def _mean(total: float, squares: float, n: float, most: float) -> Estimate:
    """A mean with its 95 % interval, from sums over items that are taken to be independent."""
    mean = total / n
    if not math.isfinite(squares):  # of scores beyond 1e150: anything on the scale may be true
        return Estimate(value=mean, low=0.0, high=most)
    spread = math.sqrt(max(0.0, squares / n - mean**2) / max(1.0, n - 1))
    low, high = mean - _Z * spread, mean + _Z * spread
    return Estimate(value=mean, low=max(0.0, low), high=min(most, high))
