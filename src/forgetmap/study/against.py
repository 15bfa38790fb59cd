"""Kinds of training beside a reference kind, all else equal and on the same items.

A study names the reference (`against: {method: sft}`). Each pair is held against the reference that
is alike in all other attributes, of the same seed where there is one. Attributes that follow from
the one that differs, or tell it, may differ with it; so may those that the reference does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, reduce
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from forgetmap.base.errors import InputError
from forgetmap.base.words import clean, some
from forgetmap.stats.estimate import Estimate
from forgetmap.stats.slopes import mean_over
from forgetmap.stats.tests import holm
from forgetmap.study.file import SEED, Attribute
from forgetmap.study.items import tag_of, variance_of_mean
from forgetmap.study.result import Against, Beside, StudiedPair
from forgetmap.study.units import Unit, find_told, show

Floats = NDArray[np.float64]
_COLUMNS = ("task", "key", "cluster", "clustered", "fall", "right_after")


def against(
    pairs: Sequence[StudiedPair], units: Sequence[Unit], name: str, value: Attribute
) -> Against:
    """Every kind of training beside the reference: what it lost more or less, and learned."""
    told = find_told(units)
    free = {name, SEED, *told[name], *(one for one, follow in told.items() if name in follow)}
    references = [pair for pair in pairs if pair.attributes.get(name) == value]
    rows: list[Beside] = []
    left_out: dict[str, str] = {}
    for unit in units:
        members = [pairs[number] for number in unit.members]
        if unit.attributes.get(name) in (value, None):
            continue
        alike = [one for one in references if _is_alike(members[0], one, free)]
        if why := _why_not(members, alike, references, free):
            left_out |= {pair.name: why for pair in members}
            continue
        try:
            rows.append(beside(members, [_of_seed(pair, alike) for pair in members]))
        except InputError as error:
            left_out |= {pair.name: str(error) for pair in members}
    adjusted = holm([row.p_value for row in rows])
    return Against(
        attribute=name,
        value=value,
        kinds=[
            row.model_copy(update={"p_adjusted": float(p)})
            for row, p in zip(rows, adjusted, strict=True)
        ],
        left_out=left_out,
    )


def _differ(pair: StudiedPair, reference: StudiedPair, free: set[str]) -> set[str]:
    mine = pair.attributes
    return {n for n, v in reference.attributes.items() if n not in free and mine.get(n) != v}


def _is_alike(pair: StudiedPair, reference: StudiedPair, free: set[str]) -> bool:
    return not _differ(pair, reference, free)


def _why_not(
    members: Sequence[StudiedPair],
    alike: Sequence[StudiedPair],
    references: Sequence[StudiedPair],
    free: set[str],
) -> str | None:
    if not alike:
        nearest = min((_differ(members[0], one, free) for one in references), key=len)
        return f"no reference is alike in {some(nearest)}"
    if any(pair.outcomes is None for pair in (*members, *alike)):
        return "its single items are not known"
    seeds = [pair.attributes.get(SEED) for pair in alike]
    if len(set(seeds)) < len(seeds):
        return f"several references are as alike: {some(pair.name for pair in alike)}"
    return None


def _of_seed(pair: StudiedPair, alike: Sequence[StudiedPair]) -> StudiedPair:
    """The reference of the same seed; else the first."""
    seed = pair.attributes.get(SEED)
    return next((one for one in alike if one.attributes.get(SEED) == seed), alike[0])


# --- item by item --------------------------------------------------------------------------------


class _Items(NamedTuple):
    """The items of a pair."""

    identity: NDArray[np.uint64]
    unit: NDArray[np.uint64]
    clustered: bool
    task: NDArray[Any]
    tasks: list[str]
    loss: Floats
    right: Floats


def beside(
    pairs: Sequence[StudiedPair],
    references: Sequence[StudiedPair],
    where: Callable[[str], bool] = lambda _task: True,
) -> Beside:
    """What trainings of one kind lost and learned beside their references, on the items of all.

    With two or more trainings a side, the interval is over trainings and items; else over items.

    Args:
        pairs: Trainings of one kind, from a study that was run.
        references: For every pair the one that it is held against.
        where: Which of the old tasks count.
    """
    both = [*pairs, *references]
    if missing := [pair.name for pair in both if pair.outcomes is None]:
        raise InputError(f"{clean(missing[0], 60)}: its single items are not known")
    items = [_read(pair.outcomes) for pair in both if pair.outcomes]
    shared = reduce(np.intersect1d, (found.identity for found in items))
    places = [_places(found.identity, shared) for found in items]
    first = items[0]
    new = {task for pair in both for task in pair.new_tasks}
    task = first.task[places[0]]
    old = np.array([name not in new and where(name) for name in first.tasks], bool)[task]
    taught = np.array([name in new for name in first.tasks], bool)[task]
    unit = first.unit[places[0]] if first.clustered else None
    many = min(len({pair.name for pair in side}) for side in (pairs, references)) > 1
    loss = np.array([found.loss[at] for found, at in zip(items, places, strict=True)])
    right = np.array([found.right[at] for found, at in zip(items, places, strict=True)])
    if not old.any():
        raise InputError(f"{clean(pairs[0].name, 60)}: shares no old item with its reference")
    same = [pair.name for pair in pairs] == [pair.name for pair in references]
    lost = _apart(loss[:, old], unit[old] if unit is not None else None, many, same)
    learned = None
    if taught.any():
        learned = _apart(right[:, taught], unit[taught] if unit is not None else None, many, same)
    return Beside(
        attributes={n: v for n, v in pairs[0].attributes.items() if n != SEED},
        pairs=[pair.name for pair in pairs],
        references=list(dict.fromkeys(pair.name for pair in references)),
        items=int(old.sum()),
        lost=lost.one,
        reference_lost=lost.other,
        more_lost=lost.more,
        right=learned.one if learned else None,
        reference_right=learned.other if learned else None,
        more_right=learned.more if learned else None,
        p_value=lost.p_value,
        p_adjusted=lost.p_value,
        unit="trainings and items" if many else "items",
    )


@lru_cache(maxsize=16)
def _read(path: Path) -> _Items:
    table = pq.read_table(path, columns=list(_COLUMNS), read_dictionary=["task"])
    names = table["task"].combine_chunks()
    tasks = names.dictionary.to_pylist()
    code = names.indices.to_numpy()
    tag = np.array([tag_of(name) for name in tasks], np.uint64)[code]
    key, cluster, clustered, fall, right = (table[name].to_numpy() for name in _COLUMNS[1:])
    identity = key ^ tag
    return _Items(
        identity=identity,
        unit=np.where(clustered, cluster ^ tag, identity),
        clustered=bool(clustered.any()),
        task=code,
        tasks=tasks,
        loss=np.maximum(fall, 0).astype(float),
        right=right.astype(float),
    )


def _places(identity: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> NDArray[np.intp]:
    """Where the wanted items are among those of a pair."""
    order = np.argsort(identity)
    return order[np.searchsorted(identity[order], wanted)]


class _Difference(NamedTuple):
    one: float
    other: float
    more: Estimate
    p_value: float


def _apart(values: Floats, unit: NDArray[Any] | None, many: bool, same: bool) -> _Difference:
    """How far the first half of the rows is from the second, row by row; `same`: from itself."""
    half = len(values) // 2
    more = values[:half] - values[half:]
    variance, units = variance_of_mean(more.mean(axis=0), unit)
    trainings = more.mean(axis=1)
    found = mean_over(trainings if many else [trainings.mean()], variance, max(units - 1, 1))
    value, interval = float(more.mean()), found.interval
    if same:
        interval = Estimate(value=value, low=value, high=value)
    elif interval is None or found.variance <= _NOTHING:
        interval = _all_alike(value, units)
    return _Difference(
        float(values[:half].mean()), float(values[half:].mean()), interval, found.p_value
    )


_NOTHING = 1e-24
"""A variance that is none but for rounding."""


def _all_alike(value: float, units: int) -> Estimate:
    """The interval where no item stands out, which is no proof that none would.

    Of items that never showed in so many, the share may be this large (exact, 97.5 % a side).

    Example:
        >>> found = _all_alike(0.0, 80)
        >>> f"{found.low:.3f} to {found.high:.3f}"
        '-0.045 to 0.045'
    """
    reach = 1 - 0.025 ** (1 / units)
    return Estimate(value=value, low=max(-1.0, value - reach), high=min(1.0, value + reach))


def title(found: Against) -> str:
    """What is held against what."""
    return f"against {clean(found.attribute, 40)} {show(found.value)}, all else equal"
