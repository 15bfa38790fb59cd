"""Pairing: join two logs item by item and reduce them to small tables of counts.

The join happens once, in the database of `forgetmap.pairing.logs`. The result is, per task and
number of options, a histogram of outcome patterns ("right in 2 of 3 runs before, in 0 of 3 after:
17 items"). Everything after it works on that and costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from forgetmap.answers.extraction import NO_ANSWER
from forgetmap.base.database import quoted
from forgetmap.base.errors import InputError
from forgetmap.base.words import some
from forgetmap.pairing.logs import CLUSTER_BUCKETS, SHOWN_ITEM, Logs
from forgetmap.pairing.packed import fits, packed_sql
from forgetmap.samples.comparability import Coverage, Identity, RowCounts
from forgetmap.samples.table import Samples
from forgetmap.stats.patterns import FACTORS, MOMENTS, Moment, Patterns

if TYPE_CHECKING:
    import pyarrow as pa

_SCALE = 10**12
"""Sums of fractions are taken over whole multiples of 1e-12, so that row order cannot matter."""
_SQL_MOMENTS = {
    Moment.ITEMS: "count(p)",
    Moment.CHURN_KNOWN: "count(churn)",
    **{
        moment: f"sum(round({' * '.join(factors)} * {_SCALE})::{{integer}})"
        for moment, factors in FACTORS.items()
    },
}
"""SQL for each moment; the sums are whole multiples of 1 / _SCALE."""
_REPEAT_BIT = "1::BIGINT << CAST(abs(repeat::BIGINT) % 63 AS INT)"
"""SQL for a repeat as one of 63 bits; two that share a bit are taken for duplicates, and looked at
again. So that hardly happens: 63 and 1000, by which runs are numbered, have no factor in common."""
_FEWEST_OPTIONS = 3
"""With fewer there are no two wrong options that guessing could reshuffle."""
_BATCH = 8192
_SIDES = ("before", "after")


@dataclass(frozen=True)
class Pairs:
    """Two logs, paired: outcome patterns, and what could not be paired.

    Example:
        >>> import forgetmap
        >>> from forgetmap.map.example import example_logs
        >>> pairs = forgetmap.pair(*map(forgetmap.read, example_logs()))
        >>> pairs.coverage.matched, pairs.metrics["airports"]
        (4070, 'acc')
    """

    patterns: Patterns
    metrics: dict[str, str] = field(default_factory=dict)
    coverage: Coverage = field(default_factory=Coverage)
    conflicts: list[tuple[str, str]] = field(default_factory=list)
    """(task, the harness's id) of items whose content differs between the logs."""
    warnings: list[str] = field(default_factory=list)
    prompts: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Per task whose prompts are not all the same: items with another prompt, items paired."""
    scores: dict[str, ScoreSums] = field(default_factory=dict)
    """Per task whose scores are more than right or wrong: what they sum up to."""
    thresholds: dict[str, float] = field(default_factory=dict)
    """Per task whose scale is not that from 0 to 1: the score from which an answer is right."""
    source: LogPair | None = field(default=None, repr=False)

    def flips(self) -> Iterable[pa.RecordBatch]:
        """Stream the items whose outcome changed, with both answers, always in the same order.

        The texts are those of a run that shows the change: for a forgotten item a right answer
        before and a wrong one after.
        """
        return self._items.flips()

    def unchanged(self) -> Iterable[pa.RecordBatch]:
        """Stream the compared items whose outcome stayed the same, without their text."""
        return self._items.unchanged()

    def outcomes(self) -> pa.Table:
        """Every compared item, one row each, without text, in the order of task and key.

        `fall` is how far its chance of being right fell: of the right option's probability where
        both logs have it, else of its share of right runs. `knew` and `knows` say whether more
        than half of its runs were right before and after, `right_after` the share of its runs
        that are right after. `chance` is the chance of being right before, from which it fell, and
        `k` the number of options.
        """
        return self._items.outcomes()

    @property
    def _items(self) -> LogPair:
        if self.source is None:
            raise InputError("these pairs were not made from logs; there are no items to list")
        return self.source

    def churn(self) -> dict[str, int] | None:
        """Items by task that are wrong in every run on both sides, with no answer in common.

        None where the logs hold no answers.
        """
        return self.source.churn() if self.source is not None else None

    def targets(self, tasks: Iterable[str]) -> list[str]:
        """Right answers to some tasks, each once, so far as the logs hold them."""
        return self.source.targets(tasks) if self.source is not None else []


def pair(
    before: Samples,
    after: Samples,
    *,
    metric: Mapping[str, str] | str | None = None,
    threshold: float | None = None,
    identity: Identity = "content",
) -> Pairs:
    """Pair two logs.

    `metric` names the metric, for all tasks or per task; by default the most lenient to format
    that both logs have. A score at or above `threshold` counts as correct; by default the middle of
    the scale. `identity="index"`
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
    return LogPair({"before": before, "after": after}, metric, threshold, identity).pairs()


class ScoreSums(NamedTuple):
    """Sums over the items of a task of their mean scores, and of how far these fell or rose."""

    n: int
    before: float
    after: float
    fall: float
    fall_2: float
    """Of the squares."""
    rise: float
    rise_2: float
    low: float
    """Where the scale begins."""
    high: float


class _Pattern(NamedTuple):
    """Items of one task that did the same in both logs; runs are None where a log lacks them."""

    task: str
    k: int | None
    bucket: int
    runs_before: int | None
    right_before: int | None
    runs_after: int | None
    right_after: int | None
    items: int
    copies_before: Any
    """Duplicated rows; a Decimal on Spark, as the next."""
    copies_after: Any
    unscored_before: Any
    """Runs without a score; not counted where there are no repeats."""
    unscored_after: Any
    other_k: Any
    """Items that have another number of options in the second log."""
    moments: tuple[Any, ...]
    """As in `Patterns`, the sums in whole multiples of 1 / _SCALE; None for a sum of nothing."""

    def of_side(self, name: str) -> tuple[int | None, int, int]:
        """Of one side: the runs of each item, and in all its unscored runs and duplicated rows."""
        if name == "before":
            return self.runs_before, int(self.unscored_before), int(self.copies_before)
        return self.runs_after, int(self.unscored_after), int(self.copies_after)


def _order(pattern: _Pattern) -> list[tuple[bool, Any]]:
    """The order of patterns, the same whatever the order of rows."""
    return [(value is not None, value) for value in pattern[:7]]


class PairedLogs(Logs):
    """Logs of which any two can be paired; `forgetmap.pairing.spark` puts Spark in DuckDB's place.

    A third view of each side, `s0_items`, holds one row per (task, key).
    """

    integer = "BIGINT"
    """Type of the whole multiples that are summed."""
    duplicated = False
    """Whether a (task, key, repeat) may be in several rows of one log."""

    def _define_items(self) -> None:
        for side in self.sides:
            self._define(f"{side}_items", self._item_sql(side))

    def _item_sql(self, side: str) -> str:
        """SQL for one row per (task, key): runs, right, what is missing, k, cluster, probabilities.

        Without repeats a row is an item already, and the costly grouping is spared.
        """
        items = self._grouped_rows(side) if self.repeated else self._single_rows(side)
        return self._weighed(items) if self._with_options else items

    def _single_rows(self, side: str) -> str:
        options = ", options, right_option" if self._with_options else ""
        return f"""SELECT task, key, (score IS NOT NULL)::INT AS runs, 0 AS copies, 0 AS unscored,
                          coalesce(score >= {self.limit}, false)::INT AS correct,
                          k, cluster, probability {options}
                   FROM {side}_scores"""

    def _grouped_rows(self, side: str) -> str:
        """With repeats the rows of an item are one; `copies` says how many rows are duplicates.

        Once duplicates were met, each (task, key, repeat) counts once. To make sure of that is
        costly, so the rows are taken as they are first.
        """
        rows, copies = f"{side}_scores", f"count(*) - bit_count(bit_or({_REPEAT_BIT}))"
        if self.duplicated:
            rows, copies = f"({self._single_runs(side)}) AS runs", "sum(copies - 1)::BIGINT"
        gathered, mean = self._repeated_options() if self._with_options else ("", "")
        return f"""
            WITH gathered AS (
                SELECT task, key, count(score) AS runs, {copies} AS copies,
                       count(*) - count(score) AS unscored,
                       count(*) FILTER (score >= {self.limit}) AS correct,
                       max(k) AS k, min(cluster) AS cluster,
                       round(avg(probability), 12) AS probability {gathered}
                FROM {rows} GROUP BY task, key)
            SELECT task, key, runs, copies, unscored, correct, k, cluster, probability {mean}
            FROM gathered"""

    def _single_runs(self, side: str) -> str:
        """SQL for one row per (task, key, repeat).

        Among duplicates the smallest id wins, so that the order of rows cannot matter.
        """
        order = "(item_ref, probability, options, right_option)"
        options = f""", arg_min(options, {order}) FILTER (options IS NOT NULL) AS options,
                   arg_min(right_option, {order}) FILTER (options IS NOT NULL) AS right_option"""
        return f"""
            SELECT task, key, repeat, count(*) AS copies,
                   arg_min(score, (item_ref, score)) FILTER (score IS NOT NULL) AS score,
                   max(k) AS k, min(cluster) AS cluster,
                   arg_min(probability, (item_ref, probability))
                       FILTER (probability IS NOT NULL) AS probability
                   {options if self._with_options else ""}
            FROM {side}_scores GROUP BY task, key, repeat"""

    def _repeated_options(self) -> tuple[str, str]:
        """SQL for the options of all repeats of an item, and for their mean.

        There is a mean only where all repeats with a probability have the same options.
        """
        size = self.lists.size.format("options")
        in_order = self.lists.in_order.format("options", "repeat")
        right = "CASE WHEN options IS NOT NULL THEN right_option END"
        gathered = f""", min({right}) AS right_option,
                   CASE WHEN count(options) = count(probability)
                             AND count(options) = count({right})
                             AND min({size}) = max({size})
                             AND min({right}) = max({right})
                        THEN {in_order} END AS repeats"""
        return gathered, f", right_option, {self.lists.mean.format('repeats')} AS options"

    def _weighed(self, items: str) -> str:
        """SQL for items with `wrong`, the probability of all wrong options together."""
        right = self.lists.at.format("options", "right_option")
        return f"""SELECT *, {self.lists.total.format("options")} - {right} AS wrong
                   FROM ({items}) AS items"""

    def _keep_buckets(self, sides: Iterable[str]) -> None:
        """Keep the table `clusters`, with the bucket of every (task, cluster) of some sides."""
        rows = " UNION ".join(f"SELECT task, cluster FROM {side}_rows" for side in sides)
        self._keep(
            "clusters",
            f"""SELECT task, cluster, (dense_rank() OVER (PARTITION BY task ORDER BY cluster) - 1)
                       % {CLUSTER_BUCKETS} AS bucket
                FROM ({rows}) AS named WHERE cluster IS NOT NULL""",
        )

    # --- the join ------------------------------------------------------------------------------

    def _paired(self, patterns: list[_Pattern], before: str, after: str) -> Pairs:
        """The pairs of two sides, from their histogram."""
        scored = [pattern for pattern in patterns if pattern.runs_before and pattern.runs_after]
        coverage, conflicts = self._cover(patterns, scored, before, after)
        if not scored:
            raise InputError(_nothing_in_common(coverage, patterns))
        return Pairs(
            patterns=_as_arrays(scored),
            metrics=self.metric_names(before, after),
            coverage=coverage,
            conflicts=conflicts,
            warnings=[*self._one_sided(before, after), *_other_options(scored)],
            prompts=self._changed_prompts(before, after),
            scores=self._score_sums(before, after),
            thresholds={task: at for task, at in self.thresholds.items() if task},
        )

    def _score_sums(self, before: str, after: str) -> dict[str, ScoreSums]:
        """Sum up the scores of the tasks in which they are more than right or wrong."""
        graded = sorted(
            {
                task
                for side in (before, after)
                for task, metric in self.chosen[side]
                if self.stock[side][task, metric].graded
            }
        )
        if not graded:
            return {}
        for side in (before, after):
            self._define(
                f"{side}_graded",
                f"""SELECT task, key, round(avg(score), 12) AS score FROM {side}_scores
                    WHERE task IN ({quoted(*graded)}) AND score IS NOT NULL GROUP BY task, key""",
            )
        # Rounded: the order in which a database adds changes the last digits.
        summed = ("p", "q", "fall", "fall * fall", "rise", "rise * rise")
        sums = ", ".join(f"round(sum({what}), 9)" for what in summed)
        rows = self._query(
            f"""WITH moved AS (
                    SELECT task, b.score AS p, a.score AS q,
                           (abs(b.score - a.score) + (b.score - a.score)) / 2 AS fall,
                           (abs(b.score - a.score) - (b.score - a.score)) / 2 AS rise
                    FROM {before}_graded b JOIN {after}_graded a USING (task, key))
                SELECT task, count(*), {sums} FROM moved GROUP BY task"""
        )
        scales = {task: self.scales[task][:2] for task in graded if task in self.scales}
        return {task: ScoreSums._make((*told, *scales[task])) for task, *told in sorted(rows)}

    def _histogram(self, before: str, after: str) -> list[_Pattern]:
        bucket, clusters = "-1", ""
        if self._count("with_cluster", before, after):
            self._keep_buckets((before, after))
            bucket = f"coalesce(c.bucket, abs(b.key % {CLUSTER_BUCKETS}), -1)::INT"
            clusters = """LEFT JOIN clusters c ON c.task = coalesce(b.task, a.task)
                                              AND c.cluster = coalesce(b.cluster, a.cluster)"""
        moments = ["0"] * MOMENTS
        if self._with_probabilities:
            moments = [_SQL_MOMENTS[moment].format(integer=self.integer) for moment in Moment]
        options, churn = self._churn_sql() if self._with_options else ("", "CAST(NULL AS DOUBLE)")
        counted = [f"{what}_{side}" for what in ("copies", "unscored") for side in _SIDES]
        counts = [f"sum({name})" if self.repeated else "0" for name in counted]
        rows = self._query(
            f"""WITH joined AS (
                    SELECT coalesce(b.task, a.task) AS task, coalesce(b.k, a.k) AS k,
                           {bucket} AS bucket,
                           b.runs AS runs_before, b.correct AS right_before,
                           a.runs AS runs_after, a.correct AS right_after,
                           coalesce(b.copies, 0) AS copies_before,
                           coalesce(a.copies, 0) AS copies_after,
                           coalesce(b.unscored, 0) AS unscored_before,
                           coalesce(a.unscored, 0) AS unscored_after,
                           coalesce(b.k <> a.k, false)::INT AS other_k,
                           CASE WHEN a.probability IS NOT NULL THEN b.probability END AS p,
                           CASE WHEN b.probability IS NOT NULL THEN a.probability END AS q
                           {options}
                    FROM {before}_items b FULL JOIN {after}_items a
                         ON b.task = a.task AND b.key = a.key {clusters}
                    {self._shared_tasks(before, after, "coalesce(b.task, a.task)")}),
                moved AS (
                    SELECT *, (abs(p - q) + (p - q)) / 2 AS lost,
                           (abs(p - q) - (p - q)) / 2 AS gained, {churn} AS churn
                    FROM joined),
                valued AS (
                    SELECT *, lost - coalesce(churn, 0) AS firm_lost,
                           gained - coalesce(churn, 0) AS firm_gained
                    FROM moved)
                SELECT task, k, bucket, runs_before, right_before, runs_after, right_after,
                       count(*), {", ".join(counts)}, sum(other_k), {", ".join(moments)}
                FROM valued
                GROUP BY task, k, bucket, runs_before, right_before, runs_after, right_after"""
        )
        return sorted((_Pattern._make((*row[:13], row[13:])) for row in rows), key=_order)

    def _packed_histogram(self, before: str, after: str) -> list[_Pattern] | None:
        """The same from one grouping of both sides; None where bits cannot tell it all."""
        held = self._held(before) + self._held(after)
        if not self.repeated or self.duplicated or self._with_probabilities:
            return None
        if any(each.with_cluster or not each.same_k for each in held):
            return None
        views, tasks = (f"{before}_scores", f"{after}_scores"), self._shared_tasks(before, after)
        rows = self._query(packed_sql(*views, self.limit, tasks))
        if any(row[-1] for row in rows):
            self.duplicated = all(fits(each.repeats) for each in held)
            return None
        k_before, k_after = (
            {task: self.stock[side][task, metric].most_k for task, metric in self.chosen[side]}
            for side in (before, after)
        )
        patterns = []
        for task, *outcome, items, unscored_before, unscored_after, _ in rows:
            ours = None if outcome[0] is None else k_before[task]
            theirs = None if outcome[2] is None else k_after[task]
            other_k = items if None not in (ours, theirs) and ours != theirs else 0
            counts = 0, 0, unscored_before, unscored_after, other_k, (0,) * MOMENTS
            k = theirs if ours is None else ours
            patterns.append(_Pattern._make((task, k, -1, *outcome, items, *counts)))
        return sorted(patterns, key=_order)

    def _churn_sql(self) -> tuple[str, str]:
        """SQL that joins the options of two sides, and for what guessing reshuffled among them.

        The wrong options tell it: among themselves they are exchangeable with a right option that
        is not known. Each is taken as its share of all that is wrong on its side. Half of the sum
        of the differences is the sum of those above zero, as the shares of a side sum up to 1.
        """
        sql = self.lists
        ours, theirs = self._sizes()
        joined = f""", b.options AS options_before, a.options AS options_after,
                      b.wrong AS wrong_before, a.wrong AS wrong_after, b.right_option AS gold,
                      CASE WHEN b.probability IS NOT NULL AND a.probability IS NOT NULL
                                AND {ours} >= {_FEWEST_OPTIONS} AND {ours} = {theirs}
                                AND b.right_option = a.right_option THEN {ours} END AS shown"""
        gap = sql.gap.format("options_before", "wrong_before", "options_after", "wrong_after")
        ours, theirs = (sql.at.format(f"options_{side}", "gold") for side in ("before", "after"))
        reshuffled = f"({gap} - abs({ours} / wrong_before - {theirs} / wrong_after)) / 2"
        churn = f"""CASE WHEN shown IS NULL THEN NULL
                         WHEN wrong_before <= 0 OR wrong_after <= 0 THEN 0
                         ELSE least(wrong_before, wrong_after) * shown / (shown - 1)
                              * {reshuffled} / (shown - 1) END"""
        return joined, churn

    def _sizes(self) -> tuple[str, str]:
        """SQL for how many options an item has in the logs `b` and `a`."""
        ours, theirs = (self.lists.size.format(f"{side}.options") for side in "ba")
        return ours, theirs

    def _shared_tasks(self, before: str, after: str, task: str = "task") -> str:
        """SQL that keeps to the tasks of both sides; empty where they have the same."""
        ours, theirs = ({task for task, _ in self.chosen[side]} for side in (before, after))
        if ours == theirs:
            return ""
        return f"WHERE {task} IN ({quoted(*sorted(ours & theirs))})"

    # --- what was and was not compared ---------------------------------------------------------

    def _cover(
        self, patterns: list[_Pattern], scored: list[_Pattern], before: str, after: str
    ) -> tuple[Coverage, list[tuple[str, str]]]:
        """Count what can be compared and what cannot; list the conflicts."""
        only_before = sum(each.items for each in patterns if each.runs_after is None)
        only_after = sum(each.items for each in patterns if each.runs_before is None)
        both = sum(each.items for each in patterns) - only_before - only_after
        matched = sum(each.items for each in scored)
        rows = self._conflicts(before, after) if only_before and only_after else []
        keys_before = len({(task, key) for task, _, key, _ in rows})
        keys_after = len({(task, key) for task, _, _, key in rows})
        missing = {side: self._not_shared(side, before, after) for side in (before, after)}
        only_before += self._items_of(before, missing[before])
        only_after += self._items_of(after, missing[after])
        coverage = Coverage(
            items_before=both + only_before,
            items_after=both + only_after,
            matched=matched,
            unscored=both - matched,
            unscored_runs=sum(int(each.unscored_before + each.unscored_after) for each in scored),
            only_before=only_before - keys_before,
            only_after=only_after - keys_after,
            conflicts=keys_before,
            duplicates=sum(int(each.copies_before + each.copies_after) for each in patterns),
            missing_before=missing[after],
            missing_after=missing[before],
            identity=self.identity_used,
            rows_before=self._account(patterns, before, after, "before"),
            rows_after=self._account(patterns, after, before, "after"),
        )
        return coverage, sorted({(task, ref) for task, ref, _, _ in rows})

    def _not_shared(self, side: str, before: str, after: str) -> list[str]:
        """The tasks of a side that the pair does not compare, for want of the task or a metric."""
        compared = set.intersection(
            *({task for task, _ in self.chosen[each]} for each in (before, after))
        )
        return sorted({task for task, _ in self.stock[side]} - compared)

    def _items_of(self, side: str, tasks: list[str]) -> int:
        """How many items a side holds of some tasks."""
        if not tasks:
            return 0
        [(items,)] = self._query(
            f"""WITH items AS (
                    SELECT DISTINCT task, coalesce(CAST(item AS VARCHAR), item_ref, source) AS item
                    FROM {side}_rows WHERE task IN ({quoted(*tasks)}))
                SELECT count(*) FROM items"""
        )
        return int(items)

    def _account(self, patterns: list[_Pattern], side: str, other: str, name: str) -> RowCounts:
        """Say what became of every row of one side."""
        samples, stock = self.samples[side], self.stock[side]
        shared = {task for task, _ in self.chosen[side]} & {task for task, _ in self.chosen[other]}
        held = sum(each.rows for each in stock.values())
        of_tasks = sum(each.rows for (task, _), each in stock.items() if task in shared)
        chosen = sum(stock[key].rows for key in self.chosen[side] if key[0] in shared)
        rows = dict.fromkeys(("paired", "one_sided", "unscored", "duplicates"), 0)
        for each in patterns:
            runs, lacking, copies = each.of_side(name)
            if runs is None:
                continue
            lacking = lacking if self.repeated or runs else each.items
            both = each.runs_before is not None and each.runs_after is not None
            compared = bool(each.runs_before and each.runs_after)
            rest = "unscored" if both else "one_sided"
            rows["paired" if compared else rest] += runs * each.items
            rows[rest] += lacking
            rows["duplicates"] += copies
        return RowCounts(
            read=held if samples.model is None else samples.rows,
            **rows,
            other_metrics=of_tasks - chosen,
            other_tasks=held - of_tasks,
            other_models=0 if samples.model is None else samples.rows - held,
            records=samples.meta.records,
            left_out=samples.meta.left_out,
        )

    def _one_sided(self, before: str, after: str) -> list[str]:
        """What to say of the tasks that only one of two logs has."""
        ours, theirs = ({task for task, _ in self.stock[side]} for side in (before, after))
        alone = {self.name(before): ours - theirs, self.name(after): theirs - ours}
        return [
            f"{len(tasks)} tasks only in {name}: {some(tasks)}"
            for name, tasks in alone.items()
            if tasks
        ]

    def _changed_prompts(self, before: str, after: str) -> dict[str, tuple[int, int]]:
        """Count the items that two models were asked in other words, by task."""
        reworded = self._reworded_tasks(before, after)
        if not reworded:
            return {}
        for side in (before, after):
            self._define(
                f"{side}_prompts",
                f"""SELECT task, key, min(prompt_hash) AS prompt FROM {side}_scores
                    WHERE task IN ({quoted(*reworded)}) GROUP BY task, key""",
            )
        rows = self._query(
            f"""SELECT task, count(*) FILTER (b.prompt <> a.prompt), count(*)
                FROM {before}_prompts b JOIN {after}_prompts a USING (task, key)
                GROUP BY task"""
        )
        return {task: (changed, paired) for task, changed, paired in sorted(rows) if changed}

    def _reworded_tasks(self, before: str, after: str) -> list[str]:
        """The tasks in which two sides were not asked all the same prompts."""
        if self.across:  # each harness hashes prompts in its own way
            return []
        reworded = []
        metrics = {side: dict(self.chosen[side]) for side in (before, after)}
        for task in sorted(metrics[before].keys() & metrics[after].keys()):
            ours, theirs = (self.stock[side][task, metrics[side][task]] for side in (before, after))
            if ours.with_prompt and theirs.with_prompt and ours.prompts != theirs.prompts:
                reworded.append(task)
        return reworded


_MOST_TARGETS = 100_000
_COMPARABLE_OPTIONS = """,
    CASE WHEN {0} = {1} AND b.right_option = a.right_option THEN b.options END AS options_before,
    CASE WHEN {0} = {1} AND b.right_option = a.right_option THEN a.options END AS options_after,
    CASE WHEN {0} = {1} AND b.right_option = a.right_option THEN b.right_option END AS right_option
"""
"""SQL for the options of an item in both logs, where they can stand side by side."""
_NUMBER = "-?[0-9]+(?:[.][0-9]+)?"
_ENDS_IN_NUMBER = f"(?:^|####)[ $]*{_NUMBER}[ %.]*$"
"""A target that is a number, or a worked solution that ends in one as those of GSM8K do."""
_ANSWER = f"""CASE WHEN lower(trim(answer)) NOT IN ({quoted(*NO_ANSWER)}) THEN trim(answer) END"""
_FINAL_NUMBER = f"""coalesce(
    nullif(regexp_extract(regexp_extract(
        replace(said, ',', ''), '(?s).*(?:####|nswer is|nswer:|boxed[{{])(.*)$', 1
    ), '{_NUMBER}', 0), ''),
    nullif(regexp_extract(
        replace(said, ',', ''), '(?s)^.*?({_NUMBER})[^0-9]*$', 1), ''),
    said)"""
"""SQL for the number that a text ends with: the first one after the last cue, or else the last."""


class LogPair(PairedLogs):
    """Two logs and the items behind their pairs."""

    overlap = "list_has_any"
    """Says whether two lists have anything in common."""
    _listed = False
    """Whether the flips were listed already."""

    def pairs(self) -> Pairs:
        """Join the two logs and count."""
        patterns = self._packed_histogram(*self.sides)
        self._define_items()
        if patterns is None:
            patterns = self._histogram(*self.sides)
        if self._has_duplicates(patterns):
            self.repeated = self.duplicated = True
            self._define_items()
            patterns = self._histogram(*self.sides)
        paired = self._paired(patterns, *self.sides)
        return replace(paired, warnings=[*paired.warnings, *self.warnings], source=self)

    def _has_duplicates(self, patterns: list[_Pattern]) -> bool:
        """A key that occurs twice in one log multiplies the joined rows; count to find out."""
        if self.repeated:
            copies = any(each.copies_before or each.copies_after for each in patterns)
            return copies and not self.duplicated
        before = sum(each.items for each in patterns if each.runs_before is not None)
        after = sum(each.items for each in patterns if each.runs_after is not None)
        if [before, after] != [self._count("rows", side) for side in self.sides]:
            return True
        if before == after == sum(each.items for each in patterns):
            return False
        return any(
            self._query(f"SELECT count(*) > count(DISTINCT (task, key)) FROM {side}_scores")[0][0]
            for side in self.sides
        )

    def _compared(self, sign: str) -> str:
        """SQL for the compared items whose share of right runs is `=` or `<>` in the two logs."""
        options = _COMPARABLE_OPTIONS.format(*self._sizes()) if self._with_options else ""
        return f"""SELECT b.task AS task, b.key AS key, coalesce(b.k, a.k) AS k,
                          b.correct / b.runs AS before, a.correct / a.runs AS after,
                          b.runs AS runs_before, a.runs AS runs_after,
                          CASE WHEN a.probability IS NOT NULL THEN b.probability END AS p,
                          CASE WHEN b.probability IS NOT NULL THEN a.probability END AS q
                          {options}
                   FROM s0_items b JOIN s1_items a ON b.task = a.task AND b.key = a.key
                   WHERE b.runs > 0 AND a.runs > 0
                         AND b.correct / b.runs {sign} a.correct / a.runs"""

    def flips(self) -> Iterable[pa.RecordBatch]:
        """Stream the items whose outcome changed, with both answers."""
        if not self._listed:
            self._list_flips()
            self._listed = True
        return self._stream(
            """SELECT * EXCLUDE key FROM listed
               ORDER BY task, before - after DESC, item, item_ref, key""",
            _BATCH,
        )

    def _list_flips(self) -> None:
        """Make the list of flips, at once and in DuckDB's own memory, so that damage shows here."""
        columns = ("item", "item_ref", "status", "target", "answer", "response", "prompt")
        fields = ", ".join(f"'{name}': {name}" for name in columns)
        order = "(repeat, item_ref, score, answer, response, prompt)"  # whatever the order of rows
        self._keep("flipped", self._compared("<>"))
        for side, right in (("s0", "f.before > f.after"), ("s1", "f.before < f.after")):
            self._define(
                f"{side}_shown",
                f"""WITH shown AS (
                        SELECT s.task AS task, s.key AS key, arg_min({{{fields}}}, {order})
                               FILTER ((score >= {self.limit}) = ({right})) AS shown
                        FROM {side}_scores s JOIN flipped f USING (task, key)
                        GROUP BY s.task, s.key)
                    SELECT task, key, unnest(shown) FROM shown""",
            )
        options = ("options_before", "options_after") if self._with_options else ("NULL", "NULL")
        self._keep(
            "listed",
            f"""SELECT f.task AS task, f.key AS key,
                       {SHOWN_ITEM.format("b")} AS item,
                       b.item_ref AS item_ref, f.k AS k,
                       if(f.before > f.after, 'forgotten', 'gained') AS transition,
                       f.before AS before, f.after AS after,
                       f.p AS probability_before, f.q AS probability_after,
                       CAST({options[0]} AS FLOAT[]) AS options_before,
                       CAST({options[1]} AS FLOAT[]) AS options_after,
                       {"f.right_option" if self._with_options else "NULL::INT"} AS right_option,
                       f.runs_before AS runs_before, f.runs_after AS runs_after,
                       b.target AS target,
                       b.answer AS answer_before, a.answer AS answer_after,
                       b.status AS status_before, a.status AS status_after,
                       b.prompt AS prompt_before, a.prompt AS prompt_after,
                       b.response AS response_before, a.response AS response_after
                FROM flipped f JOIN s0_shown b USING (task, key)
                     JOIN s1_shown a USING (task, key)""",
        )

    def churn(self) -> dict[str, int] | None:
        """Items by task that are wrong in every run of both logs, with no answer in common.

        None where the logs hold no answers. Only hashes are grouped: no text is moved.
        """
        for side in self.sides:
            self._define(
                f"{side}_wrong",
                f"""WITH texts AS (
                        SELECT task, key, score, replace(target, ',', '') AS target,
                               coalesce({_ANSWER}, trim(response)) AS said
                        FROM {side}_scores),
                    answers AS (
                        SELECT task, key, score,
                               CASE WHEN regexp_matches(target, '{_ENDS_IN_NUMBER}')
                                    THEN {_FINAL_NUMBER} ELSE said END AS said
                        FROM texts)
                    SELECT task, key, list(DISTINCT hash(said)) AS said
                    FROM answers GROUP BY task, key
                    HAVING max(score) < {self.limit} AND count(said) = count(*)""",
            )
        rows = self._query(
            f"""SELECT task, count(*) FILTER (NOT {self.overlap}(b.said, a.said))
                FROM s0_wrong b JOIN s1_wrong a USING (task, key) GROUP BY task"""
        )
        return dict(rows) or None

    def targets(self, tasks: Iterable[str]) -> list[str]:
        """Right answers to some tasks, each once; the first of very many."""
        rows = self._query(
            f"""SELECT DISTINCT target FROM s1_scores
                WHERE task IN ({quoted("", *sorted(tasks))}) AND target IS NOT NULL
                ORDER BY target LIMIT {_MOST_TARGETS}"""
        )
        return [target for (target,) in rows]

    def outcomes(self) -> pa.Table:
        """Every compared item, without text."""
        return self.connection.sql(
            """WITH named AS (
                   SELECT task, key, min(item_ref) AS item_ref FROM s0_scores GROUP BY task, key)
               SELECT b.task AS task, b.key::UBIGINT AS key, n.item_ref AS item_ref,
                      hash(coalesce(b.cluster, a.cluster)) AS cluster,
                      coalesce(b.cluster, a.cluster) IS NOT NULL AS clustered,
                      coalesce(b.probability - a.probability,
                               b.correct / b.runs - a.correct / a.runs)::FLOAT AS fall,
                      2 * b.correct > b.runs AS knew, 2 * a.correct > a.runs AS knows,
                      (a.correct / a.runs)::FLOAT AS right_after,
                      coalesce(if(a.probability IS NULL, NULL, b.probability),
                               b.correct / b.runs)::FLOAT AS chance, b.k AS k
               FROM s0_items b JOIN s1_items a USING (task, key) JOIN named n USING (task, key)
               WHERE b.runs > 0 AND a.runs > 0 ORDER BY task, key"""
        ).to_arrow_table()

    def unchanged(self) -> Iterable[pa.RecordBatch]:
        """Stream the compared items whose outcome stayed the same, without their text."""
        return self._stream(
            f"""WITH same AS ({self._compared("=")}),
                named AS (
                    SELECT task, key, min(item) AS item, min(item_ref) AS item_ref
                    FROM s0_scores GROUP BY task, key)
                SELECT s.task AS task, {SHOWN_ITEM.format("n")} AS item, n.item_ref AS item_ref,
                       s.k AS k, if(s.before > 0, 'retained', 'never') AS transition,
                       s.before AS before, s.after AS after,
                       s.p AS probability_before, s.q AS probability_after
                FROM same s JOIN named n USING (task, key)""",
            _BATCH,
        )


def _as_arrays(scored: list[_Pattern]) -> Patterns:
    names, options, *counts = zip(*(each[:8] for each in scored), strict=True)
    sums = [[0 if value is None else value for value in each.moments] for each in scored]
    moments = np.array(sums, dtype=np.float64)
    moments[:, Moment.P :] /= _SCALE
    k = np.array([np.inf if k is None else k for k in options])
    columns = [np.array(column, dtype=np.float64) for column in counts]
    return Patterns._make((np.array(names), k, *columns, moments))


def _other_options(scored: list[_Pattern]) -> list[str]:
    items = sum(int(each.other_k) for each in scored)
    if not items:
        return []
    return [f"{items} items have another number of options after; that before counts"]


def _nothing_in_common(coverage: Coverage, patterns: list[_Pattern]) -> str:
    if coverage.unscored:
        both = [each for each in patterns if None not in (each.runs_before, each.runs_after)]
        lacking = {
            "before": sum(each.items for each in both if not each.runs_before),
            "after": sum(each.items for each in both if not each.runs_after),
        }
        listed = ", ".join(f"{count} lack it {side}" for side, count in lacking.items() if count)
        return (
            f"none of the {coverage.unscored} common items has a score on both sides: {listed}; "
            "was that log scored, and is its column of scores the right one?"
        )
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
