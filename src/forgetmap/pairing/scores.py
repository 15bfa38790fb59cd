"""Scores of two models, paired item by item; and the items behind a change.

The join happens once, in DuckDB, on narrow columns. Runs of an item are averaged, so that the item
stays the unit. Text is read only for the items that somebody wants to see.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb
import numpy as np

from forgetmap.base.database import query
from forgetmap.base.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from forgetmap.samples.table import Samples

    Floats = NDArray[np.float64]

_COLUMNS = ("task", "metric", "item", "item_ref", "repeat", "score", "status", "response")
_SIDE = """
    SELECT task, metric, coalesce(item, hash(item_ref)) AS item,
           list_aggregate(list_sort(list(score)), 'avg') AS value,  -- sorted: no order of rows
           count(score) AS runs, count(*) AS said,
           count(*) FILTER (status NOT IN ('ok', 'invalid_gold', 'not_applicable')) AS failed,
           coalesce(bool_and(score = 0 OR score = 1), true) AS binary,
           hash(list_sort(list(coalesce(response, '')))) AS words,
           bool_or(response IS NOT NULL) AS has_words
    FROM {side}_stream GROUP BY ALL"""
_PAIRS = """
    SELECT coalesce(b.task, a.task), coalesce(b.metric, a.metric), coalesce(b.item, a.item) AS item,
           b.value, a.value, coalesce(b.runs, 0), coalesce(a.runs, 0),
           coalesce(b.said, 0), coalesce(a.said, 0), coalesce(b.failed, 0), coalesce(a.failed, 0),
           coalesce(b.binary, true) AND coalesce(a.binary, true),
           coalesce(b.words = a.words AND b.has_words AND a.has_words, false)
    FROM before b FULL OUTER JOIN after a USING (task, metric, item) ORDER BY 1, 2, 3"""


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


class Side(NamedTuple):
    """One item's value and words on one side."""

    value: float
    status: str
    answer: str | None
    response: str | None


class Asked(NamedTuple):
    """What an item is, in words."""

    ref: str | None
    prompt: str | None
    target: str | None


class ChangedItem(NamedTuple):
    """An item whose value changed."""

    item: Asked
    before: Side
    after: Side


class ScorePairs:
    """Two files of scores side by side."""

    def __init__(self, before: Samples, after: Samples) -> None:
        self.samples = [before, after]
        self.connection = duckdb.connect()
        for side, samples in zip(("before", "after"), self.samples, strict=True):
            self.connection.register(f"{side}_stream", samples.to_reader(_COLUMNS))
            self._run(f"CREATE TABLE {side} AS {_SIDE.format(side=side)}")

    def _run(self, sql: str) -> list[tuple[Any, ...]]:
        return query(self.connection, sql, [samples.data for samples in self.samples])

    def metrics(self) -> dict[tuple[str, str], MetricPairs]:
        """Every (task, metric) that either side has; items in a fixed order."""
        rows = self._run(_PAIRS)
        found: dict[tuple[str, str], list[tuple[Any, ...]]] = {}
        for task, metric, *rest in rows:
            found.setdefault((task, metric), []).append(tuple(rest))
        return {key: _pairs(entries) for key, entries in found.items()}

    def changed(
        self, wanted: Mapping[tuple[str, str], int], losses: int = 15, gains: int = 5
    ) -> dict[tuple[str, str], list[ChangedItem]]:
        """The items that changed most under each metric, losses first.

        Args:
            wanted: By (task, metric) the direction: 1 where a fall is a loss, -1 where a rise is.
            losses: How many losses at most.
            gains: How many gains at most.
        """
        self._run("CREATE OR REPLACE TABLE wanted (task VARCHAR, metric VARCHAR, sign INTEGER)")
        rows = [(*key, sign) for key, sign in wanted.items()]
        if not rows:
            return {}
        self.connection.executemany("INSERT INTO wanted VALUES (?, ?, ?)", rows)
        self._run(
            f"""CREATE OR REPLACE TABLE picked AS
                SELECT * EXCLUDE (rank) FROM (
                    SELECT task, metric, item, (a.value - b.value) * sign AS change,
                           change < 0 AS loss,
                           row_number() OVER (PARTITION BY task, metric, loss
                                              ORDER BY abs(change) DESC, item) AS rank
                    FROM before b JOIN after a USING (task, metric, item)
                    JOIN wanted USING (task, metric) WHERE a.value <> b.value)
                WHERE rank <= CASE WHEN loss THEN {losses} ELSE {gains} END"""
        )
        before, after = (self._texts(samples) for samples in self.samples)
        ordered = self._run(
            "SELECT task, metric, item FROM picked ORDER BY task, metric, NOT loss, "
            "abs(change) DESC, item"
        )
        found: dict[tuple[str, str], list[ChangedItem]] = {}
        for key in ordered:
            item, ours = before[key]
            _, theirs = after[key]
            found.setdefault((key[0], key[1]), []).append(ChangedItem(item, ours, theirs))
        return found

    def _texts(self, samples: Samples) -> dict[tuple[Any, ...], tuple[Asked, Side]]:
        """Words of the picked items on one side, of their first run that has a value."""
        texts = ("prompt", "target", "answer")
        self.connection.register("texts", samples.to_reader([*_COLUMNS, *texts]))
        rows = self._run(
            """SELECT p.task, p.metric, p.item, t.item_ref, prompt, target, score, status, answer,
                       response
                FROM texts t JOIN picked p
                ON t.task = p.task AND t.metric = p.metric
                   AND p.item = coalesce(t.item, hash(item_ref))
                WHERE score IS NOT NULL ORDER BY repeat DESC"""
        )
        return {row[:3]: (Asked(*row[3:6]), Side(*row[6:])) for row in rows}


def _pairs(entries: list[tuple[Any, ...]]) -> MetricPairs:
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
