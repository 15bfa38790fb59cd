"""Readers of promptfoo, EvalPlus, OpenAI evals, BFCL, verifiers and NeMo Evaluator logs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import forgetmap
from conftest import DATA
from forgetmap.errors import InputError
from forgetmap.readers import (
    ReadOptions,
    bfcl,
    evalplus,
    lighteval,
    lm_eval,
    nemo,
    openai_evals,
    promptfoo,
    verifiers,
)
from forgetmap.samples import SCHEMA

READERS = {
    "promptfoo": promptfoo,
    "evalplus": evalplus,
    "openai_evals": openai_evals,
    "bfcl": bfcl,
    "verifiers": verifiers,
    "nemo": nemo,
}
SIDES = [(name, side) for name in READERS for side in ("before", "after")]
OTHERS = {
    "generic.jsonl": '{"question": "2+2?", "correct": true, "id": 3, "model": "m"}\n',
    "results.jsonl": '{"question": "2+2?", "reward": 1, "answer": "4"}\n',
    "generic.csv": "question,correct\n2+2?,1\n",
    "results.json": '{"results": {"arc": {"acc,none": 0.5}}, "config": {"model": "hf"}}',
    "inspect.json": '{"version": 2, "status": "success", "eval": {}, "results": {}, "samples": []}',
    "numbers.json": "[1, 2, 3]",
    "empty.json": "",
    "empty.jsonl": "",
    "noise.jsonl": "\x00\x01 not JSON",
    "samples_t_2026-01-01T00-00-00.jsonl": '{"doc_id": 0, "resps": [], "doc": {}, "acc": 1}\n',
}


def read(name, path, text=False, ticks=None):
    how = ReadOptions(text=text, tick=(lambda count: None) if ticks is None else ticks.append)
    return READERS[name].read(path, how)


def rows(name, path, text=False, **wanted):
    found = read(name, path, text).data.to_pylist()
    return [row for row in found if all(row[key] == value for key, value in wanted.items())]


def lines(path):
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


def write_lines(path, records):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


# --- all of them ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "side"), SIDES)
def test_each_log_is_claimed_by_its_reader_alone(name, side):
    path = DATA / name / side
    claimed = [other for other, reader in READERS.items() if reader.sniff(path)]
    assert claimed == [name]
    assert not lm_eval.sniff(path)
    assert not lighteval.sniff(path)


@pytest.mark.parametrize("name", READERS)
def test_other_formats_are_not_claimed(name, tmp_path):
    for file, text in OTHERS.items():
        path = tmp_path / Path(file).stem / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        assert not READERS[name].sniff(path), file
        assert not READERS[name].sniff(path.parent), file
    for log in ("lm_eval/0.4.13/before", "lighteval/0.13.0/before", "lm_eval_sampled/before"):
        assert not READERS[name].sniff(DATA / log)
    for folder in DATA.iterdir():
        if folder.name not in (name, "make"):
            assert not READERS[name].sniff(folder), folder.name
    for file in (DATA / "lm_eval/0.4.13/before").rglob("*.json*"):
        assert not READERS[name].sniff(file)


@pytest.mark.parametrize(("name", "side"), SIDES)
def test_rows_are_whole(name, side):
    ticks: list[int] = []
    samples = read(name, DATA / name / side, ticks=ticks)
    assert samples.data.schema == SCHEMA
    assert sum(ticks) > 0
    assert samples.meta.harness == name.replace("_", "-")
    found = samples.data.to_pylist()
    keys = [
        tuple(row[key] for key in ("model", "task", "item", "item_ref", "repeat", "metric"))
        for row in found
    ]
    assert len(keys) == len(set(keys))
    assert all(row["item_ref"] and row["source"] for row in found)
    assert all(row["score"] is None for row in found if row["status"] in ("error", "unscored"))
    assert any(row["score"] is not None for row in found)


@pytest.mark.parametrize(("name", "side"), SIDES)
def test_text_is_loaded_only_on_request(name, side):
    for column in ("prompt", "target", "answer", "response"):
        assert {row[column] for row in rows(name, DATA / name / side)} == {None}
    assert any(row["response"] for row in rows(name, DATA / name / side, text=True))


CHOSEN = {"evalplus": "plus"}  # the metric, where a log has several of equal standing
TRANSITIONS = {
    "promptfoo": (8, {"n11": 2, "n10": 4, "n01": 2, "n00": 0}),
    "evalplus": (5, {"n11": 0.5, "n10": 3, "n01": 1.5, "n00": 0}),
    "openai_evals": (10, {"n11": 5, "n10": 3, "n01": 2, "n00": 0}),
    "bfcl": (6, {"n11": 1, "n10": 3, "n01": 2, "n00": 0}),
    "verifiers": (5, {"n11": 2, "n10": 2, "n01": 1, "n00": 0}),
    "nemo": (5, {"n11": 2.5, "n10": 1, "n01": 1, "n00": 0.5}),
}


@pytest.mark.parametrize("name", READERS)
def test_before_and_after_can_be_compared(name):
    sides = (read(name, DATA / name / side) for side in ("before", "after"))
    result = forgetmap.compare(*sides, metric=CHOSEN.get(name), draws=200)
    n, counts = TRANSITIONS[name]
    assert result.total.n == n
    assert {cell: getattr(result.total.counts, cell) for cell in counts} == pytest.approx(counts)
    assert result.coverage.conflicts == 0


@pytest.mark.parametrize("name", READERS)
def test_a_model_beside_itself_has_lost_what_it_gained(name):
    sides = (read(name, DATA / name / "before") for _ in range(2))
    counts = forgetmap.compare(*sides, metric=CHOSEN.get(name), draws=200).total.counts
    assert counts.n10 == pytest.approx(counts.n01)


@pytest.mark.parametrize("name", READERS)
def test_every_value_turned_into_another_type_is_read_or_refused(name, tmp_path):
    """Whatever a file holds: rows, or one clear line; never a traceback."""
    source = DATA / name / "before"
    files = sorted(file for file in source.rglob("*.json*") if file.is_file())
    for file in files:
        folder = Path(shutil.copytree(source, tmp_path / file.name))
        target = folder / file.relative_to(source)
        for changed in damaged(file.read_text(encoding="utf-8")):
            target.write_text(changed, encoding="utf-8")
            try:
                samples = read(name, folder)
                samples.data.validate(full=True)
            except InputError as error:
                told = str(error)
            else:
                told = str(folder)
            assert str(folder) in told
            assert "\n" not in told


MOST_PATHS = 40


def damaged(text):
    """The text, broken in various ways: cut, emptied, and with single values replaced."""
    yield from ("", "[]", "{}", "null", "not JSON", text[: len(text) // 2], text + "}", "[" + text)
    parts = text.splitlines()
    whole = len(parts) == 1 or parts[0] == "{"
    record = json.loads(text if whole else parts[-1])
    found = list(paths(record))
    for path in found[:: 1 + len(found) // MOST_PATHS]:
        for value in (None, "x", 7, [], {"x": 1}, 1e400):
            changed = replaced(record, path, value)
            yield json.dumps(changed) if whole else "\n".join([*parts[:-1], json.dumps(changed)])


def paths(value, at=(), deep=6):
    if deep and isinstance(value, dict):
        for key, inner in value.items():
            yield (*at, key)
            yield from paths(inner, (*at, key), deep - 1)
    elif deep and isinstance(value, list) and value:
        yield (*at, 0)
        yield from paths(value[0], (*at, 0), deep - 1)


def replaced(value, path, new):
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


# --- promptfoo ------------------------------------------------------------------------------------


def promptfoo_export(side="before"):
    return json.loads((DATA / f"promptfoo/{side}/results.json").read_text(encoding="utf-8"))


def write_promptfoo(folder, export):
    (folder / "results.json").write_text(json.dumps(export), encoding="utf-8")
    return folder / "results.json"


def test_promptfoo_scores_are_those_of_the_export():
    records = promptfoo_export()["results"]["results"]
    found = rows("promptfoo", DATA / "promptfoo/before", metric="correct")
    assert len(found) == len(records) == 24
    assert [row["score"] for row in found] == [
        None if record["failureReason"] == 2 else float(record["success"]) for record in records
    ]


def test_promptfoo_errors_are_not_failures():
    """promptfoo counts both as failed, and writes a text to `error` for both."""
    records = promptfoo_export()["results"]["results"]
    assert {bool(record.get("error")) for record in records if not record["success"]} == {True}
    found = rows("promptfoo", DATA / "promptfoo/before")
    assert {row["status"] for row in found if row["score"] is None} == {"error"}
    errors = [row for row in found if row["status"] == "error"]
    assert len(errors) == 4 * 3  # with its two named assertions
    assert {row["status"] for row in found if row["score"] == 0} == {"ok"}


def test_promptfoo_named_assertions_are_metrics():
    found = rows("promptfoo", DATA / "promptfoo/after", metric="one word", text=True)
    assert {row["response"]: row["score"] for row in found if row["score"] is not None} == {
        **{"Rome": 1.0, "Kyoto": 1.0, "nairobi!": 0.0, "Lima": 1.0, "N'Djamena": 1.0}
    }


def test_promptfoo_repeats_prompts_models_and_settings():
    samples = read("promptfoo", DATA / "promptfoo/before")
    found = samples.data.to_pylist()
    assert {row["task"] for row in found} == {"plain", "short"}
    assert {row["repeat"] for row in found} == {0, 1}
    assert samples.models == ["tiny-before"]
    assert len({row["item"] for row in found}) == 6
    after = read("promptfoo", DATA / "promptfoo/after")
    assert after.settings["generation"] == "temperature=0.5"
    confounds = forgetmap.compare(samples, after, draws=200).confounds
    assert [confound.setting for confound in confounds] == ["generation"]
    assert samples.meta.version == after.meta.version == "0.121.20"


def test_promptfoo_jsonl_gives_the_same_items():
    columns = ("model", "task", "item", "metric", "score")
    one, other = (
        {tuple(row[column] for column in columns) for row in rows("promptfoo", DATA / path)}
        for path in ("promptfoo/before", "promptfoo/before.jsonl")
    )
    assert one == other
    assert promptfoo.sniff(DATA / "promptfoo/before.jsonl")


def test_promptfoo_flat_layout_and_older_records(tmp_path):
    """The Node package returns the inner object; before 2024-11 there was no failureReason."""
    summary = promptfoo_export()["results"]
    for record in summary["results"]:
        del record["failureReason"]
    flat = write_promptfoo(tmp_path, {**summary, "version": 2})
    assert promptfoo.sniff(flat)
    new = rows("promptfoo", DATA / "promptfoo/before", metric="correct")
    old = rows("promptfoo", flat, metric="correct")
    assert [row["score"] for row in old] == [row["score"] for row in new]
    assert [row["item"] for row in old] == [row["item"] for row in new]


def test_promptfoo_tests_with_the_same_variables_but_other_assertions_are_two_items(tmp_path):
    export = promptfoo_export()
    export["results"]["results"] = export["results"]["results"][:3]
    other = export["results"]["results"][2]
    other["testCase"]["assert"][0]["value"] = "Lutetia"
    found = rows("promptfoo", write_promptfoo(tmp_path, export), metric="correct", task="plain")
    assert len({row["item"] for row in found}) == 2
    assert {row["repeat"] for row in found} == {0}


def test_promptfoo_providers_of_one_file_are_models(tmp_path):
    export = promptfoo_export()
    export["results"]["results"] += promptfoo_export("after")["results"]["results"]
    samples = read("promptfoo", write_promptfoo(tmp_path, export))
    assert samples.models == ["tiny-after", "tiny-before"]
    sides = samples.only("tiny-before"), samples.only("tiny-after")
    assert forgetmap.compare(*sides, draws=200).total.n == TRANSITIONS["promptfoo"][0]


def test_promptfoo_long_prompts_stay_apart(tmp_path):
    export = promptfoo_export()
    for record in export["results"]["results"]:
        record["prompt"]["label"] = "Think step by step. " * 20 + str(record["promptIdx"])
    found = rows("promptfoo", write_promptfoo(tmp_path, export))
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
def test_promptfoo_refusals(change, says, tmp_path):
    export = promptfoo_export()
    change(export["results"])
    with pytest.raises(InputError, match=says):
        read("promptfoo", write_promptfoo(tmp_path, export))


# --- EvalPlus -------------------------------------------------------------------------------------


def evalplus_results(side="before"):
    (file,) = (DATA / "evalplus" / side).iterdir()
    return json.loads(file.read_text(encoding="utf-8"))


def write_evalplus(folder, results, name="m_eval_results.json"):
    (folder / name).write_text(json.dumps(results), encoding="utf-8")
    return folder / name


@pytest.mark.parametrize("side", ["before", "after"])
def test_evalplus_counts_are_those_that_evalplus_printed(side):
    """pass@1 as printed: base 0.8 and 0.8, plus 0.7 and 0.4."""
    for metric, printed in (("base", 0.8), ("plus", {"before": 0.7, "after": 0.4}[side])):
        scores = [row["score"] for row in rows("evalplus", DATA / "evalplus" / side, metric=metric)]
        assert sum(scores) / len(scores) == pytest.approx(printed)


def test_evalplus_completions_are_repeats_and_the_hash_is_the_task_version():
    samples = read("evalplus", DATA / "evalplus/before")
    found = samples.data.to_pylist()
    assert {row["repeat"] for row in found} == {0, 1}
    assert {row["item"] for row in found} == {None}
    assert {row["task"] for row in found} == {"humaneval"}
    assert samples.models == ["tiny-before"]
    assert samples.settings == {"task version": {"humaneval": evalplus_results()["hash"]}}


def test_evalplus_another_test_set_is_a_confound(tmp_path):
    other = write_evalplus(tmp_path, {**evalplus_results(), "hash": "0" * 32})
    sides = read("evalplus", DATA / "evalplus/before"), read("evalplus", other)
    result = forgetmap.compare(*sides, metric="plus", draws=200)
    assert [confound.setting for confound in result.confounds] == ["task version"]


def test_evalplus_plus_implies_base(tmp_path):
    results = evalplus_results()
    results["eval"] = {"Mbpp/2": [{"base_status": "fail", "plus_status": "pass"}]}
    found = rows("evalplus", write_evalplus(tmp_path, results))
    assert {row["metric"]: row["score"] for row in found} == {"base": 0.0, "plus": 0.0}
    assert {row["task"] for row in found} == {"mbpp"}


def test_evalplus_without_extra_tests_has_no_plus(tmp_path):
    results = evalplus_results()
    for completions in results["eval"].values():
        for completion in completions:
            completion["plus_status"] = None
    assert {row["metric"] for row in rows("evalplus", write_evalplus(tmp_path, results))} == {
        "base"
    }


def test_evalplus_layout_of_older_releases(tmp_path):
    results = evalplus_results()
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
        [[row[column] for column in columns] for row in rows("evalplus", path)]
        for path in (write_evalplus(tmp_path, results), DATA / "evalplus/before")
    )
    assert old == new


@pytest.mark.parametrize(
    ("name", "model"),
    [("m_eval_results.json", "m"), ("a.b.eval_results.json", "a.b"), ("eval_results.json", "dir")],
)
def test_evalplus_file_names(name, model, tmp_path):
    (tmp_path / "dir").mkdir()
    file = write_evalplus(tmp_path / "dir", evalplus_results(), name)
    assert evalplus.sniff(file)
    assert evalplus.sniff(tmp_path)
    assert read("evalplus", file).models == [model]


def test_evalplus_a_file_of_that_name_with_other_content_is_not_claimed(tmp_path):
    assert not evalplus.sniff(write_evalplus(tmp_path, {"accuracy": 0.5}))


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
def test_evalplus_refusals(task, says, tmp_path):
    results = {"date": "", "hash": "h", "eval": {"HumanEval/0": task}}
    with pytest.raises(InputError, match=says):
        read("evalplus", write_evalplus(tmp_path, results))


# --- OpenAI evals ---------------------------------------------------------------------------------


def events():
    return lines(DATA / "openai_evals/before/capitals.jsonl")


def test_openai_evals_scores_are_those_of_the_report():
    """The real file has its final report in the second line, before the events."""
    written = events()
    assert "spec" in written[0]
    assert "final_report" in written[1]
    found = rows("openai_evals", DATA / "openai_evals/before", task="capitals", text=True)
    scores = [row["score"] for row in found]
    assert sum(scores) / len(scores) == written[1]["final_report"]["accuracy"]
    assert {row["metric"] for row in found} == {"correct"}
    assert {row["target"] for row in found} == {"Paris", "Rome", "Tokyo", "Nairobi", "Lima"}
    assert all("capital of" in row["prompt"] and row["response"] for row in found)
    assert not read("openai_evals", DATA / "openai_evals/before").meta.warnings


def test_openai_evals_metrics_events_give_a_metric_for_each_number():
    found = rows("openai_evals", DATA / "openai_evals/before", task="words")
    assert {row["metric"] for row in found} == {"score", "length"}
    assert len(found) == 10


def test_openai_evals_settings():
    samples = read("openai_evals", DATA / "openai_evals/after")
    assert samples.models == ["tiny-after"]
    assert samples.settings["task version"]["capitals"] == "capitals.test.v1"


def test_openai_evals_the_last_of_several_events_counts(tmp_path):
    written = events()
    match = next(event for event in written if event.get("type") == "match")
    again = {**match, "data": {**match["data"], "correct": False}}
    path = write_lines(tmp_path / "log.jsonl", [*written, again])
    samples = read("openai_evals", path)
    scores = {row["item_ref"]: row["score"] for row in samples.data.to_pylist()}
    assert match["data"]["correct"]
    assert scores[match["sample_id"]] == 0
    assert len(samples) == 5
    assert any("1 samples were scored twice" in text for text in samples.meta.warnings)


def test_openai_evals_only_the_first_prompt_identifies_the_item(tmp_path):
    """A model-graded eval samples twice; the grader's prompt holds the answer."""
    written = events()
    sampling = next(event for event in written if event.get("type") == "sampling")
    graded = {**sampling, "data": {"prompt": "Is Nairobi right?", "sampled": ["Yes"]}}
    one = rows("openai_evals", write_lines(tmp_path / "log.jsonl", [*written, graded]), text=True)
    other = rows("openai_evals", DATA / "openai_evals/before", task="capitals", text=True)
    for column in ("item", "response"):
        assert [row[column] for row in one] == [row[column] for row in other]


