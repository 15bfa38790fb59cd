"""Which attributes explain what was lost and gained: a mixed model on the cells of all pairs.

Attributes are fixed effects; kinds of training, tasks and families are random. See `stats.effects`
for how it is fitted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forgetmap.base.extras import install
from forgetmap.base.words import percent, some
from forgetmap.map.cells import ALPHA
from forgetmap.stats.effects import (
    FEWEST_FAMILIES,
    Effects,
    Levels,
    fit_effects,
    freedom_of,
    unit_levels,
)
from forgetmap.stats.tests import holm
from forgetmap.study.file import SEED, Attribute
from forgetmap.study.result import Effect, FactorModel, Factors, Outcome, StudiedPair, StudyCell
from forgetmap.study.units import FAMILY, PAIRS, Unit, in_order

Floats = NDArray[np.float64]

_FEWEST_UNITS = 6
_MOST_VALUES = 12
_FEWEST_LEFT = 3
"""Units that must be left over the columns, to know how much units vary."""
_OUTCOMES: tuple[Outcome, ...] = ("lost", "gained")
_WITHOUT_STATSMODELS = (
    "statsmodels is not installed, so families are clusters and not random effects: "
    f"{install('study')}"
)


class _Column(NamedTuple):
    """One column of the design: a value against the reference, or a number that doubles."""

    attribute: str
    value: Attribute | None
    reference: Attribute | None
    numbers: Floats


class _Design(NamedTuple):
    columns: list[_Column]
    family: NDArray[np.object_] | None
    """Of every unit, where families are random."""
    left_out: dict[str, str]

    @property
    def matrix(self) -> Floats:
        return np.column_stack([column.numbers for column in self.columns])


def factors(pairs: Sequence[StudiedPair], units: Sequence[Unit]) -> Factors:
    """Effects of all attributes on losses and gains, with one correction over all of them."""
    if len(units) < _FEWEST_UNITS:
        note = f"it takes {_FEWEST_UNITS} kinds of training, and there are {len(units)}"
        return Factors(models=[], left_out={}, note=note)
    design = _design(units)
    if not design.columns:
        note = "no attribute differs between the pairs, and repeats, and can be told from others"
        return Factors(models=[], left_out=design.left_out, note=note)
    models = [model for of in _OUTCOMES if (model := _model(of, pairs, units, design))]
    if not models:
        note = "the pairs do not vary beyond their attributes, so no interval can be given"
        return Factors(models=[], left_out=design.left_out, note=note)
    return Factors(models=_corrected(models), left_out=design.left_out)


# --- which attributes enter ----------------------------------------------------------------------


def _design(units: Sequence[Unit]) -> _Design:
    """The columns that can be told apart; those of few columns are taken first."""
    names = dict.fromkeys(name for unit in units for name in unit.attributes if name != SEED)
    family = _random_families(units)
    candidates, left_out = [], {}
    for name in names:
        if name == FAMILY and family is not None:
            continue
        found = _columns(name, [unit.attributes.get(name) for unit in units])
        if isinstance(found, str):
            left_out[name] = found
        elif found:
            candidates.append(found)
    chosen: list[_Column] = []
    for columns in sorted(candidates, key=len):
        reason = _cannot_enter([*chosen, *columns], family)
        if reason:
            left_out[columns[0].attribute] = reason
        else:
            chosen += columns
    return _Design(chosen, family, left_out)


def _random_families(units: Sequence[Unit]) -> NDArray[np.object_] | None:
    families = [unit.attributes.get(FAMILY) for unit in units]
    several = len(set(families)) >= FEWEST_FAMILIES and len(set(families)) < len(units)
    return np.array([str(name) for name in families], object) if several else None


def _columns(name: str, values: list[Attribute | None]) -> list[_Column] | str:
    """The columns of an attribute; none where it does not differ; or why it is left out."""
    known = [value for value in values if value is not None]
    if len(set(known)) < 2:
        return []
    if len(known) < len(values):
        return f"not known of {len(values) - len(known)} kinds of training"
    counts = Counter(known)
    if all(isinstance(value, float) and value > 0 for value in known) and len(counts) > 2:
        return [_Column(name, None, None, np.log2(np.array(known, float)))]
    if len(counts) == len(known):
        return "differs between all kinds of training"
    if len(counts) > _MOST_VALUES:
        return f"has {len(counts)} values, more than {_MOST_VALUES}"
    most = max(counts.values())
    reference = next(value for value in in_order(counts) if counts[value] == most)
    return [
        _Column(name, value, reference, np.array([each == value for each in known], float))
        for value in in_order(counts)
        if value != reference
    ]


def _cannot_enter(columns: list[_Column], family: NDArray[np.object_] | None) -> str | None:
    units = len(columns[0].numbers)
    matrix = np.column_stack([np.ones(units), *(column.numbers for column in columns)])
    if np.linalg.matrix_rank(matrix) < matrix.shape[1]:
        return "goes together with other attributes, so they cannot be told apart"
    left = float(units - matrix.shape[1])
    if family is not None:
        codes = np.unique(family, return_inverse=True)[1]
        left = min(*freedom_of(matrix, codes)[1:], left)
        return "too few families for it" if left < 1 else None
    return "too few kinds of training for it" if left < _FEWEST_LEFT else None


# --- the model -----------------------------------------------------------------------------------


def _model(
    of: Outcome, pairs: Sequence[StudiedPair], units: Sequence[Unit], design: _Design
) -> FactorModel | None:
    cells, sampling = _cells(of, pairs, units)
    notes = []
    levels = unit_levels(cells, sampling) if cells.size else None
    if levels is None:
        notes.append("the pairs share too few tasks, so the totals of pairs are used")
        totals = np.array([getattr(unit, of) for unit in units])
        levels = Levels(totals, 0.0, 0.0, np.zeros(len(units)))
    found = fit_effects(design.matrix, levels.units, design.family)
    if found is None:
        return None
    if found.method == "robust":
        notes.append(_WITHOUT_STATSMODELS)
    variances = {
        "attributes": found.explained,
        "family": found.family_variance,
        "pair": max(0.0, found.unit_variance - float(levels.error.mean())),
        "task": levels.task_variance,
        "residual": levels.rest_variance,
    }
    if found.method != "mixed":
        del variances["family"]
    total = sum(variances.values())
    return FactorModel(
        of=of,
        effects=[
            Effect(
                attribute=column.attribute,
                value=column.value,
                reference=column.reference,
                estimate=estimate,
                p_value=p,
                p_adjusted=1.0,
                claimed=False,
            )
            for column, estimate, p in zip(
                design.columns, found.estimates, found.p_values, strict=True
            )
        ],
        marginal_r2=found.explained / total if total else None,
        conditional_r2=1 - levels.rest_variance / total if total else None,
        variances=variances,
        cells=int((~np.isnan(cells)).sum()),
        pairs=len(pairs),
        groups=cells.shape[1],
        method=_method_words(found),
        unit=PAIRS if found.method == "plain" else f"{PAIRS}, in families",
        summary="",
        notes=notes,
    )


def _method_words(found: Effects) -> str:
    return {
        "mixed": "mixed model (REML): attributes fixed; families, pairs and tasks random",
        "plain": "mixed model: attributes fixed; pairs and tasks random",
        "robust": "least squares on the levels of pairs, families as clusters (CR2)",
    }[found.method]


def _cells(
    of: Outcome, pairs: Sequence[StudiedPair], units: Sequence[Unit]
) -> tuple[Floats, Floats | None]:
    """(units, tasks): the mean of the seeds, and its variance over items where that is known."""
    parts = [old_parts(pair) for pair in pairs]
    counts = Counter(name for found in parts for name in found)
    names = {name: place for place, name in enumerate(counts)}
    values = np.full((len(units), len(names)), np.nan)
    per_item = _variance_per_item(of, parts)
    sampling = np.full_like(values, np.nan)
    for row, unit in enumerate(units):
        members = [parts[number] for number in unit.members]
        for name in dict.fromkeys(name for found in members for name in found):
            cells = [found[name] for found in members if name in found]
            values[row, names[name]] = np.mean([getattr(cell, of).value for cell in cells])
            items = sum(cell.n or 0 for cell in cells)
            sampling[row, names[name]] = per_item / items if items else np.nan
    shared = (~np.isnan(values)).sum(axis=0) > 1
    values, sampling = values[:, shared], sampling[:, shared]
    known = bool(per_item) and not np.isnan(sampling[~np.isnan(values)]).any()
    return values, sampling if known else None


def old_parts(pair: StudiedPair) -> dict[str, StudyCell]:
    """The tasks of a pair that are not new; its categories where its tasks are not known."""
    if pair.tasks:
        return {name: cell for name, cell in pair.tasks.items() if name not in pair.new_tasks}
    return old_categories(pair)


def old_categories(pair: StudiedPair) -> dict[str, StudyCell]:
    """The categories of a pair that no new task is in."""
    new = set(pair.new_categories)
    return {name: cell for name, cell in pair.categories.items() if name not in new}


def _variance_per_item(of: Outcome, parts: Sequence[dict[str, StudyCell]]) -> float:
    """Pooled over cells: a weight must not depend on the loss that it weighs."""
    found = [
        cell.n * ((share.high - share.low) / 3.92) ** 2
        for cells in parts
        for cell in cells.values()
        if (share := getattr(cell, of)).high is not None and cell.n
    ]
    return float(np.mean(found)) if found else 0.0


def _corrected(models: list[FactorModel]) -> list[FactorModel]:
    adjusted = iter(holm([effect.p_value for model in models for effect in model.effects]))
    done = []
    for model in models:
        effects = []
        for effect in model.effects:
            p = float(next(adjusted))
            effects.append(effect.model_copy(update={"p_adjusted": p, "claimed": p < ALPHA}))
        update = {"effects": effects, "summary": summary(model, effects)}
        done.append(model.model_copy(update=update))
    return done


def summary(model: FactorModel, effects: Sequence[Effect]) -> str:
    """The answer in one sentence, also where nothing explains."""
    share = f"{percent(model.marginal_r2 or 0.0, 0)} of the variance between cells"
    told = dict.fromkeys(effect.attribute for effect in effects if effect.claimed)
    if not told:
        return (
            f"nothing explains what was {model.of}: none of {len(effects)} effects can be told "
            f"from chance; together the attributes explain {share}"
        )
    verb = "explains" if len(told) == 1 else "explain"
    return f"{some(told)} {verb} what was {model.of}; all attributes together explain {share}"
