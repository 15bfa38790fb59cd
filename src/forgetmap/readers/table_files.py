"""The rows of a plain table in any common file: CSV, JSON lines, JSON, Parquet, packed or not.

Each kind of file has a quick road, which hands out columns as a library reads them, and a careful
one, which goes row by row and says what is wrong where. The quick road is taken first. Where it
meets anything unusual, the careful one starts over, so both give the same rows.
"""

from __future__ import annotations

import csv
import gzip
import importlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import duckdb
import pyarrow as pa
import pyarrow.csv

from forgetmap.base.database import connect, identifier, plain_path, quoted
from forgetmap.base.errors import InputError
from forgetmap.base.files import head, lines, open_binary, temporary_folder
from forgetmap.base.json import parse_json, read_json
from forgetmap.base.limits import LINE_MIB, MIB, check_unpacked
from forgetmap.base.parquet import (
    damage_told,
    parquet_head,
    parquet_parts,
    parquet_rows,
    parquet_schema,
)
from forgetmap.base.values import file_name
from forgetmap.base.words import brief
from forgetmap.readers.framework import ReadOptions, as_object, json_lines, malformed
from forgetmap.readers.table_columns import lookup
from forgetmap.readers.table_values import Column

PACKED = (".gz", ".zst")
SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet", ".pq")
_ROWS = 131_072
"""Rows of a frame; as many as fit into memory with room to spare where texts are short."""
_CAREFUL_ROWS = 8192
_BLOCK = 8 * MIB
_EXAMPLES = 200
_PLACES, _AT_A_PLACE = 20, 10
_LONG = 64 * 2**10
"""JSON lines of this length are read one by one, so that memory stays bounded."""


class Frame(NamedTuple):
    """Some rows that follow one another."""

    first: int
    """The number of the first row, from 1 on."""
    rows: int
    names: Iterable[str]
    """The columns that these rows have."""
    get: Callable[[str], Column | None]
    """The column of a name or path; None where no row has it."""


class Table(NamedTuple):
    """A file as a table."""

    names: list[str]
    """Columns, as far as the beginning of the file shows them."""
    examples: list[dict[str, Any]]
    """The first rows."""
    frames: Callable[[Sequence[str]], Iterator[Frame]]
    """The rows with the columns asked for."""


def kind_of(file: Path) -> str:
    """The suffix that says what is inside, in lower case; that of a packed file within.

    Example:
        >>> kind_of(Path("run.JSONL.gz")), kind_of(Path("notes.txt"))
        ('.jsonl', '')
    """
    suffixes = [suffix.lower() for suffix in file.suffixes[-2:]]
    if suffixes and suffixes[-1] in PACKED:
        suffixes.pop()
    return suffixes[-1] if suffixes and suffixes[-1] in SUFFIXES else ""


def open_table(file: Path, how: ReadOptions, warnings: list[str]) -> Table:
    """Look into a file: what its columns are, and how to get at its rows."""
    how.tally.files.add(file)
    if file.suffix.lower() not in PACKED:
        return _open(file, how, warnings)
    plain = _unpacked(file, how)
    with _told_of(file, plain):
        table = _open(plain, how, warnings)

    def frames(columns: Sequence[str]) -> Iterator[Frame]:
        with _told_of(file, plain):
            yield from table.frames(columns)

    return table._replace(frames=frames)


def _open(file: Path, how: ReadOptions, warnings: list[str]) -> Table:
    kind = kind_of(file)
    if kind in (".parquet", ".pq"):
        return _parquet_table(file, how)
    if kind in (".csv", ".tsv"):
        return _csv_table(file, how)
    if kind == ".json" and (records := _json_records(file, how)) is not None:
        return _in_memory(records)
    return _json_lines_table(file, how, warnings)


