"""A sweep for people at a terminal: its points, and what was chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap.base.words import clean, percent
from forgetmap.map.result import HEADLINE_MEANING
from forgetmap.mitigate.merge.sweep import Point, Sweep
from forgetmap.stats.estimate import interval
from forgetmap.views.terminal.console import Row, make_table, say, say_table
from forgetmap.views.words import points, short_interval, verdict_mark

if TYPE_CHECKING:
    from rich.console import Console


def print_sweep(result: Sweep, out: Console) -> None:
    """Print the points of a sweep, and what was chosen."""
    say(out, verdict(result), "bold")
    names = f"{clean(result.before, 40)} -> {clean(result.after, 40)}"
    say(out, f"{names}: {result.method}, {clean(result.suite)}")
    if result.new_tasks:
        say(out, f"new: {clean(', '.join(result.new_tasks))}; all other tasks are old")
    out.print()
    columns = ("weight", "forgot %", "kept %", "gain %", "of after %", "verdict")
    rows = [_row(point, result) for point in result.points]
    say_table(out, make_table(columns, rows, left=("verdict",), width=out.width, gap=1))
    gain = (
        "accuracy on the new tasks minus that of the model before"
        if result.new_tasks
        else "items that went from wrong to right"
    )
    say(
        out,
        f"forgot: {result.headline} = {HEADLINE_MEANING[result.headline]}, against the model "
        "before, on old tasks. kept: of the old items that the model before got right, those "
        f"this one still does. gain: {gain}. of after: forgetting against the model "
        "after, on all tasks. 95 % intervals in brackets. verdict: on old tasks, forgetting "
        "and net change; ? is undecided. * no other point keeps more and gains more.",
        "dim",
    )


def verdict(result: Sweep) -> str:
    """What a sweep says, in one sentence."""
    if result.budget is None:
        best = ", ".join(f"{point.weight:g}" for point in result.points if point.is_pareto)
        return f"no point beats another at the weights {best}; --choose BUDGET picks one"
    limit = f"forgetting of at most {percent(result.budget)} (high end of its interval)"
    point = next((point for point in result.points if point.weight == result.chosen), None)
    if point is None:
        return f"no merge stays surely within a {limit}"
    where = f"; {clean(result.folder)}" if result.folder else ""
    return (
        f"weight {point.weight:g} gains most within a {limit}: forgot "
        f"{interval(point.forgetting, ' %')}, gained {interval(point.gain, ' %')}{where}"
    )


def _row(point: Point, result: Sweep) -> Row:
    mark = "chosen" if point.weight == result.chosen else point.parent or ""
    return (
        f"{point.weight:g}{'*' if point.is_pareto else ''} {mark}",
        short_interval(point.forgetting),
        short_interval(point.retained),
        short_interval(point.gain),
        points(point.lost_of_after.value),
        ", ".join(map(verdict_mark, (point.verdict.forgetting, point.verdict.net))),
    )
