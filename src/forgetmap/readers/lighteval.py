"""lighteval: `details/<model>/<time>/details_<task>_<time>.parquet`, and a results file per run.

Two layouts: flat columns up to 0.10, the structs `doc`, `metric`, `model_response` from 0.11 on.
The Open LLM Leaderboard of 2023 is flat too, in `details_<model>/<time>/`; its first files have a
column for each metric. `lighteval_details` says what the columns hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from forgetmap.base.files import find_files
from forgetmap.base.json import read_json
from forgetmap.base.values import file_name, optional_text
from forgetmap.readers.framework import (
    ReadOptions,
    Run,
    as_object,
    malformed,
    note_settings,
    number_repeats,
    settings_text,
    split_stamp,
)
from forgetmap.readers.lighteval_details import (
    Details,
    Part,
    details_of,
    numbers,
    stored_parts,
)
from forgetmap.samples.options import OPTION_COLUMNS, softmax
from forgetmap.samples.table import ROW, SCHEMA, Columns, Meta, Samples, together

_FILES = "details_*.parquet"


def sniff(path: Path) -> bool:
    """Look for details files by name."""
    return bool(find_files(path, _FILES))


def read(path: Path, how: ReadOptions) -> Samples:
    """Read all details files under the path."""
    meta = Meta(harness="lighteval")
    runs = []
    results: dict[Path, _Results | None] = {}
    for file in find_files(path, _FILES):
        run, shots, settings = _describe(file, results)
        note_settings(meta, run.model, settings)
        note_settings(meta, run.model, {"few-shot examples": shots}, run.task)
        runs.append((run, file))
    how.tally.files.update(file for file, found in results.items() if found)
    numbered = number_repeats(runs, meta.warnings)
    numbered.sort(key=lambda each: each[0][:2])  # runs that ask the same, one after another

    def parts() -> Iterator[Columns]:
        for run, file, repeat in numbered:
            how.tick(file.stat().st_size)
            how.tally.files.add(file)
            with malformed(file, what="is not a readable Parquet file of lighteval"):
                stored = stored_parts(file, how.text)
                yield from _parts(run, file, repeat, stored, how, meta.warnings)

    return Samples.collect(together(parts()), meta)


def task_name(name: str) -> tuple[str, int | None]:
    """Split lighteval's task name into the task and its number of few-shot examples.

    Some releases put the suite before it; the suite says nothing about the items.

    Example:
        >>> task_name("lighteval|gsm8k|5"), task_name("gsm8k|5"), task_name("gsm8k")
        (('gsm8k', 5), ('gsm8k', 5), ('gsm8k', None))
    """
    parts = name.split("|")
    shots = int(parts.pop()) if len(parts) > 1 and re.fullmatch("[0-9]{1,4}", parts[-1]) else None
    return parts[-1], shots


class _Results(NamedTuple):
    """What the results file of a run says that holds for all of its tasks."""

    model: str | None
    seed: str | None
    settings: dict[str, Any]


def _describe(
    file: Path, known: dict[Path, _Results | None]
) -> tuple[Run, int | None, dict[str, Any]]:
    """Find model, task, seed and time of a details file, its few-shot number and settings.

    The results files that were read are kept in `known`: all tasks of a run share one.
    """
    name, stamp = split_stamp(file)
    task, shots = task_name(name.removeprefix("details_"))
    details = next((folder for folder in file.parents if folder.name == "details"), None)
    model = file.parent.name
    if details is not None:
        inner = file.parent.relative_to(details).parts
        model = "/".join(inner[:-1]) or model
        path = details.parent.joinpath("results", *inner[:-1], f"results_{stamp}.json")
    else:
        above = file.parent.parent
        if re.match(r"\d{4}-\d\d-\d\dT", file.parent.name):  # as the leaderboard keeps them
            model = above.name.removeprefix("details_").replace("__", "/")
        path = above / f"results_{stamp}.json"
    if path not in known:
        known[path] = _read_results(path) if path.is_file() else None
    results = known[path] or _Results(None, None, {})
    return Run(results.model or model, task, results.seed, stamp), shots, results.settings


def _read_results(path: Path) -> _Results:
    """Read model, seed and settings; their place moved between releases."""
    with malformed(path, what="not a lighteval results file"):
        general = as_object(read_json(path)).get("config_general") or {}
        config = general.get("model_config") or {}
        generation = general.get("generation_parameters") or config.get("generation_parameters")
        chosen = {name: v for name, v in (generation or {}).items() if v is not None}
        seed = optional_text(chosen.pop("seed", None))
        settings = {
            "generation": settings_text(chosen),
            "dtype": general.get("model_dtype") or config.get("dtype"),
            "chat template": general.get("use_chat_template", config.get("override_chat_template")),
            "system prompt": general.get("system_prompt", config.get("system_prompt")),
            "limit": general.get("max_samples"),
        }
        model = general.get("model_name") or config.get("model_name")
        kept = {name: value for name, value in settings.items() if value}
        return _Results(None if not model else str(model), seed, kept)


def _parts(
    run: Run,
    file: Path,
    repeat: int,
    parts: Iterable[Part],
    how: ReadOptions,
    warnings: list[str],
) -> Iterator[Columns]:
    """Columns of Samples, some rows and one metric at a time."""
    left_out: dict[str, None] = {}
    for part in parts:
        rows = len(part.rows)
        scored = False
        details = details_of(part, how.text)
        columns = _columns(details, how)
        columns |= {"source": file_name(file), ROW: numbers(part.first + 1, rows)}
        for metric, scores in _item_scores(details.metrics):
            if scores is None:
                left_out[f"metric {metric!r} is not a number per item and was left out"] = None
                continue
            scored = True
            yield _of_metric(run, repeat, metric, scores, columns)
        how.tally.records += rows
        how.tally.left_out += 0 if scored else rows
        if not scored:
            left_out["no metric is a number per item, so all its rows were left out"] = None
    warnings += [f"{run.task}: {text}" for text in left_out]


def _columns(details: Details, how: ReadOptions) -> Columns:
    """Turn details into Samples columns."""
    asked, by_likelihood = details.asked, details.by_likelihood
    columns: dict[str, Any] = {
        "item": asked.items(by_likelihood),
        "item_ref": details.refs,
        "k": asked.k,
    }
    if by_likelihood is not None:
        columns |= _probabilities(details, by_likelihood)
    if how.wording:
        columns["wording"] = asked.wording
    if how.text:
        columns |= _texts(details, by_likelihood or [False] * len(asked.queries))
    return {
        name: values if isinstance(values, pa.Array) else pa.array(values, SCHEMA.field(name).type)
        for name, values in columns.items()
    }


def _texts(details: Details, by_likelihood: list[bool]) -> dict[str, list[str | None]]:
    """What was asked and answered."""
    asked, nothing = details.asked, [None] * len(by_likelihood)
    return {
        "prompt": [_text(prompt) for prompt in details.prompts or asked.queries],
        "target": [_text(targets) for targets in asked.targets],
        "response": [_text((texts or [None])[0]) for texts in details.responses or nothing],
        "answer": [
            options[values.index(max(values))].strip() if scored else _extraction(specific)
            for values, options, scored, specific in zip(
                details.likelihoods or [[]] * len(nothing),
                asked.options,
                by_likelihood,
                details.extracted or nothing,
                strict=True,
            )
        ],
    }


def _of_metric(run: Run, repeat: int, metric: str, scores: pa.Array, columns: Columns) -> Columns:
    same = {"model": run.model, "run": run.stamp, "task": run.task, "metric": metric}
    filled = {**columns, **same, "repeat": repeat, "score": scores}
    if metric != "acc":  # the softmax of the sums belongs to the plain pick
        for name in ("gold_probability", *OPTION_COLUMNS):
            filled.pop(name, None)
    return filled


def _item_scores(metrics: pa.StructArray) -> Iterator[tuple[str, pa.Array | None]]:
    """Yield (metric, scores); None where it is not a number per item. NaN becomes null."""
    for index, field in enumerate(metrics.type):
        values = metrics.field(index)
        if pa.types.is_boolean(field.type) or pa.types.is_integer(field.type):
            values = values.cast(pa.float64())
        if pa.types.is_floating(values.type):
            scores = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
            if np.isinf(scores).any():
                raise ValueError(f"{field.name} holds infinity, which is not a score")
            yield field.name, pa.array(scores, from_pandas=True)
        else:
            yield field.name, None


def _text(value: Any) -> str | None:
    if value is None or value == []:
        return None
    return "\n".join(str(part) for part in value) if isinstance(value, list) else str(value)


def _extraction(specific: Any) -> str | None:
    """What the answer extraction found, where the metric keeps it."""
    extracted = specific.get("extracted_predictions") if isinstance(specific, dict) else None
    return _text(extracted[0]) if extracted else None


def _probabilities(details: Details, by_likelihood: list[bool]) -> dict[str, list[Any]]:
    """The probabilities of the options and of the right one, where exactly one is right."""
    asked, likelihoods = details.asked, details.likelihoods or []
    options = [
        softmax(values) if scored else None
        for values, scored in zip(likelihoods, by_likelihood, strict=True)
    ]
    right = [
        shown.index(targets[0]) if chances and len(targets) == 1 else None
        for chances, shown, targets in zip(options, asked.options, asked.targets, strict=True)
    ]
    gold = [
        chances[place] if chances and place is not None else None
        for chances, place in zip(options, right, strict=True)
    ]
    return {"gold_probability": gold, "option_probabilities": options, "right_option": right}
