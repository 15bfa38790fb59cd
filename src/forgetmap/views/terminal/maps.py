"""The map for people at a terminal, of 80 columns or more."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from rich.text import Text

from forgetmap.base.words import clean, percent, some
from forgetmap.gate.judgement import GateResult
from forgetmap.map.cause_checks import how_sure
from forgetmap.map.graded import ScoreChange
from forgetmap.map.result import (
    FORGETTING_WORDS,
    NET_WORDS,
    Cell,
    Compat,
    ForgettingMap,
    LostSummary,
)
from forgetmap.readers.summary import LogSummary, above_chance
from forgetmap.samples.comparability import RowCounts
from forgetmap.stats.estimate import interval
from forgetmap.views import words
from forgetmap.views.terminal.console import (
    BARS,
    Row,
    Step,
    make_table,
    say,
    say_notes,
    say_table,
    two_bars,
    verdict_style,
    without_interval,
)
from forgetmap.views.words import p_value, points

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

MOST_TASKS = 12
"""Tasks listed where categories give the overview; the files have all."""


def print_map(
    result: ForgettingMap,
    out: Console,
    gates: list[GateResult] | None = None,
    *,
    verbose: bool = False,
) -> None:
    """Print the map: the headline sentence, how far it can be trusted, then the cells."""
    say(out, words.headline(result), f"bold {verdict_style(result.old.verdict.forgetting)}")
    say(out, words.verdict(result))
    say(out, words.basis(result))
    for line in _trust(result):
        say(out, line)
    for gate in gates or []:
        mark, style = ("held", "green") if gate.holds else ("BROKEN", "bold red")
        say(out, f"gate {gate.limit}: {mark}; {gate.reason}", style)
    out.print()
    shown = _tasks(result)
    columns: set[object] = set()
    for title, cells in _named(result, shown).items():
        if cells:
            table = _cells(title, cells, out.width)
            columns |= {column.header for column in table.columns}
            say_table(out, table)
    if result.compat:
        say_table(out, _compat(result.compat))
    graded = {name: cell.score for name, cell in shown.items() if cell.score}
    if graded:
        say_table(out, _scores(graded))
    if result.summary:
        _print_groups(result.summary, out)
    if hidden := len(result.tasks) - len(shown):
        say(out, f"{hidden} tasks that lost less: --csv, --json and --report list all")
    say_notes(out, result.warnings, verbose=verbose)
    say(out, _legend(columns), "dim")
    say(out, _next(result))


def _print_groups(summary: LostSummary, out: Console) -> None:
    """What was lost, in words: each group with its counts and examples."""
    sample = "" if summary.grouped == summary.lost else f", a sample of {summary.grouped:,}"
    say(
        out,
        f"what was lost: {summary.lost:,} items in {len(summary.groups)} groups{sample}",
        "bold",
    )
    for group in summary.groups:
        say(out, f"{group.items:,} items: {clean(group.sentence or group.name)}")
        counts = "; ".join(
            ", ".join(f"{clean(name, 40)} {count:,}" for name, count in list(part.items())[:3])
            for part in (group.tasks, group.causes)
        )
        say(out, f"  {counts}", "dim")
        for example in group.examples:
            said = f"{clean(example.before, 60)!r} -> {clean(example.after, 60)!r}"
            say(out, f"  e.g. {clean(example.item, 30)}: {said}", "dim")
    out.print()


def _named(result: ForgettingMap, tasks: dict[str, Cell]) -> dict[str, dict[str, Cell]]:
    """The cells of each table, by the names to show."""
    categories, names = words.marked_categories(result), words.marked_tasks(result)
    return {
        "total": words.totals(result),
        "category": {categories[name]: cell for name, cell in words.by_loss(result.categories)},
        "task": {names[name]: cell for name, cell in tasks.items()},
    }


def _tasks(result: ForgettingMap) -> dict[str, Cell]:
    """All tasks, the worst first; where categories sum them up, those that lost most."""
    worst_first = words.by_loss(result.tasks)
    return dict(worst_first[:MOST_TASKS] if result.categories else worst_first)


def _legend(columns: Collection[object]) -> str:
    """What the columns that are shown mean."""
    more = ""
    if "raw %" in columns:
        more += "raw: items that flipped 1->0 / 0->1, with the noise of the runs. "
    if "p" in columns:
        more += "p: paired test of the change of accuracy, adjusted. "
    return (
        "lost, gained: two ends where the data give a range; 95 % interval in brackets. Gains do "
        f"not make up for losses. {more}verdict: on what was lost; net: on the accuracy. "
        "* hinges on one task: without it the loss would change by more than half. "
        "--csv and --report say what would decide each open verdict."
    )


def _next(result: ForgettingMap) -> str:
    """The one thing to do with this map."""
    if result.old.verdict.forgetting == "lost" and not result.old.causes:
        return "next: add --causes to see why, and --report map.html to see every item"
    if result.old.verdict.forgetting == "lost":
        return "next: --json map.json, then forgetmap advise map.json says what to try"
    if result.old.verdict.forgetting == "held":
        return "next: --gate max-forgetting=0.03 keeps it so in CI"
    return "next: forgetmap plan says how many items or runs would decide"


def _rows(side: str, rows: RowCounts | None) -> str | None:
    """Where not all rows of a log in the compared metrics were compared: what became of them."""
    if rows is None or not (rows.one_sided or rows.unscored or rows.duplicates or rows.left_out):
        return None
    parts = {
        "in one log only": rows.one_sided,
        "without a score on both sides": rows.unscored,
        "duplicates": rows.duplicates,
        "of other metrics": rows.other_metrics,
        "of other tasks": rows.other_tasks,
        "of other models": rows.other_models,
    }
    listed = "".join(f", {count:,} {name}" for name, count in parts.items() if count)
    refused = f"; {rows.left_out:,} answers in the files gave no row" if rows.left_out else ""
    return f"rows {side}: {rows.read:,}, of which {rows.paired:,} compared{listed}{refused}"


def _trust(result: ForgettingMap) -> list[str]:
    cell, covered = result.old, result.coverage
    lines = [
        f"95 % intervals. {' '.join(words.populations(cell))}",
        f"{clean(result.before.name, 40)} -> {clean(result.after.name, 40)}",
        f"{covered.matched:,} items in {len(result.tasks)} tasks, {result.before.runs} and "
        f"{result.after.runs} runs, paired by {covered.identity}",
        f"metric: {_metrics(result.settings.metric)}",
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
    rows = {"before": covered.rows_before, "after": covered.rows_after}
    lines += [line for side, counts in rows.items() if (line := _rows(side, counts))]
    lines.append(
        f"raw flips, noise included: 1->0 {interval(cell.raw.lost, ' %')}, "
        f"0->1 {interval(cell.raw.gained, ' %')}"
    )
    if cell.noise_floor is not None:
        lines.append(f"noise: a model flips {percent(cell.noise_floor)} of its own items 1->0")
    lines.append(f"smallest change of accuracy this could have shown: {percent(cell.mde)}")
    lines += _why(cell)
    lines += [
        f"confound: {clean(confound.setting)} differs: {_setting(confound.before)} / "
        f"{_setting(confound.after)}"
        for confound in result.confounds
    ]
    return lines


def _metrics(chosen: Mapping[str, str]) -> str:
    """The metric of each task, with its filter where the harness has them."""
    by_metric: dict[str, list[str]] = {}
    for task, metric in chosen.items():
        by_metric.setdefault(metric, []).append(task)
    if len(by_metric) == 1:
        return clean(next(iter(by_metric)), 60)
    return "; ".join(f"{clean(name, 60)} ({some(tasks, 3)})" for name, tasks in by_metric.items())


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
        if sure := how_sure(cell.causes):
            lines.append(f"how sure a cause is: {sure}")
    if cell.churn:
        lines.append(f"churn: {cell.churn:,} items went from one wrong answer to another")
    return lines


def _setting(value: object) -> str:
    """A setting on one line; of a hash the beginning is enough."""
    text = clean(words.setting(value), 60)
    return f"{text[:10]}…" if re.fullmatch(r"[0-9a-f]{32,}…?", text) else text


_NARROWER: tuple[Step, ...] = (
    ("p", None),
    ("raw %", None),
    (BARS, None),
    ("gained %", without_interval),
    ("n", None),
    ("accuracy %", None),
)
"""What a narrow terminal does without, the least worth first. The verdicts always stay."""


def _cells(title: str, cells: Mapping[str, Cell], width: int) -> Table:
    names = (title, "n", "accuracy %", "lost %", "gained %", BARS, "raw %", "p", "verdict", "net")
    most = max(cell.lost.value for cell in cells.values())
    most = most or max(cell.gained.value for cell in cells.values())
    rows = (_row(name, cell, most) for name, cell in cells.items())
    left = (BARS, "verdict", "net")
    return make_table(names, rows, left=left, width=width, gap=1, narrower=_NARROWER)


def _row(name: str, cell: Cell, most: float) -> Row:
    found, net = cell.verdict.forgetting, cell.verdict.net
    return (
        name,
        f"{cell.n:,}",
        f"{points(cell.accuracy_before)}→{points(cell.accuracy_after)}",
        words.short_range(cell.lost) + ("*" if words.hinges(cell) else ""),
        words.short_range(cell.gained),
        two_bars(cell.lost.value, cell.gained.value, most),
        f"{points(cell.raw.lost.value)}/{points(cell.raw.gained.value)}",
        p_value(cell.p_adjusted),
        Text(FORGETTING_WORDS[found], style=verdict_style(found)),
        Text(NET_WORDS[net], style=verdict_style(net)),
    )


def _scores(graded: Mapping[str, ScoreChange]) -> Table:
    """Scores that are more than right or wrong."""
    rows = (
        (
            clean(name, 60),
            f"{score.n:,}",
            f"{score.low:g} to {score.high:g}",
            f"{score.before:.3g}→{score.after:.3g}",
            *(f"{e.value:.3g} ({e.low:.3g} to {e.high:.3g})" for e in (score.lost, score.gained)),
        )
        for name, score in graded.items()
    )
    names = ("task", "n", "scale", "mean score", "mean fall", "mean rise")
    table = make_table(names, rows)
    table.title = "scores as they are, noise included; a rise does not make up for a fall"
    table.title_justify = "left"
    return table


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
            said = words.setting_by_task(value, {row.task for row in summary.tasks})
            say(out, f"  {clean(name)}: {clean(said, 300)}", "dim")
    several = len(summary.models) > 1
    names = ("task", *["model"] * several, "metric", "items", "repeats", "score", "k", "statuses")
    rows = (
        (
            clean(row.task, 60),
            *[clean(row.model, 40)] * several,
            clean(row.metric),
            f"{row.items:,}",
            str(row.repeats),
            "" if row.mean_score is None else f"{row.mean_score:.3f}",
            row.k or "open",
            ", ".join(f"{clean(name, 40)} {count}" for name, count in row.statuses.items()),
        )
        for row in summary.tasks
    )
    narrower: tuple[Step, ...] = (("k", None), ("repeats", None), ("statuses", _few_statuses))
    left = ("model", "metric", "k", "statuses")
    out.print(make_table(names, rows, left=left, width=out.width, narrower=narrower))
    say_notes(out, summary.warnings, "yellow")


def print_above_chance(summary: LogSummary, out: Console) -> None:
    """Print on which tasks a model is clearly above chance, and on which not."""
    above = {(row.model, row.metric, row.task) for row in above_chance(summary)}
    tested = [row for row in summary.tasks if row.by_luck is not None]
    if not tested:
        say(out, "No task says how many options its items have, so none can be tested for chance.")
    for model, metric in dict.fromkeys((row.model, row.metric) for row in tested):
        names = [row.task for row in tested if (row.model, row.metric) == (model, metric)]
        kept = [name for name in names if (model, metric, name) in above]
        say(out, f"{clean(model, 40)}, {clean(metric)}:", "bold")
        for title, listed in (
            ("clearly above chance", kept),
            ("not clearly above chance", [name for name in names if name not in kept]),
        ):
            shown = ", ".join(clean(name, 60) for name in listed) or "none"
            say(out, f"  {title} ({len(listed)} of {len(names)} tasks): {shown}")


def _few_statuses(cell: str) -> str:
    """The first status; --json has all."""
    first, comma, _ = cell.partition(", ")
    return f"{first}, …" if comma else first
