"""Damaged or foreign files of forgetmap's own format are refused, never a traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import forgetmap
import forgetmap.readers
import forgetmap.readers.summary
from forgetmap.base.errors import InputError
from forgetmap.samples.table import Samples
from logs import (
    QUICK,
    Workplace,
    assert_one_line,
    details,
    items,
    refused_by_every_command,
    write_parquet,
)

# --- forgetmap's own Parquet ----------------------------------------------------------------------


def samples_file(path: Path, table: pa.Table | None = None, **meta: object) -> Path:
    """Write a Samples file and then change its table, or what its metadata say."""
    Samples.from_rows(
        {"task": "sums", "item": i, "item_ref": str(i), "score": float(i % 2)} for i in range(4000)
    ).write(path)
    if table is None:
        table = pq.read_table(path)
    stored = {**json.loads(pq.read_schema(path).metadata[b"forgetmap"]), **meta}
    kept = {name: value for name, value in stored.items() if value != "REMOVED"}
    pq.write_table(table.replace_schema_metadata({b"forgetmap": json.dumps(kept)}), path)
    return path


@pytest.mark.parametrize("more", [{}, {"harness": "REMOVED", "tool": "later"}])
def test_a_newer_samples_schema_is_refused_with_advice(work: Workplace, more: dict) -> None:
    samples_file(work / "s.parquet", schema_version=99, **more)
    refused_by_every_command(work, "s.parquet", ("schema version 99", "upgrade forgetmap"))


@pytest.mark.parametrize(
    "meta",
    [
        {"schema_version": "one"},
        {"schema_version": None},
        {"schema_version": "REMOVED"},
        {"harness": "REMOVED"},
        {"harness": None},
        {"harness": ["a"]},
        {"version": 3},
        {"settings": []},
        {"settings": {"unnamed": "text"}},
        {"warnings": "text"},
        {"warnings": [1]},
    ],
)
def test_damaged_samples_metadata_is_refused(work: Workplace, meta: dict) -> None:
    samples_file(work / "s.parquet", **meta)
    work.refused("show", "s.parquet", says=("s.parquet", "metadata"))
    work.refused("compare", "s.parquet", "s.parquet", *QUICK, says=("s.parquet", "metadata"))


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b"[" * 100_000])
def test_samples_metadata_that_are_no_json_are_refused(work: Workplace, content: bytes) -> None:
    table = pq.read_table(samples_file(work / "s.parquet"))
    pq.write_table(table.replace_schema_metadata({b"forgetmap": content}), work / "s.parquet")
    refused_by_every_command(work, "s.parquet", ("metadata",))


@pytest.mark.parametrize("column", ["score", "item", "prompt", "model"])
def test_a_samples_file_that_lacks_a_column_is_refused(work: Workplace, column: str) -> None:
    table = pq.read_table(samples_file(work / "s.parquet")).drop_columns([column])
    samples_file(work / "s.parquet", table)
    refused_by_every_command(work, "s.parquet", (repr(column), "convert it again"))


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("score", ["high"]),
        ("item", ["text"]),
        ("repeat", ["first"]),
        ("model", [1]),
        ("model", [None]),
        ("task", [None]),
        ("metric", [None]),
        ("task", [["a"]]),
        ("k", ["four"]),
    ],
)
def test_a_samples_column_of_another_kind_is_refused(
    work: Workplace, column: str, values: list
) -> None:
    table = pq.read_table(samples_file(work / "s.parquet"))
    index = table.column_names.index(column)
    changed = table.set_column(index, column, pa.array(values * table.num_rows))
    samples_file(work / "s.parquet", changed)
    with pytest.raises(
        InputError, match=f"{column}"
    ):  # first of all: `show` would trust the schema
        list(forgetmap.read("s.parquet").to_batches())
    refused_by_every_command(work, "s.parquet", (repr(column),))


@pytest.mark.parametrize("kind", ["samples", "table", "details"])
@pytest.mark.parametrize("place", [0.02, 0.3, 0.6, 0.9])
def test_damaged_parquet_is_refused_or_read_never_a_traceback(
    work: Workplace, kind: str, place: float
) -> None:
    source = samples_file(work / "whole.parquet")
    name = f"{kind}_x.parquet"
    if kind == "table":
        table = pq.read_table(source).select(["item_ref", "task", "score"])
        pq.write_table(table.replace_schema_metadata(None), work / name)
    elif kind == "details":
        write_parquet(work / name, [details(i) for i in range(2000)])
    else:
        (work / name).write_bytes(source.read_bytes())
    content = bytearray((work / name).read_bytes())
    start = int(place * len(content))
    for offset in range(start, min(start + 64, len(content))):
        content[offset] ^= 0x5A
    (work / name).write_bytes(content)
    for arguments in (
        ("show", name),
        ("convert", name, "out.parquet"),
        ("compare", name, name, *QUICK),
        ("compare", name, name, *QUICK, "--flips", "flips.csv"),
    ):
        result = work.run(*arguments)
        if result.exit_code:
            assert_one_line(result.exit_code, result.stdout, result.stderr, (name,), 2, result)
            assert not (work / "out.parquet").exists()
            assert not (work / "flips.csv").exists()
        (work / "out.parquet").unlink(missing_ok=True)
        (work / "flips.csv").unlink(missing_ok=True)


@pytest.mark.parametrize("kind", ["samples", "table", "details"])
def test_a_column_name_that_is_not_utf8_is_refused(work: Workplace, kind: str) -> None:
    """One flipped byte in the footer does it."""
    name, column = f"{kind}_x.parquet", b"gold_index"
    if kind == "samples":
        samples_file(work / name)
        column = b"item_ref"
    elif kind == "table":
        write_parquet(work / name, items([1, 0], gold_index=1))
    else:
        write_parquet(work / name, [details(i) for i in range(3)])
    broken = column.replace(b"i", b"\xa9", 1)
    (work / name).write_bytes((work / name).read_bytes().replace(column, broken))
    refused_by_every_command(work, name, ())


def test_a_truncated_parquet_file_is_refused(work: Workplace) -> None:
    content = samples_file(work / "s.parquet").read_bytes()
    for part in (5, len(content) // 2, len(content) - 1):
        (work / "cut.parquet").write_bytes(content[:part])
        refused_by_every_command(work, "cut.parquet", ("Parquet",))


def test_whatever_a_log_holds_in_the_place_of_a_text_is_stored_as_text() -> None:
    rows = [{"score": 1.0, "response": {"completion": "7"}}, {"score": 0.0, "response": "\ud800"}]
    stored = Samples.from_rows(rows).data
    assert stored["response"].to_pylist() == ["{'completion': '7'}", "?"]