def test_openai_evals_the_system_prompt_is_not_part_of_the_item(tmp_path):
    written = events()
    for event in written:
        if event.get("type") == "sampling":
            event["data"]["prompt"].insert(0, {"role": "system", "content": "Be brief."})
    found = rows("openai_evals", write_lines(tmp_path / "log.jsonl", written))
    other = rows("openai_evals", DATA / "openai_evals/before", task="capitals")
    assert [row["item"] for row in found] == [row["item"] for row in other]


@pytest.mark.parametrize(("kind", "status"), [("error", "error"), ("raw_sample", "unscored")])
def test_openai_evals_a_sample_without_score_is_not_wrong(kind, status, tmp_path):
    written = events()
    match = next(event for event in written if event.get("type") == "match")
    match |= {"type": kind, "data": {"type": "Timeout", "message": "no answer"}}
    found = rows("openai_evals", write_lines(tmp_path / "log.jsonl", written), score=None)
    assert [(row["item_ref"], row["status"]) for row in found] == [(match["sample_id"], status)]


def test_openai_evals_a_metric_that_is_no_number_is_unscored(tmp_path):
    written = events()
    written[3] |= {"type": "metrics", "data": {"correct": float("nan"), "note": "none"}}
    (row,) = rows("openai_evals", write_lines(tmp_path / "log.jsonl", written), score=None)
    assert (row["metric"], row["status"]) == ("correct", "unscored")


