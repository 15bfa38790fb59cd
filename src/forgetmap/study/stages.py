"""Regimes of post-training, and whether what was published about them holds in a study."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forgetmap.map.cells import ALPHA
from forgetmap.stats.estimate import Estimate
from forgetmap.stats.slopes import difference, mean_over, one_sample
from forgetmap.stats.tests import holm
from forgetmap.study.doses import dose_slope
from forgetmap.study.factors import old_categories
from forgetmap.study.file import Attribute
from forgetmap.study.findings import (
    FINDINGS,
    FROM_INSTRUCT,
    HIGH_DATA,
    LOW_DATA,
    MOST_LOW_DATA,
    REGIMES,
    Alike,
    Below,
    Less,
    NotLess,
    Peak,
    Published,
    Test,
    Wider,
    WithSize,
)
from forgetmap.study.result import Finding, Outcome, Stage, Stages, StudiedPair
from forgetmap.study.units import FAMILY, PAIRS, Unit, is_positive, show

STAGE = "stage"
_NAMES = {name: regime for regime, names in REGIMES.items() for name in (regime, *names)}
Verdict = Literal["holds", "does not hold", "can't tell"]


class _Tested(NamedTuple):
    """What a test gives: the finding says that the estimate lies above or below zero."""

    estimate: Estimate
    p_value: float
    agrees: bool
    """Whether the estimate is on the side that the finding says."""
    unit: str
    why: str


def regime_of(attributes: dict[str, Attribute]) -> str | None:
    """The regime that a pair belongs to, by its attributes; None where it is not a known one.

    Example:
        >>> regime_of({"stage": "Instruction-Tuning"})
        'instruction tuning'
        >>> regime_of({"stage": "reasoning from instruct", "examples": 1000.0})
        'reasoning from instruct, low data'
    """
    name = _plain(attributes.get(STAGE, ""))
    if name in FROM_INSTRUCT:
        examples, data = attributes.get("examples"), _plain(attributes.get("data", ""))
        if data in ("low", "high"):
            return LOW_DATA if data == "low" else HIGH_DATA
        if isinstance(examples, float):
            return LOW_DATA if examples <= MOST_LOW_DATA else HIGH_DATA
        return None
    return {_plain(known): regime for known, regime in _NAMES.items()}.get(name)


def _plain(value: Attribute) -> str:
    return " ".join(re.findall(r"[a-z0-9]+", str(value).casefold()))


def stages(pairs: Sequence[StudiedPair], units: Sequence[Unit]) -> Stages | None:
    """The regimes of a study, and its word on every finding; None where no pair names a stage."""
    if not any(STAGE in unit.attributes for unit in units):
        return None
    known: dict[str, list[Unit]] = {}
    unknown: Counter[str] = Counter()
    for unit in units:
        regime = regime_of(unit.attributes)
        if regime:
            known.setdefault(regime, []).append(unit)
        elif STAGE in unit.attributes:
            unknown[show(unit.attributes[STAGE])] += len(unit.members)
    study = _Study(pairs, known)
    return Stages(
        stages=[_stage(study, name) for name in REGIMES if name in known],
        unknown=dict(unknown),
        findings=_findings(study) if known else [],
    )


class _Study(NamedTuple):
    pairs: Sequence[StudiedPair]
    by_regime: dict[str, list[Unit]]

    def units(self, stages: tuple[str, ...]) -> list[Unit]:
        return [unit for name in stages for unit in self.by_regime.get(name, [])]

    def values(self, stages: tuple[str, ...], of: Outcome) -> NDArray[np.float64]:
        return np.array([getattr(unit, of) for unit in self.units(stages)])

    def categories(self, unit: Unit, of: Outcome) -> dict[str, float]:
        """Means over the seeds of a unit."""
        found = [old_categories(self.pairs[number]) for number in unit.members]
        names = dict.fromkeys(name for cells in found for name in cells)
        return {
            name: float(np.mean([getattr(c[name], of).value for c in found if name in c]))
            for name in names
        }


def _stage(study: _Study, name: str) -> Stage:
    units = study.by_regime[name]
    lost, gained = (mean_over([getattr(unit, of) for unit in units]) for of in ("lost", "gained"))
    return Stage(
        name=name,
        pairs=[study.pairs[number].name for unit in units for number in unit.members],
        units=len(units),
        lost=lost.value,
        gained=gained.value,
        lost_interval=_share(lost.interval),
        gained_interval=_share(gained.interval),
        categories_lost=_mean_categories(study, units, "lost"),
        categories_gained=_mean_categories(study, units, "gained"),
        unit=PAIRS,
    )


def _share(found: Estimate | None) -> Estimate | None:
    if found is None:
        return None
    return Estimate(value=found.value, low=max(0.0, found.low), high=min(1.0, found.high))


def _mean_categories(study: _Study, units: Sequence[Unit], of: Outcome) -> dict[str, float]:
    found = [study.categories(unit, of) for unit in units]
    names = dict.fromkeys(name for cells in found for name in cells)
    return {name: float(np.mean([c[name] for c in found if name in c])) for name in names}


# --- findings ------------------------------------------------------------------------------------


def _findings(study: _Study) -> list[Finding]:
    """The word on every finding, with one correction over those that could be tested."""
    tested = [(published, _test(study, published.test)) for published in FINDINGS]
    p_values = [found.p_value for _, found in tested if isinstance(found, _Tested)]
    adjusted = iter(holm(p_values))
    rows = []
    for published, found in tested:
        p = float(next(adjusted)) if isinstance(found, _Tested) else None
        rows.append(_finding(published, found, p))
    return rows


def _finding(published: Published, found: _Tested | str, p_adjusted: float | None) -> Finding:
    verdict: Verdict = "can't tell"
    if isinstance(found, _Tested) and p_adjusted is not None and p_adjusted < ALPHA:
        verdict = "holds" if found.agrees else "does not hold"
    tested = found if isinstance(found, _Tested) else None
    return Finding(
        name=published.name,
        text=published.text,
        source=published.source,
        verdict=verdict,
        estimate=tested.estimate if tested else None,
        p_value=tested.p_value if tested else None,
        p_adjusted=p_adjusted,
        unit=tested.unit if tested else None,
        why=tested.why if tested else str(found),
    )


def _test(study: _Study, test: Test) -> _Tested | str:
    """What a study says on a finding, or why it says nothing."""
    for stages in (test.stages, getattr(test, "than", ())):
        if stages and not study.units(stages):
            return f"no pair is of the stage {' or '.join(stages)}"
    if isinstance(test, Below):
        return _below(study, test)
    if isinstance(test, Less):
        values = study.values(test.than, test.of), study.values(test.stages, test.of)
        return _apart(values, f"mean {test.of} of {_sides(test)}")
    if isinstance(test, Wider):
        mine, theirs = (study.values(names, test.of) for names in (test.stages, test.than))
        off = [np.abs(side - np.median(side)) for side in (mine, theirs)]
        return _apart((off[0], off[1]), f"distance from the median {test.of}, {_sides(test)}", -1)
    if isinstance(test, Alike | NotLess):
        return _within_margin(study, test)
    return _peak(study, test) if isinstance(test, Peak) else _with_size(study, test)


def _sides(test: Less | Wider | Alike | NotLess) -> str:
    return f"{', '.join(test.stages)} less that of {', '.join(test.than)}"


_ONE = "one kind of training is not enough to know how much they vary"


def _below(study: _Study, test: Below) -> _Tested | str:
    found = one_sample(study.values(test.stages, test.of) - test.limit)
    if found is None:
        return _ONE
    apart, p = found
    mean = Estimate(**{name: value + test.limit for name, value in dict(apart).items()})
    return _Tested(mean, p, apart.value < 0, PAIRS, f"mean {test.of}")


def _apart(
    values: tuple[NDArray[np.float64], NDArray[np.float64]], why: str, sign: int = 1
) -> _Tested | str:
    """The second less the first; the finding says that it is below zero (above for sign -1)."""
    found = difference(*(values if sign > 0 else values[::-1]))
    if found is None:
        return _ONE
    estimate, p = found
    return _Tested(estimate, p, sign * estimate.value < 0, PAIRS, why)


def _within_margin(study: _Study, test: Alike | NotLess) -> _Tested | str:
    """One-sided tests against the margin: that it is kept, or where it is not, that it is passed.

    Twice the p-value counts, as either could be told.
    """
    mine, theirs = (study.values(names, test.of) for names in (test.stages, test.than))
    found = difference(theirs, mine)
    if found is None:
        return _ONE
    estimate = found[0]
    not_below = _larger(theirs - test.margin, mine)
    above = _larger(theirs + test.margin, mine)
    if isinstance(test, NotLess):
        agrees = estimate.value > -test.margin
        p = not_below if agrees else 1 - not_below
    else:
        agrees = abs(estimate.value) < test.margin
        p = max(not_below, 1 - above) if agrees else min(1 - not_below, above)
    why = f"mean {test.of} of {_sides(test)}"
    return _Tested(estimate, min(1.0, 2 * p), agrees, PAIRS, why)


def _larger(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """The p-value of `other` being larger, by Welch's test."""
    found = difference(one, other)
    assert found is not None  # as it was there without the margin
    estimate, p = found
    return p / 2 if estimate.value > 0 else 1 - p / 2


