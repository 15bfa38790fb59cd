"""NeMo-Skills: `eval-results/<benchmark>/output-rs<seed>.jsonl`, or `output.jsonl` without seeds.

One line is one problem in one run; runs with other seeds are repeats. Checked against
NVIDIA-NeMo/Skills `evaluation/metrics/` (math, code, base) and `evaluation/evaluator/` (math, mcq)
of 2024 (`is_correct`) and 2025 (`symbolic_correct`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from forgetmap.base.json import first_record
from forgetmap.base.values import file_name
from forgetmap.readers.framework import ReadOptions, json_object
from forgetmap.readers.records import Answer, Format, Log, lines

COMPANIONS = ("*.done", "*.log", "*_chunk_*", "summarized-results/*")
_SCORES = ("symbolic_correct", "is_correct", "is_correct-plus", "graded_list", "judgement")
_VERDICT = re.compile(r"\*{0,2}judgement\*{0,2}\s*:\s*(yes|no)", re.IGNORECASE)


def _fits(file: Path) -> bool:
    record = first_record(file) if "_chunk_" not in file.name else {}
    return "generation" in record and any(name in record for name in _SCORES)


def _describe(file: Path, how: ReadOptions, _warnings: list[str]) -> Log:
    """The folder is the benchmark; the one above, or above `eval-results`, names the model."""
    task, above = file_name(file.parent), file.parent.parent
    model = above.parent if "results" in above.name else above
    totals = file.with_name("metrics.json")
    told = json_object(totals, how, "not the metrics of a benchmark") if totals.is_file() else {}
    of_task = told.get(task)
    ways = of_task.values() if isinstance(of_task, dict) else ()
    counts = [way.get("num_entries") for way in ways if isinstance(way, dict)]
    return Log(file_name(model), task, count=counts[0] if counts else None)


def _answers(record: dict[str, Any], _log: Log) -> Iterator[Answer]:
    scores = {name: record[name] for name in _SCORES if name in record}
    if "graded_list" in scores:
        (scores["accuracy"],) = scores.pop("graded_list")
    if "judgement" in scores:  # what gives no verdict has no score
        verdict = _VERDICT.search(str(scores.pop("judgement")))
        scores["judge_correct"] = verdict[1] if verdict else None
    answered = record.get("predicted_answer", "") is not None
    yield Answer(
        record.get("id", record.get("task_id")),
        scores,
        question=record.get("problem") or record.get("question"),
        target=record.get("expected_answer"),
        status=None if answered else "no_answer",
        answer=record.get("predicted_answer"),
        response=record["generation"],
    )


_FORMAT = Format(
    harness="nemo-skills",
    what="a NeMo-Skills result",
    pattern="output*.jsonl",
    fits=_fits,
    records=lines,
    answers=_answers,
    describe=_describe,
)
sniff, read = _FORMAT.sniff, _FORMAT.read
