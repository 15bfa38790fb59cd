"""Finding the right reader, third-party readers, and logs beyond memory."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import forgetmap
from forgetmap.base.errors import InputError
from forgetmap.base.files import size_of
from forgetmap.pairing.two_logs import pair
from forgetmap.readers import table
from forgetmap.readers.framework import ReadOptions
from forgetmap.readers.registry import find_reader, read
from forgetmap.samples.table import Samples
from logs import write_csv, write_jsonl
from small_logs import random_scores, samples

PLUGIN = '''
"""A log format of its own: one line per item, question and score separated by a bar."""
from forgetmap.samples.table import Meta, Samples, batches
from forgetmap.samples.identity import content_hash

def sniff(path):
    return path.suffix == ".bars"

def read(path, how):
    lines = (line.split("|") for line in path.read_text().splitlines())
    rows = ({"item": content_hash(question), "score": float(score)} for question, score in lines)
    return Samples.collect(batches(rows), Meta(harness="bars"))
'''


@pytest.fixture
def installed_plugin(tmp_path, monkeypatch):
    """A package with an entry point, as pip would install it."""
    site = tmp_path / "site"
    info = site / "bars-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "bars_reader.py").write_text(PLUGIN)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bars\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[forgetmap.readers]\nbars = bars_reader\n")
    monkeypatch.syspath_prepend(str(site))
    yield
    sys.modules.pop("bars_reader", None)


def test_a_third_party_reader_is_found_by_its_entry_point(installed_plugin, tmp_path):
    log = tmp_path / "run.bars"
    log.write_text("2+2?|1\n2+3?|0\n")
    found = read(log)
    assert (found.meta.harness, len(found)) == ("bars", 2)
    assert forgetmap.compare(log, log, draws=200).total.n == 2


def test_without_the_plugin_the_format_is_unknown(tmp_path):
    log = tmp_path / "run.bars"
    log.write_text("2+2?|1\n")
    with pytest.raises(forgetmap.InputError, match="not a log that forgetmap knows"):
        read(log)


@pytest.mark.parametrize(
    ("name", "text", "reader"),
    [
        ("a.csv", "question,correct\nq,1\n", "table"),
        ("a.jsonl", '{"question": "q", "correct": 1}\n', "table"),
        ("a.jsonl", '{"doc_id": 0, "resps": []}\n', "lm_eval"),
        ("samples_t.jsonl", '{"doc_id": 0, "resps": []}\n', "lm_eval"),
    ],
)
def test_formats_are_told_apart(name, text, reader, tmp_path):
    (tmp_path / name).write_text(text)
    assert find_reader(tmp_path / name).reader.__name__ == f"forgetmap.readers.{reader}"


def test_a_log_beyond_memory_goes_through_a_temporary_file(tmp_path, monkeypatch):
    log = samples(random_scores(1, items=2000))
    log.write(tmp_path / "whole.parquet")
    monkeypatch.setattr("forgetmap.samples.table._SPILL_BYTES", 10_000)
    spilled = Samples.collect(log.to_batches(), log.meta)
    assert isinstance(spilled.data, Path)
    assert len(spilled) == len(log)
    place = spilled.data
    one = forgetmap.compare(spilled, log, draws=200).total
    chosen = spilled.only("m")
    del spilled
    assert len(chosen) == len(log)  # the chosen model keeps the file alive
    del chosen
    assert not place.exists()
    assert one.counts.n10 == 0


def test_progress_is_told_in_bytes(tmp_path):
    log = tmp_path / "a.jsonl"
    log.write_text('{"question": "q", "correct": 1}\n' * 50)
    ticks: list[int] = []
    read(log, ReadOptions(tick=ticks.append))
    assert sum(ticks) == size_of(log) == log.stat().st_size


@pytest.mark.parametrize(
    "seeds", [(0, 3_000_000_000), ("run-a", 0), (0.1, 0.7), (None, 0), (0, ""), (-1, 2**31 - 1)]
)
@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_every_seed_of_a_table_is_a_repeat_of_its_own(seeds, suffix, tmp_path):
    rows = [
        {"question": f"q{item}", "seed": seed, "correct": int(place == 0)}
        for item in range(3)
        for place, seed in enumerate(seeds)
    ]
    write = write_csv if suffix == "csv" else write_jsonl
    log = read(write(tmp_path / f"run.{suffix}", rows))
    coverage = pair(log, log).coverage
    assert (coverage.matched, coverage.duplicates) == (3, 0)
    assert len(set(log.data["repeat"].to_pylist())) == 2


def test_the_same_seed_in_other_words_is_the_same_repeat():
    repeats = table.Repeats()
    assert len({repeats.number(seed) for seed in (7, "7", 7.0, "7.0", " 7 ")}) == 1
    assert len({repeats.number(seed) for seed in (0.1, "0.1", "0.10")}) == 1
    assert len({repeats.number(seed) for seed in (10**30, str(10**30), 10**30 + 1)}) == 2


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_column_that_stands_twice_is_refused(suffix, tmp_path):
    path = tmp_path / f"run.{suffix}"
    if suffix == "csv":
        path.write_text("question,correct,correct\nq1,1,0\n")
    else:
        names = ["question", "correct", "correct"]
        pq.write_table(pa.Table.from_arrays([["q1"], [1], [0]], names=names), path)
    with pytest.raises(InputError, match="two columns are named 'correct'"):
        read(path)


def test_columns_without_a_name_may_be_several(tmp_path):
    (tmp_path / "run.csv").write_text("question,correct,,\nq1,1,,\n")
    assert len(read(tmp_path / "run.csv")) == 1