def test_openai_evals_without_prompts_items_are_known_by_their_id(tmp_path):
    kept = [event for event in events() if event.get("type") != "sampling"]
    found = rows("openai_evals", write_lines(tmp_path / "log.jsonl", kept))
    assert {row["item"] for row in found} == {None}
    assert all(row["item_ref"].startswith("capitals.test.") for row in found)


def test_openai_evals_runs_are_repeats_even_with_the_same_seed(tmp_path):
    write_lines(tmp_path / "one.jsonl", events())
    second = json.loads(json.dumps(events()).replace(events()[0]["spec"]["run_id"], "SECOND"))
    write_lines(tmp_path / "two.jsonl", second)
    assert {row["repeat"] for row in rows("openai_evals", tmp_path)} == {0, 1}


def test_openai_evals_a_killed_run_is_noted(tmp_path):
    written = [event for event in events() if "final_report" not in event]
    path = write_lines(tmp_path / "log.jsonl", written)
    path.write_text(path.read_text(encoding="utf-8")[:-30], encoding="utf-8")
    warnings = read("openai_evals", path).meta.warnings
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
def test_openai_evals_refusals(change, says, tmp_path):
    written = events()
    assert written[3]["type"] == "match"
    written[3] |= change
    with pytest.raises(InputError, match=says):
        read("openai_evals", write_lines(tmp_path / "log.jsonl", written))
    with pytest.raises(InputError, match=":1: not a run's spec"):
        read("openai_evals", write_lines(tmp_path / "x.jsonl", [{"spec": {"eval_name": "e"}}]))


