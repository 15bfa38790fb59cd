"""Every Eval Ever: hand-made logs after its schema, and real logs of other harnesses through it."""

from __future__ import annotations

import json
import re

import pytest

from forgetmap.api import compare
from forgetmap.base.errors import InputError
from forgetmap.readers import every_eval_ever
from forgetmap.readers.framework import ReadOptions
from forgetmap.readers.registry import read
from forgetmap.samples.identity import content_hash
from forgetmap.samples.table import SCHEMA, Samples
from places import DATA

LOGS = DATA / "every_eval_ever"
REAL = [
    *("lm_eval/0.4.13/before", "lm_eval/0.4.13/after", "lm_eval_sampled/before"),
    *("lighteval/0.10.0/before", "lighteval/0.13.0/before"),
]


def load(path, text=True):
    return every_eval_ever.read(path, ReadOptions(text=text))


def rows(path, text=True, **wanted):
    found = load(path, text).data.to_pylist()
    return [row for row in found if all(row[name] == value for name, value in wanted.items())]


def record(**changes):
    """One line, as the schema wants it."""
    return {
        "schema_version": "0.3.0",
        "evaluation_id": "e",
        "model_id": "a/m",
        "evaluation_name": "t",
        "evaluation_result_id": "t/acc",
        "sample_id": "1",
        "interaction_type": "single_turn",
        "input": {"raw": "2+2?", "reference": ["4"]},
        "output": {"raw": ["4"]},
        "answer_attribution": [],
        "evaluation": {"score": 1.0, "is_correct": True},
    } | changes


def aggregate(*results, **changes):
    return {
        "schema_version": "0.3.0",
        "evaluation_id": "e",
        "retrieved_timestamp": "1",
        "source_metadata": {},
        "eval_library": {"name": "lib", "version": "1"},
        "model_info": {"id": "a/m"},
        "evaluation_results": list(results),
    } | changes


def result(key="t/acc", task="t", **config):
    return {
        "evaluation_name": task,
        "metric_config": {"lower_is_better": False} | config,
        **({"evaluation_result_id": key} if key else {}),
    }


def log(folder, *records, about=None, name="x"):
    folder.mkdir(exist_ok=True, parents=True)
    file = folder / f"{name}_samples.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in records))
    if about is not None:
        (folder / f"{name}.json").write_text(json.dumps(about))
    return file


def test_scores_items_options_and_texts():
    found = rows(LOGS / "before", task="capitals")
    assert [row["score"] for row in found] == [1, 1, 1, 0, 1, 0]
    assert {(row["metric"], row["k"], row["repeat"]) for row in found} == {("accuracy", 4, 0)}
    assert found[0]["item_ref"] == "cap_0"
    assert found[0]["item"] == content_hash(
        "What is the capital of Peru?", ["Lima", "Quito", "Bogota", "La Paz"], ["Lima"]
    )
    assert [found[3][name] for name in ("prompt", "target", "answer", "response")] == [
        *("What is the capital of Fiji?", "Suva", "Apia", "Apia")
    ]
    assert {row["prompt"] for row in rows(LOGS / "before", text=False)} == {None}


def test_epochs_are_repeats():
    found = rows(LOGS / "before", task="sums", item_ref="sum_2")
    assert [(row["repeat"], row["score"]) for row in found] == [(0, 0.0), (1, 1.0)]


def test_less_is_better_is_left_out():
    samples = load(LOGS / "before")
    assert "edit_distance" not in samples.data["metric"].to_pylist()
    assert any("edit_distance" in text for text in samples.meta.warnings)


def test_settings_come_from_the_aggregate():
    samples = load(LOGS / "before")
    assert (samples.meta.harness, samples.meta.version) == ("hand-made", "1.0")
    assert samples.settings["few-shot examples"] == {"capitals": "5", "sums": "5"}
    assert samples.settings["generation"]["sums"] == {"temperature": 0.0, "max_tokens": 32}


