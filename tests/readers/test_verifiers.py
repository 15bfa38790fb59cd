"""The verifiers reader, on logs of tests/data and on changed ones."""

from __future__ import annotations

import shutil
from functools import partial

import pytest

import forgetmap
import golden
from forgetmap.base.errors import InputError
from forgetmap.readers import verifiers
from golden import json_lines
from logs import write_jsonl
from places import DATA

LOGS = DATA / "verifiers"
read, rows = partial(golden.read, verifiers), partial(golden.rows, verifiers)


@pytest.fixture
def rollouts(tmp_path):
    """A copy of the log before, to be changed; the folder of its one run."""
    shutil.copytree(LOGS / "before", tmp_path / "log")
    return tmp_path / "log/sums--tiny-before/1a2b3c4d"


def test_rewards_are_read_as_they_are():
    (file,) = (LOGS / "before").rglob("results.jsonl")
    written = json_lines(file)
    found = rows(LOGS / "before")
    assert [row["score"] for row in found] == [
        None if one["error"] else one["reward"] for one in written
    ]
    assert {0.5, 0.25} < {row["score"] for row in found}
    assert {row["repeat"] for row in found} == {0, 1}
    assert len({row["item"] for row in found}) == 5


def test_an_error_is_no_reward_of_zero():
    (row,) = rows(LOGS / "before", status="error")
    assert (row["item_ref"], row["repeat"], row["score"]) == ("4", 1, None)
    (row,) = rows(LOGS / "after", status="truncated")
    assert (row["item_ref"], row["score"]) == ("4", 0.0)


def test_settings_and_what_is_left_out():
    samples = read(LOGS / "before")
    assert samples.models == ["tiny-before"]
    assert samples.settings["generation"] == {"sums": {"temperature": 0.7, "max_tokens": 64}}
    assert samples.settings["task version"] == {"sums": "0.1.0"}
    after = read(LOGS / "after")
    confounds = forgetmap.compare(samples, after, draws=200).confounds
    assert [confound.setting for confound in confounds] == ["generation"]
    (warning,) = samples.meta.warnings
    assert "correct_answer, num_turns" in warning


def test_without_metadata_the_folder_names_model_and_task(rollouts):
    (rollouts / "metadata.json").unlink()
    samples = read(rollouts.parent)
    assert samples.models == ["tiny-before"]
    assert {row["task"] for row in samples.data.to_pylist()} == {"sums"}
    assert samples.settings == {}


def test_runs_add_repeats_and_tasks_stay_apart(rollouts):
    shutil.copytree(rollouts, rollouts.with_name("second"))
    assert {row["repeat"] for row in rows(rollouts.parent)} == {0, 1, 2, 3}
    written = json_lines(rollouts / "results.jsonl")
    write_jsonl(rollouts / "results.jsonl", [{**one, "task": "easy"} for one in written])
    assert {row["task"] for row in rows(rollouts.parent)} == {"easy", "sums"}


def test_a_failed_rollout_without_prompt_is_still_its_item(rollouts):
    written = json_lines(rollouts / "results.jsonl")
    (failed,) = (one for one in written if one["error"])
    failed["prompt"] = None
    write_jsonl(rollouts / "results.jsonl", written)
    (row,) = rows(rollouts, status="error")
    other = [one for one in rows(rollouts) if one["item_ref"] == row["item_ref"]]
    assert {one["item"] for one in other} == {row["item"]}


def test_the_system_prompt_is_not_part_of_the_item(rollouts):
    written = json_lines(rollouts / "results.jsonl")
    for one in written:
        one["prompt"][0]["content"] = "Think first."
    write_jsonl(rollouts / "results.jsonl", written)
    assert [row["item"] for row in rows(rollouts)] == [row["item"] for row in rows(LOGS / "before")]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"reward": "good"}, ":10: .*good"),
        ({"reward": float("inf")}, ":10: .*inf"),
        ({"example_id": None}, ":10: .*example_id"),
        ({"prompt": [3]}, ":10: "),
        ({"metrics": 3}, ":10: "),
    ],
)
def test_refusals(change, says, rollouts):
    written = json_lines(rollouts / "results.jsonl")
    written[9] |= change
    write_jsonl(rollouts / "results.jsonl", written)
    with pytest.raises(InputError, match=says):
        read(rollouts)


def test_a_reward_that_is_missing_is_unscored(rollouts):
    written = json_lines(rollouts / "results.jsonl")
    written[3]["reward"] = None
    write_jsonl(rollouts / "results.jsonl", written)
    assert len(rows(rollouts, status="unscored")) == 1
