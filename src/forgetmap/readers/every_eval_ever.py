"""Every Eval Ever, schema 0.x: `<uuid>.json` (aggregate) and `<uuid>_samples.jsonl` beside it.

One line is one sample under one metric. The aggregate names the metrics, the harness and the
settings. `write` turns any Samples into this form; what the schema has no field for (the item's
hash, the repeat, the status, ...) travels as JSON text in `metadata.forgetmap` of each line, and
the settings in `eval_library.additional_details.forgetmap_settings`.
"""

from __future__ import annotations

import hashlib
import re
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from forgetmap.base.errors import InputError
from forgetmap.base.files import find_files, head, replacing
from forgetmap.base.json import first_record, parse_json, read_json
from forgetmap.base.values import file_name, number, optional_text
from forgetmap.readers.framework import (
    ReadOptions,
    json_lines,
    malformed,
    note_count,
    note_settings,
    stored_options,
)
from forgetmap.samples.identity import content_hash
from forgetmap.samples.options import OPTION_COLUMNS
from forgetmap.samples.table import STATUSES, THRESHOLD, Meta, Samples

SCHEMA_VERSION = "0.3.0"
"""What is written, and the newest minor version known."""

_ENDING = "_samples.jsonl"
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.json", re.IGNORECASE)
_RUN_STEP = 1_000_000
"""Repeats within one file are numbered below it, files of the same task in multiples of it."""
_KEPT = (
    *("run", "repeat", "metric", "status", "k", "cluster"),
    *("gold_probability", *OPTION_COLUMNS),
)


def sniff(path: Path) -> bool:
    """Look at the first line of a samples file, or the head of an aggregate."""
    if not path.is_dir():
        return _is_aggregate(path) if path.suffix == ".json" else _is_samples(path)
    if any(_is_samples(file) for file in find_files(path, f"*{_ENDING}")[:3]):
        return True
    aggregates = [file for file in find_files(path, "*.json") if _UUID.fullmatch(file.name)]
    return any(_is_aggregate(file) for file in aggregates[:3])


def _is_samples(path: Path) -> bool:
    wanted = {"schema_version", "evaluation_id", "sample_id", "evaluation_name", "evaluation"}
    return path.suffix == ".jsonl" and wanted <= first_record(path).keys()


def _is_aggregate(path: Path) -> bool:
    start = head(path, 2**16)
    names = (b'"schema_version"', b'"evaluation_id"', b'"source_metadata"')
    return start.startswith(b"{") and all(name in start for name in names)


@dataclass(frozen=True)
class _Aggregate:
    """What the aggregate says about its samples."""

    evaluation_id: str | None = None
    order: tuple[str, str] = ("", "")
    harness: str | None = None
    version: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, str] = field(default_factory=dict)
    """By `evaluation_result_id`: the name of the metric."""
    unnamed: dict[str, str] = field(default_factory=dict)
    """By evaluation name, where its one result has no id: the name of the metric."""
    lower: frozenset[str] = frozenset()
    """Metrics of which less is better."""
    rows: Any = None
    """How many lines the samples file has, by its own account."""


def read(path: Path, how: ReadOptions) -> Samples:
    """Read all samples files under the path; an aggregate stands for the one beside it."""
    meta = Meta(harness="every_eval_ever")
    files = _samples_files(path, meta.warnings)
    abouts = {file: _read_aggregate(file, how, meta.warnings) for file in files}
    names = {about.harness for about in abouts.values() if about.harness}
    if len(names) == 1:
        meta.harness = names.pop()
        meta.version = next((about.version for about in abouts.values() if about.version), None)
    files.sort(key=lambda file: (abouts[file].order, str(file)))

    def rows() -> Iterator[dict[str, Any]]:
        runs: dict[tuple[str, ...], list[Path]] = {}
        for file in files:
            yield from _rows(file, abouts[file], runs, how, meta)

    return Samples.from_rows(rows(), meta)