def test_compare():
    result = compare(load(LOGS / "before"), load(LOGS / "after"), draws=200)
    counts = result.tasks["capitals"].counts
    assert (counts.n11, counts.n10, counts.n01, counts.n00) == (2, 2, 1, 1)
    assert {confound.setting for confound in result.confounds} == {"few-shot examples"}
    assert result.coverage.identity == "content"


@pytest.mark.parametrize("text", [True, False])
@pytest.mark.parametrize("source", REAL)
def test_round_trip_of_real_logs(source, text, tmp_path):
    """Every column but the place comes back, and so do the settings."""
    samples = read(DATA / source, ReadOptions(text=text))
    written = every_eval_ever.write(samples, tmp_path / "out", now=1.0)
    again = load(tmp_path / "out", text)
    columns = [name for name in SCHEMA.names if name != "source"]
    assert again.data.select(columns).to_pylist() == samples.data.select(columns).to_pylist()
    assert again.meta.settings == samples.meta.settings
    assert (again.meta.harness, again.meta.version) == (samples.meta.harness, samples.meta.version)
    assert every_eval_ever.write(samples, tmp_path / "out", now=1.0) == written
    assert len(load(tmp_path / "out")) == len(samples)


def test_what_is_written_keeps_to_the_schema(tmp_path):
    """Names, types and links that the public schema 0.3.0 demands."""
    samples = read(DATA / "lm_eval/0.4.13/before", ReadOptions(text=True))
    (file,) = every_eval_ever.write(samples, tmp_path)
    about = json.loads(file.read_text())
    place = about["detailed_evaluation_results"]
    assert re.fullmatch(
        r"data/[^/]+/[^/]+/[^/]+/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-"
        r"[0-9a-f]{12}_samples\.jsonl",
        place["file_path"],
    )
    lines = [json.loads(line) for line in (tmp_path / place["file_path"]).read_text().splitlines()]
    assert place["total_rows"] == len(lines) == len(samples)
    for line in lines:
        assert line["evaluation_id"] == about["evaluation_id"]
        assert line["model_id"] == about["model_info"]["id"]
        assert isinstance(line["evaluation"]["score"], float)
        assert isinstance(line["evaluation"]["is_correct"], bool)
        assert all(isinstance(value, str) for value in line["metadata"].values())
    known = {found["evaluation_result_id"] for found in about["evaluation_results"]}
    assert {line["evaluation_result_id"] for line in lines} == known


def test_failures_stay_failures(tmp_path):
    samples = Samples.from_rows(
        [
            {"model": "org/m", "task": "t", "item": 1, "score": 1.0},
            {"model": "org/m", "task": "t", "item": 2, "status": "error"},
            {"model": "org/m", "task": "t", "item_ref": "no content", "status": "unscored"},
            {"model": "other", "task": "never", "item": 2**64 - 1, "metric": "em", "repeat": 2},
        ]
    )
    assert len(every_eval_ever.write(samples, tmp_path)) == 2
    found = rows(tmp_path)
    assert [(row["score"], row["status"]) for row in found] == [
        *[(1.0, "ok"), (None, "error"), (None, "unscored"), (None, "unscored")]
    ]
    assert [row["item"] for row in found] == [1, 2, None, 2**64 - 1]
    assert [(row["metric"], row["repeat"]) for row in found][3] == ("em", 2)


def test_names_of_models_make_no_paths(tmp_path):
    samples = Samples.from_rows([{"model": "../../up/..", "item": 1, "score": 1.0}])
    (file,) = every_eval_ever.write(samples, tmp_path / "out")
    assert file.resolve().is_relative_to((tmp_path / "out").resolve())
    assert load(tmp_path / "out").models == ["../../up/.."]


def test_a_file_is_no_folder_to_write_to(tmp_path):
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "under"):
        with pytest.raises(InputError):
            every_eval_ever.write(Samples.from_rows([{"item": 1, "score": 1.0}]), place)


