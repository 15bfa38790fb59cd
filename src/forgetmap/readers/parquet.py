"""forgetmap's own Parquet: Samples written by `forgetmap convert` or `Samples.write`.

Rows are read when they are needed. The statistics in the footer say whether a value is out of its
bounds, without a look at the rows.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow.parquet as pq

from forgetmap.base.errors import InputError
from forgetmap.base.parquet import parquet_schema
from forgetmap.readers.framework import ReadOptions
from forgetmap.samples.table import SCHEMA, Samples

_BOUNDS = {
    "score": (-sys.float_info.max, sys.float_info.max),
    "gold_probability": (0.0, 1.0),
    "repeat": (0, 2**31 - 1),
    "k": (2, 2**31 - 1),
}
_FILLED = {field.name for field in SCHEMA if not field.nullable}


def sniff(path: Path) -> bool:
    """Tell a Samples file from other Parquet by its metadata."""
    if not path.is_file() or path.suffix != ".parquet":
        return False
    try:
        return b"forgetmap" in (parquet_schema(path).metadata or {})
    except (InputError, UnicodeError):  # a name that is not UTF-8 cannot be opened
        return False


def read(path: Path, how: ReadOptions) -> Samples:  # noqa: ARG001 - every reader takes it
    """Open the file; rows are read when they are needed, and only the columns asked for."""
    samples = Samples.read(path)
    footer = pq.read_metadata(path)
    names = [footer.schema.column(index).path for index in range(footer.num_columns)]
    checked = [(index, name) for index, name in enumerate(names) if name in {*_BOUNDS, *_FILLED}]
    for group in map(footer.row_group, range(footer.num_row_groups)):
        for index, name in checked:
            if why := _impossible(name, group.column(index).statistics):
                raise InputError(f"{path}: the column {name!r} {why}; convert it again")
    return samples


def _impossible(name: str, statistics: pq.Statistics | None) -> str | None:
    """Say what is wrong with a column; None if nothing is, or if the file has no statistics."""
    if statistics is None:
        return None
    if name in _FILLED and statistics.has_null_count and statistics.null_count:
        return f"lacks {statistics.null_count} values"
    if name in _BOUNDS and statistics.num_values:
        if not statistics.has_min_max:
            return "holds nothing but NaN"
        low, high = _BOUNDS[name]
        if not low <= statistics.min <= statistics.max <= high:
            return f"holds values from {statistics.min:g} to {statistics.max:g}"
    return None
