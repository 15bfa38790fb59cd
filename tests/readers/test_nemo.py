"""The NeMo Evaluator reader, on logs of tests/data and on changed ones."""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path

import pytest

import forgetmap
import golden
from forgetmap.base.errors import InputError
from forgetmap.readers import nemo
from golden import json_lines
from logs import write_jsonl
from places import DATA

LOGS = DATA / "nemo"
read, rows = partial(golden.read, nemo), partial(golden.rows, nemo)


@pytest.fixture
def log(tmp_path):
    """A copy of the log before, to be changed."""
    return Path(shutil.copytree(LOGS / "before", tmp_path / "log"))


@pytest.mark.parametrize("side", ["before", "after"])
def test_problems_and_repeats_are_those_of_the_file(side):
    written = {
        (str(one["problem_idx"]), one["repeat"]): one
        for one in json_lines(LOGS / side / "results.jsonl")
    }
    found = rows(LOGS / side)
    assert {(row["item_ref"], row["repeat"]) for row in found} == written.keys()
    for row in found:
        one = written[row["item_ref"], row["repeat"]]
        failed = "error_category" in one["scoring_details"]
        assert row["score"] == (None if failed else one["reward"])
        assert row["status"] == ("error" if failed else "ok")
        assert row["item"] is None


def test_pairs_by_index_and_says_so():
    sides = (read(LOGS / side) for side in ("before", "after"))
    result = forgetmap.compare(*sides, draws=200)
    assert result.coverage.identity == "index"
    assert [confound.setting for confound in result.confounds] == ["generation"]


def test_model_task_and_version():
    samples = read(LOGS / "after")
    assert samples.models == ["tiny-after"]
    assert samples.meta.version == "0.4.0"
    assert samples.settings["generation"] == {"sums": {"temperature": 0.6, "max_tokens": 64}}
    assert {row["task"] for row in samples.data.to_pylist()} == {"sums"}


def test_either_file_can_be_given():
    for file in (LOGS / "before").iterdir():
        assert nemo.sniff(file)
        assert len(read(file)) == 10


def test_the_newest_bundle_describes_the_results(log):
    (bundle,) = log.glob("eval-*.json")
    newer = json.loads(bundle.read_text(encoding="utf-8"))
    newer["config"]["model"] = "newer"
    newer["run_id"] = "eval-20270102T030405Z-sums"
    (log / f"{newer['run_id']}.json").write_text(json.dumps(newer), encoding="utf-8")
    assert read(log).models == ["newer"]


def test_further_scorers_and_missing_results_are_told(log):
    written = json_lines(log / "results.jsonl")
    written[0]["scorer_rewards"] = {"scorer:judge": 1.0}
    write_jsonl(log / "results.jsonl", written[:8])
    warnings = read(log).meta.warnings
    assert any("scorer:judge" in text for text in warnings)
    assert any("counted 10 answers, 8 are here" in text for text in warnings)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"problem_idx": "one"}, ":10: .*problem_idx"),
        ({"repeat": None}, ":10: .*repeat"),
        ({"repeat": 0}, ":10: .*stands twice"),
        ({"reward": "high"}, ":10: .*high"),
        ({"scoring_details": 3}, ":10: "),
    ],
)
def test_refusals(change, says, log):
    written = json_lines(log / "results.jsonl")
    written[9] |= change
    write_jsonl(log / "results.jsonl", written)
    with pytest.raises(InputError, match=says):
        read(log)


def test_a_folder_without_results_is_not_claimed(log):
    (log / "results.jsonl").unlink()
    assert not nemo.sniff(log)
