"""lighteval: `details/<model>/<time>/details_<task>_<time>.parquet`, and a results file per run.

Two layouts: flat columns up to 0.10, the structs `doc`, `metric`, `model_response` from 0.11 on.
Columns are worked on whole, without a loop over rows but for the hashes; text columns are only
touched when text was asked for.
"""

from __future__ import annotations

import math
import re
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from forgetmap.errors import InputError
from forgetmap.readers.common import STAMP, Run, number_repeats, read_json
from forgetmap.samples import SCHEMA, THRESHOLD, Meta, Samples, content_hash, parquet_schema

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence
    from pathlib import Path

    from forgetmap.readers import ReadOptions


def sniff(path: Path) -> bool:
    """Look for details files by name."""
    return bool(_files(path))


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(path.rglob("details_*.parquet"))
    return [path] if re.match(r"details_.*\.parquet$", path.name) else []


def read(path: Path, how: ReadOptions) -> Samples:
    """Read all details files under the path."""
    meta = Meta(harness="lighteval")
    runs = [(_describe(file, meta), file) for file in _files(path)]
    numbered = number_repeats(runs, meta.warnings)

    def parts() -> Iterator[pa.RecordBatch]:
        for run, file, repeat in numbered:
            how.tick(file.stat().st_size)
            yield from _batches(run, file, repeat, how.text)

    return Samples.collect(parts(), meta)


def task_name(name: str) -> tuple[str, int | None]:
    """Split lighteval's task name into the task and its number of few-shot examples.

    Releases differ in whether the suite stands before it; the suite says nothing about the items.

    Example:
        >>> task_name("lighteval|gsm8k|5"), task_name("gsm8k|5"), task_name("gsm8k")
        (('gsm8k', 5), ('gsm8k', 5), ('gsm8k', None))
    """
    parts = name.split("|")
    shots = int(parts.pop()) if len(parts) > 1 and parts[-1].isdigit() else None
    return parts[-1], shots


def _describe(file: Path, meta: Meta) -> Run:
    found = STAMP.search(file.name)
    stamp = found[1] if found else ""
    name = re.sub(r"^details_", "", file.name[: found.start()] if found else file.stem)
    task, shots = task_name(name)
    folders = list(file.parents)
    details = next((folder for folder in folders if folder.name == "details"), None)
    inner = file.parent.relative_to(details) if details else None
    model = "/".join(inner.parts[:-1]) if inner and len(inner.parts) > 1 else file.parent.name
    results = None
    if details is not None:
        results = details.parent / "results" / model / f"results_{stamp}.json"
    seed: Hashable = None
    settings: dict[str, Any] = {}
    if results is not None and results.is_file():
        model, seed, settings, meta.version = _results(results, model)
    merged = meta.settings.setdefault(model, {})
    merged.update(settings)
    if shots is not None:
        merged.setdefault("few-shot examples", {})[task] = shots
    return Run(model, task, seed, stamp)


@cache
def _results(path: Path, folder: str) -> tuple[str, Any, dict[str, Any], str | None]:
    """Read model, seed and settings; their place moved between releases."""
    results = read_json(path)
    if not isinstance(results, dict):
        raise InputError(f"{path}: is not a lighteval results file")
    general = results.get("config_general") or {}
    config = general.get("model_config") or {}
    generation = general.get("generation_parameters") or config.get("generation_parameters") or {}
    model = general.get("model_name") or config.get("model_name") or folder
    seed = generation.get("seed")
    settings = {
        "harness version": general.get("lighteval_sha"),
        "generation": {name: value for name, value in generation.items() if name != "seed"} or None,
        "dtype": general.get("model_dtype") or config.get("dtype"),
        "chat template": general.get("use_chat_template", config.get("override_chat_template")),
        "system prompt": general.get("system_prompt", config.get("system_prompt")),
        "limit": general.get("max_samples"),
    }
    told = {
        name: repr(v) if isinstance(v, dict) else v for name, v in settings.items() if v is not None
    }
    return str(model), config.get("seed") if seed is None else seed, told, None