def _samples_files(path: Path, warnings: list[str]) -> list[Path]:
    if not path.is_dir():
        file = path if path.suffix == ".jsonl" else path.with_name(f"{path.stem}{_ENDING}")
        if not file.is_file():
            raise InputError(f"{path}: holds totals only; {file.name} with the samples is not here")
        return [file]
    files = find_files(path, f"*{_ENDING}")
    there = {file.with_name(f"{file.name.removesuffix(_ENDING)}.json") for file in files}
    alone = [
        file
        for file in find_files(path, "*.json")
        if file not in there and _UUID.fullmatch(file.name) and _is_aggregate(file)
    ]
    if not files:
        raise InputError(f"{path}: holds totals only, no *{_ENDING} with the samples")
    if alone:
        warnings.append(f"{len(alone)} evaluations come without samples and were left out")
    return files


def _check_version(version: object, where: str, warnings: list[str]) -> None:
    known = re.fullmatch(r"v?(\d{1,4})\.(\d{1,4})(\..*)?", str(version))
    if known is None or int(known[1]) > 0:
        raise InputError(
            f"{where}: has schema version {version!r:.40}; this forgetmap knows Every Eval Ever 0.x"
            f" up to {SCHEMA_VERSION} (a newer forgetmap may know it)"
        )
    if int(known[2]) > int(SCHEMA_VERSION.split(".")[1]):
        newer = f"schema version {version} is newer than {SCHEMA_VERSION}; read as {SCHEMA_VERSION}"
        if newer not in warnings:
            warnings.append(newer)


def _read_aggregate(samples: Path, how: ReadOptions, warnings: list[str]) -> _Aggregate:
    path = samples.with_name(f"{samples.name.removesuffix(_ENDING)}.json")
    if not samples.name.endswith(_ENDING) or not path.is_file():
        warnings.append(f"{file_name(samples)}: no aggregate beside it, so no settings are known")
        return _Aggregate()
    how.tally.files.add(path)
    with malformed(path, what="not an Every Eval Ever aggregate"):
        aggregate = read_json(path)
        _check_version(aggregate["schema_version"], str(path), warnings)
        return _parse_aggregate(aggregate)


def _parse_aggregate(aggregate: dict[str, Any]) -> _Aggregate:
    library = aggregate.get("eval_library") or {}
    results = [
        (str(result["evaluation_name"]), _metric_name(result), result)
        for result in aggregate["evaluation_results"]
    ]
    per_task = Counter(task for task, _, _ in results)
    per_name = Counter((task, name) for task, name, _ in results)
    metrics, unnamed, lower = {}, {}, set()
    for task, name, result in results:
        key = result.get("evaluation_result_id")
        metric = name if per_name[task, name] == 1 or key is None else str(key)
        if key is not None:
            metrics[str(key)] = metric
        elif per_task[task] == 1:
            unnamed[task] = metric
        if result["metric_config"].get("lower_is_better"):
            lower.add(metric)
    version = library.get("version")
    return _Aggregate(
        evaluation_id=str(aggregate["evaluation_id"]),
        order=(
            str(aggregate.get("evaluation_timestamp") or ""),
            str(aggregate.get("retrieved_timestamp") or ""),
        ),
        harness=optional_text(library.get("name") or None),
        version=None if version == "unknown" else optional_text(version),
        settings=_settings(library, aggregate["evaluation_results"]),
        metrics=metrics,
        unnamed=unnamed,
        lower=frozenset(lower),
        rows=(aggregate.get("detailed_evaluation_results") or {}).get("total_rows"),
    )


def _metric_name(result: dict[str, Any]) -> str:
    config = result["metric_config"]
    name = config.get("metric_name") or config.get("metric_id")
    return str(name or result.get("evaluation_result_id") or "score")


