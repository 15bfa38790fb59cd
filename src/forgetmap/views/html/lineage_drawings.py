"""The drawings of the page, as SVG: the graph, the flow along a path, curves with bands.

Numbers become coordinates and classes; names become escaped text. Every drawing has a table beside
it that says the same.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, NamedTuple

from forgetmap.base.words import clean, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forgetmap.lineage.lives import Lives
    from forgetmap.lineage.result import Lineage
    from forgetmap.stats.estimate import Estimate

_BOX = 170, 54
_STEP = 250, 88
_LOSING = 0.02
"""Share forgotten from which an edge is drawn in the colour of loss."""


def swatch(style: str) -> str:
    """A small square in a drawing's colour, for a key."""
    return (
        f'<svg width="12" height="12" aria-hidden="true"><rect width="12" height="12" '
        f'class="{style}"/></svg>'
    )


def graph(result: Lineage) -> str:
    """The checkpoints from left to right; an edge is as thick as what was forgotten on it."""
    place = _places(result)
    width = max(column for column, _ in place.values()) * _STEP[0] + _BOX[0] + 20
    height = max(lane for _, lane in place.values()) * _STEP[1] + _BOX[1] + 20
    parts, labels = [], []
    for found in result.comparisons:
        if not found.edge:
            continue
        (c0, l0), (c1, l1) = place[found.before], place[found.after]
        x0, y0 = 10 + c0 * _STEP[0] + _BOX[0], 10 + l0 * _STEP[1] + _BOX[1] / 2
        x1, y1 = 10 + c1 * _STEP[0], 10 + l1 * _STEP[1] + _BOX[1] / 2
        forgot = found.map.total.forgot.value
        style = "edge losing" if forgot >= _LOSING else "edge"
        bend = x1 - (_STEP[0] - _BOX[0])  # a long edge keeps to its lane until the last gap
        middle = (bend + x1) / 2
        parts.append(
            f'<path class="{style}" stroke-width="{1.5 + 40 * max(forgot, 0):.1f}" '
            f'd="M{x0} {y0}H{bend}C{middle} {y0} {middle} {y1} {x1} {y1}"/>'
        )
        labels.append(
            f'<text class="over" x="{middle}" y="{(y0 + y1) / 2 + 4}" text-anchor="middle" '
            f'font-size="11">{percent(forgot)}</text>'
        )
    parts += labels
    for node in result.nodes:
        column, lane = place[node.name]
        x, y = 10 + column * _STEP[0], 10 + lane * _STEP[1]
        style = "box" if node.parents else "box root"
        known = percent(node.known / node.items) if node.items else "nothing"
        parts.append(
            f'<g><title>{_text(node.name)}</title><rect class="{style}" x="{x}" y="{y}" rx="8" '
            f'width="{_BOX[0]}" height="{_BOX[1]}"/>'
            f'<text x="{x + 12}" y="{y + 23}" font-weight="600">{_text(node.name, 20)}</text>'
            f'<text class="faint" x="{x + 12}" y="{y + 42}">{known} known</text></g>'
        )
    label = f"{len(result.nodes)} checkpoints from {clean(result.root, 40)} on; the table below"
    return _svg(width, height, f"{label} lists every edge", parts)


def _places(result: Lineage) -> dict[str, tuple[int, int]]:
    """Column: the longest way from the root; lane: that of the first parent, or a new one."""
    place: dict[str, tuple[int, int]] = {}
    inherited: set[str] = set()
    lanes = 1
    for node in result.nodes:
        if not node.parents:
            place[node.name] = 0, 0
            continue
        column = 1 + max(place[parent][0] for parent in node.parents)
        first = node.parents[0]
        if first in inherited:
            lane, lanes = lanes, lanes + 1
        else:
            lane = place[first][1]
            inherited.add(first)
        place[node.name] = column, lane
    return place


def flow(path: Sequence[str], lives: Lives) -> str:
    """How items pass from known to not known and back, stage by stage; complete items only."""
    states = lives.states[:, lives.complete]
    total = states.shape[1]
    height, bar, step = 220, 14, 190
    scale = (height - 12) / max(total, 1)
    parts = []
    for stage, name in enumerate(path):
        x = 10 + stage * step
        known = int((states[stage] == 1).sum())
        parts.append(f'<rect class="won" x="{x}" y="30" width="{bar}" height="{known * scale}"/>')
        parts.append(
            f'<rect class="never" x="{x}" y="{42 + known * scale}" width="{bar}" '
            f'height="{(total - known) * scale}"/>'
        )
        anchor = "end" if stage == len(path) - 1 and stage else "start"
        at = x + (bar if anchor == "end" else 0)
        parts.append(f'<text x="{at}" y="16" text-anchor="{anchor}">{_text(name, 20)}</text>')
        if stage + 1 < len(path):
            pair = states[stage], states[stage + 1]
            counts = {
                (a, b): int(((pair[0] == a) & (pair[1] == b)).sum()) for a in (1, 0) for b in (1, 0)
            }
            parts += _ribbons(counts, x + bar, x + step, known, scale)
    width = 20 + (len(path) - 1) * step + bar
    label = f"Flow of {total:,} items from {clean(path[0], 40)} to {clean(path[-1], 40)}"
    return _svg(max(width, 120), height + 50, label, parts)


