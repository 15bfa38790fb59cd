"""The map for people at a terminal, 100 columns wide."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from forgetmap.base.words import clean, percent
from forgetmap.gate.judgement import GateResult
from forgetmap.map.result import HEADLINE_MEANING, Cell, Compat, ForgettingMap, Headline
from forgetmap.readers.summary import LogSummary
from forgetmap.views.terminal.console import (
    Row,
    make_table,
    say,
    say_notes,
    say_table,
    verdict_style,
    verdict_text,
)
from forgetmap.views.words import p_value, points, short_interval

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

MOST_TASKS = 12
"""Tasks listed where categories give the overview; the files have all."""


def print_map(result: ForgettingMap, out: Console, gates: list[GateResult] | None = None) -> None:
    """Print the map: the headline sentence, how far it can be trusted, then the cells."""
    verdict = result.total.verdict
    say(out, result.headline(), f"bold {verdict_style(verdict.forgetting)}")
    for line in _trust(result):
        say(out, line)
    for gate in gates or []:
        mark, style = ("held", "green") if gate.holds else ("BROKEN", "bold red")
        say(out, f"gate {gate.limit}: {mark}; {gate.reason}", style)
    out.print()
    groups = {"all items": result.total}
    if result.categories:
        groups["mean of categories"] = result.macro
    shown, marks = _tasks(result), _marks(result)
    parts = {"total": groups, "category": result.categories, "task": shown}
    for title, cells in parts.items():
        if cells:
            say_table(out, _cells(title, cells, marks, out.width))
    if result.compat:
        say_table(out, _compat(result.compat))
    if hidden := len(result.tasks) - len(shown):
        say(out, f"{hidden} tasks that forgot less: --csv, --json and --report list all")
    say_notes(out, result.warnings)
    counted = "; ".join(f"{mark}{name} = {HEADLINE_MEANING[name]}" for name, mark in marks.items())
    say(
        out,
        f"forgot, gained: {counted}; 95 % intervals in brackets. "
        "raw: 1->0 / 0->1 flips. p: paired test of the net change, adjusted. "
        "verdict: forgetting, net change; ? is undecided. "
        "* hinges on one task: leaving it out would change the value by more than half.",
        "dim",
    )


def _tasks(result: ForgettingMap) -> dict[str, Cell]:
    """All tasks; where they are many and categories sum them up, those that forgot most."""
    if not result.categories or len(result.tasks) <= MOST_TASKS:
        return dict(result.tasks)
    by_loss = sorted(result.tasks.items(), key=lambda pair: -pair[1].forgot.value)
    return dict(by_loss[:MOST_TASKS])


def _marks(result: ForgettingMap) -> dict[Headline, str]:
    """Each estimator in use and its mark; that of the total needs none."""
    usual = result.settings.headline
    cells = [result.macro, *result.categories.values(), *result.tasks.values()]
    others = sorted({cell.headline for cell in cells} - {usual})
    return {usual: "", **dict(zip(others, "†‡", strict=False))}


def _trust(result: ForgettingMap) -> list[str]:
    cell, covered = result.total, result.coverage
    lines = [
        f"{clean(result.before.name, 40)} -> {clean(result.after.name, 40)}",
        f"{covered.matched:,} items in {len(result.tasks)} tasks, {result.before.runs} and "
        f"{result.after.runs} runs, paired by {covered.identity}",
    ]
    missing = {
        "only before": covered.only_before,
        "only after": covered.only_after,
        "conflicting": covered.conflicts,
        "unscored": covered.unscored,
        "duplicate rows": covered.duplicates,
    }
    if any(missing.values()):
        listed = ", ".join(f"{count:,} {name}" for name, count in missing.items() if count)
        lines.append(f"not compared: {listed}")
    low, high = cell.forgetting.raw.low, cell.forgetting.raw.high
    raw = f"raw flips 1->0 {percent(cell.forgetting.raw.value)} ({percent(low)} to {percent(high)})"
    if cell.forgetting.guessing_bounds and cell.noise_floor is None:
        low, high = cell.forgetting.guessing_bounds
        raw += f"; truly lost, given guessing, {percent(low)} to {percent(high)}"
    lines.append(raw)
    lines.append(f"smallest net change this could have shown: {percent(cell.mde)}")
    lines += _why(cell)
    lines += [
        f"confound: {clean(confound.setting)} differs: {_setting(confound.before)} / "
        f"{_setting(confound.after)}"
        for confound in result.confounds
    ]
    return lines


def _why(cell: Cell) -> list[str]:
    """Why items were lost, where the text was read."""
    lines = []
    if cell.causes and cell.without:
        listed = ", ".join(
            f"{clean(name, 40)} {count:,} (raw {percent(cell.without[name].value)} without it)"
            for name, count in cell.causes.items()
            if name in cell.without
        )
        lines.append(f"lost by cause: {listed}")
    if cell.churn:
        lines.append(f"churn: {cell.churn:,} items went from one wrong answer to another")
    return lines


def _setting(value: object) -> str:
    """A setting on one line; of a hash the beginning is enough."""
    text = clean(value, 60)
    return f"{text[:10]}…" if re.fullmatch(r"[0-9a-f]{32,}…?", text) else text


def _cells(
    title: str, cells: Mapping[str, Cell], marks: Mapping[Headline, str], width: int
) -> Table:
    names = (title, "n", "accuracy %", "forgot %", "gained %", "raw %", "p", "verdict")
    rows = (_row(clean(name, 60), cell, marks) for name, cell in cells.items())
    return make_table(names, rows, left=("verdict",), width=width, gap=1)


def _row(name: str, cell: Cell, marks: Mapping[Headline, str]) -> Row:
    mark = marks[cell.headline] + ("*" if _hinges(cell) else "")
    return (
        name,
        f"{cell.n:,}",
        f"{points(cell.accuracy_before)}→{points(cell.accuracy_after)}",
        short_interval(cell.forgot) + mark,
        short_interval(cell.gained),
        f"{points(cell.forgetting.raw.value)}/{points(cell.backward_transfer.raw.value)}",
        p_value(cell.p_adjusted),
        verdict_text(cell.verdict.forgetting, cell.verdict.net),
    )


def _hinges(cell: Cell) -> bool:
    """Leaving one task out would halve the value, or more than that."""
    return cell.influence is not None and abs(cell.influence.change) > abs(cell.forgot.value) / 2


def _compat(compat: Compat) -> Table:
    by_name: dict[str, list[str]] = {}
    for row in compat.rows:
        spread = "" if row.std is None else f" ± {points(row.std)}"
        text = f"{points(row.value)}{spread} ({points(row.ceiling)})"
        by_name.setdefault(row.category, []).append(text)
    rows = ((clean(name), *values) for name, values in by_name.items())
    table = make_table(("category", "forgetting", "backward transfer"), rows)
    table.title = f"as published ({compat.protocol}, {compat.seeds} seeds): value ± sd (ceiling), %"
    table.title_justify = "left"
    return table


def print_log(summary: LogSummary, out: Console) -> None:
    """Print what a log holds."""
    version = f" {clean(summary.version)}" if summary.version else ""
    say(out, f"{clean(summary.path)}: {clean(summary.harness)}{version}", "bold")
    for model in summary.models:
        say(out, f"model {clean(model.name)}")
        for name, value in model.settings.items():
            say(out, f"  {clean(name)}: {clean(value, 80)}", "dim")
    names = ("model", "task", "metric", "items", "repeats", "score", "k", "statuses")
    rows = (
        (
            clean(row.model, 40),
            clean(row.task, 60),
            clean(row.metric),
            f"{row.items:,}",
            str(row.repeats),
            "" if row.mean_score is None else f"{row.mean_score:.3f}",
            row.k or "open",
            ", ".join(f"{clean(name, 40)} {count}" for name, count in row.statuses.items()),
        )
        for row in summary.tasks
    )
    out.print(make_table(names, rows, left=("task", "metric", "k", "statuses")))
    say_notes(out, summary.warnings, "yellow")
