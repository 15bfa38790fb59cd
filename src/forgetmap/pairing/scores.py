"""Scores of two models, paired item by item; and the items behind a change.

Every metric of every task is paired, by the rules for identity of all logs. Runs of an item are
averaged, so that the item stays the unit. Text is read only for the items that somebody wants to
see.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forgetmap.base.errors import InputError
from forgetmap.pairing.logs import Chosen, Logs
from forgetmap.samples.comparability import Coverage
from forgetmap.samples.table import THRESHOLD, Samples

Floats = NDArray[np.float64]

_VALUES = """
    SELECT task, metric, key,
           list_aggregate(list_sort(list(score)), 'avg') AS value,  -- sorted: no order of rows
           count(score) AS runs, count(*) AS said,
           count(*) FILTER (status NOT IN ('ok', 'invalid_gold', 'not_applicable')) AS failed,
           coalesce(bool_and(score = 0 OR score = 1), true) AS binary,
           hash(list_sort(list(coalesce(response, '')))) AS words,
           bool_or(response IS NOT NULL) AS has_words,
           count(*) - count(DISTINCT repeat) AS copies
    FROM {side}_scores GROUP BY task, metric, key"""
_PAIRS = """
    SELECT coalesce(b.task, a.task), coalesce(b.metric, a.metric), coalesce(b.key, a.key) AS key,
           b.value, a.value, coalesce(b.runs, 0), coalesce(a.runs, 0),
           coalesce(b.said, 0), coalesce(a.said, 0), coalesce(b.failed, 0), coalesce(a.failed, 0),
           coalesce(b.binary, true) AND coalesce(a.binary, true),
           coalesce(b.words = a.words AND b.has_words AND a.has_words, false)
    FROM s0_values b FULL OUTER JOIN s1_values a USING (task, metric, key) ORDER BY 1, 2, 3"""
_COVERED = """
    WITH before AS (SELECT task, key, sum(copies) AS copies FROM s0_values GROUP BY task, key),
         after AS (SELECT task, key, sum(copies) AS copies FROM s1_values GROUP BY task, key),
         scored AS (SELECT DISTINCT task, key
                    FROM s0_values b JOIN s1_values a USING (task, metric, key)
                    WHERE b.runs > 0 AND a.runs > 0)
    SELECT count(b.task), count(a.task), count(b.task) FILTER (a.task IS NOT NULL),
           (SELECT count(*) FROM scored),
           coalesce(sum(coalesce(b.copies, 0) + coalesce(a.copies, 0)), 0)::BIGINT
    FROM before b FULL OUTER JOIN after a ON b.task = a.task AND b.key = a.key"""


@dataclass
class MetricPairs:
    """One metric of one task: parallel arrays, one entry per item that either side has.

    `before` and `after` are means over runs, NaN where the side has no value.
    """

    item: NDArray[np.uint64]
    before: Floats
    after: Floats
    runs_before: Floats
    runs_after: Floats
    said_before: Floats
    """Rows of the item, with a value or without; 0 where the side does not have the item."""
    said_after: Floats
    failed_before: Floats
    failed_after: Floats
    binary: NDArray[np.bool_]
    same_words: NDArray[np.bool_]

    @property
    def paired(self) -> NDArray[np.bool_]:
        """Items with a value on both sides."""
        both: NDArray[np.bool_] = ~np.isnan(self.before) & ~np.isnan(self.after)
        return both


class ScoredAnswer(NamedTuple):
    """One item's value and words on one side."""

    value: float
    status: str
    answer: str | None
    response: str | None


class ItemWords(NamedTuple):
    """What an item is, in words."""

    ref: str | None
    prompt: str | None
    target: str | None


class ChangedItem(NamedTuple):
    """An item whose value changed."""

    item: ItemWords
    before: ScoredAnswer
    after: ScoredAnswer


