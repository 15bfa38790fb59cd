"""Any number of logs in one database: which metric is read, what identifies an item.

Two logs, many logs and scores are all paired on this. The work happens in DuckDB: it streams, uses
all cores, spills to disk beyond its memory limit, and touches only the columns a query needs.

Each log is a side: s0, s1, ... Two views of it do the rest:

- `s0_rows`: the rows of the chosen model, as stored;
- `s0_scores`: the rows in the chosen metrics, with `key`, which identifies an item in its task.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from forgetmap.base.database import Rows, connect, plain_path, query, quoted
from forgetmap.base.errors import InputError
from forgetmap.base.words import some
from forgetmap.pairing.metrics import asked_metric, choose_metric
from forgetmap.pairing.scales import Scale, find_scale, limit_sql, scale_notes
from forgetmap.samples.comparability import Identity
from forgetmap.samples.options import TOLERANCE, bad_options_warning
from forgetmap.samples.table import THRESHOLD, Samples

if TYPE_CHECKING:
    import pyarrow as pa

Chosen = set[tuple[str, str]]
"""Tasks, each with a metric that is compared."""

CLUSTER_BUCKETS = 200
"""Clusters beyond this many are lumped together: variance stays honest, cost stays bounded."""
SHOWN_ITEM = "coalesce(printf('%016x', {0}.item), {0}.item_ref)"
"""SQL for an item as people can find it again: its content hash, or the harness's id."""
_CARRIED = ("item", "item_ref", "repeat", "status", "k", "prompt_hash", "cluster")
_OPTIONS = "option_probabilities"
_LATER_TYPES = {"option_probabilities": "FLOAT[]", "right_option": "INT"}
"""Types of the columns that older files lack."""
_TEXTS = ("prompt", "target", "answer", "response")


class ListSql(NamedTuple):
    """SQL about lists of option probabilities, each with places for its arguments."""

    size: str
    good: str
    """Whether a list is a distribution."""
    total: str
    at: str
    """The value of list {0} at place {1}, counted from 0."""
    gap: str
    """The sum of the differences between list {0} over {1} and list {2} over {3}, without signs."""
    in_order: str
    """Aggregate: the lists {0} as one list, in the order of {1}."""
    mean: str
    """The mean of a list of lists, place by place."""


DUCKDB_LISTS = ListSql(
    size="len({0})",
    good=f"""(list_count({{0}}) = len({{0}}) AND list_min({{0}}) >= 0
              AND abs(list_sum({{0}}) - 1) <= {TOLERANCE})""",
    total="list_sum({0})",
    at="{0}[{1} + 1]",
    gap="list_sum([abs(x / {1} - {2}[place] / {3}) for x, place in {0}])",
    in_order="list({0} ORDER BY {1}) FILTER ({0} IS NOT NULL)",
    mean="[list_avg([x[place] for x in {0}]) for place in range(1, len({0}[1]) + 1)]",
)


@dataclass(frozen=True)
class Stock:
    """What one log holds of one task and metric."""

    rows: int
    with_content: int
    with_cluster: int
    with_probability: int
    with_prompt: int
    with_options: int
    """Rows with the probabilities of all options."""
    bad_options: int
    """Rows with option probabilities that cannot be right; they count as missing."""
    low: float | None
    """The lowest score; None where no row has one."""
    high: float | None
    broken: int
    """Rows with a score that is not a whole number."""
    unanswered: int
    """Rows in which no answer was found."""
    repeats: int
    prompts: Any
    """Sum of the prompts' hashes: where it agrees, the prompts do."""
    code: int
    """The hash of the task, a number that is quicker to join and group on."""

    @property
    def graded(self) -> bool:
        """Whether any score is neither 0 nor 1."""
        if self.low is None or self.high is None:
            return False
        return self.broken > 0 or self.low < 0 or self.high > 1


