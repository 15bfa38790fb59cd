"""What the page of a study draws, as plain data: small for a hundred pairs of a hundred tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forgetmap.base.words import percent
from forgetmap.map.result import FORGETTING_WORDS, NET_WORDS
from forgetmap.study.file import Attribute
from forgetmap.study.result import StudiedPair, StudyCell, StudyResult
from forgetmap.views.html.cells import CELL, cell_row
from forgetmap.views.html.shell import HEAT_STEPS

_MOST_ORDERED = 400
"""Rows up to which neighbours in a cluster are also put in their best order."""


def page_data(
    result: StudyResult, pages: Mapping[str, str], lives: dict[str, Any] | None, no_lives: str
) -> dict[str, Any]:
    """All that the page shows; `pages` has the address of the page of each pair that has one."""
    standings = {row.name: row for row in result.answers.leaderboard}
    columns = {
        "category": _columns([pair.categories for pair in result.pairs]),
        "task": _columns([pair.tasks for pair in result.pairs]),
    }
    cells = {
        "category": [
            [pair.categories.get(c) for c in columns["category"]] for pair in result.pairs
        ],
        "task": [[pair.tasks.get(task) for task in columns["task"]] for pair in result.pairs],
    }
    return {
        "headline": result.headline(),
        "hidden": hidden_losses(result),
        "margin": result.settings.margin,
        "source": result.source,
        "settings": result.settings.model_dump(),
        "words": {"forgetting": FORGETTING_WORDS, "net": NET_WORDS},
        "marks": result.marks,
        "cell": CELL,
        "steps": HEAT_STEPS,
        "attributes": _attributes(result.pairs),
        "pairs": [
            _pair(pair, pages.get(pair.name))
            | {"standing": standings[pair.name].model_dump() if pair.name in standings else None}
            for pair in result.pairs
        ],
        "columns": columns,
        "taught": {
            "category": _taught([(pair.categories, pair.new_categories) for pair in result.pairs]),
            "task": _taught([(pair.tasks, pair.new_tasks) for pair in result.pairs]),
        },
        "cells": {by: [[cell_row(c) for c in row] for row in rows] for by, rows in cells.items()},
        "orders": {by: _orders(rows) for by, rows in cells.items()},
        "answers": result.answers.model_dump(mode="json"),
        "failures": [failure.model_dump() for failure in result.failures],
        "warnings": result.warnings,
        "lives": lives,
        "no_lives": no_lives,
    }


def hidden_losses(result: StudyResult) -> str:
    """The sentence about pairs whose average hides what they lost; empty where there are none."""
    judged = [pair.old for pair in result.pairs if pair.old.verdict]
    risen = [
        cell
        for cell in judged
        if cell.verdict and cell.verdict.forgetting == "lost" and cell.change.value >= 0
    ]
    if not risen:
        return ""
    who = "1 pair the average" if len(risen) == 1 else f"{len(risen)} pairs the average"
    most = max(cell.lost.value for cell in risen)
    return f"In {who} did not fall, and yet skills were surely lost: up to {percent(most)}."


def _columns(cells: Sequence[Mapping[str, StudyCell]]) -> list[str]:
    return list(dict.fromkeys(name for row in cells for name in row))


def _taught(pairs: Sequence[tuple[Mapping[str, StudyCell], list[str]]]) -> dict[str, str]:
    """What to write behind the name of a column that a training was meant to teach."""
    new = {name for _, names in pairs for name in names}
    everywhere = {n for n in new if all(n in names for cells, names in pairs if n in cells)}
    return {name: " (new)" if name in everywhere else " (new in some)" for name in sorted(new)}


def _attributes(pairs: Sequence[StudiedPair]) -> list[dict[str, Any]]:
    """The attributes with their values, numbers in order."""
    found: dict[str, dict[Attribute, None]] = {}
    for pair in pairs:
        for name, value in pair.attributes.items():
            found.setdefault(name, {})[value] = None
    return [
        {
            "name": name,
            "values": sorted(values, key=lambda value: (isinstance(value, str), value)),
            "numeric": not any(isinstance(value, str) for value in values),
        }
        for name, values in found.items()
    ]


def _pair(pair: StudiedPair, page: str | None) -> dict[str, Any]:
    coverage = pair.coverage
    return {
        "name": pair.name,
        "attributes": pair.attributes,
        "before": pair.before,
        "after": pair.after,
        "old": cell_row(pair.old),
        "new": cell_row(pair.new) if pair.new else None,
        "compared": coverage.matched if coverage else None,
        "items": max(coverage.items_before, coverage.items_after) if coverage else None,
        "confounds": pair.confounds,
        "warnings": pair.warnings,
        "drift": pair.drift.model_dump(mode="json") if pair.drift else None,
        "page": page,
    }


# --- what is alike stands together ---------------------------------------------------------------


def _orders(rows: list[list[StudyCell | None]]) -> dict[str, list[int]]:
    """The rows and the columns so that those which lost and gained alike are neighbours."""
    if not rows or not rows[0]:
        return {"pairs": list(range(len(rows))), "columns": []}
    both = np.array(
        [[(c.lost.value, c.gained.value) if c else (np.nan, np.nan) for c in row] for row in rows]
    )
    pairs, columns = both.shape[:2]
    return {
        "pairs": clustered(both.reshape(pairs, -1)),
        "columns": clustered(both.transpose(1, 0, 2).reshape(columns, -1)),
    }


def clustered(values: NDArray[np.float64]) -> list[int]:
    """The order of the rows along the tree of a hierarchical clustering (average linkage).

    A value that is not known counts as the mean of its column.

    Example:
        >>> order = clustered(np.array([[0.0], [9.0], [0.1], [9.2]]))
        >>> sorted(order[:2]), sorted(order[2:])
        ([0, 2], [1, 3])
    """
    from scipy.cluster.hierarchy import leaves_list, linkage

    if len(values) < 3:
        return list(range(len(values)))
    known = ~np.isnan(values)
    sums = np.where(known, values, 0.0).sum(axis=0)
    means = sums / np.maximum(known.sum(axis=0), 1)
    filled = np.where(known, values, means)
    tree = linkage(filled, "average", optimal_ordering=len(values) <= _MOST_ORDERED)
    return [int(place) for place in leaves_list(tree)]
