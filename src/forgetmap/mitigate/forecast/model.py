"""The model of a forecast: two logistic curves, fitted to other trainings.

One says which share of its chance an item loses, and gives the expected loss max(p - q, 0). The
other says whether an item that was known turns wrong. Both are plain on purpose: gradient boosting
ranked no better, and a curve of ten numbers can be shipped and read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

from forgetmap.base.model import Frozen
from forgetmap.mitigate.forecast.items import (
    Floats,
    History,
    Items,
    Training,
    find,
    groups,
)
from forgetmap.stats.estimate import Estimate

PLAIN = (
    "chance", "log odds of it", "known", "1 / options",
    "chance in its task", "known in its task", "log odds of the task",
)  # fmt: skip
PAST = ("share lost before", "chance after", "share lost in its task")
"""What earlier trainings of the same model add."""
PROBE = ("share lost in the probe", "chance after it", "share lost in its task", "in all")
"""What a few steps of this training add, which were thrown away."""
_PENALTY = 1.0
_SAMPLE = 300
"""Items of a training that the curves are fitted to: the trainings matter, not more items."""
_BINS = 10


class Curve(Frozen):
    """A logistic curve over standardised features."""

    centre: list[float]
    scale: list[float]
    weights: list[float]
    """The first one stands alone."""

    def __call__(self, features: Floats) -> Floats:
        """The height of the curve for each row."""
        z = (features - np.array(self.centre)) / np.array(self.scale)
        height: Floats = special.expit(self.weights[0] + z @ np.array(self.weights[1:]))
        return height


class Curves(Frozen):
    """Both curves of a forecast."""

    share: Curve
    flip: Curve

    def forecast(self, items: Items, features: Floats) -> Forecasted:
        """The expected loss of each item, and the chance that it turns wrong."""
        return Forecasted(
            self.share(features) * items.chance, np.where(items.knew, self.flip(features), 0.0)
        )


class Forecasted(NamedTuple):
    """What is forecast of each item."""

    loss: Floats
    flip: Floats


def fit_curve(features: Floats, target: Floats, weight: Floats) -> Curve:
    """Fit a logistic curve to shares from 0 to 1, with a light penalty on its slopes."""
    centre, scale = features.mean(axis=0), features.std(axis=0)
    scale = np.where(scale > 1e-9, scale, 1.0)
    rows = np.column_stack([np.ones(len(features)), (features - centre) / scale])
    total = weight.sum()

    def cost(slopes: Floats) -> tuple[float, Floats]:
        height = rows @ slopes
        misfit = (weight * (np.logaddexp(0, height) - target * height)).sum()
        pull = rows.T @ (weight * (special.expit(height) - target))
        pull[1:] += _PENALTY * slopes[1:]
        return (misfit + _PENALTY * (slopes[1:] ** 2).sum() / 2) / total, pull / total

    found = optimize.minimize(cost, np.zeros(rows.shape[1]), jac=True, method="L-BFGS-B").x
    return Curve(centre=centre.tolist(), scale=scale.tolist(), weights=found.tolist())


# --- features -------------------------------------------------------------------------------------


def plain_features(items: Items, probe: Items | None = None) -> Floats:
    """What the log before says of each item and of its task, and a probe where there is one."""
    chance, known = _task_means(items, items.chance), _task_means(items, items.knew.astype(float))
    columns = (items.chance, _log_odds(items.chance), items.knew, 1 / items.options, chance, known)
    more = () if probe is None else probe_features(items, probe)
    return np.column_stack([*columns, _log_odds(chance), *more]).astype(float)


def probe_features(items: Items, probe: Items) -> tuple[Floats, ...]:
    """What a few steps did to each item, to its task and to all; its share is drawn to its task.

    Items that the probe did not ask lost what their task did, as far as this can say.
    """
    place, there = find(probe, items)
    after = probe.chance[place]
    loss = np.where(there, np.maximum(items.chance - after, 0), 0.0)
    asked = np.where(there, items.chance, 0.0)
    of_all = loss.sum() / max(asked.sum(), 1e-3)
    lost, had = _task_means(items, loss), _task_means(items, asked)
    of_task = np.where(had > 0, lost / np.maximum(had, 1e-3), of_all)
    later = np.where(there, after, items.chance * (1 - of_task))
    share = (loss + of_task * items.chance) / (items.chance * (1.0 + there) + 0.02)
    shares = (share, later, of_task, np.full(len(items), of_all))
    return tuple(_log_odds(np.clip(side, 0, 1)) for side in shares)


class Past(NamedTuple):
    """What earlier trainings did to the items of one model."""

    features: Floats
    seen: NDArray[np.bool_]
    """Which items were asked in any of them."""


def past_features(
    items: Items, history: History, model: int, but: str | None = None
) -> Past | None:
    """How earlier trainings of the same model treated each item; None where there were none.

    Every regime counts the same, however many seeds it has; `but` names one that does not count.
    Shares are drawn towards their task.
    """
    known = history.models[model]
    tallies = [
        tally for (of, regime), tally in history.tallies.items() if of == model and regime != but
    ]
    if not tallies:
        return None
    loss, after, count = (np.sum(side, axis=0) for side in zip(*tallies, strict=True))
    place, there = find(known, items)
    loss, after, count = (np.where(there, side[place], 0.0) for side in (loss, after, count))
    mean = np.divide(loss, count, out=np.zeros_like(loss), where=count > 0)
    task_loss, task_chance = _task_means(items, mean), _task_means(items, items.chance)
    of_task = task_loss / np.maximum(task_chance, 1e-3)
    share = (loss + of_task * items.chance) / (items.chance * (count + 1) + 0.02)
    later = np.divide(after, count, out=items.chance.copy(), where=count > 0)
    columns = (_log_odds(np.clip(share, 0, 1)), _log_odds(later), _log_odds(np.clip(of_task, 0, 1)))
    return Past(np.column_stack(columns), count > 0)


def _log_odds(chance: Floats) -> Floats:
    odds: Floats = special.logit(np.clip(chance, 1e-3, 1 - 1e-3))
    return odds


def _task_means(items: Items, values: Floats) -> Floats:
    _, code = np.unique(items.task.astype(str), return_inverse=True)
    means: Floats = (np.bincount(code, values) / np.bincount(code))[code]
    return means


# --- fitting --------------------------------------------------------------------------------------


class Models(NamedTuple):
    """The curves for items without a past and, where the history allows, for those with one."""

    plain: Curves
    past: Curves | None


def fit(history: History, with_past: bool = True) -> Models:
    """Fit the curves to all trainings of a history; each regime of a model counts the same.

    The past of a training is made of the other regimes, as it will be when the curves are used.
    Where the trainings have probes, the curves see them.
    """
    plain = [plain_features(items) for items in history.models]
    pasts: dict[tuple[int, str], Past | None] = {}
    for training in history.trainings:
        at = training.model, training.regime
        if with_past and at not in pasts:
            items = history.models[training.model]
            pasts[at] = past_features(items, history, training.model, training.regime)
    many = Counter((training.model, training.regime) for training in history.trainings)
    rows = []
    for number, training in enumerate(history.trainings):
        at = training.model, training.regime
        items, features = history.models[training.model], plain[training.model]
        if training.probe is not None:
            features = plain_features(items, training.probe)
        known = items, features, pasts.get(at)
        rows.append(_rows(number, training, *known, weight=1 / many[at]))
    told = [row for row in rows if row.past is not None]
    return Models(_curves(rows, past=False), _curves(told, past=True) if told else None)


class _Rows(NamedTuple):
    """Some items of one training, to fit the curves to."""

    plain: Floats
    past: Floats | None
    chance: Floats
    loss: Floats
    knew: NDArray[np.bool_]
    flipped: NDArray[np.bool_]
    weight: Floats


def _rows(
    number: int, training: Training, model: Items, plain: Floats, past: Past | None, weight: float
) -> _Rows:
    draw = np.random.default_rng(number)
    many = min(_SAMPLE, len(training.place))
    chosen = np.sort(draw.choice(len(training.place), many, replace=False))
    place = training.place[chosen]
    return _Rows(
        plain[place],
        None if past is None else np.column_stack([plain[place], past.features[place]]),
        model.chance[place],
        training.loss[chosen],
        model.knew[place],
        training.flipped[chosen],
        np.full(many, weight),
    )


def _curves(rows: Sequence[_Rows], past: bool) -> Curves:
    features = np.concatenate([row.past if past else row.plain for row in rows])
    chance, loss = (np.concatenate([row[at] for row in rows]) for at in (2, 3))
    knew, flipped = (np.concatenate([row[at] for row in rows]) for at in (4, 5))
    weight = np.concatenate([row.weight for row in rows])
    weight *= len(weight) / weight.sum()
    share = np.divide(loss, chance, out=np.zeros_like(loss), where=chance > 0)
    return Curves(
        share=fit_curve(features, np.clip(share, 0, 1), weight * chance),
        flip=fit_curve(features[knew], flipped[knew].astype(float), weight[knew]),
    )


def forecast_items(
    items: Items, models: Models, past: Past | None, probe: Items | None = None
) -> Forecasted:
    """Forecast every item, by its past where it has one; with a probe, by curves that know it."""
    plain = plain_features(items, probe)
    found = models.plain.forecast(items, plain)
    if past is None or models.past is None:
        return found
    better = models.past.forecast(items, np.column_stack([plain, past.features]))
    return Forecasted(
        np.where(past.seen, better.loss, found.loss), np.where(past.seen, better.flip, found.flip)
    )


# --- how good a forecast was ----------------------------------------------------------------------


def auc(score: Floats, event: NDArray[np.bool_]) -> float | None:
    """The chance that an item with the event has a higher score than one without it.

    None where all items have it, or none has.

    Example:
        >>> auc(np.array([0.1, 0.4, 0.35, 0.8]), np.array([False, False, True, True]))
        0.75
    """
    with_it, without = int(event.sum()), int((~event).sum())
    if not with_it or not without:
        return None
    ranks = stats.rankdata(score)
    return float((ranks[event].sum() - with_it * (with_it + 1) / 2) / (with_it * without))


class Bin(Frozen):
    """Items with about the same forecast, and what became of them."""

    items: int
    forecast: float
    happened: float


def calibration(forecast: Floats, happened: Floats) -> list[Bin]:
    """Tenths of the items by their forecast, each with the mean of what happened."""
    order = np.argsort(forecast, kind="stable")
    return [
        Bin(items=len(p), forecast=float(forecast[p].mean()), happened=float(happened[p].mean()))
        for p in np.array_split(order, min(_BINS, len(order)))
    ]


def calibration_error(bins: Sequence[Bin]) -> float:
    """The mean distance between forecast and what happened, over items."""
    items = sum(each.items for each in bins)
    return sum(each.items * abs(each.forecast - each.happened) for each in bins) / items


def at_level(forecast: Floats, share: float) -> Floats:
    """The same forecast, with all log odds shifted so that it expects this share.

    Example:
        >>> at_level(np.array([0.2, 0.2]), 0.5).round(6).tolist()
        [0.5, 0.5]
    """
    odds = special.logit(np.clip(forecast, 1e-6, 1 - 1e-6))
    goal = min(max(share, 1e-6), 1 - 1e-6)
    shift = optimize.brentq(lambda by: special.expit(odds + by).mean() - goal, -40, 40)
    shifted: Floats = special.expit(odds + shift)
    return shifted


# --- how far a total may be off -------------------------------------------------------------------


class Spread(Frozen):
    """How far totals of other trainings were from their forecasts, on the scale of square roots.

    Trainings differ in how much they cost. This is most of the error of a total, and no number of
    items makes it smaller.
    """

    shift: float
    variance: float
    """From regime to regime and from training to training, beyond the luck of the items."""
    regimes: int

    def interval(self, loss: Floats) -> tuple[float, float]:
        """The 95 % interval of the mean of items with these expected losses."""
        middle = np.sqrt(max(loss.mean(), 0.0)) + self.shift
        deviation = np.sqrt(self.variance + _item_variance(loss))
        reach = float(special.stdtrit(max(self.regimes - 1, 1), 0.975)) * deviation
        return float(max(middle - reach, 0.0) ** 2), float(min(middle + reach, 1.0) ** 2)


def _item_variance(loss: Floats) -> float:
    """The variance of the root of a mean loss, if its items were drawn again; at most so much."""
    mean = loss.mean()
    return float((loss * (1 - loss)).sum() / len(loss) ** 2 / max(4 * mean, 1e-6))


class Apart(NamedTuple):
    """How far the total of some items was from its forecast."""

    regime: str
    distance: float
    items: float
    """Variance that the items alone explain."""


def apart(regime: str, forecast: Floats, happened: Floats) -> Apart:
    """Compare the mean of some items with its forecast."""
    distance = np.sqrt(happened.mean()) - np.sqrt(max(forecast.mean(), 0.0))
    return Apart(regime, float(distance), _item_variance(forecast))


def spread_of(found: Sequence[Apart]) -> Spread:
    """The spread of totals over regimes; each regime counts the same."""
    by: dict[str, list[Apart]] = {}
    for each in found:
        by.setdefault(each.regime, []).append(each)
    means = np.array([np.mean([one.distance for one in part]) for part in by.values()])
    within = np.mean([np.var([one.distance for one in part]) for part in by.values()])
    items = np.mean([one.items for one in found])
    many = len(by)
    between = means.var(ddof=1) * (1 + 1 / many) if many > 1 else 0.05
    return Spread(
        shift=float(means.mean()),
        variance=float(max(between + within - items, 1e-6)),
        regimes=many,
    )


def by_category(names: NDArray[np.object_]) -> list[tuple[str, NDArray[np.intp]]]:
    """The places of each category, and of all items together under no name."""
    return [*groups(names), ("", np.arange(len(names)))]


# --- what a part of the items says ----------------------------------------------------------------


class Weighed(Frozen):
    """What all items lost and gained, from those that were asked."""

    items: int
    asked: int
    lost: Estimate
    gained: Estimate


class WeighedMap(Frozen):
    """Totals from a part of the items."""

    total: Weighed
    categories: dict[str, Weighed]
    unanswered: int
    """Chosen items that one of the logs lacks: unchanged in the value, lost at the high end."""

    def to_json(self) -> str:
        """The totals as JSON."""
        return self.model_dump_json(indent=2)


class Probed(Frozen):
    """What a few steps on the new data did, which were thrown away."""

    model: str
    steps: int
    learning_rate: float
    found: WeighedMap
