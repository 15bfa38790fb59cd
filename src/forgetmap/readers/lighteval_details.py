"""What the columns of lighteval's details files say, the same for both layouts.

Columns are worked on whole where that is possible. What was asked is worked out once for all runs
of a task, as they ask the same; text columns are only touched when text was asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from forgetmap.base.errors import InputError
from forgetmap.base.limits import MIB
from forgetmap.base.parquet import Raw, Stored, parquet_parts
from forgetmap.samples.identity import content_hash, wording_hash
from forgetmap.samples.table import text_length


class Asked:
    """The items of some rows: their questions, options and right answers."""

    def __init__(
        self, queries: list[Any], options: list[list[str]], targets: list[list[str]]
    ) -> None:
        self.queries = queries
        self.options = options
        self.targets = targets
        self._hashed: tuple[list[bool] | None, pa.Array] | None = None

    def part(self, first: int, rows: int) -> Asked:
        """Some of the items, from one on."""
        if rows == len(self.queries):
            return self
        lists = (self.queries, self.options, self.targets)
        return Asked(*(values[first : first + rows] for values in lists))

    def items(self, by_likelihood: list[bool] | None) -> pa.Array:
        """The hashes of the items; null where there is no question.

        The options belong to an item's content only where it was scored by their likelihood:
        elsewhere they are part of the query, and the flat layout does not store them.
        """
        if self._hashed is None or self._hashed[0] != by_likelihood:
            shown = self.options if by_likelihood else [[]] * len(self.queries)
            if by_likelihood and not all(by_likelihood):
                pairs = zip(self.options, by_likelihood, strict=True)
                shown = [options if scored else [] for options, scored in pairs]
            items = zip(self.queries, shown, self.targets, strict=True)
            hashes = [
                content_hash(query, [options, targets]) if query else None
                for query, options, targets in items
            ]
            self._hashed = by_likelihood, pa.array(hashes, pa.uint64())
        return self._hashed[1]

    @cached_property
    def letters(self) -> int:
        """How long all texts are together."""
        lists = (self.queries, *self.options, *self.targets)
        return sum(map(text_length, lists))

    @cached_property
    def k(self) -> pa.Array:
        """How many options were shown; null for an open answer."""
        sizes = [len(options) if len(options) > 1 else None for options in self.options]
        return pa.array(sizes, pa.int32())

    @cached_property
    def wording(self) -> pa.Array:
        """The hashes of the words alone; null where there is not one right answer."""
        hashes = [
            wording_hash(query, options, targets[0]) if query and len(targets) == 1 else None
            for query, options, targets in zip(
                self.queries, self.options, self.targets, strict=True
            )
        ]
        return pa.array(hashes, pa.uint64())


class Part(NamedTuple):
    """Some rows of a details file, as they are stored."""

    rows: pa.RecordBatch
    first: int
    """The number of the first row in its file, from 0 on."""
    recall: Recall


def stored_parts(file: Path, text: bool) -> Iterator[Part]:
    """The rows of a details file, with the columns that are needed and not known yet."""
    first, recall = 0, Recall()
    for rows in parquet_parts(file, partial(_wanted_columns, file, text, recall)):
        yield Part(rows, first, recall)
        first += len(rows)


class Recall:
    """What a file asks, worked out once for all files that store the same bytes about it.

    Runs of a task do, and so do the logs of two models. What came in several parts is not kept.
    """

    def __init__(self) -> None:
        self._rows = 0
        self._raw: Raw | None = None
        self._asked: Asked | None = None

    def look(self, stored: Stored, columns: Sequence[str]) -> bool:
        """Whether it is known what the file asks."""
        self._rows = stored.footer.num_rows
        self._raw = stored.raw(columns)
        self._asked = _KNOWN.find(self._raw) if self._raw else None
        return self._asked is not None

    def asked(self, part: Part, work_out: Callable[[], Asked]) -> Asked:
        """What some rows ask."""
        if self._asked:
            return self._asked.part(part.first, len(part.rows))
        asked = work_out()
        if self._raw and len(part.rows) == self._rows:
            _KNOWN.keep(self._raw, asked)
        return asked


class Known:
    """What the latest files asked: so many items, and so many bytes and letters, at most.

    Both what is stored and what it says are kept, and few bytes may say much.
    """

    def __init__(self, most: int = 50_000, most_bytes: int = 64 * MIB) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._items = self._bytes = 0
        self._files: dict[tuple[object, ...], tuple[Raw, Asked]] = {}
        """By kinds and sizes of their columns, the latest last."""

    def find(self, raw: Raw) -> Asked | None:
        """What a file asks that stores these bytes; None if that is not known."""
        known = self._files.get(raw.about)
        return known[1] if known and known[0] == raw else None

    def keep(self, raw: Raw, asked: Asked) -> None:
        """Keep what a file asks; forget what came first."""
        self._forget(raw.about)
        self._files[raw.about] = raw, asked
        self._count(raw, asked, 1)
        while self._items > self._most or self._bytes > self._most_bytes:
            self._forget(next(iter(self._files)))

    def _forget(self, about: tuple[object, ...]) -> None:
        if about in self._files:
            self._count(*self._files.pop(about), -1)

    def _count(self, raw: Raw, asked: Asked, sign: int) -> None:
        self._items += sign * len(asked.queries)
        self._bytes += sign * (sum(map(len, raw.content)) + asked.letters)


_KNOWN = Known()


class Details(NamedTuple):
    """What some rows of a details file say."""

    metrics: pa.StructArray
    refs: pa.Array | list[str]
    asked: Asked
    likelihoods: list[list[float]] | None
    """One per option where the item was scored by likelihood, else empty; None where none was."""
    prompts: list[Any] | None = None
    responses: list[Any] | None = None
    extracted: list[Any] | None = None

    @property
    def by_likelihood(self) -> list[bool] | None:
        """Which items were scored by the likelihood of their options; None where none was."""
        if self.likelihoods is None:
            return None
        return [
            len(values) == len(options) > 1
            for values, options in zip(self.likelihoods, self.asked.options, strict=True)
        ]


def details_of(part: Part, text: bool) -> Details:
    """What some rows say."""
    layout = _struct_details if "doc" in part.rows.schema.names else _flat_details
    return layout(part, text)


def _wanted_columns(file: Path, text: bool, recall: Recall, stored: Stored) -> list[str]:
    """The columns to read, of either layout, without those that ask what is known already."""
    schema = stored.schema
    structs = _has_structs(schema)
    if not structs and not _is_flat(schema):
        raise InputError(
            f"{file}: has neither the flat nor the struct columns of lighteval's details"
        )
    wanted = _struct_columns(text) if structs else _flat_columns(schema, text)
    asking = [name for name in wanted if name in _ASKING]
    known = recall.look(stored, asking)
    # A struct of which no field is read would be missing.
    if not known or (structs and schema.field("doc").type.get_field_index("id") < 0):
        return wanted
    return [name for name in wanted if name not in asking]


# --- the flat layout, up to 0.10 ------------------------------------------------------------------

_METRICS = ("acc", "acc_norm", "mc1", "mc2", "em", "f1")
"""Columns of the leaderboard's first files, before `metrics` held them."""


