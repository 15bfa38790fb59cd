"""What the columns of lighteval's details files say, the same for both layouts.

Columns are worked on whole where that is possible. What was asked is worked out once for all runs
of a task, as they ask the same; text columns are only touched when text was asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from forgetmap.base.errors import InputError
from forgetmap.samples.identity import content_hash, wording_hash


class Asked:
    """The items of some rows: their questions, options and right answers."""

    def __init__(
        self, queries: list[Any], options: list[list[str]], targets: list[list[str]]
    ) -> None:
        self.queries = queries
        self.options = options
        self.targets = targets
        self._hashed: tuple[list[bool] | None, list[int | None]] | None = None

    def items(self, by_likelihood: list[bool] | None) -> list[int | None]:
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
            self._hashed = (
                by_likelihood,
                [
                    content_hash(query, [options, targets]) if query else None
                    for query, options, targets in items
                ],
            )
        return self._hashed[1]

    @cached_property
    def k(self) -> list[int | None]:
        """How many options were shown; null for an open answer."""
        return [len(options) if len(options) > 1 else None for options in self.options]

    @cached_property
    def wording(self) -> list[int | None]:
        """The hashes of the words alone; null where there is not one right answer."""
        return [
            wording_hash(query, options, targets[0]) if query and len(targets) == 1 else None
            for query, options, targets in zip(
                self.queries, self.options, self.targets, strict=True
            )
        ]


class Recall:
    """What was asked last: the next run of the same task most often asks it again."""

    def __init__(self) -> None:
        self._columns: dict[str, pa.Array] = {}
        self._asked: Asked | None = None

    def asked(self, columns: dict[str, pa.Array], work_out: Callable[[], Asked]) -> Asked:
        """What some columns ask, worked out only if they differ from the last ones."""
        same = columns.keys() == self._columns.keys() and all(
            column.equals(self._columns[name]) for name, column in columns.items()
        )
        if self._asked is None or not same:
            self._asked = None  # so that memory holds one at a time
            self._asked, self._columns = work_out(), columns
        return self._asked


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


def details_of(table: pa.RecordBatch, first: int, text: bool, recall: Recall) -> Details:
    """What some rows say, of which the first has a number, from 0 on."""
    if "doc" in table.schema.names:
        return _struct_details(table, text, recall)
    return _flat_details(table, first, text, recall)


def wanted_columns(file: Path, text: bool, schema: pa.Schema) -> list[str]:
    """The columns to read, of either layout."""
    if {"doc", "metric", "model_response"} <= set(schema.names):
        return _struct_columns(text)
    if "example" in schema.names and {"metrics", *_METRICS} & set(schema.names):
        return _flat_columns(schema, text)
    raise InputError(f"{file}: has neither the flat nor the struct columns of lighteval's details")


# --- the flat layout, up to 0.10 ------------------------------------------------------------------

_METRICS = ("acc", "acc_norm", "mc1", "mc2", "em", "f1")
"""Columns of the leaderboard's first files, before `metrics` held them."""


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


def _flat_details(table: pa.RecordBatch, first: int, text: bool, recall: Recall) -> Details:
    """There is no id; rows are numbered, in the harness's order."""
    names = table.schema.names
    content = {name: table[name] for name in ("example", *_LISTS) if name in names}
    predictions = table["predictions"].to_pylist() if "predictions" in names else []
    scored_by_likelihood = _scored_by_likelihood(table.schema)
    return Details(
        metrics=table["metrics"] if "metrics" in names else _metrics_struct(table),
        refs=numbers(first, len(table)),
        asked=recall.asked(content, lambda: _flat_asked(table)),
        likelihoods=[[_listed(value)[0] for value in values or ()] for values in predictions]
        if scored_by_likelihood
        else None,
        prompts=table["full_prompt"].to_pylist() if text and "full_prompt" in names else None,
        responses=None if scored_by_likelihood or not text else predictions,
        extracted=table["specifics"].to_pylist() if text and "specifics" in names else None,
    )


_LISTS = ("choices", "gold", "gold_index")


def _flat_asked(table: pa.RecordBatch) -> Asked:
    options, gold, gold_index = (
        _lists(table[name]) if name in table.schema.names else [[]] * len(table) for name in _LISTS
    )
    targets = [
        texts or [shown[index] for index in right if 0 <= index < len(shown)]
        for texts, shown, right in zip(gold, options, gold_index, strict=True)
    ]
    return Asked(table["example"].to_pylist(), options, targets)


def numbers(first: int, rows: int) -> pa.Array:
    """The numbers of some rows as text.

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


def _struct_columns(text: bool) -> list[str]:
    wanted = ["doc.query", "doc.choices", "doc.gold_index", "doc.id", "metric"]
    wanted += ["model_response.logprobs"]
    return wanted + (
        ["model_response.input", "model_response.text", "doc.specific"] if text else []
    )


def _struct_details(table: pa.RecordBatch, text: bool, recall: Recall) -> Details:
    doc, response = table["doc"], table["model_response"]
    content = {
        name: doc.field(index)
        for name in ("query", "choices", "gold_index")
        if (index := doc.type.get_field_index(name)) >= 0
    }
    asked = recall.asked(content, lambda: _struct_asked(doc))
    likelihoods = [values or [] for values in _field(response, "logprobs")]
    return Details(
        metrics=table["metric"],
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
