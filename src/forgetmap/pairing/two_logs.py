"""Pairing: join two Samples item by item and reduce them to small count tables.

The join happens once, in the database of `forgetmap.pairing.logs`. The result is, per task and
number of options, a histogram of outcome patterns ("right in 2 of 3 runs before, in 0 of 3 after:
17 items"); everything after it works on that and costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from forgetmap.base.database import quoted
from forgetmap.base.errors import InputError
from forgetmap.base.words import some
from forgetmap.pairing.logs import CLUSTER_BUCKETS, SCALE, Logs
from forgetmap.pairing.metrics import asked_metric, choose_metric
from forgetmap.samples.table import THRESHOLD
from forgetmap.stats.patterns import Patterns

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa
    from numpy.typing import NDArray

    from forgetmap.base.database import Rows
    from forgetmap.pairing.logs import Identity
    from forgetmap.samples.table import Samples

_BATCH = 8192
_SHOWN_ITEM = "coalesce(printf('%016x', {0}.item), {0}.item_ref)"
"""SQL for an item as people can find it again: its content hash, or the harness's id."""


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


@dataclass(frozen=True)
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

    def flips(self) -> Iterable[pa.RecordBatch]:
        """Stream the items whose outcome changed, with both answers, always in the same order.

        The texts are those of a run that shows the change: for a forgotten item a right answer
        before and a wrong one after.
        """
        return self._logs.flips()

    def unchanged(self) -> Iterable[pa.RecordBatch]:
        """Stream the compared items whose outcome stayed the same, without their text."""
        return self._logs.unchanged()

    @property
    def _logs(self) -> Engine:
        if self.engine is None:
            raise InputError("these pairs were not made from logs; there are no items to list")
        return self.engine

    def churn(self) -> dict[str, int] | None:
        """Items by task that are wrong in every run on both sides, with no answer in common.

        None where the logs hold no answers.
        """
        return self.engine.churn() if self.engine is not None else None


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
        >>> from forgetmap.samples.table import Samples
        >>> from forgetmap.samples.identity import content_hash
        >>> def log(scores):
        ...     return Samples.from_rows(
        ...         {"task": "t", "item": content_hash(str(i)), "score": s}
        ...         for i, s in enumerate(scores))
        >>> pairs = pair(log([1, 1, 0, 1]), log([1, 0, 1, 1]))
        >>> pairs.coverage.matched, int(pairs.patterns.n[pairs.patterns.change < 0].sum())
        (4, 1)
    """
    return Engine(before, after, metric, threshold, identity).pairs()


class _Pattern(NamedTuple):
    """Items of one task that did the same on both sides; runs are None where a side lacks them."""

    task: str
    k: int | None
    bucket: int
    runs_before: int | None
    right_before: int | None
    runs_after: int | None
    right_after: int | None
    items: int
    copies: Any
    """Duplicated rows; a Decimal on Spark."""
    soft: tuple[Any, ...]
    """As in `Patterns`, its sums in whole multiples of 1 / SCALE."""


class Engine(Logs):
    """Both sides of a comparison; `forgetmap.pairing.spark` puts Spark in the place of DuckDB."""

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

    # --- metrics -------------------------------------------------------------------------------

    def _choose_metrics(self, asked: Mapping[str, str] | str | None) -> dict[str, dict[str, str]]:
        """Choose one metric per task, by side; the same on both, but for different harnesses."""
        held = self._metrics_held()
        common = self._common_tasks(held)
        if isinstance(asked, dict) and (unknown := asked.keys() - common):
            raise InputError(f"no task {some(unknown)} in both logs; they share {some(common)}")
        chosen: dict[str, dict[str, str]] = {"before": {}, "after": {}}
        for task in common:
            before, after = held[task]["before"], held[task]["after"]
            shared, wanted = before & after, asked_metric(asked, task)
            if (wanted and wanted not in shared) or not (shared or self.across):
                self.warnings.append(
                    f"task {task} left out: before has {some(before)}, after has {some(after)}"
                    + (f", asked was {wanted}" if wanted else "")
                )
                continue
            for side, metrics in held[task].items():
                chosen[side][task] = wanted or choose_metric(task, shared or metrics)
        if not chosen["before"]:
            raise InputError("no task has a metric in common: " + "; ".join(self.warnings))
        return chosen

    def _common_tasks(self, held: Mapping[str, Mapping[str, set[str]]]) -> list[str]:
        """The tasks of both sides; warns of those that only one has."""
        before, after = ({task for task in held if side in held[task]} for side in self.samples)
        if not before & after:
            raise InputError(
                "the two logs have no task in common "
                f"(before: {some(before)}; after: {some(after)})"
            )
        for side, alone in (("before", before - after), ("after", after - before)):
            if alone:
                self.warnings.append(f"{len(alone)} tasks only in {side}: {some(alone)}")
        return sorted(before & after)

    # --- the join ------------------------------------------------------------------------------

    def pairs(self) -> Pairs:
        """Join the two sides and count."""
        self.repeated = self._has_repeats()
        found = self._histogram()
        if not self.repeated and self._has_duplicates(found):
            self.repeated = True
            found = self._histogram()
        return self._collect(found)

    def _joined(self) -> str:
        return f"""({self._side("before")}) b FULL JOIN ({self._side("after")}) a
                   ON b.task = a.task AND b.key = a.key"""

    def _buckets(self) -> tuple[str, str]:
        """SQL for the cluster bucket of a joined item, and for the join that finds it."""
        if not self._count("with_cluster", "before", "after"):
            return "-1", ""
        self._keep_buckets(
            "SELECT task, cluster FROM before_rows UNION SELECT task, cluster FROM after_rows"
        )
        join = """LEFT JOIN clusters c ON c.task = coalesce(b.task, a.task)
                                      AND c.cluster = coalesce(b.cluster, a.cluster)"""
        return f"coalesce(c.bucket, abs(b.key % {CLUSTER_BUCKETS}), -1)::INT", join

    def _histogram(self) -> list[_Pattern]:
        bucket, clusters = self._buckets()
        sums = ", ".join(
            f"sum(round(power({value}, {degree}) * {SCALE})::{self.integer})"
            for value in ("forgotten", "gained")
            for degree in (1, 2, 3)
        )
        soft = f"count(change), {sums}" if self._soft else "0, 0, 0, 0, 0, 0, 0"
        copies = "sum(copies)" if self.repeated else "0"
        rows = self._query(
            f"""SELECT task, k, bucket, runs_before, right_before, runs_after, right_after,
                       count(*), {copies}, {soft}
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
        rows.sort(key=lambda row: [(value is not None, value) for value in row[:7]])
        return [_Pattern._make((*row[:9], row[9:])) for row in rows]

    def _has_duplicates(self, found: list[_Pattern]) -> bool:
        """A key that stands twice on one side multiplies the joined rows; count to find out."""
        before = sum(each.items for each in found if each.runs_before is not None)
        after = sum(each.items for each in found if each.runs_after is not None)
        if (before, after) != (self._count("rows", "before"), self._count("rows", "after")):
            return True
        if before == after == sum(each.items for each in found):
            return False
        copies = "SELECT count(*) > count(DISTINCT (task, key)) FROM ({})"
        return any(self._query(copies.format(self._rows(side)))[0][0] for side in self.samples)

    # --- results -------------------------------------------------------------------------------

    def _collect(self, found: list[_Pattern]) -> Pairs:
        scored = [each for each in found if each.runs_before and each.runs_after]
        coverage = self._cover(found, sum(each.items for each in scored))
        conflicts: list[tuple[str, str]] = []
        if coverage.only_before and coverage.only_after:
            rows = self._conflicts()
            conflicts = sorted({(task, ref) for task, ref, _, _ in rows})
            coverage.conflicts = len({(task, key) for task, _, key, _ in rows})
            coverage.only_before -= coverage.conflicts
            coverage.only_after -= len({(task, key) for task, _, _, key in rows})
        if not scored:
            raise InputError(_nothing_in_common(coverage))
        return Pairs(
            patterns=_as_arrays(scored),
            metrics=self.metric_names("before", "after"),
            coverage=coverage,
            conflicts=conflicts,
            warnings=self.warnings,
            prompts=self._changed_prompts(),
            engine=self,
        )

    def _cover(self, found: list[_Pattern], matched: int) -> Coverage:
        """Count what can be compared and what cannot, before conflicts are looked for."""
        only_before = sum(each.items for each in found if each.runs_after is None)
        only_after = sum(each.items for each in found if each.runs_before is None)
        both = sum(each.items for each in found) - only_before - only_after
        return Coverage(
            items_before=both + only_before,
            items_after=both + only_after,
            matched=matched,
            unscored=both - matched,
            only_before=only_before,
            only_after=only_after,
            duplicates=sum(int(each.copies) for each in found),
            identity=self.identity_used,
        )

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

    def _changed_prompts(self) -> dict[str, tuple[int, int]]:
        """Count the items that the two models were asked in other words, by task."""
        differing = self._reworded_tasks("before", "after")
        if not differing:
            return {}
        first = {
            side: f"""SELECT task, {self._key(side)} AS key, min(prompt_hash) AS prompt
                      FROM {side}_rows WHERE task IN ({quoted(*differing)}) GROUP BY ALL"""
            for side in self.samples
        }
        found = self._query(
            f"""SELECT task, count(*) FILTER (b.prompt <> a.prompt), count(*)
                FROM ({first["before"]}) b JOIN ({first["after"]}) a USING (task, key)
                GROUP BY task"""
        )
        return {task: (changed, paired) for task, changed, paired in sorted(found) if changed}

    # --- single items --------------------------------------------------------------------------

    def _compared(self, sign: str) -> str:
        """SQL for the compared items whose share of right runs is `=` or `<>` on the two sides."""
        return f"""SELECT b.task AS task, b.key AS key, coalesce(b.k, a.k) AS k,
                          b.correct / b.runs AS before, a.correct / a.runs AS after
                   FROM {self._joined()}
                   WHERE b.runs > 0 AND a.runs > 0
                         AND b.correct / b.runs {sign} a.correct / a.runs"""

    def _flipped(self) -> str:
        """SQL for the keys of the items whose outcome changed."""
        return self._compared("<>")

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
                       {_SHOWN_ITEM.format("b")} AS item,
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
        return self._stream(
            f"""SELECT s.task AS task, {_SHOWN_ITEM.format("r")} AS item, r.item_ref AS item_ref,
                       s.k AS k, if(s.before > 0, 'retained', 'never') AS transition,
                       s.before AS before, s.after AS after
                FROM ({self._compared("=")}) s JOIN ({refs}) r USING (task, key)""",
            _BATCH,
        )


def _as_arrays(scored: list[_Pattern]) -> Patterns:
    names, options, *counts = zip(*(each[:8] for each in scored), strict=True)
    soft = np.array([each.soft for each in scored], dtype=np.float64)
    soft[:, 1:] /= SCALE
    columns: list[NDArray[Any]] = [
        np.array(names),
        np.array([np.inf if k is None else k for k in options]),
        *(np.array(column, dtype=np.float64) for column in counts),
        soft,
    ]
    return Patterns(*columns)


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
