"""Two files of scores in, drift by capability out: what changed, how sure that is, what matters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from forgetmap.base.errors import InputError, WithheldError
from forgetmap.base.words import some
from forgetmap.capabilities import drift_stats as stats
from forgetmap.capabilities.drift_aggregates import (
    NEAR,
    Falls,
    Judged,
    Part,
    Question,
    capability_drifts,
    decide,
    group_drifts,
)
from forgetmap.capabilities.drift_means import Mean, mean_over, ratio_over
from forgetmap.capabilities.drift_result import (
    Drift,
    DriftSettings,
    Flips,
    MetricDrift,
    Missing,
    MissingMetric,
    Size,
)
from forgetmap.capabilities.drift_stats import Changes, Unscored
from forgetmap.capabilities.manifest import Capability, Direction, Manifest, Metric
from forgetmap.map.cells import Plan
from forgetmap.pairing.scores import MetricPairs, ScorePairs, by_task, check_scored
from forgetmap.readers.registry import read
from forgetmap.samples.comparability import find_confounds
from forgetmap.samples.identity import content_hash
from forgetmap.samples.table import Samples
from forgetmap.stats import tests
from forgetmap.stats.estimate import Estimate

Floats = NDArray[np.float64]

MIN_ITEMS = 5
"""Of fewer items nothing is said."""


@dataclass
class _Cell:
    """A metric's result, with what its verdict and its capability need."""

    result: MetricDrift
    part: Part
    change: Mean
    """In units of the metric, oriented so that negative is worse."""


def open_scores(
    before: str | Path | Samples,
    after: str | Path | Samples,
    before_model: str | None = None,
    after_model: str | None = None,
) -> ScorePairs:
    """Open two files of scores, as `forgetmap score` writes them, and pair their items.

    `before_model` and `after_model` choose a model where a file holds several.
    """
    return ScorePairs(_load(before, before_model, "before"), _load(after, after_model, "after"))


def drift(
    before: str | Path | Samples,
    after: str | Path | Samples,
    *,
    manifest: str | Path | Manifest = "captrack",
    margin: float = 0.02,
    draws: int = 10_000,
    seed: int = 0,
) -> Drift:
    """Compare two models by capability, from their scores.

    `margin` is a change that would not matter: a share of a metric's range, or of its base where
    the range is open, and of an aggregate's base. A metric's own margin comes first.

    Example:
        >>> from forgetmap.samples.table import Samples
        >>> from forgetmap.samples.identity import content_hash
        >>> def scores(*values):
        ...     return Samples.from_rows(
        ...         {"task": "boolq.core", "metric": "accuracy", "item": content_hash(str(i)),
        ...          "score": value} for i, value in enumerate(values))
        >>> result = drift(scores(*[1] * 30, *[0] * 10), scores(*[1] * 10, *[0] * 30), draws=1000)
        >>> cell = result.metrics[0]
        >>> cell.change.value, cell.flips.lost, cell.verdict
        (-0.5, 20.0, 'worse')
    """
    pairs = open_scores(before, after)
    return compare_scores(pairs, manifest=manifest, margin=margin, draws=draws, seed=seed)


