"""lighteval: `details/<model>/<time>/details_<task>_<time>.parquet`, and a results file per run.

Two layouts: flat columns up to 0.10, the structs `doc`, `metric`, `model_response` from 0.11 on.
The Open LLM Leaderboard of 2023 is flat too, in `details_<model>/<time>/`; its first files have a
column for each metric.
Columns are worked on whole, without a loop over rows but for the hashes; text columns are only
touched when text was asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from forgetmap.base.errors import InputError
from forgetmap.base.files import find_files
from forgetmap.base.json import read_json
from forgetmap.base.parquet import parquet_parts
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
from forgetmap.samples.identity import content_hash, wording_hash
from forgetmap.samples.options import OPTION_COLUMNS, softmax
from forgetmap.samples.table import SCHEMA, Meta, Samples, complete

_FILES = "details_*.parquet"


def sniff(path: Path) -> bool:
    """Look for details files by name."""
    return bool(find_files(path, _FILES))


def read(path: Path, how: ReadOptions) -> Samples:
    """Read all details files under the path."""
    meta = Meta(harness="lighteval")
    runs = []
    for file in find_files(path, _FILES):
        run, shots, settings = _describe(file, how)
        note_settings(meta, run.model, settings)
        note_settings(meta, run.model, {"few-shot examples": shots}, run.task)
        runs.append((run, file))
    numbered = number_repeats(runs, meta.warnings)

    def parts() -> Iterator[pa.RecordBatch]:
        for run, file, repeat in numbered:
            how.tick(file.stat().st_size)
            yield from _batches(run, file, repeat, how, meta.warnings)

    return Samples.collect(parts(), meta)


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


def _describe(file: Path, how: ReadOptions) -> tuple[Run, int | None, dict[str, Any]]:
    """Find model, task, seed and time of a details file, its few-shot number and settings."""
    name, stamp = split_stamp(file)
    task, shots = task_name(name.removeprefix("details_"))
    details = next((folder for folder in file.parents if folder.name == "details"), None)
    model, seed = file.parent.name, None
    settings: dict[str, Any] = {}
    if details is not None:
        inner = file.parent.relative_to(details).parts
        model = "/".join(inner[:-1]) or model
        results = details.parent.joinpath("results", *inner[:-1], f"results_{stamp}.json")
    else:
        above = file.parent.parent
        if re.match(r"\d{4}-\d\d-\d\dT", file.parent.name):  # as the leaderboard keeps them
            model = above.name.removeprefix("details_").replace("__", "/")
        results = above / f"results_{stamp}.json"
    if results.is_file():
        how.tally.files.add(results)
        model, seed, settings = _read_results(results, model)
    return Run(model, task, seed, stamp), shots, settings


def _read_results(path: Path, folder: str) -> tuple[str, Any, dict[str, Any]]:
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
        model = str(general.get("model_name") or config.get("model_name") or folder)
        return model, seed, {name: value for name, value in settings.items() if value}


class Details(NamedTuple):
    """What a details file says about its items, the same for both layouts."""

    metrics: pa.StructArray
    refs: list[str]
    queries: list[str]
    options: list[list[str]]
    targets: list[list[str]]
    likelihoods: list[list[float]]
    """One per option where the item was scored by likelihood, else empty."""
    prompts: list[Any] | None = None
    responses: list[Any] | None = None
    extracted: list[Any] | None = None


def _batches(
    run: Run, file: Path, repeat: int, how: ReadOptions, warnings: list[str]
) -> Iterator[pa.RecordBatch]:
    left_out: dict[str, None] = {}
    with malformed(file, what="is not a readable Parquet file of lighteval"):
        done = 0
        how.tally.files.add(file)
        for part in parquet_parts(file, partial(_wanted, file, how.text)):
            scored = False
            details_of = _struct_details if "doc" in part.schema.names else _flat_details
            details = details_of(part, done, how.text)
            columns = _columns(details, how)
            for metric, scores in _item_scores(details.metrics):
                if scores is None:
                    left_out[f"metric {metric!r} is not a number per item and was left out"] = None
                    continue
                scored = True
                yield _batch(run, file, repeat, metric, scores, columns, done)
            done += len(part)
            how.tally.records += len(part)
            how.tally.left_out += 0 if scored else len(part)
            if not scored:
                left_out["no metric is a number per item, so all its rows were left out"] = None
    warnings += [f"{run.task}: {text}" for text in left_out]


def _wanted(file: Path, text: bool, schema: pa.Schema) -> list[str]:
    """The columns to read, of either layout."""
    if {"doc", "metric", "model_response"} <= set(schema.names):
        return _struct_columns(text)
    if "example" in schema.names and {"metrics", *_METRICS} & set(schema.names):
        return _flat_columns(schema, text)
    raise InputError(f"{file}: has neither the flat nor the struct columns of lighteval's details")


_METRICS = ("acc", "acc_norm", "mc1", "mc2", "em", "f1")
"""Columns of the leaderboard's first files, before `metrics` held them."""


