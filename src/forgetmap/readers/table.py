"""Any CSV, JSONL or Parquet table with one row per answer, read by its column names.

The columns are guessed from their names, the guess is told, and flags override it
(`--column score=is_right`).
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from forgetmap.errors import InputError
from forgetmap.readers.common import json_lines, number, parse_json
from forgetmap.samples import Meta, Samples, batches, content_hash, parquet_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from forgetmap.readers import ReadOptions

SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")

NAMES: dict[str, tuple[str, ...]] = {
    "question": ("question", "prompt", "input", "doc"),
    "choices": ("choices", "options"),
    "id": ("id", "item", "doc_id", "item_ref"),
    "task": ("task",),
    "score": ("correct", "score", "acc", "is_correct", "exact_match"),
    "target": ("target", "gold"),
    "answer": ("answer", "extracted"),
    "response": ("response", "output", "prediction"),
    "repeat": ("repeat", "seed", "epoch"),
    "k": ("k",),
    "model": ("model",),
    "cluster": ("cluster",),
    "metric": ("metric",),
    "gold_probability": ("gold_probability",),
}
"""What forgetmap needs -> the column names that are taken for it, in order of preference."""

_INT32_MAX = 2**31 - 1


def sniff(path: Path) -> bool:
    """Go by the suffix; what is inside is checked when it is read."""
    return bool(_files(path))


def _files(path: Path) -> list[Path]:
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return [file for file in files if file.is_file() and file.suffix.lower() in SUFFIXES]


def read(path: Path, how: ReadOptions) -> Samples:
    """Read one table, or all tables of a folder."""
    unknown = sorted(set(how.columns) - set(NAMES))
    if unknown:
        raise InputError(f"--column {unknown[0]}=...: unknown; known are {', '.join(NAMES)}")
    meta = Meta(harness="table")

    def rows() -> Iterator[dict[str, Any]]:
        for file in _files(path):
            yield from _rows(file, how, meta.warnings)

    return Samples.collect(batches(rows()), meta)


def _rows(file: Path, how: ReadOptions, warnings: list[str]) -> Iterator[dict[str, Any]]:
    columns: dict[str, str] = {}
    repeats: dict[str, int] = {}
    for row, record in _records(file, how, warnings):
        if not columns:
            columns = match_columns(record.keys(), how.columns, file)
            told = ", ".join(f"{name} from {column!r}" for name, column in columns.items())
            warnings.append(f"{file.name}: read {told}")
            if not {"question", "id"} & columns.keys():
                warnings.append(f"{file.name}: no column names the item; rows pair by their number")
        value = {name: record.get(column) for name, column in columns.items()}
        try:
            yield _sample(value, file, row, repeats, how.text)
        except (ValueError, TypeError) as error:
            raise InputError(f"{file} row {row}: {error}") from error


def match_columns(
    present: Iterable[str], given: Mapping[str, str], where: object = "table"
) -> dict[str, str]:
    """Match what forgetmap needs to a table's columns.

    Example:
        >>> match_columns(["prompt", "gold", "is_correct"], {})
        {'question': 'prompt', 'score': 'is_correct', 'target': 'gold'}
    """
    names = list(present)
    by_lower = {name.lower(): name for name in reversed(names)}
    columns = {}
    for need, candidates in NAMES.items():
        if need in given:
            if given[need] not in names:
                raise InputError(
                    f"{where}: no column {given[need]!r}; its columns are {', '.join(names)}"
                )
            columns[need] = given[need]
            continue
        found = [by_lower[name] for name in candidates if name in by_lower]
        if found and found[0] not in given.values():
            columns[need] = found[0]
    if "score" not in columns:
        raise InputError(
            f"{where}: no column says what was right (columns: {', '.join(names) or 'none'}); "
            "name it with --column score=NAME"
        )
    return columns


def _sample(
    value: dict[str, Any], file: Path, row: int, repeats: dict[str, int], text: bool
) -> dict[str, Any]:
    try:
        score = number(value["score"])
    except ValueError as error:
        raise ValueError(f"score {value['score']!r:.40} is not a number") from error
    question, choices, target = (value.get(name) for name in ("question", "choices", "target"))
    if isinstance(choices, str) and choices.lstrip().startswith("["):
        choices = parse_json(choices.encode())
    k = number(value.get("k")) if "k" in value else None
    if k is None and isinstance(choices, list):
        k = len(choices)
    has_content = question not in (None, "")
    sample: dict[str, Any] = {
        "model": str(value.get("model") or file.stem),
        "run": file.name,
        "task": str(value.get("task") or "all"),
        "item": content_hash(question, choices or "", target or "") if has_content else None,
        "item_ref": str(value["id"]) if value.get("id") not in (None, "") else str(row),
        "repeat": _repeat(value.get("repeat"), repeats),
        "metric": str(value.get("metric") or "score"),
        "score": score,
        "k": int(k) if k is not None and k > 1 else None,
        "gold_probability": number(value.get("gold_probability")),
        "cluster": None if value.get("cluster") in (None, "") else str(value["cluster"]),
        "source": f"{file.name}:{row}",
    }
    if text:
        sample["prompt"] = _text(question)
        sample |= {name: _text(value.get(name)) for name in ("target", "answer", "response")}
    return sample


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _repeat(value: Any, seen: dict[str, int]) -> int:
    """Keep a whole number as it is, so that seeds agree between logs; number anything else."""
    if value in (None, ""):
        return 0
    try:
        whole = int(value)
    except ValueError:
        whole = -1
    if 0 <= whole <= _INT32_MAX:
        return whole
    return seen.setdefault(str(value), len(seen))


def _records(
    file: Path, how: ReadOptions, warnings: list[str]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (row number from 1, values) of one table."""
    suffix = file.suffix.lower()
    if suffix in (".jsonl", ".ndjson"):
        yield from json_lines(file, how, warnings)
        return
    stream = _parquet(file) if suffix == ".parquet" else _csv(file)
    row = 0
    for batch in stream:
        how.tick(batch.nbytes)
        for record in batch.to_pylist():
            row += 1
            yield row, record


def _parquet(file: Path) -> Iterator[pa.RecordBatch]:
    parquet_schema(file)
    try:
        yield from pq.ParquetFile(file).iter_batches(8192)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{file}: is damaged ({str(error).splitlines()[0]:.120})") from error


def _csv(file: Path) -> Iterator[pa.RecordBatch]:
    """Stream a CSV as text; DuckDB finds delimiter and quoting, and knows bad rows by number."""
    import duckdb

    _refuse_binary(file)
    with closing(duckdb.connect()) as connection:
        try:
            query = "SELECT * FROM read_csv($file, all_varchar = true, header = true)"
            yield from connection.sql(query, params={"file": str(file)}).to_arrow_reader(8192)
        except duckdb.Error as error:
            reason = next(iter(str(error).splitlines()), "")
            raise InputError(f"{file}: is not a readable CSV table ({reason:.160})") from error


def _refuse_binary(file: Path) -> None:
    with file.open("rb") as stream:
        head = stream.read(65536)
    if b"\x00" in head:
        raise InputError(f"{file}: holds zero bytes; it is not UTF-8 text (save it as UTF-8)")
