"""How many items were lost by each cause, in every cell of a map."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import pyarrow as pa

from forgetmap.map.causes import CAUSES, UNKNOWN
from forgetmap.map.result import Cell, ForgettingMap
from forgetmap.stats.estimate import share


class Tally(NamedTuple):
    """The losses of some tasks by cause."""

    items: Counter[str]
    """Cause -> items that are right less often than before."""
    weights: Counter[str]
    """Cause -> their part of raw forgetting: the sum of p (1 - q)."""


def count_causes(
    result: ForgettingMap, changed: Iterable[pa.Table], churned: Mapping[str, int] | None
) -> ForgettingMap:
    """The same map with the causes of the losses in every cell, and the churn.

    Args:
        result: The map.
        changed: The items that changed, with their causes.
        churned: By task, items that are wrong on both sides and got another wrong answer.
    """
    tallies = {task: Tally(Counter(), Counter()) for task in result.tasks}
    for table in changed:
        columns = (table[name].to_pylist() for name in ("task", "transition", "cause"))
        shares = (table[name].to_pylist() for name in ("before", "after"))
        for task, transition, cause, p, q in zip(*columns, *shares, strict=True):
            if transition == "forgotten" and task in tallies:
                tallies[task].items[cause or UNKNOWN] += 1
                tallies[task].weights[cause or UNKNOWN] += p * (1 - q)
    groups: dict[str, list[str]] = {}
    for task in result.tasks:
        groups.setdefault(result.task_categories.get(task, ""), []).append(task)

    def counted(cell: Cell, tasks: Iterable[str]) -> Cell:
        return _with_tallies(cell, [tallies[task] for task in tasks], churned, tasks)

    new = [task for task in tallies if task in result.settings.new]
    old = [task for task in tallies if task not in result.settings.new]
    return result.model_copy(
        update={
            "total": counted(result.total, list(tallies)),
            "old": counted(result.old, old or new),
            "new": result.new and counted(result.new, new),
            "categories": {
                name: counted(cell, groups.get(name, []))
                for name, cell in result.categories.items()
            },
            "tasks": {name: counted(cell, [name]) for name, cell in result.tasks.items()},
        }
    )


def _with_tallies(
    cell: Cell, tallies: list[Tally], churned: Mapping[str, int] | None, tasks: Iterable[str]
) -> Cell:
    items, weights = Counter[str](), Counter[str]()
    for tally in tallies:
        items += tally.items
        weights += tally.weights
    names = [name for name in (*CAUSES, UNKNOWN) if items[name]]
    lost = cell.raw.lost.value * cell.n
    return cell.model_copy(
        update={
            "causes": {name: items[name] for name in names},
            "without": {name: share(lost - weights[name], cell.n) for name in names},
            "churn": None if churned is None else sum(churned.get(task, 0) for task in tasks),
        }
    )
