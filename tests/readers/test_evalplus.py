"""The EvalPlus reader, on logs of tests/data and on changed ones."""

from __future__ import annotations

import json
from functools import partial

import pytest

import forgetmap
import golden
from forgetmap.base.errors import InputError
from forgetmap.readers import evalplus
from places import DATA

LOGS = DATA / "evalplus"
read, rows = partial(golden.read, evalplus), partial(golden.rows, evalplus)


def results_of(side="before"):
    (file,) = (LOGS / side).iterdir()
    return json.loads(file.read_text(encoding="utf-8"))


def write(folder, results, name="m_eval_results.json"):
    (folder / name).write_text(json.dumps(results), encoding="utf-8")
    return folder / name


@pytest.mark.parametrize("side", ["before", "after"])
def test_counts_are_those_that_evalplus_printed(side):
    """pass@1 as printed: base 0.8 and 0.8, plus 0.7 and 0.4."""
    for metric, printed in (("base", 0.8), ("plus", {"before": 0.7, "after": 0.4}[side])):
        scores = [row["score"] for row in rows(LOGS / side, metric=metric)]
        assert sum(scores) / len(scores) == pytest.approx(printed)


def test_completions_are_repeats_and_the_hash_is_the_task_version():
    samples = read(LOGS / "before")
    found = samples.data.to_pylist()
    assert {row["repeat"] for row in found} == {0, 1}
    assert {row["item"] for row in found} == {None}
    assert {row["task"] for row in found} == {"humaneval"}
    assert samples.models == ["tiny-before"]
    assert samples.settings == {"task version": {"humaneval": results_of()["hash"]}}


def test_another_test_set_is_a_confound(tmp_path):
    other = write(tmp_path, {**results_of(), "hash": "0" * 32})
    sides = read(LOGS / "before"), read(other)
    result = forgetmap.compare(*sides, metric="plus", draws=200)
    assert [confound.setting for confound in result.confounds] == ["task version"]


def test_plus_implies_base(tmp_path):
    results = results_of()
    results["eval"] = {"Mbpp/2": [{"base_status": "fail", "plus_status": "pass"}]}
    found = rows(write(tmp_path, results))
    assert {row["metric"]: row["score"] for row in found} == {"base": 0.0, "plus": 0.0}
    assert {row["task"] for row in found} == {"mbpp"}


def test_without_extra_tests_has_no_plus(tmp_path):
    results = results_of()
    for completions in results["eval"].values():
        for completion in completions:
            completion["plus_status"] = None
    assert {row["metric"] for row in rows(write(tmp_path, results))} == {"base"}


def test_layout_of_older_releases(tmp_path):
    results = results_of()
    words = {"pass": "success", "fail": "failed", "timeout": "timed out"}
    results["eval"] = {
        task: {
            "nfiles": len(completions),
            "base": [[words[one["base_status"]], [True]] for one in completions],
            "plus": [[words[one["plus_status"]], [True]] for one in completions],
        }
        for task, completions in results["eval"].items()
    }
    columns = ("item_ref", "repeat", "metric", "score")
    old, new = (
        [[row[column] for column in columns] for row in rows(path)]
        for path in (write(tmp_path, results), LOGS / "before")
    )
    assert old == new


@pytest.mark.parametrize(
    ("name", "model"),
    [("m_eval_results.json", "m"), ("a.b.eval_results.json", "a.b"), ("eval_results.json", "dir")],
)
def test_file_names(name, model, tmp_path):
    (tmp_path / "dir").mkdir()
    file = write(tmp_path / "dir", results_of(), name)
    assert evalplus.sniff(file)
    assert evalplus.sniff(tmp_path)
    assert read(file).models == [model]


def test_a_file_of_that_name_with_other_content_is_not_claimed(tmp_path):
    assert not evalplus.sniff(write(tmp_path, {"accuracy": 0.5}))


@pytest.mark.parametrize(
    ("task", "says"),
    [
        ([{"plus_status": "pass"}], "HumanEval/0.*base_status"),
        ([{"base_status": "maybe"}], "HumanEval/0.*maybe"),
        ([{"base_status": "pass", "plus_status": 1}], "HumanEval/0.*status 1"),
        ({"base": [["pass", []]], "plus": [["pass", []]] * 2}, "1 completions have base, 2 plus"),
        ("pass", "HumanEval/0.*list"),
        (["pass"], "HumanEval/0.*object"),
    ],
)
def test_refusals(task, says, tmp_path):
    results = {"date": "", "hash": "h", "eval": {"HumanEval/0": task}}
    with pytest.raises(InputError, match=says):
        read(write(tmp_path, results))


def test_a_timeout_is_told(tmp_path):
    results = results_of()
    results["eval"] = {
        "Mbpp/2": [{"base_status": "pass", "plus_status": "timeout"}],
        "Mbpp/3": [{"base_status": "timeout", "plus_status": "fail"}],
    }
    found = {(row["item_ref"], row["metric"]): row for row in rows(write(tmp_path, results))}
    told = {key: (row["score"], row["status"]) for key, row in found.items()}
    assert told == {
        ("Mbpp/2", "base"): (1.0, "ok"),
        ("Mbpp/2", "plus"): (0.0, "timeout"),
        ("Mbpp/3", "base"): (0.0, "timeout"),
        ("Mbpp/3", "plus"): (0.0, "timeout"),
    }
