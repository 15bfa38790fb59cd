"""Samples: the one table that every reader produces.

One row per (model, run, task, item, repeat, metric). An item is identified by its content, so that
two logs can be paired whatever order or numbering their harness used.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from forgetmap.base.ahead import ahead
from forgetmap.base.errors import InputError
from forgetmap.base.files import replacing, temporary_folder
from forgetmap.base.parquet import damage_told, parquet_parts, parquet_schema
from forgetmap.base.sealed import EMPTY, SEAL, check_sealed, seal
from forgetmap.base.values import storable
from forgetmap.samples.options import without_bad_options

SCHEMA_VERSION = 2
THRESHOLD = 0.5
"""A score at or above it counts as correct, unless the user says otherwise."""

STATUSES = (
    *("ok", "no_answer", "truncated", "timeout", "refused", "error", "unscored"),
    *("empty", "invalid_gold", "not_applicable", "judge_failed", "judge_unparsable"),  # scored here
)
"""`error`, `unscored` and those of a failed scoring have no score."""

TEXT_COLUMNS = ("prompt", "target", "answer", "response")
"""Untrusted text; stored apart in Parquet and read only when somebody looks at an item."""

SCHEMA = pa.schema(
    [
        pa.field("model", pa.string(), nullable=False),
        pa.field("run", pa.string()),
        pa.field("task", pa.string(), nullable=False),
        pa.field("item", pa.uint64()),  # content hash; null where the log stores no content
        pa.field("item_ref", pa.string()),  # the harness's own id
        pa.field("wording", pa.uint64()),  # hash of the words alone, for logs of other harnesses
        pa.field("repeat", pa.int32(), nullable=False),
        pa.field("metric", pa.string(), nullable=False),
        pa.field("score", pa.float64()),
        pa.field("status", pa.string(), nullable=False),
        pa.field("k", pa.int32()),  # options shown; null for an open answer
        pa.field("gold_probability", pa.float64()),  # softmax over the options, of the right one
        pa.field("option_probabilities", pa.list_(pa.float32())),  # of all, in the log's order
        pa.field("right_option", pa.int32()),  # index into them; null where several are right
        pa.field("prompt_hash", pa.uint64()),
        pa.field("cluster", pa.string()),  # items that belong together (same passage)
        pa.field("source", pa.string()),  # file and row
        *(pa.field(name, pa.string()) for name in TEXT_COLUMNS),
    ]
)

LATER_COLUMNS = {"option_probabilities": 2, "right_option": 2}
"""Columns that older files lack, with the schema version that brought them; read as null."""

META_KEY = b"forgetmap"
_ROW_GROUP = 131_072
_SPILL_BYTES = 64 * 2**20
_REPEATED = ["model", "run", "task", "metric", "status", "cluster"]
"""Columns in which few values fill many rows."""
_COUNTED = ["model", "item", "cluster", "gold_probability", "prompt_hash", "k"]
"""Columns whose statistics in a footer save reading them."""
_WHOLE_STATISTIC = 32
"""A footer may cut longer texts short."""


@dataclass
class Meta:
    """What a log says about its runs, beside the rows."""

    harness: str = "unknown"
    version: str | None = None
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Per model: the settings that must agree for a fair comparison (few-shot, template, ...)."""
    warnings: list[str] = field(default_factory=list)
    records: int = 0
    """Answers that the log holds, as its reader counted them; 0 where it did not."""
    left_out: int = 0
    """Of these, how many gave no row; the warnings say why."""
    by_row: bool = False
    """Whether nothing but their number tells the items of a table apart."""


