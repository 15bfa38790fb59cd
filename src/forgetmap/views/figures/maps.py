"""Figures for papers: forest plot, radar pair and flow of a map, as SVG and PNG, and its table."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forgetmap.base.files import make_folder, write_text
from forgetmap.base.words import clean
from forgetmap.map.result import ESTIMATORS, Cell, ForgettingMap
from forgetmap.views.figures.style import INK, KEPT, LOST, NEVER, SOFT, WON, save, style
from forgetmap.views.tables import maps as tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LONGEST_NAME = 40
_TRANSITIONS = (("forgetting", "forgotten", LOST), ("backward_transfer", "gained", WON))


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


def forest(result: ForgettingMap, estimator: str | None = None) -> Figure:
    """Forgetting and backward transfer of every category with intervals, largest loss on top.

    By default each cell shows its headline estimator, as everywhere else; naming one (raw, paper,
    latent, excess, soft) shows that, and leaves out cells in which it is not defined.
    """
    from matplotlib import pyplot as plt

    rows = _rows(result)
    figure, axes = plt.subplots(figsize=(6.3, 1.1 + 0.42 * len(rows)))
    for place, (name, cell) in enumerate(reversed(rows)):
        for (transition, _, colour), offset in zip(_TRANSITIONS, (0.14, -0.14), strict=True):
            share = _estimate(cell, transition, estimator)
            y = place + offset
            if share is None:
                axes.text(0, y, " not defined", color=SOFT, va="center", fontsize=7)
                continue
            axes.plot([100 * share.low, 100 * share.high], [y, y], color=colour, lw=1.6)
            sure = transition == "forgetting" and cell.verdict.forgetting == "forgot"
            axes.plot(
                100 * share.value,
                y,
                marker="D" if name == "Total" else "o",
                color=colour,
                mfc=colour if sure or transition != "forgetting" else "white",
                ms=5,
            )
    axes.axvline(0, color=SOFT, lw=0.8)
    axes.set_yticks(
        range(len(rows)),
        [f"{clean(name, _LONGEST_NAME)}  n={cell.n:,}" for name, cell in reversed(rows)],
    )
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.grid(axis="y", visible=False)
    shown = estimator or " / ".join(sorted({cell.headline for _, cell in rows}))
    axes.set_xlabel(f"% of items, {shown}, 95 % interval")
    _legend(axes)
    names = (clean(side.name, _LONGEST_NAME) for side in (result.before, result.after))
    axes.set_title(" → ".join(names))
    return figure


def radar(result: ForgettingMap) -> Figure:
    """Forgetting (left) and backward transfer (right) by category, each on a scale that fits it.

    A category without a value leaves a gap in the line; it is not drawn as zero. The centre is
    zero: estimates below it (noise) lie in the centre.
    """
    from matplotlib import pyplot as plt

    rows = _rows(result)[:-1] or _rows(result)
    values = {
        transition: [_estimate(cell, transition, None) for _, cell in rows]
        for transition, _, _ in _TRANSITIONS
    }
    angles = [2 * math.pi * place / len(rows) for place in range(len(rows))]
    figure, panels = plt.subplots(1, 2, figsize=(8.4, 4.4), subplot_kw={"projection": "polar"})
    for axes, (transition, label, colour) in zip(panels, _TRANSITIONS, strict=True):
        shown = [
            math.nan if estimate is None else max(0.0, 100 * estimate.value)
            for estimate in values[transition]
        ]
        top = max((100 * estimate.high for estimate in values[transition] if estimate), default=0.0)
        axes.plot([*angles, angles[0]], [*shown, shown[0]], color=colour, lw=1.6, marker="o", ms=3)
        for angle, estimate in zip(angles, values[transition], strict=True):
            if estimate:
                ends = [max(0.0, 100 * end) for end in (estimate.low, estimate.high)]
                axes.plot([angle, angle], ends, color=colour, lw=3, alpha=0.3)
        axes.set_xticks(angles, [clean(name, 16) for name, _ in rows], fontsize=8, color=INK)
        axes.set_ylim(0, max(1.05 * top, 1.0))
        axes.set_rlabel_position(180 / len(rows))
        axes.tick_params(axis="y", labelsize=7)
        axes.spines["polar"].set_visible(False)
        axes.set_title(f"{label}, % of items", color=colour, pad=18)
    return figure


def flow(result: ForgettingMap) -> Figure:
    """What became of the items of each category: retained, forgotten, gained, never known."""
    from matplotlib import pyplot as plt
    from matplotlib.patches import Patch

    rows = _rows(result)
    figure, axes = plt.subplots(figsize=(6.3, 1.2 + 0.36 * len(rows)))
    kinds = (
        ("n11", "retained", KEPT),
        ("n10", "forgotten", LOST),
        ("n01", "gained", WON),
        ("n00", "never known", NEVER),
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
    axes.set_yticks(range(len(rows)), [clean(name, _LONGEST_NAME) for name, _ in reversed(rows)])
    axes.set_xlim(0, 100)
    axes.grid(visible=False)
    axes.set_xlabel("% of items (means over repeats)")
    handles = [Patch(color=colour, label=label) for _, label, colour in kinds]
    axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncols=4, fontsize=8)
    return figure


def _rows(result: ForgettingMap) -> list[tuple[str, Cell]]:
    """Categories (tasks, where there are none) by loss, then the total."""
    cells = result.categories or result.tasks
    ordered = sorted(cells.items(), key=lambda pair: -pair[1].forgot.value)
    return [*ordered, ("Total", result.total)]


def _estimate(cell: Cell, transition: str, estimator: str | None) -> Any:
    if estimator is not None and estimator not in ESTIMATORS:
        raise ValueError(f"estimator {estimator!r}: known are {', '.join(ESTIMATORS)}")
    side = getattr(cell, transition)
    return side.get(estimator) if estimator else side.get(cell.headline) or side.raw


def _legend(axes: Axes) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=LOST, marker="o", label="forgotten (filled: sure)"),
        Line2D([], [], color=WON, marker="o", label="gained"),
    ]
    axes.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2)
