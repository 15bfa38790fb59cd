"""The map as a table for other programs: CSV for spreadsheets, LaTeX for papers."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from typing import Any

from forgetmap.base.words import spreadsheet_safe
from forgetmap.map.result import Cell, ForgettingMap, PublishedRow
from forgetmap.stats.estimate import BASIS_MEANING, Estimate, Range
from forgetmap.views import words


def cells(result: ForgettingMap) -> Iterator[tuple[str, str, Cell]]:
    """Every cell of the map as (level, name, cell), from the whole to the parts."""
    yield "total", "items", result.total
    if result.new is not None:
        yield "total", "old", result.old
        yield "total", "new", result.new
    yield "total", "categories", result.macro
    for name, cell in result.categories.items():
        yield "category", name, cell
    for name, cell in result.tasks.items():
        yield "task", name, cell


def to_csv(result: ForgettingMap) -> str:
    """All cells with every number, interval, test and verdict; shares as fractions."""
    out = io.StringIO()
    writer: csv.DictWriter[str] | None = None
    for level, name, cell in cells(result):
        row = {
            "level": level,
            "name": spreadsheet_safe(name),
            "new": _is_new(result, level, name),
            **_flat(cell),
        }
        if writer is None:
            writer = csv.DictWriter(out, row.keys(), lineterminator="\n")
            writer.writeheader()
        writer.writerow(row)
    return out.getvalue()


def _is_new(result: ForgettingMap, level: str, name: str) -> bool:
    """Whether a cell is about tasks that the training was meant to teach, and no others."""
    if level == "total":
        return name == "new"
    return level == "task" and name in result.settings.new


def _flat(cell: Cell) -> dict[str, Any]:
    paper, like = cell.paper, cell.like_these
    influence = cell.influence
    return {
        "n": cell.n,
        "repeats_before": cell.repeats_before,
        "repeats_after": cell.repeats_after,
        "k": " ".join(f"{k}:{n}" for k, n in (cell.k or {}).items()),
        "accuracy_before": cell.accuracy_before,
        "accuracy_after": cell.accuracy_after,
        **_spread("accuracy_change", cell.change),
        **_ends("lost", cell.lost),
        **_ends("gained", cell.gained),
        **_spread("like_these_lost", like.lost if like else None),
        **_spread("like_these_gained", like.gained if like else None),
        **_spread("raw_lost", cell.raw.lost),
        **_spread("raw_gained", cell.raw.gained),
        **_spread("paper_lost", paper.lost if paper else None),
        **_spread("paper_gained", paper.gained if paper else None),
        "noise_floor": cell.noise_floor,
        "p_value": cell.p_value,
        "p_adjusted": cell.p_adjusted,
        "mde": cell.mde,
        "verdict_net": cell.verdict.net,
        "verdict_forgetting": cell.verdict.forgetting,
        "would_decide": words.would_decide(cell),
        "influence_task": spreadsheet_safe(influence.task) if influence else None,
        "influence_change": influence.change if influence else None,
    }


def _ends(name: str, found: Range) -> dict[str, float | str | None]:
    return {
        f"{name}_low_end": found.low_end,
        f"{name}_high_end": found.high_end,
        f"{name}_low": found.low,
        f"{name}_high": found.high,
        **_spread(f"{name}_of_known", found.of_known),
        f"{name}_basis": found.basis,
    }


def _spread(name: str, estimate: Estimate | None) -> dict[str, float | None]:
    ends = {"": "value", "_low": "low", "_high": "high"}
    return {f"{name}{tail}": getattr(estimate, end, None) for tail, end in ends.items()}


def to_latex(result: ForgettingMap) -> str:
    r"""The paper's table layout with what was lost and gained beside it, in percent.

    Forgetting and backward transfer are the paper's, raw flips where there are no options; the
    plus-minus is half of their 95 % interval. With `--compat post-forget` they are the published
    ones: mean, sample standard deviation over seeds, and ceiling. Needs the LaTeX package booktabs.
    """
    rows = _published_lines(result) if result.compat else _map_lines(result)
    spread = "standard deviation over seeds" if result.compat else r"half of the 95\,\% interval"
    before, after = latex_escape(result.before.name), latex_escape(result.after.name)
    basis = BASIS_MEANING[result.total.lost.basis]
    return "\n".join(
        [
            rf"% {before} -> {after}; plus-minus: {spread}",
            rf"% lost and gained, with 95\,\% intervals: {basis}",
            r"% forgetting, backward transfer: the paper's; dagger: raw flips, without options",
            r"\begin{tabular}{lrrrr}",
            r"\toprule",
            r"Category & Lost & Gained & Forgetting & Backward transfer \\",
            r"\midrule",
            *rows[:-1],
            r"\midrule",
            rows[-1],
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )


def _map_lines(result: ForgettingMap) -> list[str]:
    names = words.marked_categories(result) or words.marked_tasks(result)
    cells = result.categories or result.tasks
    named = [(names[name], cell) for name, cell in cells.items()]
    if words.is_split(result):
        named.append(("Old", result.old))
    lines = []
    for name, cell in [*named, ("Total", result.total)]:
        both, sign = (cell.paper, "") if cell.paper else (cell.raw, r"$^\dagger$")
        sides = [_published(side.value, _half(side)) + sign for side in (both.lost, both.gained)]
        lines.append(_line(name, cell, *sides))
    return lines


def _half(estimate: Estimate) -> float:
    return (estimate.high - estimate.low) / 2


def _published_lines(result: ForgettingMap) -> list[str]:
    by_name: dict[str, list[PublishedRow]] = {}
    for row in result.compat.rows if result.compat else ():
        by_name.setdefault(row.category, []).append(row)
    cells = {**result.categories, "Total": result.macro}
    return [
        _line(name, cells.get(name), *(_published(row.value, row.std, row.ceiling) for row in pair))
        for name, pair in by_name.items()
    ]


def _line(name: str, cell: Cell | None, *published: str) -> str:
    ranges = ("--", "--")
    if cell is not None:
        ranges = (latex_range(cell.lost), latex_range(cell.gained))
    return " & ".join([latex_escape(name), *ranges, *published]) + r" \\"


def latex_range(found: Range) -> str:
    """The two ends in percent with the interval."""
    ends = words.ends(found).replace("–", "--")
    return f"{ends} [{words.points(found.low)}, {words.points(found.high)}]"


def _published(value: float, spread: float | None, ceiling: float | None = None) -> str:
    text = f"{100 * value:.1f}"
    text += f" $\\pm$ {100 * spread:.1f}" if spread is not None else ""
    return text + (f" ({100 * ceiling:.1f})" if ceiling is not None else "")


def latex_escape(text: str) -> str:
    """Text that LaTeX prints as it is."""
    text = re.sub(r"[\x00-\x1f\x7f]", "", text).replace("\\", r"\textbackslash ")
    return (
        re.sub(r"([&%$#_{}])", r"\\\1", text)
        .replace("~", r"\textasciitilde ")
        .replace("^", r"\^{}")
    )
