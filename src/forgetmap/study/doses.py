"""How losses grow with a dose (examples, steps, size, how far weights moved), by category."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from forgetmap.map.cells import ALPHA
from forgetmap.stats.slopes import Fit, fit_slope
from forgetmap.stats.tests import holm
from forgetmap.study.factors import old_categories, old_parts
from forgetmap.study.result import Dose, DosePoint, StudiedPair
from forgetmap.study.units import DOSES, PAIRS, Unit, is_positive

_FEWEST_UNITS = 4
_FEWEST_VALUES = 3
_MOST_TASKS = 20
"""Without categories, tasks take their place if they are few."""


class _Draft(NamedTuple):
    attribute: str
    category: str
    doses: list[float]
    losses: list[float]
    fit: Fit
    unit: str


def dose_slope(
    doses: Sequence[float],
    losses: Sequence[float],
    cluster: Sequence[int] | None = None,
    levels: Sequence[Sequence[str]] = (),
) -> Fit | None:
    """The slope on the logarithm of a dose; None where units or values are too few to say any."""
    if len(doses) < _FEWEST_UNITS or len(set(doses)) < _FEWEST_VALUES:
        return None
    own = range(len(doses)) if cluster is None else cluster
    return fit_slope(np.log2(doses), losses, list(own), levels)


def dose_curves(pairs: Sequence[StudiedPair], units: Sequence[Unit]) -> list[Dose]:
    """A curve for every dose and category, with one correction over all of them."""
    drafts = list(_drafts(pairs, units))
    adjusted = holm([draft.fit.p_value for draft in drafts])
    return [
        Dose(
            attribute=draft.attribute,
            category=draft.category,
            points=list(_points(draft)),
            units=len(draft.doses),
            per_doubling=draft.fit.slope,
            p_value=draft.fit.p_value,
            p_adjusted=float(p),
            claimed=bool(p < ALPHA),
            unit=draft.unit,
        )
        for draft, p in zip(drafts, adjusted, strict=True)
    ]


def _drafts(pairs: Sequence[StudiedPair], units: Sequence[Unit]) -> Iterator[_Draft]:
    losses = _losses(pairs, units)
    for name in DOSES:
        for category, lost in losses.items():
            places = [n for n in lost if is_positive(units[n].attributes.get(name))]
            doses = [float(units[n].attributes[name]) for n in places]
            losses_here = [lost[n] for n in places]
            kinds = [kind_of(units[n]) for n in places]
            within = vary_within(doses, kinds)
            fit = dose_slope(doses, losses_here, levels=[kinds] if within else [])
            if fit is not None:
                unit = f"{PAIRS}, of one kind" if within else PAIRS
                yield _Draft(name, category, doses, losses_here, fit, unit)


def _losses(pairs: Sequence[StudiedPair], units: Sequence[Unit]) -> dict[str, dict[int, float]]:
    """By category and unit; seeds are averaged."""
    by_category = any(pair.categories for pair in pairs)
    parts = [old_categories(pair) if by_category else old_parts(pair) for pair in pairs]
    names = dict.fromkeys(name for found in parts for name in found)
    if not by_category and len(names) > _MOST_TASKS:
        return {}
    losses: dict[str, dict[int, float]] = {name: {} for name in names}
    for number, unit in enumerate(units):
        for name in names:
            found = [parts[n][name].lost.value for n in unit.members if name in parts[n]]
            if found:
                losses[name][number] = float(np.mean(found))
    return losses


def kind_of(unit: Unit) -> str:
    """All attributes of a unit that are texts, such as family, stage and method."""
    return repr(sorted((n, v) for n, v in unit.attributes.items() if isinstance(v, str)))


def vary_within(doses: Sequence[float], kinds: Sequence[str]) -> bool:
    """Whether the dose varies in two kinds or more, so that kinds can be held equal."""
    seen: dict[str, set[float]] = {}
    for dose, kind in zip(doses, kinds, strict=True):
        seen.setdefault(kind, set()).add(dose)
    return sum(len(found) > 1 for found in seen.values()) > 1


def _points(draft: _Draft) -> Iterator[DosePoint]:
    for dose in sorted(set(draft.doses)):
        here = [lost for at, lost in zip(draft.doses, draft.losses, strict=True) if at == dose]
        yield DosePoint(dose=dose, lost=float(np.mean(here)), units=len(here))