def _settings(library: dict[str, Any], results: list[dict[str, Any]]) -> dict[str, Any]:
    """The settings that `write` kept; otherwise those that the schema has fields for."""
    stored = (library.get("additional_details") or {}).get("forgetmap_settings")
    if stored is not None:
        return dict(parse_json(stored.encode()))
    meta = Meta()
    version = str(library.get("version") or "").replace("unknown", "")
    note_settings(meta, "", {"harness version": version})
    for result in results:
        config = result.get("generation_config") or {}
        generation = dict(config.get("generation_args") or {})
        generation.pop("execution_command", None)  # names the model: never the same
        shots = (config.get("additional_details") or {}).get("num_fewshot")
        settings = {"generation": generation, "few-shot examples": shots}
        note_settings(meta, "", settings, str(result["evaluation_name"]))
    return meta.settings[""]


def _rows(
    file: Path,
    about: _Aggregate,
    runs: dict[tuple[str, ...], list[Path]],
    how: ReadOptions,
    meta: Meta,
) -> Iterator[dict[str, Any]]:
    seen: Counter[int] = Counter()
    left_out: Counter[str] = Counter()
    lines = 0
    for line, record in json_lines(file, how, meta.warnings):
        with malformed(file, line, "not an Every Eval Ever sample"):
            _check_version(record["schema_version"], f"{file}:{line}", meta.warnings)
            if about.evaluation_id not in (None, record["evaluation_id"]):
                raise ValueError("its evaluation_id is not that of the aggregate beside it")
            row = _row(record, about, how.text)
            lines += 1
            if row.pop("lower"):
                left_out[row["metric"]] += 1
                continue
            if row["repeat"] is None:
                key = hash((row["task"], row["metric"], row["item"] or row["item_ref"]))
                row["repeat"] = seen[key]
                seen[key] += 1
        same = runs.setdefault((row["model"], row["task"], row["metric"]), [])
        if file not in same:
            same.append(file)
            note_settings(meta, row["model"], about.settings)
        row["repeat"] += _RUN_STEP * same.index(file)
        if row["repeat"] >= 2**31:
            raise InputError(f"{file}:{line}: too many runs or repeats of {row['task']}")
        yield {"run": file_name(file).removesuffix(_ENDING), "source": f"{file.name}:{line}", **row}
    how.tally.records += lines
    how.tally.left_out += left_out.total()
    note_count(file_name(file), about.rows, lines, meta.warnings)
    meta.warnings.extend(
        f"metric {metric!r}: less is better, so it does not score right answers; "
        f"its {count} lines were left out"
        for metric, count in sorted(left_out.items())
    )


def _row(record: dict[str, Any], about: _Aggregate, text: bool) -> dict[str, Any]:
    given, metadata = record["input"], record.get("metadata") or {}
    task, result = _text(record["evaluation_name"]), record.get("evaluation_result_id")
    metric = about.metrics.get(str(result)) or str(result or about.unnamed.get(task, "score"))
    lower, filtered = metric in about.lower, metadata.get("filter")
    if filtered and task.endswith(f"/{filtered}"):  # lm-eval's filters: metrics, not tasks
        task, metric = task.removesuffix(f"/{filtered}"), f"{metric},{filtered}"
    row: dict[str, Any] = {
        "model": _text(record["model_id"]),
        "task": task,
        "lower": lower,
        "item": _item(given, record, metadata),
        "item_ref": _text(record["sample_id"]),
        "metric": metric,
        **_score(record["evaluation"]),
        "k": _options(given),
        "repeat": int(str(metadata["epoch"])) - 1 if metadata.get("epoch") else None,
    }
    if row["repeat"] is not None and not 0 <= row["repeat"] < _RUN_STEP:
        raise ValueError(f"epoch {metadata['epoch']!r:.20} is not counted from 1")
    if record.get("error"):
        row |= {"score": None, "status": "error"}
    elif result is None and about.metrics:  # points at no result: the score is a filler
        row |= {"score": None, "status": "unscored"}
    if row["score"] not in (0.0, 1.0):  # a degree, not a pick among k options
        row["k"] = None
    if "forgetmap" in metadata:
        row |= _carried(parse_json(metadata["forgetmap"].encode()))
    if text:
        row |= _texts(given, record)
    return row


def _score(evaluation: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(evaluation["is_correct"], bool):
        raise ValueError("is_correct must be true or false")
    if isinstance(evaluation["score"], str):
        raise ValueError("score must be a number")
    return {"score": number(evaluation["score"])}


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} is not text")
    return value