def test_what_its_own_converter_writes_gives_the_same_map():
    """Real lm-eval logs through the converter of every_eval_ever, and read as they are."""
    converted = compare(load(LOGS / "converted/before"), load(LOGS / "converted/after"), draws=200)
    direct = compare(DATA / "lm_eval/0.4.13/before", DATA / "lm_eval/0.4.13/after", draws=200)
    assert set(converted.tasks) == {"fm_capitals", "fm_sums"}
    for task, found in converted.tasks.items():
        assert found.counts == direct.tasks[task].counts
    assert converted.settings.metric["fm_sums"] == "exact_match,flexible-extract"
    assert (converted.coverage.identity, converted.coverage.matched) == ("content", 28)


TRAPS = {
    "an error has no score": (record(error="timeout"), {"score": None, "status": "error"}),
    "a graded score is no pick": (
        record(
            evaluation={"score": 0.4, "is_correct": False},
            input={"raw": "q", "reference": ["a"], "choices": ["a", "b"]},
        ),
        {"score": 0.4, "k": None},
    ),
    "right answers are no choices": (
        record(input={"raw": "q", "reference": ["a", "b"], "choices": ["a", "b"]}),
        {"k": None, "target": '["a","b"]'},
    ),
    "no result to point at: a filler": (
        {key: value for key, value in record().items() if key != "evaluation_result_id"},
        {"score": None, "status": "unscored"},
    ),
    "the document's hash before the prompt": (
        record(metadata={"doc_hash": "d", "target_hash": "t"}),
        {"item": content_hash("d", "t")},
    ),
    "no text, but a hash": (
        record(input={"raw": "", "reference": []}, sample_hash="h"),
        {"item": content_hash("h"), "target": None},
    ),
    "no content at all": (record(input={"raw": "", "reference": []}), {"item": None}),
    "messages instead of an output": (
        record(output=None, messages=[{"turn_idx": 0, "role": "assistant", "content": "hi"}]),
        {"response": "hi"},
    ),
}


@pytest.mark.parametrize(("line", "expected"), TRAPS.values(), ids=TRAPS)
def test_traps(line, expected, tmp_path):
    (row,) = rows(log(tmp_path, line, about=aggregate(result(metric_name="acc"))))
    assert {name: row[name] for name in expected} == expected


def test_metrics_get_the_name_that_tells_them_apart(tmp_path):
    results = (result("t/1", metric_name="em"), result("t/2", metric_name="em"))
    lines = (record(evaluation_result_id="t/1"), record(evaluation_result_id="t/2"))
    assert [row["metric"] for row in rows(log(tmp_path, *lines, about=aggregate(*results)))] == [
        *("t/1", "t/2")
    ]
    old = {key: value for key, value in record().items() if key != "evaluation_result_id"}
    about = aggregate(result(None, metric_name="em"))
    assert [(row["metric"], row["score"]) for row in rows(log(tmp_path, old, about=about))] == [
        ("em", 1.0)
    ]


def test_the_same_sample_again_is_a_repeat(tmp_path):
    log(tmp_path, record(), record(sample_id="other id, same content"), name="a")
    log(tmp_path, record(), name="b")
    assert [row["repeat"] for row in rows(tmp_path)] == [0, 1, 1_000_000]


def test_without_the_aggregate_nothing_is_known_of_the_settings(tmp_path):
    samples = load(log(tmp_path, record()))
    assert samples.settings == {}
    assert any("no aggregate" in text for text in samples.meta.warnings)
    assert samples.data["metric"].to_pylist() == ["t/acc"]


def test_totals_without_samples(tmp_path):
    name = "5e1f4c1e-0b8e-4f6b-9d3a-2f6c1a7b9e01.json"
    (tmp_path / name).write_text(json.dumps(aggregate()))
    for path in (tmp_path, tmp_path / name):
        assert every_eval_ever.sniff(path)
        with pytest.raises(InputError, match="totals only"):
            load(path)
    log(tmp_path, record())
    assert any("1 evaluations come without" in text for text in load(tmp_path).meta.warnings)


