"""What every checkpoint did on every item: all logs brought together in one pass.

DuckDB reduces all logs to one row per (checkpoint, task, item) and gives every item a number. The
rows are then laid out as arrays of (checkpoints, items). Any two checkpoints are paired by the same
SQL as two logs, from the reduced rows: no log is read again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forgetmap.base.errors import InputError
from forgetmap.base.words import some
from forgetmap.pairing.logs import CLUSTER_BUCKETS
from forgetmap.pairing.paired_logs import PairedLogs
from forgetmap.pairing.pairs import Pairs
from forgetmap.samples.comparability import Identity
from forgetmap.samples.table import Samples

Ints = NDArray[np.int64]

_BATCH = 131_072


class ItemText(NamedTuple):
    """What one checkpoint was asked and said, in a run that shows its outcome."""

    status: str
    target: str | None
    answer: str | None
    response: str | None
    prompt: str | None


class ItemName(NamedTuple):
    """An item as people can find it again."""

    task: str
    item: str
    """Its content hash, or the harness's id where the log stores no content."""
    item_ref: str | None


@dataclass
class Outcomes:
    """Every checkpoint's outcome on every item; arrays are (checkpoints, items)."""

    names: list[str]
    tasks: list[str]
    """In alphabetical order; `task` points into it."""
    task: Ints
    bucket: Ints
    """Cluster bucket, -1 where the logs have no clusters."""
    seen: NDArray[np.bool_]
    runs: NDArray[np.int32]
    """Scored runs; 0 where the item is in the log without a score."""
    right: NDArray[np.int32]
    logs: ManyLogs

    def index(self, name: str) -> int:
        """Place of a checkpoint."""
        return self.names.index(name)

    @property
    def states(self) -> NDArray[np.int8]:
        """1 known, 0 not known, -1 missing (not in the log, or not scored).

        An item counts as known where more than half of its scored runs are right.
        """
        known = (2 * self.right > self.runs).astype(np.int8)
        return np.where(self.runs > 0, known, np.int8(-1))

    @property
    def clustered(self) -> bool:
        """Whether the logs say which items stand or fall together."""
        return bool((self.bucket >= 0).any())

    def leave_out(self, tasks: Sequence[str]) -> None:
        """Count the items of some tasks as missing."""
        out = np.isin(self.tasks, tasks)[self.task]
        self.runs[:, out] = self.right[:, out] = 0
        self.seen[:, out] = False


