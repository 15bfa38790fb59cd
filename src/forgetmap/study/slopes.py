"""How the loss changes each time a number doubles: over all pairs, within families, within kinds.

A slope within families takes out what other attributes do. Else the difference between two methods
would count as noise of the size, and the interval would be too wide.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from forgetmap.base.words import clean
from forgetmap.stats.slopes import Fit
from forgetmap.study.doses import dose_slope, kind_of, vary_within
from forgetmap.study.file import Attribute
from forgetmap.study.result import Slope
from forgetmap.study.units import DOSES, FAMILY, PAIRS, Unit, is_positive, show, varies

KIND = "kind"
_UNITS_PER_NUMBER = 2
"""An attribute is held equal where so many units are left for each number that is fitted."""


def find_slopes(units: Sequence[Unit]) -> Iterator[Slope]:
    """All slopes that there are units enough for."""
    for name in DOSES:
        found = [unit for unit in units if is_positive(unit.attributes.get(name))]
        families: dict[Attribute, list[Unit]] = {}
        for unit in found:
            if FAMILY in unit.attributes:
                families.setdefault(unit.attributes[FAMILY], []).append(unit)
        in_families = len(families) > 1 and sum(map(len, families.values())) == len(found)
        yield from _overall(name, found, list(families) if in_families else None)
        yield from _within_families(name, families)
        yield from _within_kinds(name, found)
        for family, members in families.items():
            if len(families) > 1:
                yield from _held_equal(name, show(family), members)


def slope_words(slope: Slope) -> str:
    """What a slope says, as a statement."""
    where = {None: "", FAMILY: " within families", KIND: " within pairs of one kind"}.get(
        slope.within, f" within {slope.within}"
    )
    names = [clean(name, 40) for name in slope.held]
    held = f", with {' and '.join(names[:3])} held equal" if names else ""
    falls = "falls" if slope.per_doubling.value < 0 else "rises"
    amount = f"{100 * abs(slope.per_doubling.value):.2f} points"
    return f"lost {falls} by {amount} each time {slope.attribute} doubles{where}{held}"


def _overall(name: str, units: Sequence[Unit], families: list[Attribute] | None) -> Iterator[Slope]:
    """Over all pairs; families are the units where every pair has one."""
    cluster = (
        None if families is None else [families.index(unit.attributes[FAMILY]) for unit in units]
    )
    yield from _slope(name, None, units, cluster=cluster)


def _within_families(name: str, families: dict[Attribute, list[Unit]]) -> Iterator[Slope]:
    """Within all families in which the number varies, together."""
    varied = [members for members in families.values() if varies(members, name)]
    if len(varied) > 1:
        yield from _held_equal(name, FAMILY, [unit for members in varied for unit in members])


def _within_kinds(name: str, units: Sequence[Unit]) -> Iterator[Slope]:
    """Within pairs alike in all texts, where units differ in a text beside their family."""
    kinds = [kind_of(unit) for unit in units]
    doses = [float(unit.attributes[name]) for unit in units]
    families = {unit.attributes.get(FAMILY) for unit in units}
    if vary_within(doses, kinds) and len(set(kinds)) > len(families):
        yield from _slope(name, KIND, units, levels=[kinds])


def _held_equal(name: str, within: str, units: Sequence[Unit]) -> Iterator[Slope]:
    """Within families, with a level for every value of the other texts that vary.

    Other numbers are left alone: a dose may work through them, as steps do through weight drift.
    """
    levels = [[repr(unit.attributes[FAMILY]) for unit in units]]
    held: list[str] = []
    for other in dict.fromkeys(n for unit in units for n in unit.attributes):
        texts = all(isinstance(unit.attributes.get(other, ""), str) for unit in units)
        if other == FAMILY or not texts or not varies(units, other):
            continue
        more = [*levels, [repr(unit.attributes.get(other)) for unit in units]]
        numbers = 2 + sum(len(set(column)) - 1 for column in more)
        if len(units) >= _UNITS_PER_NUMBER * numbers and _fit(name, units, levels=more):
            levels, held = more, [*held, other]
    yield from _slope(name, within, units, levels=levels, held=held)


def _slope(
    name: str,
    within: str | None,
    units: Sequence[Unit],
    *,
    cluster: Sequence[int] | None = None,
    levels: Sequence[Sequence[str]] = (),
    held: Sequence[str] = (),
) -> Iterator[Slope]:
    """A slope on the logarithm of a number; nothing where there are too few units to say any."""
    fit = _fit(name, units, cluster, levels)
    if fit is not None:
        yield Slope(
            attribute=name,
            within=within,
            held=list(held),
            units=len(units),
            per_doubling=fit.slope,
            p_value=fit.p_value,
            unit=PAIRS if cluster is None else "families",
        )


def _fit(
    name: str,
    units: Sequence[Unit],
    cluster: Sequence[int] | None = None,
    levels: Sequence[Sequence[str]] = (),
) -> Fit | None:
    doses = [float(unit.attributes[name]) for unit in units]
    return dose_slope(doses, [unit.lost for unit in units], cluster, levels)
