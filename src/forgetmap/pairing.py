"""Pairing: join two Samples item by item and reduce them to small count tables.

All heavy work of a comparison happens here, once, in DuckDB: it streams, uses all cores, spills to
disk beyond its memory limit, and touches only the narrow columns. What comes out is, per task and
number of options, a histogram of outcome patterns ("right in 2 of 3 runs before, in 0 of 3 after:
17 items"); everything after it works on that and costs nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import duckdb
import numpy as np

from forgetmap.errors import InputError
from forgetmap.files import temporary_folder
from forgetmap.readers.common import brief, some
from forgetmap.samples import THRESHOLD
from forgetmap.stats.patterns import Patterns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow as pa
    from numpy.typing import NDArray

    from forgetmap.samples import Samples

Identity = Literal["content", "index"]
Rows = list[tuple[Any, ...]]

MEMORY_LIMIT = "1500MB"
CLUSTER_BUCKETS = 200
"""Clusters beyond this many are lumped together: variance stays honest, cost stays bounded."""
SCALE = 10**12
"""Sums of fractions are taken over whole multiples of 1e-12, so that row order cannot matter."""

_LENIENT_METRICS = (
    *("acc", "extractive_match", "exact_match", "prompt_level_loose_acc"),
    *("prompt_level_strict_acc", "pass@1", "em", "correct", "score", "acc_norm"),
    *("quasi_prefix_exact_match", "quasi_exact_match", "prefix_exact_match"),
    *("final_number_exact_match", "math_equiv_chain_of_thought", "math_equiv", "f1_score"),
    *("plus", "base"),
)
_LENIENT_FILTERS = (
    *("flexible-extract", "flexible", "custom-extract", "none", "score-first"),
    *("maj@", "strict-match"),
)


@dataclass
class Coverage:
    """What was and was not compared; nothing is dropped in silence."""

    items_before: int = 0
    items_after: int = 0
    matched: int = 0
    only_before: int = 0
    only_after: int = 0
    conflicts: int = 0
    unscored: int = 0
    duplicates: int = 0
    identity: Identity = "content"


@dataclass
class Pairs:
    """Two sets of samples, paired: outcome patterns, and what could not be paired."""

    patterns: Patterns
    metrics: dict[str, str] = field(default_factory=dict)
    coverage: Coverage = field(default_factory=Coverage)
    conflicts: list[tuple[str, str]] = field(default_factory=list)
    """(task, the harness's id) of items whose content differs between the sides."""
    warnings: list[str] = field(default_factory=list)
    prompts: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Per task whose prompts are not all the same: items with another prompt, items paired."""
    engine: Engine | None = field(default=None, repr=False)
    causes: pa.ChunkedArray | None = field(default=None, repr=False)
    """Of every flip, in the order of `flips`, once `forgetmap.causes` has worked them out."""

    def flips(self) -> Iterable[pa.RecordBatch]:
        """Stream the items whose outcome changed, with both answers, always in the same order.

        The texts are those of a run that shows the change: for a forgotten item a right answer
        before and a wrong one after. Causes that are known already come along.
        """
        if self.engine is None:
            raise InputError("these pairs were not made from logs; there are no items to list")
        stream = self.engine.flips()
        return stream if self.causes is None else _with_column(stream, "cause", self.causes)

    def churn(self) -> dict[str, int] | None:
        """Items by task that are wrong in every run on both sides, with no answer in common.

        None where the logs hold no answers.
        """
        return self.engine.churn() if self.engine is not None else None

    def unchanged(self) -> Iterable[pa.RecordBatch]:
        """Stream the compared items whose outcome stayed the same, without their text."""
        if self.engine is None:
            raise InputError("these pairs were not made from logs; there are no items to list")
        return self.engine.unchanged()


def pair(
    before: Samples,
    after: Samples,
    *,
    metric: Mapping[str, str] | str | None = None,
    threshold: float = THRESHOLD,
    identity: Identity = "content",
) -> Pairs:
    """Pair two sets of samples.

    `metric` names the metric, for all tasks or per task; by default the most lenient to format
    that both sides have. A score at or above `threshold` counts as correct. `identity="index"`
    pairs by the harness's own item ids, for logs whose stored content differs by design.

    Example:
        >>> from forgetmap.samples import Samples, content_hash
        >>> def log(scores):
        ...     return Samples.from_rows(
        ...         {"task": "t", "item": content_hash(str(i)), "score": s}
        ...         for i, s in enumerate(scores))
        >>> pairs = pair(log([1, 1, 0, 1]), log([1, 0, 1, 1]))
        >>> pairs.coverage.matched, int(pairs.patterns.n[pairs.patterns.change < 0].sum())
        (4, 1)
    """
    return Engine(before, after, metric, threshold, identity).pairs()


@dataclass
class _Task:
    """What one side holds of one task and metric."""

    rows: int
    with_content: int
    with_cluster: int
    with_probability: int
    with_prompt: int
    repeats: int
    prompts: Any
    """Sum of the prompts' hashes: where it agrees, the prompts do."""


class Logs:
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
        self.by_index = self._tasks_by_index(identity)
        self.by_wording = self._tasks_by_wording() if self.across else set()

    # --- sources -------------------------------------------------------------------------------

    def _connect(self) -> None:
        self.connection = duckdb.connect()
        self.connection.execute(f"SET memory_limit = '{MEMORY_LIMIT}'")
        spill = _quoted([str(temporary_folder(self))])
        self.connection.execute(f"SET temp_directory = {spill}")
        self.connection.execute("SET preserve_insertion_order = false")

    def _add_source(self, side: str, samples: Samples) -> None:
        if isinstance(samples.data, Path):
            literal = re.sub(r"([*?\[])", r"[\1]", str(samples.data.absolute()))  # no pattern
            source = f"read_parquet({_quoted([literal])})"
        else:
            self.connection.register(f"{side}_data", samples.data)
            source = f"{side}_data"
        chosen = "" if samples.model is None else f"WHERE model = {_quoted([samples.model])}"
        self.connection.execute(f"CREATE VIEW {side}_rows AS SELECT * FROM {source} {chosen}")

    def _take_inventory(self, side: str) -> dict[tuple[str, str], _Task]:
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
        return {(task, metric): _Task(*counts) for task, metric, *counts in rows}

    def _choose_metrics(self, asked: Mapping[str, str] | str | None) -> dict[str, dict[str, str]]:
        """Choose one metric per task, by side."""
        raise NotImplementedError

    @property
    def tasks(self) -> set[str]:
        """The tasks that are compared."""
        return set().union(*self.metrics.values())

    def _tasks_by_index(self, identity: Identity) -> set[str]:
        """Tasks in which content cannot identify the items, or must not."""
        if identity == "content":
            return {task for task in self.tasks if not all(self._contents(task))}
        for side in self.samples:
            if self._query(f"SELECT any_value(1) FROM {side}_rows WHERE item_ref IS NULL")[0][0]:
                where = self._label(side)
                raise InputError(f"--identity index: items of the log {where} carry no id")
        return self.tasks

    def _label(self, side: str) -> str:
        """What people call a side."""
        return side

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

    def _query(self, sql: str) -> Rows:
        """Run a query in DuckDB's SQL."""
        return query(self.connection, sql, list(self.samples.values()))

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

    def _key(self, side: str) -> str:
        """SQL for what identifies an item within its task."""
        key = "item"
        if self._count("with_content", side) < self._count("rows", side):
            key = f"coalesce(item, {self.hashed_reference})"
        if self.by_index == self.tasks:
            key = self.hashed_reference
        elif self.by_index:
            key = f"""CASE WHEN task IN ({_quoted(self.by_index)}) THEN {self.hashed_reference}
                           ELSE {key} END"""
        if self.by_wording:
            key = f"CASE WHEN task IN ({_quoted(self.by_wording)}) THEN wording ELSE {key} END"
        return key

    def _where(self, side: str) -> str:
        """Keep to the chosen task and metric; nothing to do where a log holds nothing else."""
        pairs = self.metrics[side].items()
        if self.inventory[side].keys() == set(pairs):
            return ""
        chosen = ", ".join(f"({_quoted([task, metric])})" for task, metric in pairs)
        return f"WHERE (task, metric) IN ({chosen})"

    def _count(self, what: str, *sides: str) -> int:
        return sum(
            getattr(self.inventory[side][key], what)
            for side in sides
            for key in self.metrics[side].items()
        )

    @property
    def _soft(self) -> bool:
        return all(self._count("with_probability", side) for side in self.samples)

    @property
    def identity_used(self) -> Identity:
        """How the items were told apart in fact."""
        content, rows = (self._count(what, *self.samples) for what in ("with_content", "rows"))
        return "index" if self.by_index or content < rows else "content"

    def _keep(self, name: str, sql: str) -> None:
        """Keep the result of a query under a name, for the queries that follow."""
        self._query(f"CREATE OR REPLACE TEMP TABLE {name} AS {sql}")


class Engine(Logs):
    """Both sides of a comparison; `forgetmap.spark` puts Spark in the place of DuckDB."""

    integer = "BIGINT"
    """Type of the whole multiples that are summed."""
    overlap = "list_has_any"
    """Says whether two lists have anything in common."""
    _listed = False
    """Whether the flips were listed already."""

    def __init__(
        self,
        before: Samples,
        after: Samples,
        metric: Mapping[str, str] | str | None,
        threshold: float,
        identity: Identity,
    ) -> None:
        super().__init__({"before": before, "after": after}, metric, threshold, identity)

    def _choose_metrics(self, asked: Mapping[str, str] | str | None) -> dict[str, dict[str, str]]:
        """Choose one metric per task, by side; the same on both, but for different harnesses."""
        have = {
            side: {task: {m for t, m in found if t == task} for task in {t for t, _ in found}}
            for side, found in self.inventory.items()
        }
        common = sorted(have["before"].keys() & have["after"].keys())
        if not common:
            raise InputError(
                "the two logs have no task in common "
                f"(before: {some(have['before'])}; after: {some(have['after'])})"
            )
        for side, other in (("before", "after"), ("after", "before")):
            if alone := sorted(have[side].keys() - have[other].keys()):
                self.warnings.append(f"{len(alone)} tasks only in {side}: {some(alone)}")
        if isinstance(asked, dict) and (unknown := asked.keys() - common):
            raise InputError(f"no task {some(unknown)} in both logs; they share {some(common)}")
        chosen: dict[str, dict[str, str]] = {"before": {}, "after": {}}
        for task in common:
            wanted = asked if isinstance(asked, str) else (asked or {}).get(task)
            options = {side: have[side][task] for side in self.samples}
            shared = options["before"] & options["after"]
            if shared or not self.across:
                options = dict.fromkeys(options, shared)
            if not all(options.values()) or (wanted and wanted not in shared):
                self.warnings.append(
                    f"task {task} left out: before has {some(have['before'][task])}, after has "
                    f"{some(have['after'][task])}" + (f", asked was {wanted}" if wanted else "")
                )
                continue
            for side, metrics in options.items():
                chosen[side][task] = wanted or choose_metric(task, metrics)
        if not chosen["before"]:
            raise InputError("no task has a metric in common: " + "; ".join(self.warnings))
        return chosen

    # --- the join ------------------------------------------------------------------------------

    def pairs(self) -> Pairs:
        """Join the two sides and count."""
        self.repeated = any(
            self.inventory[side][key].repeats > 1
            for side in self.samples
            for key in self.metrics[side].items()
        )
        rows = self._histogram()
        if not self.repeated and self._has_duplicates(rows):
            self.repeated = True
            rows = self._histogram()
        return self._collect(rows)

    def _joined(self) -> str:
        return f"""({self._side("before")}) b FULL JOIN ({self._side("after")}) a
                   ON b.task = a.task AND b.key = a.key"""

    def _buckets(self) -> tuple[str, str]:
        """SQL for the cluster bucket of a joined item, and for the join that finds it."""
        if not self._count("with_cluster", "before", "after"):
            return "-1", ""
        self._keep(
            "clusters",
            f"""SELECT task, cluster, (dense_rank() OVER (PARTITION BY task ORDER BY cluster) - 1)
                       % {CLUSTER_BUCKETS} AS bucket
                FROM (SELECT task, cluster FROM before_rows UNION SELECT task, cluster
                      FROM after_rows) WHERE cluster IS NOT NULL""",
        )
        join = """LEFT JOIN clusters c ON c.task = coalesce(b.task, a.task)
                                      AND c.cluster = coalesce(b.cluster, a.cluster)"""
        return f"coalesce(c.bucket, abs(b.key % {CLUSTER_BUCKETS}), -1)::INT", join

    def _histogram(self) -> Rows:
        bucket, clusters = self._buckets()
        sums = ", ".join(
            f"sum(round(power({value}, {degree}) * {SCALE})::{self.integer})"
            for value in ("forgotten", "gained")
            for degree in (1, 2, 3)
        )
        soft = f"count(change), {sums}" if self._soft else "0, 0, 0, 0, 0, 0, 0"
        rows = self._query(
            f"""SELECT task, k, bucket, runs_before, right_before, runs_after, right_after,
                       count(*), sum(copies), {soft}
                FROM (SELECT *, (change * change + change) / 2 AS forgotten,
                             (change * change - change) / 2 AS gained
                      FROM (SELECT coalesce(b.task, a.task) AS task, coalesce(b.k, a.k) AS k,
                                   {bucket} AS bucket,
                                   b.runs AS runs_before, b.correct AS right_before,
                                   a.runs AS runs_after, a.correct AS right_after,
                                   coalesce(b.copies, 0) + coalesce(a.copies, 0) AS copies,
                                   b.probability - a.probability AS change
                            FROM {self._joined()} {clusters}))
                GROUP BY task, k, bucket, runs_before, right_before, runs_after, right_after"""
        )
        return sorted(rows, key=lambda row: [(value is not None, value) for value in row[:7]])

    def _has_duplicates(self, rows: Rows) -> bool:
        """A key that stands twice on one side multiplies the joined rows; count to find out."""
        for side, runs in (("before", 3), ("after", 5)):
            joined = sum(row[7] for row in rows if row[runs] is not None)
            if joined != self._count("rows", side):
                return True
        if all(row[3] is not None and row[5] is not None for row in rows):
            return False
        copies = "SELECT count(*) > count(DISTINCT (task, key)) FROM ({})"
        return any(self._query(copies.format(self._rows(side)))[0][0] for side in self.samples)

    # --- results -------------------------------------------------------------------------------

    def _collect(self, rows: Rows) -> Pairs:
        both = [row for row in rows if row[3] is not None and row[5] is not None]
        scored = [row for row in both if row[3] and row[5]]
        coverage = Coverage(
            items_before=sum(row[7] for row in rows if row[3] is not None),
            items_after=sum(row[7] for row in rows if row[5] is not None),
            matched=sum(row[7] for row in scored),
            unscored=sum(row[7] for row in both) - sum(row[7] for row in scored),
            only_before=sum(row[7] for row in rows if row[5] is None),
            only_after=sum(row[7] for row in rows if row[3] is None),
            duplicates=sum(int(row[8]) for row in rows),
            identity=self.identity_used,
        )
        conflicts: list[tuple[str, str]] = []
        if coverage.only_before and coverage.only_after:
            found = self._conflicts()
            conflicts = sorted({(task, ref) for task, ref, _, _ in found})
            coverage.conflicts = len({(task, key) for task, _, key, _ in found})
            coverage.only_before -= coverage.conflicts
            coverage.only_after -= len({(task, key) for task, _, _, key in found})
        if not scored:
            raise InputError(_nothing_in_common(coverage))
        names, options, *counts = zip(*(row[:8] for row in scored), strict=True)
        soft = np.array([row[9:16] for row in scored], dtype=np.float64)
        soft[:, 1:] /= SCALE
        columns: list[NDArray[Any]] = [
            np.array(names),
            np.array([np.inf if k is None else k for k in options]),
            *(np.array(column, dtype=np.float64) for column in counts),
            soft,
        ]
        patterns = Patterns(*columns)
        named = {
            task: metric
            if metric == self.metrics["after"][task]
            else f"{metric} / {self.metrics['after'][task]}"
            for task, metric in self.metrics["before"].items()
        }
        prompts = self._changed_prompts()
        return Pairs(patterns, named, coverage, conflicts, self.warnings, prompts, self)

    def _changed_prompts(self) -> dict[str, tuple[int, int]]:
        """Count the items that the two models were asked in other words, by task."""
        if self.across:  # each harness hashes prompts in its own way
            return {}
        tasks = {
            task: [self.inventory[side][task, self.metrics[side][task]] for side in self.samples]
            for task in self.tasks
        }
        differing = {
            task
            for task, (before, after) in tasks.items()
            if before.with_prompt and after.with_prompt and before.prompts != after.prompts
        }
        if not differing:
            return {}
        first = {
            side: f"""SELECT task, {self._key(side)} AS key, min(prompt_hash) AS prompt
                      FROM {side}_rows WHERE task IN ({_quoted(differing)}) GROUP BY ALL"""
            for side in self.samples
        }
        found = self._query(
            f"""SELECT task, count(*) FILTER (b.prompt <> a.prompt), count(*)
                FROM ({first["before"]}) b JOIN ({first["after"]}) a USING (task, key)
                GROUP BY task"""
        )
        return {task: (changed, paired) for task, changed, paired in sorted(found) if changed}

    def _conflicts(self) -> Rows:
        """Unmatched items with the same id on both sides, as (task, id, key before, key after)."""
        keys = {side: self._rows(side, "item_ref AS ref,") for side in self.samples}
        lost = {
            side: f"""SELECT DISTINCT task, ref, key FROM ({keys[side]}) AS mine
                      ANTI JOIN ({keys[other]}) AS theirs USING (task, key)"""
            for side, other in (("before", "after"), ("after", "before"))
        }
        return self._query(
            f"""SELECT task, ref, b.key, a.key
                FROM ({lost["before"]}) b JOIN ({lost["after"]}) a USING (task, ref)
                WHERE ref IS NOT NULL"""
        )

    def _flipped(self) -> str:
        """SQL for the keys of the items whose outcome changed."""
        return f"""SELECT b.task AS task, b.key AS key, coalesce(b.k, a.k) AS k,
                          b.correct / b.runs AS before, a.correct / a.runs AS after
                   FROM {self._joined()}
                   WHERE b.runs > 0 AND a.runs > 0 AND b.correct / b.runs <> a.correct / a.runs"""

    def flips(self) -> Iterable[pa.RecordBatch]:
        """Stream the items whose outcome changed, with both answers."""
        if not self._listed:
            self._list_flips()
            self._listed = True
        listed: Iterable[pa.RecordBatch] = self.connection.sql(
            """SELECT * EXCLUDE key FROM listed
               ORDER BY task, before - after DESC, item, item_ref, key"""
        ).to_arrow_reader(8192)
        return listed

    def _list_flips(self) -> None:
        """Make the list of flips, at once and in DuckDB's own memory, so that damage shows here."""
        columns = ("item", "item_ref", "status", "target", "answer", "response", "prompt")
        order = "(repeat, item_ref, score, answer, response, prompt)"  # whatever the order of rows
        shown = f"""arg_min({{{", ".join(f"'{name}': {name}" for name in columns)}}}, {order})
                    FILTER ((score >= {self.threshold!r}) = shows) AS shown"""
        self._keep("flipped", self._flipped())
        sides = {
            side: f"""SELECT task, key, unnest(shown) FROM (SELECT task, key, {shown} FROM (
                      SELECT r.*, f.before {sign} f.after AS shows
                      FROM ({self._rows(side, "item, status, target, answer, response, prompt,")}) r
                      JOIN flipped f USING (task, key)) GROUP BY task, key)"""
            for side, sign in (("before", ">"), ("after", "<"))
        }
        self._keep(
            "listed",
            f"""SELECT f.task AS task, f.key AS key,
                       coalesce(printf('%016x', b.item), b.item_ref) AS item,
                       b.item_ref AS item_ref, f.k AS k,
                       if(f.before > f.after, 'forgotten', 'gained') AS transition,
                       f.before AS before, f.after AS after, b.target AS target,
                       b.answer AS answer_before, a.answer AS answer_after,
                       b.status AS status_before, a.status AS status_after,
                       b.prompt AS prompt_before, a.prompt AS prompt_after,
                       b.response AS response_before, a.response AS response_after
                FROM flipped f JOIN ({sides["before"]}) b USING (task, key)
                     JOIN ({sides["after"]}) a USING (task, key)""",
        )

    def churn(self) -> dict[str, int] | None:
        """Items by task that are wrong in every run on both sides, with no answer in common.

        None where the logs hold no answers. What is grouped are hashes: no text is moved.
        """
        sides = [
            f"""SELECT task, key, list(DISTINCT hash(said)) AS said
                FROM (SELECT *, coalesce(nullif(trim(answer), ''), trim(response)) AS said
                      FROM ({self._rows(side, "answer, response,")}))
                GROUP BY task, key
                HAVING max(score) < {self.threshold!r} AND count(said) = count(*)"""
            for side in ("before", "after")
        ]
        rows = self._query(
            f"""SELECT task, count(*) FILTER (NOT {self.overlap}(b.said, a.said))
                FROM ({sides[0]}) b JOIN ({sides[1]}) a USING (task, key) GROUP BY task"""
        )
        return dict(rows) or None

    def unchanged(self) -> Iterable[pa.RecordBatch]:
        """Stream the compared items whose outcome stayed the same, without their text."""
        refs = f"""SELECT task, key, min(item) AS item, min(item_ref) AS item_ref
                   FROM ({self._rows("before", "item,")}) GROUP BY task, key"""
        stream: Iterable[pa.RecordBatch] = self.connection.sql(
            f"""SELECT b.task AS task, coalesce(printf('%016x', r.item), r.item_ref) AS item,
                       r.item_ref AS item_ref, coalesce(b.k, a.k) AS k,
                       if(b.correct > 0, 'retained', 'never') AS transition,
                       b.correct / b.runs AS before, a.correct / a.runs AS after
                FROM {self._joined()} JOIN ({refs}) r ON r.task = b.task AND r.key = b.key
                WHERE b.runs > 0 AND a.runs > 0 AND b.correct / b.runs = a.correct / a.runs"""
        ).to_arrow_reader(8192)
        return stream


def _with_column(
    stream: Iterable[pa.RecordBatch], name: str, values: pa.ChunkedArray
) -> Iterator[pa.RecordBatch]:
    """Add a column whose values stand in the order of the stream."""
    import pyarrow as pa

    start = 0
    for batch in stream:
        part = values.slice(start, batch.num_rows).combine_chunks()
        start += batch.num_rows
        yield pa.RecordBatch.from_arrays([*batch.columns, part], [*batch.schema.names, name])


def query(connection: duckdb.DuckDBPyConnection, sql: str, sources: list[Samples]) -> Rows:
    """Run a query over samples; a damaged file among them becomes one clear line."""
    try:
        rows: Rows = connection.execute(sql).fetchall()
    except (duckdb.IOException, duckdb.InvalidInputException) as error:
        files = " or ".join(str(found.data) for found in sources if isinstance(found.data, Path))
        raise InputError(f"{files}: is damaged ({brief(error)})") from error
    return rows


def choose_metric(task: str, metrics: set[str]) -> str:
    """Choose among the metrics of a task the one most lenient to format.

    Example:
        >>> choose_metric("gsm8k", {"exact_match,strict-match", "exact_match,flexible-extract"})
        'exact_match,flexible-extract'
        >>> choose_metric("arc", {"acc", "acc_norm"})
        'acc'
    """
    if len(metrics) == 1:
        return next(iter(metrics))

    def rank(metric: str) -> tuple[int, int]:
        name, _, filtered = metric.partition(",")
        filtered = re.sub(r"(?<=@)\d+$", "", filtered) or "none"
        metrics, filters = (*_LENIENT_METRICS, name), (*_LENIENT_FILTERS, filtered)
        return metrics.index(name), filters.index(filtered)

    first, second, *_ = sorted(metrics, key=lambda metric: (rank(metric), metric))
    if rank(first) == rank(second):
        raise InputError(
            f"task {task} has the metrics {some(metrics)}; choose one with --metric {task}=NAME"
        )
    return first


def _number(column: str) -> str:
    """SQL for a column in which NaN means that there is no value; databases sort NaN on top."""
    return f"CASE WHEN isnan({column}) THEN NULL ELSE {column} END"


def _nothing_in_common(coverage: Coverage) -> str:
    if coverage.unscored:
        return f"none of the {coverage.unscored} common items has a score on both sides"
    hint = (
        "the ids agree but the content differs; if only the prompt's wording changed, "
        "pair by id with --identity index"
        if coverage.conflicts
        else "are these logs of the same tasks? --identity index pairs by the harness's ids"
    )
    return (
        f"the logs have no item in common ({coverage.items_before} before, "
        f"{coverage.items_after} after): {hint}"
    )


def _quoted(names: set[str] | list[str]) -> str:
    ordered = sorted(names) if isinstance(names, set) else names
    return ", ".join("'{}'".format(name.replace("'", "''")) for name in ordered)
