"""The promptfoo reader, on logs of tests/data and on changed ones."""

from __future__ import annotations

import json
from functools import partial

import pytest

import forgetmap
import golden
from forgetmap.base.errors import InputError
from forgetmap.readers import promptfoo
from places import DATA

LOGS = DATA / "promptfoo"
read, rows = partial(golden.read, promptfoo), partial(golden.rows, promptfoo)


def export_of(side="before"):
    return json.loads((LOGS / f"{side}/results.json").read_text(encoding="utf-8"))


def write(folder, export):
    (folder / "results.json").write_text(json.dumps(export), encoding="utf-8")
    return folder / "results.json"


def test_scores_are_those_of_the_export():
    records = export_of()["results"]["results"]
    found = rows(LOGS / "before", metric="correct")
    assert len(found) == len(records) == 24
    assert [row["score"] for row in found] == [
        None if record["failureReason"] == 2 else float(record["success"]) for record in records
    ]


def test_errors_are_not_failures():
    """promptfoo counts both as failed, and writes a text to `error` for both."""
    records = export_of()["results"]["results"]
    assert {bool(record.get("error")) for record in records if not record["success"]} == {True}
    found = rows(LOGS / "before")
    assert {row["status"] for row in found if row["score"] is None} == {"error"}
    errors = [row for row in found if row["status"] == "error"]
    assert len(errors) == 4 * 3  # with its two named assertions
    assert {row["status"] for row in found if row["score"] == 0} == {"ok"}


def test_named_assertions_are_metrics():
    found = rows(LOGS / "after", metric="one word", text=True)
    assert {row["response"]: row["score"] for row in found if row["score"] is not None} == {
        **{"Rome": 1.0, "Kyoto": 1.0, "nairobi!": 0.0, "Lima": 1.0, "N'Djamena": 1.0}
    }


def test_repeats_prompts_models_and_settings():
    samples = read(LOGS / "before")
    found = samples.data.to_pylist()
    assert {row["task"] for row in found} == {"plain", "short"}
    assert {row["repeat"] for row in found} == {0, 1}
    assert samples.models == ["tiny-before"]
    assert len({row["item"] for row in found}) == 6
    after = read(LOGS / "after")
    assert after.settings["generation"] == "temperature=0.5"
    confounds = forgetmap.compare(samples, after, draws=200).confounds
    assert [confound.setting for confound in confounds] == ["generation"]
    assert samples.meta.version == after.meta.version == "0.121.20"


def test_jsonl_gives_the_same_items():
    columns = ("model", "task", "item", "metric", "score")
    one, other = (
        {tuple(row[column] for column in columns) for row in rows(DATA / path)}
        for path in ("promptfoo/before", "promptfoo/before.jsonl")
    )
    assert one == other
    assert promptfoo.sniff(LOGS / "before.jsonl")


def test_flat_layout_and_older_records(tmp_path):
    """The Node package returns the inner object; before 2024-11 there was no failureReason."""
    summary = export_of()["results"]
    for record in summary["results"]:
        del record["failureReason"]
    flat = write(tmp_path, {**summary, "version": 2})
    assert promptfoo.sniff(flat)
    new = rows(LOGS / "before", metric="correct")
    old = rows(flat, metric="correct")
    assert [row["score"] for row in old] == [row["score"] for row in new]
    assert [row["item"] for row in old] == [row["item"] for row in new]


def test_tests_with_the_same_variables_but_other_assertions_are_two_items(tmp_path):
    export = export_of()
    export["results"]["results"] = export["results"]["results"][:3]
    other = export["results"]["results"][2]
    other["testCase"]["assert"][0]["value"] = "Lutetia"
    found = rows(write(tmp_path, export), metric="correct", task="plain")
    assert len({row["item"] for row in found}) == 2
    assert {row["repeat"] for row in found} == {0}


def test_providers_of_one_file_are_models(tmp_path):
    export = export_of()
    export["results"]["results"] += export_of("after")["results"]["results"]
    samples = read(write(tmp_path, export))
    assert samples.models == ["tiny-after", "tiny-before"]
    sides = samples.only("tiny-before"), samples.only("tiny-after")
    assert forgetmap.compare(*sides, draws=200).total.n == 8


def test_long_prompts_stay_apart(tmp_path):
    export = export_of()
    for record in export["results"]["results"]:
        record["prompt"]["label"] = "Think step by step. " * 20 + str(record["promptIdx"])
    found = rows(write(tmp_path, export))
    tasks = {row["task"] for row in found}
    assert len(tasks) == 2
    assert all(len(task) <= 90 for task in tasks)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda results: results.update(version=9), "version 9"),
        (lambda results: results.update(results=None), "no list of results"),
        (lambda results: results["results"].append(3), "result 24"),
        (lambda results: results["results"][1].pop("success"), "result 1: .*success"),
        (lambda results: results["results"][1].update(success="yes"), "result 1: .*success"),
        (lambda results: results["results"][1].pop("vars"), "result 1: .*vars"),
    ],
)
def test_refusals(change, says, tmp_path):
    export = export_of()
    change(export["results"])
    with pytest.raises(InputError, match=says):
        read(write(tmp_path, export))
