"""Repeats are counted in three ways, from the quickest to the most careful: all say the same."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from forgetmap.base.errors import InputError
from forgetmap.pairing.two_logs import LogPair
from forgetmap.samples.table import Meta, Samples

KINDS = ("plain", "duplicates", "many", "odd numbers", "other k", "clusters", "probabilities")


class Careful(LogPair):
    """Looks for duplicates from the start."""

    duplicated = True


class Grouped(LogPair):
    """Groups each log, without bits for all that was done on an item."""

    def _packed_histogram(self, before, after):
        return None


def a_log(chance: random.Random, kind: str) -> Samples:
    """Runs of some items, some of them missing or without a score."""
    numbers = range(12) if kind == "many" else chance.choice([(0, 1, 2), (0, 1000, 2000)])
    if kind == "odd numbers":
        numbers = (-1, 1, 9, -(2**31), 2**31 - 1)
    rows = []
    for task in [*chance.sample(["sums", "reading", "letters"], 2), "common"]:
        k = chance.choice([None, 2, 4])
        for item in range(6):
            for repeat in numbers:
                if chance.random() < 0.2:
                    continue
                row = {
                    **{"model": "m", "task": task, "item": item, "item_ref": str(item)},
                    **{"repeat": repeat, "k": k, "metric": "acc"},
                    "score": chance.choice([0.0, 1.0, 1.0, None, math.nan]),
                }
                if kind == "other k":
                    row["k"] = chance.choice([None, 3, 4])
                if kind == "clusters":
                    row["cluster"] = chance.choice(["a", "b", None])
                if kind == "probabilities":
                    right = chance.choice([0.25, 0.5])
                    row |= {"gold_probability": chance.choice([right, None]), "right_option": 0}
                    row["option_probabilities"] = [right, 0.75 - right, 0.25]
                rows.append(row)
                if kind == "duplicates" and chance.random() < 0.2:
                    rows.append(row | {"item_ref": "z", "score": 1.0})
    chance.shuffle(rows)
    return Samples.from_rows(rows, Meta(harness="rows"))


def told(kind: type[LogPair], logs: dict[str, Samples]) -> list[object]:
    """All that pairing says, in a form that can be compared."""
    try:
        pairs = kind(logs, None, None, "content").pairs()
    except InputError as error:
        return [str(error)]
    columns = [np.asarray(column).tolist() for column in pairs.patterns]
    flips = [row for batch in pairs.flips() for row in batch.to_pylist()]
    return [repr(columns), pairs.coverage, pairs.warnings, pairs.conflicts, repr(flips)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_way_says_the_same(kind: str) -> None:
    chance = random.Random(kind)
    for _ in range(12):
        logs = {"before": a_log(chance, kind), "after": a_log(chance, kind)}
        expected = told(Careful, logs)
        assert told(LogPair, logs) == expected
        assert told(Grouped, logs) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_the_quickest_way_is_taken_where_it_can_be(kind: str) -> None:
    chance = random.Random(kind)
    logs = {"before": a_log(chance, kind), "after": a_log(chance, kind)}
    pair = LogPair(logs, None, None, "content")
    assert (pair._packed_histogram(*pair.sides) is not None) == (kind == "plain")
    assert pair.duplicated == (kind == "duplicates")
