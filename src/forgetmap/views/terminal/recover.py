"""What came back, on the screen."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console

from forgetmap.mitigate.recover import ANY, Came, Recovery
from forgetmap.stats.estimate import interval
from forgetmap.views.terminal.console import say, say_notes
from forgetmap.views.terminal.forecast import print_table


def print_recovery(told: Recovery, out: Console) -> None:
    """Print the shares that came back beside what luck brings."""
    best = told.total[ANY]
    say(
        out,
        f"Of {best.lost:,} lost items {interval(best.back, ' %')} come back by any road; of "
        f"{best.control:,} that were never known {interval(best.luck, ' %')} turn right",
        "bold",
    )
    low, high = best.beyond_luck.low, best.beyond_luck.high
    verdict = "some losses were hidden" if low > 0 else "no more than luck brings"
    say(out, f"Beyond luck: {100 * low:.1f} to {100 * high:.1f} points: {verdict}")
    for title, rows in (
        ("road", told.total),
        ("category, by any road", told.categories),
        ("cause, by any road", told.causes),
    ):
        _print(out, title, rows)
    if told.unanswered:
        say(out, f"note: {told.unanswered:,} items were not asked on every road; left out")
    say_notes(out, told.notes)


def _print(out: Console, title: str, found: Mapping[str, Came]) -> None:
    rows = [
        (
            name,
            f"{came.lost:,}",
            interval(came.back, " %"),
            f"{came.control:,}",
            interval(came.luck, " %"),
            interval(came.beyond_luck),
        )
        for name, came in found.items()
    ]
    print_table(out, (title, "lost", "come back", "control", "by luck", "beyond luck"), rows)
