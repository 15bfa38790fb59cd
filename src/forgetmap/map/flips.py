"""The list of items that changed, with both answers: CSV, JSONL or Parquet."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from forgetmap.base.errors import InputError
from forgetmap.base.files import replacing
from forgetmap.base.words import spreadsheet_safe
from forgetmap.map.causes import LOGGED, Lost, cause_of, taught_answers
from forgetmap.pairing.pairs import Pairs

PROBABILITIES = ("probability_before", "probability_after")
"""Of the right option; null where not both logs have it."""
COLUMNS = pa.schema(
    [
        *((name, pa.string()) for name in ("task", "item", "item_ref")),
        ("k", pa.int32()),
        ("transition", pa.string()),
        *((name, pa.float64()) for name in ("before", "after", *PROBABILITIES)),
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
OPTIONS = pa.schema(
    [
        *((name, pa.list_(pa.float32())) for name in ("options_before", "options_after")),
        ("right_option", pa.int32()),
    ]
)
"""The probabilities of all options of an item, and which of them is right, counted from 0."""


def find_causes(
    pairs: Pairs, new: Collection[str] = (), taught: Iterable[str] = ()
) -> pa.ChunkedArray:
    """The cause of every change in the order of `Pairs.flips`.

    Null for a gain, and where the log holds no text to judge by. `new` are the new tasks; `taught`
    are right answers to them beside those that the logs hold.
    """
    answers = taught_answers([*taught, *(pairs.targets(new) if new else ())])
    causes = []
    for batch in pairs.flips():
        lost = [name == "forgotten" for name in batch["transition"].to_pylist()]
        rows = batch.select(["task", *LOGGED]).filter(pa.array(lost)).to_pylist()
        taught_to = (frozenset() if row.pop("task") in new else answers for row in rows)
        names = (
            cause_of(Lost(taught=known, **row)) for known, row in zip(taught_to, rows, strict=True)
        )
        causes.append(pa.array([next(names) if was else None for was in lost], pa.string()))
    return pa.chunked_array(causes, pa.string())


def changed_items(
    pairs: Pairs, causes: pa.ChunkedArray, schema: pa.Schema = COLUMNS
) -> Iterator[pa.Table]:
    """Stream the items that changed, with both answers and the cause of every loss."""
    start = 0
    for batch in pairs.flips():
        part = causes.slice(start, batch.num_rows)
        start += batch.num_rows
        table = pa.Table.from_batches([batch]).append_column("cause", part)
        yield table.select(schema.names).cast(schema)


def write_flips(changed: Iterable[pa.Table], path: str | Path) -> int:
    """Write the items whose outcome changed; returns how many."""
    check_suffix(path)
    with replacing(path) as temporary:
        return _WRITERS[Path(path).suffix](temporary, changed)


def check_suffix(path: str | Path) -> None:
    """Refuse a name whose ending does not say which format is meant."""
    if Path(path).suffix not in _WRITERS:
        raise InputError(f"--flips {path}: the name must end in {', '.join(_WRITERS)}")


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