# --- BFCL -----------------------------------------------------------------------------------------

SCORE = "score/tiny-{}/non_live/BFCL_v4_{}_score.json"
RESULT = "result/tiny-{}/non_live/BFCL_v4_{}_result.json"


@pytest.fixture
def bfcl_log(tmp_path):
    """A copy of the log before, to be changed."""
    return Path(shutil.copytree(DATA / "bfcl/before", tmp_path / "log"))


def test_bfcl_what_is_not_listed_has_passed():
    for side in ("before", "after"):
        for category in ("simple_python", "irrelevance"):
            summary, *failures = lines(DATA / "bfcl" / side / SCORE.format(side, category))
            found = rows("bfcl", DATA / "bfcl" / side, task=category)
            assert len(found) == summary["total_count"]
            wrong = {row["item_ref"] for row in found if row["score"] == 0}
            failed_calls = {row["item_ref"] for row in found if row["status"] == "error"}
            assert wrong | failed_calls >= {failure["id"] for failure in failures} >= wrong


def test_bfcl_a_call_that_failed_has_no_score_even_where_bfcl_counts_it_as_right():
    """In `irrelevance` no answer is no function call, and passes."""
    summary, *failures = lines(DATA / "bfcl/after" / SCORE.format("after", "irrelevance"))
    assert summary["correct_count"] == 2
    assert [failure["id"] for failure in failures] == ["irrelevance_0"]
    found = rows("bfcl", DATA / "bfcl/after", status="error")
    assert {row["item_ref"]: row["score"] for row in found} == {
        "simple_python_4": None,
        "irrelevance_2": None,
    }