def _batches(run: Run, file: Path, repeat: int, text: bool) -> Iterator[pa.RecordBatch]:
    schema = parquet_schema(file)
    try:
        if "doc" in schema.names and "metric" in schema.names:
            columns = _struct_columns(file, text)
        elif "example" in schema.names and "metrics" in schema.names:
            columns = _flat_columns(file, schema, text)
        else:
            raise InputError(
                f"{file}: has neither the flat nor the struct columns of a lighteval details file"
            )
        metrics = columns.pop("metrics")
        rows = len(metrics)
        for metric, scores in _item_scores(metrics):
            yield _batch(run, file, repeat, metric, scores, columns, rows)
    except (pa.ArrowException, OSError, KeyError) as error:
        raise InputError(f"{file}: is damaged ({str(error).splitlines()[0]:.120})") from error


def _batch(
    run: Run,
    file: Path,
    repeat: int,
    metric: str,
    scores: pa.Array,
    columns: dict[str, Sequence[Any]],
    rows: int,
) -> pa.RecordBatch:
    filled: dict[str, Any] = {
        "model": [run.model] * rows,
        "run": [run.stamp] * rows,
        "task": [run.task] * rows,
        "repeat": [repeat] * rows,
        "metric": [metric] * rows,
        "score": scores,
        "correct": pc.greater_equal(scores, THRESHOLD),
        "status": pc.if_else(pc.is_null(scores), "unscored", "ok"),
        "source": [f"{file.name}:{row}" for row in range(1, rows + 1)],
        **columns,
    }
    if metric not in ("acc", "loglikelihood_acc"):
        filled.pop("gold_probability", None)
    if (truncated := filled.pop("truncated", None)) is not None:
        cut = pc.and_(pc.equal(filled["status"], "ok"), truncated)
        filled["status"] = pc.if_else(
            pc.and_(cut, pc.less(scores, THRESHOLD)), "truncated", filled["status"]
        )
    arrays = [_column(filled.get(field.name), field.type, rows) for field in SCHEMA]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _column(values: Any, kind: pa.DataType, rows: int) -> pa.Array:
    if values is None:
        return pa.nulls(rows, kind)
    return values.cast(kind) if isinstance(values, pa.Array) else pa.array(values, kind)


def _item_scores(metrics: pa.StructArray) -> Iterator[tuple[str, pa.Array]]:
    """Yield (metric, scores) for every metric that is a number per item; NaN becomes null."""
    for index, field in enumerate(metrics.type):
        values = metrics.field(index)
        if pa.types.is_boolean(field.type) or pa.types.is_integer(field.type):
            values = values.cast(pa.float64())
        if pa.types.is_floating(values.type):
            scores = values.cast(pa.float64())
            yield field.name, pc.if_else(pc.is_nan(scores), None, scores)


def _flat_columns(file: Path, schema: pa.Schema, text: bool) -> dict[str, Any]:
    """Columns of lighteval <= 0.10. There is no id; rows are numbered, in the harness's order."""
    wanted = ["example", "gold", "choices", "metrics", "truncated"]
    if text:
        wanted += ["full_prompt", "predictions", "specifics"]
    table = _load(file, [name for name in wanted if name in schema.names])
    questions = [str(value) for value in table["example"].to_pylist()]
    golds, choices = (_as_lists(table, name) for name in ("gold", "choices"))
    columns: dict[str, Any] = {
        "metrics": _whole(table["metrics"]),
        "item": [
            content_hash(question, options, gold)
            for question, options, gold in zip(questions, choices, golds, strict=True)
        ],
        "item_ref": [str(row) for row in range(len(questions))],
        "k": [len(options) if len(options) > 1 else None for options in choices],
    }
    if text:
        columns["prompt"] = _texts(table, "full_prompt")
        columns["target"] = [_joined(gold) for gold in golds]
        columns["response"] = [_joined(texts[:1]) for texts in _as_lists(table, "predictions")]
        columns["answer"] = _extracted(table, "specifics")
    return columns