class Samples:
    """Evaluation results in memory or in a Parquet file, with what is known about their runs.

    Example:
        >>> from forgetmap.samples import content_hash
        >>> samples = Samples.from_rows([
        ...     {"model": "m", "task": "sums", "item": content_hash("2+2"), "score": 1.0},
        ...     {"model": "m", "task": "sums", "item": content_hash("2+3"), "score": 0.0},
        ... ])
        >>> len(samples), samples.models
        (2, ['m'])
    """

    def __init__(self, data: pa.Table | Path, meta: Meta, model: str | None = None) -> None:
        self.data = data
        self.meta = meta
        self.model = model
        """The chosen model, if the table holds several."""

    @classmethod
    def from_rows(cls, rows: Iterable[dict[str, Any]], meta: Meta | None = None) -> Samples:
        """Build Samples from dictionaries; columns left out get their natural default."""
        return cls.collect(batches(rows), meta or Meta(harness="rows"))

    @classmethod
    def collect(cls, parts: Iterable[pa.RecordBatch], meta: Meta) -> Samples:
        """Gather record batches, in memory while small, in a temporary Parquet file beyond that.

        Option probabilities that are not a distribution are left out, with a warning.
        """
        held: list[pa.RecordBatch] = []
        size = 0
        stream = without_bad_options(parts, meta.warnings)
        for batch in stream:
            held.append(batch)
            size += batch.nbytes
            if size > _SPILL_BYTES:
                return cls._spill(held, stream, meta)
        return cls(pa.Table.from_batches(held, schema=SCHEMA), meta)

    @classmethod
    def _spill(
        cls, held: list[pa.RecordBatch], rest: Iterator[pa.RecordBatch], meta: Meta
    ) -> Samples:
        samples = cls(Path(), meta)
        folder = temporary_folder(samples)
        folder.mkdir(mode=0o700)
        path = folder / "samples.parquet"
        with pq.ParquetWriter(
            path,
            SCHEMA,
            compression="lz4",
            use_dictionary=_REPEATED,
            write_statistics=[*_COUNTED, "option_probabilities.list.element"],
        ) as writer:
            while held:
                writer.write_batch(held.pop(0))
            for batch in ahead(rest):
                writer.write_batch(batch)
        samples.data = path
        samples._spilled = True
        return samples

    @classmethod
    def read(cls, path: str | Path) -> Samples:
        """Open a Samples Parquet file; its rows are read when they are needed.

        A file that was damaged after it was written is refused.
        """
        path = Path(path)
        schema = parquet_schema(path)
        raw = (schema.metadata or {}).get(META_KEY)
        if raw is None:
            raise InputError(f"{path}: is not a forgetmap Samples file (no forgetmap metadata)")
        check_sealed(path)
        meta, version = parse_meta(path, raw)
        for name, kind in zip(SCHEMA.names, SCHEMA.types, strict=True):
            if name not in schema.names:
                if LATER_COLUMNS.get(name, 0) > version:
                    continue
                raise InputError(f"{path}: lacks the column {name!r}; convert it again")
            if (stored := schema.field(name).type) != kind:
                raise InputError(
                    f"{path}: the column {name!r} is {stored}, not {kind}; convert it again"
                )
        return cls(path, meta)

    def write(self, path: str | Path) -> None:
        """Write a Samples Parquet file, atomically."""
        meta = json.dumps({"schema_version": SCHEMA_VERSION, **asdict(self.meta)}).encode()
        schema = SCHEMA.with_metadata({META_KEY: meta})
        with replacing(path) as temporary:
            with pq.ParquetWriter(temporary, schema, compression="zstd") as writer:
                for batch in self.to_batches():
                    writer.write_batch(batch, row_group_size=_ROW_GROUP)
                writer.add_key_value_metadata({SEAL: EMPTY})
            seal(temporary)

    def to_batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Stream the rows of the chosen model (of all, where none was chosen)."""
        names = list(columns or SCHEMA.names)
        schema = pa.schema([SCHEMA.field(name) for name in names])
        wanted = [*names, "model"] if self.model is not None and "model" not in names else names
        for batch in self._stream(wanted):
            chosen = batch
            if self.model is not None:
                chosen = batch.filter(pc.equal(batch["model"], self.model))
            # As declared, whatever the file says of nulls: who trusts the schema must be right.
            yield pa.RecordBatch.from_arrays(chosen.select(names).columns, schema=schema)

    def _stream(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        if isinstance(self.data, pa.Table):
            yield from self.data.select(columns).to_batches(_ROW_GROUP)
            return
        later = [name for name in columns if name in self.missing_columns]
        # Without a column left to read, the rows are counted by one that every file has.
        stored = [name for name in columns if name not in later] or ["model"]
        for batch in parquet_parts(self.data, stored, _ROW_GROUP):
            with damage_told(self.data):
                batch.validate(full=True)  # text that is not UTF-8 goes no further
            yield _with_nulls(batch, later)

    def to_reader(self, columns: Sequence[str]) -> pa.RecordBatchReader:
        """Stream some columns as Arrow, for example to DuckDB."""
        schema = pa.schema([SCHEMA.field(name) for name in columns])
        return pa.RecordBatchReader.from_batches(schema, self.to_batches(columns))

    @cached_property
    def missing_columns(self) -> list[str]:
        """Columns that the file was written without, by an older forgetmap; they read as null."""
        if isinstance(self.data, pa.Table):
            return []
        stored = set(parquet_schema(self.data).names)
        return [name for name in LATER_COLUMNS if name not in stored]

    @property
    def rows(self) -> int:
        """Rows of the whole table, of all models."""
        if isinstance(self.data, pa.Table):
            return int(self.data.num_rows)
        return int(pq.read_metadata(self.data).num_rows)

    def null_count(self, column: str) -> int | None:
        """Nulls of a column in the whole table, from the file's footer; None where it is silent."""
        if isinstance(self.data, pa.Table):
            return int(self.data[column].null_count)
        if column in self.missing_columns:
            return self.rows
        groups = self._statistics(column)
        if not all(statistics is not None and statistics.has_null_count for statistics in groups):
            return None
        return sum(int(statistics.null_count) for statistics in groups)

    def _only_value(self, column: str) -> str | None:
        """The value of a text column in all rows, if the file's footer is sure of it."""
        if isinstance(self.data, pa.Table) or self.model is not None:
            return None
        groups = self._statistics(column)
        if not all(group and group.has_null_count and group.has_min_max for group in groups):
            return None
        values = {value for group in groups for value in (group.min, group.max)}
        nulls = sum(group.null_count for group in groups)
        if len(values) != 1 or nulls:
            return None
        (value,) = values
        return value if len(value) < _WHOLE_STATISTIC else None

    def _statistics(self, column: str) -> list[Any]:
        """What the footer of the file says about a column, for each of its parts."""
        footer = pq.read_metadata(self.data)
        index = footer.schema.to_arrow_schema().get_field_index(column)
        return [
            footer.row_group(group).column(index).statistics
            for group in range(footer.num_row_groups)
        ]

    @cached_property
    def models(self) -> list[str]:
        """The models in the table, in alphabetical order."""
        if (only := self._only_value("model")) is not None:
            return [only]
        names: set[str] = set()
        for batch in self.to_batches(["model"]):
            names.update(batch["model"].unique().to_pylist())
        if None in names:
            raise InputError("a row of the log lacks its 'model'; convert it again")
        return sorted(names)

    def only(self, model: str | None) -> Self:
        """Choose one model; with None the table must hold exactly one."""
        models = self.models
        listed = ", ".join(name if len(name) <= 60 else f"{name[:59]}…" for name in models[:20])
        if not models:
            raise InputError("the log holds no samples; check the path")
        if model is None:
            if len(models) > 1:
                raise InputError(
                    f"the log holds {len(models)} models ({listed}); choose one by name"
                )
            return self
        if model not in models:
            raise InputError(f"no model {model!r} in the log; it holds: {listed}")
        chosen = copy(self)
        chosen.__dict__.pop("models", None)  # the copy of what was found for all models
        chosen.model = model
        chosen._origin = self  # keeps a spilled temporary file alive
        return chosen

    _origin: Samples | None = None
    _spilled = False
    """Whether the file was written just now, so that its footer can be trusted."""

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the chosen model's runs."""
        model = self.model or (self.models[0] if len(self.models) == 1 else "")
        return self.meta.settings.get(model, {})

    def __len__(self) -> int:
        if self._spilled and self.model is None:
            return self.rows
        return sum(batch.num_rows for batch in self.to_batches(["model"]))