def test_bfcl_texts_model_and_version():
    samples = read("bfcl", DATA / "bfcl/before", text=True)
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


@pytest.mark.parametrize("part", ["score", "score/tiny-before", SCORE])
def test_bfcl_any_part_of_the_score_tree_can_be_given(part):
    found = rows("bfcl", DATA / "bfcl/before" / part.format("before", "simple_python"))
    assert {row["model"] for row in found} == {"tiny-before"}
    assert len(found) == (5 if part == SCORE else 8)


def test_bfcl_without_the_result_file_it_is_refused(bfcl_log):
    shutil.rmtree(bfcl_log / "result")
    assert bfcl.sniff(bfcl_log)
    with pytest.raises(InputError, match="lists failures only, and its result file is not at"):
        read("bfcl", bfcl_log)


@pytest.mark.parametrize("with_prompt", [True, False])
def test_bfcl_failures_numbered_from_one(bfcl_log, with_prompt):
    """Older releases: `id` counts from 1, ids of items from 0; no folders for groups."""
    score = bfcl_log / SCORE.format("before", "simple_python")
    summary, failure = lines(score)
    failure |= {"id": 4, "prompt": failure["prompt"] if with_prompt else "Turn the volume to 7."}
    write_lines(score, [summary, failure])
    for tree in ("score", "result"):
        for file in (bfcl_log / tree / "tiny-before/non_live").iterdir():
            file.rename(file.parent.parent / file.name)
    old = rows("bfcl", bfcl_log)
    new = rows("bfcl", DATA / "bfcl/before")
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
def test_bfcl_counts_must_agree(changed, says, bfcl_log):
    score = bfcl_log / SCORE.format("before", "simple_python")
    summary, *failures = lines(score)
    write_lines(score, [{**summary, **changed}, *failures])
    with pytest.raises(InputError, match=says):
        read("bfcl", bfcl_log)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"id": "simple_python_9", "prompt": {}}, ":2: .*simple_python_9.* not in the result file"),
        ({"id": None, "prompt": None}, ":2: "),
        ({"valid": True}, ":2: .*not a failure"),
    ],
)
def test_bfcl_failures_must_be_known(changed, says, bfcl_log):
    score = bfcl_log / SCORE.format("before", "simple_python")
    summary, failure = lines(score)
    write_lines(score, [summary, {**failure, **changed}])
    with pytest.raises(InputError, match=says):
        read("bfcl", bfcl_log)


