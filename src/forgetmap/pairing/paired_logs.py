"""The join: logs of one database, paired item by item and reduced to outcome patterns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from forgetmap.base.database import quoted
from forgetmap.base.errors import InputError
from forgetmap.pairing.accounts import Accounts, nothing_in_common, other_options
from forgetmap.pairing.logs import CLUSTER_BUCKETS
from forgetmap.pairing.outcomes import SCALE, Pattern, as_arrays, in_order, merged
from forgetmap.pairing.packed import fits, packed_sql, single_run, single_sql
from forgetmap.pairing.pairs import Pairs, ScoreSums
from forgetmap.stats.patterns import FACTORS, MOMENTS, Moment

_SQL_MOMENTS = {
    Moment.ITEMS: "count(p)",
    Moment.CHURN_KNOWN: "count(churn)",
    **{
        moment: f"sum(round({' * '.join(factors)} * {SCALE})::{{integer}})"
        for moment, factors in FACTORS.items()
    },
}
"""SQL for each moment; the sums are whole multiples of 1 / SCALE."""
_REPEAT_BIT = "1::BIGINT << CAST(abs(repeat::BIGINT) % 63 AS INT)"
"""SQL for a repeat as one of 63 bits; two that share a bit are taken for duplicates, and looked at
again. So that hardly happens: 63 and 1000, by which runs are numbered, have no factor in common."""
_FEWEST_OPTIONS = 3
"""With fewer there are no two wrong options that guessing could reshuffle."""
_SIDES = ("before", "after")


class PairedLogs(Accounts):
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

    def _paired(self, patterns: list[Pattern], before: str, after: str) -> Pairs:
        """The pairs of two sides, from their histogram."""
        scored = [pattern for pattern in patterns if pattern.runs_before and pattern.runs_after]
        coverage, conflicts = self._cover(patterns, scored, before, after)
        if not scored:
            raise InputError(nothing_in_common(coverage, patterns))
        return Pairs(
            patterns=as_arrays(scored),
            metrics=self.metric_names(before, after),
            coverage=coverage,
            conflicts=conflicts,
            warnings=[*self._one_sided(before, after), *other_options(scored)],
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

    def _histogram(self, before: str, after: str) -> list[Pattern]:
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
        return sorted((Pattern._make((*row[:13], row[13:])) for row in rows), key=in_order)

    def _packed_histogram(self, before: str, after: str) -> list[Pattern] | None:
        """The same from what was done on an item as one number; None where that cannot tell all."""
        if self.duplicated or self._with_probabilities:
            return None
        if self._count("with_cluster", before, after):
            return None
        codes = {
            task: self.stock[side][task, metric].code
            for side in (before, after)
            for task, metric in self.chosen[side]
        }
        names = {code: task for task, code in codes.items()}
        if len(names) < len(codes):  # two tasks have the same hash
            return None
        found = self._of_repeats if self.repeated else self._of_single_runs
        patterns = found(before, after, names)
        return None if patterns is None else merged(patterns)

    def _of_single_runs(self, before: str, after: str, names: dict[int, str]) -> list[Pattern]:
        """Patterns of logs without repeats, whose tasks have such hashes."""
        views, tasks = (f"{before}_scores", f"{after}_scores"), self._shared_tasks(before, after)
        patterns = []
        for code, *did, items in self._query(single_sql(*views, self.limit, tasks)):
            (ours, *outcome), (theirs, *outcome_after) = map(single_run, did)
            outcome += outcome_after
            patterns.append(_packed(names[code], (ours, theirs), outcome, items))
        return patterns

    def _of_repeats(self, before: str, after: str, names: dict[int, str]) -> list[Pattern] | None:
        """Patterns from one grouping of both sides; None where bits cannot tell them all."""
        k_before, k_after = map(self._options_by_task, (before, after))
        if k_before is None or k_after is None:
            return None
        views, tasks = (f"{before}_scores", f"{after}_scores"), self._shared_tasks(before, after)
        rows = self._query(packed_sql(*views, self.limit, tasks))
        patterns = []
        for code, *outcome, items, unscored_before, unscored_after in rows:
            task = names[code]
            ours = None if outcome[0] is None else k_before[task]
            theirs = None if outcome[2] is None else k_after[task]
            unscored = unscored_before, unscored_after
            patterns.append(_packed(task, (ours, theirs), outcome, items, unscored))
        if sum(map(_runs, patterns)) < self._rows_of_shared_tasks(before, after):
            held = self._held(before) + self._held(after)
            self.duplicated = all(fits(each.repeats) for each in held)
            return None
        return patterns

    def _rows_of_shared_tasks(self, before: str, after: str) -> int:
        """How many rows two sides have of the tasks and metrics that are compared."""
        tasks = {task for task, _ in self.chosen[before]} & {task for task, _ in self.chosen[after]}
        return sum(
            self.stock[side][task, metric].rows
            for side in (before, after)
            for task, metric in self.chosen[side]
            if task in tasks
        )

    def _options_by_task(self, side: str) -> dict[str, int | None] | None:
        """How many options the items of each task have; None where they differ within a task."""
        samples = self.samples[side]
        if samples.null_count("k") == samples.rows:
            return dict.fromkeys(task for task, _ in self.chosen[side])
        rows = self._query(
            f"""SELECT task, min(k), max(k), count(k), count(*) FROM {side}_scores GROUP BY task"""
        )
        if any(low != high or told not in (0, held) for _, low, high, told, held in rows):
            return None
        return {task: k for task, k, *_ in rows}

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


def _packed(
    task: str,
    options: tuple[int | None, int | None],
    outcome: Sequence[int | None],
    items: int,
    unscored: tuple[int, int] = (0, 0),
) -> Pattern:
    """The pattern of some items with so many options in each log; the first log counts."""
    ours, theirs = options
    k = theirs if ours is None else ours
    other_k = items if None not in options and ours != theirs else 0
    moments = (0,) * MOMENTS
    return Pattern._make((task, k, -1, *outcome, items, 0, 0, *unscored, other_k, moments))


def _runs(pattern: Pattern) -> int:
    """All runs of some items in both logs, with and without a score."""
    scored = (pattern.runs_before or 0) + (pattern.runs_after or 0)
    return int(scored * pattern.items + pattern.unscored_before + pattern.unscored_after)
