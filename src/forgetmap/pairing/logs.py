"""Any number of logs in one database: which metric is read, what identifies an item.

What the pairing of two logs and the lineage of many have in common. All heavy work of both happens
in DuckDB: it streams, uses all cores, spills to disk beyond its memory limit, and touches only the
narrow columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from forgetmap.base.database import connect, plain_path, query, quoted
from forgetmap.base.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

    from forgetmap.base.database import Rows
    from forgetmap.samples.table import Samples

Identity = Literal["content", "index"]

CLUSTER_BUCKETS = 200
"""Clusters beyond this many are lumped together: variance stays honest, cost stays bounded."""
SCALE = 10**12
"""Sums of fractions are taken over whole multiples of 1e-12, so that row order cannot matter."""


@dataclass
class _Held:
    """What one side holds of one task and metric."""

    rows: int
    with_content: int
    with_cluster: int
    with_probability: int
    with_prompt: int
    repeats: int
    prompts: Any
    """Sum of the prompts' hashes: where it agrees, the prompts do."""


class Logs(ABC):
    """One DuckDB connection with any number of logs in it, each under the name of its side.

    It knows how to read one side as rows of (task, key): the metric of each task and what
    identifies its items are chosen over all sides together.
    """

    hashed_reference = "hash(item_ref)"
    """SQL that makes a pairing key of the harness's id."""
    repeated = False
    """Whether an item may stand in several rows of one side."""

    def __init__(
        self,
        samples: Mapping[str, Samples],
        metric: Mapping[str, str] | str | None,
        threshold: float,
        identity: Identity,
    ) -> None:
        self.threshold = float(threshold)
        self.identity = identity
        self._connect()
        self.samples = dict(samples)
        for side, source in self.samples.items():
            self._add_source(side, source)
        self.inventory = {side: self._take_inventory(side) for side in self.samples}
        self.warnings: list[str] = []
        self.across = len({source.meta.harness for source in self.samples.values()}) > 1
        self.metrics = self._choose_metrics(metric)
        self.by_index = self._tasks_by_index()
        self.by_wording = self._tasks_by_wording() if self.across else set()

    # --- running SQL ---------------------------------------------------------------------------

    def _connect(self) -> None:
        self.connection = connect()
        self.connection.execute("SET preserve_insertion_order = false")

    def _query(self, sql: str) -> Rows:
        """Run a query in DuckDB's SQL."""
        return query(self.connection, sql, [side.data for side in self.samples.values()])

    def _stream(self, sql: str, rows: int) -> Iterable[pa.RecordBatch]:
        """Run a query and read what it finds some rows at a time."""
        stream: Iterable[pa.RecordBatch] = self.connection.sql(sql).to_arrow_reader(rows)
        return stream

    def _keep(self, name: str, sql: str) -> None:
        """Keep the result of a query under a name, for the queries that follow."""
        self._query(f"CREATE OR REPLACE TEMP TABLE {name} AS {sql}")

    # --- what the logs hold --------------------------------------------------------------------

    def _add_source(self, side: str, samples: Samples) -> None:
        if isinstance(samples.data, Path):
            source = f"read_parquet({quoted(plain_path(samples.data))})"
        else:
            self.connection.register(f"{side}_data", samples.data)
            source = f"{side}_data"
        chosen = "" if samples.model is None else f"WHERE model = {quoted(samples.model)}"
        self.connection.execute(f"CREATE VIEW {side}_rows AS SELECT * FROM {source} {chosen}")

    def _take_inventory(self, side: str) -> dict[tuple[str, str], _Held]:
        # A column that is full, or empty, need not be read to be counted.
        samples = self.samples[side]
        counts = ", ".join(
            {0: "count(*)", samples.rows: "0"}.get(samples.null_count(name), f"count({name})")
            for name in ("item", "cluster", "gold_probability", "prompt_hash")
        )
        empty = samples.null_count("prompt_hash") == samples.rows
        rows = self._query(
            f"""SELECT task, metric, count(*), {counts}, max(repeat)::BIGINT + 1,
                       {"0" if empty else "sum(prompt_hash)"}
                FROM {side}_rows GROUP BY task, metric"""
        )
        return {(task, metric): _Held(*counts) for task, metric, *counts in rows}

    def _metrics_held(self) -> dict[str, dict[str, set[str]]]:
        """The metrics of every task, by side."""
        held: dict[str, dict[str, set[str]]] = {}
        for side, found in self.inventory.items():
            for task, metric in found:
                held.setdefault(task, {}).setdefault(side, set()).add(metric)
        return held

    @abstractmethod
    def _choose_metrics(self, asked: Mapping[str, str] | str | None) -> dict[str, dict[str, str]]:
        """Choose one metric per task, by side."""

    def _label(self, side: str) -> str:
        """What people call a side."""
        return side

    @property
    def tasks(self) -> set[str]:
        """The tasks that are compared."""
        return set().union(*self.metrics.values())

    def _chosen(self, side: str) -> list[_Held]:
        """What one side holds of its tasks in the chosen metrics."""
        return [self.inventory[side][key] for key in self.metrics[side].items()]

    def _count(self, what: str, *sides: str) -> int:
        return sum(getattr(held, what) for side in sides for held in self._chosen(side))

    @property
    def _soft(self) -> bool:
        return all(self._count("with_probability", side) for side in self.samples)

    def _has_repeats(self) -> bool:
        return any(held.repeats > 1 for side in self.samples for held in self._chosen(side))

    # --- what two sides have in common ---------------------------------------------------------

    def metric_names(self, before: str, after: str) -> dict[str, str]:
        """The metric of each task that two sides share; both where they differ."""
        ours, theirs = self.metrics[before], self.metrics[after]
        return {
            task: ours[task] if ours[task] == theirs[task] else f"{ours[task]} / {theirs[task]}"
            for task in sorted(ours.keys() & theirs.keys())
        }

    def _reworded_tasks(self, before: str, after: str) -> list[str]:
        """The tasks in which two sides were not asked all the same prompts."""
        if self.across:  # each harness hashes prompts in its own way
            return []
        found = []
        for task in sorted(self.metrics[before].keys() & self.metrics[after].keys()):
            ours, theirs = (
                self.inventory[side][task, self.metrics[side][task]] for side in (before, after)
            )
            if ours.with_prompt and theirs.with_prompt and ours.prompts != theirs.prompts:
                found.append(task)
        return found

    # --- what identifies an item ---------------------------------------------------------------

    def _tasks_by_index(self) -> set[str]:
        """Tasks in which content cannot identify the items, or must not."""
        if self.identity == "content":
            return {task for task in self.tasks if not all(self._contents(task))}
        for side in self.samples:
            if self._query(f"SELECT any_value(1) FROM {side}_rows WHERE item_ref IS NULL")[0][0]:
                where = self._label(side)
                raise InputError(f"--identity index: items of the log {where} carry no id")
        return self.tasks

    def _contents(self, task: str) -> list[int]:
        return [
            self.inventory[side][task, metrics[task]].with_content
            for side, metrics in self.metrics.items()
            if task in metrics
        ]

    def _tasks_by_wording(self) -> set[str]:
        """Tasks of logs of several harnesses in which the words alone tell every item apart."""
        tasks = self.tasks
        for side, metrics in self.metrics.items():
            found = self._query(
                f"""SELECT task FROM {side}_rows GROUP BY task
                    HAVING count(wording) = count(*) AND count(DISTINCT wording)
                           = count(DISTINCT coalesce(item, {self.hashed_reference}))"""
            )
            tasks -= metrics.keys() - {task for (task,) in found}
        if tasks:
            self.warnings.append("logs of two harnesses: items are paired by their words")
        return tasks

    @property
    def identity_used(self) -> Identity:
        """How the items were told apart in fact."""
        content, rows = (self._count(what, *self.samples) for what in ("with_content", "rows"))
        return "index" if self.by_index or content < rows else "content"

    def _key(self, side: str) -> str:
        """SQL for what identifies an item within its task."""
        key = "item"
        if self._count("with_content", side) < self._count("rows", side):
            key = f"coalesce(item, {self.hashed_reference})"
        if self.by_index == self.tasks:
            key = self.hashed_reference
        elif self.by_index:
            tasks = quoted(*sorted(self.by_index))
            key = f"CASE WHEN task IN ({tasks}) THEN {self.hashed_reference} ELSE {key} END"
        if self.by_wording:
            tasks = quoted(*sorted(self.by_wording))
            key = f"CASE WHEN task IN ({tasks}) THEN wording ELSE {key} END"
        return key

    # --- rows and items of one side ------------------------------------------------------------

    def _rows(self, side: str, more: str = "") -> str:
        """SQL for the rows of one side in the chosen metrics, with their pairing key."""
        item_ref = "item_ref," if self.repeated or more else ""
        repeat = "repeat," if self.repeated or more else ""
        probability = _number("gold_probability") if self._soft else "NULL"
        return f"""SELECT task, {self._key(side)} AS key, {item_ref} {repeat} {more}
                          {_number("score")} AS score, k,
                          {"cluster" if self._count("with_cluster", side) else "NULL AS cluster"},
                          {probability} AS gold_probability
                   FROM {side}_rows {self._where(side)}"""

    def _where(self, side: str) -> str:
        """Keep to the chosen task and metric; nothing to do where a log holds nothing else."""
        pairs = self.metrics[side].items()
        if self.inventory[side].keys() == set(pairs):
            return ""
        chosen = ", ".join(f"({quoted(task, metric)})" for task, metric in pairs)
        return f"WHERE (task, metric) IN ({chosen})"

    def _side(self, side: str) -> str:
        """SQL for one side: one row per (task, key) with runs, right, k, cluster, probability.

        Without repeats a row is an item already, and the costly grouping is spared. With repeats,
        and where rows are duplicated, each (task, key, repeat) counts once; among duplicates the
        smallest id wins, so that the order of rows cannot matter.
        """
        rows = self._rows(side)
        right = f"score >= {self.threshold!r}"
        if not self.repeated:
            return f"""SELECT task, key, (score IS NOT NULL)::INT AS runs, 0 AS copies,
                       coalesce({right}, false)::INT AS correct, k, cluster,
                       gold_probability AS probability FROM ({rows})"""
        return f"""
            SELECT task, key, count(score) AS runs, sum(copies - 1)::BIGINT AS copies,
                   count(*) FILTER ({right}) AS correct, max(k) AS k, min(cluster) AS cluster,
                   round(avg(probability), 12) AS probability
            FROM (SELECT task, key, repeat, count(*) AS copies,
                         arg_min(score, (item_ref, score)) FILTER (score IS NOT NULL) AS score,
                         max(k) AS k, min(cluster) AS cluster,
                         arg_min(gold_probability, (item_ref, gold_probability))
                             FILTER (gold_probability IS NOT NULL) AS probability
                  FROM ({rows}) GROUP BY task, key, repeat)
            GROUP BY task, key"""

    def _keep_buckets(self, clusters: str) -> None:
        """Keep the table `clusters`, with the bucket of every (task, cluster) in the given SQL."""
        self._keep(
            "clusters",
            f"""SELECT task, cluster, (dense_rank() OVER (PARTITION BY task ORDER BY cluster) - 1)
                       % {CLUSTER_BUCKETS} AS bucket
                FROM ({clusters}) WHERE cluster IS NOT NULL""",
        )


def _number(column: str) -> str:
    """SQL for a column in which NaN means that there is no value; databases sort NaN on top."""
    return f"CASE WHEN isnan({column}) THEN NULL ELSE {column} END"
