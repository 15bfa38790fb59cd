"""Figures of merging: how far the weights moved, and the merges of a sweep."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from forgetmap.base.words import clean
from forgetmap.mitigate.merge.sweep import Point, Sweep
from forgetmap.mitigate.merge.weight_drift import WeightDrift
from forgetmap.views.figures.style import INK, KEPT, LOST, SOFT, WON

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_drift(result: WeightDrift) -> Figure:
    """The share by which each module of each layer moved, and the intruders of each layer."""
    from matplotlib import pyplot as plt

    inner = [row for row in result.tensors if row.layer is not None and row.relative < math.inf]
    layers, modules = list(result.layers), list(dict.fromkeys(row.module for row in inner))
    values = np.full((len(modules), len(layers)), math.nan)
    for row in inner:
        values[modules.index(row.module), layers.index(str(row.layer))] = 100 * row.relative
    figure, (top, bottom) = plt.subplots(
        2, 1, figsize=(6.8, 2.2 + 0.24 * len(modules)), height_ratios=(max(2, len(modules)), 3)
    )
    image = top.imshow(values, aspect="auto", cmap="Oranges", vmin=0)
    top.set_yticks(range(len(modules)), [clean(name, 30) for name in modules], fontsize=7)
    top.grid(visible=False)
    top.set_title(f"{clean(result.before, 40)} → {clean(result.after, 40)}: % of the norm moved")
    figure.colorbar(image, ax=top)
    places = range(len(layers))
    strange = [result.layers[layer].intruders or 0 for layer in layers]
    ranks = [result.layers[layer].effective_rank or 0.0 for layer in layers]
    bottom.set_axisbelow(True)
    bottom.bar(places, strange, color=LOST, width=0.6)
    bottom.set_ylabel("intruders", color=LOST)
    bottom.set_xlabel("layer")
    twin = bottom.twinx()
    twin.plot(places, ranks, color=WON, marker="o", ms=3)
    twin.set_ylabel("effective rank", color=WON)
    twin.set_ylim(0, 1.15 * max([*ranks, 1.0]))
    twin.grid(visible=False)
    for axes in (top, bottom):
        axes.set_xlim(-0.5, len(layers) - 0.5)
        axes.tick_params(labelcolor=INK)
    return figure


def draw_sweep(result: Sweep) -> Figure:
    """What is lost of the old against what is won; the points that none beats are joined."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(5.6, 4.4))
    best = sorted(_place(point) for point in result.points if point.is_pareto)
    axes.plot(*zip(*best, strict=True), color=SOFT, lw=1, ls="--", zorder=1)
    for point in result.points:
        _draw_point(axes, point, point.weight == result.chosen)
    what = "accuracy on the new tasks" if result.new_tasks else "gained of the old items"
    axes.set_xlabel(f"{what}, % (95 % interval)")
    axes.set_ylabel("lost of the old items, % (95 % interval)")
    axes.set_ylim(bottom=0)
    axes.set_title(f"{clean(result.before, 30)} → {clean(result.after, 30)}, {result.method}")
    return figure


def _place(point: Point) -> tuple[float, float]:
    """Where a point is drawn, in percent: what it wins, and the most that it can have lost."""
    won = point.won + (point.new.before if point.new else 0.0)
    return 100 * won, 100 * point.lost.high_end


def _draw_point(axes: Axes, point: Point, is_chosen: bool) -> None:
    x, y = _place(point)
    colour = LOST if is_chosen else WON if point.is_pareto else KEPT
    axes.errorbar(
        x,
        y,
        xerr=_bar(x, *_won_interval(point)),
        yerr=_bar(y, 100 * point.lost.low, 100 * point.lost.high),
        fmt="D" if point.parent else "o",
        color=colour,
        mfc=colour if point.is_pareto or is_chosen else "white",
        elinewidth=0.8,
        ms=5,
    )
    axes.annotate(
        point.parent or f"{point.weight:g}",
        (x, y),
        textcoords="offset points",
        xytext=(5, 4),
        fontsize=7,
        color=INK,
    )


def _won_interval(point: Point) -> tuple[float, float]:
    """The interval of what a point wins, in percent, on the scale of `_place`."""
    if point.new:
        before, change = point.new.before, point.new.change
        return 100 * (before + change.low), 100 * (before + change.high)
    return (100 * point.gained.low, 100 * point.gained.high) if point.gained else (0.0, 0.0)


def _bar(value: float, low: float, high: float) -> list[list[float]]:
    return [[max(0.0, value - low)], [max(0.0, high - value)]]
