"""The map as a table for other programs: CSV for spreadsheets, LaTeX for papers."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from typing import Any

from forgetmap.base.words import spreadsheet_safe
from forgetmap.map.result import ESTIMATORS, Cell, ForgettingMap, PublishedRow
from forgetmap.stats.estimate import Estimate


def cells(result: ForgettingMap) -> Iterator[tuple[str, str, Cell]]:
    """Every cell of the map as (level, name, cell), from the whole to the parts."""
    yield "total", "items", result.total
    yield "total", "categories", result.macro
    for name, cell in result.categories.items():
        yield "category", name, cell
    for name, cell in result.tasks.items():
        yield "task", name, cell


def to_csv(result: ForgettingMap) -> str:
    """All cells with every estimator, interval, test and verdict; shares as fractions."""
    out = io.StringIO()
    writer: csv.DictWriter[str] | None = None
    for level, name, cell in cells(result):
        row = {"level": level, "name": spreadsheet_safe(name), **_flat(cell)}
        if writer is None:
            writer = csv.DictWriter(out, row.keys(), lineterminator="\n")
            writer.writeheader()
        writer.writerow(row)
    return out.getvalue()


def _flat(cell: Cell) -> dict[str, Any]:
    row: dict[str, Any] = {
        "n": cell.n,
        "repeats_before": cell.repeats_before,
        "repeats_after": cell.repeats_after,
        "k": " ".join(f"{k}:{n}" for k, n in (cell.k or {}).items()),
        "accuracy_before": cell.accuracy_before,
        "accuracy_after": cell.accuracy_after,
        **_spread("change", cell.change),
    }
    for name in ("forgetting", "backward_transfer"):
        side = getattr(cell, name)
        for estimator in ESTIMATORS:
            row |= _spread(f"{name}_{estimator}", side.get(estimator))
        row[f"{name}_ceiling"] = side.ceiling
    influence = cell.influence
    return row | {
        "noise_floor": cell.noise_floor,
        "headline": cell.headline,
        "p_value": cell.p_value,
        "p_adjusted": cell.p_adjusted,
        "mde": cell.mde,
        "verdict_net": cell.verdict.net,
        "verdict_forgetting": cell.verdict.forgetting,
        "influence_task": spreadsheet_safe(influence.task) if influence else None,
        "influence_change": influence.change if influence else None,
    }


def _spread(name: str, estimate: Estimate | None) -> dict[str, float | None]:
    ends = {"": "value", "_low": "low", "_high": "high"}
    return {f"{name}{tail}": getattr(estimate, end, None) for tail, end in ends.items()}


def to_latex(result: ForgettingMap) -> str:
    r"""The paper's table layout: value, spread and ceiling, in percent.

    The spread is half of the 95 % interval; with `--compat post-forget` it is the published one,
    the sample standard deviation over seeds. Needs the LaTeX package booktabs.
    """
    rows = _published_lines(result.compat.rows) if result.compat else _map_lines(result)
    spread = "standard deviation over seeds" if result.compat else r"half of the 95\,\% interval"
    estimator = "paper" if result.compat else result.settings.headline
    before, after = _escape(result.before.name), _escape(result.after.name)
    return "\n".join(
        [
            rf"% {before} -> {after}; estimator: {estimator}; plus-minus: {spread}",
            r"\begin{tabular}{lrr}",
            r"\toprule",
            r"Category & Forgetting & Backward transfer \\",
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
    named = [*(result.categories or result.tasks).items(), ("Total", result.total)]
    return [
        _line(
            name,
            (cell.forgot.value, _half(cell.forgot), cell.forgetting.ceiling),
            (cell.gained.value, _half(cell.gained), cell.backward_transfer.ceiling),
        )
        for name, cell in named
    ]


def _half(estimate: Estimate) -> float:
    return (estimate.high - estimate.low) / 2


def _published_lines(rows: list[PublishedRow]) -> list[str]:
    by_name: dict[str, list[PublishedRow]] = {}
    for row in rows:
        by_name.setdefault(row.category, []).append(row)
    return [
        _line(name, *((row.value, row.std, row.ceiling) for row in pair))
        for name, pair in by_name.items()
    ]


def _line(name: str, *sides: tuple[float, float | None, float | None]) -> str:
    parts = []
    for value, spread, ceiling in sides:
        text = f"{100 * value:.1f}"
        text += f" $\\pm$ {100 * spread:.1f}" if spread is not None else ""
        text += f" ({100 * ceiling:.1f})" if ceiling is not None else ""
        parts.append(text)
    return " & ".join([_escape(name), *parts]) + r" \\"


def _escape(text: str) -> str:
    text = re.sub(r"[\x00-\x1f\x7f]", "", text).replace("\\", r"\textbackslash ")
    return (
        re.sub(r"([&%$#_{}])", r"\\\1", text)
        .replace("~", r"\textasciitilde ")
        .replace("^", r"\^{}")
    )
