"""Malformed logs of every reader: sound samples or one clear line, and never a false pair."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuzzing
from forgetmap.base.errors import InputError
from forgetmap.pairing.two_logs import pair
from forgetmap.readers.framework import ReadOptions
from forgetmap.readers.registry import read
from forgetmap.samples.table import SCHEMA, Samples
from fuzzing import cases, in_memory, survives
from golden import LOGS, Golden, parquet_bytes, write_files
from logs import content_of
from malformed import BYTE_DAMAGES, FILE_DAMAGES, VALUES, Case, edit, make_case

CASES = cases(40)
AT_ONCE = 100
"""Logs paired in one go, to be quick: each under task names of its own."""


@pytest.fixture(params=LOGS)
def log(request):
    if request.param == "inspect_zstd" and importlib.util.find_spec("zstandard") is None:
        pytest.skip("the package zstandard is not installed")
    return LOGS[request.param]


@pytest.fixture
def good(log, tmp_path):
    return in_memory(read(log.write("before", tmp_path), ReadOptions(text=True, wording=True)))


def test_the_corpus_is_always_the_same(log, tmp_path):
    for number in range(8):
        one, two = (make_case(log, number, tmp_path / f"{number} {n}") for n in (1, 2))
        assert one.name == two.name
        assert content_of(tmp_path / f"{number} 1") == content_of(tmp_path / f"{number} 2")


def test_the_corpus_holds_every_kind_of_damage(tmp_path):
    log = LOGS["table_jsonl"]
    told = "\n".join(make_case(log, number, tmp_path / str(number)).name for number in range(900))
    kinds = [*BYTE_DAMAGES, *VALUES, *FILE_DAMAGES, "dropped", "swapped", "renamed", "given the id"]
    assert [kind for kind in kinds if kind not in told] == []


def test_malformed_logs_are_read_or_refused(log, good):
    """Whatever the damage; and what was read pairs with the good log only where it is the same."""
    count = 0
    for start in range(0, CASES, AT_ONCE):
        found = [
            read_case(log, good, number) for number in range(start, min(start + AT_ONCE, CASES))
        ]
        readable = [(case, samples) for case, samples in found if samples is not None]
        count += len(readable)
        assert_pairs_are_true(log, readable, good)
    assert CASES / 20 < count < CASES


def read_case(log: Golden, good: Samples, number: int) -> tuple[Case, Samples | None]:
    """Make a malformed log and read it, with a check of what was read or said."""
    with tempfile.TemporaryDirectory() as folder:
        case = make_case(log, number, Path(folder))
        try:
            return case, fuzzing.read_case(case, good, Path(folder))
        except BaseException as error:
            error.add_note(f"the case {case.name!r}")
            raise


def assert_pairs_are_true(log: Golden, found: list[tuple[Case, Samples]], good: Samples) -> None:
    """Two rows are paired only if they tell the same question and target."""
    # One that is taken for another harness's is paired by words, which it tells in another form.
    ours = [one for one in found if one[1].meta.harness == good.meta.harness]
    damaged = [telling(log, samples, 1.0, place) for place, (_, samples) in enumerate(ours)]
    partner = [telling(log, good, 0.0, place) for place in range(len(ours))]
    pairs = pair(*(Samples(pa.concat_tables(side), good.meta) for side in (damaged, partner)))
    listed = [row for batch in pairs.flips() for row in batch.to_pylist()]
    assert len(listed) == pairs.coverage.matched > 0
    by_index = pairs.source.by_index
    assert not by_index or pairs.coverage.identity == "index"
    for row in listed:
        if row["task"] not in by_index and row["prompt_before"] != row["prompt_after"]:
            case, _ = ours[int(row["task"].partition(" ")[0])]
            pytest.fail(f"a false pair in the case {case.name!r}: {row}")


def telling(log: Golden, samples: Samples, score: float, place: int) -> pa.Table:
    """The same items, all right or all wrong, so that every pair is listed with what it tells."""
    rows: list[dict[str, Any]] = []
    for row in samples.data.to_pylist():
        shown = [row[column] for column in log.told_by]
        row |= {"score": score, "status": "ok", "metric": "told"}
        row |= {"model": "any", "task": f"{place} {row['task']}", "prompt": json.dumps(shown)}
        rows.append(row)
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def test_malformed_logs_can_be_shown_and_compared_or_are_refused(log):
    for number in range(CASES // 20):
        with tempfile.TemporaryDirectory() as folder:
            case = make_case(log, number, Path(folder))
            try:
                survives(case.path)
            except BaseException as error:
                error.add_note(f"the case {case.name!r}")
                raise


# --- what fuzzing found ---------------------------------------------------------------------------


def written(name, file, place, value, folder):
    """A golden log with one value changed."""
    files = dict(LOGS[name].load("before"))
    edit(files, file, place, lambda _value, _chance: value)
    return write_files(files, folder)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("lighteval_flat", (0, "metrics", "extractive_match")),
        ("lighteval_struct", (0, "metric", "extractive_match")),
    ],
)
def test_infinity_is_no_score(name, place, tmp_path):
    log = written(name, "*fm_letters*", place, math.inf, tmp_path)
    with pytest.raises(InputError, match="extractive_match holds infinity"):
        read(log)


def test_questions_that_are_no_text_are_refused(tmp_path):
    (name, content), *more = LOGS["lighteval_flat"].load("before").items()
    table = pq.read_table(pa.BufferReader(content))
    index = table.column_names.index("example")
    numbers = table.set_column(index, "example", pa.array(range(1, len(table) + 1)))
    log = write_files({name: parquet_bytes(numbers), **dict(more)}, tmp_path)
    with pytest.raises(InputError, match="not a readable Parquet file of lighteval"):
        read(log, ReadOptions(wording=True))


@pytest.mark.parametrize("name", ["table_parquet", "samples_parquet"])
def test_a_parquet_file_whose_name_is_not_utf8_is_refused(name, tmp_path):
    path = LOGS[name].write("before", tmp_path)
    renamed = path.rename(path.with_name(os.fsdecode(b"\xff.parquet")))
    with pytest.raises(InputError, match="its name is not UTF-8; rename it"):
        read(renamed)
