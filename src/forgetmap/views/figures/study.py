"""Figures for papers of a study: leaderboard, heat map, scale, trade-off and stages."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from forgetmap.base.files import make_folder, write_text
from forgetmap.base.words import clean, cut_in_the_middle
from forgetmap.stats.estimate import Estimate
from forgetmap.study.result import (
    Share,
    Slope,
    Stage,
    Standing,
    StudiedPair,
    StudyCell,
    StudyResult,
    TradeOff,
)
from forgetmap.study.slopes import KIND
from forgetmap.study.trade_off import by_start, unbeaten
from forgetmap.study.units import FAMILY, Unit, find_units, in_order, is_positive, learned, show
from forgetmap.views.figures.style import (
    INK,
    LONGEST_NAME,
    NEVER,
    PALE,
    SOFT,
    WAYS,
    draw_range,
    label_ways,
    save,
    style,
)
from forgetmap.views.tables.study import to_latex

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_ROWS = 200
_MOST_COLUMNS = 60
_MOST_NUMBERS = 16
"""Up to so many columns, a cell of the heat map shows its number."""
_NEW = " (new)"
_MOST_SLOPES = 4
"""Over all pairs, within families, within kinds, and one family; the JSON has the others."""
WITHIN = {None: "all pairs", FAMILY: "within families", KIND: "within kinds"}
_TELLING = ("method", "stage", FAMILY)
"""What tells pairs apart where a study has no curves."""
_MARKERS = "osD^vP*X"
_PANELS_ACROSS = 3
_MOST_PANELS = 9


def write_study_figures(result: StudyResult, folder: str | Path) -> list[Path]:
    """Write all figures that a study has something for, and its LaTeX table; returns the files.

    Example:
        >>> import tempfile
        >>> from forgetmap.study.published import published_study
        >>> written = write_study_figures(published_study(), tempfile.mkdtemp())
        >>> [path.stem for path in written if path.suffix == ".svg"]
        ['leaderboard', 'heat_map', 'scale', 'trade_off', 'stages']
    """
    make_folder(folder)
    written: list[Path] = []
    with style():
        for draw in (leaderboard, heat_map, scale, trade_off, stages):
            figure = draw(result)
            if figure is not None:
                written += save(figure, folder, draw.__name__)
    table = Path(folder, "table.tex")
    write_text(table, to_latex(result))
    return [*written, table]


# --- pairs ---------------------------------------------------------------------------------------


def leaderboard(result: StudyResult) -> Figure | None:
    """What every pair lost and gained, the least loss on top, with the ranks it may have."""
    from matplotlib import pyplot as plt

    rows = result.answers.leaderboard[-_MOST_ROWS:]
    if not rows:
        return None
    figure, axes = plt.subplots(figsize=(6.8, 1.6 + 0.3 * len(rows)))
    cells = [result.pair(row.name).old for row in rows]
    for y, cell in enumerate(cells):
        for (way, colour), offset in zip(WAYS, (-0.19, 0.19), strict=True):
            _draw_share(axes, y + offset, getattr(cell, way), colour)
    _name_rows(
        axes,
        [f"{cut_in_the_middle(clean(row.name), LONGEST_NAME)}  {_rank_words(row)}" for row in rows],
    )
    axes.axvline(100 * result.settings.margin, color=SOFT, lw=0.8, ls=":")
    axes.set_xlim(left=0)
    lines = "deviation over runs" if result.source else "95 % interval over items"
    axes.set_xlabel(f"% of items; lines: {lines}; dotted: margin", fontsize=8)
    _head(figure, _title("Rank 1 lost least; in brackets: ranks that cannot be told apart", result))
    label_ways(figure, ranges=any(not cell.lost.exact or not cell.gained.exact for cell in cells))
    return figure


def _rank_words(row: Standing) -> str:
    return f"{row.rank} ({row.best}-{row.worst})" if row.best != row.worst else str(row.rank)


def _head(figure: Figure, words: str) -> None:
    """A title over the whole figure: it may be longer than the axes."""
    figure.suptitle(words, x=0.01, ha="left", fontsize=9)


def _draw_share(axes: Axes, y: float, found: Share, colour: str) -> None:
    draw_range(axes, y, found, colour, height=0.3)
    if found.deviation is not None:
        ends = [100 * (found.value + sign * found.deviation) for sign in (-1, 1)]
        axes.plot(ends, [y, y], color=INK, lw=0.9)


def _name_rows(axes: Axes, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_axisbelow(True)
    axes.grid(axis="y", visible=False)


def _title(words: str, result: StudyResult) -> str:
    """With how many pairs are not in the figure, if any."""
    missing = len(result.pairs) - _MOST_ROWS
    return f"{words}; {missing:,} pairs that lost less are not shown" if missing > 0 else words


def heat_map(result: StudyResult) -> Figure | None:
    """Pairs by categories: what was lost on the left, what was gained on the right, one scale.

    The scale is that of the old skills. Else a new task that went from 0 to 100 % would make every
    loss pale.
    """
    from matplotlib import pyplot as plt
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    pairs = [result.pair(row.name) for row in result.answers.leaderboard[-_MOST_ROWS:]]
    names = list(dict.fromkeys(name for pair in pairs for name in _parts(pair)))
    names.sort(key=_is_new)
    shown = names[:_MOST_COLUMNS]
    if not shown:
        return None
    size = (3.2 + 0.62 * max(len(shown), 5), 2.2 + 0.22 * len(pairs))
    figure, panels = plt.subplots(1, 2, figsize=size, sharey=True)
    grids = [_grid(pairs, shown, way) for way, _ in WAYS]
    old = [place for place, name in enumerate(shown) if not _is_new(name)] or slice(None)
    top = max(float(np.nanmax(grid[:, old])) for grid in grids) or 1.0
    for axes, grid, (way, colour) in zip(panels, grids, WAYS, strict=True):
        colours = LinearSegmentedColormap.from_list(way, ["white", colour])
        axes.set_facecolor(NEVER)
        drawn = axes.pcolormesh(grid, cmap=colours, norm=Normalize(0, top), edgecolors="white")
        _number_cells(axes, grid, top)
        axes.set_xticks(np.arange(len(shown)) + 0.5, [clean(name, 24) for name in shown])
        axes.tick_params(axis="x", rotation=90, labelsize=7)
        axes.grid(visible=False)
        axes.set_title(f"{way}, % of items", color=colour)
        bar = figure.colorbar(drawn, ax=axes, location="bottom", shrink=0.6, aspect=30)
        if bar.solids is not None:
            bar.solids.set_rasterized(False)  # an SVG of lines and areas alone
    labels = [cut_in_the_middle(clean(pair.name), LONGEST_NAME) for pair in pairs]
    panels[0].set_yticks(np.arange(len(pairs)) + 0.5, labels, fontsize=7)
    panels[0].invert_yaxis()
    left = len(names) - len(shown)
    more = f"; {left} columns more are in the CSV" if left else ""
    _head(figure, _title(f"Least loss on top; grey: not measured{more}", result))
    return figure


def _parts(pair: StudiedPair) -> dict[str, StudyCell]:
    """Categories, or tasks where there are none; new ones are marked."""
    if not pair.categories:
        return {_marked(name, pair.new_tasks): cell for name, cell in pair.tasks.items()}
    return {_marked(name, pair.new_categories): cell for name, cell in pair.categories.items()}


def _marked(name: str, new: Sequence[str]) -> str:
    return f"{name}{_NEW}" if name in new else name


def _is_new(name: str) -> bool:
    return name.endswith(_NEW)


def _grid(pairs: Sequence[StudiedPair], names: Sequence[str], way: str) -> np.ndarray:
    found = [_parts(pair) for pair in pairs]
    return np.array(
        [
            [100 * getattr(cells[name], way).value if name in cells else math.nan for name in names]
            for cells in found
        ]
    )


def _number_cells(axes: Axes, grid: np.ndarray, top: float) -> None:
    if grid.shape[1] > _MOST_NUMBERS:
        return
    for (row, column), value in np.ndenumerate(grid):
        if not math.isnan(value):
            ink = "white" if value > 0.6 * top else INK
            place = (column + 0.5, row + 0.5)
            axes.text(*place, f"{value:.0f}", ha="center", va="center", fontsize=6, color=ink)


# --- what the pairs say together -----------------------------------------------------------------


def scale(result: StudyResult) -> Figure | None:
    """Losses along every number that has a slope over all pairs; replicates are one point."""
    from matplotlib import pyplot as plt

    slopes = [slope for slope in result.answers.slopes if slope.within is None]
    if not slopes:
        return None
    figure, panels = plt.subplots(
        1, len(slopes), figsize=(4.6 * len(slopes), 4.2), squeeze=False, sharey=True
    )
    units = find_units(result.pairs)
    kinds = _kinds([unit.attributes.get(FAMILY) for unit in units])
    for axes, slope in zip(panels[0], slopes, strict=True):
        _draw_slope(axes, slope, units, kinds)
        mine = [each for each in result.answers.slopes if each.attribute == slope.attribute]
        axes.set_title("\n".join(map(_slope_words, mine[:_MOST_SLOPES])), fontsize=7)
    panels[0][0].set_ylabel("lost, % of items")
    _head(
        figure,
        "Points of loss each time a number doubles\n(95 % interval; the band is that of all pairs)",
    )
    _label_kinds(figure, kinds)
    return figure


def _draw_slope(
    axes: Axes, slope: Slope, units: Sequence[Unit], kinds: dict[str, tuple[str, str]]
) -> None:
    """Points, the line, and the interval of its slope, turned about the mean."""
    name = slope.attribute
    found = [unit for unit in units if is_positive(unit.attributes.get(name))]
    doses = np.array([float(unit.attributes[name]) for unit in found])
    losses = np.array([100 * unit.lost for unit in found])
    for unit, dose, lost in zip(found, doses, losses, strict=True):
        colour, marker = kinds[_kind(unit.attributes.get(FAMILY))]
        axes.plot(dose, lost, marker, color=colour, ms=4.5, alpha=0.85)
    along = np.linspace(np.log2(doses).min(), np.log2(doses).max(), 50)
    away = 100 * (along - np.log2(doses).mean())
    line, low, high = (
        losses.mean() + away * end
        for end in (slope.per_doubling.value, slope.per_doubling.low, slope.per_doubling.high)
    )
    axes.fill_between(2**along, low, high, color=SOFT, alpha=0.15, lw=0)
    axes.plot(2**along, line, color=INK, lw=1.2)
    axes.set_xscale("log", base=2)
    values = in_order(set(doses.tolist()))
    shown = values[:: max(1, len(values) // 6)]
    axes.set_xticks([float(value) for value in shown], [show(value) for value in shown])
    axes.minorticks_off()
    axes.set_xlabel(f"{clean(name, LONGEST_NAME)}, on the scale of its logarithm")
    axes.set_ylim(0, 1.08 * losses.max())


def _slope_words(slope: Slope) -> str:
    value, low, high = (
        f"{100 * end:+.2f}"
        for end in (slope.per_doubling.value, slope.per_doubling.low, slope.per_doubling.high)
    )
    where = WITHIN.get(slope.within) or f"within {slope.within}"
    held = f", {clean(', '.join(slope.held), 24)} held equal" if slope.held else ""
    return f"{value} ({low} to {high}) {where}{held}"


def trade_off(result: StudyResult) -> Figure | None:
    """What every pair lost against what it learned, and the pairs that no other beats.

    A panel for every start: trainings of other models, or on other new tasks, are no rivals.
    """
    from matplotlib import pyplot as plt

    found = result.answers.trade_off
    if found is None or len(result.pairs) < 2:
        return None
    named = {name for pair in result.pairs for name in pair.attributes}
    by = found.attribute or next((name for name in _TELLING if name in named), "")
    kinds = _kinds([pair.attributes.get(by) for pair in result.pairs])
    starts = _by_start(found, result.pairs)
    across = min(len(starts), _PANELS_ACROSS)
    down = math.ceil(len(starts) / across)
    size = (6.3, 4.6) if len(starts) == 1 else (3.4 * across, 1.2 + 2.9 * down)
    figure, panels = plt.subplots(
        down, across, figsize=size, squeeze=False, sharex=True, sharey=True
    )
    gains = 100 * learned(result.pairs)
    on = "the new tasks, change" if found.learned_by == "new tasks" else "gained on old tasks"
    for place, (start, members) in enumerate(starts.items()):
        axes = panels.flat[place]
        _draw_trade_off(axes, [result.pairs[n] for n in members], gains[members], by, kinds)
        axes.set_title(cut_in_the_middle(clean(start), LONGEST_NAME), fontsize=8)
        if place % across == 0:
            axes.set_ylabel("lost, % of items")
        if place + across >= len(starts):  # nothing below
            axes.tick_params(labelbottom=True)
            axes.set_xlabel(
                f"learned: {on} in %" if len(starts) > 1 else f"learned: {on} in % of items"
            )
    for axes in panels.flat[len(starts) :]:
        axes.set_visible(False)
    rivals = "no other pair" if len(starts) == 1 else "no other pair of the panel"
    lines = "" if result.source else "; lines: 95 % interval over items"
    _head(figure, f"Ringed: {rivals} lost less and learned more{lines}")
    _label_kinds(figure, kinds)
    return figure


def _by_start(found: TradeOff, pairs: Sequence[StudiedPair]) -> dict[str, list[int]]:
    """The pairs by what they start from; all together without curves, or with too many starts."""
    starts = by_start(pairs) if found.curves else {}
    if 1 < len(starts) <= _MOST_PANELS:
        return starts
    return {"": list(range(len(pairs)))}


def _draw_trade_off(
    axes: Axes,
    pairs: Sequence[StudiedPair],
    gains: np.ndarray,
    by: str,
    kinds: dict[str, tuple[str, str]],
) -> None:
    losses = 100 * np.array([pair.old.lost.value for pair in pairs])
    for pair, x, y in zip(pairs, gains, losses, strict=True):
        colour, marker = kinds[_kind(pair.attributes.get(by))]
        sure: Estimate | None = pair.old.lost.estimate
        if sure is not None:
            axes.plot([x, x], [100 * sure.low, 100 * sure.high], color=colour, lw=0.8, alpha=PALE)
        axes.plot(x, y, marker, color=colour, ms=5, alpha=0.85)
    best = unbeaten(losses, gains)
    front = sorted(zip(gains[best], losses[best], strict=True))
    for x, y in front:
        axes.plot(x, y, "o", mfc="none", mec=INK, ms=9, mew=0.8)
    axes.step(*zip(*front, strict=True), where="pre", color=INK, lw=0.9, ls="--")


def stages(result: StudyResult) -> Figure | None:
    """Mean losses and gains of the stages of post-training, with intervals over pairs."""
    from matplotlib import pyplot as plt

    found = result.answers.stages.stages if result.answers.stages else []
    if not found:
        return None
    figure, axes = plt.subplots(figsize=(6.8, 1.6 + 0.5 * len(found)))
    for y, stage in enumerate(found):
        for (value, sure, colour), offset in zip(_means(stage), (-0.19, 0.19), strict=True):
            axes.barh(y + offset, 100 * value, height=0.3, color=colour)
            if sure is not None:
                ends = [100 * sure.low, 100 * sure.high]
                axes.plot(ends, [y + offset] * 2, color=INK, lw=0.9)
    _name_rows(axes, [f"{stage.name}  n={len(stage.pairs)}" for stage in found])
    axes.axvline(0, color=SOFT, lw=0.8)
    axes.set_xlabel(f"mean % of items; lines: 95 % interval over {found[0].unit}")
    label_ways(figure, ranges=False)
    return figure


def _means(stage: Stage) -> Iterator[tuple[float, Estimate | None, str]]:
    sure = (stage.lost_interval, stage.gained_interval)
    for value, interval, (_, colour) in zip((stage.lost, stage.gained), sure, WAYS, strict=True):
        yield value, interval, colour


# --- colours and marks for the values of an attribute --------------------------------------------


_COLOURS = (INK, "#6b4fa0", "#2e7d6b", "#8a6d1f", "#9c3d6e")


def _kind(value: float | str | None) -> str:
    return "" if value is None else show(value)


def _kinds(values: Sequence[float | str | None]) -> dict[str, tuple[str, str]]:
    """A colour and a mark for every value. Orange and blue mean lost and gained, so none is so."""
    ordered = [show(value) for value in in_order({v for v in values if v is not None})]
    kinds = {
        name: (
            _COLOURS[place % len(_COLOURS)],
            _MARKERS[place % len(_MARKERS)],
        )
        for place, name in enumerate(dict.fromkeys(ordered))
    }
    return {**kinds, "": (SOFT, "o")} if None in values else kinds


def _label_kinds(figure: Figure, kinds: dict[str, tuple[str, str]]) -> None:
    from matplotlib.lines import Line2D

    if len(kinds) < 2:
        return
    handles = [
        Line2D([], [], ls="", marker=marker, color=colour, label=clean(name, 24) or "not told")
        for name, (colour, marker) in kinds.items()
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, fontsize=7)
