"""The OpenCompass reader on hand-made folders in the form that OpenCompass writes."""

from __future__ import annotations

import json
import shutil

import pytest

from forgetmap.api import compare
from forgetmap.base.errors import InputError
from forgetmap.readers import opencompass
from forgetmap.readers.framework import ReadOptions
from places import DATA

LOGS = DATA / "opencompass"


def load(path, text=True):
    return opencompass.read(path, ReadOptions(text=text))


def rows(path, text=True, **wanted):
    found = load(path, text).data.to_pylist()
    return [row for row in found if all(row[name] == value for name, value in wanted.items())]


def put(folder, kind, name, content):
    file = folder / "20260101_000000" / kind / "m" / f"{name}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


def predictions(*questions):
    return {
        str(index): {"origin_prompt": question, "prediction": "a", "gold": "a"}
        for index, question in enumerate(questions)
    }


def results(*correct, name="correct"):
    return {"accuracy": 50.0, "details": [{name: value} for value in correct]}


def test_scores_come_from_the_details():
    found = {
        task: [
            (row["item_ref"], row["repeat"], row["score"])
            for row in rows(LOGS / "before", task=task)
        ]
        for task in ("capitals", "sums", "opposites")
    }
    assert found["capitals"] == [(str(i), 0, s) for i, s in enumerate([1, 1, 1, 0, 1])]
    assert found["sums"] == [(f"sums_{i}", 0, s) for i, s in enumerate([1, 1, 0, 1, 1])]
    assert found["opposites"] == [
        *[("opposites_0", 0, 1), ("opposites_0", 1, 1), ("opposites_1", 0, 0)],
        *[("opposites_1", 1, 1), ("opposites_2", 0, 1), ("opposites_2", 1, 0)],
    ]
    assert {row["metric"] for row in rows(LOGS / "before")} == {"accuracy"}
    assert load(LOGS / "before").models == ["base-hf"]


def test_texts_and_options():
    (row,) = rows(LOGS / "before", task="capitals", item_ref="3")
    assert (row["k"], row["target"], row["answer"], row["response"]) == (4, "B", "A", None)
    assert row["prompt"].splitlines()[1] == "B: The capital of Fiji is Suva."
    (row,) = rows(LOGS / "before", task="sums", item_ref="sums_4")
    assert [row[name] for name in ("prompt", "target", "answer", "response", "k")] == [
        *("What is 5 + 6?", "11", "11", "It is 11.", None)
    ]
    again = rows(LOGS / "before", task="opposites", item_ref="opposites_2")
    assert [(row["repeat"], row["response"]) for row in again] == [(0, "late"), (1, "?")]
    assert len({row["item"] for row in again}) == 1
    assert {row["prompt"] for row in rows(LOGS / "before", text=False)} == {None}


def test_a_base_and_a_chat_model_pair_by_their_words():
    result = compare(load(LOGS / "before"), load(LOGS / "after"), draws=200)
    assert result.coverage.identity == "content"
    assert {task: found.n for task, found in result.tasks.items()} == {
        **{"capitals": 5, "sums": 5, "opposites": 3}
    }
    counts = result.tasks["capitals"].counts
    assert (counts.n11, counts.n10, counts.n01, counts.n00) == (2, 2, 1, 0)


def test_parts_are_joined_in_the_order_of_their_numbers(tmp_path):
    """Each part counts from 0; the tenth comes after the ninth, not after the first."""
    for part in range(11):
        put(tmp_path, "predictions", f"d_{part}", predictions(f"q{part}.0", f"q{part}.1"))
    put(tmp_path, "results", "d", results(*[True, False] * 11))
    found = rows(tmp_path)
    assert [row["prompt"] for row in found] == [f"q{p}.{i}" for p in range(11) for i in (0, 1)]
    for part in range(11):
        put(tmp_path, "results", f"d_{part}", results(True, False))
    put(tmp_path, "results", "d", "").unlink()
    again = rows(tmp_path)
    assert [(row["task"], row["item_ref"], row["prompt"]) for row in again] == [
        ("d", str(2 * p + i), f"q{p}.{i}") for p in range(11) for i in (0, 1)
    ]
    assert any("11 parts were joined" in text for text in load(tmp_path).meta.warnings)
    put(tmp_path, "results", "d_5", "").unlink()
    with pytest.raises(InputError, match="a part before it is missing"):
        load(tmp_path)


def test_a_number_at_the_end_of_a_name_is_no_part(tmp_path):
    for name in ("math_500", "gpqa_1"):
        put(tmp_path, "results", name, results(True))
    assert {row["task"] for row in rows(tmp_path)} == {"math_500", "gpqa_1"}


@pytest.mark.parametrize("name", ["correct", "is_correct", "cascade_correct"])
@pytest.mark.parametrize(
    ("value", "score", "status"),
    [
        *[(True, 1, "ok"), (False, 0, "ok"), (1, 1, "ok"), (0.5, 0.5, "ok"), ("True", 1, "ok")],
        *[([True], 1, "ok"), ([[False]], 0, "ok"), ([None], None, "unscored")],
        (None, None, "unscored"),
    ],
)
def test_ways_to_say_right(name, value, score, status, tmp_path):
    put(tmp_path, "results", "d", results(value, True, name=name))
    first = rows(tmp_path)[0]
    assert (first["score"], first["status"]) == (score, status)


def test_an_empty_prediction_is_no_answer(tmp_path):
    put(tmp_path, "results", "d", {"details": [{"pred": "", "correct": False}]})
    assert [row["status"] for row in rows(tmp_path)] == ["no_answer"]