def _flat_columns(schema: pa.Schema, text: bool) -> list[str]:
    wanted = ["example", "metrics", "gold", "gold_index", "choices"]
    wanted += [] if "metrics" in schema.names else _METRICS
    wanted += ["full_prompt", "specifics"] if text else []
    if text or _scored_by_likelihood(schema):
        wanted.append("predictions")
    return [name for name in wanted if name in schema.names]


def _scored_by_likelihood(schema: pa.Schema) -> bool:
    """Whether predictions are likelihoods: numbers, or pairs of them with what is greedy."""
    if "predictions" not in schema.names:
        return False
    kind = schema.field("predictions").type.value_type
    return bool(pa.types.is_list(kind) or pa.types.is_floating(kind))


def _flat_details(table: pa.RecordBatch, done: int, text: bool) -> Details:
    """lighteval <= 0.10. There is no id; rows are numbered, in the harness's order."""
    names, rows = table.schema.names, table.num_rows
    options, gold, gold_index = (
        [_listed(value) for value in table[name].to_pylist()] if name in names else [[]] * rows
        for name in ("choices", "gold", "gold_index")
    )
    predictions = table["predictions"].to_pylist() if "predictions" in names else []
    scored_by_likelihood = _scored_by_likelihood(table.schema)
    return Details(
        metrics=table["metrics"] if "metrics" in names else _metrics_struct(table),
        refs=[str(row) for row in range(done, done + rows)],
        queries=table["example"].to_pylist(),
        options=options,
        targets=[
            texts or [shown[index] for index in right if 0 <= index < len(shown)]
            for texts, shown, right in zip(gold, options, gold_index, strict=True)
        ],
        likelihoods=[[_listed(value)[0] for value in values or ()] for values in predictions]
        if scored_by_likelihood
        else [[]] * rows,
        prompts=table["full_prompt"].to_pylist() if text and "full_prompt" in names else None,
        responses=None if scored_by_likelihood or not text else predictions,
        extracted=table["specifics"].to_pylist() if text and "specifics" in names else None,
    )


def _listed(value: Any) -> list[Any]:
    """A list as it is, nothing as an empty one, and anything else as a list of itself."""
    return value if isinstance(value, list) else [] if value is None else [value]


def _metrics_struct(table: pa.RecordBatch) -> pa.StructArray:
    names = [name for name in _METRICS if name in table.schema.names]
    return pa.StructArray.from_arrays([table[name] for name in names], names)


def _struct_columns(text: bool) -> list[str]:
    wanted = ["doc.query", "doc.choices", "doc.gold_index", "doc.id", "metric"]
    wanted += ["model_response.logprobs"]
    return wanted + (
        ["model_response.input", "model_response.text", "doc.specific"] if text else []
    )


def _struct_details(table: pa.RecordBatch, _done: int, text: bool) -> Details:
    """lighteval >= 0.11."""
    doc, response = table["doc"], table["model_response"]
    shown = [options or [] for options in _field(doc, "choices")]
    likelihoods = [values or [] for values in _field(response, "logprobs")]
    targets = []
    for options, gold in zip(shown, _field(doc, "gold_index"), strict=True):
        right = gold if isinstance(gold, list) else [gold]
        targets.append([options[g] for g in right if g is not None and 0 <= g < len(options)])
    queries = _field(doc, "query")
    return Details(
        metrics=table["metric"],
        refs=[str(value) for value in _field(doc, "id")],
        queries=queries,
        options=shown,
        targets=targets,
        likelihoods=likelihoods,
        prompts=[
            sent or query for sent, query in zip(_field(response, "input"), queries, strict=True)
        ]
        if text
        else None,
        responses=_field(response, "text") if text else None,
        extracted=_field(doc, "specific") if text else None,
    )


