"""The compared items on disk: one sorted Parquet file, and quick answers from it whatever its size.

Rows are sorted by task, transition and cause, so every filter by these is a few runs of
consecutive rows, known from one count at the start. A page is then a list of row numbers, and
DuckDB reads no more than the row groups that hold them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from forgetmap.base.database import connect, plain_path, quoted, writing
from forgetmap.base.errors import InputError
from forgetmap.base.sealed import EMPTY, SEAL, check_sealed, seal
from forgetmap.map.comparison import Comparison
from forgetmap.map.flips import COLUMNS, OPTIONS, PROBABILITIES
from forgetmap.map.old_maps import MERGED

TRANSITIONS = ("forgotten", "gained", "never", "retained")
CHANGED = TRANSITIONS[:2]
NO_CAUSE = "-"
"""Asks for items without a cause."""
MAP_KEY = "forgetmap:map"
"""Where the file keeps the map of its items."""
PAGE = 50
MOST_CHARACTERS = 20_000
"""A longer text is cut where it is shown; the exported table has all of it."""
SEARCH_SECONDS = 0.05
"""After this long a search begins no further step; it tells what it found and where to go on."""
_ROW_GROUPS = 300
"""A query takes longer with each row group of the file, and with each row in a group that it needs:
so there are about as many groups, of some thousand rows each."""
_FEWEST_ROWS, _MOST_ROWS = 2048, 32_768
"""Rows of a group; DuckDB works on 2048 at a time."""
_SNIPPET = 160
_ANSWERS = ("target", "answer_before", "answer_after")
_SAVED = pa.schema([*COLUMNS, *OPTIONS])
_LATER = dict.fromkeys(PROBABILITIES, "DOUBLE") | {
    "options_before": "FLOAT[]",
    "options_after": "FLOAT[]",
    "right_option": "INT",
}
"""Columns that files of older versions lack; they read as null."""
_IDENTITY = (
    *("task", "item", "item_ref", "k", "transition", "before", "after"),
    *(*PROBABILITIES, "cause"),
)
_MERGED = "".join(f" WHEN {quoted(old)} THEN {quoted(now)}" for old, now in MERGED.items())
_CAUSE = f"CASE cause{_MERGED} ELSE cause END"
"""SQL for a cause as the map tells it, where an older file has one that is a part of it now."""
_FALL = "coalesce(probability_before - probability_after, before - after)"
"""SQL for how much confidence an item lost: of the right option, or else of its share of runs."""
_WEIGHED = """[round(x::DOUBLE, 6) for x in options_before] AS options_before,
    [round(x::DOUBLE, 6) for x in options_after] AS options_after, right_option"""
"""SQL for the options of an item."""
_TEXTS = tuple(name for name in COLUMNS.names if name not in _IDENTITY)
_SEARCHED = ("item", "item_ref", *(name for name in _TEXTS if not name.startswith("status")))
_HOLDS = "(" + " OR ".join(f"{name} ILIKE $text ESCAPE '\\'" for name in _SEARCHED) + ")"


def write_items(comparison: Comparison, path: str | Path) -> None:
    """Write every compared item of the map's tasks, with the texts of those that changed.

    The map goes into the file too: so the two always belong together.

    Args:
        comparison: The compared logs, read with their text.
        path: The Parquet file to write, in place.
    """
    changed = pa.RecordBatchReader.from_batches(
        _SAVED, (batch for table in comparison.changed(_SAVED) for batch in table.to_batches())
    )
    with writing(), connect() as connection:
        connection.register("wanted", pa.table({"task": list(comparison.map.tasks)}))
        connection.register("stream", changed)
        connection.execute("CREATE TABLE items AS FROM stream SEMI JOIN wanted USING (task)")
        connection.register("stream", comparison.pairs.unchanged())
        connection.execute("INSERT INTO items BY NAME FROM stream SEMI JOIN wanted USING (task)")
        total = connection.execute("SELECT count(*) FROM items").fetchall()[0][0]
        kept = {MAP_KEY: comparison.map.to_json(), SEAL: EMPTY}
        metadata = ", ".join(f"{quoted(key)}: {quoted(text)}" for key, text in kept.items())
        connection.execute(
            f"""COPY (FROM items ORDER BY task, transition, cause, item) TO {quoted(str(path))}
                (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {_group_rows(total)},
                 KV_METADATA {{{metadata}}})"""
        )
    seal(Path(path))


class ItemGroup(NamedTuple):
    """A run of consecutive rows that are alike in all that can be filtered by."""

    task: str
    transition: str
    cause: str | None
    start: int
    size: int


@dataclass(frozen=True)
class Filter:
    """Which items are asked for; an empty text stands for all."""

    transition: str = ""
    task: str = ""
    cause: str = ""
    text: str = ""

    def takes(self, group: ItemGroup) -> bool:
        """Whether the items of a group pass; the text is a matter of single items."""
        return (
            self.transition in ("", group.transition)
            and self.task in ("", group.task)
            and self.cause in ("", group.cause or NO_CAUSE)
        )


@dataclass
class Page:
    """Some of the items that were asked for."""

    rows: list[dict[str, Any]]
    total: int | None
    """How many there are in all; a search does not know."""
    next: int | None
    """Where the next page begins, None at the end."""
    searched: float = 1.0
    """Share of the items that were looked at so far."""


class Texts(NamedTuple):
    """Some items with their texts."""

    numbers: list[int]
    """Their places in the file."""
    contents: list[list[Any]]
    """Of each: its texts as `_TEXTS` names them, and its options as `OPTIONS` does."""


class ItemStore:
    """Reads a file of `write_items`; safe to use from several threads.

    Example:
        >>> import tempfile
        >>> from forgetmap import Samples, content_hash
        >>> from forgetmap.map import compare_logs
        >>> def log(*scores):
        ...     return Samples.from_rows({"item": content_hash(str(i)), "score": s}
        ...                              for i, s in enumerate(scores))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     compared = compare_logs(log(1, 1, 0), log(1, 0, 0), causes=True)
        ...     write_items(compared, f"{folder}/items.parquet")
        ...     store = ItemStore(f"{folder}/items.parquet")
        ...     store.total, store.changed, store.page(Filter(transition="never")).total
        (3, 1, 1)
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise InputError(f"{path}: is not a file; write it with forgetmap compare --save")
        check_sealed(self.path)
        self._stamp = self._stamped()
        self._connection = connect()
        self._connection.execute("SET parquet_metadata_cache = true")
        try:
            source = self._connection.read_parquet(plain_path(self.path), file_row_number=True)
            missing = set(_SAVED.names) - set(source.columns)
            if lacking := missing - set(_LATER):
                raise InputError(f"{path}: lacks the column {min(lacking)!r}; save it again")
            nulls = (f"NULL::{_LATER[name]} AS {name}" for name in sorted(missing))
            read = f"* REPLACE ({_CAUSE} AS cause)", "cause AS stored_cause"
            source.project(", ".join((*read, *nulls))).create_view("items")
        except duckdb.Error as error:
            raise InputError(f"{path}: is not a readable Parquet file") from error
        self.groups = [
            ItemGroup(**row)
            for row in self._records(
                """SELECT task, transition, cause, min(file_row_number) AS start, count(*) AS size
                   FROM items GROUP BY task, transition, cause, stored_cause ORDER BY start"""
            )
        ]
        ends = 0
        for group in self.groups:
            if group.start != ends:
                raise InputError(f"{path}: its rows are not in order; save it again")
            ends += group.size
        self.total = ends

    @property
    def changed(self) -> int:
        """How many items changed."""
        return sum(group.size for group in self.groups if group.transition in CHANGED)

    @cached_property
    def with_probability(self) -> int:
        """How many items have the right option's probability in both logs."""
        return int(self._records("SELECT count(probability_before) AS n FROM items")[0]["n"])

    def page(self, wanted: Filter, offset: int = 0, size: int = PAGE) -> Page:
        """The items from `offset` on, of those that pass the filter.

        With a text to search for, `offset` counts the items looked at, and a page may come with
        fewer rows than `size`, or none, before all were looked at.
        """
        runs = _runs(group for group in self.groups if wanted.takes(group))
        total = sum(map(len, runs))
        if wanted.text:
            return self._search(wanted.text, runs, total, offset, size)
        numbers = [number for run in _part(runs, offset, offset + size) for number in run]
        after = offset + len(numbers)
        return Page(self._listed(numbers), total, after if after < total else None)

    def _search(self, text: str, runs: list[range], total: int, offset: int, size: int) -> Page:
        matching: list[int] = []
        began = time.monotonic()
        step = _group_rows(self.total)  # a row group is unpacked whole, so less would save nothing
        while offset < total and len(matching) < size and time.monotonic() < began + SEARCH_SECONDS:
            run = next(_part(runs, offset, offset + step))
            hits = self._matching(text, run)[: size - len(matching)]
            matching += hits
            full = len(matching) == size  # then the rest of the run is left to the next page
            offset += hits[-1] + 1 - run.start if full else len(run)
        share = offset / total if offset < total else 1.0
        return Page(self._listed(matching), None, offset if offset < total else None, share)

    def _matching(self, text: str, run: range) -> list[int]:
        """Rows of a run that hold the text, in any of the columns a person would look at."""
        rows = self._records(
            f"""SELECT file_row_number AS number FROM items
                WHERE file_row_number BETWEEN $first AND $last AND {_HOLDS} ORDER BY 1""",
            {"text": _pattern(text), "first": run.start, "last": run.stop - 1},
        )
        return [row["number"] for row in rows]

    def _listed(self, numbers: list[int]) -> list[dict[str, Any]]:
        """Rows as a list shows them: what identifies the item, and the end of its question."""
        if not numbers:
            return []
        answers = ", ".join(f"left({name}, {_SNIPPET}) AS {name}" for name in _ANSWERS)
        return self._records(
            f"""SELECT {", ".join(_IDENTITY)}, {answers}, {_tail("prompt_before")} AS snippet
                FROM items WHERE file_row_number IN ({", ".join(map(str, numbers))})
                ORDER BY file_row_number"""
        )

    def find(self, task: str, item: str) -> dict[str, Any] | None:
        """One item with all its texts, cut where they are endless; None if it is not there."""
        texts = ", ".join(f"{_cut(name)} AS {name}" for name in _TEXTS)
        records = self._records(
            f"""SELECT {", ".join(_IDENTITY)}, {texts}, {_tail("prompt_before")} AS snippet,
                       {_WEIGHED}
                FROM items WHERE task = $task AND item = $item LIMIT 1""",
            {"task": task, "item": item},
        )
        return records[0] if records else None

    def table(self, wanted: Filter) -> Iterator[pa.RecordBatch]:
        """Stream the items that pass, every column whole."""
        conditions = {
            "transition": "transition = $transition",
            "task": "task = $task",
            "cause": f"coalesce(cause, '{NO_CAUSE}') = $cause",
            "text": _HOLDS,
        }
        asked = {name: value for name, value in asdict(wanted).items() if value}
        where = " AND ".join(["true", *(conditions[name] for name in asked)])
        if wanted.text:
            asked["text"] = _pattern(wanted.text)
        query = f"SELECT {', '.join(COLUMNS.names)} FROM items WHERE {where}"
        yield from self._arrow(query, asked).to_arrow_reader(2048)

    def sample(self, most: int) -> pa.Table:
        """Items for a file, those that lost most confidence first.

        Where there are more, those that changed are taken before the others, drawn by their hash.
        """
        return self._arrow(
            f"""FROM (SELECT {", ".join(_IDENTITY)}, file_row_number FROM items
                      ORDER BY transition NOT IN {CHANGED}, hash(item), task LIMIT $most)
                ORDER BY {_FALL} DESC, file_row_number""",
            {"most": most},
        ).to_arrow_table()

    def texts(self, most: int, size: int, *, drawn: bool = False) -> Iterator[Texts]:
        """Texts of changed items, in parts and in the order of `sample`, or as they were drawn."""
        listed = ", ".join(_cut(name) for name in _TEXTS)
        order = "hash(item), task" if drawn else f"{_FALL} DESC, file_row_number"
        parts = self._arrow(
            f"""WITH chosen AS (
                    SELECT file_row_number FROM items WHERE transition IN {CHANGED}
                    ORDER BY hash(item), task LIMIT $most)
                SELECT file_row_number, [{listed}] AS texts, {_WEIGHED}
                FROM items SEMI JOIN chosen USING (file_row_number) ORDER BY {order}""",
            {"most": most},
        )
        for batch in parts.to_arrow_reader(size):
            numbers, *columns = (column.to_pylist() for column in batch.columns)
            rows = zip(*columns, strict=True)
            yield Texts(numbers, [[*texts, *options] for texts, *options in rows])

    @cached_property
    def map(self) -> bytes | None:
        """The JSON of the map that the items belong to; None in a file of an older version."""
        metadata = pq.read_metadata(self.path).metadata or {}
        text = metadata.get(MAP_KEY.encode())
        return bytes(text) if text is not None else None

    def _stamped(self) -> tuple[int, int, int]:
        """What changes when the file is saved again."""
        now = self.path.stat()
        return now.st_ino, now.st_mtime_ns, now.st_size

    def _check_same(self) -> None:
        """Rows of one save must not mix with those of the next."""
        if not self.path.is_file() or self._stamped() != self._stamp:
            raise InputError(f"{self.path}: was saved again while it was open; open it again")

    def _arrow(self, query: str, values: dict[str, Any]) -> duckdb.DuckDBPyRelation:
        self._check_same()
        return self._connection.cursor().sql(query, params=values)

    def _records(self, query: str, values: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        try:
            cursor = self._connection.cursor().execute(query, values or {})
            names = [column[0] for column in cursor.description]
            rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        except (duckdb.IOException, duckdb.InvalidInputException) as error:
            raise InputError(f"{self.path}: is damaged; save it again") from error
        self._check_same()
        return rows


def _group_rows(total: int) -> int:
    return min(max(total // _ROW_GROUPS, _FEWEST_ROWS), _MOST_ROWS)


def _pattern(text: str) -> str:
    """A text to search for, with nothing in it that LIKE would take for a wildcard."""
    return "%" + re.sub(r"([\\%_])", r"\\\1", text) + "%"


def _cut(name: str) -> str:
    """SQL for a text that is cut, and says so."""
    return (
        f"if(length({name}) > {MOST_CHARACTERS}, {name}[:{MOST_CHARACTERS}] || "
        f"printf(' … (%d more characters)', length({name}) - {MOST_CHARACTERS}), {name})"
    )


def _tail(name: str) -> str:
    """SQL for the end of a prompt: in a few-shot prompt that is where the question stands.

    It does not begin in the middle of a word.
    """
    text = f"rtrim({name})"
    cut = f"'… ' || regexp_replace(right({text}, {_SNIPPET}), '^\\S*\\s+', '')"
    return f"if(length({text}) > {_SNIPPET}, {cut}, {text})"


def _runs(groups: Iterable[ItemGroup]) -> list[range]:
    """Row numbers of groups; groups that follow each other become one run."""
    runs: list[range] = []
    for group in groups:
        joined = bool(runs) and runs[-1].stop == group.start
        start = runs.pop().start if joined else group.start
        runs.append(range(start, group.start + group.size))
    return runs


def _part(runs: list[range], start: int, stop: int) -> Iterator[range]:
    """The rows number start to stop among those of the runs, as runs."""
    seen = 0
    for run in runs:
        part = run[max(start - seen, 0) : max(stop - seen, 0)]
        if part:
            yield part
        seen += len(run)
