"""The same model's answers to the same items, written by different harnesses, give the same map."""

from __future__ import annotations

import csv
import json
from itertools import combinations, product

import pytest

from forgetmap.api import compare
from forgetmap.readers.framework import ReadOptions
from forgetmap.readers.registry import read
from forgetmap.samples.identity import wording_hash
from places import DATA

LM_EVAL = DATA / "lm_eval/0.4.13"
REPLAY = DATA / "inspect_replay/0.3.285"
"""What the models of the lm-eval logs answered, asked again, scored and written by Inspect."""
LOGS = {
    "lm-eval": str(LM_EVAL / "{side}"),
    "lighteval 0.10": str(DATA / "lighteval/0.10.0/{side}/greedy"),
    "lighteval 0.13": str(DATA / "lighteval/0.13.0/{side}/greedy"),
    "Inspect": str(REPLAY / "{side}"),
}
"""The same two models, asked the capitals, by four harnesses or releases."""
FAST = {"draws": 500}


def capitals(before, after):
    return compare(before, after, **FAST).tasks["fm_capitals"]


@pytest.mark.parametrize(("one", "other"), list(combinations(LOGS, 2)))
@pytest.mark.parametrize("side", ["before", "after"])
def test_the_same_model_in_two_harnesses_has_no_flips(one, other, side):
    result = compare(LOGS[one].format(side=side), LOGS[other].format(side=side), **FAST)
    found = result.tasks["fm_capitals"]
    assert found.n == 16
    assert (found.counts.n10, found.counts.n01) == (0, 0)
    if one.partition(" ")[0] != other.partition(" ")[0]:
        assert result.confounds[0].setting == "harness"
        assert any("by their words" in text for text in result.warnings)


@pytest.mark.parametrize("version", ["lighteval 0.10", "lighteval 0.13"])
@pytest.mark.parametrize("side", ["before", "after"])
def test_the_options_of_the_same_model_are_as_likely_in_two_harnesses(version, side):
    found = capitals(LOGS["lm-eval"].format(side=side), LOGS[version].format(side=side))
    assert found.lost.basis == "probabilities"
    assert found.lost.value == pytest.approx(0, abs=1e-4)
    assert found.gained.value == pytest.approx(0, abs=1e-4)


@pytest.mark.parametrize(("one", "other"), list(product(LOGS, LOGS)))
def test_the_map_is_the_same_whichever_harness_wrote_the_logs(one, other):
    """Within each harness, and with the log before of one and the log after of another."""
    found = capitals(LOGS[one].format(side="before"), LOGS[other].format(side="after"))
    expected = capitals(LM_EVAL / "before", LM_EVAL / "after")
    assert (expected.counts.n10, expected.counts.n01) == (4, 3)
    assert found.counts == expected.counts
    for change in ("lost", "gained"):
        assert getattr(found.raw, change).value == getattr(expected.raw, change).value
    assert found.p_value == expected.p_value


@pytest.mark.parametrize("side", ["before", "after"])
def test_answers_replayed_through_inspect_are_scored_as_by_lm_eval(side):
    """Also options of differing number, and generated numbers taken out of the text."""
    result = compare(LM_EVAL / side, REPLAY / side, **FAST)
    assert {task: cell.n for task, cell in result.tasks.items()} == {
        **{"fm_capitals": 16, "fm_elements": 14, "fm_sums": 12}
    }
    assert (result.total.counts.n10, result.total.counts.n01) == (0, 0)
    assert 0 < result.total.counts.n00 < 42


def test_the_map_of_replayed_answers_is_that_of_lm_eval():
    ours, theirs = (
        compare(logs / "before", logs / "after", **FAST).tasks for logs in (REPLAY, LM_EVAL)
    )
    assert ours.keys() == {"fm_capitals", "fm_elements", "fm_sums"}
    for task, cell in ours.items():
        assert cell.counts == theirs[task].counts
        assert cell.counts.n10 > 0 < cell.counts.n01


def test_a_table_pairs_with_a_harness(tmp_path):
    """The metric has another name there; each side's own is taken, and both are told."""
    rows = read(LM_EVAL / "before", ReadOptions(text=True)).data.to_pylist()
    capitals = [row for row in rows if row["task"] == "fm_capitals" and row["metric"] == "acc"]
    with (tmp_path / "table.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["task", "question", "choices", "target", "correct"])
        for line in _documents():
            right = next(row for row in capitals if row["item_ref"] == str(line["doc_id"]))
            choices = line["doc"]["choices"]
            target = choices[int(line["target"])]
            text = str(choices).replace("'", '"')
            writer.writerow(["fm_capitals", line["doc"]["question"], text, target, right["score"]])
    result = compare(LM_EVAL / "before", tmp_path / "table.csv", **FAST)
    assert result.total.n == 16
    assert result.total.counts.n10 == result.total.counts.n01 == 0
    assert result.settings.metric == {"fm_capitals": "acc / score"}


def _documents():
    (file,) = (LM_EVAL / "before").rglob("samples_fm_capitals_*")
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.mark.parametrize(
    ("question", "options", "answer"),
    [
        ("Which is red?", ["sky", "rose"], "rose"),
        ("Question: Which is red?\nAnswer:", [" sky", " rose"], " rose"),
        ("Q: Which is  red?\nA. sky\nB. rose\nAnswer:", ["A", "B"], "B"),
        ("Which is red?\n(A) sky\n(B) rose", [], "rose"),
    ],
)
def test_the_words_are_the_same_whatever_the_prompt_adds(question, options, answer):
    expected = wording_hash("Which is red?", ["sky", "rose"], "rose")
    assert wording_hash(question, options, answer) == expected


@pytest.mark.parametrize(
    ("question", "options", "answer"),
    [
        ("Which is blue?", ["sky", "rose"], "rose"),
        ("Which is red?", ["sky", "nose"], "rose"),
        ("Which is red?", ["sky", "rose"], "sky"),
        ("Which is red?", ["rose", "sky"], "rose"),
    ],
)
def test_other_words_are_another_item(question, options, answer):
    expected = wording_hash("Which is red?", ["sky", "rose"], "rose")
    assert wording_hash(question, options, answer) != expected
