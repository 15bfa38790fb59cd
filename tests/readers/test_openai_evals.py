"""The OpenAI evals reader, on logs of tests/data and on changed ones."""

from __future__ import annotations

import json
from functools import partial

import pytest

import golden
from forgetmap.base.errors import InputError
from forgetmap.readers import openai_evals
from golden import json_lines
from logs import write_jsonl
from places import DATA

LOGS = DATA / "openai_evals"
read, rows = partial(golden.read, openai_evals), partial(golden.rows, openai_evals)


def events():
    return json_lines(LOGS / "before/capitals.jsonl")


def test_scores_are_those_of_the_report():
    """The real file has its final report in the second line, before the events."""
    written = events()
    assert "spec" in written[0]
    assert "final_report" in written[1]
    found = rows(LOGS / "before", task="capitals", text=True)
    scores = [row["score"] for row in found]
    assert sum(scores) / len(scores) == written[1]["final_report"]["accuracy"]
    assert {row["metric"] for row in found} == {"correct"}
    assert {row["target"] for row in found} == {"Paris", "Rome", "Tokyo", "Nairobi", "Lima"}
    assert all("capital of" in row["prompt"] and row["response"] for row in found)
    told = ["words.jsonl: 5 values of 'text' are not numbers, left out"]
    assert read(LOGS / "before").meta.warnings == told


def test_metrics_events_give_a_metric_for_each_number():
    found = rows(LOGS / "before", task="words")
    assert {row["metric"] for row in found} == {"score", "length"}
    assert len(found) == 10


def test_settings():
    samples = read(LOGS / "after")
    assert samples.models == ["tiny-after"]
    assert samples.settings["task version"]["capitals"] == "capitals.test.v1"


def test_the_last_of_several_events_counts(tmp_path):
    written = events()
    match = next(event for event in written if event.get("type") == "match")
    again = {**match, "data": {**match["data"], "correct": False}}
    path = write_jsonl(tmp_path / "log.jsonl", [*written, again])
    samples = read(path)
    scores = {row["item_ref"]: row["score"] for row in samples.data.to_pylist()}
    assert match["data"]["correct"]
    assert scores[match["sample_id"]] == 0
    assert len(samples) == 5
    assert any("1 samples were scored twice" in text for text in samples.meta.warnings)


def test_only_the_first_prompt_identifies_the_item(tmp_path):
    """A model-graded eval samples twice; the grader's prompt holds the answer."""
    written = events()
    sampling = next(event for event in written if event.get("type") == "sampling")
    graded = {**sampling, "data": {"prompt": "Is Nairobi right?", "sampled": ["Yes"]}}
    one = rows(write_jsonl(tmp_path / "log.jsonl", [*written, graded]), text=True)
    other = rows(LOGS / "before", task="capitals", text=True)
    for column in ("item", "response"):
        assert [row[column] for row in one] == [row[column] for row in other]


def test_the_system_prompt_is_not_part_of_the_item(tmp_path):
    written = events()
    for event in written:
        if event.get("type") == "sampling":
            event["data"]["prompt"].insert(0, {"role": "system", "content": "Be brief."})
    found = rows(write_jsonl(tmp_path / "log.jsonl", written))
    other = rows(LOGS / "before", task="capitals")
    assert [row["item"] for row in found] == [row["item"] for row in other]


@pytest.mark.parametrize(("kind", "status"), [("error", "error"), ("raw_sample", "unscored")])
def test_a_sample_without_score_is_not_wrong(kind, status, tmp_path):
    written = events()
    match = next(event for event in written if event.get("type") == "match")
    match |= {"type": kind, "data": {"type": "Timeout", "message": "no answer"}}
    found = rows(write_jsonl(tmp_path / "log.jsonl", written), score=None)
    assert [(row["item_ref"], row["status"]) for row in found] == [(match["sample_id"], status)]


def test_a_metric_that_is_no_number_is_unscored(tmp_path):
    written = events()
    written[3] |= {"type": "metrics", "data": {"correct": float("nan"), "note": "none"}}
    (row,) = rows(write_jsonl(tmp_path / "log.jsonl", written), score=None)
    assert (row["metric"], row["status"]) == ("correct", "unscored")


def test_without_prompts_items_are_known_by_their_id(tmp_path):
    kept = [event for event in events() if event.get("type") != "sampling"]
    found = rows(write_jsonl(tmp_path / "log.jsonl", kept))
    assert {row["item"] for row in found} == {None}
    assert all(row["item_ref"].startswith("capitals.test.") for row in found)


def test_runs_are_repeats_even_with_the_same_seed(tmp_path):
    write_jsonl(tmp_path / "one.jsonl", events())
    second = json.loads(json.dumps(events()).replace(events()[0]["spec"]["run_id"], "SECOND"))
    write_jsonl(tmp_path / "two.jsonl", second)
    assert {row["repeat"] for row in rows(tmp_path)} == {0, 1}


def test_a_killed_run_is_noted(tmp_path):
    written = [event for event in events() if "final_report" not in event]
    path = write_jsonl(tmp_path / "log.jsonl", written)
    path.write_text(path.read_text(encoding="utf-8")[:-30], encoding="utf-8")
    warnings = read(path).meta.warnings
    assert any("no final report" in text for text in warnings)
    assert any("cut off" in text for text in warnings)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"data": {"correct": "yes"}}, ":4: .*not true or false"),
        ({"data": {}}, ":4: .*correct"),
        ({"data": None}, ":4: "),
        ({"run_id": "other"}, ":4: .*another run"),
        ({"type": "metrics", "data": {"score": float("inf")}}, ":4: .*inf is not a number"),
    ],
)
def test_refusals(change, says, tmp_path):
    written = events()
    assert written[3]["type"] == "match"
    written[3] |= change
    with pytest.raises(InputError, match=says):
        read(write_jsonl(tmp_path / "log.jsonl", written))
    with pytest.raises(InputError, match=":1: not a run's spec"):
        read(write_jsonl(tmp_path / "x.jsonl", [{"spec": {"eval_name": "e"}}]))
