"""Made-up data of the benchmarks, the same for every run: Samples files, lighteval logs, patterns.

Every maker returns the counts that a correct comparison must find, computed from the made-up
outcomes themselves and not from the files.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from forgetmap.samples.table import SCHEMA, Meta, Samples
from forgetmap.stats.patterns import MOMENTS, Patterns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Integers = NDArray[np.int64]
    Truths = NDArray[np.bool_]

Counts = list[list[Any]]
"""Rows of (task, ..., number); sorted, so that two of them can be compared."""

SEED = 20_251
OPTIONS = (4, 2, 5, None)
"""Numbers of options, given to the tasks in turn; None is an open answer."""
ROW_GROUP = 131_072


def outcomes(rng: np.random.Generator, items: int, repeats: int) -> tuple[Truths, Truths]:
    """Right or wrong, (items, repeats) for each side.

    Most items are easy or hard for both models; some changed, and every answer has some luck.
    """
    before = rng.beta(0.5, 0.35, items)
    after = np.where(rng.random(items) < 0.15, rng.beta(0.5, 0.5, items), before)
    shape = items, repeats
    return rng.random(shape) < before[:, None], rng.random(shape) < after[:, None]


def task_names(tasks: int) -> list[str]:
    """Names that look like a benchmark's subjects."""
    return [f"subject_{number:03d}" for number in range(tasks)]


def options_of(task: int) -> int | None:
    """The number of options that a task shows."""
    return OPTIONS[task % len(OPTIONS)]


# --- Samples files -------------------------------------------------------------------------------


class _Side(NamedTuple):
    """One model's outcomes, and the order in which its rows are written."""

    model: str
    right: Truths
    order: Integers
    tasks: list[str]


