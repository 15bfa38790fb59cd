"""From metrics to capabilities and groups: CapTrack's mean of relative changes, made honest.

The published formula, together with the items' noise, the range when one part is left out, and the
worst part. Never a bare mean.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forgetmap.capabilities.drift_result import (
    Aggregate,
    CapabilityDrift,
    GroupDrift,
    LeaveOneOut,
    Verdict,
)
from forgetmap.capabilities.drift_stats import normal_p
from forgetmap.capabilities.manifest import Manifest
from forgetmap.stats import intervals, tests
from forgetmap.stats.estimate import Estimate

Floats = NDArray[np.float64]

ALPHA = 0.05
NEAR = 1 - 2 * ALPHA
"""Level of the interval that must lie within the margin: two one-sided tests."""


@dataclass
class Part:
    """A part of an aggregate: its oriented relative change, and draws of it."""

    name: str
    value: float
    draws: Floats
    spread: float
    """CapTrack's deviation within the part; 0 for a metric."""
    n: int
    two_sided: bool = False


def decide(
    change: float,
    near: tuple[float, float],
    margin: float,
    p_adjusted: float,
    *,
    two_sided: bool,
) -> Verdict:
    """Equivalent if surely within the margin, else changed if surely not chance, else undecided.

    Example:
        >>> decide(-0.10, (-0.13, -0.07), 0.02, 0.001, two_sided=False)
        'worse'
        >>> decide(-0.01, (-0.015, -0.005), 0.02, 0.001, two_sided=False)
        'equivalent'
    """
    if -margin < near[0] and near[1] < margin:
        return "equivalent"
    if p_adjusted >= ALPHA or change == 0:
        return "undecided"
    if two_sided:
        return "lower" if change < 0 else "higher"
    return "worse" if change < 0 else "better"


def capability_drifts(
    manifest: Manifest,
    compared: Collection[tuple[str, str]],
    parts: Mapping[tuple[str, str], Part],
    margin: float,
) -> tuple[list[CapabilityDrift], dict[str, Part]]:
    """Every capability with a primary metric that was compared; and what groups need of them."""
    chosen = [
        capability
        for capability in manifest.capabilities
        if any((metric.task, metric.metric) in compared for metric in capability.primary)
    ]
    wholes: dict[str, Part] = {}
    aggregates = []
    for capability in chosen:
        keys = [(metric.task, metric.metric) for metric in capability.primary]
        present = [parts[key] for key in keys if key in parts]
        left_out = [" ".join(key) for key in keys if key not in parts]
        if present:
            whole = _whole(capability.code, present, capability.two_sided)
            whole.spread = float(np.std([part.value for part in present]))
            wholes[capability.code] = whole
        aggregates.append(_aggregate(wholes.get(capability.code), present, left_out))
    judged = _judged(aggregates, [wholes.get(capability.code) for capability in chosen], margin)
    return [
        CapabilityDrift(
            code=capability.code,
            name=capability.name,
            group=capability.group,
            two_sided=capability.two_sided,
            **dict(aggregate),
        )
        for capability, aggregate in zip(chosen, judged, strict=True)
    ], wholes


def group_drifts(
    manifest: Manifest, capabilities: Mapping[str, Part], margin: float
) -> list[GroupDrift]:
    """Every group with a capability that has an aggregate."""
    names, wholes, aggregates = [], [], []
    for group in manifest.groups:
        members = [member.code for member in manifest.capabilities if member.group == group]
        present = [capabilities[code] for code in members if code in capabilities]
        if not present:
            continue
        left_out = [code for code in members if code not in capabilities]
        whole = _whole(group, present, any(part.two_sided for part in present))
        # CapTrack's own formula for a group, which is a standard error of nothing.
        squares = np.mean([part.spread**2 for part in present])
        whole.spread = math.sqrt(float(squares) / len(present))
        names.append(group)
        wholes.append(whole)
        aggregates.append(_aggregate(whole, present, left_out))
    judged = _judged(aggregates, wholes, margin)
    return [
        GroupDrift(name=name, **dict(aggregate))
        for name, aggregate in zip(names, judged, strict=True)
    ]


def _whole(name: str, parts: Sequence[Part], two_sided: bool) -> Part:
    value = float(np.mean([part.value for part in parts]))
    draws = np.mean([part.draws for part in parts], axis=0)
    return Part(name, value, draws, 0.0, min(part.n for part in parts), two_sided)


def _aggregate(whole: Part | None, parts: Sequence[Part], left_out: list[str]) -> Aggregate:
    if whole is None:
        return Aggregate(
            relative=None, spread=None, parts=[], left_out=left_out, leave_one_out=None,
            worst=None, p_value=1.0, p_adjusted=1.0, verdict="undecided",
        )  # fmt: skip
    value, (low, high) = whole.value, _interval(whole, 1 - ALPHA)
    values = np.array([part.value for part in parts])
    worst = np.abs(values).argmax() if whole.two_sided else values.argmin()
    return Aggregate(
        relative=Estimate(value=value, low=min(low, value), high=max(high, value)),
        spread=whole.spread,
        parts=[part.name for part in parts],
        left_out=left_out,
        leave_one_out=_leave_one_out(parts, values),
        worst=parts[int(worst)].name,
        p_value=normal_p(value, whole.draws),
        p_adjusted=1.0,
        verdict="undecided",
    )


def _interval(whole: Part, level: float) -> tuple[float, float]:
    return intervals.percentiles(whole.draws, intervals.widened(level, whole.n))


def _leave_one_out(parts: Sequence[Part], values: Floats) -> LeaveOneOut | None:
    if len(parts) < 2:
        return None
    without = (values.sum() - values) / (len(values) - 1)
    most = int(np.abs(without - values.mean()).argmax())
    return LeaveOneOut(
        low=float(without.min()), high=float(without.max()), without=parts[most].name
    )


def _judged(
    aggregates: Sequence[Aggregate], wholes: Sequence[Part | None], margin: float
) -> list[Aggregate]:
    """Adjust the p-values of a family of aggregates by Holm and decide their verdicts."""
    adjusted = tests.holm([aggregate.p_value for aggregate in aggregates])
    judged = []
    for aggregate, whole, p in zip(aggregates, wholes, adjusted.tolist(), strict=True):
        verdict: Verdict = "undecided"
        if whole is not None:
            near = _interval(whole, NEAR)
            verdict = decide(whole.value, near, margin, p, two_sided=whole.two_sided)
        judged.append(aggregate.model_copy(update={"p_adjusted": p, "verdict": verdict}))
    return judged