def test_bfcl_an_answer_that_stands_twice_is_refused(bfcl_log):
    result = bfcl_log / RESULT.format("before", "simple_python")
    answers = lines(result)
    write_lines(result, [*answers, answers[0]])
    with pytest.raises(InputError, match=r":6: .*stands twice"):
        read("bfcl", bfcl_log)


# --- verifiers ------------------------------------------------------------------------------------


@pytest.fixture
def rollouts(tmp_path):
    """A copy of the log before, to be changed; the folder of its one run."""
    shutil.copytree(DATA / "verifiers/before", tmp_path / "log")
    return tmp_path / "log/sums--tiny-before/1a2b3c4d"


def test_verifiers_rewards_are_read_as_they_are():
    (file,) = (DATA / "verifiers/before").rglob("results.jsonl")
    written = lines(file)
    found = rows("verifiers", DATA / "verifiers/before")
    assert [row["score"] for row in found] == [
        None if one["error"] else one["reward"] for one in written
    ]
    assert {0.5, 0.25} < {row["score"] for row in found}
    assert {row["repeat"] for row in found} == {0, 1}
    assert len({row["item"] for row in found}) == 5


def test_verifiers_an_error_is_no_reward_of_zero():
    (row,) = rows("verifiers", DATA / "verifiers/before", status="error")
    assert (row["item_ref"], row["repeat"], row["score"]) == ("4", 1, None)
    (row,) = rows("verifiers", DATA / "verifiers/after", status="truncated")
    assert (row["item_ref"], row["score"]) == ("4", 0.0)


