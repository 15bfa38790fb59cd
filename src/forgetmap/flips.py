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

_CAUSES = {"no_answer": "unparsed", "truncated": "truncated", "refused": "refused"}
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def write_flips(pairs: Pairs, path: str | Path) -> int:
    """Write the items whose outcome changed; returns how many."""
    path = Path(path)
    writers = {".csv": _write_csv, ".jsonl": _write_jsonl, ".parquet": _write_parquet}
    if path.suffix not in writers:
        raise InputError(f"--flips {path}: the name must end in {', '.join(writers)}")
    with replacing(path) as temporary:
        return writers[path.suffix](temporary, _with_causes(pairs.flips()))


def _with_causes(stream: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Add the cause of a loss where the log's own status already tells it."""
    for batch in stream:
        lost = (name == "forgotten" for name in batch["transition"].to_pylist())
        statuses = batch["status_after"].to_pylist()
        causes = [
            _CAUSES.get(status or "") if was_lost else None
            for was_lost, status in zip(lost, statuses, strict=True)
        ]
        yield pa.Table.from_batches([batch]).append_column("cause", pa.array(causes, pa.string()))


def _write_csv(path: Path, stream: Iterable[pa.Table]) -> int:
    rows = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        for table in stream:
            if not rows:
                writer.writerow(table.column_names)
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
    if isinstance(value, str):
        value = value.replace("\x00", "")
        return f"'{value}" if value.startswith(_FORMULA_STARTS) else value
    return value


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
    writer: pq.ParquetWriter | None = None
    for table in stream:
        writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd")
        writer.write_table(table)
        rows += table.num_rows
    if writer:
        writer.close()
    else:
        pq.write_table(pa.table({"task": pa.array([], pa.string())}), path)
    return rows
