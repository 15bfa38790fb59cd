"""What a log holds: harness, models, tasks, items, repeats, metrics, problems."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel

from forgetmap.base.database import connect, query
from forgetmap.readers.framework import ReadOptions
from forgetmap.readers.registry import read

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
                      count(DISTINCT repeat), avg(score), min(k), max(k), histogram(status)
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
                statuses=statuses,
            )
            for name, task, metric, items, repeats, mean, low, high, statuses in rows
        ],
        warnings=samples.meta.warnings,
    )