def _ribbons(
    counts: dict[tuple[int, int], int], x0: float, x1: float, known: int, scale: float
) -> list[str]:
    """The four streams between two stages: stayed, lost, gained, never."""
    later = counts[1, 1] + counts[0, 1]
    top = {1: 30.0, 0: 42 + known * scale}
    end = {1: 30.0, 0: 42 + later * scale}
    styles = {(1, 1): "kept", (1, 0): "lost", (0, 1): "won", (0, 0): "never"}
    parts = []
    middle = (x0 + x1) / 2
    for (a, b), style in styles.items():
        thick = counts[a, b] * scale
        y0, y1 = top[a], end[b]
        top[a] += thick
        end[b] += thick
        if not thick:
            continue
        parts.append(
            f'<path class="ribbon {style}" d="M{x0} {y0:.1f}C{middle} {y0:.1f} {middle} {y1:.1f} '
            f"{x1} {y1:.1f}L{x1} {y1 + thick:.1f}C{middle} {y1 + thick:.1f} {middle} "
            f'{y0 + thick:.1f} {x0} {y0 + thick:.1f}Z"/>'
        )
        if thick > 13:
            x, y = (x0 + 6, y0 + thick / 2 + 4) if a == b else (x1 - 6, y1 + thick / 2 + 4)
            anchor = "start" if a == b else "end"
            parts.append(
                f'<text x="{x}" y="{y:.1f}" font-size="11" text-anchor="{anchor}">'
                f"{counts[a, b]:,}</text>"
            )
    return parts


class Series(NamedTuple):
    """One curve with its band; None where there is no value."""

    style: str
    values: list[Estimate | None]


def curves(xs: Sequence[float], series: Sequence[Series], label: str, number: str) -> str:
    """Curves over a number, each with its band."""
    width, height, left, bottom = 640, 260, 52, 34
    top = max((e.high for s in series for e in s.values if e is not None), default=1.0)
    top = min(1.0, max(top * 1.05, 0.01))
    low, span = min(xs), (max(xs) - min(xs)) or 1.0

    def at(x: float, y: float) -> str:
        across = left + (x - low) / span * (width - left - 20)
        return f"{across:.1f} {height - bottom - max(y, 0) / top * (height - bottom - 12):.1f}"

    parts = []
    for tick in range(5):
        share = top * tick / 4
        x0, y = at(low, share).split()
        parts.append(f'<path class="axis" d="M{x0} {y}H{width - 20}"/>')
        parts.append(
            f'<text class="faint" x="{left - 6}" y="{float(y) + 4:.1f}" text-anchor="end" '
            f'font-size="11">{percent(share, 0 if top > 0.08 else 1)}</text>'
        )
    for x in sorted({low, low + span, *(xs if len(xs) <= 8 else ())}):
        across = at(x, 0).split()[0]
        parts.append(
            f'<text class="faint" x="{across}" y="{height - 14}" text-anchor="middle" '
            f'font-size="11">{x:g}</text>'
        )
    parts.append(
        f'<text class="faint" x="{width / 2}" y="{height - 1}" text-anchor="middle" '
        f'font-size="11">{_text(number, 30)}</text>'
    )
    for style, values in series:
        found = [(x, e) for x, e in zip(xs, values, strict=True) if e is not None]
        if not found:
            continue
        outline = [at(x, e.high) for x, e in found] + [at(x, e.low) for x, e in reversed(found)]
        parts.append(f'<path class="band {style}" d="M{"L".join(outline)}Z"/>')
        parts.append(
            f'<path class="curve {style}" d="M{"L".join(at(x, e.value) for x, e in found)}"/>'
        )
        for x, e in found:
            across, y = at(x, e.value).split()
            parts.append(f'<circle class="{style}" cx="{across}" cy="{y}" r="3.5"/>')
    return _svg(width, height, label, parts)


def _svg(width: float, height: float, label: str, parts: Sequence[str]) -> str:
    return (
        f'<div class="scroll" tabindex="0" role="group" aria-label="{_text(label)}">'
        f'<svg role="img" aria-label="{_text(label)}" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}">{"".join(parts)}</svg></div>'
    )


def _text(text: object, most: int = 200) -> str:
    return escape(clean(text, most))
