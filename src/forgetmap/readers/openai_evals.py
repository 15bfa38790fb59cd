"""OpenAI evals (`oaieval`): a JSONL file of events, with the run's `spec` in its first line.

A sample has several events: what was asked and sampled, whether it matched, further metrics. The
`final_report` is not always the last line: events that were still waiting are written after it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forgetmap.base.files import find_files, head
from forgetmap.base.values import file_name, number
from forgetmap.readers.framework import (
    ReadOptions,
    Run,
    asked,
    json_lines,
    malformed,
    note_settings,
    number_repeats,
)
from forgetmap.samples.identity import content_hash
from forgetmap.samples.table import Meta, Samples

_HEAD = re.compile(rb'\{\s*"spec"\s*:\s*\{[^{}]*"(?:completion_fns|eval_name|base_eval)"')

_NAMED = 10
"""Metrics named at most, where their values are not numbers."""


def sniff(path: Path) -> bool:
    """Look for a `spec` at the beginning of JSONL files."""
    return bool(_files(path))


def _files(path: Path) -> list[Path]:
    return [file for file in find_files(path, "*.jsonl") if _HEAD.match(head(file))]


@dataclass
class _Sample:
    """What the events of one sample say."""

    line: int
    prompt: Any = None
    target: Any = None
    scores: dict[str, float | None] = field(default_factory=dict)
    text: dict[str, str] = field(default_factory=dict)
    failed: bool = False


def read(path: Path, how: ReadOptions) -> Samples:
    """Read all event files under the path; runs of the same eval by the same model are repeats."""
    meta = Meta(harness="openai-evals")
    runs = []
    for file in _files(path):
        for line, record in json_lines(file, how, meta.warnings):
            with malformed(file, line, "not a run's spec"):
                runs.append((_describe(record["spec"], meta), file))
            break
    numbered = number_repeats(runs, meta.warnings)
    return Samples.from_rows(
        (row for each_run in numbered for row in _rows(*each_run, how, meta.warnings)), meta
    )


def _describe(spec: dict[str, Any], meta: Meta) -> Run:
    models, task = spec["completion_fns"], str(spec.get("base_eval") or spec["eval_name"])
    if not isinstance(models, list) or not models:
        raise ValueError("completion_fns must name the model")
    config = spec.get("run_config") or {}
    arguments = (config.get("eval_spec") or {}).get("args") or {}
    settings = {
        "task version": spec.get("eval_name"),
        "few-shot examples": arguments.get("num_few_shot"),
        "grader": ", ".join(str(model) for model in models[1:]),
        "limit": config.get("max_samples"),
    }
    note_settings(meta, str(models[0]), settings, task)
    # The seed orders the samples only: a second run with the same seed is a repeat.
    stamp = str(spec.get("created_at") or "")
    return Run(str(models[0]), task, str(spec.get("run_id")), stamp)


def _rows(
    run: Run, file: Path, repeat: int, how: ReadOptions, warnings: list[str]
) -> Iterator[dict[str, Any]]:
    samples: dict[str, _Sample] = {}
    again: set[str] = set()
    not_numbers: Counter[str] = Counter()
    ended = False
    for line, record in json_lines(file, how, warnings):
        if "spec" in record or "final_report" in record:
            ended |= "final_report" in record
            continue
        with malformed(file, line, "not an event of OpenAI evals"):
            if str(record["run_id"]) != run.seed:
                raise ValueError(f"an event of another run, {record['run_id']!r:.40}")
            sample = samples.setdefault(str(record["sample_id"]), _Sample(line))
            if _add(sample, record["type"], record["data"], not_numbers, how.text):
                again.add(str(record["sample_id"]))
    warnings += _problems(file, len(again), ended, not_numbers)
    metrics = sorted({metric for sample in samples.values() for metric in sample.scores})
    how.tally.records += len(samples)
    if not metrics and samples:
        how.tally.left_out += len(samples)
        warnings.append(
            f"{file_name(file)}: no event scores its {len(samples)} samples; they were left out"
        )
    for reference, sample in samples.items():
        with malformed(file, sample.line, "not an event of OpenAI evals"):
            item = content_hash(asked(sample.prompt), sample.target) if sample.prompt else None
        for metric in sample.scores or metrics:
            yield {
                "model": run.model,
                "run": file_name(file),
                "task": run.task,
                "item": item,
                "item_ref": reference,
                "repeat": repeat,
                "metric": metric,
                "score": sample.scores.get(metric),
                "status": "error" if sample.failed and not sample.scores else None,
                "source": f"{file_name(file)}:{sample.line}",
                **sample.text,
            }


def _problems(file: Path, again: int, ended: bool, not_numbers: Counter[str]) -> Iterator[str]:
    """What to say of a file once all its events are read."""
    if again:
        yield f"{file_name(file)}: {again} samples were scored twice; the last counts"
    if not ended:
        yield f"{file_name(file)}: has no final report; the run did not come to its end"
    for name, count in sorted(not_numbers.items())[:_NAMED]:
        yield f"{file_name(file)}: {count} values of {name!r:.60} are not numbers, left out"


def _is_number(value: Any) -> bool:
    """Whether a value is a number, or one written as text; words are answers here, not scores."""
    try:
        float(value if value is not None else "nan")
    except (ValueError, TypeError):
        return False
    return True


def _add(
    sample: _Sample, kind: str, data: dict[str, Any], not_numbers: Counter[str], text: bool
) -> bool:
    """Add an event to what is known of its sample; tell whether it replaces a score."""
    scores: dict[str, float | None] = {}
    if kind == "sampling" and sample.prompt is None:  # a grader's or a later turn's come after it
        sample.prompt = data["prompt"]
        if text:
            sampled = data.get("sampled")
            response = sampled[0] if isinstance(sampled, list) and sampled else sampled
            sample.text |= {"prompt": str(sample.prompt), "response": str(response)}
    elif kind == "match":
        if not isinstance(data["correct"], bool):
            raise ValueError(f"correct is {data['correct']!r:.40}, not true or false")
        scores["correct"] = float(data["correct"])
        sample.target = data.get("expected")
        if text:
            texts = {"target": data.get("expected"), "answer": data.get("picked")}
            sample.text |= {name: str(value) for name, value in texts.items() if value is not None}
    elif kind == "metrics":
        for name, value in data.items():
            if _is_number(value):
                scores[name] = number(value, name)
            else:
                not_numbers[name] += 1
    elif kind == "error":
        sample.failed = True
    replaced = not sample.scores.keys().isdisjoint(scores)
    sample.scores |= scores
    return replaced
