"""The lineage as one HTML page: graph, heat map, flow, curves, and the items behind them.

Charts are described as data, which the shared script draws; tables say the same. Everything from
a log is text.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from forgetmap.base.files import write_text
from forgetmap.base.words import clean, percent
from forgetmap.lineage.build import Builder
from forgetmap.lineage.lives import KINDS, MEANINGS, Lives
from forgetmap.lineage.result import DoseCurve, LifeLines, Lineage, TrainingRun
from forgetmap.views.html.shell import Page, series

PER_LIST = 10
"""Items shown behind one cell of the heat map, one kind of life line, one merge."""
MOST_ITEMS = 600
"""Items shown in all; a page must stay quick to open."""
MOST_GROUPS = 60
"""Rows of the heat map."""
_LOSING = 0.02
"""Share lost from which an edge is drawn in the colour of loss."""
_MOST_TICKS = 8
"""Doses that are all written on the axis of a curve."""
_STAGE_WIDTH = 190
"""Pixels between two stages of a flow."""
_PAGE = Page("lineage.html", ("lineage.css",), ("shared/start.js",))


def write_page(result: Lineage, builder: Builder, path: str | Path) -> None:
    """Write the page: one HTML file that needs nothing else, not even a network."""
    lists = _Lists(builder)
    text = _PAGE.render(
        result=result,
        version=result.forgetmap_version,
        graph=_graph(result),
        heat=_heat_map(result, builder, lists),
        paths=[
            _path(number, lines, builder.lives[tuple(lines.path)], lists)
            for number, lines in enumerate(result.life_lines)
        ],
        meanings=MEANINGS,
        lost_by_merging=[
            lists.of([item.number for item in merge.listed]) for merge in result.merges
        ],
        dose_charts=[_dose_chart(curve) for curve in result.dose_curves],
        run_charts=[_run_chart(run) for run in result.runs],
        forgotten_often=[
            lists.of([item.number for item in run.most_forgotten if item.times_forgotten > 1])
            for run in result.runs
        ],
        items=list(_items(builder, lists)),
    )
    write_text(path, text)


class _Lists:
    """Lists of items that lead to each; collects which items the page has to show."""

    def __init__(self, builder: Builder) -> None:
        self.outcomes = builder.outcomes
        self.shown: set[int] = set()

    def of(self, numbers: list[int]) -> dict[str, Any] | None:
        """As many items as there is room for; None where there are none."""
        if not numbers:
            return None
        first = numbers[:PER_LIST]
        chosen = [i for i in first if i in self.shown or len(self.shown) < MOST_ITEMS]
        self.shown.update(chosen)
        tasks = self.outcomes.tasks
        entries = [{"number": i, "task": tasks[self.outcomes.task[i]]} for i in chosen]
        return {"entries": entries, "more": len(numbers) - len(chosen)}


# --- the graph ----------------------------------------------------------------------------------


def _graph(result: Lineage) -> dict[str, Any]:
    """The checkpoints from left to right, each at its (column, lane)."""
    place = _places(result)
    nodes = [
        {
            "name": clean(node.name),
            "note": f"{percent(node.known / node.items) if node.items else 'nothing'} known",
            "at": place[node.name],
            "isRoot": not node.parents,
        }
        for node in result.nodes
    ]
    edges = [
        {
            "from": place[step.before],
            "to": place[step.after],
            "share": step.map.old.lost.value,
            "shade": "lost" if step.map.old.lost.value >= _LOSING else "kept",
        }
        for step in result.comparisons
        if step.edge
    ]
    return {"kind": "graph", "nodes": nodes, "edges": edges}


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


# --- where it was lost --------------------------------------------------------------------------


def _heat_map(result: Lineage, builder: Builder, lists: _Lists) -> dict[str, Any]:
    edges = [step for step in result.comparisons if step.edge]
    maps = [step.map.categories if builder.task_map else step.map.tasks for step in edges]
    groups = sorted(
        (group for group in builder.groups if any(group in cells for cells in maps)),
        key=lambda group: -max(cells[group].lost.value for cells in maps if group in cells),
    )
    rows, listed = [], []
    for number, group in enumerate(groups[:MOST_GROUPS]):
        row: list[dict[str, Any] | None] = []
        for column, (step, cells) in enumerate(zip(edges, maps, strict=True)):
            if group not in cells:
                row.append(None)
                continue
            items = _lost(builder, step.before, step.after, group)
            cell = {
                "range": cells[group].lost,
                "place": f"lost-{column}-{number}",
                "title": f"{step.before} → {step.after}, {group}",
                "count": len(items),
                "lost": lists.of(items),
            }
            row.append(cell)
            if cell["lost"]:
                listed.append(cell)
        rows.append({"group": group, "cells": row})
    return {
        "kind": "category" if builder.task_map else "task",
        "edges": edges,
        "rows": rows,
        "left_out": max(0, len(groups) - MOST_GROUPS),
        "lists": listed,
    }


def _lost(builder: Builder, before: str, after: str, group: str) -> list[int]:
    was, now = (builder.states[builder.outcomes.index(name)] for name in (before, after))
    inside = builder.group == builder.groups.index(group)
    numbers: list[int] = np.flatnonzero((was == 1) & (now == 0) & inside).tolist()
    return numbers


# --- life lines ---------------------------------------------------------------------------------


def _path(number: int, lines: LifeLines, lives: Lives, lists: _Lists) -> dict[str, Any]:
    states = lives.states[:, lives.complete]
    steps = [
        [int(((was == a) & (now == b)).sum()) for a in (1, 0) for b in (1, 0)]
        for was, now in pairwise(states)
    ]
    names = [clean(name, 40) for name in lines.path]
    flow = {
        "kind": "flow",
        "ends": [(f"{name}, known", "not known") for name in names],
        "steps": steps,
        "words": ("stayed known", "lost", "gained", "stayed not known"),
        "width": _STAGE_WIDTH * max(2, len(names)),
    }
    kinds = [
        {
            "place": f"life-{number}-{place}",
            "title": f"{kind}: {lines.counts[kind]:,} items",
            "list": lists.of(lives.of_kind(kind).tolist()),
        }
        for place, kind in enumerate(KINDS)
        if lines.counts[kind] and kind not in ("kept", "never known")
    ]
    return {
        "lines": lines,
        "names": names,
        "place": f"flow-chart-{number}",
        "label": f"Flow of {states.shape[1]:,} items from {names[0]} to {names[-1]}",
        "flow": flow,
        "kinds": kinds,
    }


# --- curves ---------------------------------------------------------------------------------------


def _curves(number: str, doses: list[float], *lines: dict[str, Any]) -> dict[str, Any]:
    ticks = sorted(set(doses)) if len(doses) <= _MOST_TICKS else None
    axes = {"x": {"name": clean(number, 40), "ticks": ticks}, "y": {"unit": " %"}}
    return {"kind": "lines", **axes, "lines": lines, "showlegend": True}


def _dose_chart(curve: DoseCurve) -> dict[str, Any]:
    doses = [point.dose for point in curve.points]
    notes = [clean(point.checkpoint, 60) for point in curve.points]
    kept, gained = zip(*((point.kept, point.gained) for point in curve.points), strict=True)
    return _curves(
        curve.number,
        doses,
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
        doses,
        series("lost, against the first checkpoint", "lost", doses, lost, notes),
        series("recovered, of the items lost before", "won", doses, recovered, notes),
    )


# --- the items ----------------------------------------------------------------------------------


def _items(builder: Builder, lists: _Lists) -> Iterator[dict[str, Any]]:
    """Every item that a list names, with what each checkpoint answered."""
    numbers = np.array(sorted(lists.shown), np.int64)
    if not len(numbers):
        return
    logs = builder.outcomes.logs
    names, texts = logs.item_names(numbers), logs.item_texts(numbers)
    words = {"1": "known", "0": "not known", "?": "not scored"}
    for item in numbers.tolist():
        states = ["?" if state < 0 else str(state) for state in builder.states[:, item].tolist()]
        name, answers = names[item], texts.get(item, {})
        prompt = next((text.prompt for text in answers.values() if text.prompt), None)
        yield {
            "number": item,
            "states": "".join(states),
            "task": name.task,
            "name": prompt or name.item_ref or name.item,
            "prompt": prompt,
            "target": next((text.target for text in answers.values() if text.target), None),
            "sides": [
                {"checkpoint": checkpoint, "word": words[state], "text": answers.get(number)}
                for number, (checkpoint, state) in enumerate(
                    zip(builder.outcomes.names, states, strict=True)
                )
            ],
        }
