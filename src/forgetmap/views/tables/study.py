"""A study as tables: every cell of every pair as CSV, the leaderboard as LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

from forgetmap.base.words import spreadsheet_safe
from forgetmap.study.result import CapabilityCell, Share, StudiedPair, StudyCell, StudyResult
from forgetmap.views.tables.maps import latex_escape, latex_range
from forgetmap.views.words import points

_ENDS = ("low_end", "high_end", "low", "high", "basis")
_NUMBERS = (
    *("n", "accuracy_before", "accuracy_after", "change", "change_low", "change_high"),
    *(f"{name}_{end}" for name in ("lost", "gained") for end in _ENDS),
    *("p_value", "forgetting", "net"),
    *("lost_deviation", "gained_deviation", "ceiling_before", "ceiling_after", "marks"),
    *("relative", "relative_low", "relative_high", "withheld"),
)


def to_csv(result: StudyResult) -> str:
    """One row for every pair, its categories and its tasks; failed pairs with their reason."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    known = [pair.attributes for pair in result.pairs]
    known += [failure.attributes for failure in result.failures]
    attributes = list(dict.fromkeys(name for names in known for name in names))
    ranks = {row.name: row for row in result.answers.leaderboard}
    writer.writerow(
        [
            *("pair", "level", "name", "rank", "rank_best", "rank_worst", "pareto", "hidden"),
            *_NUMBERS,
            *(spreadsheet_safe(f"attribute.{name}") for name in attributes),
            *("before_log", "after_log", "failure"),
        ]
    )
    for pair in result.pairs:
        told = [pair.attributes.get(name) for name in attributes]
        logs = [pair.before_log, pair.after_log, None]
        row = ranks[pair.name]
        standing = [row.rank, row.best, row.worst, row.pareto, row.hidden]
        for level, name, cell in _cells(pair):
            place = standing if (level, name) == ("total", "old") else [None] * len(standing)
            _write(writer, [pair.name, level, name, *place, *_numbers(cell), *told, *logs])
        for level, name, found in _drifts(pair):
            numbers = [_drift(found).get(column) for column in _NUMBERS]
            empty = [None] * len(standing)
            _write(writer, [pair.name, level, name, *empty, *numbers, *told, *logs])
    for failure in result.failures:
        empty = [None] * (5 + len(_NUMBERS))
        told = [failure.attributes.get(name) for name in attributes]
        logs = [failure.before_log, failure.after_log, failure.reason]
        _write(writer, [failure.name, "failed", None, *empty, *told, *logs])
    return out.getvalue()


def _write(writer: Any, row: list[Any]) -> None:
    writer.writerow([spreadsheet_safe(value) for value in row])


def _cells(pair: StudiedPair) -> Iterator[tuple[str, str, StudyCell]]:
    yield "total", "old", pair.old
    if pair.new is not None:
        yield "total", "new", pair.new
    for name, cell in pair.categories.items():
        yield "category", name, cell
    for name, cell in pair.tasks.items():
        yield "task", name, cell


def _drifts(pair: StudiedPair) -> Iterator[tuple[str, str, CapabilityCell]]:
    if pair.drift is not None:
        for name, cell in pair.drift.groups.items():
            yield "capability group", name, cell
        for code, cell in pair.drift.capabilities.items():
            yield "capability", code, cell


def _drift(cell: CapabilityCell) -> dict[str, Any]:
    """A capability in the columns of a table; its verdict is one on the change."""
    row: dict[str, Any] = {"p_value": cell.p_value, "net": cell.verdict, "withheld": cell.withheld}
    for name, found in (("change", cell.change), ("relative", cell.relative)):
        if found is not None:
            row |= {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
    return row


def _numbers(cell: StudyCell) -> list[Any]:
    change = cell.change
    return [
        *(cell.n, cell.accuracy_before, cell.accuracy_after, change.value, change.low, change.high),
        *(getattr(share, end) for share in (cell.lost, cell.gained) for end in _ENDS),
        cell.p_value,
        *((cell.verdict.forgetting, cell.verdict.net) if cell.verdict else (None, None)),
        *(cell.lost.deviation, cell.gained.deviation, cell.ceiling_before, cell.ceiling_after),
        " ".join(cell.marks),
        *[None] * 4,
    ]


def to_latex(result: StudyResult) -> str:
    """The leaderboard, in percent. Needs the LaTeX package booktabs."""
    lines = [
        r"% rank: 1 lost least, in brackets the ranks that cannot be told apart",
        r"% lost and gained of the old skills, with 95\,\% intervals over items",
        r"\begin{tabular}{lrrrr}",
        r"\toprule",
        r"Pair & Rank & Lost & Gained & Net \\",
        r"\midrule",
    ]
    for row in result.answers.leaderboard:
        cell = result.pair(row.name).old
        rank = f"{row.rank} [{row.best}--{row.worst}]"
        net = f"${100 * cell.change.value:+.1f}$"
        cells = (
            latex_escape(row.name),
            rank,
            _latex_share(cell.lost),
            _latex_share(cell.gained),
            net,
        )
        lines.append(" & ".join(cells) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _latex_share(share: Share) -> str:
    """With its interval, or the deviation that was published in its place."""
    if share.range:
        return latex_range(share.range)
    spread = f" $\\pm$ {points(share.deviation)}" if share.deviation is not None else ""
    return points(share.value) + spread
