"""Single items over all pairs: who lost the same, and which of two pairs lost more.

Two pairs are compared on the items that both have, so that it does not matter which items are hard.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import special

from forgetmap.stats.estimate import Estimate
from forgetmap.study.result import Items, LostItem, Overlap, OverlapKind
from forgetmap.study.store import Store

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Codes = NDArray[np.intp]

MOST_CELLS = 500_000_000
"""Pairs times items beyond which single items are not laid out: they would fill the memory."""
LISTED = 20
_PART = 65_536
"""Items that are multiplied at a time."""
_COLUMNS = ("task", "key", "cluster", "clustered", "fall", "knew", "knows")


class PairItems(NamedTuple):
    """Where the items of a pair are stored."""

    before: str
    """The log before."""
    new: frozenset[str]
    """Tasks that do not count as old."""
    key: str
    store: Store


@dataclass(frozen=True)
class ItemTable:
    """The old items of all pairs; arrays are (pairs, items)."""

    pairs: Sequence[PairItems]
    tasks: list[str]
    task: Codes
    """Of each item, into `tasks`; ascending."""
    key: NDArray[np.uint64]
    places: list[Codes]
    """Of each pair, where the rows of its file are among the items; -1 for items that are new."""
    seen: Bools
    loss: NDArray[np.float32]
    """How far the chance of being right fell; 0 where it rose, or was not seen."""
    gain: NDArray[np.float32]
    knew: Bools
    lost: Bools
    """Known before by most of its runs, and not after."""
    unit: Codes | None
    """What stands or falls together, where the logs tell; None where every item is on its own."""


class _Rows(NamedTuple):
    """The old items of one pair, as they are stored."""

    identity: NDArray[np.uint64]
    task: Codes
    key: NDArray[np.uint64]
    unit: NDArray[np.uint64]
    clustered: bool
    fall: NDArray[np.float32]
    knew: Bools
    knows: Bools
    old: Bools


def lay_out(pairs: Sequence[PairItems]) -> ItemTable | None:
    """Bring the items of all pairs together; None where they are too many."""
    tasks: dict[str, int] = {}
    tags: list[np.uint64] = []
    rows = [_rows(pair, tasks, tags) for pair in pairs]
    kinds, kind = _kinds_of_items(rows)
    universe, first = np.unique(np.concatenate([r.identity for r in kinds]), return_index=True)
    if len(universe) * len(pairs) > MOST_CELLS:
        return None
    # Items of a task are neighbours, so that a task is a slice of every array.
    order = np.argsort(np.concatenate([r.task for r in kinds])[first], kind="stable")
    first, place = first[order], np.argsort(order)
    where = [place[np.searchsorted(universe, found.identity)] for found in kinds]
    sort = [np.argsort(at) for at in where]
    shape = len(pairs), len(universe)
    table = ItemTable(
        pairs=pairs,
        tasks=list(tasks),
        task=np.concatenate([r.task for r in kinds])[first],
        key=np.concatenate([r.key for r in kinds])[first],
        places=[],
        seen=np.zeros(shape, bool),
        loss=np.zeros(shape, np.float32),
        gain=np.zeros(shape, np.float32),
        knew=np.zeros(shape, bool),
        lost=np.zeros(shape, bool),
        unit=_units(kinds, first),
    )
    for number, found in enumerate(rows):
        at, by = where[kind[number]], sort[kind[number]]
        has_all = len(at) == len(universe)  # then the rows need only be brought in order
        into = slice(None) if has_all else at[by]
        fall, knew = found.fall[by], found.knew[by]
        table.seen[number, into] = True
        table.loss[number, into] = np.maximum(fall, 0)
        table.gain[number, into] = np.maximum(-fall, 0)
        table.knew[number, into] = knew
        table.lost[number, into] = knew & ~found.knows[by]
        places = np.full(len(found.old), -1)
        places[found.old] = at
        table.places.append(places)
    return table


def _kinds_of_items(rows: Sequence[_Rows]) -> tuple[list[_Rows], list[int]]:
    """The different sets of items that pairs have, and which of them each pair has.

    Most studies ask all models the same, so that one set serves all pairs.
    """
    kinds: list[_Rows] = []
    kind = []
    for found in rows:
        same = (n for n, k in enumerate(kinds) if np.array_equal(k.identity, found.identity))
        place = next(same, len(kinds))
        if place == len(kinds):
            kinds.append(found)
        kind.append(place)
    return kinds, kind


def _rows(pair: PairItems, tasks: dict[str, int], tags: list[np.uint64]) -> _Rows:
    table = pair.store.items(pair.key, _COLUMNS)
    names = table["task"].combine_chunks()
    local = names.dictionary.to_pylist()
    for name in local:
        if name not in tasks:
            tasks[name] = len(tasks)
            tags.append(tag_of(name))
    is_old = np.array([name not in pair.new for name in local])
    task = _numpy(names.indices)
    old = is_old[task] if is_old.any() else np.ones(len(task), bool)
    codes = np.array([tasks[name] for name in local], np.intp)[task][old]
    tag = np.array(tags, np.uint64)[codes]
    key, cluster, clustered, fall, knew, knows = (
        _numpy(table[name].combine_chunks())[old] for name in _COLUMNS[1:]
    )
    identity = key ^ tag
    unit = np.where(clustered, cluster ^ tag, identity)
    return _Rows(identity, codes, key, unit, bool(clustered.any()), fall, knew, knows, old)


def tag_of(task: str) -> np.uint64:
    """What tells the items of a task from those of others with the same key."""
    digest = sha256(task.encode("utf-8", "replace")).digest()
    return np.uint64(int.from_bytes(digest[:8], "little"))


def _numpy(column: pa.Array) -> NDArray[np.generic]:
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _units(rows: Sequence[_Rows], first: Codes) -> Codes | None:
    if not any(found.clustered for found in rows):
        return None
    _, unit = np.unique(np.concatenate([found.unit for found in rows])[first], return_inverse=True)
    return unit


# --- which of two pairs lost more ----------------------------------------------------------------


class Differences(NamedTuple):
    """Of every two pairs: how much more the one in the row lost, and how likely by chance."""

    more: Floats
    p_value: Floats


def differences(table: ItemTable) -> Differences:
    """Compare the losses of every two pairs on the items that both have.

    The signs of the items' differences are exchanged: if both lost alike, each could as well be the
    other way round. One item is taken off the sum, which makes the test cautious where few items
    differ. Where the logs tell clusters, whole clusters change their sign.
    """
    count = len(table.loss)
    shared, sums, squares = (np.zeros((count, count)) for _ in range(3))
    if table.unit is None:
        for part in _parts(table.loss.shape[1]):
            loss = table.loss[:, part].astype(float)
            if table.seen[:, part].all():  # most studies ask all models the same
                both = np.full((count, count), float(loss.shape[1]))
                mine = np.broadcast_to(loss.sum(axis=1)[:, None], both.shape)
                square = np.broadcast_to((loss**2).sum(axis=1)[:, None], both.shape)
            else:
                seen = table.seen[:, part].astype(float)
                both, mine, square = seen @ seen.T, loss @ seen.T, loss**2 @ seen.T
            shared += both
            sums += mine - mine.T
            squares += square + square.T - 2 * loss @ loss.T
        step = np.ones_like(sums)
    else:
        step = np.zeros_like(sums)
        for one, other in combinations(range(count), 2):
            both = table.seen[one] & table.seen[other]
            moved = (table.loss[one] - table.loss[other])[both]
            by_unit = np.bincount(table.unit[both], weights=moved)
            shared[one, other] = both.sum()
            sums[one, other] = by_unit.sum()
            squares[one, other] = (by_unit**2).sum()
            step[one, other] = np.abs(by_unit).max(initial=0.0)
        shared, squares, step = (part + part.T for part in (shared, squares, step))
        sums = sums - sums.T
    away = np.maximum(np.abs(sums) - step, 0)
    root = np.sqrt(np.maximum(squares, 0))
    z = np.divide(away, root, out=np.zeros_like(away), where=root > 1e-9)
    return Differences(sums / np.maximum(shared, 1), 2 * special.ndtr(-z))


def _parts(items: int) -> Iterator[slice]:
    for start in range(0, items, _PART):
        yield slice(start, start + _PART)


def item_variance(table: ItemTable, pairs: Sequence[int], losses: bool = True) -> tuple[float, int]:
    """The variance over items of the mean loss of some pairs, and the number of units behind it."""
    chosen = list(pairs)
    shared = table.seen[chosen].all(axis=0)
    values = (table.loss if losses else table.gain)[chosen].mean(axis=0, dtype=float)
    values = values if shared.all() else values[shared]
    return variance_of_mean(values, None if table.unit is None else table.unit[shared])


def variance_of_mean(values: Floats, unit: NDArray[Any] | None) -> tuple[float, int]:
    """The variance of a mean over items, and the number of units behind it.

    Items with the same `unit` stand or fall together; None where every item is on its own.
    """
    n = len(values)
    if n < 2:
        return 0.0, 1
    around = values - values.mean()
    if unit is None:
        return float((around**2).sum() / (n - 1) / n), n
    units, place = np.unique(unit, return_inverse=True)
    sums = np.bincount(place, weights=around)
    more = max(len(units) - 1, 1)
    return float((sums**2).sum() / n**2 * len(units) / more), len(units)


# --- who lost the same ---------------------------------------------------------------------------


def describe(table: ItemTable, kinds: NDArray[np.object_]) -> Items:
    """What became of the single items; `kinds` says of every two pairs how they are related."""
    knew, lost = table.knew.sum(axis=0), table.lost.sum(axis=0)
    twice = knew > 1
    return Items(
        items=len(table.key),
        known_twice=int(twice.sum()),
        lost_in_all=int((twice & (lost == knew)).sum()),
        lost_in_none=int((twice & (lost == 0)).sum()),
        most=_most_lost(table, knew, lost),
        overlap=_overlaps(table, kinds),
    )


def _most_lost(table: ItemTable, knew: Codes, lost: Codes) -> list[LostItem]:
    chosen = np.flatnonzero((lost > 1) | ((lost > 0) & (len(table.pairs) == 1)))
    order = np.lexsort((table.key[chosen], knew[chosen], -lost[chosen]))[:LISTED]
    listed = chosen[order].tolist()
    references = _references(table, listed)
    return [
        LostItem(
            task=table.tasks[table.task[item]],
            item=f"{int(table.key[item]):016x}",
            item_ref=references.get(item),
            knew=int(knew[item]),
            lost=int(lost[item]),
        )
        for item in listed
    ]


def _references(table: ItemTable, items: Iterable[int]) -> dict[int, str | None]:
    """The harness's ids of some items, from the first pair that has each."""
    found: dict[int, str | None] = {}
    by_pair: dict[int, list[int]] = {}
    for item in items:
        by_pair.setdefault(int(np.argmax(table.seen[:, item])), []).append(item)
    for number, wanted in by_pair.items():
        pair = table.pairs[number]
        column = pair.store.items(pair.key, ["item_ref"])["item_ref"]
        for item in wanted:
            row = int(np.flatnonzero(table.places[number] == item)[0])
            found[item] = column[row].as_py()
    return found


