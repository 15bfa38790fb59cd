"""How good a forecast is on trainings that it never saw: leave some out, fit, forecast, compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forgetmap.base.model import Frozen
from forgetmap.mitigate.forecast.items import Floats, History, Training
from forgetmap.mitigate.forecast.model import (
    Apart,
    Bin,
    Forecasted,
    Models,
    Spread,
    apart,
    at_level,
    auc,
    by_category,
    calibration,
    calibration_error,
    fit,
    forecast_items,
    past_features,
    spread_of,
)

LeftOut = Callable[[Training, Training], bool]
"""Whether the second training must not be seen when the first is forecast."""
NEVER_SEEN: dict[str, LeftOut] = {
    "training": lambda one, other: one.name == other.name,
    "regime": lambda one, other: one.regime == other.regime,
    "task": lambda one, other: one.taught == other.taught,
    "model": lambda one, other: one.model == other.model,
    "task and model": lambda one, other: one.taught == other.taught or one.model == other.model,
}
"""What a forecast never saw, and which trainings are left out for it; each stricter in its way."""


class Told(NamedTuple):
    """A training that was forecast without having been seen."""

    training: Training
    forecast: Forecasted
    """Of its items, in their order."""
    chance: Floats
    knew: NDArray[np.bool_]
    names: NDArray[np.object_]
    """Categories of its items."""
    seen: History
    """The trainings that were not left out."""


class Quality(Frozen):
    """How good forecasts were on trainings that they never saw."""

    never_saw: str
    history: bool
    """Whether earlier trainings of the same model were used."""
    trainings: int
    auc_known: float
    """Lost against kept, among items that were known; the mean over trainings."""
    auc_all: float
    """Among all items; those that were never known make it easy."""
    calibration_error: float
    """Mean distance between the chance told and the share lost, among items that were known."""
    calibration_error_all: float
    """Among all items; those that were never known make it easy, as they cannot be lost."""
    level_off: float
    """How far the share of known items that a training costs is from the one told; the mean."""
    calibration_error_at_level: float
    """Calibration error of known items if that share were known beforehand for each training."""
    curve: list[Bin]
    """Of known items: chance to turn wrong and share that did."""
    riskiest_quarter: float
    """Share of all that was lost which lay in the quarter of the items with the highest risk."""


def forecast_unseen(
    history: History,
    never_saw: str,
    category: Callable[[str], str],
    *,
    with_past: bool = True,
    every: int = 1,
) -> Iterator[Told]:
    """Forecast every training, or each so many-th, from those that it may be forecast from."""
    left_out = NEVER_SEEN[never_saw]
    fitted: dict[tuple[str, ...], tuple[History, Models]] = {}
    for training in history.trainings[::every]:
        seen = history.without(lambda other, one=training: left_out(one, other))  # type: ignore[misc]
        if not seen.trainings:
            continue
        names = tuple(each.name for each in seen.trainings)
        if names not in fitted:
            fitted[names] = seen, fit(seen, with_past)
        seen, models = fitted[names]
        items = history.models[training.model]
        past = past_features(items, seen, training.model) if with_past else None
        found = forecast_items(items, models, past, training.probe)
        place = training.place
        yield Told(
            training,
            Forecasted(found.loss[place], found.flip[place]),
            items.chance[place],
            items.knew[place],
            np.array([category(task) for task in items.task[place]], dtype=object),
            seen,
        )


def quality(told: Sequence[Told], never_saw: str, history: bool) -> Quality:
    """What is said of forecasts once the trainings were done."""
    known, every, held, off = list[float](), list[float](), list[float](), list[float]()
    at_levels = list[Floats]()
    for each in told:
        flipped, flip = each.training.flipped, each.forecast.flip
        known += [
            found for found in [auc(flip[each.knew], flipped[each.knew])] if found is not None
        ]
        told_share, lost_share = flip[each.knew].mean(), flipped[each.knew].mean()
        off.append(abs(float(told_share - lost_share)))
        at_levels.append(at_level(flip[each.knew], float(lost_share)))
        every += [found for found in [auc(flip, flipped)] if found is not None]
        quarter = np.argsort(-each.forecast.loss, kind="stable")[: len(flip) // 4]
        held.append(float(each.training.loss[quarter].sum() / max(each.training.loss.sum(), 1e-9)))
    flips = np.concatenate([each.forecast.flip for each in told])
    happened = np.concatenate([each.training.flipped for each in told]).astype(float)
    inside = np.concatenate([each.knew for each in told])
    bins = calibration(flips[inside], happened[inside])
    leveled = calibration(np.concatenate(at_levels), happened[inside])
    return Quality(
        never_saw=never_saw,
        history=history,
        trainings=len(told),
        auc_known=float(np.mean(known)),
        auc_all=float(np.mean(every)),
        calibration_error=calibration_error(bins),
        calibration_error_all=calibration_error(calibration(flips, happened)),
        level_off=float(np.mean(off)),
        calibration_error_at_level=calibration_error(leveled),
        curve=bins,
        riskiest_quarter=float(np.mean(held)),
    )


def distances(told: Sequence[Told]) -> tuple[list[Apart], list[Apart]]:
    """How far totals were from their forecasts: by category, and over all items."""
    parts, totals = list[Apart](), list[Apart]()
    for each in told:
        for name, place in by_category(each.names):
            found = apart(
                each.training.regime, each.forecast.loss[place], each.training.loss[place]
            )
            (parts if name else totals).append(found)
    return parts, totals


class Coverage(NamedTuple):
    """How often a total was within its interval, and how wide these were."""

    cases: int
    categories: float
    category_width: float
    total: float
    total_width: float


def coverage(
    told: Sequence[Told], never_saw: str, category: Callable[[str], str], *, with_past: bool = True
) -> Coverage:
    """How often intervals hold what then happened to trainings that were forecast unseen.

    The spread behind an interval comes from the trainings that were not left out alone, each of
    them forecast without its own regime.
    """
    spreads: dict[tuple[str, ...], tuple[Spread, Spread]] = {}
    parts, totals = list[tuple[bool, float]](), list[tuple[bool, float]]()
    for each in told:
        names = tuple(one.name for one in each.seen.trainings)
        if names not in spreads:
            spreads[names] = _spreads(each, told, never_saw, category, with_past)
        for name, place in by_category(each.names):
            spread = spreads[names][0 if name else 1]
            low, high = spread.interval(each.forecast.loss[place])
            happened = each.training.loss[place].mean()
            (parts if name else totals).append((bool(low <= happened <= high), high - low))
    held, widths = zip(*parts, strict=True)
    whole, wide = zip(*totals, strict=True)
    return Coverage(
        len(parts),
        float(np.mean(held)),
        float(np.mean(widths)),
        float(np.mean(whole)),
        float(np.mean(wide)),
    )


def _spreads(
    each: Told, told: Sequence[Told], never_saw: str, category: Callable[[str], str], past: bool
) -> tuple[Spread, Spread]:
    """The spread of the trainings that were seen, by category and of totals.

    Where regimes are left out one by one, the others were forecast already. Those forecasts saw
    this regime, but the distances of this regime are not among what the spread is made of.
    """
    if never_saw == "regime":
        seen = [one for one in told if one.training.regime != each.training.regime]
    else:
        seen = list(forecast_unseen(each.seen, "regime", category, with_past=past))
    parts, totals = distances(seen)
    return spread_of(parts), spread_of(totals)