class ScorePairs(Logs):
    """Two files of scores side by side."""

    def __init__(self, before: Samples, after: Samples) -> None:
        super().__init__({"before": before, "after": after}, None, THRESHOLD, "content")
        for side in self.sides:
            self._keep(f"{side}_values", _VALUES.format(side=side))

    def _choose(self, asked: Mapping[str, str] | str | None) -> dict[str, Chosen]:  # noqa: ARG002
        """Take every metric that either file holds."""
        return {side: set(stock) for side, stock in self.stock.items()}

    def metrics(self) -> dict[tuple[str, str], MetricPairs]:
        """Every (task, metric) that either side has; items in a fixed order."""
        entries: dict[tuple[str, str], list[tuple[Any, ...]]] = {}
        for task, metric, *rest in self._query(_PAIRS):
            entries.setdefault((task, metric), []).append(tuple(rest))
        return {key: _as_arrays(rows) for key, rows in entries.items()}

    def coverage(self) -> tuple[Coverage, list[str]]:
        """What was and was not compared, and the ids whose content differs, as TASK#ID."""
        [(before, after, both, matched, copies)] = self._query(_COVERED)
        rows = self._conflicts(*self.sides) if before > both and after > both else []
        keys_before = len({(task, key) for task, _, key, _ in rows})
        keys_after = len({(task, key) for task, _, _, key in rows})
        coverage = Coverage(
            items_before=before,
            items_after=after,
            matched=matched,
            unscored=both - matched,
            only_before=before - both - keys_before,
            only_after=after - both - keys_after,
            conflicts=keys_before,
            duplicates=copies,
            identity=self.identity_used,
        )
        return coverage, sorted({f"{task}#{ref}" for task, ref, _, _ in rows})

    def changed(
        self, wanted: Mapping[tuple[str, str], int], losses: int = 15, gains: int = 5
    ) -> dict[tuple[str, str], list[ChangedItem]]:
        """The items that changed most under each metric, losses first.

        Args:
            wanted: By (task, metric) the direction: 1 where a fall is a loss, -1 where a rise is.
            losses: How many losses at most.
            gains: How many gains at most.
        """
        if not wanted:
            return {}
        self._query("CREATE OR REPLACE TABLE wanted (task VARCHAR, metric VARCHAR, sign INTEGER)")
        rows = [(*key, sign) for key, sign in wanted.items()]
        self.connection.executemany("INSERT INTO wanted VALUES (?, ?, ?)", rows)
        self._keep(
            "picked",
            f"""WITH ranked AS (
                    SELECT task, metric, key, (a.value - b.value) * sign AS change,
                           change < 0 AS loss,
                           row_number() OVER (PARTITION BY task, metric, loss
                                              ORDER BY abs(change) DESC, key) AS rank
                    FROM s0_values b JOIN s1_values a USING (task, metric, key)
                    JOIN wanted USING (task, metric) WHERE a.value <> b.value)
                SELECT * EXCLUDE (rank) FROM ranked
                WHERE rank <= CASE WHEN loss THEN {losses} ELSE {gains} END""",
        )
        before, after = (self._texts(side) for side in self.sides)
        ordered = self._query(
            "SELECT task, metric, key FROM picked ORDER BY task, metric, NOT loss, "
            "abs(change) DESC, key"
        )
        changed: dict[tuple[str, str], list[ChangedItem]] = {}
        for place in ordered:
            item, ours = before[place]
            _, theirs = after[place]
            changed.setdefault((place[0], place[1]), []).append(ChangedItem(item, ours, theirs))
        return changed

    def _texts(self, side: str) -> dict[tuple[Any, ...], tuple[ItemWords, ScoredAnswer]]:
        """Words of the picked items on one side, of their first run that has a value."""
        rows = self._query(
            f"""SELECT s.task, s.metric, s.key, item_ref, prompt, target, score, status, answer,
                       response
                FROM {side}_scores s JOIN picked USING (task, metric, key)
                WHERE score IS NOT NULL ORDER BY repeat DESC"""
        )
        return {row[:3]: (ItemWords(*row[3:6]), ScoredAnswer(*row[6:])) for row in rows}


def _as_arrays(entries: list[tuple[Any, ...]]) -> MetricPairs:
    item, *columns = zip(*entries, strict=True)
    numbers = [np.array(column, dtype=np.float64) for column in columns[:8]]  # None becomes NaN
    flags = [np.array(column, dtype=np.bool_) for column in columns[8:]]
    return MetricPairs(np.array(item, dtype=np.uint64), *numbers, *flags)  # type: ignore[arg-type]


def check_scored(samples: Samples, side: str) -> None:
    """Refuse answers that were read but not scored yet."""
    for batch in samples.to_batches(["score"]):
        if batch["score"].null_count < batch.num_rows:
            return
    raise InputError(f"{side}: holds no scores; make them with `forgetmap score`")


def by_task(
    metrics: Mapping[tuple[str, str], MetricPairs],
) -> Iterator[tuple[str, dict[str, MetricPairs]]]:
    """The metrics of each task together: they share items, and so their noise."""
    tasks: dict[str, dict[str, MetricPairs]] = {}
    for (task, metric), pairs in metrics.items():
        tasks.setdefault(task, {})[metric] = pairs
    yield from tasks.items()
