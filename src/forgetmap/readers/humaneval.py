"""HumanEval: `<samples>.jsonl_results.jsonl`, as `evaluate_functional_correctness` writes it.

One line is one completion; completions of the same task are repeats. The problems are not in the
file, so items are known by their task id. Checked against openai/human-eval `evaluation.py` and
`execution.py` of 2021 to 2025; forks for other languages write the same fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from forgetmap.base.values import file_name
from forgetmap.readers.framework import ReadOptions
from forgetmap.readers.records import Answer, Format, Log, has_keys, lines


def _describe(file: Path, _how: ReadOptions, _warnings: list[str]) -> Log:
    name = file_name(file).removesuffix("_results.jsonl").removesuffix(".jsonl")
    return Log(name or file_name(file.parent), "humaneval")


def _answers(record: dict[str, Any], _log: Log) -> Iterator[Answer]:
    """A completion that ran too long has failed its tests; `result` says how it failed."""
    if type(record["passed"]) is not bool:
        raise ValueError(f"passed is {record['passed']!r:.40}")
    name = record["task_id"]
    yield Answer(
        name,
        {"pass@1": record["passed"]},
        answer=record["result"],
        response=record.get("completion"),
        task=name.partition("/")[0].lower() if "/" in str(name) else None,
    )


_FORMAT = Format(
    harness="humaneval",
    what="a HumanEval result",
    pattern="*_results.jsonl",
    fits=has_keys("task_id", "result", "passed"),
    records=lines,
    answers=_answers,
    describe=_describe,
)
sniff, read = _FORMAT.sniff, _FORMAT.read
