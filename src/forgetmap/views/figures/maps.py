"""Figures for papers: forest plot, radar pair and flow of a map, as SVG and PNG, and its table."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from forgetmap.base.files import make_folder, write_text
from forgetmap.base.words import clean
from forgetmap.map.result import Cell, ForgettingMap
from forgetmap.stats.estimate import Estimate, Range
from forgetmap.views import words
from forgetmap.views.figures.style import (
    INK,
    KEPT,
    LONGEST_NAME,
    LOST,
    NEVER,
    PALE,
    SOFT,
    WAYS,
    WON,
    draw_range,
    label_ways,
    save,
    style,
)
from forgetmap.views.tables import maps as tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ENDS = ("low_end", "high_end")
ESTIMATORS = ("lost", "raw", "paper")


def write_figures(result: ForgettingMap, folder: str | Path) -> list[Path]:
    """Write all figures of a map, and its LaTeX table, into a folder; returns the files.

    Example:
        >>> import tempfile, forgetmap
        >>> written = write_figures(forgetmap.demo(), tempfile.mkdtemp())
        >>> sorted(path.name for path in written)  # doctest: +NORMALIZE_WHITESPACE
        ['flow.png', 'flow.svg', 'forest.png', 'forest.svg', 'radar.png', 'radar.svg', 'table.tex']
    """
    make_folder(folder)
    written: list[Path] = []
    with style():
        for draw in (forest, radar, flow):
            written += save(draw(result), folder, draw.__name__)
    table = Path(folder, "table.tex")
    write_text(table, tables.to_latex(result))
    return [*written, table]


def forest(result: ForgettingMap, estimator: str = "lost") -> Figure:
    """What every category lost and gained, side by side, largest loss on top.

    A bar is full up to the low end of the range and pale up to its high end; the line is the 95 %
    interval. The estimators `raw` and `paper` have one end only, and `paper` leaves out cells
    without options.
    """
    from matplotlib import pyplot as plt

    rows = _rows(result)
    figure, axes = plt.subplots(figsize=(6.3, 1.5 + 0.42 * len(rows)))
    for place, (_, cell) in enumerate(reversed(rows)):
        for (way, colour), offset in zip(WAYS, (0.17, -0.17), strict=True):
            found = _found(cell, way, estimator)
            y = place + offset
            if found is None:
                axes.text(0, y, " not defined", color=SOFT, va="center", fontsize=7)
                continue
            draw_range(axes, y, found, colour, height=0.26)
    axes.axvline(100 * result.settings.margin, color=SOFT, lw=0.8, ls=":")
    axes.set_yticks(
        range(len(rows)),
        [f"{clean(name, LONGEST_NAME)}  n={cell.n:,}" for name, cell in reversed(rows)],
    )
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_xlim(left=0)
    axes.set_axisbelow(True)
    axes.grid(axis="y", visible=False)
    shown = "" if estimator == "lost" else f", {estimator}"
    axes.set_xlabel(f"% of items{shown}; lines: 95 % interval; dotted: the margin")
    label_ways(figure, ranges=estimator == "lost" and any(map(_is_range, rows)))
    names = (clean(side.name, LONGEST_NAME) for side in (result.before, result.after))
    axes.set_title(" → ".join(names))
    return figure


def radar(result: ForgettingMap) -> Figure:
    """What was lost (left) and gained (right) by category, each on a scale that fits it.

    The full area reaches to the low end of each range, the pale one to its high end.
    """
    from matplotlib import pyplot as plt

    rows = _groups(result)
    angles = [2 * math.pi * place / len(rows) for place in range(len(rows))]
    around = [*angles, angles[0]]
    figure, panels = plt.subplots(1, 2, figsize=(8.4, 4.4), subplot_kw={"projection": "polar"})
    for axes, (way, colour) in zip(panels, WAYS, strict=True):
        found: list[Range] = [getattr(cell, way) for _, cell in rows]
        sure, most = ([100 * getattr(each, end) for each in found] for end in _ENDS)
        axes.fill(around, [*most, most[0]], color=colour, alpha=0.12, lw=0)
        axes.fill(around, [*sure, sure[0]], color=colour, alpha=PALE, lw=0)
        shown = [100 * each.value for each in found]
        axes.plot(around, [*shown, shown[0]], color=colour, lw=1.6, marker="o", ms=3)
        for angle, each in zip(angles, found, strict=True):
            axes.plot([angle] * 2, [100 * each.low, 100 * each.high], color=colour, lw=3, alpha=0.3)
        axes.set_xticks(angles, [clean(name, 16) for name, _ in rows], fontsize=8, color=INK)
        axes.set_ylim(0, max(1.05 * max(100 * each.high for each in found), 1.0))
        axes.set_rlabel_position(180 / len(rows))
        axes.tick_params(axis="y", labelsize=7)
        axes.spines["polar"].set_visible(False)
        axes.set_title(f"{way}, % of items", color=colour, pad=18)
    return figure


def flow(result: ForgettingMap) -> Figure:
    """What became of the items of each category, as counted: the noise of the runs is in it."""
    from matplotlib import pyplot as plt
    from matplotlib.patches import Patch

    rows = _rows(result)
    figure, axes = plt.subplots(figsize=(6.3, 1.3 + 0.36 * len(rows)))
    kinds = (
        ("n11", "still right", KEPT),
        ("n10", "right → wrong", LOST),
        ("n01", "wrong → right", WON),
        ("n00", "still wrong", NEVER),
    )
    for place, (_, cell) in enumerate(reversed(rows)):
        start = 0.0
        for kind, _, colour in kinds:
            width = 100 * getattr(cell.counts, kind) / cell.n
            axes.barh(place, width, left=start, color=colour, height=0.66, edgecolor="white")
            if width > 5:
                ink = INK if colour == NEVER else "white"
                middle = start + width / 2
                axes.text(
                    middle, place, f"{width:.0f}", ha="center", va="center", fontsize=7, color=ink
                )
            start += width
    axes.set_yticks(range(len(rows)), [clean(name, LONGEST_NAME) for name, _ in reversed(rows)])
    axes.set_xlim(0, 100)
    axes.grid(visible=False)
    axes.set_xlabel("% of items, as counted (means over repeats)")
    handles = [Patch(color=colour, label=label) for _, label, colour in kinds]
    figure.legend(handles=handles, loc="outside upper center", ncols=4, fontsize=8)
    return figure


def _groups(result: ForgettingMap) -> list[tuple[str, Cell]]:
    """Categories, or tasks where there are none, by loss; new ones are marked."""
    names = words.marked_categories(result) or words.marked_tasks(result)
    ordered = words.by_loss(result.categories or result.tasks)
    return [(names[name], cell) for name, cell in ordered]


def _rows(result: ForgettingMap) -> list[tuple[str, Cell]]:
    """The groups, then the old items where there are new ones, then the total."""
    old = [("Old items", result.old)] if words.is_split(result) else []
    return [*_groups(result), *old, ("Total", result.total)]


def _is_range(row: tuple[str, Cell]) -> bool:
    return words.is_range(row[1].lost) or words.is_range(row[1].gained)


def _found(cell: Cell, way: str, estimator: str) -> Range | None:
    """What a cell lost or gained; raw and paper are ranges whose ends are the same."""
    if estimator not in ESTIMATORS:
        raise ValueError(f"estimator {estimator!r}: known are {', '.join(ESTIMATORS)}")
    if estimator == "lost":
        found: Range = getattr(cell, way)
        return found
    both = cell.raw if estimator == "raw" else cell.paper
    if both is None:
        return None
    one: Estimate = getattr(both, way)
    return Range(
        low_end=one.value,
        high_end=one.value,
        low=one.low,
        high=one.high,
        of_known=None,
        basis=cell.lost.basis,
    )