class Logs:
    """Some logs in one DuckDB connection, each known by its name.

    The metric of each task and what identifies its items are chosen over all logs together.
    """

    hashed_reference = "hash(item_ref)"
    """SQL that makes a pairing key of the harness's id."""
    lists = DUCKDB_LISTS

    def __init__(
        self,
        samples: Mapping[str, Samples],
        metric: Mapping[str, str] | str | None,
        threshold: float | None,
        identity: Identity,
    ) -> None:
        self.threshold = threshold
        self.identity = identity
        self.names = list(samples)
        self.sides = [f"s{number}" for number in range(len(self.names))]
        self.samples = dict(zip(self.sides, samples.values(), strict=True))
        self._check_rows()
        self._connect()
        for side, source in self.samples.items():
            self._add_source(side, source)
        self.stock = {side: self._take_stock(side) for side in self.sides}
        self.warnings: list[str] = []
        self.across = len({source.meta.harness for source in self.samples.values()}) > 1
        self.chosen = self._choose(metric)
        self.by_index = self._tasks_by_index()
        self.by_wording = self._tasks_by_wording() if self.across else set()
        self.repeated = any(held.repeats > 1 for side in self.sides for held in self._held(side))
        """Whether an item may be in several rows of one log."""
        self.warnings += [
            f"{self.name(side)}: {bad_options_warning(bad)}"
            for side in self.sides
            if (bad := self._count("bad_options", side))
        ]
        self.scales = self._find_scales()
        self.warnings += [
            f"{self.name(side)}: no answer was found in any of the {stock.rows:,} rows of "
            f"{task}; check how answers are extracted"
            for side in self.sides
            for (task, metric), stock in sorted(self.stock[side].items())
            if (task, metric) in self.chosen[side] and stock.unanswered == stock.rows
        ]
        self.warnings += list(scale_notes(self.scales, threshold))
        for side in self.sides:
            self._define(f"{side}_scores", self._scores(side))

    def side(self, name: str) -> str:
        """The side of a log, for SQL."""
        return self.sides[self.names.index(name)]

    def name(self, side: str) -> str:
        """What people call a side."""
        return self.names[self.sides.index(side)]

    # --- running SQL ---------------------------------------------------------------------------

    def _connect(self) -> None:
        self.connection = connect()
        self.connection.execute("SET preserve_insertion_order = false")

    def _query(self, sql: str) -> Rows:
        """Run a query in DuckDB's SQL."""
        return query(self.connection, sql, [source.data for source in self.samples.values()])

    def _stream(self, sql: str, rows: int) -> Iterable[pa.RecordBatch]:
        """Run a query and read its result some rows at a time."""
        stream: Iterable[pa.RecordBatch] = self.connection.sql(sql).to_arrow_reader(rows)
        return stream

    def _define(self, name: str, sql: str) -> None:
        """Give a query a name; it runs where the name is used."""
        self._query(f"CREATE OR REPLACE TEMP VIEW {name} AS {sql}")

    def _keep(self, name: str, sql: str) -> None:
        """Run a query once and keep its result under a name."""
        self._query(f"CREATE OR REPLACE TEMP TABLE {name} AS {sql}")

    # --- what the logs hold --------------------------------------------------------------------

    def _add_source(self, side: str, samples: Samples) -> None:
        if isinstance(samples.data, Path):
            source = f"read_parquet({quoted(plain_path(samples.data))})"
        else:
            self.connection.register(f"{side}_data", samples.data)
            source = f"{side}_data"
        of_model = "" if samples.model is None else f"WHERE model = {quoted(samples.model)}"
        later = [f", NULL::{_LATER_TYPES[name]} AS {name}" for name in samples.missing_columns]
        self._define(f"{side}_rows", f"SELECT *{''.join(later)} FROM {source} {of_model}")

    def _take_stock(self, side: str) -> dict[tuple[str, str], Stock]:
        samples = self.samples[side]
        counted = ("item", "cluster", "gold_probability", "prompt_hash", _OPTIONS)
        counts = [_count_sql(samples, name) for name in counted]
        *_, with_prompt, with_options = counts
        prompts = "0" if with_prompt == "0" else "sum(prompt_hash)"
        bad = f"count(*) FILTER ({_OPTIONS} IS NOT NULL AND {self._usable_options} IS NULL)"
        counts.append("0" if with_options == "0" else bad)
        rows = self._query(
            f"""SELECT task, metric, count(*), {", ".join(counts)},
                       min({_number("score")}), max({_number("score")}),
                       count(*) FILTER (score <> floor(score) AND NOT isnan(score)),
                       count(*) FILTER (status = 'no_answer'), max(repeat)::BIGINT + 1, {prompts},
                       hash(task)
                FROM {side}_rows GROUP BY task, metric"""
        )
        return {(task, metric): Stock(*numbers) for task, metric, *numbers in rows}

    @property
    def _usable_options(self) -> str:
        """SQL for a row's option probabilities; null where they cannot be right."""
        good, size = self.lists.good.format(_OPTIONS), self.lists.size.format(_OPTIONS)
        inside = f"coalesce(right_option, 0) >= 0 AND coalesce(right_option, 0) < {size}"
        return f"CASE WHEN {good} AND {inside} THEN {_OPTIONS} END"

    def _held(self, side: str) -> list[Stock]:
        """What one log holds of its tasks in the chosen metrics."""
        return [self.stock[side][key] for key in self.chosen[side]]

    def _check_rows(self) -> None:
        """Pair rows by their number only if asked to: a shuffled copy would pair with strangers."""
        for name, samples in zip(self.names, self.samples.values(), strict=True):
            if samples.meta.by_row and self.identity != "row":
                raise InputError(
                    f"{name}: no column names the items of the table; name it with --column "
                    "id=NAME or --column question=NAME, or pair rows by number with --identity row"
                )
            if self.identity == "row" and not samples.meta.by_row:
                raise InputError(
                    f"--identity row: the items of the log {name} have ids or content to pair by"
                )

    def _find_scales(self) -> dict[str, Scale]:
        """The scale of the scores of each task, over all logs."""
        found: dict[str, Scale] = {}
        for task, held in sorted(self._held_by_task().items()):
            lows = [stock.low for stock in held if stock.low is not None]
            highs = [stock.high for stock in held if stock.high is not None]
            if lows:
                found[task] = find_scale(min(lows), max(highs), not any(s.broken for s in held))
        return found

    @property
    def limit(self) -> str:
        """SQL for the score from which an answer to a task counts as right."""
        return limit_sql(self.thresholds)

    @property
    def thresholds(self) -> dict[str, float]:
        """The score from which an answer counts as right, of the tasks whose scale is their own."""
        if self.threshold is not None:
            return {"": self.threshold}
        own = {task: scale.middle for task, scale in self.scales.items()}
        return {"": THRESHOLD} | {task: at for task, at in own.items() if at != THRESHOLD}

    def _count(self, what: str, *sides: str) -> int:
        return sum(getattr(held, what) for side in sides for held in self._held(side))

    @property
    def tasks(self) -> set[str]:
        """The tasks that are compared."""
        return {task for chosen in self.chosen.values() for task, _ in chosen}

    @property
    def _with_probabilities(self) -> bool:
        """Whether two logs have gold probabilities, so that they can be compared."""
        return sum(self._count("with_probability", side) > 0 for side in self.sides) > 1

    @property
    def _with_options(self) -> bool:
        """Whether two logs have the probabilities of all options."""
        return sum(self._count("with_options", side) > 0 for side in self.sides) > 1

    # --- metrics -------------------------------------------------------------------------------

    def _choose(self, asked: Mapping[str, str] | str | None) -> dict[str, Chosen]:
        """Choose one metric per task, the same in all logs that have the task.

        Logs of different harnesses may keep each its own.
        """
        held = self._metrics_held()
        common = [task for task, holders in sorted(held.items()) if len(holders) > 1]
        if not common:
            raise InputError(f"the logs have no task in common ({self._listed_tasks()})")
        if isinstance(asked, dict) and (unknown := asked.keys() - set(common)):
            raise InputError(f"no task {some(unknown)} in both logs; they share {some(common)}")
        chosen: dict[str, Chosen] = {side: set() for side in self.sides}
        for task in common:
            holders, wanted = held[task], asked_metric(asked, task)
            shared = set.intersection(*holders.values())
            if (wanted and wanted not in shared) or not (shared or self.across):
                self.warnings.append(self._left_out(task, holders, wanted))
                continue
            for side, metrics in holders.items():
                chosen[side].add((task, wanted or choose_metric(task, shared or metrics)))
        if not any(chosen.values()):
            raise InputError("no task has a metric in common: " + "; ".join(self.warnings))
        return chosen

    def _metrics_held(self) -> dict[str, dict[str, set[str]]]:
        """The metrics of every task, by side."""
        held: dict[str, dict[str, set[str]]] = {}
        for side, stock in self.stock.items():
            for task, metric in stock:
                held.setdefault(task, {}).setdefault(side, set()).add(metric)
        return held

    def _listed_tasks(self) -> str:
        return "; ".join(
            f"{self.name(side)}: {some({task for task, _ in stock})}"
            for side, stock in self.stock.items()
        )

    def _left_out(self, task: str, holders: Mapping[str, set[str]], wanted: str | None) -> str:
        by_metrics: dict[str, list[str]] = {}
        for side, metrics in holders.items():
            by_metrics.setdefault(some(metrics), []).append(self.name(side))
        have = ", ".join(f"{some(names)} has {held}" for held, names in by_metrics.items())
        return f"task {task} left out: {have}" + (f", asked was {wanted}" if wanted else "")

    def metric_names(self, before: str, after: str) -> dict[str, str]:
        """The metric of each task that two sides share; both where they differ."""
        ours, theirs = dict(self.chosen[before]), dict(self.chosen[after])
        return {
            task: ours[task] if ours[task] == theirs[task] else f"{ours[task]} / {theirs[task]}"
            for task in sorted(ours.keys() & theirs.keys())
        }

    # --- what identifies an item ---------------------------------------------------------------

    def _tasks_by_index(self) -> set[str]:
        """Tasks in which content cannot identify the items, or must not."""
        if self.identity == "content":
            held = self._held_by_task().items()
            return {task for task, stocks in held if not all(s.with_content for s in stocks)}
        for side in self.sides:
            if self._query(f"SELECT any_value(1) FROM {side}_rows WHERE item_ref IS NULL")[0][0]:
                where = self.name(side)
                raise InputError(f"--identity index: items of the log {where} carry no id")
        return self.tasks

    def _held_by_task(self) -> dict[str, list[Stock]]:
        """What the logs hold of each task in the chosen metrics."""
        stocks: dict[str, list[Stock]] = {}
        for side, chosen in self.chosen.items():
            for task, metric in chosen:
                stocks.setdefault(task, []).append(self.stock[side][task, metric])
        return stocks

    def _tasks_by_wording(self) -> set[str]:
        """Tasks of logs of several harnesses in which the words alone tell every item apart."""
        tasks = self.tasks
        for side, chosen in self.chosen.items():
            told_apart = self._query(
                f"""SELECT task FROM {side}_rows GROUP BY task
                    HAVING count(wording) = count(*) AND count(DISTINCT wording)
                           = count(DISTINCT coalesce(item, {self.hashed_reference}))"""
            )
            tasks -= {task for task, _ in chosen} - {task for (task,) in told_apart}
        if tasks:
            self.warnings.append("logs of two harnesses: items are paired by their words")
        return tasks

    @property
    def identity_used(self) -> Identity:
        """How the items were in fact told apart."""
        if self.identity == "row":
            return "row"
        content, rows = (self._count(what, *self.sides) for what in ("with_content", "rows"))
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

    # --- rows in the chosen metrics ------------------------------------------------------------

    def _scores(self, side: str) -> str:
        """SQL for the rows of one side in the chosen metrics, with their key."""
        usable = self._usable_options if self._count("bad_options", side) else _OPTIONS
        options = f"{usable} AS options, right_option," if self._with_options else ""
        return f"""SELECT task, metric, {self._key(side)} AS key, {_number("score")} AS score,
                          {_number("gold_probability")} AS probability,
                          {options}
                          {", ".join((*_CARRIED, *_TEXTS))}
                   FROM {side}_rows {self._where(side)}"""

    def _where(self, side: str) -> str:
        """Keep to the chosen task and metric; nothing to do where a log holds nothing else."""
        chosen = self.chosen[side]
        if self.stock[side].keys() == chosen:
            return ""
        listed = ", ".join(f"({quoted(*key)})" for key in sorted(chosen))
        return f"WHERE (task, metric) IN ({listed})"

    # --- items that cannot be paired -----------------------------------------------------------

    def _conflicts(self, before: str, after: str) -> Rows:
        """Unmatched items with the same id on two sides, as (task, id, key before, key after)."""
        for side, other in ((before, after), (after, before)):
            self._define(
                f"{side}_unmatched",
                f"""SELECT DISTINCT task, item_ref, key FROM {side}_scores AS ours
                    ANTI JOIN {other}_scores AS theirs USING (task, key)
                    WHERE item_ref IS NOT NULL""",
            )
        return self._query(
            f"""SELECT task, item_ref, b.key, a.key
                FROM {before}_unmatched b JOIN {after}_unmatched a USING (task, item_ref)"""
        )


def _count_sql(samples: Samples, column: str) -> str:
    """SQL that counts the values of a column; one that is full or empty need not be read."""
    nulls = samples.null_count(column)
    if nulls is not None and nulls == 0:
        return "count(*)"
    if nulls is not None and nulls == samples.rows:
        return "0"
    return f"count({column})"


def _number(column: str) -> str:
    """SQL for a column in which NaN means that there is no value; databases sort NaN on top."""
    return f"CASE WHEN isnan({column}) THEN NULL ELSE {column} END"
