"""A sweep for people: the table at a terminal, and the Pareto picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from forgetmap.base.words import clean, percent
from forgetmap.map.result import HEADLINE_MEANING
from forgetmap.stats.estimate import interval

if TYPE_CHECKING:
    from rich.console import Console

    from forgetmap.mitigate.merge.sweep import Point, Sweep
    from forgetmap.stats.estimate import Estimate


def print_sweep(result: Sweep, out: Console) -> None:
    """Print the points of a sweep, and what was chosen."""
    out.print(Text(verdict(result), style="bold"))
    names = f"{clean(result.before, 40)} -> {clean(result.after, 40)}"
    out.print(Text(f"{names}: {result.method}, {clean(result.suite)}"))
    if result.new_tasks:
        out.print(Text(f"new: {clean(', '.join(result.new_tasks))}; all other tasks are old"))
    out.print()
    out.print(_table(result))
    out.print()
    gain = (
        "accuracy on the new tasks minus that of the model before"
        if result.new_tasks
        else "items that went from wrong to right"
    )
    out.print(
        Text(
            f"forgot: {result.headline} = {HEADLINE_MEANING[result.headline]}, against the model "
            "before, on old tasks. kept: of the old items that the model before got right, those "
            f"this one still does. gain: {gain}. of after: forgetting against the model "
            "after, on all tasks. 95 % intervals in brackets. verdict: on old tasks, forgetting "
            "and net change; ? is undecided. * no other point keeps more and gains more.",
            style="dim",
        )
    )


def verdict(result: Sweep) -> str:
    """What a sweep says, in one sentence."""
    if result.budget is None:
        best = ", ".join(f"{point.weight:g}" for point in result.points if point.is_pareto)
        return f"no point beats another at the weights {best}; --choose BUDGET picks one"
    limit = f"forgetting of at most {percent(result.budget)} (high end of its interval)"
    point = next((found for found in result.points if found.weight == result.chosen), None)
    if point is None:
        return f"no merge stays surely within a {limit}"
    where = f"; {clean(result.folder)}" if result.folder else ""
    return (
        f"weight {point.weight:g} gains most within a {limit}: forgot "
        f"{interval(point.forgetting, ' %')}, gained {interval(point.gain, ' %')}{where}"
    )


def _table(result: Sweep) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("weight", no_wrap=True)
    for name in ("forgot %", "kept %", "gain %", "of after %"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for point in result.points:
        words = (point.verdict.forgetting, point.verdict.net)
        table.add_row(
            f"{point.weight:g}{'*' if point.is_pareto else ''} {_mark(point, result)}",
            _short(point.forgetting),
            "-" if point.retained is None else _short(point.retained),
            _short(point.gain),
            percent(point.lost_of_after.value).removesuffix(" %"),
            ", ".join("?" if word == "undecided" else word for word in words),
        )
    return table


def _short(found: Estimate) -> str:
    return interval(found).replace(" to ", ", ")


def _mark(point: Point, result: Sweep) -> str:
    return "chosen" if point.weight == result.chosen else point.parent or ""
