"""The list of items that changed, with both answers: CSV, JSONL or Parquet."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from forgetmap.errors import InputError
from forgetmap.files import replacing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from forgetmap.pairing import Pairs

COLUMNS = pa.schema(
    [
        *((name, pa.string()) for name in ("task", "item", "item_ref")),
        ("k", pa.int32()),
        ("transition", pa.string()),
        *((name, pa.float64()) for name in ("before", "after")),
        *(
            (f"{name}{side}", pa.string())
            for name, sides in (
                ("target", ("",)),
                *((n, ("_before", "_after")) for n in ("answer", "status", "prompt", "response")),
                ("cause", ("",)),
            )
            for side in sides
        ),
    ]
)
"""One row per item that changed."""
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def write_flips(pairs: Pairs, path: str | Path) -> int:
    """Write the items whose outcome changed; returns how many."""
    check_suffix(path)
    with replacing(path) as temporary:
        return _WRITERS[Path(path).suffix](temporary, with_causes(pairs.flips()))


def check_suffix(path: str | Path) -> None:
    """Refuse a name whose ending does not say which format is meant."""
    if Path(path).suffix not in _WRITERS:
        raise InputError(f"--flips {path}: the name must end in {', '.join(_WRITERS)}")


def with_causes(stream: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Add the cause of every loss; null for a gain, and where the log holds no text.

    Batches that have their causes already (`Pairs.flips` gives them once they are known) pass.
    """
    from forgetmap.causes import Lost, cause_of

    for batch in stream:
        if "cause" in batch.schema.names:
            yield pa.Table.from_batches([batch]).cast(COLUMNS)
            continue
        lost = [name == "forgotten" for name in batch["transition"].to_pylist()]
        rows = batch.select(Lost._fields).filter(pa.array(lost)).to_pylist()
        found = (cause_of(Lost(**row)) for row in rows)
        causes = [next(found) if was_lost else None for was_lost in lost]
        table = pa.Table.from_batches([batch]).append_column("cause", pa.array(causes, pa.string()))
        yield table.cast(COLUMNS)


def _write_csv(path: Path, stream: Iterable[pa.Table]) -> int:
    rows = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS.names)
        for table in stream:
            for record in table.to_pylist():
                writer.writerow([spreadsheet_safe(value) for value in record.values()])
                rows += 1
    return rows


def spreadsheet_safe(value: Any) -> Any:
    """Keep a spreadsheet from running text as a formula: model output is untrusted.

    Example:
        >>> spreadsheet_safe("=cmd()"), spreadsheet_safe("-1"), spreadsheet_safe(0.5)
        ("'=cmd()", "'-1", 0.5)
    """
    if not isinstance(value, str):
        return value
    text = value.replace("\x00", "")
    return f"'{text}" if text.lstrip("\r\n ").startswith(_FORMULA_STARTS) else text


def _write_jsonl(path: Path, stream: Iterable[pa.Table]) -> int:
    rows = 0
    with path.open("wb") as file:
        for table in stream:
            for record in table.to_pylist():
                file.write(orjson.dumps(record) + b"\n")
                rows += 1
    return rows


def _write_parquet(path: Path, stream: Iterable[pa.Table]) -> int:
    rows = 0
    with pq.ParquetWriter(path, COLUMNS, compression="zstd") as writer:
        for table in stream:
            writer.write_table(table)
            rows += table.num_rows
    return rows


_WRITERS = {".csv": _write_csv, ".jsonl": _write_jsonl, ".parquet": _write_parquet}
