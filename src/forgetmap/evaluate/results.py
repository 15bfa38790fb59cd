"""From replies to results: scored rows, and the files of a finished run."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from forgetmap.base.errors import InputError
from forgetmap.base.files import file_hash, replacing, write_text
from forgetmap.base.model import read_sealed, sealed
from forgetmap.evaluate.answers import extract, is_right
from forgetmap.evaluate.prompts import Prompt, Request, as_written
from forgetmap.evaluate.questions import UNSCORED, Question, Suite, Task
from forgetmap.map.task_maps import UNMAPPED
from forgetmap.readers.captrack import ANSWER
from forgetmap.samples.identity import content_hash, wording_hash
from forgetmap.samples.options import softmax
from forgetmap.samples.table import Meta, Samples

SAMPLES = "samples.parquet"
TASKS = "tasks.csv"
RESPONSES = "responses.jsonl"
"""Answers for `forgetmap score`, of a suite that the run does not score itself."""
MANIFEST = "manifest.json"
FORMAT = "forgetmap-evaluation"
SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A request with the question it came from."""

    task: Task
    question: Question
    repeat: int
    request: Request
    key: str
    """Where its reply lies in the store."""


def rows(
    model: str, run: str, asked: AskedQuestion, reply: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """Score one reply: a row for each metric."""
    question = asked.question
    row: dict[str, Any] = {
        "model": model,
        "run": run,
        "task": asked.task.name,
        "item": question.item,
        "item_ref": question.ref,
        "wording": wording_hash(question.prompt, question.choices, question.target),
        "repeat": asked.repeat,
        "prompt_hash": content_hash(asked.request.prompt),
        "source": f"answers.jsonl#{asked.key}",
        "prompt": _readable(asked.request.prompt),
        "target": question.target,
        "k": len(question.choices) or None,
    }
    is_scored = asked.task.scorer != UNSCORED
    if reply["status"] != "ok":
        written = ("exact_match",) if is_scored else (ANSWER,)
        metrics = ("acc", "acc_norm") if asked.request.options else written
        yield from ({**row, "metric": metric, "status": "error"} for metric in metrics)
    elif asked.request.options:
        yield from _pick_rows(row, question, reply["likelihoods"])
    elif not is_scored:
        yield {**row, "metric": ANSWER, "response": reply["text"], "status": "unscored"}
    else:
        yield {**row, **_text_row(asked, str(reply["text"]), bool(reply["finished"]))}


def _pick_rows(
    row: dict[str, Any], question: Question, likelihoods: Sequence[float]
) -> Iterator[dict[str, Any]]:
    options = softmax(likelihoods)
    if options is None:
        yield from ({**row, "metric": metric, "status": "error"} for metric in ("acc", "acc_norm"))
        return
    by_length = [
        value / max(len(choice), 1)
        for value, choice in zip(likelihoods, question.choices, strict=True)
    ]
    for metric, values in (("acc", likelihoods), ("acc_norm", by_length)):
        picked = max(range(len(values)), key=values.__getitem__)
        picked_row: dict[str, Any] = {"metric": metric, "score": float(picked == question.gold)}
        picked_row["answer"] = question.choices[picked]
        if metric == "acc":  # the chance of a plain pick
            picked_row["gold_probability"] = options[question.gold]
            picked_row["option_probabilities"] = options
            picked_row["right_option"] = question.gold
        yield {**row, **picked_row}


def _text_row(asked: AskedQuestion, text: str, finished: bool) -> dict[str, Any]:
    task = as_written(asked.task, lettered=bool(asked.question.choices))
    answer, status = extract(task, text, asked.question.choices)
    row: dict[str, Any] = {"metric": "exact_match", "response": text, "answer": answer}
    if answer is None:
        return {**row, "score": 0.0, "status": status if finished else "truncated"}
    return {**row, "score": float(is_right(task, asked.question, answer))}


def _readable(prompt: Prompt) -> str:
    if isinstance(prompt, str):
        return prompt
    return "\n\n".join(f"{role}: {text}" for role, text in prompt)


def write_results(
    folder: Path, scored: Iterable[dict[str, Any]], meta: Meta, suite: Suite, about: dict[str, Any]
) -> Samples:
    """Write the Samples, the task map, and last the manifest, which says that all is there."""
    samples = Samples.from_rows(scored, meta)
    samples.write(folder / SAMPLES)
    categories = io.StringIO()
    writer = csv.writer(categories, lineterminator="\n")
    writer.writerow(["task", "category"])
    writer.writerows([task.name, task.category or UNMAPPED] for task in suite.tasks)
    write_text(folder / TASKS, categories.getvalue())
    manifest = {
        "format": FORMAT,
        "schema_version": SCHEMA_VERSION,
        **about,
        "samples_sha256": file_hash(folder / SAMPLES),
    }
    if suite.manifest:
        manifest["responses_sha256"] = file_hash(folder / RESPONSES)
    write_text(folder / MANIFEST, json.dumps(sealed(manifest), indent=2) + "\n")
    return Samples.read(folder / SAMPLES)


def write_responses(
    folder: Path, model: str, answered: Iterable[tuple[AskedQuestion, dict[str, Any]]]
) -> None:
    """Write answers beside their items for `forgetmap score`; what failed is left out."""
    with replacing(folder / RESPONSES) as temporary, temporary.open("wb") as file:
        for asked, reply in answered:
            if reply["status"] == "ok":
                row = {"model": model, **asked.question.row, ANSWER: reply["text"]}
                file.write(orjson.dumps(row) + b"\n")


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of a finished run; None where there is none."""
    path = folder / MANIFEST
    if not path.is_file():
        return None
    manifest = read_sealed(path)
    if manifest.get("format") != FORMAT:
        raise InputError(f"{path}: is not the manifest of an evaluation; name another folder")
    if not isinstance(version := manifest.get("schema_version"), int) or version > SCHEMA_VERSION:
        raise InputError(
            f"{path}: has schema version {version}, this forgetmap knows up to {SCHEMA_VERSION}; "
            "upgrade forgetmap"
        )
    return manifest