@pytest.mark.parametrize(
    ("version", "known"),
    [("0.2.1", True), ("0.3.0", True), ("0.9.0", True), ("1.0.0", False), ("x", False), (3, False)],
)
def test_versions(version, known, tmp_path):
    file = log(tmp_path, record(schema_version=version))
    if known:
        warned = any("newer than 0.3.0" in text for text in load(file).meta.warnings)
        assert warned == (version == "0.9.0")
        return
    with pytest.raises(InputError, match="schema version"):
        load(file)
    file = log(tmp_path, record(), about=aggregate(schema_version=version))
    with pytest.raises(InputError, match="schema version"):
        load(file)


BAD = {
    "no score": record(evaluation={"is_correct": True}),
    "text as score": record(evaluation={"score": "1", "is_correct": True}),
    "infinite": record(evaluation={"score": 1e999, "is_correct": True}),
    "is_correct a number": record(evaluation={"score": 1, "is_correct": 1}),
    "evaluation a list": record(evaluation=[1]),
    "input a text": record(input="2+2?"),
    "reference a number": record(input={"raw": "q", "reference": 4}),
    "sample_id a number": record(sample_id=1),
    "model_id none": record(model_id=None),
    "epoch 0": record(metadata={"epoch": "0"}),
    "epoch no number": record(metadata={"epoch": "first"}),
    "epoch without end": record(metadata={"epoch": 1e999}),
    "of another aggregate": record(evaluation_id="f"),
    "carried nonsense": record(metadata={"forgetmap": "{}"}),
    "carried no JSON": record(metadata={"forgetmap": "x"}),
    "carried repeat": record(
        metadata={"forgetmap": '{"repeat": -1, "status": "ok", "metric": "m"}'}
    ),
    "carried item": record(
        metadata={"forgetmap": '{"repeat": 0, "status": "ok", "metric": "m", "item": "zz"}'}
    ),
    "metadata a list": record(metadata=[1]),
}


@pytest.mark.parametrize("line", BAD.values(), ids=BAD)
def test_bad_lines_are_named(line, tmp_path):
    file = log(tmp_path, record(), line, record(), about=aggregate(result()))
    with pytest.raises(InputError, match=r"samples\.jsonl:2"):
        load(file)


@pytest.mark.parametrize(
    "about",
    [
        *([], {}, aggregate({}), aggregate(evaluation_results=None)),
        *(aggregate(evaluation_results=[1]), aggregate(eval_library=[1])),
        aggregate(eval_library={"additional_details": {"forgetmap_settings": "["}}),
    ],
)
def test_bad_aggregates_are_named(about, tmp_path):
    with pytest.raises(InputError, match=r"x\.json"):
        load(log(tmp_path, record(), about=about))


@pytest.mark.parametrize("content", ["", "nonsense", "[1]", '{"doc_id": 0, "resps": []}', "\x00"])
def test_other_files_are_not_claimed(content, tmp_path):
    for name in ("some.jsonl", "x_samples.jsonl", "x.json"):
        (tmp_path / name).write_text(content)
        assert not every_eval_ever.sniff(tmp_path / name)
    assert not every_eval_ever.sniff(tmp_path)


def test_who_claims_what():
    for side in ("before", "after", "converted"):
        assert every_eval_ever.sniff(LOGS / side)
        assert all(every_eval_ever.sniff(file) for file in (LOGS / side).rglob("*.json*"))
    for other in ("lm_eval/0.4.13/before", "lighteval/0.13.0/before"):
        files = [file for file in (DATA / other).rglob("*") if file.is_file()]
        assert files
        assert not any(every_eval_ever.sniff(path) for path in (DATA / other, *files))
