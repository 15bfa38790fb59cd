"""What many pairs say together: ranks, replicates, levels, slopes, and what can be claimed.

Every interval says what it takes as independent. Seeds are averaged first: three trainings of one
kind are one unit wherever kinds of training are compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from forgetmap.base.words import clean, some
from forgetmap.map.cells import ALPHA
from forgetmap.stats.estimate import Estimate
from forgetmap.stats.slopes import difference, mean_over, one_sample
from forgetmap.stats.tests import holm
from forgetmap.study.against import against
from forgetmap.study.correction import corrected_together
from forgetmap.study.doses import dose_curves
from forgetmap.study.factors import factors
from forgetmap.study.file import Attribute
from forgetmap.study.items import (
    ItemTable,
    PairItems,
    describe,
    differences,
    item_variance,
    lay_out,
)
from forgetmap.study.result import (
    Answers,
    Claim,
    Level,
    Replicates,
    Slope,
    Standing,
    StudiedPair,
)
from forgetmap.study.slopes import find_slopes, slope_words
from forgetmap.study.stages import stages
from forgetmap.study.trade_off import on_front, trade_off
from forgetmap.study.units import (
    PAIRS,
    TRAININGS,
    Unit,
    by_value,
    find_told,
    find_units,
    others,
    show,
    varies,
)

_MATCHED = "pairs matched in all else"
_Draft = tuple[str, Estimate, float, str]
"""A claim before it is corrected: words, estimate, p-value, unit."""


def answer(
    pairs: Sequence[StudiedPair],
    items: Sequence[PairItems] | None,
    curve: str | None = None,
    reference: tuple[str, Attribute] | None = None,
) -> Answers:
    """All answers of a study.

    Args:
        pairs: What was compared.
        items: Where the items of each pair are stored; None where there are none.
        curve: The attribute that tells the curves of the trade-off apart; by default `method`.
        reference: The attribute and its value that other kinds of training are held against.
    """
    table = lay_out(items) if items and len(pairs) > 1 else None
    units = find_units(pairs)
    slopes = list(find_slopes(units))
    answers = Answers(
        leaderboard=leaderboard(pairs, table),
        compared_by=_compared_by(pairs, items is not None, table),
        replicates=[_replicates(unit, pairs, table) for unit in units if len(unit.members) > 1],
        levels=list(_levels(units)),
        slopes=slopes,
        claims=_claims(slopes, units),
        items=describe(table, _kinds(units, items)) if items and table else None,
        trade_off=trade_off(pairs, units, curve),
        factors=factors(pairs, units),
        doses=dose_curves(pairs, units),
        stages=stages(pairs, units),
        against=against(pairs, units, *reference) if reference else None,
    )
    return corrected_together(answers)


# --- the leaderboard -----------------------------------------------------------------------------


def leaderboard(pairs: Sequence[StudiedPair], table: ItemTable | None) -> list[Standing]:
    """The pairs by their loss, the least first, and which ranks cannot be told apart."""
    lost = np.array([pair.old.lost.value for pair in pairs])
    order = np.argsort(lost, kind="stable")
    less = _surely_less(table, len(pairs))
    best = on_front(pairs)
    rows = []
    for rank, place in enumerate(order.tolist(), 1):
        cell = pairs[place].old
        rows.append(
            Standing(
                name=pairs[place].name,
                rank=rank,
                best=min(rank, 1 + int(less[:, place].sum())),
                worst=max(rank, len(pairs) - int(less[place].sum())),
                pareto=bool(best[place]),
                hidden=min(cell.lost.value, cell.gained.value),
            )
        )
    return rows


def _surely_less(table: ItemTable | None, count: int) -> NDArray[np.bool_]:
    """Whether the pair in the row surely lost less than the one in the column: Holm over all."""
    less = np.zeros((count, count), bool)
    if table is None:
        return less
    found = differences(table)
    upper = np.triu_indices(count, 1)
    apart = holm(found.p_value[upper]) < ALPHA
    less[upper] = apart & (found.more[upper] < 0)
    less.T[upper] = apart & (found.more[upper] > 0)
    return less


def _compared_by(pairs: Sequence[StudiedPair], known: bool, table: ItemTable | None) -> str:
    if len(pairs) < 2:
        return "one pair has no rank"
    if not known:
        return "numbers without items: no two pairs are told apart"
    if table is None:
        return "too many items to compare one by one: no two pairs are told apart"
    unit = "items" if table.unit is None else "clusters of items"
    return f"the items that two pairs share; unit: {unit}; Holm over all comparisons"


# --- replicates and levels -----------------------------------------------------------------------


def _replicates(unit: Unit, pairs: Sequence[StudiedPair], table: ItemTable | None) -> Replicates:
    members = [pairs[number] for number in unit.members]
    lost = [pair.old.lost.value for pair in members]
    gained = [pair.old.gained.value for pair in members]
    both = []
    for values, losses in ((lost, True), (gained, False)):
        more, freedom = item_variance(table, unit.members, losses) if table else (0.0, 1)
        both.append(_share(mean_over(values, more, max(freedom - 1, 1)).interval))
    return Replicates(
        attributes=unit.attributes,
        pairs=[pair.name for pair in members],
        lost=both[0],
        gained=both[1],
        deviation=float(np.std(lost, ddof=1)),
    )


def _share(estimate: Estimate | None) -> Estimate:
    """An interval of a share: it ends at 0 and 1."""
    assert estimate is not None  # there are two units or more
    return Estimate(value=estimate.value, low=max(0.0, estimate.low), high=min(1.0, estimate.high))


def _levels(units: Sequence[Unit]) -> Iterator[Level]:
    for name, groups in by_value(units):
        for value, members in groups.items():
            interval = mean_over([unit.lost for unit in members]).interval
            yield Level(
                attribute=name,
                value=value,
                pairs=sum(len(unit.members) for unit in members),
                units=len(members),
                lost=float(np.mean([unit.lost for unit in members])),
                gained=float(np.mean([unit.gained for unit in members])),
                interval=_share(interval) if interval else None,
            )


# --- claims ------------------------------------------------------------------------------------


def _claims(slopes: Sequence[Slope], units: Sequence[Unit]) -> list[Claim]:
    """All that levels and slopes could show, with one correction over all of it."""
    drafts: list[_Draft] = [
        (slope_words(slope), slope.per_doubling, slope.p_value, slope.unit) for slope in slopes
    ]
    sloped = {slope.attribute for slope in slopes}
    drafts += _level_differences(units, sloped)
    drafts += _seed_differences(units, sloped)
    adjusted = holm([p for _, _, p, _ in drafts])
    claims = [
        Claim(
            text=text,
            estimate=estimate,
            p_value=p,
            p_adjusted=float(adjusted[place]),
            claimed=bool(adjusted[place] < ALPHA),
            unit=unit,
        )
        for place, (text, estimate, p, unit) in enumerate(drafts)
    ]
    return sorted(claims, key=lambda claim: claim.p_value)


def _level_differences(units: Sequence[Unit], sloped: set[str]) -> Iterator[_Draft]:
    """Every two values of an attribute, between units that are alike in all else where there are.

    Values of a number that has a slope are left to the slope.
    """
    told = find_told(units)
    for name, groups in by_value(units):
        if name in sloped or _has_double(name, units, told):
            continue
        kin = told[name] | {other for other, follow in told.items() if name in follow}
        for (one, mine), (other, theirs) in combinations(groups.items(), 2):
            apart = one_sample(_matched({name, *kin}, mine, theirs))
            unit = _MATCHED
            if apart is None:
                apart = difference([unit.lost for unit in mine], [unit.lost for unit in theirs])
                unit = PAIRS
            if apart is not None:
                label = _with(name, {n for n in told[name] if varies(units, n)})
                yield _difference_words(label, one, other, apart[0]), *apart, unit


def _has_double(name: str, units: Sequence[Unit], told: dict[str, set[str]]) -> bool:
    """Whether an attribute before it sorts the units alike, so that both are one statement."""
    values = {unit.attributes.get(name) for unit in units}
    return any(
        name in follow and len({unit.attributes.get(other) for unit in units}) == len(values)
        for other, follow in told.items()
    )


def _matched(names: set[str], mine: Sequence[Unit], theirs: Sequence[Unit]) -> list[float]:
    """One difference for all units that are alike in all else, however many there are."""
    sides: list[dict[str, list[float]]] = [{}, {}]
    for side, units in zip(sides, (mine, theirs), strict=True):
        for unit in units:
            side.setdefault(repr(sorted(others(unit, *names).items())), []).append(unit.lost)
    one, other = sides
    return [float(np.mean(other[key]) - np.mean(one[key])) for key in one if key in other]


def _seed_differences(units: Sequence[Unit], sloped: set[str]) -> Iterator[_Draft]:
    """Every two kinds of training with several seeds each that differ in one attribute alone.

    What follows from that attribute may differ too.
    """
    told = find_told(units)
    for one, other in combinations([unit for unit in units if len(unit.members) > 1], 2):
        differ = [n for n in told if one.attributes.get(n) != other.attributes.get(n)]
        roots = [n for n in differ if not any(n in told[other_name] for other_name in differ)]
        if len(roots) != 1 or roots[0] in sloped:
            continue
        (name,) = roots
        if not (name in one.attributes and name in other.attributes):
            continue
        apart = difference(one.losses, other.losses)
        if apart is not None:
            values = one.attributes[name], other.attributes[name]
            where = ", ".join(_alike(others(one, *differ), told))
            label = _with(name, told[name].intersection(differ))
            text = _difference_words(label, *values, apart[0]) + (f" ({where})" if where else "")
            yield text, *apart, TRAININGS


def _alike(attributes: dict[str, Attribute], told: dict[str, set[str]]) -> Iterator[str]:
    """In what two kinds of training are alike, less what follows from the rest of it."""
    for name, value in sorted(attributes.items()):
        if not any(name in told[other] for other in attributes):
            yield show(value) if isinstance(value, str) else f"{clean(name, 40)} {show(value)}"


def _with(name: str, more: set[str]) -> str:
    """An attribute and what differs with it."""
    return f"{clean(name, 40)} (with {some(more, 3)})" if more else clean(name, 40)


def _difference_words(label: str, one: Attribute, other: Attribute, found: Estimate) -> str:
    more = f"{100 * abs(found.value):.1f} points {'more' if found.value > 0 else 'less'}"
    return f"{label}: {show(other)} loses {more} than {show(one)}"


def _kinds(units: Sequence[Unit], items: Sequence[PairItems]) -> NDArray[np.object_]:
    """How every two pairs are related: replicates, from the same log before, or neither."""
    unit = np.zeros(len(items), int)
    for number, found in enumerate(units):
        unit[found.members] = number
    before = np.array([pair.before for pair in items], object)
    kinds = np.full((len(items), len(items)), "other log before", object)
    kinds[before[:, None] == before[None, :]] = "same log before"
    kinds[unit[:, None] == unit[None, :]] = "other seeds"
    return kinds
