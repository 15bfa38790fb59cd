"""A sweep of trainings for people at a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap.base.words import clean, percent
from forgetmap.mitigate.train.runs import TrainedPoint, TrainSweep
from forgetmap.stats.estimate import BASIS_MEANING, range_words
from forgetmap.views.terminal.console import Row, make_table, say, say_table
from forgetmap.views.terminal.sweep import skill
from forgetmap.views.words import short_range, verdict_mark

if TYPE_CHECKING:
    from rich.console import Console


def print_train_sweep(result: TrainSweep, out: Console) -> None:
    """Print the points, the worst loss last, and what was chosen."""
    say(out, verdict(result), "bold")
    say(out, f"{clean(result.before, 60)}: {result.method}")
    out.print()
    columns = ["settings", "lost %", "gained %", "verdict"]
    if result.new_tasks:
        columns.insert(3, "new %")
    ordered = sorted(result.points, key=lambda point: point.lost.high_end)
    rows = [_row(point, result) for point in ordered]
    left = ("settings", "verdict")
    say_table(out, make_table(columns, rows, left=left, width=out.width, gap=1))
    bases = "; ".join(dict.fromkeys(BASIS_MEANING[point.lost.basis] for point in result.points))
    new = " new: accuracy on the new tasks, before -> after." if result.new_tasks else ""
    say(
        out,
        f"One training for each row. lost, gained: against the model before, on old tasks, {bases}."
        f"{new} 95 % intervals over items in brackets; another seed may differ by more. * no other "
        "point loses less and wins more.",
        "dim",
    )


def verdict(result: TrainSweep) -> str:
    """What a sweep says, in one sentence."""
    if result.budget is None:
        best = "; ".join(_named(point) for point in result.points if point.is_pareto)
        return f"no point beats another: {best}. --budget lost=SHARE picks one"
    limit = f"loss of at most {percent(result.budget)}"
    chosen = next((one for one in result.points if one.settings == result.chosen), None)
    if chosen is None:
        return f"no training stays within a {limit}"
    most = "learns" if chosen.new else "gains"
    told = f"{_named(chosen)} {most} most within a {limit}: lost {range_words(chosen.lost)}"
    if not result.sure:
        told += f", which is not sure: it may be {percent(chosen.lost.high)}; ask more questions"
    where = "model" if chosen.kept else "(its weights were removed; run it alone again)"
    return f"{told}; {clean(chosen.folder)}/{where}"


def _row(point: TrainedPoint, result: TrainSweep) -> Row:
    mark = " chosen" if point.settings == result.chosen else ""
    cells = [
        f"{_named(point)}{'*' if point.is_pareto else ''}{mark}",
        short_range(point.lost),
        short_range(point.gained) if point.gained else "-",
        ", ".join(map(verdict_mark, (point.verdict.forgetting, point.verdict.net))),
    ]
    if result.new_tasks:
        cells.insert(3, skill(point.new) if point.new else "-")
    return tuple(cells)


def _named(point: TrainedPoint) -> str:
    return clean(", ".join(f"{name} {value}" for name, value in point.settings.items()), 60)
