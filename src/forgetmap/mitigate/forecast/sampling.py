"""Ask a part of the items, and still say what all of them lost.

Items are drawn with known chances, the risky ones more often, and each counts as many times as its
chance is small (Horvitz and Thompson, 1952). So totals are right on average, whatever the forecast
was worth; a good forecast makes them sharp.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy import special

from forgetmap.base.errors import InputError
from forgetmap.base.files import replacing
from forgetmap.base.model import Frozen
from forgetmap.base.parquet import damage_told
from forgetmap.base.sealed import EMPTY, SEAL, check_sealed, seal
from forgetmap.evaluate.questions import Question, Suite, Task
from forgetmap.mitigate.forecast.build import read_risks
from forgetmap.mitigate.forecast.items import Floats, Log, groups
from forgetmap.pairing.two_logs import pair
from forgetmap.readers.framework import ReadOptions
from forgetmap.readers.registry import read_all
from forgetmap.stats.estimate import Estimate

CHOSEN_FILE = "chosen.parquet"
_FLOOR = 0.1
"""No item is drawn more seldom than this share of the mean: a bad forecast must not cost much."""


class Chosen(NamedTuple):
    """All items of a forecast, and which of them are asked."""

    task: NDArray[np.object_]
    item: NDArray[np.uint64]
    category: NDArray[np.object_]
    inclusion: Floats
    """The chance with which each was drawn."""
    drawn: NDArray[np.bool_]

    @property
    def words(self) -> str:
        """What is said of it in a log."""
        return f"{self.drawn.sum():,} of {len(self.drawn):,}, drawn by risk"


def inclusion_chances(size: Floats, budget: int) -> Floats:
    """Chances in proportion to a size, that add up to the budget and never exceed 1.

    Example:
        >>> inclusion_chances(np.array([8.0, 1.0, 1.0]), 2).tolist()
        [1.0, 0.5, 0.5]
    """
    chances = np.zeros(len(size))
    free = np.ones(len(size), bool)
    while True:
        left = budget - (~free).sum()
        chances[free] = size[free] * left / size[free].sum()
        over = free & (chances >= 1)
        chances[over] = 1.0
        if not over.any():
            return chances
        free &= ~over
        if not free.any():
            return chances


def sizes(risk: Floats, chance: Floats) -> Floats:
    """How much an item should be looked at: the root of its expected squared loss.

    That makes totals sharpest if the forecast is right.
    """
    size: Floats = np.sqrt(risk * chance)
    return np.maximum(size, _FLOOR * size.mean()) if size.any() else np.ones(len(size))


def draw(chances: Floats, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Draw a fixed number of items, each with exactly its chance.

    The items stand in a random order, each as long as its chance, and every whole number from a
    random start falls on one of them (Goodman and Kish, 1950).

    Example:
        >>> draw(np.array([1.0, 0.5, 0.5]), np.random.default_rng(0)).sum()
        np.int64(2)
    """
    order = rng.permutation(len(chances))
    ends = np.cumsum(chances[order])
    ends *= round(ends[-1]) / ends[-1]  # a sum of many chances is whole but for its last digits
    drawn = np.zeros(len(chances), bool)
    marks = np.ceil(np.concatenate([[0.0], ends]) - rng.random())
    drawn[order] = np.diff(marks) > 0
    return drawn


def choose(risks: str | Path, budget: int, seed: int = 0) -> Chosen:
    """Choose the items that say most about forgetting, by a forecast that was written."""
    table = read_risks(risks).table.sort_by([("category", "ascending"), ("risk", "descending")])
    if not budget >= 2:
        raise InputError(f"--budget {budget}: must be at least 2")
    if budget > len(table):
        raise InputError(f"--budget {budget}: the forecast has {len(table):,} items; ask them all")
    risk, chance = (table[name].to_numpy() for name in ("risk", "chance"))
    chances = inclusion_chances(sizes(risk, chance), budget)
    return Chosen(
        np.array(table["task"].to_pylist(), dtype=object),
        table["item"].to_numpy(),
        np.array(table["category"].to_pylist(), dtype=object),
        chances,
        draw(chances, np.random.default_rng(seed)),
    )


def chosen_suite(suite: Suite, chosen: Chosen) -> Suite:
    """The suite with the chosen questions alone; what is chosen must be there."""
    rows = zip(chosen.task[chosen.drawn], chosen.item[chosen.drawn].tolist(), strict=True)
    wanted = set(rows)
    missing = set(wanted)
    tasks: list[Task] = []
    for task in suite.tasks:
        kept = tuple(one for one in task.questions() if (task.name, one.item) in wanted)
        missing -= {(task.name, one.item) for one in kept}
        if kept:
            tasks.append(replace(task, questions=partial(_questions, kept)))
    if missing:
        raise InputError(
            f"--risks: {len(missing):,} of {len(wanted):,} chosen items are not in the suite "
            f"{suite.name}; the forecast must be of a log of the same suite"
        )
    return replace(suite, tasks=tuple(tasks), chosen=chosen.words)


