"""What was lost against what was learned: a method that learned nothing must not win.

Each method is a curve: its trainings from one model, ordered by what they learned. Methods are
compared where they learned as much. Between two points of a curve the loss is interpolated; beyond
them nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from forgetmap.base.words import clean, some
from forgetmap.stats.estimate import Estimate
from forgetmap.study.file import Attribute
from forgetmap.study.result import (
    AtLearning,
    Curve,
    CurvePoint,
    EqualLearning,
    StudiedPair,
    TradeOff,
)
from forgetmap.study.units import Unit, in_order, learned, learned_by

Floats = NDArray[np.float64]

METHOD = "method"
"""What tells the curves apart unless the study says otherwise."""
_MOST_LEVELS = 5
_CLOSE = 1e-9


class _Point(NamedTuple):
    """One kind of training, with what each of its seeds learned and lost."""

    learned: Floats
    lost: Floats
    pairs: list[str]


class _Fitted(NamedTuple):
    """A curve that rises, and how much every point counts in each of its knots."""

    points: list[_Point]
    knots: Floats
    lost: Floats
    weights: Floats
    """(knots, points); each row sums to one."""
    smoothed: bool


def trade_off(
    pairs: Sequence[StudiedPair], units: Sequence[Unit], curve: str | None = None
) -> TradeOff:
    """Losses at equal learning, by method or by the attribute that the study names as `curve`."""
    gain, everyone = learned(pairs), list(range(len(pairs)))
    name = curve or METHOD
    starts, rivals = {}, by_start(pairs)
    for start, members in rivals.items():
        here = [unit for unit in units if unit.members[0] in members]
        starts[start] = {value: _fit(points) for value, points in _points(pairs, here, gain, name)}
    equal = [level for start, fitted in starts.items() for level in _equal(start, fitted)]
    replicated = any(row.interval for level in equal for row in level.methods)
    return TradeOff(
        attribute=name if any(starts.values()) else None,
        learned_by=learned_by(pairs),
        front=_front(pairs, everyone, gain),
        fronts={
            start: _front(pairs, members, gain)
            for start, members in (rivals if any(starts.values()) else {"": everyone}).items()
        },
        curves=[
            _curve(value, start, found)
            for start, fitted in starts.items()
            for value, found in fitted.items()
        ],
        equal=equal,
        unit="trainings" if replicated else "none: it takes two seeds of every training",
        note=_note(starts, equal, name),
    )


def _front(pairs: Sequence[StudiedPair], members: list[int], gain: Floats) -> list[str]:
    """The names of those that no other of the members beats, by what they learned."""
    best = on_front([pairs[number] for number in members])
    found = [number for number, is_best in zip(members, best, strict=True) if is_best]
    return [pairs[number].name for number in sorted(found, key=lambda number: gain[number])]


def on_front(pairs: Sequence[StudiedPair]) -> NDArray[np.bool_]:
    """Of every pair, whether no other lost less and learned more."""
    return unbeaten(np.array([pair.old.lost.value for pair in pairs]), learned(pairs))


def unbeaten(lost: Floats, gain: Floats) -> NDArray[np.bool_]:
    """Of every point, whether no other lost less and learned more."""
    as_good = (lost[:, None] <= lost) & (gain[:, None] >= gain)
    better = as_good & ((lost[:, None] < lost) | (gain[:, None] > gain))
    return np.asarray(~better.any(axis=0))


def by_start(pairs: Sequence[StudiedPair]) -> dict[str, list[int]]:
    """The pairs by the model that they start from and what they learn: others are no rivals."""
    groups: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for number, pair in enumerate(pairs):
        start = pair.before_log or pair.before
        groups.setdefault((start, tuple(pair.new_tasks)), []).append(number)
    models = {log: pairs[members[0]].before for (log, _), members in groups.items()}
    several = len(models) < len(groups)
    return {
        _start_words(models[log], _apart(log, models), new if several else ()): members
        for (log, new), members in groups.items()
    }


def _apart(log: str, models: Mapping[str, str]) -> str:
    """The folders and file that tell a log from others of the same model.

    Example:
        >>> models = {"logs/small/base.parquet": "base", "logs/full/base.parquet": "base"}
        >>> [_apart(log, models) for log in models]
        ['small', 'full']
    """
    own = Path(log).parts
    same = [Path(other).parts for other, model in models.items() if model == models[log]]
    if len({len(parts) for parts in same}) > 1:
        return log
    differ = [len(set(level)) > 1 for level in zip(*same, strict=True)]
    return "/".join(part for part, told in zip(own, differ, strict=True) if told)


def _start_words(model: str, apart: str, new: Sequence[str]) -> str:
    """The model; with its log where two logs are of it, and the new tasks where these differ.

    Example:
        >>> _start_words("base", "", ()), _start_words("base", "small", ["sums", "dates"])
        ('base', 'base (small): dates, sums')
    """
    named = f"{model} ({apart})" if apart else model
    return f"{named}: {some(new, len(new))}" if new else named


def _points(
    pairs: Sequence[StudiedPair], units: Sequence[Unit], gain: Floats, name: str
) -> Iterator[tuple[Attribute, list[_Point]]]:
    found: dict[Attribute, list[_Point]] = {}
    for unit in units:
        if name in unit.attributes:
            point = _Point(
                gain[unit.members], np.array(unit.losses), [pairs[n].name for n in unit.members]
            )
            found.setdefault(unit.attributes[name], []).append(point)
    for value in in_order(found):
        yield value, sorted(found[value], key=lambda point: float(point.learned.mean()))


def _fit(points: list[_Point]) -> _Fitted:
    """A curve through the points that never falls: neighbours that do are averaged."""
    across = np.array([point.learned.mean() for point in points])
    up = np.array([point.lost.mean() for point in points])
    count = np.array([len(point.pairs) for point in points], float)
    blocks: list[list[int]] = []
    for place in range(len(points)):
        if blocks and across[place] - across[blocks[-1][-1]] <= _CLOSE:
            blocks[-1].append(place)  # two that learned the same are one knot
        else:
            blocks.append([place])
    knots = np.array([across[block[0]] for block in blocks])
    own = blocks
    merged: list[list[int]] = []
    for block in blocks:
        merged.append(block)
        while len(merged) > 1 and _mean(up, count, merged[-2]) > _mean(up, count, merged[-1]):
            merged[-2:] = [merged[-2] + merged[-1]]
    weights = np.zeros((len(knots), len(points)))
    for number, block in enumerate(own):
        whole = next(group for group in merged if block[0] in group)
        weights[number, whole] = count[whole] / count[whole].sum()
    return _Fitted(points, knots, weights @ up, weights, len(merged) < len(own))


def _mean(up: Floats, count: Floats, block: list[int]) -> float:
    return float(np.average(up[block], weights=count[block]))


def _curve(value: Attribute, start: str, found: _Fitted) -> Curve:
    return Curve(
        value=value,
        start=start,
        points=[
            CurvePoint(
                learned=float(point.learned.mean()),
                lost=float(point.lost.mean()),
                pairs=point.pairs,
            )
            for point in found.points
        ],
        fitted=list(zip(found.knots.tolist(), found.lost.tolist(), strict=True)),
        smoothed=found.smoothed,
    )


# --- at equal learning ---------------------------------------------------------------------------


def _equal(start: str, fitted: dict[Attribute, _Fitted]) -> Iterator[EqualLearning]:
    """The levels of learning that two methods or more reach, at most five of them."""
    if len(fitted) < 2:
        return
    levels = np.unique(np.concatenate([found.knots for found in fitted.values()]))
    shared = [
        float(level)
        for level in levels
        if level > _CLOSE and sum(_reaches(found, level) for found in fitted.values()) > 1
    ]
    if len(shared) > _MOST_LEVELS:
        places = np.linspace(0, len(shared) - 1, _MOST_LEVELS).round().astype(int)
        shared = [shared[place] for place in places]
    for level in shared:
        rows = [_at(value, found, level) for value, found in fitted.items()]
        rows.sort(key=lambda row: np.inf if row.lost is None else row.lost)
        yield EqualLearning(learned=level, start=start, methods=rows)


def _reaches(found: _Fitted, level: float) -> bool:
    return bool(found.knots[0] - _CLOSE <= level <= found.knots[-1] + _CLOSE)


def _at(value: Attribute, found: _Fitted, level: float) -> AtLearning:
    """The loss of one method at a level of learning."""
    if not _reaches(found, level):
        short = level > found.knots[-1]
        why = "not reached" if short else "all its trainings learned more"
        return AtLearning(value=value, lost=None, interval=None, why=why)
    after = int(np.clip(np.searchsorted(found.knots, level), 1, max(len(found.knots) - 1, 1)))
    part, steep, counts = 0.0, 0.0, found.weights[0]
    if len(found.knots) > 1:
        width = found.knots[after] - found.knots[after - 1]
        part = float(np.clip((level - found.knots[after - 1]) / width, 0, 1))
        steep = float((found.lost[after] - found.lost[after - 1]) / width)
        counts = (1 - part) * found.weights[after - 1] + part * found.weights[after]
    lost = float(counts @ [point.lost.mean() for point in found.points])
    interval = _interval(lost, counts, steep, found.points)
    alone = None if interval else "no interval: a training has one seed"
    return AtLearning(value=value, lost=lost, interval=interval, why=alone)


def _interval(
    lost: float, counts: Floats, steep: float, points: Sequence[_Point]
) -> Estimate | None:
    """Over trainings; None where a point that counts has one seed.

    A seed that learned more moves along the curve, so what counts is how far it lies off it.
    """
    used = [(weight, point) for weight, point in zip(counts, points, strict=True) if weight > 0]
    if any(len(point.pairs) < 2 for _, point in used):
        return None
    parts = [
        weight**2 * float(np.var(point.lost - steep * point.learned, ddof=1)) / len(point.pairs)
        for weight, point in used
    ]
    variance = sum(parts)
    if variance <= 0:
        return None
    below = sum(
        part**2 / (len(point.pairs) - 1) for part, (_, point) in zip(parts, used, strict=True)
    )
    reach = float(special.stdtrit(variance**2 / below, 0.975)) * np.sqrt(variance)
    return Estimate(value=lost, low=max(0.0, lost - reach), high=min(1.0, lost + reach))


def _note(
    starts: dict[str, dict[Attribute, _Fitted]], equal: Sequence[EqualLearning], name: str
) -> str | None:
    """Why nothing is compared."""
    if not any(starts.values()):
        return f"no pair has {clean(name, 40)}; name another attribute as 'curve' in the study file"
    if all(len(fitted) < 2 for fitted in starts.values()):
        return f"from no model are there two values of {clean(name, 40)}"
    if not equal:
        return "no two curves reach the same learning; it takes several strengths of each"
    return None