def compare_scores(
    scores: ScorePairs,
    *,
    manifest: str | Path | Manifest = "captrack",
    margin: float = 0.02,
    draws: int = 10_000,
    seed: int = 0,
) -> Drift:
    """Compare scores that are paired already; see `drift`."""
    plan = Plan(margin=margin, draws=draws, seed=seed)
    plan.check()
    known = manifest if isinstance(manifest, Manifest) else Manifest.load(manifest)
    found = scores.metrics()
    chosen = {key: pairs for key, pairs in found.items() if key in known.metrics}
    gaps = _gaps(known, chosen)
    missing = {(gap.task, gap.metric) for gap in gaps}
    cells = _metric_cells(known, {k: p for k, p in chosen.items() if k not in missing}, plan)
    if not cells:
        raise WithheldError(
            f"no metric of the manifest {known.name} has {MIN_ITEMS} items with scores on both "
            "sides; check that both files were scored by this manifest"
        )
    parts = {key: cell.part for key, cell in cells.items()}
    lacking = {key for key in missing & chosen.keys() if _was_asked(chosen[key])}
    capabilities, wholes = capability_drifts(known, cells.keys(), parts, lacking, margin)
    before, after = scores.samples.values()
    coverage, conflicts = scores.coverage()
    ignored = sorted(f"{task} {metric}" for task, metric in found.keys() - known.metrics.keys())
    return Drift(
        before=before.model or ", ".join(before.models),
        after=after.model or ", ".join(after.models),
        settings=DriftSettings(manifest=known.name, margin=margin, draws=draws, seed=seed),
        confounds=find_confounds(
            before.settings, after.settings, sorted({task for task, _ in cells})
        ),
        warnings=[
            *_warnings(before, after),
            *([f"same id, different content, not paired: {some(conflicts)}"] if conflicts else []),
            *([f"not in the manifest, not compared: {some(ignored)}"] if ignored else []),
        ],
        coverage=coverage,
        groups=group_drifts(known, wholes, lacking, margin),
        capabilities=capabilities,
        metrics=[cell.result for cell in cells.values()],
        gaps=gaps,
    )


def _warnings(before: Samples, after: Samples) -> list[str]:
    """What the files warn of; what both say is told once."""
    ours, theirs = before.meta.warnings, after.meta.warnings
    return [
        *(f"both: {text}" for text in ours if text in theirs),
        *(f"before: {text}" for text in ours if text not in theirs),
        *(f"after: {text}" for text in theirs if text not in ours),
    ]


def _load(source: str | Path | Samples, model: str | None, side: str) -> Samples:
    samples = source if isinstance(source, Samples) else read(source)
    try:
        chosen = samples.only(model)
    except InputError as error:
        raise InputError(f"{side}: {error} (--{side}-model)") from error
    check_scored(chosen, side if isinstance(source, Samples) else str(source))
    return chosen


def _gaps(manifest: Manifest, found: Mapping[tuple[str, str], MetricPairs]) -> list[MissingMetric]:
    """Metrics that cannot be compared; what is missing is told, never counted as zero."""
    return [
        MissingMetric(
            capability=capability.code, task=metric.task, metric=metric.metric, reason=reason
        )
        for capability in manifest.capabilities
        for metric in capability.metrics
        if (reason := _missing(found.get((metric.task, metric.metric))))
    ]


def _missing(pairs: MetricPairs | None) -> str | None:
    if pairs is None:
        return "scored on neither side"
    if not pairs.said_after.any():
        return "only scored before"
    if not pairs.said_before.any():
        return "only scored after"
    paired = int(np.count_nonzero(pairs.paired))
    if paired < MIN_ITEMS:
        return f"{paired} items have a score on both sides, fewer than {MIN_ITEMS}"
    return None


def _was_asked(pairs: MetricPairs) -> bool:
    """Say whether a side has scores or failures: what the other side lacks is then missing."""
    return stats.unscored(pairs, (0.0, 1.0)).items > 0


def _metric_cells(
    manifest: Manifest, found: Mapping[tuple[str, str], MetricPairs], plan: Plan
) -> dict[tuple[str, str], _Cell]:
    """Every metric, in the manifest's order, its p-value adjusted within its family."""
    cells: dict[tuple[str, str], _Cell] = {}
    owners = {
        (metric.task, metric.metric): capability
        for capability in manifest.capabilities
        for metric in capability.metrics
    }
    for task, metrics in by_task(found):
        rng = np.random.default_rng([plan.seed, content_hash(task)])
        items = np.unique(np.concatenate([metric.item for metric in metrics.values()]))
        for name, pairs in metrics.items():
            entry = manifest.metrics[task, name]
            kept = _Kept.of(entry, pairs, items)
            p_value = stats.p_value(kept.changes, rng, plan.draws)
            cells[task, name] = _metric_cell(entry, owners[task, name], pairs, kept, p_value, plan)
    cells = {key: cells[key] for key in manifest.metrics if key in cells}
    for role, adjust in (("primary", tests.holm), ("deep-dive", tests.benjamini_hochberg)):
        family = [cell for cell in cells.values() if cell.result.role == role]
        adjusted = adjust([cell.result.p_value for cell in family])
        for cell, p in zip(family, adjusted, strict=True):
            judged = _verdict(cell, float(p))
            update = {"p_adjusted": float(p), **judged._asdict()}
            cell.result = cell.result.model_copy(update=update)
            cell.part.worse = judged.verdict == "worse"
            cell.part.falls = cell.part.falls and cell.part.falls.judged(judged.verdict)
    return cells