def _struct_columns(file: Path, text: bool) -> dict[str, Any]:
    """Columns of lighteval >= 0.11."""
    wanted = ["doc.query", "doc.choices", "doc.gold_index", "doc.id", "metric"]
    wanted += ["model_response.logprobs"]
    if text:
        wanted += ["model_response.input", "model_response.text", "doc.specific"]
    table = _load(file, wanted)
    doc, response = _whole(table["doc"]), _whole(table["model_response"])
    questions = _field(doc, "query")
    choices = [options or [] for options in _field(doc, "choices")]
    golds = [gold if isinstance(gold, list) else [gold] for gold in _field(doc, "gold_index")]
    columns: dict[str, Any] = {
        "metrics": _whole(table["metric"]),
        "item": [
            content_hash(question, options, gold)
            for question, options, gold in zip(questions, choices, golds, strict=True)
        ],
        "item_ref": [str(value) for value in _field(doc, "id")],
        "k": [len(options) if len(options) > 1 else None for options in choices],
        "gold_probability": [
            _gold_probability(logprobs, options, gold)
            for logprobs, options, gold in zip(
                _field(response, "logprobs"), choices, golds, strict=True
            )
        ],
    }
    if text:
        columns["prompt"] = [_joined(value) for value in _field(response, "input")]
        columns["target"] = [
            _joined([options[g] for g in gold if g is not None and g < len(options)])
            for options, gold in zip(choices, golds, strict=True)
        ]
        columns["response"] = [_joined((texts or [])[:1]) for texts in _field(response, "text")]
        columns["answer"] = _extracted_struct(doc)
    return columns


def _load(file: Path, columns: list[str]) -> pa.Table:
    return pq.read_table(file, columns=columns, use_threads=False, partitioning=None)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _field(struct: pa.StructArray, name: str) -> list[Any]:
    index = struct.type.get_field_index(name)
    return [None] * len(struct) if index < 0 else struct.field(index).to_pylist()


def _as_lists(table: pa.Table, name: str) -> list[list[Any]]:
    if name not in table.column_names:
        return [[]] * table.num_rows
    return [
        value if isinstance(value, list) else [] if value is None else [value]
        for value in table[name].to_pylist()
    ]


def _texts(table: pa.Table, name: str) -> list[str | None]:
    if name not in table.column_names:
        return [None] * table.num_rows
    return [_joined(value) for value in table[name].to_pylist()]


def _joined(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, list):
        return "\n".join(str(part) for part in value) if value else None
    return str(value)


def _extracted(table: pa.Table, name: str) -> list[str | None]:
    """What the answer extraction found, where the metric keeps it."""
    if name not in table.column_names:
        return [None] * table.num_rows
    return [_prediction(specific) for specific in table[name].to_pylist()]


def _extracted_struct(doc: pa.StructArray) -> list[str | None]:
    return [_prediction(specific) for specific in _field(doc, "specific")]


def _prediction(specific: Any) -> str | None:
    found = specific.get("extracted_predictions") if isinstance(specific, dict) else None
    while isinstance(found, list) and found:
        found = found[0]
    return None if found is None or found == [] else str(found)


def _gold_probability(logprobs: Any, options: list[Any], gold: list[Any]) -> float | None:
    """Softmax probability of the right option, where there is one log-likelihood per option."""
    if not logprobs or len(options) < 2 or len(logprobs) != len(options) or len(gold) != 1:
        return None
    if gold[0] is None or not 0 <= gold[0] < len(options) or None in logprobs:
        return None
    top = max(logprobs)
    weights = [math.exp(value - top) for value in logprobs]
    return float(weights[gold[0]] / sum(weights))
