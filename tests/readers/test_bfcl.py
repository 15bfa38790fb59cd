"""The BFCL reader, on logs of tests/data and on changed ones."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import pytest

import golden
from forgetmap.base.errors import InputError
from forgetmap.readers import bfcl
from forgetmap.readers.framework import ReadOptions
from golden import json_lines
from logs import write_jsonl
from places import DATA

LOGS = DATA / "bfcl"
read, rows = partial(golden.read, bfcl), partial(golden.rows, bfcl)


SCORE = "score/tiny-{}/non_live/BFCL_v4_{}_score.json"
RESULT = "result/tiny-{}/non_live/BFCL_v4_{}_result.json"


@pytest.fixture
def log(tmp_path):
    """A copy of the log before, to be changed."""
    return Path(shutil.copytree(LOGS / "before", tmp_path / "log"))


def test_what_is_not_listed_has_passed():
    for side in ("before", "after"):
        for category in ("simple_python", "irrelevance"):
            summary, *failures = json_lines(LOGS / side / SCORE.format(side, category))
            found = rows(LOGS / side, task=category)
            assert len(found) == summary["total_count"]
            wrong = {row["item_ref"] for row in found if row["score"] == 0}
            failed_calls = {row["item_ref"] for row in found if row["status"] == "error"}
            assert wrong | failed_calls >= {failure["id"] for failure in failures} >= wrong


def test_a_call_that_failed_has_no_score_even_where_bfcl_counts_it_as_right():
    """In `irrelevance` no answer is no function call, and passes."""
    summary, *failures = json_lines(LOGS / "after" / SCORE.format("after", "irrelevance"))
    assert summary["correct_count"] == 2
    assert [failure["id"] for failure in failures] == ["irrelevance_0"]
    found = rows(LOGS / "after", status="error")
    assert {row["item_ref"]: row["score"] for row in found} == {
        "simple_python_4": None,
        "irrelevance_2": None,
    }


def test_texts_model_and_version():
    samples = read(LOGS / "before", text=True)
    assert samples.models == ["tiny-before"]
    assert set(samples.settings["task version"].values()) == {"BFCL_v4"}
    (row,) = (
        row
        for row in samples.data.to_pylist()
        if row["task"] == "simple_python" and row["score"] == 0
    )
    assert row["response"] == "[set_volume(level=8)]"
    assert "Turn the volume" in row["prompt"]
    assert "set_volume" in row["target"]


def test_trees_of_2024_join_by_place():
    found = rows(LOGS / "2024/after", text=True)
    assert {row["item_ref"]: row["score"] for row in found} == {
        **{"simple_0": 1, "simple_1": 0, "simple_2": 0, "simple_3": 1},
        **{"relevance_0": 1, "relevance_1": 1},
    }
    statuses = {row["item_ref"]: row["status"] for row in found if row["score"] == 0}
    assert statuses == {"simple_1": "no_answer", "simple_2": "ok"}


@pytest.mark.parametrize("part", ["score", "score/tiny-before", SCORE])
def test_any_part_of_the_score_tree_can_be_given(part):
    found = rows(LOGS / "before" / part.format("before", "simple_python"))
    assert {row["model"] for row in found} == {"tiny-before"}
    assert len(found) == (5 if part == SCORE else 8)


def test_without_the_result_file_it_is_refused(log):
    shutil.rmtree(log / "result")
    assert bfcl.sniff(log)
    with pytest.raises(InputError, match="lists failures only, and its result file is not at"):
        read(log)


@pytest.mark.parametrize("with_prompt", [True, False])
def test_failures_numbered_from_one(log, with_prompt):
    """Older releases: `id` counts from 1, ids of items from 0; no folders for groups."""
    score = log / SCORE.format("before", "simple_python")
    summary, failure = json_lines(score)
    failure |= {"id": 4, "prompt": failure["prompt"] if with_prompt else "Turn the volume to 7."}
    write_jsonl(score, [summary, failure])
    for tree in ("score", "result"):
        for file in (log / tree / "tiny-before/non_live").iterdir():
            file.rename(file.parent.parent / file.name)
    old = rows(log)
    new = rows(LOGS / "before")
    assert [(row["item_ref"], row["score"]) for row in old] == [
        (row["item_ref"], row["score"]) for row in new
    ]


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"total_count": 6}, "counts 6 items with 4 right .* holds 5 items"),
        ({"correct_count": 3}, "with 3 right and lists 1 failures"),
        ({"correct_count": None}, ":1: "),
    ],
)
def test_counts_must_agree(changed, says, log):
    score = log / SCORE.format("before", "simple_python")
    summary, *failures = json_lines(score)
    write_jsonl(score, [{**summary, **changed}, *failures])
    with pytest.raises(InputError, match=says):
        read(log)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"id": "simple_python_9", "prompt": {}}, ":2: .*simple_python_9.* not in the result file"),
        ({"id": None, "prompt": None}, ":2: "),
        ({"valid": True}, ":2: .*not a failure"),
    ],
)
def test_failures_must_be_known(changed, says, log):
    score = log / SCORE.format("before", "simple_python")
    summary, failure = json_lines(score)
    write_jsonl(score, [summary, {**failure, **changed}])
    with pytest.raises(InputError, match=says):
        read(log)


def test_an_answer_that_stands_twice_is_refused(log):
    result = log / RESULT.format("before", "simple_python")
    answers = json_lines(result)
    write_jsonl(result, [*answers, answers[0]])
    with pytest.raises(InputError, match=r":6: .*stands twice"):
        read(log)


def test_its_own_types_of_error_become_statuses():
    found = bfcl.read(LOGS / "after", ReadOptions(text=True)).data.to_pylist()
    told = {row["item_ref"]: (row["status"], row["answer"]) for row in found}
    assert told["simple_python_0"] == ("ok", "[{'double': {'x': 5}}]")  # value_error: a call
    assert told["simple_python_2"] == ("no_answer", None)  # decoder_failed: no call
    assert told["simple_python_4"][0] == "error"  # the model could not be asked
