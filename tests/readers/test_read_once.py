"""Logs that are to be paired are read once, with the wording hash where it is needed."""

from __future__ import annotations

from collections import Counter

import pytest

import forgetmap
from forgetmap.lineage.build import trace
from forgetmap.lineage.pipeline import Checkpoint, Pipeline
from forgetmap.readers import inspect, lm_eval, table
from logs import csv_text
from places import DATA

LM_EVAL = DATA / "lm_eval/0.4.13"
INSPECT = DATA / "inspect_replay/0.3.285"


@pytest.fixture
def reads(monkeypatch):
    """How often each log is read, and with the wording hash or without."""
    counted: Counter[tuple[str, bool]] = Counter()
    for reader in (lm_eval, inspect, table):

        def count(path, how, read=reader.read):
            counted[str(path), how.wording] += 1
            return read(path, how)

        monkeypatch.setattr(reader, "read", count)
    return counted


def test_logs_of_two_harnesses_are_read_once_with_their_wording(reads):
    result = forgetmap.compare(LM_EVAL / "before", INSPECT / "after", draws=200)
    assert reads == {(str(LM_EVAL / "before"), True): 1, (str(INSPECT / "after"), True): 1}
    assert result.tasks["fm_capitals"].n == 16


def test_logs_of_one_harness_are_read_once_without_their_wording(reads):
    forgetmap.compare(LM_EVAL / "before", LM_EVAL / "after", draws=200)
    assert reads == {(str(LM_EVAL / side), False): 1 for side in ("before", "after")}


def test_samples_are_taken_as_they_are_and_the_other_log_is_read_once(reads):
    before = forgetmap.read(LM_EVAL / "before", forgetmap.ReadOptions(wording=True))
    reads.clear()
    forgetmap.compare(before, INSPECT / "after", draws=200)
    assert reads == {(str(INSPECT / "after"), True): 1}


def test_a_pipeline_of_two_harnesses_reads_each_log_once(reads):
    before, after = str(LM_EVAL / "before"), str(INSPECT / "after")
    stages = {
        "base": Checkpoint(log=before),
        "tuned": Checkpoint(log=after, parents="base"),
    }
    trace(Pipeline.of(stages), draws=100)
    assert reads == {(before, True): 1, (after, True): 1}


def test_a_log_of_several_checkpoints_is_read_once(reads, tmp_path):
    log = tmp_path / "all.csv"
    rows = [
        {"model": model, "question": f"q{i}", "correct": int(i != lost)}
        for model, lost in (("a", 0), ("b", 1))
        for i in range(4)
    ]
    log.write_text(csv_text(rows))
    stages = {
        "base": Checkpoint(log=str(log), model="a"),
        "tuned": Checkpoint(log=str(log), model="b", parents="base"),
    }
    trace(Pipeline.of(stages), draws=100)
    assert reads == {(str(log), False): 1}
