"""What a log holds: harness, models, tasks, items, repeats, metrics, problems."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from forgetmap.base.database import connect, query
from forgetmap.readers.framework import ReadOptions
from forgetmap.readers.registry import read
from forgetmap.stats.tests import by_luck, holm

_COLUMNS = ("model", "task", "metric", "item", "item_ref", "repeat", "score", "k", "status")


class ModelSummary(BaseModel):
    """One model of a log, with its settings."""

    name: str
    settings: dict[str, Any]


class TaskSummary(BaseModel):
    """One task under one metric."""

    model: str
    task: str
    metric: str
    items: int
    repeats: int
    mean_score: float | None
    k: str | None
    chance: float | None = None
    """Score of a guesser, where every item has options."""
    by_luck: float | None = None
    """How likely a guesser scores as high or higher."""
    statuses: dict[str, int]


class LogSummary(BaseModel):
    """What a log holds."""

    path: str
    harness: str
    version: str | None
    models: list[ModelSummary]
    tasks: list[TaskSummary]
    warnings: list[str]


def show(
    path: str | Path, *, model: str | None = None, how: ReadOptions | None = None
) -> LogSummary:
    """Summarise the log at `path`.

    Example:
        >>> import tempfile
        >>> log = Path(tempfile.mkdtemp()) / "run.csv"
        >>> _ = log.write_text("task,question,correct\\nsums,2+2?,1\\nsums,2+3?,0\\n")
        >>> [(row.task, row.items, row.mean_score) for row in show(log).tasks]
        [('sums', 2, 0.5)]
    """
    samples = read(path, how)
    if model is not None:
        samples = samples.only(model)
    with connect() as connection:
        connection.register("stream", samples.to_reader(_COLUMNS))
        rows = query(
            connection,
            """SELECT model, task, metric, count(DISTINCT coalesce(item, hash(item_ref))),
                      count(DISTINCT repeat), avg(score), min(k), max(k), histogram(status),
                      CASE WHEN count(k) = count(*) THEN avg(1.0 / nullif(k, 0)) END
               FROM stream GROUP BY model, task, metric ORDER BY model, task, metric""",
            [samples.data],
        )
    names = sorted({row[0] for row in rows})
    return LogSummary(
        path=str(path).encode("utf-8", "replace").decode(),
        harness=samples.meta.harness,
        version=samples.meta.version,
        models=[
            ModelSummary(name=name, settings=samples.meta.settings.get(name, {})) for name in names
        ],
        tasks=[
            TaskSummary(
                model=name,
                task=task,
                metric=metric,
                items=items,
                repeats=repeats,
                mean_score=mean,
                k=None if low is None else str(low) if low == high else f"{low}-{high}",
                chance=chance,
                by_luck=None
                if chance is None or mean is None
                else by_luck(int(mean * items + 1e-6), items, chance),
                statuses=statuses,
            )
            for name, task, metric, items, repeats, mean, low, high, statuses, chance in rows
        ],
        warnings=samples.meta.warnings,
    )


def above_chance(
    summary: LogSummary, level: float = 0.05, corrected: Callable[..., Any] = holm
) -> list[TaskSummary]:
    """Tasks on which a model is clearly above chance: what was never known cannot be forgotten.

    An exact binomial test for each task, corrected for many within a model and a metric: by Holm
    for no false name among all, by Benjamini and Hochberg for few among those that are named.
    Tasks with open answers have no chance, so they are left out.

    Example:
        >>> import tempfile
        >>> log = Path(tempfile.mkdtemp()) / "run.csv"
        >>> rows = [f"{task},{n}?,{right},4" for n in range(20) for task, right in ["a1", "b0"]]
        >>> _ = log.write_text("\\n".join(["task,question,correct,k", *rows]))
        >>> [row.task for row in above_chance(show(log))]
        ['a']
    """
    groups: dict[tuple[str, str], list[TaskSummary]] = {}
    for row in summary.tasks:
        if row.by_luck is not None:
            groups.setdefault((row.model, row.metric), []).append(row)
    return [
        row
        for rows in groups.values()
        for row, p in zip(rows, corrected([row.by_luck or 0.0 for row in rows]), strict=True)
        if p <= level
    ]