class Ticks:
    """Progress through a file, in bytes; where these are guessed, never more than it has."""

    def __init__(self, file: Path, how: ReadOptions, rows: int = 0) -> None:
        self.left = self.size = file.stat().st_size
        self.tick = how.tick
        self.all_rows = rows

    def rows(self, count: int) -> None:
        """Tell of some rows out of all."""
        self.all_rows -= count
        self.bytes(self.left * count // (count + self.all_rows) if self.all_rows > 0 else self.left)

    def bytes(self, count: int) -> None:
        """Tell of some bytes."""
        told = min(count, self.left)
        self.left -= told
        self.tick(told)

    def finish(self) -> None:
        """Tell of all that is left."""
        self.bytes(self.left)


# --- packed files ---------------------------------------------------------------------------------


def _unpacked(file: Path, how: ReadOptions) -> Path:
    """Unpack a file beside the temporary files of this reading; it goes with the options."""
    folder = temporary_folder(how.tally)
    folder.mkdir(mode=0o700, parents=True)
    target = folder / file.stem
    packed, size = file.stat().st_size, 0
    with _open_packed(file) as source, target.open("wb") as out:
        while block := source.read(MIB):
            size += len(block)
            check_unpacked(file, size, packed)
            out.write(block)
    return target


@contextmanager
def _told_of(file: Path, plain: Path) -> Iterator[None]:
    """Let messages name the packed file, not where it was unpacked."""
    try:
        yield
    except InputError as error:
        raise InputError(str(error).replace(str(plain), str(file))) from error


@contextmanager
def _open_packed(file: Path) -> Iterator[IO[bytes]]:
    try:
        if file.suffix.lower() == ".gz":
            with gzip.open(file) as source:
                yield cast("IO[bytes]", source)
            return
        try:
            zstandard = importlib.import_module("zstandard")
        except ImportError as error:
            raise InputError(
                f"{file}: is packed with zstd; pip install zstandard, or unpack it"
            ) from error
        with open_binary(file) as packed, zstandard.ZstdDecompressor().stream_reader(packed) as out:
            yield out
    except InputError:
        raise
    except (OSError, EOFError, ValueError) as error:
        raise InputError(f"{file}: cannot be unpacked ({brief(error)})") from error
    except Exception as error:  # zstandard's own, which may not be there to name
        if type(error).__name__ == "ZstdError":
            raise InputError(f"{file}: cannot be unpacked ({brief(error)})") from error
        raise


# --- Parquet --------------------------------------------------------------------------------------


def _parquet_table(file: Path, how: ReadOptions) -> Table:
    names = parquet_schema(file).names
    check_names(file, names)
    with damage_told(file):
        examples = parquet_head(file, _EXAMPLES)

    def frames(columns: Sequence[str]) -> Iterator[Frame]:
        wanted = {name for name in names for column in columns if _leads_to(name, column)}
        first = 1
        ticks = Ticks(file, how, parquet_rows(file))
        with damage_told(file):
            for batch in parquet_parts(file, sorted(wanted, key=names.index), _ROWS):
                yield Frame(first, len(batch), names, _of_arrays(batch))
                first += len(batch)
                ticks.rows(len(batch))

    return Table(names, examples, frames)


def _leads_to(name: str, column: str) -> bool:
    return column == name or column.startswith(f"{name}.")


def _of_arrays(batch: pa.RecordBatch) -> Callable[[str], Column | None]:
    """Columns of an Arrow batch, by name or by a path into nested ones."""
    names = batch.schema.names

    def get(column: str) -> Column | None:
        if column in names:
            return Column.of_array(batch.column(names.index(column)))
        outer = next((name for name in names if _leads_to(name, column)), None)
        if outer is None:
            return None
        rows = batch.column(names.index(outer)).to_pylist()
        return Column.of_values([lookup({outer: row}, column) for row in rows])

    return get


# --- CSV ------------------------------------------------------------------------------------------


def _csv_table(file: Path, how: ReadOptions) -> Table:
    examples = [record for _, record in itertools.islice(csv_records(file), _EXAMPLES)]
    header, delimiter = _header(file)
    check_names(file, header)

    def frames(columns: Sequence[str]) -> Iterator[Frame]:
        wanted = [name for name in header if name in columns]
        first = 1
        ticks = Ticks(file, how)
        try:
            for batch in _csv_batches(file, header, delimiter, wanted):
                yield Frame(first, len(batch), header, _of_arrays(batch))
                first += len(batch)
                ticks.bytes(_BLOCK)
            ticks.finish()
        except (pa.ArrowException, OSError, UnicodeError):
            # Frames that were handed out stay; the careful road goes on behind them.
            yield from _careful(csv_records(file), first)
            ticks.finish()

    return Table(header, examples, frames)


def _csv_batches(
    file: Path, header: list[str], delimiter: str, columns: list[str]
) -> Iterator[pa.RecordBatch]:
    """Columns of a CSV by Arrow, all as text; a row of another length is an error."""
    reader = pa.csv.open_csv(
        file,
        pa.csv.ReadOptions(block_size=_BLOCK),
        pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        pa.csv.ConvertOptions(
            column_types=dict.fromkeys(header, pa.string()),
            include_columns=columns,
            strings_can_be_null=False,
            quoted_strings_can_be_null=False,
        ),
    )
    with reader:
        yield from reader


def _header(file: Path) -> tuple[list[str], str]:
    """The names in the first row, and what parts them."""
    line = next(_decoded_lines(file, None), "")
    delimiter = max(",;\t|", key=line.count)
    header = next(csv.reader([line], delimiter=delimiter), []) if line.count('"') % 2 == 0 else None
    if header is None:  # a name holds a line end
        header = next(csv.reader(_decoded_lines(file, None), delimiter=delimiter), [])
    return header, delimiter


def csv_records(file: Path, how: ReadOptions | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Stream a CSV row by row; quoted cells may hold line ends.

    Every row must be as long as the header.
    """
    csv.field_size_limit(LINE_MIB.value * MIB)
    text = _decoded_lines(file, how)
    header_line = next(text, "")
    delimiter = max(",;\t|", key=header_line.count)
    reader = csv.reader(itertools.chain([header_line], text), delimiter=delimiter, strict=True)
    try:
        header = next(reader, [])
        check_names(file, header)
        for row, cells in enumerate(filter(None, reader), start=1):
            if len(cells) != len(header):
                raise InputError(
                    f"{file}: line {reader.line_num} has {len(cells)} cells, the header "
                    f"{len(header)}; quote cells that hold a {delimiter!r}"
                )
            yield row, dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise InputError(f"{file}: line {reader.line_num}: not a CSV row ({error})") from error


def check_names(file: Path, names: Iterable[str]) -> None:
    """Refuse a table in which a name stands twice: which column is meant cannot be told."""
    if twice := [name for name, count in Counter(names).items() if name and count > 1]:
        raise InputError(f"{file}: two columns are named {twice[0]!r:.60}; rename one of them")


def _decoded_lines(file: Path, how: ReadOptions | None) -> Iterator[str]:
    for count, line in lines(file):
        if how:
            how.tick(len(line))
        if count == 1 and b"\x00" in line:
            raise InputError(f"{file}: holds zero bytes; it is not UTF-8 text (save it as UTF-8)")
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{file}: line {count} is not UTF-8 ({error.reason}); save it as UTF-8"
            ) from error


# --- JSON lines -----------------------------------------------------------------------------------


def _json_lines_table(file: Path, how: ReadOptions, warnings: list[str]) -> Table:
    examples, longest, mean = _look_into(file)
    names = list(dict.fromkeys(name for record in examples for name in record))

    def frames(columns: Sequence[str]) -> Iterator[Frame]:
        first = 1
        ticks = Ticks(file, how)
        if longest < _LONG and len({name.lower() for name in names}) == len(names):
            try:
                for batch in _json_batches(file, names, columns):
                    present = [name for name in names if name not in batch.schema.names]
                    present += _filled(batch)
                    yield Frame(first, len(batch), present, partial(_of_json, batch))
                    first += len(batch)
                    ticks.bytes(mean * len(batch))
                ticks.finish()
                return
            except (duckdb.Error, pa.ArrowException, OSError, UnicodeError):
                pass  # the careful road says what is wrong, or copes with it
        quiet = replace(how, tick=lambda _bytes: None)
        yield from _careful(json_lines(file, quiet, warnings), first)
        ticks.finish()

    return Table(names, examples, frames)


def _look_into(file: Path) -> tuple[list[dict[str, Any]], int, int]:
    """Some records, first and further on; the longest line among them, and the mean."""
    records: list[dict[str, Any]] = []
    sizes: list[int] = []
    for line in itertools.chain(_first_lines(file), _lines_further_on(file)):
        sizes.append(len(line))
        try:
            record = parse_json(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            records.append(record)
    return records, max(sizes, default=0), sum(sizes) // max(1, len(sizes))


def _first_lines(file: Path) -> Iterator[bytes]:
    return (line for _, line in itertools.islice(lines(file), _EXAMPLES))


def _lines_further_on(file: Path) -> Iterator[bytes]:
    """A few lines at each of some places spread over the file: its form may change on the way."""
    size = file.stat().st_size
    with open_binary(file) as content:
        for place in range(1, _PLACES if size > _PLACES * _LONG else 0):
            content.seek(place * size // _PLACES)
            content.readline(_LONG)  # the rest of some line
            yield from itertools.islice(iter(partial(content.readline, _LONG), b""), _AT_A_PLACE)


def _json_batches(file: Path, names: list[str], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Columns of JSON lines by DuckDB, every value as JSON text.

    It ends with an error where a column comes up that must not be missed.
    """
    outer = [name for name in names if any(_leads_to(name, column) for column in columns)]
    known = {name.lower() for name in names}
    late = [name for name in _LATE if name not in known]
    declared = ", ".join(f"{quoted(name)}: 'JSON'" for name in [*outer, *late])
    selected = [f"CAST({name} AS VARCHAR) AS {name}" for name in map(identifier, outer)]
    with connect() as connection:
        rows = connection.sql(
            f"""SELECT {", ".join(selected)},
                       coalesce({", ".join(["NULL", *late])}) IS NOT NULL AS came_late
                FROM read_ndjson({quoted(plain_path(file))}, columns = {{{declared}}},
                                 maximum_object_size = {16 * MIB})"""
        )
        for batch in rows.to_arrow_reader(_ROWS // 2):
            if batch["came_late"].true_count:
                raise pa.ArrowInvalid("a column comes late")
            yield batch.drop_columns(["came_late"])


_LATE = (
    *("question", "id", "task", "model", "metric", "target", "choices", "score", "correct"),
    *("repeat", "seed", "epoch"),
)
"""Columns that must not be missed, should they come up late in a file."""


def _filled(batch: pa.RecordBatch) -> list[str]:
    """The columns in which a row has a value."""
    columns = zip(batch.schema.names, batch.columns, strict=True)
    return [name for name, column in columns if column.null_count < len(batch)]


def _of_json(batch: pa.RecordBatch, column: str) -> Column | None:
    outer = next((name for name in _filled(batch) if _leads_to(name, column)), None)
    if outer is None:
        return None
    found = Column.of_json(batch[outer])
    if outer == column:
        return found
    return Column.of_values([lookup({outer: value}, column) for value in found.objects()])


# --- JSON -----------------------------------------------------------------------------------------

_LISTS = ("results", "samples", "data", "records", "rows", "items", "examples", "details", "logs")
"""Under which names a JSON object may hold its list of records."""


def _json_records(file: Path, how: ReadOptions) -> list[dict[str, Any]] | None:
    """The records of a JSON file; None where it holds JSON lines."""
    if head(file)[:1] == b"{" and _is_json_lines(file):
        return None
    content = read_json(file)
    how.tick(file.stat().st_size)
    records = _listed_records(content)
    if records is None:
        raise InputError(
            f"{file}: not a log that forgetmap knows, and no table either: that is a list of "
            f"objects, an object that holds one as {_LISTS[0]!r}, or an object of objects by id"
        )
    for number, record in enumerate(records, start=1):
        with malformed(file, f" row {number}"):
            as_object(record)
    return records


def _is_json_lines(file: Path) -> bool:
    """Whether the first line is an object by itself and another line follows."""
    first = list(itertools.islice((line for _, line in lines(file) if line.strip()), 2))
    try:
        return len(first) == 2 and isinstance(parse_json(first[0]), dict)
    except ValueError:
        return False


def _listed_records(content: Any) -> list[Any] | None:
    """The records in a JSON document: a list, a list within an object, or objects by their id."""
    if isinstance(content, list):
        return content
    if not isinstance(content, dict):
        return None
    for name in _LISTS:
        if isinstance(content.get(name), list):
            return list(content[name])
        if isinstance(content.get(name), dict) and _by_id(content[name]):
            return _by_id(content[name])
    return _by_id(content)


def _by_id(content: Mapping[str, Any]) -> list[Any] | None:
    """Objects by their id, as records; an id within wins."""
    if not content or not all(isinstance(record, dict) for record in content.values()):
        return None
    return [{"id": name, **record} for name, record in content.items()]


def _in_memory(records: list[dict[str, Any]]) -> Table:
    names = list(dict.fromkeys(name for record in records for name in record))
    rows = enumerate(records, start=1)
    return Table(names, records[:_EXAMPLES], lambda _columns: _careful(rows, 1))


# --- the careful road -----------------------------------------------------------------------------


def _careful(records: Iterable[tuple[int, dict[str, Any]]], first: int) -> Iterator[Frame]:
    """Frames of records, from a row on."""
    rest = (record for row, (_, record) in enumerate(records, start=1) if row >= first)
    while held := list(itertools.islice(rest, _CAREFUL_ROWS)):
        names = dict.fromkeys(name for record in held for name in record)
        yield Frame(first, len(held), names, _of_records(held))
        first += len(held)


def _of_records(records: list[dict[str, Any]]) -> Callable[[str], Column | None]:
    def get(column: str) -> Column | None:
        if not any(column in record for record in records):
            if not any(column.partition(".")[0] in record for record in records):
                return None
            return Column.of_values([lookup(record, column) for record in records])
        return Column.of_values([record.get(column) for record in records])

    return get


# --- row by row, for other readers ----------------------------------------------------------------


def table_records(
    file: Path, how: ReadOptions, warnings: list[str]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (row number from 1, values) of one table."""
    suffix = file.suffix.lower()
    if suffix in (".jsonl", ".ndjson"):
        yield from json_lines(file, how, warnings)
        return
    how.tally.files.add(file)
    row = 0
    for row, record in (
        parquet_records(file, how) if suffix == ".parquet" else csv_records(file, how)
    ):
        yield row, record
    if not row:
        warnings.append(f"{file_name(file)}: holds no records")


def parquet_records(file: Path, how: ReadOptions) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (row number from 1, values) of a Parquet table."""
    row = 0
    how.tally.files.add(file)
    with damage_told(file):
        check_names(file, parquet_schema(file).names)
        for batch in parquet_parts(file):
            how.tick(batch.nbytes)
            for record in batch.to_pylist():
                row += 1
                yield row, record
