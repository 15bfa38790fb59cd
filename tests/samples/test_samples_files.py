"""Samples files that hold values that cannot be, or were damaged."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
import pytest

import forgetmap
from forgetmap.base.errors import InputError
from forgetmap.base.sealed import SEAL
from forgetmap.samples.table import Samples
from small_logs import samples


def rewritten(path, column, value, row=1):
    """A Samples file with one value replaced."""
    samples({"t": [1, 0, 1, 0]}, gold_probability=0.5).write(path)
    table = pq.read_table(path)
    values = table[column].to_pylist()
    values[row] = value
    index = table.column_names.index(column)
    changed = pa.array(values, table.schema.field(column).type)
    pq.write_table(table.set_column(index, column, changed), path)
    return path


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [
        ("score", float("inf"), "'score' holds values from -?0 to inf"),
        ("score", float("-inf"), "'score' holds values from -inf to 1"),
        ("gold_probability", 1.5, "'gold_probability' holds values from 0.5 to 1.5"),
        ("repeat", -1, "'repeat' holds values from -1 to 0"),
        ("k", 1, "'k' holds values from 1 to 4"),
        ("task", None, "'task' lacks 1 values"),
        ("model", None, "'model' lacks 1 values"),
        ("status", None, "'status' lacks 1 values"),
    ],
)
def test_values_that_cannot_be_are_refused(column, value, says, tmp_path):
    path = rewritten(tmp_path / "s.parquet", column, value)
    with pytest.raises(InputError, match=f"s.parquet: the column {says}; convert it again"):
        forgetmap.read(path)


def test_a_file_with_the_old_column_correct_is_read(tmp_path):
    """It held whether the score is at or above 0.5; nothing needs it."""
    samples({"t": [1, 0, 1, 0]}).write(tmp_path / "new.parquet")
    table = pq.read_table(tmp_path / "new.parquet")
    place = table.column_names.index("score") + 1
    old = table.add_column(place, "correct", pa.compute.greater_equal(table["score"], 0.5))
    pq.write_table(old, tmp_path / "old.parquet")
    new_log, old_log = (forgetmap.read(tmp_path / f"{age}.parquet") for age in ("new", "old"))
    assert "correct" not in table.column_names
    assert list(old_log.to_batches()) == list(new_log.to_batches())
    result = forgetmap.compare(tmp_path / "old.parquet", tmp_path / "new.parquet", draws=200)
    assert (result.total.n, result.total.counts.n10) == (4, 0)
    old_log.write(tmp_path / "again.parquet")
    assert pq.read_schema(tmp_path / "again.parquet").names == table.column_names


@pytest.mark.parametrize("column", ["score", "gold_probability"])
def test_a_column_of_nothing_but_nan_is_refused(column, tmp_path):
    path = tmp_path / "s.parquet"
    samples({"t": [1, 0]}, gold_probability=0.5).write(path)
    table = pq.read_table(path)
    index = table.column_names.index(column)
    pq.write_table(table.set_column(index, column, pa.array([float("nan")] * 2)), path)
    with pytest.raises(InputError, match=f"{column!r} holds nothing but NaN"):
        forgetmap.read(path)


@pytest.mark.parametrize(
    ("column", "value"), [("score", None), ("score", -2.5), ("k", None), ("gold_probability", 0.0)]
)
def test_values_that_can_be_are_read(column, value, tmp_path):
    path = rewritten(tmp_path / "s.parquet", column, value)
    (batch,) = forgetmap.read(path).to_batches([column])
    assert batch[column].to_pylist()[1] == value


def test_any_flipped_bit_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    samples({"t": [1, 0, 1] * 200}, response="an answer").write(path)
    Samples.read(path)
    good = path.read_bytes()
    rng = random.Random(5)
    unnoticed = []
    for _ in range(300):
        place, bit = rng.randrange(len(good)), 1 << rng.randrange(8)
        path.write_bytes(good[:place] + bytes([good[place] ^ bit]) + good[place + 1 :])
        try:
            Samples.read(path)
        except InputError:
            continue
        unnoticed.append(place)
    # Only the seal's name and size can be hit unseen: then there is nothing to check against.
    start = good.rindex(SEAL.encode())
    assert set(unnoticed) <= set(range(start, start + len(SEAL) + 20))


def test_a_file_that_another_program_wrote_again_is_read(tmp_path: Path) -> None:
    """Where the seal travels with the metadata it no longer fits; that is not damage."""
    path = tmp_path / "log.parquet"
    samples({"t": [1, 0, 1] * 200}).write(path)
    kept = pq.ParquetFile(path).metadata.metadata
    table = pq.read_table(path)
    with pq.ParquetWriter(path, table.schema) as writer:
        writer.write_table(table.slice(1))
        writer.add_key_value_metadata({SEAL: kept[SEAL.encode()].decode()})
    assert len(Samples.read(path)) == 599
