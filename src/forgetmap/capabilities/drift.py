"""Two files of scores in, drift by capability out: what changed, how sure that is, what matters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from forgetmap.base.errors import InputError, WithheldError
from forgetmap.base.words import some
from forgetmap.capabilities import drift_stats as stats
from forgetmap.capabilities.drift_aggregates import (
    NEAR,
    Part,
    capability_drifts,
    decide,
    group_drifts,
)
from forgetmap.capabilities.drift_result import (
    Drift,
    DriftSettings,
    Flips,
    MetricDrift,
    MissingMetric,
    Size,
)
from forgetmap.capabilities.drift_stats import Changes, Kind, Means
from forgetmap.capabilities.manifest import Capability, Direction, Manifest, Metric
from forgetmap.map.cells import Plan
from forgetmap.pairing.scores import MetricPairs, ScorePairs, by_task, check_scored
from forgetmap.readers.registry import read
from forgetmap.samples.comparability import find_confounds
from forgetmap.samples.identity import content_hash
from forgetmap.samples.table import Samples
from forgetmap.stats import tests

Floats = NDArray[np.float64]

MIN_ITEMS = 5
"""Of fewer items nothing is said."""


@dataclass
class _Cell:
    """A metric's result, with what its verdict and its capability need."""

    result: MetricDrift
    relative: Floats | None
    """Draws of the relative change; None where it is withheld."""
    near: tuple[float, float]
    """90 % interval of the change: inside the margin means equivalent (two one-sided tests)."""


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
    parts = {key: part for key, cell in cells.items() if (part := _part(cell))}
    capabilities, wholes = capability_drifts(known, cells.keys(), parts, margin)
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
        groups=group_drifts(known, wholes, margin),
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
        entries = [manifest.metrics[task, name] for name in metrics]
        pairs = list(metrics.values())
        drawn = _task_draws(entries, pairs, plan, rng)
        for entry, one, (kind, means) in zip(entries, pairs, drawn, strict=True):
            owner = owners[task, entry.metric]
            cells[task, entry.metric] = _metric_cell(entry, owner, one, kind, means, plan, rng)
    cells = {key: cells[key] for key in manifest.metrics if key in cells}
    for role, adjust in (("primary", tests.holm), ("deep-dive", tests.benjamini_hochberg)):
        family = [cell for cell in cells.values() if cell.result.role == role]
        adjusted = adjust([cell.result.p_value for cell in family])
        for cell, p in zip(family, adjusted, strict=True):
            result = cell.result
            sides = result.direction == "two-sided"
            oriented = _sign(result.direction) * result.change.value
            verdict = decide(oriented, cell.near, result.margin, float(p), two_sided=sides)
            if result.interval == "same answers":  # also where the margin is a share of nothing
                verdict = "equivalent"
            cell.result = result.model_copy(update={"p_adjusted": float(p), "verdict": verdict})
    return cells


def _task_draws(
    entries: Sequence[Metric],
    pairs: Sequence[MetricPairs],
    plan: Plan,
    rng: np.random.Generator,
) -> list[tuple[Kind, Means]]:
    """The bootstrap's draws; others where it would be too sure of itself, or there is no doubt."""
    all_changes = [stats.Changes.of(metric) for metric in pairs]
    kinds = [_kind(entry, changes) for entry, changes in zip(entries, all_changes, strict=True)]
    drawn = stats.draw_task(pairs, plan.draws, rng)
    small = [index for index, kind in enumerate(kinds) if kind == "bayes"]
    if small:
        bounds = [_bounds(entries[index], all_changes[index]) for index in small]
        chosen = [pairs[index] for index in small]
        cautious = stats.draw_cautiously(chosen, bounds, plan.draws, rng)
        for index, means in zip(small, cautious, strict=True):
            drawn[index] = means
    return list(zip(kinds, drawn, strict=True))


def _kind(entry: Metric, changes: Changes) -> Kind:
    if changes.same:
        return "same answers"
    return "bayes" if stats.is_small(changes, entry.width is not None) else "bootstrap"


def _bounds(entry: Metric, changes: Changes) -> tuple[float, float]:
    """The metric's range; where it is open, the range of the values seen."""
    low, high = entry.range
    if low is not None and high is not None:
        return low, high
    seen = np.concatenate([changes.before, changes.after])
    return float(seen.min()), float(seen.max())


def _metric_cell(
    entry: Metric,
    owner: Capability,
    pairs: MetricPairs,
    kind: Kind,
    means: Means,
    plan: Plan,
    rng: np.random.Generator,
) -> _Cell:
    changes = stats.Changes.of(pairs)
    binary = changes.binary and entry.range == (0, 1)
    reason = stats.withheld(changes, means, entry.width)
    scale = abs(float(changes.before.mean())) if entry.width is None else entry.width
    near = stats.change_of(changes, means, kind, NEAR)
    size = Size(standardised=stats.standardised(changes), ks=stats.ks_distance(changes))
    both = (pairs.said_before > 0) & (pairs.said_after > 0)
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
        change=stats.change_of(changes, means, kind),
        relative=None if reason else stats.relative_of(changes, means, kind),
        withheld=reason,
        flips=_flips(changes.before, changes.after) if binary else None,
        size=size if entry.direction == "two-sided" else None,
        failures_before=_share(pairs.failed_before, pairs.said_before, both),
        failures_after=_share(pairs.failed_after, pairs.said_after, both),
        only_before=int(np.count_nonzero(pairs.said_after == 0)),
        only_after=int(np.count_nonzero(pairs.said_before == 0)),
        unscored=int(np.count_nonzero(both & ~pairs.paired)),
        p_value=stats.p_value(changes, rng, plan.draws),
        p_adjusted=1.0,
        test="mcnemar" if binary and changes.runs == (1, 1) else "sign-flip",
        interval=kind,
        margin=(entry.margin or plan.margin) * scale,
        mde=stats.detectable(changes, entry.width),
        verdict="undecided",
    )
    relative = None if reason else stats.relative_draws(changes, means)
    return _Cell(result, relative, (near.low, near.high))


def _sign(direction: Direction) -> int:
    return -1 if direction == "down" else 1


def _part(cell: _Cell) -> Part | None:
    """A metric as part of its capability: oriented so that negative is worse."""
    result = cell.result
    if cell.relative is None or result.relative is None:
        return None
    sign = _sign(result.direction)
    return Part(result.name, sign * result.relative.value, sign * cell.relative, 0.0, result.n)


def _flips(before: Floats, after: Floats) -> Flips:
    lost, gained = before * (1 - after), (1 - before) * after
    return Flips(lost=float(lost.sum()), gained=float(gained.sum()))


def _share(failed: Floats, said: Floats, keep: NDArray[np.bool_]) -> float:
    total = float(said[keep].sum())
    return float(failed[keep].sum()) / total if total else 0.0