def _is_flat(schema: pa.Schema) -> bool:
    """Whether a file has this layout."""
    return "example" in schema.names and bool({"metrics", *_METRICS} & set(schema.names))


def _flat_columns(schema: pa.Schema, text: bool) -> list[str]:
    wanted = ["example", "metrics", "gold", "gold_index", "choices"]
    wanted += [] if "metrics" in schema.names else _METRICS
    wanted += ["full_prompt", "specifics"] if text else []
    if text or _scored_by_likelihood(schema):
        wanted.append("predictions")
    return [name for name in wanted if name in schema.names]


def _scored_by_likelihood(schema: pa.Schema) -> bool:
    """Whether predictions are likelihoods: numbers, or pairs of them with what is greedy."""
    if "predictions" not in schema.names:
        return False
    kind = schema.field("predictions").type.value_type
    return bool(pa.types.is_list(kind) or pa.types.is_floating(kind))


def _flat_details(part: Part, text: bool) -> Details:
    """There is no id; rows are numbered, in the harness's order."""
    table = part.rows
    names = table.schema.names
    predictions = table["predictions"].to_pylist() if "predictions" in names else []
    scored_by_likelihood = _scored_by_likelihood(table.schema)
    return Details(
        metrics=table["metrics"] if "metrics" in names else _metrics_struct(table),
        refs=numbers(part.first, len(table)),
        asked=part.recall.asked(part, lambda: _flat_asked(table)),
        likelihoods=[[_listed(value)[0] for value in values or ()] for values in predictions]
        if scored_by_likelihood
        else None,
        prompts=table["full_prompt"].to_pylist() if text and "full_prompt" in names else None,
        responses=None if scored_by_likelihood or not text else predictions,
        extracted=table["specifics"].to_pylist() if text and "specifics" in names else None,
    )


