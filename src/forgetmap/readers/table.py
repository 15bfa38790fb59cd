"""Any table with one row per answer, read by its columns: CSV, JSON lines, JSON or Parquet.

The columns are guessed from their names. A warning says what was guessed, and flags override it
(`--column score=is_right`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from forgetmap.base.ahead import ahead
from forgetmap.base.database import connect
from forgetmap.base.errors import InputError
from forgetmap.base.values import file_name, number
from forgetmap.readers.framework import REPEATS_PER_RUN, ReadOptions, stored_options
from forgetmap.readers.table_columns import KNOWN, check_columns, match_columns, plain_answer
from forgetmap.readers.table_files import PACKED, Frame, Table, kind_of, open_table
from forgetmap.readers.table_repeats import Repeats, numbered
from forgetmap.readers.table_values import BadValue, Column, options_of, sizes, with_options
from forgetmap.samples.identity import hash_contents, wording_hash
from forgetmap.samples.table import Meta, Samples, complete

_INT32_MAX = 2**31 - 1
HASHING = "2"
"""Kept as the version of the format: contents are hashed by the column, which 1 did not."""


def sniff(path: Path) -> bool:
    """Go by the suffix; what is inside is checked when it is read."""
    return bool(_files(path))


def _files(path: Path) -> list[Path]:
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return [file for file in files if file.is_file() and kind_of(file)]


def read(path: Path, how: ReadOptions) -> Samples:
    """Read one table, or all tables of a folder."""
    check_columns(how.columns)
    meta = Meta(harness="table", version=HASHING)
    with connect() as connection:
        tables = [TableReader(file, how, meta, connection) for file in _files(path)]
        parts = (batch for table in tables for batch in table.batches())
        samples = Samples.collect(parts, meta)
        if all("repeat" in table.columns for table in tables if table.columns):
            return samples
        return numbered(samples, connection)


class TableReader:
    """One file on its way to Samples."""

    def __init__(
        self, file: Path, how: ReadOptions, meta: Meta, connection: duckdb.DuckDBPyConnection
    ) -> None:
        self.file, self.how, self.meta, self.connection = file, how, meta, connection
        self.name = file_name(file)
        self.columns: dict[str, str] = {}
        """Need -> column, once the table was looked into."""
        self.repeats = Repeats()
        self.nameless = 0
        """Rows that nothing identifies."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows of the file as Samples, and what is to be said about them."""
        rows = 0
        table = open_table(self.file, self.how, self.meta.warnings)
        for frame, columns in ahead(self._read(table)):
            rows += frame.rows
            self.how.tally.records += frame.rows
            yield from self._batch(frame, columns)
        if rows:
            self._tell()
        elif f"{self.name}: holds no records" not in self.meta.warnings:
            self.meta.warnings.append(f"{self.name}: holds no records")

    def _read(self, table: Table) -> Iterator[tuple[Frame, dict[str, Column]]]:
        """Some rows at a time, with the columns that are needed and there."""
        names = dict.fromkeys(table.names)
        if names:
            self._match(names, table)
        for frame in table.frames(self._wanted()):
            new = [name for name in frame.names if name not in names]
            names |= dict.fromkeys(new)
            if any(name.lower() in KNOWN for name in new) or not self.columns:
                self._match(names, table)
            with self._named(frame.first + np.arange(frame.rows)):
                columns = {need: frame.get(self.columns[need]) for need in self._needed()}
            yield frame, {need: column for need, column in columns.items() if column is not None}

    @contextmanager
    def _named(self, rows: NDArray[np.int64]) -> Iterator[None]:
        """Name the row of the file that holds a bad value, of the rows that are worked on."""
        try:
            yield
        except BadValue as error:
            raise InputError(f"{self.file} row {rows[error.place]}: {error}") from error

    def _match(self, names: dict[str, None], table: Table) -> None:
        matched = match_columns(names, self.how.columns, self.file, table.examples)
        self.columns, self.notes = matched.of, matched.notes

    def _wanted(self) -> list[str]:
        """The columns to read."""
        return [self.columns[need] for need in self._needed()]

    def _needed(self) -> list[str]:
        """Without text, the model's answers are not needed, unless they are to be scored."""
        unread = {"response"} if "score" not in self.columns else {"answer", "response"}
        return [need for need in self.columns if self.how.text or need not in unread]

    def _tell(self) -> None:
        guess = ", ".join(f"{need} from {column!r:.60}" for need, column in self.columns.items())
        self.meta.warnings.append(f"{self.name}: read {guess}")
        self.meta.warnings += [f"{self.name}: {note}" for note in self.notes]
        if self.by_row:
            self.meta.by_row = True
            self.meta.warnings.append(
                f"{self.name}: no column names the item; rows pair by number with --identity row"
            )
        if self.nameless:
            self.how.tally.left_out += self.nameless
            self.meta.warnings.append(
                f"{self.name}: {self.nameless} rows have neither a question nor an id; left out"
            )

    @property
    def by_row(self) -> bool:
        """Whether nothing but its number tells a row from others."""
        return not {"question", "id"} & self.columns.keys()

    # --- some rows ------------------------------------------------------------------------------

    def _batch(self, frame: Frame, columns: dict[str, Column]) -> Iterator[pa.RecordBatch]:
        rows = np.arange(frame.rows)
        place = None
        if "score" in columns and columns["score"].any(list):
            with self._named(frame.first + rows):
                rows, place, columns = _one_score_each(columns)
        with self._named(frame.first + rows):
            made = self._samples(columns, rows + frame.first, place)
        named = pc.or_(pc.is_valid(made["item"]), pc.is_valid(made["item_ref"]))
        batch = complete(made)
        if not pc.all(named).as_py():
            self.nameless += len(set(rows[~named.to_numpy(zero_copy_only=False)]))
            batch = batch.filter(named)
        yield batch

    def _samples(
        self, columns: dict[str, Column], rows: NDArray[np.int64], place: NDArray[np.int64] | None
    ) -> dict[str, pa.Array]:
        """The columns of Samples for some rows of the file; `place` is that in a list of scores."""
        size = len(rows)
        nothing = Column(pa.nulls(size, pa.string()), None)

        def column(need: str) -> Column:
            return columns.get(need, nothing)

        choices = with_options(column("choices"))
        parts = {"question": column("question"), "choices": choices, "target": column("target")}
        contents = [
            part.contents() if need in columns or need == "question" else None
            for need, part in parts.items()
        ]
        row = pa.array(rows).cast(pa.string())
        made = {
            "model": _or_else(columns.get("model"), self._model(), size),
            "run": pa.repeat(pa.scalar(self.name), size),
            "task": _or_else(columns.get("task"), "all", size),
            "item": hash_contents(contents, self.connection),
            "item_ref": row if self.by_row else _or_none(column("id").texts()),
            "repeat": self._numbered(columns.get("repeat"), size, place),
            "metric": _or_else(columns.get("metric"), "score", size),
            **self._scores(column("score"), column("answer"), column("target")),
            "source": pc.binary_join_element_wise(self.name, row, ":"),
        }
        if {"k", "choices"} & columns.keys():
            made["k"] = _options_shown(columns.get("k"), choices)
        if "gold_probability" in columns:
            made["gold_probability"] = columns["gold_probability"].map(_probability, pa.float64())
        if "cluster" in columns:
            made["cluster"] = _or_none(columns["cluster"].texts())
        if "option_probabilities" in columns:
            made |= _options(columns["option_probabilities"], column("right_option"))
        if self.how.wording and "question" in columns:
            made["wording"] = _wordings(column("question"), choices, column("target"))
        if self.how.text:
            made["prompt"] = _or_none(column("question").texts())
            made |= {name: column(name).texts() for name in ("target", "answer", "response")}
        return made

    def _scores(self, score: Column, answer: Column, target: Column) -> dict[str, pa.Array]:
        """The scores as told, or by comparing answers; no answer is a wrong one."""
        if "score" in self.columns:
            return {"score": score.map(lambda value: number(value, "score"), pa.float64())}
        said, right = (column.map(plain_answer, pa.string()) for column in (answer, target))
        equal = pc.fill_null(pc.equal(said, right), False).cast(pa.float64())
        missing = pc.if_else(pc.is_null(said), "no_answer", None).cast(pa.string())
        return {"score": pc.if_else(pc.is_valid(right), equal, None), "status": missing}

    def _model(self) -> str:
        """The file's name without its suffixes, for tables that do not name their model."""
        suffixes = self.file.suffixes[-2:] if self.file.suffix.lower() in PACKED else []
        return self.name.removesuffix("".join(suffixes) or self.file.suffix)

    def _numbered(
        self, column: Column | None, size: int, place: NDArray[np.int64] | None
    ) -> pa.Array:
        """The number of each repeat."""
        run = np.zeros(size, np.int64)
        if column is not None:
            run = column.map(self.repeats.number, pa.int32()).to_numpy().astype(np.int64)
        if place is not None:
            run = np.minimum(run * REPEATS_PER_RUN + place, _INT32_MAX)
        return pa.array(run, pa.int32())


