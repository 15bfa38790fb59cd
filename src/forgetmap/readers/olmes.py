"""OLMES: `task-<n>-<task>-predictions.jsonl`, with `-metrics.json` and `-requests.jsonl` beside it.

The metrics name the model and the metric that counts; the requests, which are only there on demand,
hold the questions. Without them items are known by their native id. Checked against
allenai/olmes `oe_eval/run_eval.py` and `oe_eval/metrics/metric.py` of 2024 and 2025, in forks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from forgetmap.base.values import file_name
from forgetmap.readers.framework import ReadOptions, as_object, json_lines, json_object, malformed
from forgetmap.readers.records import Answer, Format, Log, Records, has_keys, lines
from forgetmap.samples.identity import content_hash

COMPANIONS = (
    "*recorded-inputs.jsonl",
    "metrics-all.jsonl",
    "metrics.json",
    "*verbose-metrics.json",
)
_NO_SCORE = re.compile(r"predicted_|correct_choice|no_answer|num_|sum_|logits_|bits_per_|price")
"""Numbers that are not scores: choices, likelihoods, counts and costs."""


def _beside(file: Path, name: str) -> Path:
    return file.with_name(f"{file.name.removesuffix('predictions.jsonl')}{name}")


def _describe(file: Path, how: ReadOptions, _warnings: list[str]) -> Log:
    totals = _beside(file, "metrics.json")
    about = json_object(totals, how, "not the metrics of a task") if totals.is_file() else {}
    config, means = as_object(about.get("task_config") or {}), as_object(about.get("metrics") or {})
    model = as_object(about.get("model_config") or {})
    alias = as_object(config.get("metadata") or {}).get("alias")  # tells variants of a task apart
    stem = file_name(file).removesuffix("-predictions.jsonl")
    return Log(
        str(model.get("model") or file_name(file.parent)),
        str(alias or about.get("task_name") or stem),
        {
            "few-shot examples": config.get("num_shots"),
            "generation": config.get("generation_kwargs"),
            "limit": config.get("limit"),
            "task version": about.get("task_hash"),
        },
        count=about.get("num_instances"),
        means={"primary_score": means.get("primary_score")},
        extra=config.get("primary_metric"),
    )


def _records(file: Path, how: ReadOptions, warnings: list[str]) -> Records:
    """The predictions, each with the hash of its document and what the model was shown."""
    requests = _beside(file, "requests.jsonl")
    docs: dict[str, tuple[int, Any]] = {}
    for line, record in json_lines(requests, how, warnings) if requests.is_file() else ():
        with malformed(requests, line, "not a request of OLMES"):
            request = as_object(record.get("request") or {})
            prompt = request.get("context") if how.text else None
            docs.setdefault(str(record["doc_id"]), (content_hash(record["doc"]), prompt))
    for place, record in lines(file, how, warnings):
        record["_document"] = docs.get(str(record["doc_id"]), (None, None))
        yield place, record


def _answers(record: dict[str, Any], log: Log) -> Iterator[Answer]:
    """The metric that counts is also given as `primary_score`, as OLMES calls it."""
    primary = log.extra
    metrics = as_object(record["metrics"])
    scores: dict[str, Any] = {"primary_score": metrics[primary]} if primary in metrics else {}
    for name, value in metrics.items():
        if name == primary or not _NO_SCORE.match(name):
            if isinstance(value, int | float):
                scores[name] = value
            elif value is not None:
                log.unread.add(name)
    outputs = record.get("model_output") or [{}]
    texts = [as_object(output).get("continuation") for output in outputs]
    by_likelihood = len(outputs) > 1 and texts[0] is None
    doc, prompt = record["_document"]
    native = record.get("native_id")
    if scores:
        yield Answer(
            record["doc_id"] if native is None else native,
            scores,
            question=doc,
            target=record.get("label"),
            k=len(outputs) if by_likelihood else None,
            prompt=prompt,
            answer=metrics.get("predicted_index_raw") if by_likelihood else metrics.get("answer"),
            response=texts[0],
        )


_FORMAT = Format(
    harness="olmes",
    what="an OLMES prediction",
    pattern="*predictions.jsonl",
    fits=has_keys("doc_id", "native_id", "metrics", "model_output"),
    records=_records,
    answers=_answers,
    describe=_describe,
)
sniff, read = _FORMAT.sniff, _FORMAT.read
