"""Cells as short rows of numbers, for pages that hold thousands of them."""

from __future__ import annotations

from typing import Any

from forgetmap.map.result import Cell
from forgetmap.stats.estimate import Range
from forgetmap.study.result import Share, StudyCell

CELL = (
    *("n", "before", "after", "change"),
    *("lost_low_end", "lost_high_end", "lost_low", "lost_high", "lost_deviation"),
    *("gained_low_end", "gained_high_end", "gained_low", "gained_high", "gained_deviation"),
    *("basis", "forgetting", "net", "marks"),
)
"""The places of a cell; the last four are words. `cellOf` of the pages reads them."""
_DIGITS = 5


def cell_row(cell: Cell | StudyCell | None) -> list[Any] | None:
    """A cell in the order of `CELL`. What is not known is null, and the page says so."""
    if cell is None:
        return None
    verdict = cell.verdict
    return [
        cell.n,
        *map(short, (cell.accuracy_before, cell.accuracy_after, cell.change.value)),
        *_share(cell.lost),
        *_share(cell.gained),
        cell.lost.basis,
        verdict.forgetting if verdict else None,
        verdict.net if verdict else None,
        (isinstance(cell, StudyCell) and cell.marks) or None,
    ]


def _share(found: Range | Share) -> list[float | None]:
    ends = found.low_end, found.high_end, found.low, found.high
    deviation = found.deviation if isinstance(found, Share) else None
    return [short(value) for value in (*ends, deviation)]


def short(value: float | None) -> float | None:
    """A number without digits that nobody sees."""
    return None if value is None else round(value, _DIGITS)
