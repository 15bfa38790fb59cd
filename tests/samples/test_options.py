"""Option probabilities in Samples: kept, checked, and null in files of version 1."""

from __future__ import annotations

import json
import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import forgetmap
from forgetmap.base.errors import InputError
from forgetmap.samples.options import OPTION_COLUMNS, softmax
from forgetmap.samples.table import SCHEMA, Samples


def log(*options, right=0):
    return Samples.from_rows(
        {
            "item": number,
            "score": 1.0,
            "metric": "acc",
            "k": 3,
            "gold_probability": 0.5,
            "option_probabilities": given,
            "right_option": right,
        }
        for number, given in enumerate(options)
    )


def options(samples):
    return [row["option_probabilities"] for row in content(samples)]


def content(samples):
    return pa.Table.from_batches(samples.to_batches(), schema=SCHEMA).to_pylist()


def version_1(path, samples):
    """A file as forgetmap wrote it before it kept all options."""
    samples.write(path)
    meta = json.loads(pq.read_schema(path).metadata[b"forgetmap"]) | {"schema_version": 1}
    table = pq.read_table(path).drop_columns(list(OPTION_COLUMNS))
    pq.write_table(table.replace_schema_metadata({b"forgetmap": json.dumps(meta)}), path)
    return path


def test_softmax_of_large_likelihoods():
    assert softmax([-1000.0, -1000.0 + math.log(3)]) == pytest.approx([0.25, 0.75])
    assert softmax([-1.0, -math.inf]) is None
    assert softmax([math.nan, 0.0]) is None


def test_they_come_back_from_a_file(tmp_path):
    samples = log([0.5, 0.25, 0.25], None, [0.125, 0.875], right=1)
    samples.write(tmp_path / "s.parquet")
    again = Samples.read(tmp_path / "s.parquet")
    assert content(again) == content(samples)
    assert options(again) == [[0.5, 0.25, 0.25], None, [0.125, 0.875]]
    assert [row["right_option"] for row in content(again)] == [1, 1, 1]
    assert again.null_count("option_probabilities") == 1
    stored = json.loads(pq.read_schema(tmp_path / "s.parquet").metadata[b"forgetmap"])
    assert stored["schema_version"] == 2


@pytest.mark.parametrize(
    "bad",
    [
        [0.5, math.nan, 0.5],
        [0.6, None, 0.4],
        [1.1, -0.1, 0.0],
        [0.5, 0.4, 0.0],
        [math.inf, 0.0, 0.0],
        [],
    ],
)
def test_what_is_not_a_distribution_is_left_out_and_counted(bad):
    samples = log([0.5, 0.25, 0.25], bad, None, bad)
    assert options(samples) == [[0.5, 0.25, 0.25], None, None, None]
    assert [row["gold_probability"] for row in content(samples)] == [0.5] * 4
    (warning,) = samples.meta.warnings
    assert "the option probabilities of 2 rows were left out" in warning


@pytest.mark.parametrize("right", [-1, 3])
def test_a_right_option_that_is_not_among_them_is_left_out_and_counted(right):
    samples = log([0.5, 0.25, 0.25], right=right)
    assert [(row["option_probabilities"], row["right_option"]) for row in content(samples)] == [
        (None, None)
    ]
    assert len(samples.meta.warnings) == 1


def test_rounded_probabilities_are_taken_as_they_are():
    samples = log([0.333, 0.333, 0.3335])
    assert options(samples) == [pytest.approx([0.333, 0.333, 0.3335])]
    assert samples.meta.warnings == []


def test_a_file_of_version_1_reads_as_before_with_nulls(tmp_path):
    new = log([0.5, 0.25, 0.25], [1.0, 0.0, 0.0])
    path = version_1(tmp_path / "old.parquet", new)
    old = forgetmap.read(path)
    without = dict.fromkeys(OPTION_COLUMNS)
    assert content(old) == [row | without for row in content(new)]
    assert len(old) == 2
    assert old.null_count("option_probabilities") == 2
    narrow = pa.Table.from_batches(old.to_batches(["right_option"]))
    assert narrow.to_pylist() == [{"right_option": None}] * 2
    old.write(tmp_path / "again.parquet")
    assert pq.read_schema(tmp_path / "again.parquet").names == SCHEMA.names


def test_files_of_both_versions_are_compared(tmp_path):
    new = log([0.5, 0.25, 0.25], [1.0, 0.0, 0.0])
    old = version_1(tmp_path / "old.parquet", new)
    new.write(tmp_path / "new.parquet")
    result = forgetmap.compare(old, tmp_path / "new.parquet", draws=100)
    assert result.total.n == 2


@pytest.mark.parametrize("column", OPTION_COLUMNS)
def test_a_file_of_version_2_that_lacks_a_column_is_refused(column, tmp_path):
    path = tmp_path / "s.parquet"
    log([0.5, 0.25, 0.25]).write(path)
    pq.write_table(pq.read_table(path).drop_columns([column]), path)
    with pytest.raises(InputError, match=f"lacks the column '{column}'; convert it again"):
        forgetmap.read(path)


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_a_table_may_have_them(suffix, tmp_path):
    file = tmp_path / f"run.{suffix}"
    given = ([0.5, 0.25, 0.25], [0.5, 0.5, 0.5])
    if suffix == "jsonl":
        lines = [
            json.dumps({"id": n, "correct": 1, "option_probabilities": chances, "right_option": 2})
            for n, chances in enumerate(given)
        ]
    else:
        lines = ["id;correct;option_probabilities;right_option"]
        lines += [f"{n};1;{chances};2" for n, chances in enumerate(given)]
    file.write_text("\n".join(lines))
    samples = forgetmap.read(file)
    assert options(samples) == [[0.5, 0.25, 0.25], None]
    assert [row["right_option"] for row in content(samples)] == [2, None]
    assert any("of 1 rows were left out" in warning for warning in samples.meta.warnings)


def test_a_table_with_half_an_option_is_refused(tmp_path):
    file = tmp_path / "run.jsonl"
    row = {"id": 1, "correct": 1, "option_probabilities": [0.5, 0.5], "right_option": 0.5}
    file.write_text(json.dumps(row))
    with pytest.raises(
        InputError, match=r"row 1: right_option 0\.5 is not the number of an option"
    ):
        forgetmap.read(file)
