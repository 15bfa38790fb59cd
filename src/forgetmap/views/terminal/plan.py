"""A plan at the terminal: what one design can show, and what others could."""

from __future__ import annotations

from rich.console import Console

from forgetmap.base.words import percent
from forgetmap.map.planning import Design, PowerPlan
from forgetmap.views.terminal.console import make_table, say

_EVIDENCE = {
    "options": "option probabilities",
    "repeats": "repeats",
    "one run": "one run each, noise not measured",
    "deterministic": "one run each, without noise",
}


def print_plan(result: PowerPlan, out: Console) -> None:
    """Print the answer, and a table of designs."""
    asked = result.asked
    loss = percent(result.loss)
    say(
        out,
        f"{asked.items:,} items, {_EVIDENCE[asked.evidence]}"
        f"{f' ({asked.repeats})' if asked.evidence == 'repeats' else ''}: a loss of {loss} is seen "
        f"in {percent(asked.seen, 0)} of such comparisons; where nothing was lost, {loss} is ruled "
        f"out in {percent(asked.ruled_out, 0)}.",
        "bold",
    )
    if result.smallest_seen is None:
        say(out, "Not even a loss of 20 % is seen four times out of five.")
    else:
        smallest = percent(result.smallest_seen)
        say(out, f"The smallest loss that is seen four times out of five: {smallest}.")
    ordered = sorted([asked, *result.others], key=lambda one: (one.evidence, one.answers))
    rows = [_row(design, design == asked) for design in ordered]
    out.print(make_table(("design", "items", "runs", "answers", "seen", "ruled out"), rows))
    say(
        out,
        f"Simulated with {result.simulated} pairs a line, so a share may be off by "
        f"{percent(1.96 * 0.5 / result.simulated**0.5, 0)}. The model before has {result.spread}; "
        f"as much as {percent(result.gain)} is gained elsewhere. Answers: of both models together.",
        "dim",
    )


def _row(design: Design, asked: bool) -> tuple[str, ...]:
    return (
        f"{_EVIDENCE[design.evidence]}{' (asked)' if asked else ''}",
        f"{design.items:,}",
        str(design.repeats),
        f"{design.answers:,}",
        percent(design.seen, 0),
        percent(design.ruled_out, 0),
    )
