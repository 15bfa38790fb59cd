"""What every reader promises, on the golden logs of all harnesses and layouts."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import forgetmap
import golden
from forgetmap.readers import captrack, parquet, table
from forgetmap.readers.registry import find_reader
from fuzzing import assert_one_line, assert_valid
from golden import LOGS, write_files
from malformed import RAW, edit
from places import DATA

HARNESSES = {log.reader.__name__: log.reader for log in LOGS.values()}
for last in (parquet, table):
    del HARNESSES[last.__name__]
OTHERS = {
    "generic.jsonl": '{"question": "2+2?", "correct": true, "id": 3, "model": "m"}\n',
    "results.jsonl": '{"question": "2+2?", "reward": 1, "answer": "4"}\n',
    "generic.csv": "question,correct\n2+2?,1\n",
    "results.json": '{"results": {"arc": {"acc,none": 0.5}}, "config": {"model": "hf"}}',
    "numbers.json": "[1, 2, 3]",
    "empty.json": "",
    "empty.jsonl": "",
    "noise.jsonl": "\x00\x01 not JSON",
}


@pytest.fixture(params=LOGS)
def log(request):
    if request.param == "inspect_zstd" and importlib.util.find_spec("zstandard") is None:
        pytest.skip("the package zstandard is not installed")
    return LOGS[request.param]


@pytest.fixture(params=["before", "after"])
def path(request, log, tmp_path):
    return log.write(request.param, tmp_path)


def test_a_log_is_claimed_by_its_reader_alone(log, path):
    assert find_reader(path).reader is log.reader
    claimed = [reader for reader in HARNESSES.values() if reader.sniff(path)]
    assert claimed == ([] if log.reader in (parquet, table) else [log.reader])


@pytest.mark.parametrize("name", HARNESSES)
def test_other_formats_are_not_claimed(name, tmp_path):
    for file, text in OTHERS.items():
        path = tmp_path / Path(file).stem / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        assert not HARNESSES[name].sniff(path), file
        assert not HARNESSES[name].sniff(path.parent), file


def test_rows_are_whole_and_without_text(log, path):
    ticks: list[int] = []
    samples = golden.read(log.reader, path, ticks=ticks)
    stored = log.reader is parquet  # opened as it is; its rows are read later
    assert_valid(samples, text=stored)
    assert stored or sum(ticks) > 0
    rows = [row for batch in samples.to_batches() for row in batch.to_pylist()]
    keys = ("model", "task", "item", "item_ref", "repeat", "metric")
    assert len({tuple(row[key] for key in keys) for row in rows}) == len(rows)
    assert all(row["item_ref"] and row["source"] for row in rows)
    assert any(row["score"] is not None for row in rows)


def test_text_is_loaded_on_request(log, path):
    samples = golden.read(log.reader, path, text=True)
    rows = [row for batch in samples.to_batches() for row in batch.to_pylist()]
    assert any(row["response"] or row["answer"] for row in rows)


DEEP_PLACES = [  # the log, a file of it, and a value that its reader uses
    ("lm_eval", "*/samples_fm_capitals*", (0, "doc")),
    ("lm_eval_old", "*/results_*", ("model_name",)),
    ("lm_eval_list", "*/samples_fm_capitals*", (0, "doc")),
    ("lighteval_flat", "*results_*.json", ("config_general", "model_name")),
    ("lighteval_struct", "*results_*.json", ("config_general", "model_name")),
    ("inspect_eval", "*fm_instructions*", ("header.json", "eval", "model")),
    ("inspect_eval", "*fm_instructions*", ("samples/ins-00_epoch_1.json", "target")),
    ("inspect_json", "*.json", ("samples", 0, "target")),
    ("helm", "*/capitals/scenario_state.json", ("request_states", 0, "instance", "input", "text")),
    ("helm", "*/capitals/per_instance_stats.json", (0, "stats", 0, "name", "split")),
    ("opencompass", "*/results/*/sums.json", ("details", 0, "answer", 0)),
    ("every_eval_ever", "*.jsonl", (0, "input", "choices")),
    ("every_eval_ever_converted", "*/fm_capitals/*.jsonl", (0, "evaluation_name")),
    ("promptfoo", "*.json", ("results", "results", 0, "vars", "country")),
    ("promptfoo_flat", "*.json", ("results", 0, "vars", "country")),
    ("promptfoo_jsonl", "*.jsonl", (0, "vars", "country")),
    ("evalplus", "*.json", ("eval", "HumanEval/0", 0, "solution")),
    ("openai_evals", "*/capitals.jsonl", (2, "data", "prompt", 0, "content")),
    ("bfcl", "*/*_irrelevance_result.json", (0, "result")),
    ("bfcl_2024", "*_simple_result.json", (0, "result")),
    ("verifiers", "*/results.jsonl", (1, "prompt", 1, "content")),
    ("nemo", "*/results.jsonl", (0, "model_response")),
    ("ifeval", "*_strict.jsonl", (1, "prompt")),
    ("humaneval", "*", (1, "completion")),
    ("swebench", "*", ("resolved_ids", 0)),
    ("swebench_tree", "*11001/report.json", ("django__django-11001", "resolved")),
    ("livecodebench", "*", (0, "question_content")),
    ("tau_bench", "*", (0, "info", "task", "actions")),
    ("bigcodebench", "*_eval_results.json", ("eval", "BigCodeBench/0", 0, "solution")),
    ("nemo_skills", "*rs0.jsonl", (1, "expected_answer")),
    ("math_harness", "*.jsonl", (1, "gt")),
    ("alpaca_eval", "*.json", (0, "instruction")),
    ("lmms_eval", "*_tiny_signs.jsonl", (1, "target")),
    ("olmes", "*_mc-predictions.jsonl", (1, "label")),
    ("evalscope", "*.jsonl", (1, "target")),
    ("evalscope_old", "*.jsonl", (1, "raw_input", "question")),
    ("terminal_bench", "*results.json", ("results", 0, "instruction")),
    ("verl", "*", (1, "gts")),
    ("table_jsonl", "*", (0, "choices")),
]


@pytest.mark.parametrize(("name", "file", "place"), DEEP_PLACES)
@pytest.mark.parametrize("levels", [1_000, 100_000])
def test_a_value_nested_too_deeply_is_one_clear_line(
    name, file, place, levels, tmp_path, monkeypatch
):
    """Parsers give up at one depth, hashes and texts at others: nothing may be a RecursionError."""
    monkeypatch.setitem(RAW, "@deep@", "[" * levels + "]" * levels)
    files = dict(LOGS[name].load("before"))
    edit(files, file, place, lambda _value, _chance: "@deep@")
    with pytest.raises(forgetmap.InputError, match="nested too deeply") as error:
        forgetmap.read(write_files(files, tmp_path), forgetmap.ReadOptions(text=True))
    assert_one_line(error.value, tmp_path)


@pytest.mark.parametrize("levels", [300, 1_000, 100_000])
def test_a_response_nested_too_deeply_is_one_clear_line(levels, tmp_path):
    log = tmp_path / "gsm8k.jsonl"
    deep = "[" * levels + "]" * levels
    log.write_text(f'{{"prompt": {deep}, "gold": 4, "outputs": "4"}}\n' * 2)
    with pytest.raises(forgetmap.InputError, match=r"gsm8k\.jsonl.*1: ") as error:
        captrack.read(log, forgetmap.ReadOptions(text=True))
    assert_one_line(error.value, tmp_path)


def test_every_reader_of_json_meets_deep_values():
    no_json = {"table_csv", "table_parquet", "samples_parquet", "lighteval_2023"}
    packed = {"inspect_zstd"}  # only the packing differs from inspect_eval
    assert {name for name, _, _ in DEEP_PLACES} == LOGS.keys() - no_json - packed


_FIRST = "samples/ins-00_epoch_1.json"
_STATE = ("request_states", 0, "instance")
_DOC, _TEST = (0, "doc"), ("results", "results", 0)
CONTENT = [  # the log, the file, and where the content of its first item stands
    *(("lm_eval", "*/samples_fm_capitals*", (*_DOC, name)) for name in ("question", "choices")),
    ("lm_eval", "*/samples_fm_capitals*", (0, "target")),
    ("lm_eval_old", "*/samples_fm_capitals*", (*_DOC, "question")),
    ("lm_eval_list", "*/samples_fm_capitals*", (0, "doc", "question")),
    *(("lighteval_2023", "*", (0, name)) for name in ("example", "choices")),
    *(("lighteval_flat", "*fm_capitals*", (0, name)) for name in ("example", "choices")),
    *(("lighteval_struct", "*fm_capitals*", (*_DOC, name)) for name in ("query", "choices")),
    ("lighteval_struct", "*fm_capitals*", (*_DOC, "gold_index")),
    *(("inspect_eval", "*fm_instructions*", (_FIRST, name)) for name in ("input", "target")),
    ("inspect_eval", "*fm_words*", (_FIRST, "input", 1, "content")),
    *(("inspect_json", "*.json", ("samples", 0, name)) for name in ("input", "target")),
    ("helm", "*/capitals/scenario_state.json", (*_STATE, "input", "text")),
    ("helm", "*/capitals/scenario_state.json", (*_STATE, "references", 1, "output", "text")),
    ("helm", "*/capitals/scenario_state.json", (*_STATE, "references", 0, "tags", 0)),
    ("opencompass", "*/predictions/*/sums_0.json", ("0", "origin_prompt")),
    ("opencompass", "*/results/*/sums.json", ("details", 0, "answer", 0)),
    *(("every_eval_ever", "*.jsonl", (0, "input", name)) for name in ("raw", "reference")),
    ("every_eval_ever", "*.jsonl", (0, "input", "choices")),
    ("every_eval_ever_converted", "*/fm_capitals/*.jsonl", (0, "metadata", "doc_hash")),
    ("promptfoo", "*.json", (*_TEST, "vars", "country")),
    ("promptfoo", "*.json", (*_TEST, "testCase", "assert", 0, "value")),
    ("promptfoo_jsonl", "*.jsonl", (0, "vars", "country")),
    ("openai_evals", "*/capitals.jsonl", (2, "data", "prompt", 0, "content")),
    ("openai_evals", "*/capitals.jsonl", (3, "data", "expected")),
    ("verifiers", "*/results.jsonl", (0, "prompt", 1, "content")),
    ("verifiers", "*/results.jsonl", (0, "answer")),
    ("ifeval", "*_strict.jsonl", (0, "prompt")),
    *(("livecodebench", "*", (0, name)) for name in ("question_content", "starter_code")),
    *(("tau_bench", "*", (0, "info", "task", name)) for name in ("instruction", "actions")),
    *(("nemo_skills", "*rs0.jsonl", (0, name)) for name in ("problem", "expected_answer")),
    *(("math_harness", "*.jsonl", (0, name)) for name in ("question", "gt")),
    *(("alpaca_eval", "*.json", (0, name)) for name in ("instruction", "dataset")),
    ("lmms_eval", "*_tiny_signs.jsonl", (0, "target")),
    *(("olmes", "*_gen-requests.jsonl", (0, "doc", name)) for name in ("query", "answer")),
    *(("evalscope", "*.jsonl", place) for place in ((0, "messages", 0, "content"), (0, "target"))),
    ("evalscope_old", "*.jsonl", (0, "raw_input", "question")),
    ("terminal_bench", "*results.json", ("results", 0, "instruction")),
    *(("verl", "*", (0, name)) for name in ("input", "gts")),
    *((f"table_{kind}", "*", (0, name)) for kind in ("csv", "jsonl", "parquet")
      for name in ("question", "choices", "target")),
]  # fmt: skip


def _changed(value, _chance):
    if isinstance(value, str):
        return f"{value} indeed"
    return value + 1 if isinstance(value, int) else [*value, "indeed"]


@pytest.mark.parametrize(("name", "file", "place"), CONTENT)
def test_another_content_is_another_item(name, file, place, tmp_path):
    """Question, options and answer make the item: one that differs must never be paired."""
    log = LOGS[name]
    good = _items(log.write("before", tmp_path / "good"))
    files = dict(log.load("before"))
    edit(files, file, place, _changed)
    changed = _items(write_files(files, tmp_path / "changed"))
    assert len(changed - good) == 1
    assert len(good - changed) <= 1  # none, where other records tell of the old item


def _items(path):
    rows = forgetmap.read(path).data.to_pylist()
    assert None not in {row["item"] for row in rows}
    return {(row["task"], row["item"]) for row in rows}


CHOSEN = {
    "evalplus": "plus",
    "nemo_skills": "symbolic_correct",
    "lmms_eval": {"tiny_pope": "pope_accuracy"},
    "inspect_eval": {"fm_words": "includes", "fm_instructions": "checks/has_word"},
    "inspect_json": "checks/has_word",
}
"""The metric, where a log has several of equal standing."""
TRANSITIONS = {
    "promptfoo": (8, {"n11": 2, "n10": 4, "n01": 2, "n00": 0}),
    "promptfoo_flat": (8, {"n11": 2, "n10": 4, "n01": 2, "n00": 0}),
    "evalplus": (5, {"n11": 0.5, "n10": 3, "n01": 1.5, "n00": 0}),
    "openai_evals": (10, {"n11": 5, "n10": 3, "n01": 2, "n00": 0}),
    "bfcl": (6, {"n11": 1, "n10": 3, "n01": 2, "n00": 0}),
    "bfcl_2024": (6, {"n11": 2, "n10": 2, "n01": 2, "n00": 0}),
    "verifiers": (5, {"n11": 2, "n10": 2, "n01": 1, "n00": 0}),
    "nemo": (5, {"n11": 2.5, "n10": 1, "n01": 1, "n00": 0.5}),
    "ifeval": (5, {"n11": 2, "n10": 2, "n01": 1, "n00": 0}),
    "humaneval": (4, {"n11": 1.5, "n10": 1, "n01": 1, "n00": 0.5}),
    "swebench": (5, {"n11": 1, "n10": 2, "n01": 1, "n00": 1}),
    "swebench_tree": (3, {"n11": 1, "n10": 1, "n01": 1, "n00": 0}),
    "livecodebench": (4, {"n11": 1.5, "n10": 1, "n01": 1, "n00": 0.5}),
    "tau_bench": (5, {"n11": 2.5, "n10": 1, "n01": 0.5, "n00": 1}),
    "bigcodebench": (4, {"n11": 1.5, "n10": 1, "n01": 1, "n00": 0.5}),
    "nemo_skills": (5, {"n11": 2.5, "n10": 1.5, "n01": 1, "n00": 0}),
    "math_harness": (5, {"n11": 2, "n10": 1, "n01": 1.5, "n00": 0.5}),
    "alpaca_eval": (5, {"n11": 2, "n10": 1, "n01": 1, "n00": 1}),
    "lmms_eval": (7, {"n11": 2, "n10": 3, "n01": 2, "n00": 0}),
    "olmes": (7, {"n11": 3, "n10": 2, "n01": 2, "n00": 0}),
    "evalscope": (4, {"n11": 1.5, "n10": 1, "n01": 1, "n00": 0.5}),
    "evalscope_old": (4, {"n11": 1.5, "n10": 1, "n01": 1, "n00": 0.5}),
    "terminal_bench": (4, {"n11": 1, "n10": 1.5, "n01": 0.5, "n00": 1}),
    "verl": (4, {"n11": 1.5, "n10": 1, "n01": 1, "n00": 0.5}),
}
"""Counted by hand from the files."""


@pytest.mark.parametrize("name", TRANSITIONS)
def test_before_and_after_can_be_compared(name, tmp_path):
    sides = [LOGS[name].write(side, tmp_path / side) for side in ("before", "after")]
    result = forgetmap.compare(*sides, metric=CHOSEN.get(name), draws=200)
    n, counts = TRANSITIONS[name]
    assert result.total.n == n
    assert {cell: getattr(result.total.counts, cell) for cell in counts} == pytest.approx(counts)
    assert result.coverage.conflicts == 0


def test_a_model_beside_itself_has_lost_what_it_gained(log, path):
    result = forgetmap.compare(path, path, metric=CHOSEN.get(log.name), draws=200)
    counts = result.total.counts
    assert counts.n10 == pytest.approx(counts.n01)
    assert result.coverage.only_before == result.coverage.only_after == 0


def test_no_reader_claims_the_scripts_beside_the_logs():
    assert not [name for name, reader in HARNESSES.items() if reader.sniff(DATA / "make")]