def _verdict(cell: _Cell, p_adjusted: float) -> Judged:
    result, change = cell.result, cell.change
    if change.certain and change.value == 0 and result.interval == "same answers":
        near, worst = (0.0, 0.0), change.worst(NEAR)
        margin = max(result.margin, np.finfo(float).tiny)  # also where it is a share of nothing
    else:
        inner = change.estimate(NEAR)
        near, worst, margin = (inner.low, inner.high), change.worst(NEAR), result.margin
    lacking = result.missing.items if result.missing else 0
    return decide(
        Question(
            estimate=change.estimate(),
            near=near,
            worst=worst,
            margin=margin,
            p_value=result.p_value,
            p_adjusted=p_adjusted,
            two_sided=result.direction == "two-sided",
            missing=f"scores for the {lacking:,} of {result.n + lacking:,} items that lack one",
            n=result.n,
        )
    )


@dataclass
class _Kept:
    """The items of a metric that have a score on both sides, and their means."""

    changes: Changes
    bounds: tuple[float, float]
    unscored: Unscored
    task: str
    where: NDArray[np.int64]
    """Their places among all items of the task."""
    items: int

    @classmethod
    def of(cls, entry: Metric, pairs: MetricPairs, items: NDArray[np.uint64]) -> _Kept:
        changes = stats.Changes.of(pairs)
        bounds = _bounds(entry, pairs)
        where = np.searchsorted(items, pairs.item[pairs.paired])
        unscored = stats.unscored(pairs, bounds)
        return cls(changes, bounds, unscored, entry.task, where, len(items))

    @property
    def width(self) -> float:
        """How far one item can move; not at all where all answers are the same."""
        return 0.0 if self.changes.same else self.bounds[1] - self.bounds[0]

    def mean(self, values: Floats) -> Mean:
        """A mean over the items."""
        return mean_over(self.task, self.where, self.items, values, self.width)

    @cached_property
    def change(self) -> Mean:
        """The change, in units of the metric."""
        found = self.mean(self.changes.change)
        return replace(found, slack=self.unscored.shift(len(self.changes.before), found.value))

    def relative(self) -> Mean:
        """The relative change; 0 where all answers are the same, also of a base of zero."""
        changes, slack = self.changes, self.change.slack
        base = abs(float(changes.before.mean()))
        slack = (slack[0] / base, slack[1] / base) if base else (-1.0, 1.0)
        if changes.same:
            return replace(
                self.mean(changes.change), slack=slack if self.unscored.items else (0, 0)
            )
        before, after = changes.before, changes.after
        found = ratio_over(self.task, self.where, self.items, before, after, self.width)
        return replace(found, slack=slack)

    def falls(self, sign: int) -> Falls:
        """What got worse, what got better, and the net of both."""
        change = sign * self.changes.change
        lost, gained = self.mean(np.maximum(-change, 0.0)), self.mean(np.maximum(change, 0.0))
        net = self.change.turned(sign)
        return Falls(lost, gained, net, fell=net.scaled(0.0), rose=net.scaled(0.0))


def _bounds(entry: Metric, pairs: MetricPairs) -> tuple[float, float]:
    """The metric's range; where it is open, the range of the values seen."""
    low, high = entry.range
    seen = np.concatenate([pairs.before, pairs.after])
    return (
        float(np.nanmin(seen)) if low is None else low,
        float(np.nanmax(seen)) if high is None else high,
    )


