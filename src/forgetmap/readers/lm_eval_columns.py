"""lm-eval's lines by columns: the quick road, for large files that are as lm-eval writes them.

DuckDB parses the lines on all cores and hands out the fields that are needed, as JSON texts. What
is not plain ends with `NotPlain`. The reader then goes on line by line: that copes with it, or says
what is wrong. Both roads give the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from forgetmap.base.ahead import ahead
from forgetmap.base.database import connect, identifier, plain_path, quoted
from forgetmap.base.files import lines
from forgetmap.base.json import first_record
from forgetmap.base.limits import MIB
from forgetmap.readers.table_values import Column
from forgetmap.samples.identity import content_hashes

LARGE = 4 * MIB
"""From this size on it is quicker: below, opening a database costs more than it saves."""
TROUBLE = (duckdb.Error, pa.ArrowException, OSError, ValueError)
"""What may come up on the quick road; `NotPlain` among it."""
_FIELDS = ("doc_id", "doc", "target", "filtered_resps", "filter", "metrics", "prompt_hash")
_RARE = "scores_per_repeat"
_ROWS = 8192
_LONGEST = 16 * MIB
_SHORT = 4 * MIB
"""DuckDB reads as much as two of the longest lines at a time: the less, the sooner rows come."""
_HASH = 16
"""Hexadecimal digits of a prompt's hash that are kept."""


class NotPlain(ValueError):
    """A log that needs a closer look."""


class Rows(NamedTuple):
    """Some lines by columns: an item each, and the scores of them all, in their order."""

    items: dict[str, pa.Array]
    lines: pa.Array
    """The number of each item's line."""
    of_item: NDArray[np.int64]
    """Of each score: which of the items it belongs to."""
    metric: pa.Array
    repeat: pa.Array
    score: pa.Array


class Told(NamedTuple):
    """What is said of some lines as a whole."""

    filters: dict[str, int]
    """How many lines each filter has."""
    left_out: set[str]
    """Metrics that are no scores of single items."""
    size: int
    """About how many bytes they have."""


def plain_rows(file: Path) -> Iterator[tuple[Rows, Told]]:
    """The lines of a file, some at a time."""
    first = first_record(file)
    metrics = first.get("metrics")
    if not isinstance(metrics, list) or not all(isinstance(name, str) for name in metrics):
        raise NotPlain("no list of metrics")
    if not metrics or "bypass" in metrics:
        raise NotPlain("no metric that is a score")
    names = [*_FIELDS, _RARE, *metrics]
    if len({name.lower() for name in names}) < len(names):  # DuckDB takes Acc and acc for one
        raise NotPlain("names that differ in their case alone")
    by_likelihood = _scored_by_likelihood(first.get("filtered_resps"))
    length = len(next(lines(file))[1])
    done = 0
    for batch in ahead(_parsed(file, metrics, by_likelihood, length)):
        numbers = pa.array(np.arange(done, done + len(batch)) + 1)
        done += len(batch)
        _check(batch, metrics)
        values = {name: _plain_scores(batch[name]) for name in metrics}
        scores = {name: column for name, column in values.items() if column is not None}
        if not scores:
            raise NotPlain("no score")
        rows = Rows(_items(batch, by_likelihood), numbers, *_scores(batch["filter"], scores))
        yield rows, Told(_filters(batch), values.keys() - scores.keys(), length * len(batch))


def _parsed(
    file: Path, metrics: list[str], by_likelihood: bool, length: int
) -> Iterator[pa.RecordBatch]:
    """The fields that are needed, by DuckDB; lines are about as long as the first."""
    longest = min(max(8 * length, _SHORT), _LONGEST)
    kinds = dict.fromkeys((*_FIELDS, _RARE, *metrics), "JSON")
    if by_likelihood:
        kinds["filtered_resps"] = "VARCHAR[][]"
    declared = ", ".join(f"{quoted(name)}: '{kind}'" for name, kind in kinds.items())
    selected = ", ".join(
        f"CAST({identifier(name)} AS VARCHAR) AS {identifier(name)}" if kind == "JSON" else name
        for name, kind in kinds.items()
    )
    with connect() as connection:
        rows = connection.sql(
            f"""SELECT {selected} FROM read_ndjson(
                    {quoted(plain_path(file))}, columns = {{{declared}}},
                    maximum_object_size = {longest})"""
        )
        yield from rows.to_arrow_reader(_ROWS)