def test_details_by_index_are_sorted_as_numbers(tmp_path):
    details = {str(index): {"correct": index == 10} for index in (0, 10, *range(1, 10))}
    put(tmp_path, "results", "d", {"details": {"type": "GEN", **details}})
    assert [row["item_ref"] for row in rows(tmp_path) if row["score"]] == ["10"]


def test_without_prompts_the_index_pairs(tmp_path):
    put(tmp_path, "results", "d", results(True, False))
    assert [(row["item"], row["item_ref"]) for row in rows(tmp_path)] == [(None, "0"), (None, "1")]


def test_predictions_that_do_not_fit_are_not_used(tmp_path):
    put(tmp_path, "results", "d", results(True, False))
    put(tmp_path, "predictions", "d", predictions("q"))
    samples = load(tmp_path)
    assert samples.data["item"].null_count == 2
    assert any("1 predictions for 2 results" in text for text in samples.meta.warnings)


def test_several_rounds_are_one_prompt(tmp_path):
    put(tmp_path, "results", "d", results(True))
    rounds = [[{"role": "HUMAN", "prompt": "a"}], [{"section": "x", "pos": "begin"}, "b"]]
    put(tmp_path, "predictions", "d", {"0": {"origin_prompt": rounds, "prediction": ["x", "y"]}})
    assert [(row["prompt"], row["response"]) for row in rows(tmp_path)] == [("a\nb", '["x", "y"]')]


def test_the_newest_run_counts(tmp_path):
    shutil.copytree(LOGS / "before", tmp_path, dirs_exist_ok=True)
    shutil.copytree(tmp_path / "20260101_000000", tmp_path / "20260202_000000")
    samples = load(tmp_path)
    assert set(samples.data["run"].to_pylist()) == {"20260202_000000"}
    assert any("older runs" in text for text in samples.meta.warnings)


@pytest.mark.parametrize(
    "content",
    [
        {"accuracy": 61.5},
        {"accuracy": 61.5, "details": None},
        {"accuracy": 61.5, "details": []},
        {"score": 3, "details": {"type": "GEN", "0": {"predictions": "a", "references": "a"}}},
    ],
)
def test_without_details_the_way_out_is_told(content, tmp_path):
    """The accuracy, in percent, is of no help: it is no score of an item."""
    put(tmp_path, "results", "d", content)
    put(tmp_path, "predictions", "d", predictions("q"))
    assert opencompass.sniff(tmp_path)
    with pytest.raises(InputError, match="--dump-eval-details"):
        load(tmp_path)
    put(tmp_path, "results", "e", results(True))
    assert any("left out: d;" in text for text in load(tmp_path).meta.warnings)


def test_predictions_alone_say_nothing(tmp_path):
    file = put(tmp_path, "predictions", "d", predictions("q"))
    for path in (tmp_path, file):
        assert opencompass.sniff(path)
        with pytest.raises(InputError, match="do not say what was right"):
            load(path)


def test_any_of_the_folders_or_one_file():
    top = LOGS / "before" / "20260101_000000"
    for path in (top, top / "results", top / "results" / "base-hf"):
        assert opencompass.sniff(path)
        assert len(load(path)) == 16
    file = top / "results" / "base-hf" / "sums.json"
    assert opencompass.sniff(file)
    assert len(load(file)) == 5


BAD = {
    "not JSON": ("results", "nonsense {", "valid JSON"),
    "empty": ("results", "", "valid JSON"),
    "a list": ("results", "[]", "JSON object"),
    "details a text": ("results", {"details": "x"}, "list or a dictionary"),
    "details of numbers": ("results", {"details": [1]}, r"details\[0\]"),
    "a gap": ("results", {"details": {"0": {}, "2": {}}}, "without a gap"),
    "correct a letter": ("results", results(True, "A"), r"details\[1\]"),
    "correct a dictionary": ("results", results({}), r"details\[0\]"),
    "correct in percent": ("results", results(100), "not between 0 and 1"),
    "no replicas": ("results", results([]), "0 replicas"),
    "prompt a number": ("results", {"details": [{"correct": True, "prompt": 3}]}, r"details\[0\]"),
    "predictions a list": ("predictions", "[]", "JSON object"),
    "predictions not JSON": ("predictions", "{", "valid JSON"),
    "predictions with a gap": ("predictions", {"1": {}}, "lacks the prediction"),
    "predictions of texts": ("predictions", {"0": "a"}, "lacks the prediction"),
}


@pytest.mark.parametrize(("kind", "content", "told"), BAD.values(), ids=BAD)
def test_what_cannot_be_trusted_is_named(kind, content, told, tmp_path):
    put(tmp_path, "results", "d", results(True))
    file = put(tmp_path, kind, "d", content)
    with pytest.raises(InputError, match=told) as error:
        load(tmp_path)
    assert str(file) in str(error.value)


def test_who_claims_what(tmp_path):
    others = ("lm_eval/0.4.13/before", "lighteval/0.13.0/before", "every_eval_ever/before", "helm")
    for other in others:
        files = [file for file in (DATA / other).rglob("*") if file.is_file()]
        assert files
        assert not any(opencompass.sniff(path) for path in (DATA / other, *files))
    for name in ("results/m/a.json", "predictions/m/a.json", "results/m/a.jsonl", "a.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text('{"question": "q", "answer": 1}')
        assert not opencompass.sniff(tmp_path / name)
    assert not opencompass.sniff(tmp_path)