def _possible(change: Estimate, width: float | None) -> Estimate:
    """A change whose interval ends where the range of the metric does."""
    if width is None:
        return change
    low, high = max(change.low, -width), min(change.high, width)
    return Estimate(value=change.value, low=min(low, change.value), high=max(high, change.value))


def _metric_cell(
    entry: Metric,
    owner: Capability,
    pairs: MetricPairs,
    kept: _Kept,
    p_value: float,
    plan: Plan,
) -> _Cell:
    changes, change = kept.changes, kept.change
    binary = changes.binary and entry.range == (0, 1)
    reason = stats.withheld(changes)
    part = _part(entry, kept, withheld=reason is not None)
    lost, gained = part.falls.ends() if part.falls else (None, None)
    scale = abs(float(changes.before.mean())) if entry.width is None else entry.width
    size = Size(standardised=stats.standardised(changes), ks=stats.ks_distance(changes))
    both = (pairs.said_before > 0) & (pairs.said_after > 0)
    sign = _sign(entry.direction)
    result = MetricDrift(
        capability=owner.code,
        group=owner.group,
        task=entry.task,
        metric=entry.metric,
        direction=entry.direction,
        range=entry.range,
        role=entry.role,
        by=entry.by,
        n=len(changes.before),
        runs_before=changes.runs[0],
        runs_after=changes.runs[1],
        before=float(changes.before.mean()),
        after=float(changes.after.mean()),
        change=_possible(change.estimate(), entry.width),
        relative=part.relative.turned(sign).estimate() if part.relative else None,
        withheld=reason,
        flips=_flips(changes.before, changes.after) if binary else None,
        size=size if entry.direction == "two-sided" else None,
        failures_before=_share(pairs.failed_before, pairs.said_before, both),
        failures_after=_share(pairs.failed_after, pairs.said_after, both),
        only_before=int(np.count_nonzero(pairs.said_after == 0)),
        only_after=int(np.count_nonzero(pairs.said_before == 0)),
        unscored=int(np.count_nonzero(both & ~pairs.paired)),
        p_value=p_value,
        p_adjusted=1.0,
        test="mcnemar" if binary and changes.runs == (1, 1) else "sign-flip",
        interval="same answers" if changes.same else "student",
        margin=(entry.margin or plan.margin) * scale,
        mde=stats.detectable(changes, entry.width),
        verdict="undecided",
        lost=lost,
        gained=gained,
        missing=_missing_items(kept, change.estimate()),
    )
    return _Cell(result, part, change.turned(sign))


def _missing_items(kept: _Kept, change: Estimate) -> Missing | None:
    lacking, n = kept.unscored, len(kept.changes.before)
    if not lacking.items:
        return None
    low, high = lacking.widen(n, (change.low, change.high))
    share = lacking.items / (n + lacking.items)
    return Missing(items=lacking.items, share=share, low=low, high=high)


def _sign(direction: Direction) -> int:
    return -1 if direction == "down" else 1


def _part(entry: Metric, kept: _Kept, *, withheld: bool) -> Part:
    """A metric as part of its capability: oriented so that negative is worse."""
    sign, width = _sign(entry.direction), entry.width
    return Part(
        name=f"{entry.task} {entry.metric}",
        relative=None if withheld else kept.relative().turned(sign),
        change=None if width is None else kept.change.turned(sign).scaled(1 / width),
        falls=kept.falls(sign) if entry.range == (0, 1) else None,
        missing=kept.unscored.items,
        two_sided=entry.direction == "two-sided",
    )


def _flips(before: Floats, after: Floats) -> Flips:
    lost, gained = before * (1 - after), (1 - before) * after
    return Flips(lost=float(lost.sum()), gained=float(gained.sum()))


def _share(failed: Floats, said: Floats, keep: NDArray[np.bool_]) -> float:
    total = float(said[keep].sum())
    return float(failed[keep].sum()) / total if total else 0.0