def _overlaps(table: ItemTable, kinds: NDArray[np.object_]) -> list[Overlap]:
    together, expected, most = _common_losses(table)
    found = []
    names: tuple[OverlapKind, ...] = ("other seeds", "same log before", "other log before")
    for kind in names:
        wanted = np.triu(kinds == kind, 1)
        if not wanted.any():
            continue
        room = most - expected
        usable = wanted & (room > 1e-9)
        with np.errstate(invalid="ignore", divide="ignore"):
            beyond = np.where(usable, (together - expected) / room, np.nan)
        found.append(
            Overlap(
                kind=kind,
                comparisons=int(wanted.sum()),
                together=round(float(together[wanted].sum())),
                expected=float(expected[wanted].sum()),
                beyond_chance=_leave_one_out(beyond),
            )
        )
    return found


def _common_losses(table: ItemTable) -> tuple[Floats, Floats, Floats]:
    """Of every two pairs: items lost in both, as many by chance, and as many as there can be.

    Among the items that the models before of both pairs knew, task by task.
    """
    count = len(table.pairs)
    together, expected, most = (np.zeros((count, count)) for _ in range(3))
    ends = np.searchsorted(table.task, np.arange(len(table.tasks) + 1))
    for start, stop in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        # Counts below 2^24 are exact in single precision, which is half the work.
        small: Any = np.float32 if stop - start < 2**24 else np.float64
        knew, lost = (side[:, start:stop].astype(small) for side in (table.knew, table.lost))
        both, mine = ((side @ knew.T).astype(float) for side in (knew, lost))
        together += lost @ lost.T
        expected += mine * mine.T / np.maximum(both, 1)
        most += np.minimum(mine, mine.T)
    return together, expected, most


def _leave_one_out(values: Floats) -> Estimate | None:
    """The mean over comparisons, with an interval that leaves out one pair at a time."""
    usable = ~np.isnan(values)
    if not usable.any():
        return None
    filled = np.where(usable, values, 0.0)
    total, count = filled.sum(), usable.sum()
    mine = filled.sum(axis=0) + filled.sum(axis=1)
    many = usable.sum(axis=0) + usable.sum(axis=1)
    pairs = np.flatnonzero(many)
    left = count - many[pairs]
    if len(pairs) < 3 or (left == 0).any():
        return None
    without = (total - mine[pairs]) / left
    mean, n = float(total / count), len(pairs)
    error = np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum())
    reach = float(special.stdtrit(n - 1, 0.975)) * error
    return Estimate(value=mean, low=max(-1.0, mean - reach), high=min(1.0, mean + reach))