# --- columns of Samples ---------------------------------------------------------------------------


def _one_score_each(
    columns: dict[str, Column],
) -> tuple[NDArray[np.int64], NDArray[np.int64], dict[str, Column]]:
    """Give each score of a list a row of its own: a list holds the scores of repeats.

    Returns the row that each came from, its place in the list, and the columns.
    """
    lists = [value if isinstance(value, list) else [value] for value in columns["score"].objects()]
    lists = [scores or [None] for scores in lists]
    sizes = np.array([len(scores) for scores in lists])
    rows = np.repeat(np.arange(len(lists)), sizes)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    taken = {need: column.take(rows) for need, column in columns.items()}
    taken["score"] = Column.of_values([score for scores in lists for score in scores])
    return rows, place, taken


def _or_else(column: Column | None, default: str, rows: int) -> pa.Array:
    """The texts of a column; the default where there is none."""
    if column is None:
        return pa.repeat(default, rows)
    return pc.fill_null(_or_none(column.texts()), default)


def _or_none(texts: pa.Array) -> pa.Array:
    return pc.if_else(pc.equal(texts, ""), None, texts)


def _options_shown(given: Column | None, choices: Column) -> pa.Array:
    """How many options were shown: as said, or as listed; null where fewer than two."""
    listed = sizes(choices)
    if given is not None:
        listed = pc.coalesce(given.map(_count, pa.int64()), listed)
    return pc.if_else(pc.greater(listed, 1), listed, None).cast(pa.int32())