def _questions(kept: tuple[Question, ...]) -> tuple[Question, ...]:
    return kept


def write_chosen(folder: str | Path, chosen: Chosen) -> None:
    """Write down all items with their chances, beside the answers."""
    table = pa.table(
        {
            "task": pa.array(list(chosen.task), pa.string()),
            "item": pa.array(chosen.item, pa.uint64()),
            "category": pa.array(list(chosen.category), pa.string()),
            "inclusion": pa.array(chosen.inclusion, pa.float64()),
            "drawn": pa.array(chosen.drawn),
        }
    )
    with replacing(Path(folder) / CHOSEN_FILE) as temporary:
        with pq.ParquetWriter(temporary, table.schema, compression="zstd") as writer:
            writer.write_table(table)
            writer.add_key_value_metadata({SEAL: EMPTY})
        seal(temporary)


def read_chosen(folder: str | Path) -> Chosen:
    """Read which items were asked, and with which chances."""
    path = Path(folder) / CHOSEN_FILE
    if not path.is_file():
        raise InputError(f"{path}: is not there; forgetmap eval --risks writes it with the answers")
    check_sealed(path)
    with damage_told(path):
        table = pq.read_table(path)
    return Chosen(
        np.array(table["task"].to_pylist(), dtype=object),
        table["item"].to_numpy(),
        np.array(table["category"].to_pylist(), dtype=object),
        table["inclusion"].to_numpy(),
        table["drawn"].to_numpy(zero_copy_only=False),
    )


# --- what all of them lost ------------------------------------------------------------------------


class Weighed(Frozen):
    """What all items lost and gained, from those that were asked."""

    items: int
    asked: int
    lost: Estimate
    gained: Estimate


class WeighedMap(Frozen):
    """Totals from a part of the items, by inverse chances."""

    total: Weighed
    categories: dict[str, Weighed]
    unanswered: int
    """Chosen items that one of the logs lacks: unchanged in the value, lost at the high end."""

    def to_json(self) -> str:
        """The totals as JSON."""
        return self.model_dump_json(indent=2)


def estimate(values: Floats, chances: Floats, items: int) -> Estimate:
    """The mean over all items, of which those with these chances were drawn.

    The interval has two parts: which items were drawn (Hajek's approximation for draws of a fixed
    size), and which items there are, as in every other interval of forgetmap.
    """
    asked = len(values)
    weighed = values / chances
    mean = float(weighed.sum() / items)
    if asked < 2:
        return Estimate(value=mean, low=0.0, high=1.0)
    open_ = 1 - chances
    middle = (open_ * weighed).sum() / open_.sum() if open_.sum() > 0 else 0.0
    drawn = asked / (asked - 1) * (open_ * (weighed - middle) ** 2).sum() / items**2
    spread = max(float((values**2 / chances).sum() / items - mean**2), 0.0) / items
    reach = float(special.stdtrit(asked - 1, 0.975)) * np.sqrt(drawn + spread)
    return Estimate(value=mean, low=max(0.0, mean - reach), high=min(1.0, mean + reach))


def _open(found: Estimate, unknown: float) -> Estimate:
    """At the high end, all that is unknown was lost: a missing answer must not hide a loss."""
    return found.model_copy(update={"high": min(1.0, found.high + unknown)})


def weigh(chosen: Chosen, before: Log, after: Log) -> WeighedMap:
    """What all items of a forecast lost and gained between two logs, from the chosen ones."""
    sides = read_all([before, after], ReadOptions())
    outcomes = pair(*sides).outcomes()
    keys = zip(outcomes["task"].to_pylist(), outcomes["key"].to_pylist(), strict=True)
    fall = dict(zip(keys, outcomes["fall"].to_numpy().astype(float), strict=True))
    asked = zip(chosen.task[chosen.drawn], chosen.item[chosen.drawn].tolist(), strict=True)
    falls = np.array([fall.get(at, np.nan) for at in asked])
    unanswered = int(np.isnan(falls).sum())
    if unanswered == len(falls):
        raise InputError("none of the chosen items is in both logs; are these the logs of them?")
    missing = np.isnan(falls)
    falls = np.nan_to_num(falls)
    chances = chosen.inclusion[chosen.drawn]

    def weighed(inside: NDArray[np.bool_]) -> Weighed:
        mine = inside[chosen.drawn]
        many = int(inside.sum())
        unknown = float((missing[mine] / chances[mine]).sum() / many)
        found = (
            _open(estimate(np.maximum(way * falls[mine], 0), chances[mine], many), unknown)
            for way in (1, -1)
        )
        return Weighed(items=many, asked=int(mine.sum()), lost=next(found), gained=next(found))

    everywhere = np.ones(len(chosen.drawn), bool)
    parts = {}
    for name, place in groups(chosen.category):
        inside = np.zeros(len(chosen.drawn), bool)
        inside[place] = True
        parts[name] = weighed(inside)
    return WeighedMap(total=weighed(everywhere), categories=parts, unanswered=unanswered)