class _Stream(Samples):
    """Samples that are made while they are written, so that no size needs much memory.

    They go through the writer of `forgetmap convert`, hence with its row groups and compression.
    """

    def __init__(self, side: _Side) -> None:
        super().__init__(Path(), Meta(harness="benchmark"))
        self.side = side

    def to_batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Make the rows, one row group at a time."""
        for start in range(0, len(self.side.order), ROW_GROUP):
            batch = _samples_batch(self.side, self.side.order[start : start + ROW_GROUP])
            yield batch.select(columns or SCHEMA.names)


def make_samples(folder: str, items: int, tasks: int, repeats: int) -> Counts:
    """Write before.parquet and after.parquet; return the items of every outcome pattern.

    The rows of the two files come in two different random orders.
    """
    rng = np.random.default_rng([SEED, items, repeats])
    sides = outcomes(rng, items, repeats)
    for name, right in zip(("before", "after"), sides, strict=True):
        order = rng.permutation(items * repeats)
        _Stream(_Side(name, right, order, task_names(tasks))).write(Path(folder, f"{name}.parquet"))
    return _pattern_counts(np.arange(items) % tasks, *sides)


def _samples_batch(side: _Side, rows: Integers) -> pa.RecordBatch:
    item, repeat = np.divmod(rows, side.right.shape[1])
    task = item % len(side.tasks)
    right = side.right[item, repeat]
    number = pa.array(item).cast(pa.string())
    k = pa.array([options_of(index) for index in range(len(side.tasks))], pa.int32()).take(task)
    values: dict[str, Any] = {
        "model": _same(side.model, len(rows)),
        "run": _same("2025-07-01T12-00-00", len(rows)),
        "task": pa.array(side.tasks).take(task),
        "item": _mixed(item),
        "item_ref": number,
        "repeat": repeat.astype(np.int32),
        "metric": _same("acc", len(rows)),
        "score": right.astype(np.float64),
        "correct": right,
        "status": _same("ok", len(rows)),
        "k": k,
        "prompt_hash": _mixed(item + 2**40),
        "source": _text("samples.jsonl:", number),
        "prompt": _text("What follows from statement ", number, "?"),
        "target": pa.array(list("ABCD")).take(item % 4),
        "answer": pa.array(list("ABCD")).take((item + ~right) % 4),
        "response": _text("Let us think about statement ", number, ". The answer follows from it."),
    }
    arrays = [
        pa.array(values[field.name], field.type)
        if field.name in values
        else pa.nulls(len(rows), field.type)
        for field in SCHEMA
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _same(value: str, rows: int) -> pa.Array:
    return pa.repeat(value, rows)


def _text(*parts: str | pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")


def _mixed(numbers: Integers) -> NDArray[np.uint64]:
    """Distinct numbers that look like hashes (the mixing steps of splitmix64)."""
    mixed = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))


def _pattern_counts(task: Integers, before: Truths, after: Truths) -> Counts:
    """Rows of (task, k, times right before, times right after, items)."""
    names = task_names(int(task.max()) + 1)
    columns = np.stack([task, before.sum(axis=1), after.sum(axis=1)], axis=1)
    distinct, items = np.unique(columns, axis=0, return_counts=True)
    return [
        [names[index], options_of(index), right_before, right_after, number]
        for (index, right_before, right_after), number in zip(
            distinct.tolist(), items.tolist(), strict=True
        )
    ]


# --- lighteval logs ------------------------------------------------------------------------------


class _Task(NamedTuple):
    """What all runs of one task share."""

    name: str
    questions: list[str]
    gold: list[list[str]]


def make_lighteval(folder: str, tasks: int, items: int, seeds: int) -> dict[str, Counts]:
    """Write before/ and after/ as lighteval 0.10 does, one run per task and seed.

    Returns the counts in the three forms in which the contestants give them.
    """
    rng = np.random.default_rng([SEED, tasks, items, seeds])
    text = _Babble(rng)
    patterns: Counts = []
    transitions: Counts = []
    for number, name in enumerate(task_names(tasks)):
        task = _make_task(rng, text, name, items)
        sides = outcomes(rng, items, seeds)
        for model, right in zip(("before", "after"), sides, strict=True):
            for seed in range(seeds):
                stamp = f"2025-07-01T{number // 60:02d}-{number % 60:02d}-{seed:02d}.000000"
                _write_run(Path(folder, model), task, right[:, seed], seed, stamp, text)
        found = _pattern_counts(np.zeros(items, np.int64), *sides)
        patterns += [[name, None, *row[2:]] for row in found]
        joint = np.stack([side.ravel() for side in sides], axis=1)
        distinct, pairs = np.unique(joint, axis=0, return_counts=True)
        transitions += [
            [name, *map(int, pattern), int(n)] for pattern, n in zip(distinct, pairs, strict=True)
        ]
    return {
        "patterns": patterns,
        "transitions": transitions,
        "cells": _mean_flips(patterns, seeds),
    }


def _mean_flips(patterns: Counts, seeds: int) -> Counts:
    """Rows of (task, items, forgotten, gained), the last two as means over all pairings of runs."""
    found: dict[str, list[float]] = {}
    for task, _, right_before, right_after, n in patterns:
        before, after = right_before / seeds, right_after / seeds
        sums = found.setdefault(task, [0, 0.0, 0.0])
        sums[0] += n
        sums[1] += n * before * (1 - after)
        sums[2] += n * (1 - before) * after
    return [[task, n, round(lost, 6), round(won, 6)] for task, (n, lost, won) in found.items()]


class _Babble:
    """Text and tokens without meaning, cut from one long supply."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        letters = rng.integers(ord("a"), ord("z") + 1, size=(4000, 9), dtype=np.uint8)
        sizes = rng.integers(2, 10, 4000)
        words = [row[:size].tobytes().decode() for row, size in zip(letters, sizes, strict=True)]
        self.text = " ".join(words[index] for index in rng.zipf(1.3, 400_000) % 4000)
        self.tokens = rng.zipf(1.2, 1_000_000) % 50_000

    def cut(self, low: int, high: int) -> str:
        """Between `low` and `high` characters."""
        start = int(self.rng.integers(len(self.text) - high))
        return self.text[start : start + int(self.rng.integers(low, high))]

    def token_lists(self, texts: Sequence[str]) -> pa.Array:
        """About one token for every four characters of each text."""
        ends = np.cumsum([0, *(len(text) // 4 for text in texts)])
        supply = np.resize(self.tokens, int(ends[-1]))
        return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(supply))


def _make_task(rng: np.random.Generator, text: _Babble, name: str, items: int) -> _Task:
    questions = [f"{name} {number}: {text.cut(300, 700)}?" for number in range(items)]
    return _Task(name, questions, [[letter] for letter in rng.choice(list("ABCD"), items)])


def _write_run(
    root: Path, task: _Task, right: Truths, seed: int, stamp: str, text: _Babble
) -> None:
    model = f"org/{root.name}"
    name = f"community|{task.name}|0"
    details = root / "details" / model / stamp
    results = root / "results" / model
    details.mkdir(parents=True, exist_ok=True)
    results.mkdir(parents=True, exist_ok=True)
    pq.write_table(
        _details(task, right, f"As {model} would be asked.", text),
        details / f"details_{name}_{stamp}.parquet",
        compression="snappy",
    )
    general = {
        "lighteval_sha": "?",
        "max_samples": None,
        "model_name": model,
        "model_dtype": "bfloat16",
        "generation_parameters": {"seed": seed, "temperature": 0.6, "top_p": 0.95},
    }
    accuracy = {"extractive_match": float(right.mean())}
    content = {"config_general": general, "results": {name: accuracy, "all": accuracy}}
    (results / f"results_{stamp}.json").write_text(json.dumps(content, indent=2))


def _details(task: _Task, right: Truths, opening: str, text: _Babble) -> pa.Table:
    """The columns of lighteval 0.10 for a task with generated answers, in its order."""
    rows = len(task.questions)
    prompts = [f"{opening}\n\n{question}\nAnswer:" for question in task.questions]
    letters = [gold[0] if ok else "E" for gold, ok in zip(task.gold, right, strict=True)]
    responses = [f"{text.cut(1000, 2000)}\nAnswer: {letter}" for letter in letters]
    nothing = pa.array([[]] * rows, pa.list_(pa.null()))
    zeros = np.zeros(rows, np.int64)
    generated = text.token_lists(responses)
    return pa.table(
        {
            "choices": nothing,
            "cont_tokens": _listed(_listed(generated)),
            "example": task.questions,
            "full_prompt": prompts,
            "gold": task.gold,
            "gold_index": nothing,
            "input_tokens": _listed(text.token_lists(prompts)),
            "instruction": [""] * rows,
            "metrics": pa.StructArray.from_arrays(
                [right.astype(np.float64)], names=["extractive_match"]
            ),
            "num_asked_few_shots": zeros,
            "num_effective_few_shots": zeros,
            "padded": _listed(pa.array(zeros)),
            "pred_logits": nothing,
            "prediction_logits": nothing,
            "predictions": _listed(pa.array(responses)),
            "specifics": [
                {"extracted_golds": [gold[0]] * 2, "extracted_predictions": [letter] * 2}
                for gold, letter in zip(task.gold, letters, strict=True)
            ],
            "truncated": _listed(pa.array(zeros)),
        }
    )


def _listed(values: pa.Array) -> pa.Array:
    """Put each value into a list of its own."""
    return pa.ListArray.from_arrays(pa.array(np.arange(len(values) + 1), pa.int32()), values)


# --- patterns ------------------------------------------------------------------------------------


def make_patterns(tasks: int, items: int, repeats: int) -> Patterns:
    """Outcome patterns of tasks with so many items each, without making the items."""
    rng = np.random.default_rng([SEED, tasks, items, repeats])
    before, after = (side.sum(axis=1) for side in outcomes(rng, 20_000, repeats))
    side = repeats + 1
    typical = np.bincount(before * side + after, minlength=side**2) / len(before)
    names = np.repeat(task_names(tasks), side**2)
    shares = rng.dirichlet(200 * typical + 0.1, size=tasks)  # every task is a little different
    n = rng.multinomial(items, shares).ravel().astype(np.float64)
    right_before, right_after = (
        np.tile(values.astype(np.float64), tasks) for values in np.divmod(np.arange(side**2), side)
    )
    k = np.repeat([options_of(task) or np.inf for task in range(tasks)], side**2)
    runs = np.full(len(n), float(repeats))
    none = np.full(len(n), -1.0)
    moments = np.zeros((len(n), MOMENTS))
    seen = n > 0  # pairing lists only patterns that occur
    return Patterns(
        names, k.astype(np.float64), none, runs, right_before, runs, right_after, n, moments
    ).where(seen)
