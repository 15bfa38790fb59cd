"""The trend page: forgetting of every checkpoint compared with one baseline."""

from __future__ import annotations

import html
from pathlib import Path
from string import Template

from forgetmap.base.errors import InputError
from forgetmap.base.files import write_text
from forgetmap.base.words import clean, percent
from forgetmap.gate.baseline import STORE, Entry, History, read_history, read_label
from forgetmap.stats.estimate import Estimate

_WIDTH, _HEIGHT, _EDGE = 900, 260, 40
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="$policy">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>$style</style>
</head>
<body>
<main class="wide">
<section>
<h1>$title</h1>
<p>$lead</p>
$chart
<div style="overflow-x: auto">
<table>
<thead><tr>$head</tr></thead>
<tbody>
$rows
</tbody>
</table>
</div>
</section>
</main>
</body>
</html>
""")


_COLUMNS = ("when", "checkpoint", "items", "forgot", "gained", "accuracy", "gate")


def write_trend(name: str, path: str | Path, *, store: str | Path = STORE) -> int:
    """Write the history of a baseline as one HTML page; returns how many comparisons it shows.

    The page runs no script and fetches nothing.
    """
    read_label(Path(store), name)
    history = read_history(name, store)
    if not history.entries:
        raise InputError(
            f"baseline {name}: nothing was compared with it yet; use forgetmap baseline compare"
        )
    write_text(path, _trend_page(name, history))
    return len(history.entries)


def _trend_page(name: str, history: History) -> str:
    from forgetmap.views.html.report import read as read_part

    entries = history.entries
    lead = (
        f"{len(entries):,} comparisons. Bars are 95 % intervals of forgetting by the headline "
        "estimator of each comparison; the newest is on the right."
    )
    if history.damaged:
        lead += f" {history.damaged:,} lines of the history could not be read."
    return _PAGE.substitute(
        policy=html.escape(_POLICY),
        title=html.escape(f"Forgetting against the baseline {name}"),
        style=read_part("page.css"),
        lead=html.escape(lead),
        chart=_chart(entries),
        head="".join(f'<th scope="col">{column}</th>' for column in _COLUMNS),
        rows="\n".join(map(_row, reversed(entries))),
    )


def _row(entry: Entry) -> str:
    cells = (
        entry.time,
        entry.after,
        f"{entry.n:,}",
        f"{_range(entry.forgot)}, {entry.headline}",
        _range(entry.gained),
        percent(entry.accuracy_after),
        entry.verdict or "",
    )
    return f"<tr>{''.join(f'<td>{html.escape(clean(cell, 80))}</td>' for cell in cells)}</tr>"


def _range(found: Estimate) -> str:
    low = percent(found.low).removesuffix(" %")
    return f"{percent(found.value)} ({low} to {percent(found.high)})"


def _chart(entries: list[Entry]) -> str:
    """Forgetting over the comparisons, in equal steps, as SVG."""
    top = max(0.01, *(entry.forgot.high for entry in entries))
    bottom = min(0.0, *(entry.forgot.low for entry in entries))
    step = (_WIDTH - 2 * _EDGE) / max(1, len(entries) - 1)

    def x(index: int) -> float:
        return _EDGE + step * index if len(entries) > 1 else _WIDTH / 2

    def y(share: float) -> float:
        return _EDGE + (_HEIGHT - 2 * _EDGE) * (top - share) / (top - bottom)

    marks = []
    for index, entry in enumerate(entries):
        told = html.escape(f"{clean(entry.after, 60)}, {entry.time}: {_range(entry.forgot)}")
        marks.append(
            f'<g><title>{told}</title><line x1="{x(index):.1f}" x2="{x(index):.1f}" '
            f'y1="{y(entry.forgot.low):.1f}" y2="{y(entry.forgot.high):.1f}" '
            'stroke="currentColor" stroke-width="2" opacity="0.5"/>'
            f'<circle cx="{x(index):.1f}" cy="{y(entry.forgot.value):.1f}" r="4" '
            'fill="currentColor"/></g>'
        )
    points = " ".join(
        f"{x(index):.1f},{y(entry.forgot.value):.1f}" for index, entry in enumerate(entries)
    )
    ticks = "".join(
        f'<text x="0" y="{y(share) + 4:.1f}" font-size="12" fill="currentColor">{percent(share)}'
        f'</text><line x1="{_EDGE}" x2="{_WIDTH}" y1="{y(share):.1f}" y2="{y(share):.1f}" '
        'stroke="currentColor" opacity="0.2"/>'
        for share in sorted({bottom, 0.0, top / 2, top})
    )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="100%" role="img" '
        f'aria-label="Forgetting of {len(entries)} checkpoints, oldest first">{ticks}'
        f'<polyline points="{points}" fill="none" stroke="currentColor" opacity="0.5"/>'
        f"{''.join(marks)}</svg>"
    )
