"""The scale of scores: right and wrong, a share, marks from 1 to 5, a percentage.

What counts as right hangs on it. A mark of 2 out of 5 is above one half, and not right.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from forgetmap.base.database import quoted
from forgetmap.base.words import some
from forgetmap.samples.table import THRESHOLD


class Scale(NamedTuple):
    """From where to where scores run."""

    low: float
    high: float
    known: bool = True
    """Whether the scale could be told from the scores."""

    @property
    def middle(self) -> float:
        """The score from which an answer counts as right, unless the user says otherwise."""
        return (self.low + self.high) / 2 if self.known else THRESHOLD

    @property
    def is_unit(self) -> bool:
        """Whether scores run from 0 to 1, as most do."""
        return self == UNIT


UNIT = Scale(0, 1)
_MARKS, _MOST_MARKS, _PERCENT = 5, 10, 100
_BONUS = 2
"""Fractions up to it may be shares with a bonus, whose scale nobody can tell."""


def find_scale(low: float, high: float, whole: bool) -> Scale:
    """The scale of scores between two ends; `whole` if all of them are whole numbers.

    Example:
        >>> find_scale(0, 1, True), find_scale(2, 5, True), find_scale(12.5, 80, False)
        (Scale(low=0, high=1, known=True), Scale(low=1, high=5, known=True), \
Scale(low=0, high=100, known=True))
        >>> find_scale(-3.2, 7.1, False).known
        False
    """
    if low >= 0 and high <= 1:
        return UNIT
    if low >= -1 and high <= 1:
        return Scale(-1, 1)
    if low < 0 or high > _PERCENT or (not whole and high <= _BONUS):
        return Scale(low, high, known=False)
    if high > _MOST_MARKS:
        return Scale(0, _PERCENT)
    top = math.ceil(high) if high <= _MARKS else _MOST_MARKS
    return Scale(1 if low >= 1 else 0, top)


def scale_notes(scales: Mapping[str, Scale], threshold: float | None) -> Iterator[str]:
    """What to say of the tasks whose scores do not run from 0 to 1."""
    by_scale: dict[Scale, list[str]] = {}
    for task, scale in scales.items():
        if not scale.is_unit:
            by_scale.setdefault(scale, []).append(task)
    for scale, tasks in by_scale.items():
        at = scale.middle if threshold is None else threshold
        run = f"scores run from {scale.low:g} to {scale.high:g}"
        guess = "" if scale.known else ", a scale that forgetmap does not know"
        yield (
            f"{run} ({some(tasks)}){guess}; from {at:g} on an answer counts as right "
            "(--threshold sets it)"
        )


def limit_sql(thresholds: Mapping[str, float]) -> str:
    """SQL for the threshold of a row's task; that of the others stands under the name ''.

    Example:
        >>> limit_sql({"": 0.5}), limit_sql({"": 0.5, "essays": 3.0})
        ('0.5', "CASE task WHEN 'essays' THEN 3.0 ELSE 0.5 END")
    """
    own = [f"WHEN {quoted(task)} THEN {float(at)!r}" for task, at in thresholds.items() if task]
    rest = repr(float(thresholds[""]))
    return f"CASE task {' '.join(own)} ELSE {rest} END" if own else rest
