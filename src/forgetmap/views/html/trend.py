"""The trend page: forgetting of every checkpoint compared with one baseline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from forgetmap.base.errors import InputError
from forgetmap.base.files import write_text
from forgetmap.base.words import clean, cut_in_the_middle, percent
from forgetmap.gate.baseline import STORE, Entry, read_history, read_label
from forgetmap.views.html.shell import Page, series

_PAGE = Page("trend.html", scripts=("shared/start.js",))
_MOST_TICKS = 7
"""Comparisons that are named on the axis."""

_BESIDE = 0.008
"""How far gains stand beside losses, in widths of the chart, so that no interval hides another."""


def write_trend(name: str, path: str | Path, *, store: str | Path = STORE) -> int:
    """Write the history of a baseline as one HTML page; returns how many comparisons it shows."""
    read_label(Path(store), name)
    history = read_history(name, store)
    if not history.entries:
        raise InputError(
            f"baseline {name}: nothing was compared with it yet; use forgetmap baseline compare"
        )
    entries = history.entries
    text = _PAGE.render(
        name=name,
        damaged=history.damaged,
        entries=entries,
        newest=entries[-1],
        finding=finding(entries),
        worst=max(entries, key=lambda entry: entry.lost.value),
        shade={"PASS": "good", "WARN": "warn", "BLOCK": "bad"},
        description=_chart(entries),
    )
    write_text(path, text)
    return len(history.entries)


def finding(entries: list[Entry]) -> str:
    """What the newest checkpoint lost, and what the gate said of it; its name comes before."""
    newest = entries[-1]
    said = f"lost {percent(newest.lost.value)}"
    if newest.limit is not None:
        said += f" (limit {percent(newest.limit)})"
    return f"{said}; gate: {newest.verdict}." if newest.verdict else f"{said}."


def _chart(entries: list[Entry]) -> dict[str, Any]:
    """What was lost and gained over the comparisons, in equal steps, with the gate's limit."""
    places = list(range(1, len(entries) + 1))
    notes = [f"{clean(entry.after, 60)}, {entry.time}" for entry in entries]
    beside = [place + _BESIDE * len(places) for place in places]
    every = -(-len(places) // _MOST_TICKS)
    ticks = places[::-every][::-1]  # the newest always has its name
    limited = [(place, entry.limit) for place, entry in zip(places, entries, strict=True)]
    bounds = [(place, limit) for place, limit in limited if limit is not None]
    lines = [
        series("lost", "lost", places, [entry.lost.estimate for entry in entries], notes),
        series("gained", "won", beside, [entry.gained.estimate for entry in entries], notes),
    ]
    if bounds:
        xs = [x for place, _ in bounds for x in (place - 0.4, place + 0.4)]
        ys = [100 * limit for _, limit in bounds for _ in range(2)]
        bound = {"name": "limit of the gate", "colour": "soft", "dash": "dot", "xs": xs, "ys": ys}
        lines.append(bound)
    return {
        "kind": "lines",
        "height": 360,
        "showlegend": True,
        "thin": True,
        "margin": {"l": 56, "r": 64, "t": 40, "b": 48},  # room for half a name at the right
        "x": {
            "low": 0.5,
            "high": len(places) + 0.5,
            "ticks": ticks,
            "texts": [_tick(entries[place - 1]) for place in ticks],
        },
        "y": {"unit": "\u00a0%"},
        "lines": lines,
    }


def _tick(entry: Entry) -> str:
    """Name and day of a comparison, short enough to stand beside others."""
    return f"{cut_in_the_middle(clean(entry.after), 12)} {entry.time[5:10]}"
