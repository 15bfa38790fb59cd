"""The trend page: forgetting of every checkpoint compared with one baseline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from forgetmap.base.errors import InputError
from forgetmap.base.files import write_text
from forgetmap.base.words import clean
from forgetmap.gate.baseline import STORE, Entry, read_history, read_label
from forgetmap.views.html.shell import Page, series

_PAGE = Page("trend.html", scripts=("shared/start.js",))
_MOST_TICKS = 20
"""Comparisons that are all numbered on the axis."""


def write_trend(name: str, path: str | Path, *, store: str | Path = STORE) -> int:
    """Write the history of a baseline as one HTML page; returns how many comparisons it shows."""
    read_label(Path(store), name)
    history = read_history(name, store)
    if not history.entries:
        raise InputError(
            f"baseline {name}: nothing was compared with it yet; use forgetmap baseline compare"
        )
    text = _PAGE.render(
        name=name,
        damaged=history.damaged,
        entries=history.entries,
        description=_chart(history.entries),
    )
    write_text(path, text)
    return len(history.entries)


def _chart(entries: list[Entry]) -> dict[str, Any]:
    """What was lost over the comparisons, in equal steps."""
    places = list(range(1, len(entries) + 1))
    notes = [f"{clean(entry.after, 60)}, {entry.time}" for entry in entries]
    lost = [entry.lost.estimate for entry in entries]
    return {
        "kind": "lines",
        "x": {"name": "comparison", "ticks": places if len(places) <= _MOST_TICKS else None},
        "y": {"unit": " %"},
        "lines": [series("lost", "lost", places, lost, notes)],
    }