def _scored_by_likelihood(answers: Any) -> bool:
    """Whether the first line tells the likelihoods of options, with numbers and flags as text."""
    pairs = answers if isinstance(answers, list) else []
    return len(pairs) > 1 and all(
        isinstance(pair, list) and len(pair) == 2 and pair[1] in ("False", "True") for pair in pairs
    )


def _check(batch: pa.RecordBatch, metrics: list[str]) -> None:
    """See that every line has what a plain one has."""
    if any(batch[name].null_count for name in _FIELDS if name != "prompt_hash"):
        raise NotPlain("a field is missing")
    if batch[_RARE].null_count < len(batch):
        raise NotPlain("scores of each repeat")
    if [orjson.loads(names) for names in batch["metrics"].unique().to_pylist()] != [metrics]:
        raise NotPlain("metrics that differ between lines")


def _items(batch: pa.RecordBatch, by_likelihood: bool) -> dict[str, pa.Array]:
    """What the lines say about their items."""
    target = _texts(batch["target"])
    counts: list[int] = []
    docs = _docs(batch["doc"].cast(pa.binary()).to_numpy(zero_copy_only=False), counts)
    items = {
        "item": pa.array(content_hashes(docs, target.to_numpy(zero_copy_only=False))),
        "item_ref": _texts(batch["doc_id"]),
        "prompt_hash": _prompt_hashes(batch["prompt_hash"]),
    }
    options = np.array(counts)
    if by_likelihood:
        items |= _likelihoods(batch["filtered_resps"], target, options)
    else:
        items["k"] = _counts(options)
        items["status"] = _unanswered(batch["filtered_resps"])
    return items


def _docs(texts: Iterable[bytes], counts: list[int]) -> Iterator[dict[str, Any]]:
    """The documents, one at a time; how many options each has goes to `counts`."""
    for text in texts:
        doc = orjson.loads(text)
        if type(doc) is not dict or not doc:
            raise NotPlain("a document is empty, or no object")
        options = doc.get("choices") or doc.get("options")
        if type(options) is dict:
            options = options.get("text")
        counts.append(len(options) if type(options) is list else 0)
        yield doc


def _counts(options: NDArray[np.int64]) -> pa.Array:
    """How many options there are; null for an open answer."""
    return pa.array(options, pa.int32(), mask=options < 2)


def _texts(array: pa.Array) -> pa.Array:
    """Texts, or whole numbers as texts."""
    if pc.all(pc.starts_with(array, '"')).as_py():
        return Column.of_json(array).texts()
    if pc.all(pc.match_substring_regex(array, _WHOLE)).as_py():
        return array
    raise NotPlain("neither texts nor whole numbers")


_WHOLE = "^(0|-?[1-9][0-9]{0,17})$"
"""A whole number as JSON and Python write it, and of 64 bits at most."""


def _prompt_hashes(array: pa.Array) -> pa.Array:
    """The first 64 bits of hashes, which the harness stores as hexadecimal texts of one length."""
    if array.null_count == len(array):
        return pa.nulls(len(array), pa.uint64())
    lengths = pc.binary_length(array)
    length = lengths[0].as_py()
    if array.null_count or length < _HASH + 2 or not pc.all(pc.equal(lengths, length)).as_py():
        raise NotPlain("hashes of several lengths")
    letters = b"".join(array.cast(pa.binary()).to_numpy(zero_copy_only=False))
    digits = np.frombuffer(letters, np.uint8).reshape(-1, length)[:, 1 : _HASH + 1].tobytes()
    found = np.frombuffer(bytes.fromhex(digits.decode()), ">u8")
    if len(found) < len(array):
        raise NotPlain("white space in a hash")
    return pa.array(found.astype(np.uint64))


def _unanswered(array: pa.Array) -> pa.Array:
    """The status of lines whose filter extracted nothing."""
    if pc.any(pc.match_substring_regex(array, r"^\[\[|^[^\[]")).as_py():
        raise NotPlain("several answers to a line")
    nothing = pc.match_substring_regex(array, r'^\["(\[invalid\])?"[,\]]')
    return pc.if_else(nothing, "no_answer", None).cast(pa.string())


