"""Parquet files that nobody vouches for: clear errors, and rows in bounded memory.

A value that many rows share is stored once, so a small file can hold more text than any memory.
So text is read as numbers into a dictionary, measured, and then written out, a part at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow.fs import LocalFileSystem

from forgetmap.base.errors import InputError
from forgetmap.base.limits import LINE_MIB, MIB, check_rows, check_unpacked
from forgetmap.base.words import brief

PART_BYTES = 64 * MIB
"""Rows are handed out in parts of about this size at most."""
_LOCAL = LocalFileSystem()
"""Named, as pyarrow would look for the path on all others."""
_SAFE = 256 * MIB
_FEW = 10_000
_KEPT = 8 * MIB
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT96": 12}


def parquet_schema(path: Path) -> pa.Schema:
    """Read the schema of a Parquet file; if it is not one, say so in one clear line."""
    with _opened(path) as (_, schema, _):
        return schema


@contextmanager
def _opened(path: Path) -> Iterator[tuple[pq.ParquetFile, pa.Schema, int]]:
    """Open a Parquet file; look at its schema, its bytes and number of rows."""
    with _open(path) as file:
        try:
            schema = file.schema_arrow
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise _unreadable(path, error) from error
        size = path.stat().st_size
        check_rows(path, file.metadata.num_rows, size)
        yield file, schema, size


def _open(path: Path) -> pq.ParquetFile:
    if not path.is_file() and path.exists():  # a pipe or device would keep us waiting
        raise InputError(f"{path}: is not a plain file")
    try:
        return pq.ParquetFile(path, pre_buffer=False, filesystem=_LOCAL)
    except UnicodeEncodeError as error:
        raise InputError(f"{path}: its name is not UTF-8; rename it") from error
    except PermissionError as error:
        raise InputError(f"{path}: cannot be read (Permission denied)") from error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> InputError:
    reason = next(iter(str(error).splitlines()), "")
    return InputError(f"{path}: is not a readable Parquet file ({reason})")


@contextmanager
def damage_told(path: Path) -> Iterator[None]:
    """Say in one line that a Parquet file is damaged, whatever Arrow says about its content."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: is damaged ({brief(error)})") from error


def parquet_rows(path: Path) -> int:
    """How many rows a Parquet file says it has."""
    return int(pq.read_metadata(path).num_rows)


class Raw(NamedTuple):
    """Some columns of a file as they are stored: equal values of two files mean equal content."""

    about: tuple[object, ...]
    """Their kinds and sizes."""
    content: tuple[bytes, ...]


class Stored(NamedTuple):
    """What a file stores, before any of it is decoded."""

    path: Path
    schema: pa.Schema
    footer: pq.FileMetaData
    columns: Sequence[str]
    """The paths of all columns, those in structs too."""

    def raw(self, columns: Sequence[str]) -> Raw | None:
        """Some columns as they are stored; None where they are too large to keep."""
        about: list[object] = [self.schema.field(name.partition(".")[0]) for name in columns]
        about.append(self.footer.num_rows)
        content = []
        chunks = self.chunks(columns)
        if sum(chunk.total_compressed_size for _, chunk in chunks) > _KEPT:
            return None
        with self.path.open("rb", buffering=0) as file:
            for _, chunk in chunks:
                pages = [chunk.data_page_offset]
                pages += [chunk.dictionary_page_offset] if chunk.has_dictionary_page else []
                if min(pages) < 0 or chunk.total_compressed_size < 0:
                    return None
                file.seek(min(pages))
                content.append(file.read(chunk.total_compressed_size))
                about += [chunk.path_in_schema, chunk.num_values, chunk.compression]
        return Raw((*about, *map(len, content)), tuple(content))

    def chunks(self, columns: Sequence[str] | None) -> list[tuple[int, pq.ColumnChunkMetaData]]:
        """What the footer says of some columns in each group of rows, with their numbers."""
        wanted = None if columns is None else tuple(f"{name}." for name in columns)
        chosen = [
            index
            for index, name in enumerate(self.columns)
            if wanted is None or f"{name}.".startswith(wanted)
        ]
        groups = map(self.footer.row_group, range(self.footer.num_row_groups))
        return [(index, group.column(index)) for group in groups for index in chosen]


def _stored(path: Path, file: pq.ParquetFile, schema: pa.Schema) -> Stored:
    footer, stored = file.metadata, file.schema
    return Stored(path, schema, footer, [stored.column(i).path for i in range(footer.num_columns)])


Columns = Sequence[str] | Callable[[Stored], Sequence[str]]
"""Names, or a function that chooses them once the file was looked into."""


def parquet_head(path: Path, rows: int) -> list[dict[str, object]]:
    """The first rows of a file, without what follows them."""
    first = next(parquet_parts(path, None, rows, only_first_group=True), None)
    return [] if first is None else list(first.to_pylist())


