"""The lineage as one HTML page: graph, heat map, life lines, curves, and the items behind them.

Curves are described as data, which the shared script draws; tables say the same. Everything from
a log is text.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
from markupsafe import Markup

from forgetmap.base.files import write_text
from forgetmap.base.words import clean
from forgetmap.lineage.build import Builder
from forgetmap.lineage.lives import KINDS, MEANINGS, Lives
from forgetmap.lineage.result import DoseCurve, LifeLines, Lineage, StageMap, TrainingRun
from forgetmap.map.result import Cell
from forgetmap.stats.estimate import BASIS_MEANING
from forgetmap.views.html.lineage_graph import graph_rows
from forgetmap.views.html.lineage_items import listed_items
from forgetmap.views.html.shell import CONTROLS, ITEMS, Page, losses_end, packed, series

MOST_GROUPS = 60
"""Rows of the heat map."""
MOST_PATHS = 12
"""Life lines that are in sight at once; the others unfold."""
_ROOMY = 8
"""Steps up to which a cell of the heat map has room for its interval."""
_BANDS = ("kept", "won", "lost", "never")
"""What a life line is drawn of, from the ground up."""
_PAGE = Page(
    "lineage.html",
    ("controls.css", "items.css", "lineage.css"),
    (*CONTROLS, *ITEMS, "lineage/items.js", "lineage/main.js"),
)


def write_page(result: Lineage, builder: Builder, path: str | Path) -> None:
    """Write the page: one HTML file that needs nothing else, not even a network."""
    steps = [step for step in result.comparisons if step.edge]
    items = listed_items(result, builder)
    text = _PAGE.render(
        result=result,
        version=result.forgetmap_version,
        worst=_worst([stage for stage in result.comparisons if stage.against_root]),
        worst_step=_worst(steps),
        basis=_basis(steps),
        graph=_graph(result),
        heat=_heat_map(steps, builder),
        paths=[
            _path(number, lines, builder.lives[tuple(lines.path)])
            for number, lines in enumerate(result.life_lines)
        ],
        most_paths=MOST_PATHS,
        meanings=MEANINGS,
        dose_charts=[_dose_chart(curve) for curve in result.dose_curves],
        run_charts=[_run_chart(run) for run in result.runs],
        listed=len(items["items"]),
        changed=items["changed"],
        items=packed(orjson.dumps(items)),
    )
    write_text(path, text)


def _worst(stages: list[StageMap]) -> StageMap:
    """The comparison that lost most."""
    return max(stages, key=lambda stage: stage.map.old.lost.value)


def _basis(steps: list[StageMap]) -> str:
    """What the numbers of the page are taken from, in words."""
    bases = sorted({step.map.old.lost.basis for step in steps})
    return " and ".join(BASIS_MEANING[basis] for basis in bases)


# --- the graph ----------------------------------------------------------------------------------


def _graph(result: Lineage) -> dict[str, Any]:
    """A row for every step, with what was lost and gained on it and since the root."""
    rows = graph_rows(result.nodes)
    steps = {(one.before, one.after): one.map.old for one in result.comparisons}
    return {
        "rows": [
            {
                "row": row,
                "node": result.node(row.after),
                "step": steps.get((row.before or "", row.after)),
                "since": steps.get((result.root, row.after)),
                "loses": row.before is not None
                and steps[row.before, row.after].lost.value >= result.settings.margin,
            }
            for row in rows
        ],
        "lanes": 1 + max(row.lane for row in rows),
        "widest": losses_end(steps.values()),
    }


# --- where it was lost --------------------------------------------------------------------------


def _heat_map(steps: list[StageMap], builder: Builder) -> dict[str, Any]:
    """Groups by steps, those that lost most in one step first."""
    maps = [step.map.categories if builder.task_map else step.map.tasks for step in steps]
    cells: dict[str, list[Cell | None]] = {
        group: [found.get(group) for found in maps] for group in builder.groups
    }
    most = {
        group: max(cell.lost.value for cell in row if cell)
        for group, row in cells.items()
        if any(row)
    }
    groups = sorted(most, key=lambda group: -most[group])
    return {
        "kind": "category" if builder.task_map else "task",
        "steps": steps,
        "roomy": len(steps) <= _ROOMY,
        "rows": [{"group": group, "cells": cells[group]} for group in groups[:MOST_GROUPS]],
        "left_out": max(0, len(groups) - MOST_GROUPS),
    }


# --- life lines ---------------------------------------------------------------------------------


def _path(number: int, lines: LifeLines, lives: Lives) -> dict[str, Any]:
    """One path: how many items are kept, gained and lost at every stage, against its start."""
    states = lives.states[:, lives.complete]
    start = states[0] == 1
    shares = []
    for now in states:
        known = now == 1
        parts = (start & known, ~start & known, start & ~known, ~start & ~known)
        shares.append([int(part.sum()) for part in parts])
    names = [clean(name, 40) for name in lines.path]
    return {
        "number": number,
        "lines": lines,
        "names": names,
        "counts": shares,
        "steps": [
            [int(((was == a) & (now == b)).sum()) for a in (1, 0) for b in (1, 0)]
            for was, now in pairwise(states)
        ],
        "bands": list(zip(_BANDS, _bands(shares), strict=True)),
        "kinds": [(place, kind) for place, kind in enumerate(KINDS) if lines.counts[kind]],
    }


def _bands(shares: list[list[int]]) -> list[Markup]:
    """The points of each band, in a drawing that is 100 wide and 100 high."""
    last, total = max(1, len(shares) - 1), max(1, sum(shares[0]))
    xs = [100 * stage / last for stage in range(len(shares))]
    below = [0.0] * len(shares)
    bands = []
    for band in range(len(_BANDS)):
        above = [low + counts[band] for low, counts in zip(below, shares, strict=True)]
        upper, lower = (
            [
                (x, round(100 - 100 * height / total, 3))
                for x, height in zip(xs, heights, strict=True)
            ]
            for heights in (above, below)
        )
        points = " ".join(f"{x:.5g},{y:.5g}" for x, y in [*upper, *reversed(lower)])
        bands.append(Markup(points))  # numbers alone, however many
        below = above
    return bands


# --- curves ---------------------------------------------------------------------------------------


def _curves(number: str, *lines: dict[str, Any]) -> dict[str, Any]:
    axes = {"x": {"name": clean(number, 40)}, "y": {"unit": " %"}}
    return {"kind": "lines", **axes, "lines": lines, "showlegend": True}


def _dose_chart(curve: DoseCurve) -> dict[str, Any]:
    doses = [point.dose for point in curve.points]
    notes = [clean(point.checkpoint, 60) for point in curve.points]
    kept, gained = zip(*((point.kept, point.gained) for point in curve.points), strict=True)
    return _curves(
        curve.number,
        series("old knowledge kept", "kept", doses, kept, notes),
        series("new knowledge gained", "won", doses, gained, notes),
    )


def _run_chart(run: TrainingRun) -> dict[str, Any]:
    doses = [
        float(stage) if moment.dose is None else moment.dose
        for stage, moment in enumerate(run.moments, 1)
    ]
    notes = [clean(moment.checkpoint, 60) for moment in run.moments]
    lost = [moment.lost.estimate for moment in run.moments]
    recovered = [moment.recovered for moment in run.moments]
    return _curves(
        run.number or "stage",
        series("lost, against the first checkpoint", "lost", doses, lost, notes),
        series("recovered, of the items lost before", "won", doses, recovered, notes),
    )
