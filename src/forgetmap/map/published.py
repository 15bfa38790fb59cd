"""The published pipeline of Harmon et al. (arXiv:2510.17776), reproduced with its choices.

For comparing with published numbers only. It pairs seed s with seed s and row i with row i of the
files sorted by prompt, skips a task whose files differ in length, uses its own table of option
counts, clips every task and seed at zero before averaging, weighs tasks alike, and averages all
groups, "Missing" included, into Total. Where these choices mislead is told in
docs/explanation/published-numbers.md; the rest of forgetmap does otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from forgetmap.base.database import connect
from forgetmap.base.errors import InputError
from forgetmap.map.result import Compat, PublishedRow
from forgetmap.map.task_maps import IGNORED, TaskMap
from forgetmap.samples.table import Samples

PROTOCOLS = ("post-forget",)
_DEFAULT_K = 4.0


class TaskResult(NamedTuple):
    """One task under one seed, as published: fractions, clipped at zero."""

    forgetting: float
    transfer: float
    ceiling_forgetting: float
    ceiling_transfer: float


def published_task(counts: Sequence[float], k: float) -> TaskResult:
    """The published estimator of one task and seed, from the counts n00, n01, n10, n11.

    Example:
        >>> [round(value, 4) for value in published_task((225, 75, 75, 625), k=4)]
        [0.045, 0.045, 0.6, 0.6]
    """
    n00, n01, n10, n11 = counts
    n = n00 + n01 + n10 + n11
    a, b = (n10 + n11) / n, (n01 + n11) / n
    chance = (1 - a) * (1 - b) / (k - 1)
    return TaskResult(
        max(n10 / n - chance, 0),
        max(n01 / n - chance, 0),
        max((k * a - 1) / (k - 1), 0),
        max((k * b - 1) / (k - 1), 0),
    )


def post_forget(before: Samples, after: Samples, metrics: Mapping[str, str]) -> Compat:
    """Compute the published table for two sets of samples (their prompts must have been read)."""
    counted, skipped = _count(before, after, metrics)
    tasks = TaskMap.load("post-forget-published")
    by_seed: dict[int, dict[str, list[TaskResult]]] = {}
    for (task, seed), cells in sorted(counted.items()):
        category = tasks.category(task)
        if category == IGNORED:
            continue
        result = published_task(cells, tasks.options(task) or _DEFAULT_K)
        by_seed.setdefault(seed, {}).setdefault(category, []).append(result)
    if not by_seed:
        raise InputError("--compat post-forget: no task has equally many rows on both sides")
    return Compat(
        protocol="post-forget",
        seeds=len(by_seed),
        rows=_published_rows(list(by_seed.values())),
        skipped_tasks=skipped,
    )


def _published_rows(seeds: Sequence[Mapping[str, Sequence[TaskResult]]]) -> list[PublishedRow]:
    """Mean over tasks, then mean and sample deviation over seeds; Total is the mean of groups."""
    means = [
        {category: np.mean(results, axis=0) for category, results in groups.items()}
        for groups in seeds
    ]
    for groups in means:
        groups["Total"] = np.mean(list(groups.values()), axis=0)
    categories = sorted({name for groups in means for name in groups} - {"Total"})
    rows = []
    for category in [*categories, "Total"]:
        values = np.array([groups[category] for groups in means if category in groups])
        for column, metric in enumerate(("forgetting", "backward_transfer")):
            spread = float(values[:, column].std(ddof=1)) if len(values) > 1 else None
            rows.append(
                PublishedRow(
                    category=category,
                    metric=metric,  # type: ignore[arg-type]
                    value=float(values[:, column].mean()),
                    std=spread,
                    ceiling=float(values[:, column + 2].mean()),
                )
            )
    return rows


def _count(
    before: Samples, after: Samples, metrics: Mapping[str, str]
) -> tuple[dict[tuple[str, int], tuple[float, ...]], list[str]]:
    """Count transitions per task and seed, rows paired by their rank in prompt order."""
    columns = ["task", "repeat", "metric", "score", "prompt"]
    with connect() as connection:
        for side, samples in (("before", before), ("after", after)):
            connection.register(f"{side}_stream", samples.to_reader(columns))
            connection.execute(f"CREATE TABLE {side} AS SELECT * FROM {side}_stream")
            missing = f"SELECT count(*) FROM {side} WHERE prompt IS NULL"
            if connection.execute(missing).fetchall()[0][0]:
                raise InputError(
                    f"--compat post-forget: the log {side} stores no prompts to sort by"
                )
        connection.execute("CREATE TABLE chosen (task VARCHAR, metric VARCHAR)")
        connection.executemany("INSERT INTO chosen VALUES (?, ?)", list(metrics.items()))
        ranked = {
            side: f"""SELECT task, repeat, round_even(score, 0) AS score,
                             row_number() OVER (PARTITION BY task, repeat ORDER BY prompt) AS rank,
                             count(*) OVER (PARTITION BY task, repeat) AS size
                      FROM {side} SEMI JOIN chosen USING (task, metric)"""
            for side in ("before", "after")
        }
        connection.execute(f"CREATE TABLE b AS {ranked['before']}")
        connection.execute(f"CREATE TABLE a AS {ranked['after']}")
        counted = connection.execute(
            """SELECT task, repeat, count(*) FILTER (b.score = 0 AND a.score = 0),
                      count(*) FILTER (b.score = 0 AND a.score = 1),
                      count(*) FILTER (b.score = 1 AND a.score = 0),
                      count(*) FILTER (b.score = 1 AND a.score = 1)
               FROM b JOIN a USING (task, repeat, size, rank) GROUP BY task, repeat"""
        ).fetchall()
        skipped = connection.execute(
            """SELECT DISTINCT task FROM b JOIN a USING (task, repeat)
               WHERE b.size <> a.size ORDER BY task"""
        ).fetchall()
    cells_of = {(task, seed): tuple(cells) for task, seed, *cells in counted if sum(cells)}
    return cells_of, [task for (task,) in skipped]