def parquet_parts(
    path: Path,
    columns: Columns | None = None,
    rows: int = 8192,
    only_first_group: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Stream the rows of a file, in parts that fit into memory whatever it holds.

    Columns may name a field of a struct: `doc.query`.
    """
    with ExitStack() as stack:
        stack.enter_context(damage_told(path))
        file, schema, packed = stack.enter_context(_opened(path))
        stored = _stored(path, file, schema)
        if callable(columns):
            columns = columns(stored)
        numbers, texts = _measure(stored, columns)
        check_unpacked(path, numbers, packed)
        per_row = max(1, numbers // max(1, file.metadata.num_rows))
        rows = max(1, min(rows, PART_BYTES // per_row))
        groups = list(range(file.metadata.num_row_groups))[: 1 if only_first_group else None]
        if texts and _longest_texts(path, texts, groups) * rows <= PART_BYTES:
            texts = []  # however often a text occurs, a part stays small
        # For few rows, threads cost too much.
        many = file.metadata.num_rows > _FEW and not only_first_group
        if texts:
            again = pq.ParquetFile(
                path, metadata=file.metadata, read_dictionary=texts, pre_buffer=False
            )
            file = stack.enter_context(again)
        unpacked = 0
        coded = bool(texts) or any(map(_is_coded, schema.types))
        for batch in file.iter_batches(rows, groups, columns, use_threads=many):
            size = _size(batch) if coded else batch.nbytes
            unpacked += size
            check_unpacked(path, unpacked, packed)
            for part in _split(path, batch, size):
                yield _written_out(part, schema) if texts else part


def _measure(stored: Stored, columns: Sequence[str] | None) -> tuple[int, list[str]]:
    """The bytes of all numbers, and the columns of text that might hold more than is stored."""
    numbers, potential = 0, 0
    texts: dict[str, None] = {}
    for index, chunk in stored.chunks(columns):
        if chunk.physical_type == "BYTE_ARRAY":
            potential += chunk.num_values * chunk.total_uncompressed_size
            if stored.footer.schema.column(index).logical_type.type in ("STRING", "NONE", "JSON"):
                texts[chunk.path_in_schema] = None
        else:
            width = stored.footer.schema.column(index).length or _WIDTHS.get(chunk.physical_type, 8)
            numbers += chunk.num_values * width
    return numbers, list(texts) if potential > _SAFE else []


def _longest_texts(path: Path, texts: list[str], groups: list[int]) -> int:
    """The bytes of the longest text that is stored once for many rows, in all columns together.

    What is not stored so takes as much room in the file as in memory.
    """
    longest = 0
    with pq.ParquetFile(path, read_dictionary=texts, pre_buffer=False) as file:
        for group in groups:
            first = next(file.iter_batches(1, row_groups=[group], columns=texts), None)
            if first is not None:
                longest = max(longest, sum(map(_longest, first.columns)))
    return longest


def _longest(array: pa.Array) -> int:
    """The longest text in the dictionaries of an array; without end where it cannot be told."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        lengths = pc.binary_length(array.dictionary)
        return int(pc.max(lengths).as_py() or 0)
    if pa.types.is_struct(kind):
        return sum(_longest(inner) for inner in array.flatten())
    return PART_BYTES


def _is_coded(kind: pa.DataType) -> bool:
    """Whether values are numbers into a dictionary, by the file's own schema; or hold such ones."""
    inner = (kind.field(place).type for place in range(kind.num_fields))
    return bool(pa.types.is_dictionary(kind)) or any(map(_is_coded, inner))


def _size(batch: pa.RecordBatch) -> int:
    return sum(_array_size(column) for column in batch.columns)


def _array_size(array: pa.Array) -> int:
    """Bytes of an array once its text is written out."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        if not (pa.types.is_string(kind.value_type) or pa.types.is_binary(kind.value_type)):
            return int(array.nbytes)
        lengths = pc.binary_length(array.dictionary).cast(pa.int64())
        return 4 * len(array) + int(pc.sum(lengths.take(array.indices)).as_py() or 0)
    if pa.types.is_struct(kind):
        return sum(_array_size(inner) for inner in array.flatten())
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        if not len(array):
            return 0
        start, stop = array.offsets[0].as_py(), array.offsets[-1].as_py()
        inner = [array.keys, array.items] if pa.types.is_map(kind) else [array.values]
        return sum(_array_size(values.slice(start, stop - start)) for values in inner)
    return int(array.nbytes)


def _split(path: Path, batch: pa.RecordBatch, size: int) -> Iterator[pa.RecordBatch]:
    """Halve a batch until its parts are small enough."""
    if size <= PART_BYTES or (len(batch) == 1 and size <= LINE_MIB.value * MIB):
        yield batch
        return
    if len(batch) == 1:
        raise InputError(f"{path}: a row has {size:,} bytes; {LINE_MIB.advice}")
    half = len(batch) // 2
    for part in (batch.slice(0, half), batch.slice(half)):
        yield from _split(path, part, _size(part))


def _written_out(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Turn dictionaries back into plain text, as the file declares it."""
    columns = [_plain(column, schema.field(name).type)
               for name, column in zip(batch.schema.names, batch.columns, strict=True)]  # fmt: skip
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _plain(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_struct(column.type):  # of which only some fields may have been read
        fields = [kind.field(kind.get_field_index(field.name)) for field in column.type]
        inner = [_plain(part, field.type) for part, field in
                 zip(column.flatten(), fields, strict=True)]  # fmt: skip
        return pa.StructArray.from_arrays(inner, fields=fields, mask=column.is_null())
    return column.cast(kind)
