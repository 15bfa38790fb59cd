"""Pairing: join two logs item by item and reduce them to small tables of counts.

The join happens once, in the database of `forgetmap.pairing.logs`. The result is, per task and
number of options, a histogram of outcome patterns ("right in 2 of 3 runs before, in 0 of 3 after:
17 items"). Everything after it works on that and costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from forgetmap.answers.extraction import NO_ANSWER
from forgetmap.base.database import quoted
from forgetmap.pairing.logs import SHOWN_ITEM
from forgetmap.pairing.outcomes import Pattern
from forgetmap.pairing.paired_logs import PairedLogs
from forgetmap.pairing.pairs import Pairs
from forgetmap.samples.comparability import Identity
from forgetmap.samples.table import Samples

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH = 8192
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

    def _has_duplicates(self, patterns: list[Pattern]) -> bool:
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