def _peak(study: _Study, test: Peak) -> _Tested | str:
    """In every unit, the categories against all its others."""
    more = []
    for unit in study.units(test.stages):
        cells = study.categories(unit, test.of)
        inside = [value for name, value in cells.items() if _plain(name) in test.categories]
        others = [value for name, value in cells.items() if _plain(name) not in test.categories]
        if len(inside) == len(test.categories) and others:
            more.append(float(np.mean(inside) - np.mean(others)))
    if not more:
        return f"no pair has the categories {' and '.join(test.categories)}"
    found = one_sample(more)
    if found is None:
        return _ONE
    estimate, p = found
    why = f"mean {test.of} in {' and '.join(test.categories)} less that of the other categories"
    return _Tested(estimate, p, estimate.value > 0, PAIRS, why)


def _with_size(study: _Study, test: WithSize) -> _Tested | str:
    """The slope on the logarithm of the size, with a level for every family and stage."""
    found = [
        (unit, stage)
        for stage in test.stages
        for unit in study.units((stage,))
        if is_positive(unit.attributes.get("size"))
    ]
    sizes = [float(unit.attributes["size"]) for unit, _ in found]
    levels = [f"{unit.attributes.get(FAMILY)} {stage}" for unit, stage in found]
    values = [getattr(unit, test.of) for unit, _ in found]
    fit = dose_slope(sizes, values, levels=[levels]) if found else None
    if fit is None:
        return "it takes four kinds of training of three sizes"
    falls = fit.slope.value < 0
    why = f"{test.of}, each time the size doubles, within families and stages"
    return _Tested(fit.slope, fit.p_value, falls == test.falls, PAIRS, why)
