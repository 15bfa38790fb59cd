"""A forecast, or what came of it, on the screen."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from forgetmap.base.words import clean, percent
from forgetmap.mitigate.forecast.build import Check, Forecast
from forgetmap.mitigate.forecast.model import Probed, WeighedMap
from forgetmap.mitigate.forecast.validate import Quality
from forgetmap.stats.estimate import interval
from forgetmap.views.terminal.console import say, say_notes

NEVER_SAW = {
    "training": "this training",
    "regime": "its new task taught in its way",
    "task": "its new task",
    "model": "its model",
    "task and model": "its new task nor its model",
}


def print_forecast(told: Forecast | Check | WeighedMap, out: Console) -> None:
    """Print whichever it is."""
    if isinstance(told, Forecast):
        _forecast(told, out)
    elif isinstance(told, Check):
        _check(told, out)
    else:
        _weighed(told, out)


def _forecast(told: Forecast, out: Console) -> None:
    say(
        out,
        f"Expected loss: {interval(told.total.expected, ' %')} of {told.total.items:,} items, "
        f"about {told.total.flips:,.0f} of them turn wrong",
        "bold",
    )
    say(out, f"learned from {clean(told.source)}: {told.trainings} trainings, {_of_model(told)}")
    rows = [
        (name, f"{part.items:,}", interval(part.expected, " %"), f"{part.flips:,.0f}")
        for name, part in sorted(told.categories.items(), key=lambda pair: -pair[1].expected.value)
    ]
    print_table(out, ("category", "items", "expected loss", "turn wrong"), rows)
    say(out, "The intervals are over trainings like those of the history, 95 %.", "dim")
    _quality(told.quality, out)
    for why, count in told.left_out.items():
        say(out, f"left out: {count:,} items ({why})")
    say_notes(out, told.notes)
    if told.probe is not None:
        _probed(told.probe, out)


def _probed(probe: Probed, out: Console) -> None:
    say(
        out,
        f"The probe, {probe.steps} steps at {probe.learning_rate:g}, already did this and was "
        "thrown away:",
        "bold",
    )
    _weighed(probe.found, out)


def _of_model(told: Forecast) -> str:
    if told.same_model:
        return f"{told.same_model} of them of this very model"
    return "none of them of this very model"


def _quality(measured: Sequence[Quality], out: Console) -> None:
    rows = [
        (
            f"never saw {NEVER_SAW[each.never_saw]}",
            str(each.trainings),
            f"{each.auc_known:.2f}",
            f"{each.auc_all:.2f}",
            f"{100 * each.calibration_error:.1f} points",
            percent(each.riskiest_quarter),
        )
        for each in measured
    ]
    names = ("how good it was where it", "trainings", "AUC, known", "AUC, all")
    print_table(out, (*names, "calibration", "in riskiest quarter"), rows)


def _check(told: Check, out: Console) -> None:
    total = told.total
    say(
        out,
        f"Expected {interval(total.expected, ' %')}, happened {percent(total.happened)}: "
        f"{_within(total.within)}",
        "bold",
    )
    rows = [
        (
            name,
            f"{part.items:,}",
            interval(part.expected, " %"),
            percent(part.happened),
            _within(part.within),
        )
        for name, part in told.categories.items()
    ]
    print_table(out, ("category", "items", "expected", "happened", ""), rows)
    ranks = [("known items", told.auc_known), ("all items", told.auc_all)]
    listed = ", ".join(f"{name} {found:.2f}" for name, found in ranks if found is not None)
    say(out, f"AUC: {listed or 'not known, nothing was lost'}")
    say(out, f"calibration error, known items: {100 * told.calibration_error:.1f} points")
    say(out, f"the riskiest quarter held {percent(told.riskiest_quarter)} of what was lost")
    if told.not_asked:
        say(out, f"note: {told.not_asked:,} items of the forecast are not in the log after")


def _within(inside: bool) -> str:
    return "within" if inside else "outside"


def _weighed(told: WeighedMap, out: Console) -> None:
    total = told.total
    say(
        out,
        f"Lost {interval(total.lost, ' %')}, gained {interval(total.gained, ' %')} of "
        f"{total.items:,} items, from {total.asked:,} that were asked",
        "bold",
    )
    rows = [
        (
            name,
            f"{part.items:,}",
            f"{part.asked:,}",
            interval(part.lost, " %"),
            interval(part.gained, " %"),
        )
        for name, part in told.categories.items()
    ]
    print_table(out, ("category", "items", "asked", "lost", "gained"), rows)
    say(out, "Items count so that the total is that of all, whichever were drawn.", "dim")
    if told.unanswered:
        say(
            out,
            f"note: {told.unanswered:,} chosen items lack an answer; at the high end they are lost",
        )


def print_table(out: Console, names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table whose first column is text that others wrote."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for number, name in enumerate(names):
        table.add_column(name, justify="right" if number else "left")
    for first, *rest in rows:
        table.add_row(Text(clean(first, 60)), *rest)
    out.print(table)
