"""Small files that unpack to a lot are refused; the line names the limit and how to raise it."""

from __future__ import annotations

import copy
import json
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forgetmap.base import parquet as base_parquet
from forgetmap.base.errors import InputError
from forgetmap.base.limits import RATIO
from forgetmap.readers import lm_eval, table
from forgetmap.readers.framework import ReadOptions
from forgetmap.readers.registry import read
from forgetmap.samples import table as samples_table
from forgetmap.samples.table import Meta, Samples
from logs import details, items, lm_eval_record, write_jsonl, write_parquet

MIB = 2**20


# --- archives -------------------------------------------------------------------------------------


def test_members_that_share_their_bytes_are_refused(tmp_path):
    log = tmp_path / "run.eval"
    with zipfile.ZipFile(log, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps({"version": 2}))
        archive.writestr("samples/0_epoch_1.json", b" " * MIB)
        for number in range(1, 400):
            again = copy.copy(archive.filelist[-1])
            again.filename = f"samples/{number}_epoch_1.json"
            archive.filelist.append(again)
    assert log.stat().st_size < 64_000
    with pytest.raises(InputError, match=r"run\.eval: .* unpack to .*raise FORGETMAP_MAX_RATIO"):
        read(log)


# --- Parquet --------------------------------------------------------------------------------------


def repeated_text(rows, **more):
    """Rows that share one long text, which is stored once."""
    text = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), ["long " * (MIB // 5)])
    return pa.table({"question": text, "correct": [1.0] * rows, **more})


def test_a_text_that_many_rows_share_is_refused(tmp_path):
    pq.write_table(repeated_text(4000), tmp_path / "run.parquet")
    assert (tmp_path / "run.parquet").stat().st_size < 400_000
    with pytest.raises(InputError, match=r"over 1000 times as many; .*raise FORGETMAP_MAX_RATIO"):
        read(tmp_path / "run.parquet")


def test_the_limit_can_be_raised(tmp_path, monkeypatch):
    pq.write_table(repeated_text(300), tmp_path / "run.parquet")
    with pytest.raises(InputError, match="FORGETMAP_MAX_RATIO"):
        read(tmp_path / "run.parquet")
    monkeypatch.setenv(RATIO.variable, "100000")
    assert len(read(tmp_path / "run.parquet")) == 300


@pytest.mark.parametrize("value", ["", "0", "-1", "many", "1.5"])
def test_a_limit_that_is_not_a_number_is_refused(value, tmp_path, monkeypatch):
    monkeypatch.setenv("FORGETMAP_MAX_LINE_MIB", value)
    with pytest.raises(InputError, match=r"FORGETMAP_MAX_LINE_MIB=.* whole number"):
        read(write_jsonl(tmp_path / "run.jsonl", items([1])))


def test_long_lists_that_many_rows_share_are_refused(tmp_path):
    numbers = pa.ListArray.from_arrays(
        pa.array(np.arange(401) * 100_000, pa.int32()), np.zeros(40_000_000, np.int64)
    )
    pq.write_table(pa.table({"id": range(400), "correct": [1] * 400, "x": numbers}),
                   tmp_path / "run.parquet")  # fmt: skip
    with pytest.raises(InputError, match="FORGETMAP_MAX_RATIO"):
        read(tmp_path / "run.parquet")


def test_lighteval_details_that_swell_are_refused(tmp_path):
    row = details(0)
    row["doc"]["query"] = "long " * (MIB // 5)
    pq.write_table(pa.Table.from_pylist([row]).take([0] * 400), tmp_path / "details_a.parquet")
    with pytest.raises(InputError, match="FORGETMAP_MAX_RATIO"):
        read(tmp_path)


def test_rows_that_take_no_room_are_refused(tmp_path):
    rows = 10_000_001
    pq.write_table(pa.table({"correct": pa.repeat(1, rows)}), tmp_path / "run.parquet")
    with pytest.raises(InputError, match=r"10,000,001 rows in .*raise FORGETMAP_MAX_ROWS"):
        read(tmp_path / "run.parquet")


def test_a_samples_file_of_too_many_rows_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("FORGETMAP_MAX_ROWS", "10")
    rows = samples_table.complete({"score": pa.repeat(1.0, 1_000_000)})
    Samples(pa.Table.from_batches([rows]), Meta()).write(tmp_path / "run.parquet")
    with pytest.raises(InputError, match="FORGETMAP_MAX_ROWS"):
        read(tmp_path / "run.parquet")


@pytest.mark.parametrize("nested", [False, True])
def test_parts_hold_the_same_rows_whatever_their_size(nested, tmp_path, monkeypatch):
    rows = [
        {"id": i, "s": f"text {i % 7}" * 9, "l": [f"a{i}", None] if i % 3 else None,
         "d": {"q": f"q{i}", "c": ["x"] * (i % 4)} if i % 5 else None}
        for i in range(100)
    ]  # fmt: skip
    path = write_parquet(tmp_path / "x.parquet", rows)
    monkeypatch.setattr(base_parquet, "_SAFE", 0)
    monkeypatch.setattr(base_parquet, "PART_BYTES", 2000)
    columns = ["id", "d.c", "l"] if nested else None
    with pq.ParquetFile(path) as file:
        plain = next(file.iter_batches(columns=columns))
    parts = list(base_parquet.parquet_parts(path, columns))
    assert len(parts) > 1
    found = [row for part in parts for row in part.to_pylist()]
    assert found == plain.to_pylist()
    assert parts[0].schema.types == plain.schema.types


def test_one_row_beyond_the_limit_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("FORGETMAP_MAX_LINE_MIB", "1")
    monkeypatch.setattr(base_parquet, "PART_BYTES", MIB)
    path = write_parquet(tmp_path / "x.parquet", [{"s": "x" * (2 * MIB)}, {"s": "y"}])
    with pytest.raises(InputError, match=r"a row has .* raise FORGETMAP_MAX_LINE_MIB"):
        list(base_parquet.parquet_parts(path))


# --- keys -----------------------------------------------------------------------------------------


def test_a_new_key_in_every_line_costs_no_more(tmp_path, monkeypatch):
    matched = []
    match = table.match_columns
    monkeypatch.setattr(
        table, "match_columns", lambda *arguments: (matched.append(1), match(*arguments))[1]
    )
    rows = [{"question": f"q{i}", "correct": 1, f"key {i}": i} for i in range(3000)]
    rows[2000]["target"] = "late"
    assert len(read(write_jsonl(tmp_path / "x.jsonl", rows))) == 3000
    assert len(matched) == 2


# --- text -----------------------------------------------------------------------------------------


def test_batches_are_bounded_by_their_text(monkeypatch):
    monkeypatch.setattr(samples_table, "BATCH_CHARACTERS", 1000)
    rows = [{"item": i, "score": 1.0, "prompt": "x" * 400} for i in range(10)]
    assert [len(batch) for batch in samples_table.batches(rows)] == [3, 3, 3, 1]


def test_lm_eval_batches_are_bounded_by_their_text(tmp_path, monkeypatch):
    monkeypatch.setattr(lm_eval, "BATCH_CHARACTERS", 1000)
    records = [
        lm_eval_record(i, 1.0, metrics=["acc", "f1"], f1=0.5, target="x" * 200) for i in range(9)
    ]
    path = write_jsonl(tmp_path / "samples_x.jsonl", records)
    log = lm_eval.read(path, ReadOptions(text=True))
    assert len(log) == 18
    assert {len(chunk) for chunk in log.data["score"].chunks} == {6}
