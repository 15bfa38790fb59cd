"""A sweep for people at a terminal: its points, and what was chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap.base.words import clean, percent
from forgetmap.mitigate.merge.sweep import Point, Sweep
from forgetmap.mitigate.outcome import NewSkill
from forgetmap.stats.estimate import BASIS_MEANING, interval, range_words
from forgetmap.views.terminal.console import Row, make_table, say, say_table
from forgetmap.views.words import ends, points, short_range, verdict_mark

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
    columns = ["weight", "lost %", "gained %", "of after %", "verdict"]
    if result.new_tasks:
        columns.insert(3, "new %")
    rows = [_row(point, result) for point in result.points]
    say_table(out, make_table(columns, rows, left=("verdict",), width=out.width, gap=1))
    bases = "; ".join(dict.fromkeys(BASIS_MEANING[point.lost.basis] for point in result.points))
    new = " new: accuracy on the new tasks, before -> here." if result.new_tasks else ""
    say(
        out,
        f"lost, gained: against the model before, on old tasks, {bases}.{new} of after: lost "
        "against the model after, on all tasks. 95 % intervals in brackets. verdict: on old "
        "tasks, forgetting and net change; ? is can't tell. * no other point loses less and "
        f"{'learns' if result.new_tasks else 'gains'} more.",
        "dim",
    )


def verdict(result: Sweep) -> str:
    """What a sweep says, in one sentence."""
    if result.budget is None:
        best = ", ".join(f"{point.weight:g}" for point in result.points if point.is_pareto)
        return f"no point beats another at the weights {best}; --choose BUDGET picks one"
    limit = f"loss of at most {percent(result.budget)}"
    point = next((point for point in result.points if point.weight == result.chosen), None)
    if point is None:
        return f"no merge stays within a {limit}"
    where = f"; {clean(result.folder)}" if result.folder else ""
    most = "learns" if point.new else "gains"
    told = f"weight {point.weight:g} {most} most within a {limit}: lost {range_words(point.lost)}"
    if not result.sure:
        told += f", which is not sure: it may be {percent(point.lost.high)}; ask more questions"
    return f"{told}; {_won(point)}{where}"


def _won(point: Point) -> str:
    if point.new:
        return f"new tasks {skill(point.new)} %, by {interval(point.new.change, ' %')}"
    return f"gained {range_words(point.gained)}" if point.gained else "what it gained is not known"


def _row(point: Point, result: Sweep) -> Row:
    mark = "chosen" if point.weight == result.chosen else point.parent or ""
    cells = [
        f"{point.weight:g}{'*' if point.is_pareto else ''} {mark}",
        short_range(point.lost),
        short_range(point.gained) if point.gained else "-",
        ends(point.lost_of_after),
        ", ".join(map(verdict_mark, (point.verdict.forgetting, point.verdict.net))),
    ]
    if result.new_tasks:
        cells.insert(3, skill(point.new) if point.new else "-")
    return tuple(cells)


def skill(new: NewSkill) -> str:
    """Accuracy on the new tasks, before and after, in percent."""
    return f"{points(new.before)} -> {points(new.after)}"