def _item(given: dict[str, Any], record: dict[str, Any], metadata: dict[str, Any]) -> int | None:
    """Hash the content; where the converter from lm-eval kept the document's hash, by that.

    The raw input of such a log is the prompt after templating, which differs by design.
    """
    if metadata.get("doc_hash"):
        return content_hash(_text(metadata["doc_hash"]), _text(metadata.get("target_hash", "")))
    raw, reference = _text(given["raw"]), [_text(part) for part in given["reference"]]
    if raw:
        return content_hash(raw, given.get("choices") or [], reference)
    return content_hash(_text(record["sample_hash"])) if record.get("sample_hash") else None


def _options(given: dict[str, Any]) -> int | None:
    """Count the choices; a list of nothing but right answers is not a list of choices."""
    choices = given.get("choices") or []
    if len(choices) < 2 or set(choices) <= set(given["reference"]):
        return None
    return len(choices)


def _carried(stored: dict[str, Any]) -> dict[str, Any]:
    """What `write` kept, checked as any other input."""
    row: dict[str, Any] = {name: stored.get(name) for name in _KEPT}
    row |= stored_options(*(row[name] for name in OPTION_COLUMNS))
    row["item"] = int(stored["item"], 16) if stored.get("item") else None
    row["prompt_hash"] = int(stored["prompt_hash"], 16) if stored.get("prompt_hash") else None
    whole = isinstance(row["repeat"], int) and 0 <= row["repeat"] < 2**31
    if not whole or row["status"] not in STATUSES or not isinstance(row["metric"], str):
        raise ValueError("metadata.forgetmap is not what forgetmap writes")
    if row["status"] in ("error", "unscored"):
        row["score"] = None
    return row


def _texts(given: dict[str, Any], record: dict[str, Any]) -> dict[str, Any]:
    reference = given["reference"]
    answers = [
        part["extracted_value"]
        for part in record.get("answer_attribution") or []
        if part.get("is_terminal", True)
    ]
    said = (record.get("output") or {}).get("raw") or [
        message.get("content")
        for message in reversed(record.get("messages") or [])
        if message.get("role") == "assistant"
    ]
    target = reference[0] if len(reference) == 1 else orjson.dumps(reference).decode()
    return {
        "prompt": given.get("formatted") or given["raw"] or None,
        "target": target if reference else None,
        "answer": str(answers[-1]) if answers else None,
        "response": optional_text(said[0]) if said else None,
    }


def write(samples: Samples, path: str | Path, now: float | None = None) -> list[Path]:
    """Write Samples as Every Eval Ever under the folder `path`; returns the aggregates written.

    Each model gets `data/<harness>/<developer>/<model>/<uuid>.json` and its samples. The uuid is
    made from the scores, so that writing the same log again replaces the files.
    """
    root = Path(path)
    if root.exists() and not root.is_dir():
        raise InputError(f"{path}: is a file; name a folder for the Every Eval Ever files")
    stamp = str(int(time.time() if now is None else now))
    return [_write_model(samples.only(model), model, root, stamp) for model in samples.models]


