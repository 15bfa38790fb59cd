"""From metrics to capabilities and groups: CapTrack's mean of relative changes, made honest.

The published formula, together with the items' noise, the range when one part is left out, and the
worst part. Never a bare mean. The mean of the plain changes is always there, because a relative
change may be withheld.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from forgetmap.capabilities.drift_means import Mean, mean_of
from forgetmap.capabilities.drift_result import (
    Aggregate,
    Between,
    CapabilityDrift,
    GroupDrift,
    LeaveOneOut,
    Verdict,
)
from forgetmap.capabilities.manifest import Capability, Manifest
from forgetmap.stats import tests
from forgetmap.stats.estimate import Estimate

Floats = NDArray[np.float64]

ALPHA = 0.05
NEAR = 1 - 2 * ALPHA
"""Level of the interval that must lie within the margin: two one-sided tests."""


class Falls(NamedTuple):
    """Mean drop of the items that got worse, and mean rise of those that got better."""

    lost: Mean
    gained: Mean
    net: Mean
    """Gained minus lost."""
    fell: Mean
    """Net loss of the metrics that surely fell, by their verdicts; 0 of the others."""
    rose: Mean

    def judged(self, verdict: Verdict) -> Falls:
        """Of a single metric: it fell or rose as a whole where its verdict says so."""
        fell, rose = verdict in ("worse", "lower"), verdict in ("better", "higher")
        return self._replace(fell=self.net.scaled(-float(fell)), rose=self.net.scaled(float(rose)))

    def ends(self) -> tuple[Between, Between]:
        """What was lost and what was gained, each between its ends."""
        return (
            _between(self.lost, self.net.scaled(-1.0), self.fell),
            _between(self.gained, self.net, self.rose),
        )


@dataclass
class Part:
    """A part of an aggregate: its oriented changes."""

    name: str
    relative: Mean | None
    """None where it is withheld."""
    change: Mean | None
    """As a share of the range; None where the range is open."""
    falls: Falls | None
    """None where the range is not from 0 to 1."""
    spread: float = 0.0
    """CapTrack's deviation within the part; 0 for a metric."""
    missing: int = 0
    two_sided: bool = False
    worse: bool = False
    """A metric of it is surely worse: no gain of another makes up for that."""
    lacking: tuple[str, ...] = ()
    """Metrics that a side lacks almost all scores of: nobody knows what they did."""

    @property
    def judged(self) -> Mean | None:
        """What the verdict is on."""
        return self.relative or self.change


class Judged(NamedTuple):
    """A verdict, and what would decide it where it is undecided."""

    verdict: Verdict
    decides: str | None = None


class Question(NamedTuple):
    """What a verdict is made from; oriented, so that negative is worse."""

    estimate: Estimate
    near: tuple[float, float]
    """90 % interval of the change: inside the margin means equivalent (two one-sided tests)."""
    worst: tuple[float, float]
    """The same if the answers without a score were all as low, or as high, as can be."""
    margin: float
    p_value: float
    p_adjusted: float
    two_sided: bool
    missing: str = "scores for the answers that lack one"
    """What to do about missing answers."""
    n: int | None = None
    """Items; None for an aggregate."""


def decide(asked: Question) -> Judged:
    """Equivalent if surely within the margin, else changed if surely not chance, else undecided.

    What reassures must hold whatever the missing answers are. An alarm rests on what was compared,
    and needs an interval without zero.

    Example:
        >>> change = Estimate(value=-0.01, low=-0.016, high=-0.004)
        >>> near = (-0.015, -0.005)
        >>> asked = Question(change, near, near, 0.02, 0.001, 0.001, two_sided=False)
        >>> decide(asked).verdict, decide(asked._replace(margin=0.005)).verdict
        ('equivalent', 'worse')
        >>> decide(asked._replace(worst=(-0.5, 0.5)))
        Judged(verdict='undecided', decides='scores for the answers that lack one')
    """
    margin, found = asked.margin, asked.estimate
    if -margin < asked.near[0] and asked.near[1] < margin:
        if -margin < asked.worst[0] and asked.worst[1] < margin:
            return Judged("equivalent")
        return Judged("undecided", asked.missing)
    if asked.p_adjusted >= ALPHA or found.low <= 0 <= found.high:
        return Judged("undecided", _more_items(asked))
    if asked.two_sided:
        return Judged("lower" if found.value < 0 else "higher")
    if found.value < 0:
        return Judged("worse")
    if asked.worst[0] < asked.near[0] and asked.worst[0] <= -margin:
        return Judged("undecided", asked.missing)
    return Judged("better")