def _count(value: Any) -> int | None:
    k = number(value, "k")
    if k is not None and not 0 <= k <= _INT32_MAX:
        raise ValueError(f"k {k:g} is not a number of options")
    return None if k is None else int(k)


def _probability(value: Any) -> float | None:
    probability = number(value, "gold_probability")
    if probability is not None and not 0 <= probability <= 1:
        raise ValueError(f"gold_probability {probability:g} is not between 0 and 1")
    return probability


def _options(options: Column, right: Column) -> dict[str, pa.Array]:
    """The probabilities of all options, row by row: hardly any two rows have the same."""
    made: list[dict[str, Any]] = []
    for place, pair in enumerate(zip(options.objects(), right.objects(), strict=True)):
        try:
            made.append(stored_options(options_of(pair[0]), pair[1]))
        except (ValueError, TypeError) as error:
            raise BadValue(place, error) from error
    kinds = {"option_probabilities": pa.list_(pa.float32()), "right_option": pa.int32()}
    return {name: pa.array([each.get(name) for each in made], kind) for name, kind in kinds.items()}


def _wordings(question: Column, choices: Column, target: Column) -> pa.Array:
    """Hashes of the words alone, row by row."""
    parts = (column.contents().to_pylist() for column in (question, target))
    lists = (value if isinstance(value, list) else [] for value in choices.objects())
    return pa.array(
        [
            wording_hash(asked, [str(option) for option in options], right) if asked else None
            for asked, right, options in zip(*parts, lists, strict=True)
        ],
        pa.uint64(),
    )