def _columns(details: Details, how: ReadOptions) -> dict[str, Any]:
    """Turn details into Samples columns.

    The options belong to an item's content only where it was scored by their likelihood: elsewhere
    they are part of the query, and the flat layout does not store them.
    """
    by_likelihood = [
        len(values) == len(options) > 1
        for values, options in zip(details.likelihoods, details.options, strict=True)
    ]
    items = zip(details.queries, details.options, details.targets, by_likelihood, strict=True)
    columns: dict[str, Any] = {
        "item": [
            content_hash(query, [options if scored else [], targets]) if query else None
            for query, options, targets, scored in items
        ],
        "item_ref": details.refs,
        "k": [len(options) if len(options) > 1 else None for options in details.options],
        **_probabilities(details, by_likelihood),
    }
    if how.wording:
        columns["wording"] = [
            wording_hash(query, options, targets[0]) if query and len(targets) == 1 else None
            for query, options, targets in zip(
                details.queries, details.options, details.targets, strict=True
            )
        ]
    if how.text:
        columns["prompt"] = [_text(prompt) for prompt in details.prompts or details.queries]
        columns["target"] = [_text(targets) for targets in details.targets]
        responses = details.responses or [None] * len(details.refs)
        columns["response"] = [_text((texts or [None])[0]) for texts in responses]
        extracted = details.extracted or [None] * len(details.refs)
        columns["answer"] = [
            options[values.index(max(values))].strip() if scored else _extraction(specific)
            for values, options, scored, specific in zip(
                details.likelihoods, details.options, by_likelihood, extracted, strict=True
            )
        ]
    return columns


def _batch(
    run: Run,
    file: Path,
    repeat: int,
    metric: str,
    scores: pa.Array,
    columns: dict[str, Any],
    done: int,
) -> pa.RecordBatch:
    row_numbers = pa.array(range(done + 1, done + len(scores) + 1)).cast(pa.string())
    filled: dict[str, Any] = {
        **{name: pa.array(values, SCHEMA.field(name).type) for name, values in columns.items()},
        "repeat": pa.array([repeat] * len(scores), pa.int32()),
        "score": scores,
        "source": pc.binary_join_element_wise(file_name(file), row_numbers, ":"),
    }
    names = {"model": run.model, "run": run.stamp, "task": run.task, "metric": metric}
    filled |= {name: pa.repeat(text, len(scores)) for name, text in names.items()}
    if metric != "acc":  # the softmax of the sums belongs to the plain pick
        for name in ("gold_probability", *OPTION_COLUMNS):
            del filled[name]
    return complete(filled)


def _item_scores(metrics: pa.StructArray) -> Iterator[tuple[str, pa.Array | None]]:
    """Yield (metric, scores); None where it is not a number per item. NaN becomes null."""
    for index, field in enumerate(metrics.type):
        values = metrics.field(index)
        if pa.types.is_boolean(field.type) or pa.types.is_integer(field.type):
            values = values.cast(pa.float64())
        if pa.types.is_floating(values.type):
            scores = values.cast(pa.float64())
            if pc.any(pc.is_inf(scores)).as_py():
                raise ValueError(f"{field.name} holds infinity, which is not a score")
            yield field.name, pc.if_else(pc.is_nan(scores), None, scores)
        else:
            yield field.name, None


def _field(struct: pa.StructArray, name: str) -> list[Any]:
    index = struct.type.get_field_index(name)
    return [None] * len(struct) if index < 0 else struct.field(index).to_pylist()


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
    options = [
        softmax(values) if scored else None
        for values, scored in zip(details.likelihoods, by_likelihood, strict=True)
    ]
    right = [
        shown.index(targets[0]) if chances and len(targets) == 1 else None
        for chances, shown, targets in zip(options, details.options, details.targets, strict=True)
    ]
    gold = [
        chances[place] if chances and place is not None else None
        for chances, place in zip(options, right, strict=True)
    ]
    return {"gold_probability": gold, "option_probabilities": options, "right_option": right}