def _more_items(asked: Question) -> str | None:
    """How many items would decide it, if the change stays as it is."""
    found = asked.estimate
    size = abs(found.value)
    half, near = (found.high - found.low) / 2, (asked.near[1] - asked.near[0]) / 2
    if half <= 0 or near <= 0:
        return None
    # Many questions at once need a smaller p-value, and so a narrower interval.
    share = asked.p_value / asked.p_adjusted if asked.p_adjusted > 0 else 1.0
    stricter = float(special.ndtri(ALPHA / 2 * share) / special.ndtri(ALPHA / 2))
    narrower = max((asked.margin - size) / near, size / (half * stricter))
    times = max(narrower**-2, 1.1) if narrower > 1e-4 else math.inf
    if asked.n is None or not math.isfinite(times):
        return f"about {float(f'{times:.2g}'):,g} times the items" if math.isfinite(times) else None
    items = asked.n * times
    return f"about {round(items, 1 - int(math.log10(items))):,.0f} items in all"


def capability_drifts(
    manifest: Manifest,
    compared: Collection[tuple[str, str]],
    parts: Mapping[tuple[str, str], Part],
    lacking: Collection[tuple[str, str]],
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
        absent = [" ".join(key) for key in keys if key not in parts]
        whole = _whole(capability.code, present)
        whole.two_sided = capability.two_sided
        whole.lacking = _lacking(capability, lacking)
        used = [part.relative.value for part in present if part.relative]
        whole.spread = float(np.std(used)) if used else 0.0
        wholes[capability.code] = whole
        aggregates.append(_aggregate(whole, present, absent))
    judged = _judged(aggregates, [wholes[capability.code] for capability in chosen], margin)
    for whole, aggregate in zip(wholes.values(), judged, strict=True):
        whole.worse = aggregate.verdict == "worse"
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


def _lacking(capability: Capability, lacking: Collection[tuple[str, str]]) -> tuple[str, ...]:
    keys = ((metric.task, metric.metric) for metric in capability.primary)
    return tuple(" ".join(key) for key in keys if key in lacking)


def group_drifts(
    manifest: Manifest,
    capabilities: Mapping[str, Part],
    lacking: Collection[tuple[str, str]],
    margin: float,
) -> list[GroupDrift]:
    """Every group with a capability that was compared."""
    names, wholes, aggregates = [], [], []
    for group in manifest.groups:
        members = {one.code: one for one in manifest.capabilities if one.group == group}
        present = [capabilities[code] for code in members if code in capabilities]
        if not present:
            continue
        whole = _whole(group, present)
        whole.lacking = tuple(name for one in members.values() for name in _lacking(one, lacking))
        # CapTrack's own formula for a group, which is a standard error of nothing.
        spreads = [part.spread**2 for part in present if part.relative]
        whole.spread = math.sqrt(float(np.mean(spreads)) / len(spreads)) if spreads else 0.0
        names.append(group)
        wholes.append(whole)
        aggregates.append(
            _aggregate(whole, present, [code for code in members if code not in capabilities])
        )
    judged = _judged(aggregates, wholes, margin)
    return [
        GroupDrift(name=name, **dict(aggregate))
        for name, aggregate in zip(names, judged, strict=True)
    ]


def _whole(name: str, parts: Sequence[Part]) -> Part:
    falls = [part.falls for part in parts if part.falls]
    return Part(
        name=name,
        relative=_mean([part.relative for part in parts]),
        change=_mean([part.change for part in parts]),
        falls=Falls(*(mean_of(kind) for kind in zip(*falls, strict=True))) if falls else None,
        missing=sum(part.missing for part in parts),
        two_sided=any(part.two_sided for part in parts),
        worse=any(part.worse for part in parts),
    )


def _mean(parts: Sequence[Mean | None]) -> Mean | None:
    present = [part for part in parts if part is not None]
    return mean_of(present) if present else None


def _between(moved: Mean, net: Mean, surely: Mean) -> Between:
    """At most all that moved; at least the net, or what single metrics surely moved if more.

    The net alone would let the gain of one metric hide the loss of another.
    """
    raw = moved.estimate()
    least = (surely if surely.value > net.value else net).estimate()
    value, low, high = (max(end, 0.0) for end in (least.value, least.low, least.high))
    return Between(
        at_least=Estimate(value=value, low=low, high=high),
        at_most=Estimate(value=raw.value, low=max(raw.low, 0.0), high=min(raw.high, 1.0)),
    )


def _aggregate(whole: Part, parts: Sequence[Part], absent: list[str]) -> Aggregate:
    used = {part.name: part.relative.value for part in parts if part.relative}
    left_out = [part.name for part in parts if part.relative is None] + absent
    values = np.array(list(used.values()))
    worst: str | None = None
    if used:
        place = np.abs(values).argmax() if whole.two_sided else values.argmin()
        worst = list(used)[int(place)]
    lost, gained = whole.falls.ends() if whole.falls else (None, None)
    return Aggregate(
        relative=whole.relative.estimate() if whole.relative else None,
        spread=whole.spread if used else None,
        parts=list(used),
        left_out=left_out,
        leave_one_out=_leave_one_out(used),
        worst=worst,
        p_value=whole.judged.p_value() if whole.judged else 1.0,
        p_adjusted=1.0,
        verdict="undecided",
        change=whole.change.estimate() if whole.change else None,
        lost=lost,
        gained=gained,
        missing=whole.missing,
    )


def _leave_one_out(used: Mapping[str, float]) -> LeaveOneOut | None:
    if len(used) < 2:
        return None
    names, values = list(used), np.array(list(used.values()))
    without = (values.sum() - values) / (len(values) - 1)
    most = int(np.abs(without - values.mean()).argmax())
    return LeaveOneOut(low=float(without.min()), high=float(without.max()), without=names[most])


def _judged(
    aggregates: Sequence[Aggregate], wholes: Sequence[Part], margin: float
) -> list[Aggregate]:
    """Adjust the p-values of a family of aggregates by Holm and decide their verdicts."""
    adjusted = tests.holm([aggregate.p_value for aggregate in aggregates])
    judged = []
    for aggregate, whole, p in zip(aggregates, wholes, adjusted.tolist(), strict=True):
        found = _verdict(aggregate, whole, margin, p)
        update = {"p_adjusted": p, "verdict": found.verdict, "decides": found.decides}
        judged.append(aggregate.model_copy(update=update))
    return judged


def _verdict(aggregate: Aggregate, whole: Part, margin: float, p_adjusted: float) -> Judged:
    """Worse if a part is surely worse, whatever the others gained; else what the mean says."""
    if whole.worse:
        return Judged("worse")
    mean = whole.judged
    if mean is None:
        return Judged("undecided")
    near, worst = mean.estimate(NEAR), mean.worst(NEAR)
    missing = f"scores for the {whole.missing:,} items that lack one"
    if whole.lacking:  # a metric that one side lacks could have fallen to zero
        worst = -math.inf, math.inf
        missing = f"scores of both models for {whole.lacking[0]}"
    return decide(
        Question(
            estimate=mean.estimate(),
            near=(near.low, near.high),
            worst=worst,
            margin=margin,
            p_value=aggregate.p_value,
            p_adjusted=p_adjusted,
            two_sided=whole.two_sided,
            missing=missing,
        )
    )
