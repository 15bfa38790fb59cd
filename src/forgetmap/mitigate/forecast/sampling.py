"""Ask a part of the items, and still say what all of them lost.

Items are drawn with known chances, the risky ones more often. A line through the asked items says
from forecast and chance before what every item should have lost; what the asked ones lost beyond
it counts as many times as their chance is small (the regression estimator of survey sampling). So
totals are right on average, whatever the forecast was worth; a good forecast makes them sharp.

While a model is trained, the last check of all items says more than any forecast. Then the line
also sees what each item had lost by then. The draw stays as it is: items that were surely lost may
come back, and a draw that passes them over would miss it.
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
from forgetmap.base.parquet import damage_told
from forgetmap.base.sealed import EMPTY, SEAL, check_sealed, seal
from forgetmap.evaluate.questions import Question, Suite, Task
from forgetmap.mitigate.forecast.build import read_risks
from forgetmap.mitigate.forecast.items import Floats, Log, groups, read_items
from forgetmap.mitigate.forecast.model import Weighed, WeighedMap
from forgetmap.pairing.two_logs import pair
from forgetmap.readers.framework import ReadOptions
from forgetmap.readers.registry import read_all
from forgetmap.samples.comparability import check_whole
from forgetmap.stats.estimate import Estimate

CHOSEN_FILE = "chosen.parquet"
_FLOOR = 0.1
"""No item is drawn more seldom than this share of the mean: a bad forecast must not cost much."""
_FEWEST = 10
"""Asked items that a line needs for each of its numbers."""


class Chosen(NamedTuple):
    """All items of a forecast, and which of them are asked."""

    task: NDArray[np.object_]
    item: NDArray[np.uint64]
    category: NDArray[np.object_]
    risk: Floats
    chance: Floats
    inclusion: Floats
    """The chance with which each was drawn."""
    drawn: NDArray[np.bool_]

    @property
    def words(self) -> str:
        """What is said of it in a log; nothing where all are asked."""
        if self.drawn.all():
            return ""
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
        over = free & (chances >= 1 - 1e-12)  # a sum of shares is whole but for its last digits
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


def choose(risks: str | Path, budget: int | None, seed: int = 0) -> Chosen:
    """Choose the items that say most about forgetting, by a forecast that was written.

    Without a budget all of its items are chosen.
    """
    table = read_risks(risks).table.sort_by([("category", "ascending"), ("risk", "descending")])
    budget = len(table) if budget is None else budget
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
        risk,
        chance,
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
            "risk": pa.array(chosen.risk, pa.float64()),
            "chance": pa.array(chosen.chance, pa.float64()),
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
        table["risk"].to_numpy(),
        table["chance"].to_numpy(),
        table["inclusion"].to_numpy(),
        table["drawn"].to_numpy(zero_copy_only=False),
    )


# --- what all of them lost ------------------------------------------------------------------------


class Line(NamedTuple):
    """What every item should have changed by."""

    told: Floats
    slopes: int
    """Numbers that were fitted to the asked items."""


def expected(values: Floats, drawn: NDArray[np.bool_], inclusion: Floats, *known: Floats) -> Line:
    """What every item should have changed by, from a line through those that were drawn.

    The line sees how often an item is drawn and what is `known` of each: forecast, chance before,
    what it had lost at an earlier check. Too few items make no line; then nothing is expected.
    """
    sides = np.column_stack([inclusion, np.ones(len(inclusion)), *known])
    asked, slopes = inclusion[drawn], sides.shape[1]
    if (asked < 1).sum() < _FEWEST * slopes:
        return Line(np.zeros(len(inclusion)), 1)
    weight = np.sqrt(1 - asked) / asked
    fitted = np.linalg.lstsq(sides[drawn] * weight[:, None], values * weight, rcond=None)[0]
    return Line(sides @ fitted, slopes)


def estimate(
    values: Floats,
    drawn: NDArray[np.bool_],
    inclusion: Floats,
    line: Line,
    inside: NDArray[np.bool_] | None = None,
) -> Estimate:
    """The mean over all items, or those inside, from the values of those that were drawn.

    It is unbiased whatever is told of the items beforehand (`expected`). The interval has two
    parts: which items were drawn (Hajek's approximation for draws of a fixed size, of what is left
    beyond the line), and which items there are, as in every other interval of forgetmap.
    """
    told = line.told
    inside = np.ones(len(told), bool) if inside is None else inside
    items, mine, chances = int(inside.sum()), inside[drawn], inclusion[drawn]
    left = np.where(mine, (values - told[drawn]) / chances, 0.0)
    mean = float((told[inside].sum() + left.sum()) / items)
    asked, all_asked = int(mine.sum()), len(mine)
    if asked < 2:
        return Estimate(value=max(mean, 0.0), low=0.0, high=1.0)
    open_ = 1 - chances
    middle = (open_ * left).sum() / open_.sum() if open_.sum() > 0 else 0.0
    spare = all_asked / (all_asked - line.slopes)
    by_draw = spare * (open_ * (left - middle) ** 2).sum() / items**2
    square = float((values**2 / chances)[mine].sum() / items)
    reach = float(special.stdtrit(asked - 1, 0.975)) * np.sqrt(
        by_draw + max(square - mean**2, 0.0) / items
    )
    value = max(mean, 0.0)  # a line may undershoot where almost nothing was lost
    return Estimate(value=value, low=max(0.0, value - reach), high=min(1.0, value + reach))


def _open(found: Estimate, unknown: float) -> Estimate:
    """At the high end, all that is unknown was lost: a missing answer must not hide a loss."""
    return found.model_copy(update={"high": min(1.0, found.high + unknown)})


def weigh(chosen: Chosen, before: Log, after: Log, seen: Log | None = None) -> WeighedMap:
    """What all items of a forecast lost and gained between two logs, from the chosen ones.

    Args:
        seen: A log of all items from in between, such as the last whole check of a training. Totals
            are sharper the less changed since.
    """
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
    # What was lost and what was gained have a line each: neither may stand for the other.
    ways = (1, -1)
    changes = [np.maximum(way * falls, 0) for way in ways]
    design = chosen.drawn, chosen.inclusion
    then = None if seen is None else chosen.chance - _chances_in(seen, chosen)
    lines = [
        expected(change, *design, chosen.risk, chosen.chance, *_by_then(then, way))
        for change, way in zip(changes, ways, strict=True)
    ]

    def weighed(inside: NDArray[np.bool_]) -> Weighed:
        mine = inside[chosen.drawn]
        many = int(inside.sum())
        unknown = float((missing[mine] / chances[mine]).sum() / many)
        lost, gained = (
            _open(estimate(change, *design, line, inside), unknown)
            for change, line in zip(changes, lines, strict=True)
        )
        return Weighed(items=many, asked=int(mine.sum()), lost=lost, gained=gained)

    everywhere = np.ones(len(chosen.drawn), bool)
    parts = {}
    for name, place in groups(chosen.category):
        inside = np.zeros(len(chosen.drawn), bool)
        inside[place] = True
        parts[name] = weighed(inside)
    return WeighedMap(total=weighed(everywhere), categories=parts, unanswered=unanswered)


def _by_then(fall: Floats | None, way: int) -> list[Floats]:
    """What every item had lost (1) or gained (-1) at the last check; nothing where it has none."""
    return [] if fall is None else [np.maximum(way * np.nan_to_num(fall), 0)]


def _chances_in(log: Log, chosen: Chosen) -> Floats:
    """The chance of each item in a log of all; NaN where it has none."""
    (samples,) = read_all([log], ReadOptions())
    check_whole({str(log) if isinstance(log, str | Path) else "--seen": samples})
    items = read_items(samples)
    there = dict(zip(zip(items.task, items.key.tolist(), strict=True), items.chance, strict=True))
    keys = zip(chosen.task, chosen.item.tolist(), strict=True)
    found = np.array([there.get(at, np.nan) for at in keys])
    if np.isnan(found).all():
        raise InputError(f"--seen {log}: has none of the items of the forecast")
    return found