def _likelihoods(
    answers: pa.Array, target: pa.Array, options: NDArray[np.int64]
) -> dict[str, pa.Array]:
    """The options' probabilities, the right one's, and their number."""
    pairs = answers.flatten()
    if pairs.null_count or not pc.all(pc.equal(pc.list_value_length(pairs), 2)).as_py():
        raise NotPlain("an option without its likelihood")
    values = pairs.flatten()
    flags, numbers = values.take(_every_second(values, 1)), values.take(_every_second(values, 0))
    if values.null_count or not pc.all(pc.is_in(flags, _FLAGS)).as_py():
        raise NotPlain("an option without its flag")
    counts = pc.list_value_length(answers).to_numpy(zero_copy_only=False)
    if (counts < 2).any() or (counts == 2 * options).any():  # the latter: mutual information
        raise NotPlain("likelihoods of another kind")
    if not pc.all(pc.match_substring_regex(target, "^ *[0-9]{1,4} *$")).as_py():
        raise NotPlain("a target that does not name its option by its place")
    gold = pc.ascii_trim_whitespace(target).cast(pa.int32()).to_numpy()
    starts = np.concatenate([[0], np.cumsum(counts)])
    shares = _softmax(numbers.cast(pa.float64()).to_numpy(), starts[:-1], counts)
    inside = gold < counts
    right = shares[starts[:-1] + np.where(inside, gold, 0)]
    return {
        "k": _counts(counts),
        "gold_probability": pa.array(right, mask=~inside),
        "option_probabilities": pa.ListArray.from_arrays(
            pa.array(starts, pa.int32()), pa.array(shares).cast(pa.float32())
        ),
        "right_option": pa.array(gold, pa.int32(), mask=~inside),
    }


_FLAGS = pa.array(["False", "True"])


def _every_second(values: pa.Array, first: int) -> pa.Array:
    return pa.array(np.arange(first, len(values), 2))


def _softmax(
    values: NDArray[np.float64], starts: NDArray[np.int64], counts: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The probabilities of the options of every line."""
    if not np.isfinite(values).all():
        raise NotPlain("a likelihood that is not finite")
    weights = np.exp(values - np.repeat(np.maximum.reduceat(values, starts), counts))
    shares: NDArray[np.float64] = weights / np.repeat(np.add.reduceat(weights, starts), counts)
    return shares


def _filters(batch: pa.RecordBatch) -> dict[str, int]:
    """How many lines each filter has."""
    counted = pc.value_counts(batch["filter"])
    return {
        _as_text(name): count
        for name, count in zip(*(part.to_pylist() for part in counted.flatten()), strict=True)
    }


def _as_text(stored: str) -> str:
    name = orjson.loads(stored)
    if not isinstance(name, str):
        raise NotPlain("a name that is no text")
    return name


def _scores(
    filters: pa.Array, scores: dict[str, NDArray[np.float64]]
) -> tuple[NDArray[np.int64], pa.Array, pa.Array, pa.Array]:
    """Of each score, line by line: its line, its metric with the filter, its repeat, its value."""
    encoded = filters.dictionary_encode()
    named = [
        metric if name == "none" else f"{metric},{name}"
        for name in map(_as_text, encoded.dictionary.to_pylist())
        for metric in scores
    ]
    places = encoded.indices.to_numpy()[:, None] * len(scores) + np.arange(len(scores))
    metric = pa.array(named, pa.string()).take(pa.array(places.ravel()))
    repeat = pa.repeat(pa.scalar(0, pa.int32()), places.size)
    value = pa.array(np.column_stack(list(scores.values())).ravel())
    return np.repeat(np.arange(len(filters)), len(scores)), metric, repeat, value


def _plain_scores(array: pa.Array) -> NDArray[np.float64] | None:
    """The scores of all lines; None where each is a list, an ingredient of a statistic."""
    if pc.all(pc.match_substring_regex(array, _NUMBERS)).as_py():
        return None
    if array.null_count:
        raise NotPlain("a score is missing")
    encoded = array.dictionary_encode()
    values = [orjson.loads(text) for text in encoded.dictionary.to_pylist()]
    if not all(isinstance(value, int | float) for value in values):  # truth values too
        raise NotPlain("a score that is not a plain number")
    scores: NDArray[np.float64] = np.array(values, np.float64)[encoded.indices.to_numpy()]
    return scores


_NUMBERS = r"^\[-?[0-9.]+(,-?[0-9.]+)*\]$"