class ManyLogs(PairedLogs):
    """All logs of a pipeline in one database; `outcomes` must be called before they are paired."""

    def __init__(
        self,
        samples: Mapping[str, Samples],
        metric: Mapping[str, str] | str | None,
        threshold: float | None,
        identity: Identity,
    ) -> None:
        super().__init__(samples, metric, threshold, identity)
        for task, holders in sorted(self._metrics_held().items()):
            missing = [self.name(side) for side in self.sides if side not in holders]
            if len(holders) == 1:
                self.warnings.append(f"task {task} left out: only {self.name(*holders)} has it")
            elif missing and task in self.tasks:
                self.warnings.append(f"task {task} is missing in {some(missing)}")

    def pairs(self, before: str, after: str) -> Pairs:
        """Pair two checkpoints, as `forgetmap.pairing.two_logs.pair` pairs their logs."""
        sides = self.side(before), self.side(after)
        try:
            return self._paired(self._histogram(*sides), *sides)
        except InputError as error:
            raise InputError(f"{before} -> {after}: {error}") from error

    def outcomes(self) -> Outcomes:
        """Read all logs, once, and lay out what they hold."""
        outcomes = self._lay_out()
        if outcomes is None:  # rows occur twice: each (task, item, repeat) counts once
            self.repeated = self.duplicated = True
            outcomes = self._lay_out()
        assert outcomes is not None
        for number, side in enumerate(self.sides):
            self._define(f"{side}_items", f"SELECT * FROM outcomes WHERE node = {number}")
        return outcomes

    def _lay_out(self) -> Outcomes | None:
        """The outcomes; None where rows turn out to be duplicated and that was not looked for."""
        self._define_items()
        sides = [f"SELECT {n} AS node, * FROM {side}_items" for n, side in enumerate(self.sides)]
        self._keep("outcomes", " UNION ALL BY NAME ".join(sides))
        if not self.duplicated and self._query("SELECT max(copies) > 0 FROM outcomes")[0][0]:
            return None
        self._keep(
            "numbered",
            """SELECT row_number() OVER (ORDER BY task, key) - 1 AS id, task, key, cluster
               FROM (SELECT task, key, min(cluster) AS cluster FROM outcomes GROUP BY task, key)""",
        )
        bucket, clusters = "-1", ""
        if self._count("with_cluster", *self.sides):
            self._keep_buckets(self.sides)
            bucket = f"coalesce(c.bucket, n.key % {CLUSTER_BUCKETS})"
            clusters = "LEFT JOIN clusters c ON c.task = n.task AND c.cluster = n.cluster"
        items = self.connection.sql(
            f"""SELECT n.task AS task, ({bucket})::BIGINT AS bucket
                FROM numbered n {clusters} ORDER BY n.id"""
        ).to_arrow_table()
        encoded = items["task"].combine_chunks().dictionary_encode()
        tasks = sorted(encoded.dictionary.to_pylist())
        place = np.array([tasks.index(task) for task in encoded.dictionary.to_pylist()])
        shape = len(self.names), items.num_rows
        outcomes = Outcomes(
            names=self.names,
            tasks=tasks,
            task=place[_numbers(encoded.indices)],
            bucket=_numbers(items["bucket"].combine_chunks()),
            seen=np.zeros(shape, bool),
            runs=np.zeros(shape, np.int32),
            right=np.zeros(shape, np.int32),
            logs=self,
        )
        return outcomes if self._fill(outcomes) else None

    def _fill(self, outcomes: Outcomes) -> bool:
        """Fill the arrays; say whether every row was an item of its own."""
        rows = 0
        for batch in self._stream(
            "SELECT node, id, runs, correct FROM outcomes JOIN numbered USING (task, key)", _BATCH
        ):
            node, item, runs, right = map(_numbers, batch.columns)
            outcomes.seen[node, item] = True
            outcomes.runs[node, item] = runs
            outcomes.right[node, item] = right
            rows += len(node)
        return rows == int(outcomes.seen.sum())

    # --- single items ---------------------------------------------------------------------------

    def item_names(self, items: Ints) -> dict[int, ItemName]:
        """Task, hash and id of some items."""
        self._want(items)
        sides = " UNION ALL ".join(
            f"""SELECT w.id, s.task, s.item, s.item_ref
                FROM {side}_scores s JOIN wanted w USING (task, key)"""
            for side in self.sides
        )
        rows = self._query(
            f"""SELECT id, any_value(task), printf('%016x', min(item)), min(item_ref)
                FROM ({sides}) GROUP BY id"""
        )
        return {
            item: ItemName(task, content if content is not None else ref, ref)
            for item, task, content, ref in rows
        }

    def item_texts(self, items: Ints) -> dict[int, dict[int, ItemText]]:
        """By item and checkpoint: what was asked and said, in a run that shows the outcome."""
        self._want(items)
        columns = ItemText._fields
        fields = ", ".join(f"'{name}': {name}" for name in columns)
        right = f"coalesce(s.score >= {self.limit}, false)"
        texts: dict[int, dict[int, ItemText]] = {}
        for node, side in enumerate(self.sides):  # one by one: a hundred at once fill the memory
            rows = self._query(
                f"""SELECT id, unnest(arg_min({{{fields}}}, (odd, repeat, item_ref)))
                    FROM (SELECT w.id, s.*, (2 * o.correct > o.runs) <> {right} AS odd
                          FROM {side}_scores s JOIN wanted w USING (task, key)
                               JOIN {side}_items o USING (task, key))
                    GROUP BY id"""
            )
            for item, *said in rows:
                texts.setdefault(item, {})[node] = ItemText(*said)
        return texts

    def _want(self, items: Ints) -> None:
        """Put the keys of some items into the table `wanted`."""
        self.connection.register("wanted_ids", {"id": np.unique(items)})
        self._keep("wanted", "SELECT id, task, key FROM numbered JOIN wanted_ids USING (id)")
        self.connection.unregister("wanted_ids")


def _numbers(column: Any) -> NDArray[Any]:
    """An Arrow array without gaps, where it lies; its own `to_numpy` would import pandas first."""
    return np.from_dlpack(column)
