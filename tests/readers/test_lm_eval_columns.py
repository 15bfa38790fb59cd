"""The two roads through lm-eval's lines: by columns and one by one, with the same outcome."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forgetmap.base.errors import InputError
from forgetmap.readers import lm_eval
from forgetmap.readers.framework import ReadOptions
from forgetmap.readers.lm_eval_columns import NotPlain, plain_rows
from forgetmap.readers.registry import read
from forgetmap.samples.identity import content_hash, content_hashes
from forgetmap.samples.table import SCHEMA
from places import DATA, ROOT

NEVER = 2**60
LOGS = [
    *sorted((DATA / "lm_eval").glob("*/*")),
    *sorted((DATA / "lm_eval_sampled").glob("*")),
    ROOT / "examples" / "smollm2-airports" / "before",
]
CHOICE = {
    "doc_id": 7,
    "doc": {"question": "Which is red?", "choices": ["sky", "rose", "sea"], "answer": 1},
    "target": "1",
    "arguments": {"gen_args_0": {"arg_0": "Which is red?", "arg_1": " sky"}},
    "resps": [[["-2.5", "False"]], [["-1.25", "True"]], [["-3.0", "False"]]],
    "filtered_resps": [["-2.5", "False"], ["-1.25", "True"], ["-3.0", "False"]],
    "filter": "none",
    "metrics": ["acc", "acc_norm"],
    "doc_hash": "ab" * 32,
    "prompt_hash": "cd" * 32,
    "target_hash": "ef" * 32,
    "acc": 1.0,
    "acc_norm": 0.0,
}
WRITTEN = CHOICE | {
    "doc": {"question": "2 + 2?", "answer": "#### 4"},
    "target": "#### 4",
    "resps": [["It is 4."]],
    "filtered_resps": ["4"],
    "filter": "flexible-extract",
    "metrics": ["exact_match"],
    "exact_match": 1.0,
}


def by_road(path: Path, large: int) -> tuple[list[dict[str, Any]], list[str], tuple[int, int]]:
    """What a log holds, what is said about it, and how its records are accounted for."""
    how = ReadOptions()
    with patch.object(lm_eval, "LARGE", large):
        samples = read(path, how)
    rows = pa.Table.from_batches(list(samples.to_batches()), SCHEMA).to_pylist()
    return rows, samples.meta.warnings, (how.tally.records, how.tally.left_out)


def refusal(path: Path, large: int) -> str:
    with pytest.raises(InputError) as told:
        by_road(path, large)
    return str(told.value)


def same(path: Path) -> None:
    """Both roads say the same of a log, or refuse it with the same line."""
    try:
        careful = by_road(path, NEVER)
    except InputError:
        careful = None
    if careful is None:
        assert refusal(path, 0) == refusal(path, NEVER)
        return
    quick = by_road(path, 0)
    assert quick[1:] == careful[1:]
    for ours, theirs in zip(quick[0], careful[0], strict=True):
        for name in PROBABILITIES:  # the last digit of an exponential depends on who computes it
            found, expected = ours.pop(name), theirs.pop(name)
            assert (found is None) == (expected is None)
            np.testing.assert_allclose(found or 0, expected or 0, rtol=1e-6)
        assert ours == theirs


PROBABILITIES = ("gold_probability", "option_probabilities")


@pytest.mark.parametrize("log", LOGS, ids=lambda log: "-".join(log.parts[-2:]))
def test_both_roads_read_real_logs_alike(log: Path) -> None:
    same(log)


def is_plain(file: Path) -> bool:
    try:
        return any(len(rows.lines) for rows, _ in plain_rows(file))
    except NotPlain:
        return False


def test_the_logs_of_the_newest_release_take_the_quick_road() -> None:
    files = sorted((DATA / "lm_eval" / "0.4.13").rglob("samples_*.jsonl"))
    slow = {file.name.split("_2026")[0] for file in files if not is_plain(file)}
    assert len(files) > 8
    assert slow == {"samples_fm_instructions"}  # a truth value for each instruction


@pytest.mark.parametrize("record", [CHOICE, WRITTEN])
def test_a_plain_line_is_plain(tmp_path: Path, record: dict[str, Any]) -> None:
    file = written(tmp_path, [record] * 3)
    [(rows, told)] = plain_rows(file)
    assert told.filters == {record["filter"]: 3}
    assert rows.lines.to_pylist() == [1, 2, 3]
    same(file)


@pytest.mark.parametrize(
    "change",
    [
        {"target": None},
        {"target": "rose"},
        {"target": ["1"]},
        {"target": "9"},
        {"doc": {}},
        {"doc": None},
        {"doc": {"question": "?", "choices": ["a", "b", "c"] * 5, "n": 10**30}},
        {"doc": {"question": "a \ud800 half"}},
        {"doc_id": "seven"},
        {"doc_id": 7.0},
        {"filter": 5},
        {"filter": "strict"},
        {"metrics": ["acc"]},
        {"metrics": ["acc", "brier"], "brier": 0.25},
        {"acc": "1"},
        {"acc": True},
        {"acc": None},
        {"acc": {"a": 1}},
        {"acc": [True, False]},
        {"acc": [0.5, 1]},
        {"acc": float("nan")},
        {"acc": float("inf")},
        {"acc": 1e-7},
        {"prompt_hash": "cd"},
        {"prompt_hash": None},
        {"prompt_hash": "not hexadecimal, but as long as the other hashes are, so 64 letters."},
        {"prompt_hash": "cd " * 21 + "c"},
        {"scores_per_repeat": {"acc": [1.0, 0.0]}},
        {"filtered_resps": [["-2.5", "False"]]},
        {"filtered_resps": [[-2.5, False], [-1.25, True], [-3, False]]},
        {"filtered_resps": [["-2.5", "false"], ["-1.25", "True"], ["-3.0", "False"]]},
        {"filtered_resps": [["-inf", "False"], ["-1.25", "True"], ["-3.0", "False"]]},
        {"filtered_resps": [["-2.5", "False"]] * 6},
        {"filtered_resps": [["-2.5", "False", "x"], ["-1.25", "True"], ["-3.0", "False"]]},
        {"filtered_resps": []},
        {"filtered_resps": "[invalid]"},
        {"filtered_resps": [""]},
        {"filtered_resps": ["[invalid]", "4"]},
        {"filtered_resps": [["[invalid]"]]},
        {"filtered_resps": [4]},
        {"acc": [-1, 0.5]},
        {"acc": []},
        {"unknown": 1},
    ],
    ids=str,
)
@pytest.mark.parametrize("record", [CHOICE, WRITTEN], ids=["choice", "written"])
def test_both_roads_agree_on_what_is_not_plain(
    tmp_path: Path, record: dict[str, Any], change: dict[str, Any]
) -> None:
    """In the first line, in the middle, and in the last one."""
    for place in (0, 1, 2):
        lines = [record | {"doc_id": number} for number in range(3)]
        lines[place] = lines[place] | change
        same(written(tmp_path, lines))


@pytest.mark.parametrize("end", ['{"doc_id": 3, "do', "\n\n", "[1]\n", "\x00"])
def test_both_roads_agree_on_broken_ends(tmp_path: Path, end: str) -> None:
    file = written(tmp_path, [CHOICE] * 3)
    file.write_text(file.read_text() + end)
    same(file)


def test_a_log_that_stops_being_plain_is_read_on_line_by_line(tmp_path: Path) -> None:
    """After many thousand plain lines, which are not read again."""
    lines = [CHOICE | {"doc_id": number} for number in range(40_000)]
    lines[-1] = lines[-1] | {"acc": "1"}
    file = written(tmp_path, lines)
    with pytest.raises(NotPlain):
        list(plain_rows(file))
    same(file)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["False", "-1.5", "[invalid]", "1", "none", "cd" * 32]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
CHANGES = st.dictionaries(st.sampled_from(sorted(CHOICE)), VALUES, max_size=2)


@settings(deadline=None, max_examples=60)
@given(record=st.sampled_from([CHOICE, WRITTEN]), changes=st.lists(CHANGES, min_size=1, max_size=3))
def test_both_roads_agree_on_anything(
    record: dict[str, Any], changes: list[dict[str, Any]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        same(written(Path(folder), [record, *(record | change for change in changes)]))


def written(folder: Path, records: list[dict[str, Any]]) -> Path:
    file = folder / "samples_task_2026-01-01T00-00-00.000000.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return file


@given(st.lists(st.tuples(st.dictionaries(st.text(), VALUES), st.text())))
def test_many_hashes_are_those_of_one_at_a_time(pairs: list[tuple[dict[str, Any], str]]) -> None:
    contents, texts = [content for content, _ in pairs], [text for _, text in pairs]
    assert content_hashes(contents, texts).tolist() == [content_hash(*pair) for pair in pairs]
