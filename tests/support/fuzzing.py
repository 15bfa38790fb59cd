"""What must hold of any log, however malformed: sound samples, or one clear line."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import forgetmap
from forgetmap.base.errors import InputError, WithheldError
from forgetmap.pairing.two_logs import pair
from forgetmap.readers.framework import ReadOptions
from forgetmap.readers.registry import read
from forgetmap.readers.summary import show
from forgetmap.samples.table import SCHEMA, STATUSES, TEXT_COLUMNS, Samples

if TYPE_CHECKING:
    from forgetmap.samples.comparability import Coverage
    from malformed import Case

SCORED = {"ok", "no_answer", "truncated", "refused"}
"""Statuses of an answer that was scored; all others mean that there is no score."""


def cases(default: int) -> int:
    """How many cases to try: few in the default run; `make slow` and `make fuzz` say how many."""
    return int(os.environ.get("FORGETMAP_FUZZ_CASES", default))


def read_or_refuse(path: Path, folder: Path) -> Samples | None:
    """Read a log as every command does; None where it was refused as it should be."""
    try:
        samples = read(path, ReadOptions(text=True, wording=True))
        assert_valid(samples)
        assert_records_add_up(samples)
    except InputError as error:
        assert_one_line(error, folder)
        return None
    return samples


def read_case(case: Case, good: Samples, folder: Path) -> Samples | None:
    """Read a malformed log and check all that must hold of it; None where it was refused."""
    samples = read_or_refuse(case.path, folder)
    if samples is None:
        return None
    assert_not_more(case, samples, good)
    return in_memory(samples)


def pair_case(samples: Samples, good: Samples) -> None:
    """Pair a malformed log with the good one: every row is accounted for, or it is refused."""
    for model in samples.models[:2]:
        chosen, partner = samples.only(model), good.only(good.models[0])
        try:
            pairs = pair(chosen, partner, metric=shared_metrics(chosen, partner))
        except InputError:
            continue
        assert_rows_add_up(pairs.coverage, chosen, partner)


def assert_one_line(error: InputError, folder: Path) -> None:
    """The message is one line, not endless, and names the log."""
    told = str(error).replace(str(folder), "FOLDER")
    assert "FOLDER" in told, told
    assert "\n" not in told.replace("\x1b[31m\n", ""), told  # but for the name of a file
    assert len(told) < 1000, told


def assert_valid(samples: Samples, text: bool = True) -> None:
    """The table is as declared, and no value contradicts another."""
    table = in_memory(samples).data
    table.validate(full=True)
    if isinstance(samples.data, Path):
        return  # a Samples file is opened as it is; its values are those that were written
    assert table.schema.equals(SCHEMA)
    for row in table.to_pylist():
        score = row["score"]
        assert score is None or math.isfinite(score), row
        assert row["status"] in STATUSES, row
        assert (score is not None) == (row["status"] in SCORED), row
        assert row["k"] is None or row["k"] > 1, row
        probability = row["gold_probability"]
        assert probability is None or 0 <= probability <= 1, row
        options, right = row["option_probabilities"], row["right_option"]
        if options is not None:
            assert min(options) >= 0, row
            assert sum(options) == pytest.approx(1, abs=1e-3), row
            assert right is None or 0 <= right < len(options), row
        assert row["item"] is not None or row["item_ref"] is not None, row
        assert row["repeat"] >= 0, row
        assert None not in (row["model"], row["task"], row["metric"]), row
        assert text or all(row[name] is None for name in TEXT_COLUMNS), row


def in_memory(samples: Samples) -> Samples:
    """All rows, read now; damage within a Samples file shows here."""
    batches = list(samples.to_batches())
    assert all(batch.schema.types == SCHEMA.types for batch in batches)
    columns = pa.Table.from_batches(batches) if batches else SCHEMA.empty_table()
    return Samples(columns, samples.meta)


def answers(samples: Samples) -> int:
    """Count the answers, whatever they were scored by."""
    columns = ["model", "task", "item", "item_ref", "repeat"]
    found = {tuple(row.values()) for b in samples.to_batches(columns) for row in b.to_pylist()}
    return len(found)


def assert_not_more(case: Case, damaged: Samples, good: Samples) -> None:
    """Damage does not make answers out of nothing.

    A log that is no longer known by its harness may be read as plain tables. Then every record is
    an answer, also where the harness writes two for one answer.
    """
    most = answers(good) + case.more
    if damaged.meta.harness != good.meta.harness:
        most = max(most, damaged.meta.records)
    assert answers(damaged) <= most, (answers(damaged), answers(good))


# --- every row has its place ----------------------------------------------------------------------

NOT_BY_PLACE = {"helm", "opencompass", "forgetmap-eval"}
"""Harnesses whose answers cannot be told apart by the place that a row names."""


def assert_records_add_up(samples: Samples) -> None:
    """Every answer that the reader saw gave a row, or was left out and counted."""
    meta = samples.meta
    assert 0 <= meta.left_out <= meta.records or not meta.records, meta
    if meta.left_out:
        assert meta.warnings, "left out in silence"
    if not meta.records or meta.harness in NOT_BY_PLACE:
        return
    columns = ["model", "run", "task", "source"]
    batches = (batch.to_pylist() for batch in samples.to_batches(columns))
    places = {tuple(row.values()) for rows in batches for row in rows}
    assert len(places) == meta.records - meta.left_out, (len(places), meta.records, meta.left_out)


def assert_rows_add_up(coverage: Coverage, before: Samples, after: Samples) -> None:
    """Rows in the logs = paired + one-sided + unscored + duplicates + those not asked for."""
    for rows, samples in ((coverage.rows_before, before), (coverage.rows_after, after)):
        assert rows is not None
        assert rows.read == rows.accounted == samples.rows, rows
        assert min(rows.model_dump().values()) >= 0, rows
        assert (rows.records, rows.left_out) == (samples.meta.records, samples.meta.left_out)
    assert coverage.duplicates == coverage.rows_before.duplicates + coverage.rows_after.duplicates


# --- the whole way --------------------------------------------------------------------------------


def survives(path: Path, other: Path | None = None) -> forgetmap.ForgettingMap | None:
    """Show and compare, with a list of flips: a sound map, or None where the log was refused."""
    try:
        show(path)
        samples = read(path, ReadOptions(text=True))
        chosen = samples.only(samples.models[0])
        partner = read(other) if other else chosen
        with_flips = path.parent / "flips.csv"
        result = forgetmap.compare(
            chosen, partner, draws=100, flips=with_flips, metric=shared_metrics(chosen, partner)
        )
    except (InputError, WithheldError) as error:
        if not str(error).strip():
            pytest.fail("an error without a message")
        return None
    assert_sound(result)
    assert_rows_add_up(result.coverage, chosen, partner)
    return result


def shared_metrics(one: Samples, other: Samples) -> dict[str, str] | None:
    """Choose a metric for every task that two logs share, as a user would when asked to."""
    held: list[dict[str, set[str]]] = [{}, {}]
    for samples, metrics in zip((one, other), held, strict=True):
        for batch in samples.to_batches(["task", "metric"]):
            for row in batch.to_pylist():
                metrics.setdefault(row["task"], set()).add(row["metric"])
    ours, theirs = held
    common = {task: ours[task] & theirs[task] for task in ours.keys() & theirs.keys()}
    return {task: min(shared) for task, shared in common.items() if shared} or None


def assert_sound(result: forgetmap.ForgettingMap) -> None:
    """Counts add up, shares are shares, and the map can be written and read again."""
    covered = result.coverage
    counts = [value for value in covered.model_dump().values() if isinstance(value, int)]
    assert min(counts) >= 0
    paired = covered.matched + covered.unscored + covered.conflicts
    assert covered.items_before == paired + covered.only_before
    assert covered.items_after == paired + covered.only_after
    assert result.total.n == covered.matched == sum(cell.n for cell in result.tasks.values())
    for cell in (result.total, result.macro, *result.tasks.values()):
        shares = (cell.accuracy_before, cell.accuracy_after, cell.raw.lost.value, cell.mde)
        assert all(-1e-9 <= share <= 1 + 1e-9 for share in shares)
        for told in (cell.lost, cell.gained):
            assert 0 <= told.low <= told.low_end <= told.high_end <= told.high <= 1
        assert 0 <= cell.p_value <= 1
        assert math.isclose(sum(cell.counts.model_dump().values()), cell.n, abs_tol=1e-6)
    json.loads(result.to_json(), parse_constant=pytest.fail)
    assert forgetmap.ForgettingMap.from_json(result.to_json()) == result
