"""What a map, or a drift by capability, says about one limit: a value, its interval, a p-value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from scipy import special

from forgetmap.base.words import nearest
from forgetmap.capabilities.drift_result import Drift, MetricDrift
from forgetmap.gate.policy import CapabilityLimit, Limit
from forgetmap.map.causes import UNKNOWN
from forgetmap.map.result import Cell, ForgettingMap
from forgetmap.stats.estimate import Estimate, Range, share

_SPREAD = float(special.ndtri(0.975))
_CHOSEN = 1.25
"""By how much to stretch the interval of a loss that the data chose, simulated on unchanged models
(benchmarks/gate_rates.md)."""


class Measurement(NamedTuple):
    """What is known about one limit; large values are bad."""

    estimate: Estimate
    p_value: float
    """Chance of such data if the true value were at its limit."""
    name: str
    is_share: bool = True
    """Whether people read the value in percent."""
    least: float | None = None
    """What is sure of the value, where the estimate is the low end of a range."""

    @property
    def sure(self) -> float:
        """The value that must lie beyond a limit to break it."""
        return self.estimate.value if self.least is None else self.least


class Bounded(NamedTuple):
    """The limit in the units of the value, and the evidence; a text says why there is none."""

    bound: float | None
    evidence: Measurement | str


# --- from the map ---------------------------------------------------------------------------------


def in_map(result: ForgettingMap, limit: Limit, where: str, fewest: int) -> Bounded:
    """What the map says about a limit on one of its cells.

    Args:
        result: The map.
        limit: The limit.
        where: The cell, such as `task:arc`.
        fewest: Items that a cell must have.
    """
    cell = _cell(result, where)
    if cell is None:
        return Bounded(None, "it is not in the map")
    relative = limit.max_relative
    bounds = (limit.max, None if relative is None else relative * cell.accuracy_before)
    bound = min(limit for limit in bounds if limit is not None)
    if cell.n < fewest:
        return Bounded(bound, _too_few(cell.n, fewest))
    pooled = where != "macro"  # a mean over categories is no count of items
    return Bounded(bound, _of_cell(cell, limit, bound, pooled))


def _cell(result: ForgettingMap, where: str) -> Cell | None:
    kind, _, name = where.partition(":")
    if kind in ("total", "old", "new", "macro"):
        cell: Cell | None = getattr(result, kind)
        return cell
    return (result.categories if kind == "category" else result.tasks).get(name)


def _too_few(n: int, fewest: int) -> str:
    return f"it has only {n:,} items; the policy asks for {fewest:,}"


def _of_cell(cell: Cell, limit: Limit, bound: float, pooled: bool) -> Measurement | str:
    if limit.cause:
        return _of_cause(cell, limit.cause, bound)
    single = cell.repeats_before == cell.repeats_after == 1
    exact = single and pooled and not cell.clustered
    if limit.measure == "drop":
        lost = _turned(cell.change)
        p_value = p_of_drop(cell, bound) if exact else p_from_interval(_even(lost), bound)
        return Measurement(lost, p_value, "loss of accuracy")
    if limit.measure == "forgetting":
        return _of_loss(cell.lost, bound)
    raw = cell.raw.lost
    if exact:
        p_value = p_from_count(round(raw.value * cell.n), cell.n, bound)
    else:
        p_value = p_from_interval(raw, bound)
    return Measurement(raw, p_value, "flips 1->0")


def _of_loss(lost: Range, bound: float) -> Measurement:
    """Only what is surely lost can break a limit; to keep it, all that can be lost must.

    A lower limit of zero was cut off there: how far below it reached is not known, so the wider
    half of the interval counts. Otherwise a limit of zero would stop most unchanged models.
    From runs, what is sure was chosen by the data, so its tail is longer than the normal one.
    """
    sure = Estimate(value=lost.low_end, low=lost.low, high=lost.high)
    if lost.low <= 0:
        sure = _even(sure)
    if lost.basis in ("repeats", "mixed"):
        reach = _CHOSEN * (sure.value - sure.low)
        sure = sure.model_copy(update={"low": sure.value - reach})
    p_value = p_from_interval(sure, bound)
    name = {"repeats": "surely lost"}.get(lost.basis, "lost" if lost.exact else "lost at most")
    return Measurement(lost.estimate, p_value, name, least=lost.low_end)


def _turned(estimate: Estimate) -> Estimate:
    """A change as a loss."""
    return Estimate(value=-estimate.value, low=-estimate.high, high=-estimate.low)


def _even(estimate: Estimate) -> Estimate:
    """The wider half of the interval on both sides.

    A net loss is a difference of two counts: that one half of its interval came out narrower is
    chance, and a gate that went by the narrower one would stop too many unchanged models.
    """
    reach = max(estimate.high - estimate.value, estimate.value - estimate.low)
    return Estimate(value=estimate.value, low=estimate.value - reach, high=estimate.value + reach)


def _of_cause(cell: Cell, cause: str, bound: float) -> Measurement | str:
    """Items lost by a cause; those without text may have it or not, which widens the interval."""
    if cell.causes is None:
        return "the map has no causes for it (compare with --causes)"
    count = cell.causes.get(cause, 0)
    least, most = share(count, cell.n), share(count + cell.causes.get(UNKNOWN, 0), cell.n)
    estimate = least.model_copy(update={"high": most.high})
    return Measurement(estimate, p_from_count(count, cell.n, bound), f"forgetting by {cause}")


# --- from the drift by capability -----------------------------------------------------------------


class _Change(NamedTuple):
    """A change of a capability, group or metric, oriented so that negative is worse."""

    estimate: Estimate | None
    two_sided: bool
    """Neither direction is worse: the limit is on the size of the change."""
    n: int
    """Items; of an aggregate those of its smallest metric."""
    is_share: bool = True


def in_drift(drift: Drift | None, limit: CapabilityLimit, where: str, fewest: int) -> Bounded:
    """What the drift says about a limit on a capability, a group or a metric.

    Args:
        drift: What `forgetmap drift --json` wrote; None where it was not given.
        limit: The limit.
        where: What it is on, such as `capability:C1`.
        fewest: Items that its smallest metric must have.
    """
    bound = limit.bound
    if drift is None:
        return Bounded(bound, "no drift was given (forgetmap gate --drift FILE)")
    kind, _, name = where.partition(":")
    change = _changes(drift, kind, relative=limit.max is None).get(name)
    if change is None:
        known = drifting(drift, kind)
        hint = nearest(name, known) if known else ""
        return Bounded(bound, f"it is not in the drift{hint}")
    if change.estimate is None:
        return Bounded(bound, "its relative change is withheld, too few items are above zero")
    if change.n < fewest:
        return Bounded(bound, _too_few(change.n, fewest))
    what = "relative " if limit.max is None else ""
    if change.two_sided:
        size, p_value = _size(change.estimate), _p_of_size(change.estimate, bound)
        return Bounded(bound, Measurement(size, p_value, f"{what}drift", change.is_share))
    lost = _turned(change.estimate)
    p_value = p_from_interval(lost, bound)
    return Bounded(bound, Measurement(lost, p_value, f"{what}loss", change.is_share))


def drifting(drift: Drift | None, kind: str) -> list[str]:
    """Names of all capabilities, groups or primary metrics of a drift."""
    if drift is None:
        return []
    if kind == "group":
        return [group.name for group in drift.groups]
    if kind == "capability":
        return [capability.code for capability in drift.capabilities]
    return [metric.name for metric in drift.primary]


def _changes(drift: Drift, kind: str, *, relative: bool) -> Mapping[str, _Change]:
    if kind == "metric":
        return {metric.name: _of_metric(metric, relative) for metric in drift.metrics}
    items = {metric.name: metric.n for metric in drift.metrics}
    capabilities = {
        capability.code: _Change(
            capability.relative, capability.two_sided, _fewest(items, capability.parts)
        )
        for capability in drift.capabilities
    }
    if kind == "capability":
        return capabilities
    sizes = {code: change.n for code, change in capabilities.items()}
    return {
        group.name: _Change(
            group.relative,
            any(capabilities[code].two_sided for code in group.parts if code in capabilities),
            _fewest(sizes, group.parts),
        )
        for group in drift.groups
    }


def _fewest(sizes: Mapping[str, int], parts: Iterable[str]) -> int:
    return min((sizes.get(part, 0) for part in parts), default=0)


def _of_metric(metric: MetricDrift, relative: bool) -> _Change:
    change = metric.relative if relative else metric.change
    if change is not None and metric.direction == "down":
        change = _turned(change)
    is_share = relative or metric.range == (0, 1)
    return _Change(change, metric.direction == "two-sided", metric.n, is_share)


def _size(change: Estimate) -> Estimate:
    """How large a change is, whatever its direction."""
    ends = abs(change.low), abs(change.high)
    apart = change.low > 0 or change.high < 0
    return Estimate(value=abs(change.value), low=min(ends) if apart else 0.0, high=max(ends))


# --- p-values -------------------------------------------------------------------------------------


def p_from_count(count: int, n: int, bound: float) -> float:
    """Exact chance of so many items or more if each had the chance `bound`.

    Example:
        >>> round(p_from_count(3, 10, 0.1), 4)  # 1 - binom.cdf(2, 10, 0.1)
        0.0702
    """
    if count == 0 or bound >= 1:
        return 1.0
    return float(special.betainc(count, n - count + 1, bound))


def p_of_drop(cell: Cell, bound: float) -> float:
    """Chance of such a net loss in single runs at the limit: the score test for paired shares.

    By Tango (1998), with a correction for counts moving in steps; at the limit 0 it is McNemar's.
    The map's interval is right on the average of both its ends; a gate must keep to alpha at one.
    """
    n, lost, gained = cell.n, cell.counts.n10, cell.counts.n01
    linear = (2 * n - lost + gained) * bound - lost - gained
    constant = -gained * bound * (1 - bound)
    least = (math.sqrt(linear**2 - 8 * n * constant) - linear) / (4 * n)
    variance = n * (2 * least + bound * (1 - bound))
    if variance <= 0:
        return 1.0
    return float(special.ndtr((n * bound + 1 - (lost - gained)) / math.sqrt(variance)))


def p_from_interval(estimate: Estimate, bound: float) -> float:
    """Chance of such a value at the limit, by the normal curve that has the interval's lower half.

    At alpha = 0.025 and without correction this says broken exactly where the interval lies beyond
    the limit.

    Example:
        >>> round(p_from_interval(Estimate(value=0.2, low=0.1, high=0.4), 0.1), 3)
        0.025
    """
    spread = (estimate.value - estimate.low) / _SPREAD
    if spread <= 0:
        return 0.0 if estimate.value > bound else 1.0
    return float(special.ndtr((bound - estimate.value) / spread))


def _p_of_size(change: Estimate, bound: float) -> float:
    """Chance of so large a change, either way, if the true one were at the limit."""
    toward = _turned(change) if change.value < 0 else change
    spread = (toward.value - toward.low) / _SPREAD
    if spread <= 0:
        return 0.0 if toward.value > bound else 1.0
    nearer, farther = (special.ndtr((end - toward.value) / spread) for end in (bound, -bound))
    return float(nearer + farther)
