"""A map in a notebook: a compact table with a small forest plot, no script in it."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from forgetmap.base.words import clean, percent

if TYPE_CHECKING:
    from forgetmap.map.result import Cell, ForgettingMap
    from forgetmap.stats.estimate import Estimate

_WIDTH, _HEIGHT = 180, 22
_LOST, _WON = "#b8440f", "#1f5fa8"
_MOST_ROWS = 30


def to_html(result: ForgettingMap) -> str:
    """The total and every category, each with its numbers and its intervals drawn.

    Example:
        >>> import forgetmap
        >>> shown = to_html(forgetmap.demo())
        >>> shown.count("<svg") > 1, "<script" in shown
        (True, False)
    """
    cells = result.categories or result.tasks
    ordered = sorted(cells.items(), key=lambda pair: -pair[1].forgot.value)
    rows = [("Total", result.total), *ordered[:_MOST_ROWS]]
    top = max(found.high for _, cell in rows for found in (cell.forgot, cell.gained)) or 1.0
    low = min(0.0, *(found.low for _, cell in rows for found in (cell.forgot, cell.gained)))
    body = "".join(_row(name, cell, low, top) for name, cell in rows)
    left_out = len(ordered) - _MOST_ROWS
    more = f"<p>and {left_out} more categories</p>" if left_out > 0 else ""
    names = "".join(
        f'<th style="text-align:right">{name}</th>'
        for name in ("", "n", "before", "after", "forgot", "gained")
    )
    return (
        f"<div><p><b>{_text(result.before.name)} → {_text(result.after.name)}</b><br>"
        f"{_text(result.headline())}</p><table><thead><tr>{names}"
        f'<th style="text-align:left">95 % interval, {percent(low, 0)} to {percent(top, 0)}</th>'
        f'<th style="text-align:left">verdict</th></tr></thead>'
        f"<tbody>{body}</tbody></table>{more}</div>"
    )


def _row(name: str, cell: Cell, low: float, top: float) -> str:
    numbers = (
        f"{cell.n:,}",
        percent(cell.accuracy_before),
        percent(cell.accuracy_after),
        percent(cell.forgot.value),
        percent(cell.gained.value),
    )
    columns = "".join(f'<td style="text-align:right">{number}</td>' for number in numbers)
    return (
        f'<tr><td style="text-align:left">{_text(name)}</td>{columns}'
        f"<td>{_forest(cell, low, top)}</td>"
        f'<td style="text-align:left">{cell.verdict.forgetting}, net {cell.verdict.net}</td></tr>'
    )


def _forest(cell: Cell, low: float, top: float) -> str:
    label = f"forgot {percent(cell.forgot.value)}, gained {percent(cell.gained.value)}"
    zero = _place(0.0, low, top)
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="{label}">'
        f'<line x1="{zero}" x2="{zero}" y1="0" y2="{_HEIGHT}" stroke="#999" stroke-width="0.5"/>'
        f"{_bar(cell.forgot, 7, _LOST, low, top)}{_bar(cell.gained, 15, _WON, low, top)}</svg>"
    )


def _bar(found: Estimate, y: int, colour: str, low: float, top: float) -> str:
    left, middle, right = (
        _place(value, low, top) for value in (found.low, found.value, found.high)
    )
    return (
        f'<line x1="{left}" x2="{right}" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="2"/>'
        f'<circle cx="{middle}" cy="{y}" r="3" fill="{colour}"/>'
    )


def _place(value: float, low: float, top: float) -> str:
    return f"{4 + (_WIDTH - 8) * (value - low) / (top - low):.1f}"


def _text(text: str) -> str:
    return escape(clean(text, 300))
