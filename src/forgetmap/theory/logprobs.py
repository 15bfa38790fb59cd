"""Read per-sequence log-probabilities of real models from JSONL or Parquet."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from forgetmap.base.errors import InputError
from forgetmap.base.parquet import damage_told, parquet_parts, parquet_schema
from forgetmap.readers.framework import ReadOptions, json_lines
from forgetmap.theory.arguments import Floats

__all__ = ["LogProbs", "read_logprobs"]

SOURCES = ("old", "new", "trained")
_NEEDED = ("logp_old", "logp_new", "source")


class LogProbs(NamedTuple):
    """Log-ratios logp_new - logp_old of responses, by where they were sampled."""

    old: Floats
    new: Floats
    trained: Floats
    """Responses of the trained policy; may be empty."""
    mean_length: float | None
    """Mean tokens of the old and new responses, where every one of them has a length."""
    warnings: list[str]


def read_logprobs(path: str | Path) -> LogProbs:
    """Read a table with the columns logp_old, logp_new, source and, if known, length.

    `source` says which policy wrote the response: old, new or trained. `length` is its number of
    tokens.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "scores.jsonl"
        >>> _ = file.write_text(
        ...     '{"logp_old": -3, "logp_new": -7, "source": "old"}\\n' * 2
        ...     + '{"logp_old": -9, "logp_new": -4, "source": "new"}\\n' * 2
        ... )
        >>> read_logprobs(file).old.tolist(), read_logprobs(file).mean_length
        ([-4.0, -4.0], None)
    """
    file = Path(path)
    warnings: list[str] = []
    ratios: dict[str, list[float]] = {source: [] for source in SOURCES}
    lengths: list[float | None] = []
    for row, record in _records(file, warnings):
        try:
            source, ratio, length = _row(record)
        except ValueError as error:
            raise InputError(f"{file} row {row}: {error}") from error
        ratios[source].append(ratio)
        if source != "trained":
            lengths.append(length)
    for source in ("old", "new"):
        if len(ratios[source]) < 2:
            raise InputError(
                f"{file}: {len(ratios[source])} rows with source {source}; at least two responses "
                "sampled from each reference policy are needed"
            )
    known = [length for length in lengths if length is not None]
    mean_length = float(np.mean(known)) if len(known) == len(lengths) else None
    old, new, trained = (np.array(ratios[source], dtype=np.float64) for source in SOURCES)
    return LogProbs(old, new, trained, mean_length, warnings)


def _records(file: Path, warnings: list[str]) -> Iterable[tuple[int, dict[str, Any]]]:
    suffix = file.suffix.lower()
    if suffix in (".jsonl", ".ndjson"):
        return json_lines(file, ReadOptions(), warnings)
    if suffix == ".parquet":
        return _parquet(file)
    raise InputError(f"{file}: the name must end in .jsonl or .parquet")


def _parquet(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    present = parquet_schema(file).names
    if missing := [name for name in _NEEDED if name not in present]:
        raise InputError(f"{file}: no column {missing[0]!r}; needed are {', '.join(_NEEDED)}")
    columns = [name for name in (*_NEEDED, "length") if name in present]
    row = 0
    with damage_told(file):
        for batch in parquet_parts(file, columns, rows=65536):
            for record in batch.to_pylist():
                row += 1
                yield row, record


def _row(record: dict[str, Any]) -> tuple[str, float, float | None]:
    source = record.get("source")
    if source not in SOURCES:
        raise ValueError(f"source must be old, new or trained; got {source!r:.40}")
    ratio = _number(record, "logp_new") - _number(record, "logp_old")
    if record.get("length") is None:
        return source, ratio, None
    length = _number(record, "length", most=math.inf)
    if length <= 0:
        raise ValueError(f"length must be positive; got {length:g}")
    return source, ratio, length


def _number(record: dict[str, Any], name: str, most: float = 1e-6) -> float:
    value = record.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number; got {value!r:.40}")
    if value > most:
        raise ValueError(f"{name} is {value:g}, but a log-probability is never above 0")
    return float(value)