_DEFAULTS: dict[str, Any] = {"model": "unnamed", "task": "all", "repeat": 0, "metric": "score"}


BATCH_ROWS = 8192
"""Rows held as Python objects before they become a batch."""
BATCH_CHARACTERS = 64 * 2**20
"""Characters of text held before; an Arrow column of text cannot hold more than 2 GiB."""


def batches(rows: Iterable[dict[str, Any]]) -> Iterator[pa.RecordBatch]:
    """Turn dictionaries into record batches; fills `status` from the score."""
    held: list[dict[str, Any]] = []
    characters = 0
    for row in rows:
        held.append(row)
        characters += text_length(row.values())
        if len(held) >= BATCH_ROWS or characters >= BATCH_CHARACTERS:
            yield _batch(held)
            held, characters = [], 0
    if held:
        yield _batch(held)


def text_length(values: Iterable[Any]) -> int:
    """Count the characters of all texts among some values.

    Example:
        >>> text_length(["2+2?", 4, None])
        4
    """
    return sum([len(value) for value in values if type(value) is str])


def _batch(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    """Build a batch in Arrow's own code, which is many times quicker than going row by row."""
    try:
        table = pa.array(rows, _STRUCT)
    except (UnicodeEncodeError, pa.ArrowTypeError):  # halves of characters; no text for a text
        table = pa.array([_storable_row(row) for row in rows], _STRUCT)
    return complete(dict(zip(SCHEMA.names, table.flatten(), strict=True)))


_STRUCT = pa.struct([pa.field(column.name, column.type) for column in SCHEMA])


Columns = dict[str, Any]
"""Columns of Samples as arrays; or as the one value that fills all rows, which costs less."""
ROW = "row"
"""Beside the columns: an array of texts that go behind the `source`, which is then one value."""


def together(parts: Iterable[Columns]) -> Iterator[pa.RecordBatch]:
    """Make batches of columns that come in many small parts; the score is always an array.

    A batch costs about the same however few rows it has, so parts with the same columns share one.
    """
    held: list[Columns] = []
    rows = size = 0
    for part in parts:
        if held and (
            held[0].keys() != part.keys() or rows >= BATCH_ROWS or size >= BATCH_CHARACTERS
        ):
            yield _joined(held)
            held, rows, size = [], 0, 0
        held.append(part)
        rows += len(part["score"])
        size += sum([each.nbytes for each in part.values() if isinstance(each, pa.Array)])
    if held:
        yield _joined(held)


def _joined(parts: list[Columns]) -> pa.RecordBatch:
    sizes = [len(part["score"]) for part in parts]
    of_part = pa.array(np.repeat(np.arange(len(parts)), sizes))
    columns = {}
    for name, first in parts[0].items():
        values = [part[name] for part in parts]
        if isinstance(first, pa.Array):
            columns[name] = pa.concat_arrays(values)
        else:
            columns[name] = pa.array(values, SCHEMA.field(name).type).take(of_part)
    if ROW in columns:
        columns["source"] = pc.binary_join_element_wise(columns["source"], columns.pop(ROW), ":")
    return complete(columns)


def complete(columns: Mapping[str, pa.Array]) -> pa.RecordBatch:
    """Make a batch of columns of equal length, among them the score.

    Columns left out get their natural default; `status` follows from the score.

    Example:
        >>> complete({"score": pa.array([0.25, 1.0, None])})["status"].to_pylist()
        ['ok', 'ok', 'unscored']
    """
    rows = len(columns["score"])
    full = {
        column.name: columns[column.name] if column.name in columns else pa.nulls(rows, column.type)
        for column in SCHEMA
    }
    for name, default in _DEFAULTS.items():
        if full[name].null_count:
            full[name] = pc.fill_null(full[name], default)
    score = full["score"]
    not_a_number = pc.is_nan(score)
    if not_a_number.true_count:
        none = pa.scalar(None, pa.float64())
        full["score"] = score = pc.if_else(not_a_number, none, score)
    if full["status"].null_count:
        default = pa.repeat("ok", rows)
        if score.null_count:
            default = pc.if_else(pc.is_null(score), "unscored", "ok")
        given = full["status"].null_count < rows
        full["status"] = pc.coalesce(full["status"], default) if given else default
    return pa.RecordBatch.from_arrays(list(full.values()), schema=SCHEMA)


def _with_nulls(batch: pa.RecordBatch, columns: list[str]) -> pa.RecordBatch:
    """Add columns of nulls to a batch of a file that lacks them."""
    for name in columns:
        batch = batch.append_column(name, pa.nulls(len(batch), SCHEMA.field(name).type))
    return batch


def _storable_row(row: dict[str, Any]) -> dict[str, Any]:
    """A row whose texts Arrow can store, whatever the log holds in their place."""
    return {
        name: storable(str(value)) if name in _TEXTS and value is not None else value
        for name, value in row.items()
    }


_TEXTS = {column.name for column in SCHEMA if column.type == pa.string()}


def parse_meta(path: str | Path, raw: bytes) -> tuple[Meta, int]:
    """What a Samples file says about its runs, and the version of its schema."""
    try:
        stored = json.loads(raw)
        version = int(stored["schema_version"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(
            f"{path}: its forgetmap metadata cannot be read ({error!r:.80})"
        ) from error
    if version > SCHEMA_VERSION:
        raise InputError(
            f"{path}: has Samples schema version {version}, this forgetmap knows up to "
            f"{SCHEMA_VERSION}; upgrade forgetmap to read it"
        )
    counts = {name: stored.get(name, 0) for name in ("records", "left_out", "by_row")}
    meta = Meta(**{name: stored.get(name) for name in Meta.__dataclass_fields__} | counts)
    if not (
        isinstance(meta.harness, str)
        and isinstance(meta.version, str | None)
        and isinstance(meta.settings, dict)
        and all(isinstance(settings, dict) for settings in meta.settings.values())
        and isinstance(meta.warnings, list)
        and all(isinstance(text, str) for text in meta.warnings)
        and all(isinstance(count, int) for count in counts.values())
    ):
        raise InputError(f"{path}: its forgetmap metadata have an unknown form; convert it again")
    return meta, version