_LISTS = ("choices", "gold", "gold_index")
_ASKING = ("example", *_LISTS, "doc.query", "doc.choices", "doc.gold_index")
"""Columns that say what was asked, in either layout."""


def _flat_asked(table: pa.RecordBatch) -> Asked:
    options, gold, gold_index = (
        _lists(table[name]) if name in table.schema.names else [[]] * len(table) for name in _LISTS
    )
    targets = [
        texts or [shown[index] for index in right if 0 <= index < len(shown)]
        for texts, shown, right in zip(gold, options, gold_index, strict=True)
    ]
    return Asked(table["example"].to_pylist(), options, targets)


@lru_cache(maxsize=2)
def numbers(first: int, rows: int) -> pa.Array:
    """The numbers of some rows as text; the files of a task have the same.

    Example:
        >>> numbers(5, 3).to_pylist()
        ['5', '6', '7']
    """
    return pa.array(np.arange(first, first + rows)).cast(pa.string())


def _lists(column: pa.Array) -> list[list[Any]]:
    """The values of a column, each as a list."""
    if pa.types.is_list(column.type) and not len(column.flatten()):
        return [[]] * len(column)
    return [_listed(value) for value in column.to_pylist()]


def _listed(value: Any) -> list[Any]:
    """A list as it is, nothing as an empty one, and anything else as a list of itself."""
    return value if isinstance(value, list) else [] if value is None else [value]


def _metrics_struct(table: pa.RecordBatch) -> pa.StructArray:
    names = [name for name in _METRICS if name in table.schema.names]
    return pa.StructArray.from_arrays([table[name] for name in names], names)


# --- the structs from 0.11 on ---------------------------------------------------------------------


def _has_structs(schema: pa.Schema) -> bool:
    """Whether a file has this layout."""
    if not {"doc", "metric", "model_response"} <= set(schema.names):
        return False
    return bool(pa.types.is_struct(schema.field("doc").type))


def _struct_columns(text: bool) -> list[str]:
    wanted = ["doc.query", "doc.choices", "doc.gold_index", "doc.id", "metric"]
    wanted += ["model_response.logprobs"]
    return wanted + (
        ["model_response.input", "model_response.text", "doc.specific"] if text else []
    )


def _struct_details(part: Part, text: bool) -> Details:
    doc, response = part.rows["doc"], part.rows["model_response"]
    asked = part.recall.asked(part, lambda: _struct_asked(doc))
    likelihoods = [values or [] for values in _field(response, "logprobs")]
    return Details(
        metrics=part.rows["metric"],
        refs=[str(value) for value in _field(doc, "id")],
        asked=asked,
        likelihoods=likelihoods if any(likelihoods) else None,
        prompts=[
            sent or query
            for sent, query in zip(_field(response, "input"), asked.queries, strict=True)
        ]
        if text
        else None,
        responses=_field(response, "text") if text else None,
        extracted=_field(doc, "specific") if text else None,
    )


def _struct_asked(doc: pa.StructArray) -> Asked:
    shown = [options or [] for options in _field(doc, "choices")]
    targets = []
    for options, gold in zip(shown, _field(doc, "gold_index"), strict=True):
        right = gold if isinstance(gold, list) else [gold]
        targets.append([options[g] for g in right if g is not None and 0 <= g < len(options)])
    return Asked(_field(doc, "query"), shown, targets)


def _field(struct: pa.StructArray, name: str) -> list[Any]:
    index = struct.type.get_field_index(name)
    return [None] * len(struct) if index < 0 else struct.field(index).to_pylist()
