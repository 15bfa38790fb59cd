"""LiveCodeBench: `output/<model>/<scenario>_<n>_<temperature>_eval_all.json`.

A list of problems with a verdict for each of their n samples, which are repeats. Checked against
LiveCodeBench `lcb_runner/runner/main.py`, `utils/path_utils.py` and `benchmarks/` of 2024 and 2025.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from forgetmap.base.json import parse_json
from forgetmap.base.values import file_name
from forgetmap.readers.framework import ReadOptions
from forgetmap.readers.records import Answer, Format, Log, begins, entries

COMPANIONS = ("*_eval.json", "*_[0-9].[0-9].json")
"""Totals, and the answers before they were checked."""
_NAME = re.compile(r"(?:Scenario\.)?(\w+?)_(\d+)_([\d.]+)(?:_\w+)?_eval_all\.json")


def _describe(file: Path, _how: ReadOptions, _warnings: list[str]) -> Log:
    name = _NAME.fullmatch(file_name(file))
    task = name[1] if name else "codegeneration"
    settings = {"generation": {"temperature": float(name[3])}} if name else {}
    return Log(file_name(file.parent), task, settings)


def _answers(record: dict[str, Any], log: Log) -> Iterator[Answer]:
    graded = record["graded_list"]
    if not isinstance(graded, list) or not all(type(verdict) is bool for verdict in graded):
        raise ValueError("graded_list is not a list of verdicts")
    if graded and record.get("pass@1") != sum(graded) / len(graded):
        log.doubts["pass@1 is not the share of graded_list"] += 1
    names = [str(record[name]) for name in ("question_id", "test_id", "id") if name in record]
    question = [record.get(name) for name in ("question_content", "starter_code", "code", "input")]
    texts = [record.get("output_list"), record.get("metadata")]
    responses, notes = (text if isinstance(text, list) else [] for text in texts)
    for index, verdict in enumerate(graded):
        yield Answer(
            "/".join(names),
            {"pass@1": verdict},
            question="\n".join(str(part) for part in question if part),
            target=record.get("output"),
            more=tuple(names),  # questions on several tests of one problem differ in these alone
            answer=_failure(notes[index]) if index < len(notes) else None,
            response=responses[index] if index < len(responses) else None,
        )


def _failure(note: Any) -> Any:
    """How a sample failed, where its checker says so."""
    try:
        note = parse_json(note.encode()) if isinstance(note, str) else note
    except ValueError:
        return None
    return note.get("error_message") if isinstance(note, dict) else None


_FORMAT = Format(
    harness="livecodebench",
    what="a LiveCodeBench result",
    pattern="*_eval_all.json",
    fits=begins(rb'\[\s*\{\s*"question_(title|id)"'),
    records=entries,
    answers=_answers,
    describe=_describe,
)
sniff, read = _FORMAT.sniff, _FORMAT.read
