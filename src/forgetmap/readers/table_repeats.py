"""Repeats in plain tables: seeds of any kind get numbers, and so do rows of one item."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from forgetmap.base.database import plain_path, quoted
from forgetmap.samples.table import BATCH_ROWS, SCHEMA, Samples

_NAMED_REPEATS = 2**30
"""Seeds that are whole numbers below it number their repeat; all others are numbered from it on."""
_SAME = ("model", "task", "metric", "item", "item_ref")
"""Rows that agree in these tell of one item."""


class Repeats:
    """Numbers for the seeds of one table: no two seeds get the same one.

    A small whole number stays as it is; anything else is numbered in the order of the rows.

    Example:
        >>> repeats = Repeats()
        >>> [repeats.number(seed) for seed in (0, "7", 7.0, None)]
        [0, 7, 7, 1073741824]
        >>> [repeats.number(seed) - 2**30 for seed in (0.1, "run-a", 3_000_000_000, "0.10")]
        [1, 2, 3, 1]
    """

    def __init__(self) -> None:
        self._named: dict[int | str, int] = {}
        self._zero: int | str | None = None
        """Which seed is numbered 0: the number itself, or that there is none."""

    def number(self, value: Any) -> int:
        """The number of a seed."""
        if value is None and self._zero == "":  # as in most tables
            return 0
        seed = _seed(value)
        if seed in (0, ""):
            self._zero = seed if self._zero is None else self._zero
            if seed == self._zero:
                return 0
        elif isinstance(seed, int) and 0 < seed < _NAMED_REPEATS:
            return seed
        return _NAMED_REPEATS + self._named.setdefault(seed, len(self._named))


def _seed(value: Any) -> int | str:
    """A seed as one value, whether the table has types or not: 7, "7" and 7.0 are the same."""
    if value is None or isinstance(value, bool | int):
        return "" if value is None else str(value) if isinstance(value, bool) else value
    try:
        found = float(value)
        if not found.is_integer():
            return str(found)
        return int(found) if abs(found) < 2**53 else int(value)  # which keeps all its digits
    except (ValueError, TypeError, OverflowError):
        return str(value)


def numbered(samples: Samples, connection: duckdb.DuckDBPyConnection) -> Samples:
    """Number the rows of one item as repeats, in a table that does not say which is which.

    The numbers go by score and text, so the order of the rows cannot matter.
    """
    source = "rows"
    if isinstance(samples.data, Path):
        source = f"read_parquet({quoted(plain_path(samples.data))})"
    else:
        connection.register("rows", samples.data)
    key = "item" if samples.null_count("item") == 0 else "coalesce(item, hash(item_ref))"
    if not _again(connection, f"SELECT {key} FROM {source}"):
        return samples  # the plain case, in one column
    same = ", ".join((*_SAME, "repeat"))
    several = _again(connection, f"SELECT hash({same}) FROM {source}")
    if not several:
        return samples
    columns = ", ".join("number AS repeat" if name == "repeat" else name for name in SCHEMA.names)
    found = connection.sql(
        f"""SELECT {columns} FROM (
                SELECT *, (repeat - 1 + row_number() OVER (
                    PARTITION BY {same} ORDER BY score, answer, response, source))::INT AS number
                FROM {source})"""
    ).to_arrow_reader(BATCH_ROWS)
    samples.meta.warnings.append(
        f"{several} rows tell of an item that has a row already; each counts as a repeat "
        "(--column repeat=NAME names their column)"
    )
    return Samples.collect((batch.cast(SCHEMA) for batch in found), samples.meta)


def _again(connection: duckdb.DuckDBPyConnection, keys: str) -> int:
    """How many rows of a query have a key that a row before had."""
    held = np.sort(connection.sql(keys).to_arrow_table().column(0).to_numpy())
    return int(np.count_nonzero(held[1:] == held[:-1]))