def _write_model(samples: Samples, model: str, root: Path, stamp: str) -> Path:
    results, name = _results(samples, model)
    developer, _, short = model.rpartition("/")
    parts = (samples.meta.harness, developer or "unknown", short)
    relative = "/".join(["data", *(re.sub(r"[^\w.-]|^\.+", "_", part) or "_" for part in parts)])
    folder = root / relative
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror})") from error
    link = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"{samples.meta.harness}/{model}/{stamp}",
    }
    digest, total = hashlib.sha256(), 0
    with replacing(folder / f"{name}{_ENDING}") as temporary, temporary.open("wb") as out:
        for batch in samples.to_batches():
            for row in batch.to_pylist():
                total += 1
                line = orjson.dumps({**link, **_record(row, total)}) + b"\n"
                digest.update(line)
                out.write(line)
    settings = samples.meta.settings.get(model, {})
    aggregate = {
        **link,
        "retrieved_timestamp": stamp,
        "source_metadata": {
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {
            "name": samples.meta.harness,
            "version": samples.meta.version or "unknown",
            "additional_details": {
                "forgetmap_settings": orjson.dumps(settings, default=str).decode()
            },
        },
        "model_info": {
            "name": model,
            "id": model,
            "developer": developer or "unknown",
            "additional_details": {"deployment_type": "unknown", "model_availability": "unknown"},
        },
        "evaluation_results": results,
        "detailed_evaluation_results": {
            "format": "jsonl",
            "file_path": f"{relative}/{name}{_ENDING}",
            "hash_algorithm": "sha256",
            "checksum": digest.hexdigest(),
            "total_rows": total,
        },
    }
    target = folder / f"{name}.json"
    with replacing(target) as temporary:
        temporary.write_bytes(orjson.dumps(aggregate, option=orjson.OPT_INDENT_2) + b"\n")
    return target


def _results(samples: Samples, model: str) -> tuple[list[dict[str, Any]], uuid.UUID]:
    """Average each metric of each task; and name the files by all there is to score."""
    digest = hashlib.sha256(f"{samples.meta.harness} {model}".encode())
    by_metric: dict[tuple[str, str], list[float]] = {}  # count, sum, least, most
    columns = ["task", "metric", "score", "item", "item_ref", "repeat"]
    for batch in samples.to_batches(columns):
        for row in batch.to_pylist():
            digest.update(repr(row).encode())
            score = row["score"]
            if score is None:
                continue
            sums = by_metric.setdefault((row["task"], row["metric"]), [0, 0.0, score, score])
            sums[:] = sums[0] + 1, sums[1] + score, min(sums[2], score), max(sums[3], score)
    results = [
        {
            "evaluation_result_id": f"{task}:{metric}",
            "evaluation_name": task,
            "source_data": {"dataset_name": task, "source_type": "other"},
            "metric_config": {
                "metric_name": metric,
                "lower_is_better": False,
                "score_type": "continuous",
                "min_score": min(0.0, least),
                "max_score": max(1.0, most),
            },
            "score_details": {
                "score": total / count,
                "details": {"samples": str(int(count))},
            },
        }
        for (task, metric), (count, total, least, most) in by_metric.items()
    ]
    return results, uuid.UUID(bytes=digest.digest()[:16], version=4)


def _record(row: dict[str, Any], total: int) -> dict[str, Any]:
    reference = [] if row["target"] is None else [row["target"]]
    kept = {name: row[name] for name in _KEPT if row[name] is not None}
    for name in ("item", "prompt_hash"):
        if row[name] is not None:
            kept[name] = f"{row[name]:016x}"
    raw = row["prompt"] or ""
    hashed = orjson.dumps({"raw": raw, "reference": reference}, option=orjson.OPT_SORT_KEYS)
    no_score = row["score"] is None
    record: dict[str, Any] = {
        "model_id": row["model"],
        "evaluation_name": row["task"],
        "evaluation_result_id": f"{row['task']}:{row['metric']}",
        "sample_id": row["item_ref"] or kept.get("item") or str(total),
        "sample_hash": hashlib.sha256(hashed).hexdigest() if raw else None,
        "interaction_type": "single_turn",
        "input": {"raw": raw, "reference": reference},
        "output": {"raw": [] if row["response"] is None else [row["response"]]},
        "answer_attribution": [],
        # the schema wants a number even where there is none: `error` says that it means nothing
        "evaluation": {
            "score": 0.0 if no_score else row["score"],
            "is_correct": not no_score and row["score"] >= THRESHOLD,
        },
        "metadata": {"forgetmap": orjson.dumps(kept).decode()},
    }
    if no_score:
        record["error"] = f"no score ({row['status']})"
    if row["answer"] is not None:
        record["answer_attribution"] = [
            {
                "turn_idx": 0,
                "source": "output.raw",
                "extracted_value": row["answer"],
                "extraction_method": row["metric"],
                "is_terminal": True,
            }
        ]
    return record
