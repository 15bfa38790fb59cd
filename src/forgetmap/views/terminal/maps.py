"""The map for people at a terminal, 100 columns wide."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from forgetmap.base.words import clean, percent
from forgetmap.map.result import HEADLINE_MEANING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from forgetmap.gate.judgement import GateResult
    from forgetmap.map.result import Cell, Compat, ForgettingMap, Headline
    from forgetmap.readers.summary import LogSummary
    from forgetmap.stats.estimate import Estimate

MOST_TASKS = 12
"""Tasks listed where categories give the overview; the files have all."""
_COLOURS = {
    "forgot": "red",
    "worse": "red",
    "kept": "green",
    "better": "green",
    "equivalent": "green",
    "undecided": "yellow",
}


def print_map(result: ForgettingMap, out: Console, gates: list[GateResult] | None = None) -> None:
    """Print the map: the headline sentence, how far it can be trusted, then the cells."""
    verdict = result.total.verdict
    out.print(Text(result.headline(), style=f"bold {_COLOURS[verdict.forgetting]}"))
    for line in _trust(result):
        out.print(Text(line))
    for gate in gates or []:
        mark, style = ("held", "green") if gate.holds else ("BROKEN", "bold red")
        out.print(Text(f"gate {gate.limit}: {mark}; {gate.reason}", style=style))
    out.print()
    groups = {"all items": result.total}
    if result.categories:
        groups["mean of categories"] = result.macro
    shown, marks = _tasks(result), _marks(result)
    parts = {"total": groups, "category": result.categories, "task": shown}
    for title, cells in parts.items():
        if cells:
            out.print(_table(title, cells, marks, out.width))
            out.print()
    if result.compat:
        out.print(_compat(result.compat))
        out.print()
    if hidden := len(result.tasks) - len(shown):
        out.print(Text(f"{hidden} tasks that forgot less: --csv, --json and --report list all"))
    for text in result.warnings:
        out.print(Text(f"note: {clean(text)}", style="dim"))
    counted = "; ".join(f"{mark}{name} = {HEADLINE_MEANING[name]}" for name, mark in marks.items())
    out.print(
        Text(
            f"forgot, gained: {counted}; 95 % intervals in brackets. "
            "raw: 1->0 / 0->1 flips. p: paired test of the net change, adjusted. "
            "verdict: forgetting, net change; ? is undecided. "
            "* hinges on one task: leaving it out would change the value by more than half.",
            style="dim",
        )
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
        f"confound: {clean(found.setting)} differs: {_setting(found.before)} / "
        f"{_setting(found.after)}"
        for found in result.confounds
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


def _table(
    title: str, cells: Mapping[str, Cell], marks: Mapping[Headline, str], width: int
) -> Table:
    names = ("n", "accuracy %", "forgot %", "gained %", "raw %", "p", "verdict")
    rows = [(clean(name, 60), _row(cell, marks)) for name, cell in cells.items()]
    widths = [
        max(len(name), *(len(row[place]) for _, row in rows)) for place, name in enumerate(names)
    ]
    room = max(12, width - sum(widths) - len(widths) - 1)  # only names give way
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column(title, no_wrap=True, overflow="ellipsis", max_width=room)
    for name, widest in zip(names, widths, strict=True):
        side = "left" if name == "verdict" else "right"
        table.add_column(name, justify=side, no_wrap=True, min_width=widest)  # type: ignore[arg-type]
    for name, row in rows:
        table.add_row(Text(name), *row)
    return table


def _row(cell: Cell, marks: Mapping[Headline, str]) -> list[Text]:
    mark = marks[cell.headline] + ("*" if _hinges(cell) else "")
    raw = cell.forgetting.raw.value, cell.backward_transfer.raw.value
    return [
        Text(f"{cell.n:,}"),
        Text(f"{_points(cell.accuracy_before)}→{_points(cell.accuracy_after)}"),
        Text(_interval(cell.forgot) + mark),
        Text(_interval(cell.gained)),
        Text("/".join(_points(share) for share in raw)),
        Text(f"{cell.p_adjusted:.3f}".lstrip("0") if cell.p_adjusted >= 0.001 else "<.001"),
        _verdict(cell),
    ]


def _hinges(cell: Cell) -> bool:
    """Leaving one task out would halve the value, or more than that."""
    return cell.influence is not None and abs(cell.influence.change) > abs(cell.forgot.value) / 2


def _points(share: float) -> str:
    return percent(share).removesuffix(" %")


def _interval(found: Estimate) -> str:
    return f"{_points(found.value)} ({_points(found.low)}, {_points(found.high)})"


def _verdict(cell: Cell) -> Text:
    text = Text()
    for index, word in enumerate((cell.verdict.forgetting, cell.verdict.net)):
        text.append(", " if index else "")
        text.append("?" if word == "undecided" else word, style=_COLOURS[word])
    return text


def _compat(compat: Compat) -> Table:
    table = Table(
        box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", title_justify="left",
        title=f"as published ({compat.protocol}, {compat.seeds} seeds): value ± sd (ceiling), %",
    )  # fmt: skip
    for name in ("category", "forgetting", "backward transfer"):
        table.add_column(name, justify="left" if name == "category" else "right")
    by_name: dict[str, list[str]] = {}
    for row in compat.rows:
        spread = "" if row.std is None else f" ± {_points(row.std)}"
        text = f"{_points(row.value)}{spread} ({_points(row.ceiling)})"
        by_name.setdefault(row.category, []).append(text)
    for name, values in by_name.items():
        table.add_row(Text(clean(name)), *values)
    return table


def print_log(summary: LogSummary, out: Console) -> None:
    """Print what a log holds."""
    version = f" {clean(summary.version)}" if summary.version else ""
    out.print(Text(f"{clean(summary.path)}: {clean(summary.harness)}{version}", style="bold"))
    for model in summary.models:
        out.print(Text(f"model {clean(model.name)}"))
        for name, value in model.settings.items():
            out.print(Text(f"  {clean(name)}: {clean(value, 80)}", style="dim"))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("model", "task", "metric", "items", "repeats", "score", "k", "statuses"):
        right = name in ("items", "repeats", "score")
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    for row in summary.tasks:
        table.add_row(
            Text(clean(row.model, 40)),
            Text(clean(row.task, 60)),
            Text(clean(row.metric)),
            f"{row.items:,}",
            str(row.repeats),
            "" if row.mean_score is None else f"{row.mean_score:.3f}",
            row.k or "open",
            Text(", ".join(f"{clean(name, 40)} {count}" for name, count in row.statuses.items())),
        )
    out.print(table)
    for text in summary.warnings:
        out.print(Text(f"note: {clean(text)}", style="yellow"))
