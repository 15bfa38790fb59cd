"""What every checkpoint did on every item: all logs brought together in one pass.

DuckDB reduces all logs to one row per (checkpoint, task, item) and gives every item a number; the
rows are then laid out as arrays of (checkpoints, items). Whatever two checkpoints are compared
after that, no log is read and nothing is joined again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from forgetmap.base.errors import InputError
from forgetmap.base.words import some
from forgetmap.pairing.logs import CLUSTER_BUCKETS, SCALE, Logs
from forgetmap.pairing.metrics import asked_metric, choose_metric
from forgetmap.pairing.two_logs import Coverage, Pairs
from forgetmap.stats.patterns import Patterns

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from forgetmap.pairing.logs import Identity
    from forgetmap.samples.table import Samples

    Floats = NDArray[np.float64]
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
    task: NDArray[np.int64]
    k: Floats
    bucket: NDArray[np.int64]
    """Cluster bucket, -1 where the logs have no clusters."""
    seen: NDArray[np.bool_]
    runs: NDArray[np.int32]
    """Scored runs; 0 where the item is in the log without a score."""
    right: NDArray[np.int32]
    copies: Ints
    """Duplicated rows, by checkpoint."""
    probability: Floats | None
    engine: Engine

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

    def pairs(self, before: str, after: str) -> Pairs:
        """Pair two checkpoints, as `forgetmap.pairing.two_logs.pair` pairs their logs."""
        b, a = self.index(before), self.index(after)
        scored = (self.runs[b] > 0) & (self.runs[a] > 0)
        if not scored.any():
            raise InputError(
                f"{before} -> {after}: the logs have no scored item in common; "
                "were both evaluated on the same tasks?"
            )
        shared, warnings = self.engine.shared_tasks(b, a)
        common = np.isin(self.task, [self.tasks.index(task) for task in shared])
        seen_b, seen_a = self.seen[b] & common, self.seen[a] & common
        conflicts, keys_before, keys_after = self.engine.conflicts(
            b, a, np.flatnonzero(seen_b & ~seen_a), np.flatnonzero(seen_a & ~seen_b)
        )
        coverage = Coverage(
            items_before=int(seen_b.sum()),
            items_after=int(seen_a.sum()),
            matched=int(scored.sum()),
            only_before=int((seen_b & ~seen_a).sum()) - keys_before,
            only_after=int((seen_a & ~seen_b).sum()) - keys_after,
            conflicts=keys_before,
            unscored=int((seen_b & seen_a).sum()) - int(scored.sum()),
            duplicates=int(self.copies[b] + self.copies[a]),
            identity=self.engine.identity_used,
        )
        patterns = self._patterns(b, a, scored)
        metrics = self.engine.metric_names(f"c{b}", f"c{a}")
        prompts = self.engine.changed_prompts(b, a)
        return Pairs(patterns, metrics, coverage, conflicts, warnings, prompts)

    def _patterns(self, b: int, a: int, scored: NDArray[np.bool_]) -> Patterns:
        items = np.flatnonzero(scored)
        columns = [
            self.task[items],
            np.where(np.isinf(self.k[items]), 0, self.k[items]).astype(np.int64),
            self.bucket[items] + 1,
            *(array[side][items] for side in (b, a) for array in (self.runs, self.right)),
        ]
        code = np.zeros(len(items), np.int64)  # one number per pattern, in the order of columns
        for column in columns:
            code = code * (int(column.max()) + 1) + column
        _, first, index = np.unique(code, return_index=True, return_inverse=True)
        task, k, bucket, runs_b, right_b, runs_a, right_a = (
            column[first].astype(np.float64) for column in columns
        )
        return Patterns(
            np.array(self.tasks)[task.astype(np.int64)],
            np.where(k == 0, np.inf, k),
            bucket - 1,
            runs_b,
            right_b,
            runs_a,
            right_a,
            np.bincount(index).astype(np.float64),
            self._soft(b, a, items, index, len(first)),
        )

    def _soft(self, b: int, a: int, items: Ints, index: Ints, size: int) -> Floats:
        soft = np.zeros((size, 7))
        if self.probability is None:
            return soft
        change = self.probability[b][items] - self.probability[a][items]
        there = ~np.isnan(change)
        index, change = index[there], change[there]
        soft[:, 0] = np.bincount(index, minlength=size)
        moved = ((change * change + change) / 2, (change * change - change) / 2)
        for place, value in enumerate(v**degree for v in moved for degree in (1, 2, 3)):
            sums = np.zeros(size, np.int64)
            np.add.at(sums, index, np.rint(value * SCALE).astype(np.int64))
            soft[:, place + 1] = sums / SCALE
        return soft

    def leave_out(self, tasks: Sequence[str], options: Mapping[str, float]) -> None:
        """Leave tasks out, and take missing numbers of options from elsewhere."""
        given = np.array([options.get(task, np.inf) for task in self.tasks])
        self.k = np.where(np.isinf(self.k), given[self.task], self.k)
        out = np.isin(self.tasks, tasks)[self.task]
        self.runs[:, out] = self.right[:, out] = 0
        self.seen[:, out] = False


class Engine(Logs):
    """All logs of a pipeline in one DuckDB connection."""

    def __init__(
        self,
        samples: Mapping[str, Samples],
        metric: Mapping[str, str] | str | None,
        threshold: float,
        identity: Identity,
    ) -> None:
        self.names = list(samples)
        sides = {f"c{number}": source for number, source in enumerate(samples.values())}
        super().__init__(sides, metric, threshold, identity)
        self._refs: dict[int, dict[int, set[tuple[str, str]]]] | None = None
        self._prompts: NDArray[np.uint64] | None = None

    def _choose_metrics(self, asked: Mapping[str, str] | str | None) -> dict[str, dict[str, str]]:
        """One metric per task that all checkpoints with the task have."""
        have = self._metrics_held()
        if isinstance(asked, dict) and (unknown := asked.keys() - have.keys()):
            raise InputError(f"no task {some(unknown)} in the logs; they hold {some(have)}")
        chosen: dict[str, dict[str, str]] = {side: {} for side in self.samples}
        for task, holders in sorted(have.items()):
            wanted = asked_metric(asked, task)
            shared = set.intersection(*holders.values())
            if reason := self._unusable(holders, shared, wanted):
                self.warnings.append(f"task {task} left out: {reason}")
                continue
            for side, metrics in holders.items():
                chosen[side][task] = wanted or choose_metric(task, shared or metrics)
            if missing := self.samples.keys() - holders.keys():
                self.warnings.append(f"task {task} is missing in {self._names(missing)}")
        if not any(chosen.values()):
            raise InputError("no task is in two logs with the same metric; check the logs")
        return chosen

    def _unusable(
        self, holders: Mapping[str, set[str]], shared: set[str], wanted: str | None
    ) -> str | None:
        """Why a task cannot be followed through the pipeline."""
        if len(holders) < 2:
            return f"only {self._names(holders)} has it"
        if wanted and wanted not in shared:
            return f"not all its checkpoints have the metric {wanted}"
        if not shared and not self.across:
            return "its checkpoints have no metric in common"
        return None

    def _label(self, side: str) -> str:
        return self.names[int(side[1:])]

    def _names(self, sides: Iterable[str]) -> str:
        return some(map(self._label, sides))

    @property
    def _soft(self) -> bool:
        """Wherever two checkpoints have option probabilities, they can be used."""
        return sum(self._count("with_probability", side) > 0 for side in self.samples) > 1

    def shared_tasks(self, b: int, a: int) -> tuple[list[str], list[str]]:
        """The tasks that two checkpoints have in common, and what to say of the others."""
        before, after = self.metrics[f"c{b}"].keys(), self.metrics[f"c{a}"].keys()
        alone = {"before": before - after, "after": after - before}
        warnings = [
            f"{len(tasks)} tasks only in {side}: {some(tasks)}"
            for side, tasks in alone.items()
            if tasks
        ]
        return sorted(before & after), warnings

    def outcomes(self) -> Outcomes:
        """Read all logs, once, and lay out what they hold."""
        self.repeated = self._has_repeats()
        found = self._laid_out()
        if found is None:  # rows stand twice: each (task, item, repeat) counts once
            self.repeated = True
            found = self._laid_out()
        assert found is not None
        return found

    def _laid_out(self) -> Outcomes | None:
        """The outcomes; None where rows turn out to be duplicated and were not grouped."""
        sides = [
            f"SELECT {number} AS node, * FROM ({self._side(side)})"
            for number, side in enumerate(self.samples)
        ]
        self._keep("outcomes", " UNION ALL BY NAME ".join(sides))
        self._keep(
            "numbered",
            """SELECT row_number() OVER (ORDER BY task, key) - 1 AS id, task, key, k, cluster
               FROM (SELECT task, key, max(k) AS k, min(cluster) AS cluster
                     FROM outcomes GROUP BY task, key)""",
        )
        items = self.connection.sql(
            f"""SELECT task, coalesce(k::DOUBLE, 'inf'::DOUBLE) AS k,
                       ({self._bucket()})::BIGINT AS bucket
                FROM numbered n ORDER BY id"""
        ).to_arrow_table()
        encoded = items["task"].combine_chunks().dictionary_encode()
        tasks = sorted(encoded.dictionary.to_pylist())
        place = np.array([tasks.index(task) for task in encoded.dictionary.to_pylist()])
        shape = len(self.names), items.num_rows
        found = Outcomes(
            names=self.names,
            tasks=tasks,
            task=place[_numbers(encoded.indices)],
            k=_numbers(items["k"].combine_chunks()),
            bucket=_numbers(items["bucket"].combine_chunks()),
            seen=np.zeros(shape, bool),
            runs=np.zeros(shape, np.int32),
            right=np.zeros(shape, np.int32),
            copies=np.zeros(shape[0], np.int64),
            probability=np.full(shape, np.nan) if self._soft else None,
            engine=self,
        )
        return found if self._fill(found) else None

    def _bucket(self) -> str:
        """SQL for the cluster bucket of an item, as the pairing of two logs has it."""
        if not self._count("with_cluster", *self.samples):
            return "-1"
        self._keep_buckets("SELECT DISTINCT task, cluster FROM outcomes")
        return f"""coalesce((SELECT bucket FROM clusters c
                             WHERE c.task = n.task AND c.cluster = n.cluster),
                            n.key % {CLUSTER_BUCKETS})"""

    def _fill(self, found: Outcomes) -> bool:
        rows = 0
        soft = found.probability is not None
        probability = ", coalesce(probability, 'nan'::DOUBLE)" if soft else ""
        for batch in self._stream(
            f"""SELECT node, id, runs, correct, copies {probability}
                FROM outcomes JOIN numbered USING (task, key)""",
            _BATCH,
        ):
            node, item, runs, right, copies, *chances = map(_numbers, batch.columns)
            found.seen[node, item] = True
            found.runs[node, item] = runs
            found.right[node, item] = right
            np.add.at(found.copies, node, copies.astype(np.int64))
            if found.probability is not None:
                [found.probability[node, item]] = chances
            rows += len(node)
        return rows == int(found.seen.sum())

    # --- what only some comparisons need --------------------------------------------------------

    def conflicts(
        self, b: int, a: int, only_before: Ints, only_after: Ints
    ) -> tuple[list[tuple[str, str]], int, int]:
        """Items with the same id and other content: their (task, id), and how many on each side."""
        if not (len(only_before) and len(only_after)):
            return [], 0, 0
        if self._refs is None:
            self._refs = self._read_refs()
        sides = []
        for node, items in ((b, only_before), (a, only_after)):
            by_ref: dict[tuple[str, str], set[int]] = {}
            for item in items.tolist():
                for ref in self._refs[node].get(item, ()):
                    by_ref.setdefault(ref, set()).add(item)
            sides.append(by_ref)
        both = sorted(sides[0].keys() & sides[1].keys())
        counts = [len(set().union(*(side[ref] for ref in both))) for side in sides]
        return both, counts[0], counts[1]

    def _read_refs(self) -> dict[int, dict[int, set[tuple[str, str]]]]:
        """The harness's ids of the items that some checkpoint lacks, by checkpoint and item."""
        self._keep(
            "partial",
            f"""SELECT task, key, any_value(id) AS id FROM outcomes JOIN numbered USING (task, key)
                GROUP BY task, key HAVING count(*) < {len(self.names)}""",
        )
        refs: dict[int, dict[int, set[tuple[str, str]]]] = {n: {} for n in range(len(self.names))}
        for number, side in enumerate(self.samples):
            rows = self._query(
                f"""SELECT DISTINCT p.id, r.task, r.item_ref FROM ({self._rows(side, "item,")}) r
                    JOIN partial p USING (task, key) WHERE r.item_ref IS NOT NULL"""
            )
            for item, task, ref in rows:
                refs[number].setdefault(item, set()).add((task, ref))
        return refs

    def changed_prompts(self, b: int, a: int) -> dict[str, tuple[int, int]]:
        """Count the items that two checkpoints were asked in other words, by task."""
        differing = self._reworded_tasks(f"c{b}", f"c{a}")
        if not differing:
            return {}
        if self._prompts is None:
            self._prompts, self._prompt_tasks = self._read_prompts()
        one, other = self._prompts[b], self._prompts[a]
        paired = (one > 0) & (other > 0)
        found = {}
        for task in differing:
            mine = paired & (self._prompt_tasks == task)
            if changed := int((mine & (one != other)).sum()):
                found[task] = changed, int(mine.sum())
        return found

    def _read_prompts(self) -> tuple[NDArray[np.uint64], NDArray[Any]]:
        """The prompts' hashes, (checkpoints, items); 0 where there is none."""
        tasks = self.connection.sql("SELECT task FROM numbered ORDER BY id").fetchnumpy()["task"]
        prompts = np.zeros((len(self.names), len(tasks)), np.uint64)
        for number, side in enumerate(self.samples):
            for batch in self._stream(
                f"""SELECT n.id, r.prompt FROM numbered n JOIN
                    (SELECT task, key, min(prompt_hash) AS prompt
                     FROM ({self._rows(side, "prompt_hash,")}) WHERE prompt_hash IS NOT NULL
                     GROUP BY task, key) r USING (task, key)""",
                _BATCH,
            ):
                prompts[number, _numbers(batch["id"])] = _numbers(batch["prompt"])
        return prompts, tasks

    def item_names(self, items: Ints) -> dict[int, ItemName]:
        """Task, hash and id of some items."""
        self._want(items)
        sides = " UNION ALL ".join(
            f"""SELECT w.id, r.task, r.item, r.item_ref FROM ({self._rows(side, "item,")}) r
                JOIN wanted w USING (task, key)"""
            for side in self.samples
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
        shown = f"score >= {self.threshold!r}"
        sides = " UNION ALL ".join(
            f"""SELECT id, {number} AS node, unnest(arg_min({{{fields}}}, (odd, repeat, item_ref)))
                FROM (SELECT w.id, r.*, (2 * o.correct > o.runs) <> coalesce({shown}, false) AS odd
                      FROM ({self._rows(side, ", ".join(columns) + ",")}) r
                      JOIN wanted w USING (task, key)
                      JOIN outcomes o ON o.task = r.task AND o.key = r.key AND o.node = {number})
                GROUP BY id"""
            for number, side in enumerate(self.samples)
        )
        found: dict[int, dict[int, ItemText]] = {}
        for item, node, *texts in self._query(sides):
            found.setdefault(item, {})[node] = ItemText(*texts)
        return found

    def _want(self, items: Ints) -> None:
        """Put the keys of some items into the table `wanted`."""
        self.connection.register("wanted_ids", {"id": np.unique(items)})
        self._keep("wanted", "SELECT id, task, key FROM numbered JOIN wanted_ids USING (id)")
        self.connection.unregister("wanted_ids")


def _numbers(column: Any) -> NDArray[Any]:
    """An Arrow array without gaps, where it lies; its own `to_numpy` would import pandas first."""
    return np.from_dlpack(column)