def test_verifiers_settings_and_what_is_left_out():
    samples = read("verifiers", DATA / "verifiers/before")
    assert samples.models == ["tiny-before"]
    assert samples.settings["generation"] == {"sums": {"temperature": 0.7, "max_tokens": 64}}
    assert samples.settings["task version"] == {"sums": "0.1.0"}
    after = read("verifiers", DATA / "verifiers/after")
    confounds = forgetmap.compare(samples, after, draws=200).confounds
    assert [confound.setting for confound in confounds] == ["generation"]
    (warning,) = samples.meta.warnings
    assert "correct_answer, num_turns" in warning


def test_verifiers_without_metadata_the_folder_names_model_and_task(rollouts):
    (rollouts / "metadata.json").unlink()
    samples = read("verifiers", rollouts.parent)
    assert samples.models == ["tiny-before"]
    assert {row["task"] for row in samples.data.to_pylist()} == {"sums"}
    assert samples.settings == {}


def test_verifiers_runs_add_repeats_and_tasks_stay_apart(rollouts):
    shutil.copytree(rollouts, rollouts.with_name("second"))
    assert {row["repeat"] for row in rows("verifiers", rollouts.parent)} == {0, 1, 2, 3}
    written = lines(rollouts / "results.jsonl")
    write_lines(rollouts / "results.jsonl", [{**one, "task": "easy"} for one in written])
    assert {row["task"] for row in rows("verifiers", rollouts.parent)} == {"easy", "sums"}


def test_verifiers_a_failed_rollout_without_prompt_is_still_its_item(rollouts):
    written = lines(rollouts / "results.jsonl")
    (failed,) = (one for one in written if one["error"])
    failed["prompt"] = None
    write_lines(rollouts / "results.jsonl", written)
    (row,) = rows("verifiers", rollouts, status="error")
    other = [one for one in rows("verifiers", rollouts) if one["item_ref"] == row["item_ref"]]
    assert {one["item"] for one in other} == {row["item"]}


