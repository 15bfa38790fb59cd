"""The same model's answers to the same items, written by different harnesses, give the same map."""

from __future__ import annotations

import csv

import pytest

from conftest import DATA
from forgetmap.comparison import compare
from forgetmap.readers import ReadOptions, read
from forgetmap.samples import wording_hash

LM_EVAL = DATA / "lm_eval/0.4.13"
LIGHTEVAL = {version: DATA / "lighteval" / version for version in ("0.10.0", "0.13.0")}
FAST = {"draws": 500}


@pytest.mark.parametrize("version", LIGHTEVAL)
@pytest.mark.parametrize("side", ["before", "after"])
def test_the_same_model_in_two_harnesses_has_no_flips(version, side):
    result = compare(LM_EVAL / side, LIGHTEVAL[version] / side / "greedy", **FAST)
    capitals = result.tasks["fm_capitals"]
    assert capitals.n == 16
    assert (capitals.counts.n10, capitals.counts.n01) == (0, 0)
    assert capitals.forgetting.soft.value == pytest.approx(0, abs=1e-4)
    assert result.confounds[0].setting == "harness"
    assert any("by their words" in text for text in result.warnings)


@pytest.mark.parametrize("version", LIGHTEVAL)
def test_a_map_across_harnesses_equals_the_map_within_one(version):
    within = compare(LM_EVAL / "before", LM_EVAL / "after", **FAST).tasks["fm_capitals"]
    across = compare(LM_EVAL / "before", LIGHTEVAL[version] / "after/greedy", **FAST)
    assert across.tasks["fm_capitals"].counts == within.counts
    assert across.tasks["fm_capitals"].forgetting.raw.value == within.forgetting.raw.value


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
    import json

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