def test_verifiers_the_system_prompt_is_not_part_of_the_item(rollouts):
    written = lines(rollouts / "results.jsonl")
    for one in written:
        one["prompt"][0]["content"] = "Think first."
    write_lines(rollouts / "results.jsonl", written)
    assert [row["item"] for row in rows("verifiers", rollouts)] == [
        row["item"] for row in rows("verifiers", DATA / "verifiers/before")
    ]


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
def test_verifiers_refusals(change, says, rollouts):
    written = lines(rollouts / "results.jsonl")
    written[9] |= change
    write_lines(rollouts / "results.jsonl", written)
    with pytest.raises(InputError, match=says):
        read("verifiers", rollouts)


def test_verifiers_a_reward_that_is_missing_is_unscored(rollouts):
    written = lines(rollouts / "results.jsonl")
    written[3]["reward"] = None
    write_lines(rollouts / "results.jsonl", written)
    assert len(rows("verifiers", rollouts, status="unscored")) == 1


# --- NeMo Evaluator -------------------------------------------------------------------------------


@pytest.fixture
def nemo_log(tmp_path):
    """A copy of the log before, to be changed."""
    return Path(shutil.copytree(DATA / "nemo/before", tmp_path / "log"))


@pytest.mark.parametrize("side", ["before", "after"])
def test_nemo_problems_and_repeats_are_those_of_the_file(side):
    written = {
        (str(one["problem_idx"]), one["repeat"]): one
        for one in lines(DATA / "nemo" / side / "results.jsonl")
    }
    found = rows("nemo", DATA / "nemo" / side)
    assert {(row["item_ref"], row["repeat"]) for row in found} == written.keys()
    for row in found:
        one = written[row["item_ref"], row["repeat"]]
        failed = "error_category" in one["scoring_details"]
        assert row["score"] == (None if failed else one["reward"])
        assert row["status"] == ("error" if failed else "ok")
        assert row["item"] is None


def test_nemo_pairs_by_index_and_says_so():
    sides = (read("nemo", DATA / "nemo" / side) for side in ("before", "after"))
    result = forgetmap.compare(*sides, draws=200)
    assert result.coverage.identity == "index"
    assert [confound.setting for confound in result.confounds] == ["generation"]


def test_nemo_model_task_and_version():
    samples = read("nemo", DATA / "nemo/after")
    assert samples.models == ["tiny-after"]
    assert samples.meta.version == "0.4.0"
    assert samples.settings["generation"] == {"sums": {"temperature": 0.6, "max_tokens": 64}}
    assert {row["task"] for row in samples.data.to_pylist()} == {"sums"}


def test_nemo_either_file_can_be_given():
    for file in (DATA / "nemo/before").iterdir():
        assert nemo.sniff(file)
        assert len(read("nemo", file)) == 10


def test_nemo_the_newest_bundle_describes_the_results(nemo_log):
    (bundle,) = nemo_log.glob("eval-*.json")
    newer = json.loads(bundle.read_text(encoding="utf-8"))
    newer["config"]["model"] = "newer"
    newer["run_id"] = "eval-20270102T030405Z-sums"
    (nemo_log / f"{newer['run_id']}.json").write_text(json.dumps(newer), encoding="utf-8")
    assert read("nemo", nemo_log).models == ["newer"]


def test_nemo_further_scorers_and_missing_results_are_told(nemo_log):
    written = lines(nemo_log / "results.jsonl")
    written[0]["scorer_rewards"] = {"scorer:judge": 1.0}
    write_lines(nemo_log / "results.jsonl", written[:8])
    warnings = read("nemo", nemo_log).meta.warnings
    assert any("scorer:judge" in text for text in warnings)
    assert any("counted 10 results, 8 are here" in text for text in warnings)


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
def test_nemo_refusals(change, says, nemo_log):
    written = lines(nemo_log / "results.jsonl")
    written[9] |= change
    write_lines(nemo_log / "results.jsonl", written)
    with pytest.raises(InputError, match=says):
        read("nemo", nemo_log)


def test_nemo_a_folder_without_results_is_not_claimed(nemo_log):
    (nemo_log / "results.jsonl").unlink()
    assert not nemo.sniff(nemo_log)
