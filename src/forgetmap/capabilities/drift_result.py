"""Drift: the result of comparing two models by capability, and its public JSON contract."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal, get_args

from pydantic import Field

from forgetmap.base.display import Result
from forgetmap.base.model import Frozen, parse_result, sealed_json
from forgetmap.base.version import __version__
from forgetmap.base.words import percent, spreadsheet_safe
from forgetmap.capabilities.manifest import Direction
from forgetmap.samples.comparability import Confound, Coverage
from forgetmap.stats.estimate import Estimate

DRIFT_SCHEMA_VERSION = 1

Verdict = Literal["worse", "better", "lower", "higher", "equivalent", "undecided"]
"""`lower` and `higher` are the words where drift is neither better nor worse (two-sided)."""


class Flips(Frozen):
    """Items of a 0/1 metric that changed; with several runs, means over all pairings of runs."""

    lost: float
    """From 1 to 0, whatever the direction of the metric."""
    gained: float


class Between(Frozen):
    """A share that is not known from the scores alone, only between two ends.

    A score of a single run holds the luck of that run. What was lost lies between the net loss,
    as if every gain were luck, and the drop of all items that fell, as if nothing were. Of several
    metrics it is at least what those lost that surely fell: another metric's gain hides no loss.
    """

    at_least: Estimate
    at_most: Estimate


class Missing(Frozen):
    """Items without a score on both sides, and what they could do to the change at worst."""

    items: int
    share: float
    """Of all items that either side has."""
    low: float
    """Low end of the change if all missing scores were as bad for it as the range allows."""
    high: float


class Size(Frozen):
    """How large a two-sided drift is, whatever its sign."""

    standardised: float | None
    """Difference of the means in units of the items' standard deviation; None without one."""
    ks: float
    """Largest distance between the two distributions (Kolmogorov and Smirnov)."""


class MetricDrift(Frozen):
    """One metric of one task, before and after."""

    capability: str
    group: str
    task: str
    metric: str
    direction: Direction
    range: tuple[float | None, float | None]
    role: Literal["primary", "deep-dive"]
    by: Literal["rule", "judge"]
    n: int
    """Items with a value on both sides."""
    runs_before: int
    runs_after: int
    before: float
    after: float
    change: Estimate
    relative: Estimate | None
    withheld: str | None
    """Why there is no relative change."""
    flips: Flips | None
    size: Size | None
    failures_before: float
    """Share of answers that gave no valid value or no answer to extract."""
    failures_after: float
    only_before: int
    only_after: int
    unscored: int
    """Items on both sides that lack a value on one of them."""
    p_value: float
    p_adjusted: float
    test: Literal["mcnemar", "sign-flip"]
    interval: Literal["student", "bootstrap", "bayes", "same answers"]
    """`bootstrap` and `bayes` are of earlier versions."""
    margin: float
    """In units of the metric."""
    mde: float
    """Smallest change that would have been found with 80 % power."""
    verdict: Verdict
    lost: Between | None = None
    """Share of the items' score that was lost, for ranges from 0 to 1; see `Between`.

    What got worse, by the metric's direction; for two-sided metrics, what fell.
    """
    gained: Between | None = None
    missing: Missing | None = None
    """None where every item has a score on both sides, and in results of earlier versions."""
    decides: str | None = None
    """What would decide an undecided verdict."""

    @property
    def name(self) -> str:
        """Task and metric."""
        return f"{self.task} {self.metric}"


class LeaveOneOut(Frozen):
    """The aggregate without one of its parts: the range, and the part it hinges on most."""

    low: float
    high: float
    without: str


class Aggregate(Frozen):
    """CapTrack's mean of relative changes, with what it hides.

    Oriented, so that negative is worse; for two-sided parts negative is lower.
    """

    relative: Estimate | None
    """None where no part has a relative change."""
    spread: float | None
    """CapTrack's deviation between the parts, which is no sampling error."""
    parts: list[str]
    left_out: list[str]
    """Parts whose relative change is withheld or missing."""
    leave_one_out: LeaveOneOut | None
    worst: str | None
    p_value: float
    p_adjusted: float
    verdict: Verdict
    change: Estimate | None = None
    """Mean change of the parts that have a range, in shares of it: also where a ratio is withheld.

    None where no part has a range, and in results of earlier versions.
    """
    lost: Between | None = None
    """Mean over the parts with a range from 0 to 1; see `MetricDrift.lost`."""
    gained: Between | None = None
    missing: int = 0
    """Items of its parts without a score on both sides."""
    decides: str | None = None
    """What would decide an undecided verdict."""

    @property
    def judged(self) -> Estimate | None:
        """What the verdict is on: the relative change, or the change where that is withheld."""
        return self.relative or self.change


class CapabilityDrift(Aggregate):
    """A capability: its primary metrics together."""

    code: str
    name: str
    group: str
    two_sided: bool


class GroupDrift(Aggregate):
    """A group: its capabilities together."""

    name: str


class MissingMetric(Frozen):
    """A metric of the manifest that was not compared, and why."""

    capability: str
    task: str
    metric: str
    reason: str


class DriftSettings(Frozen):
    """How it was compared."""

    manifest: str
    margin: float
    draws: int
    seed: int


class Drift(Result):
    """What changed between two models, capability by capability, with how sure that is.

    Example:
        >>> import forgetmap
        >>> def scores(right):
        ...     return forgetmap.Samples.from_rows(
        ...         {"task": "boolq.core", "metric": "accuracy", "score": float(i < right),
        ...          "item": forgetmap.content_hash(str(i))} for i in range(40))
        >>> found = forgetmap.drift(scores(30), scores(10), draws=1000)
        >>> [(cell.code, cell.verdict) for cell in found.capabilities if cell.judged]
        [('C3', 'worse')]
    """

    schema_version: int = DRIFT_SCHEMA_VERSION
    forgetmap_version: str = __version__
    before: str
    after: str
    settings: DriftSettings
    confounds: list[Confound]
    warnings: list[str] = Field(default_factory=list)
    coverage: Coverage | None = None
    """What was and was not compared; None in results of earlier versions."""
    groups: list[GroupDrift]
    capabilities: list[CapabilityDrift]
    metrics: list[MetricDrift]
    gaps: list[MissingMetric]

    def to_json(self) -> str:
        """The result in the public JSON contract (docs/reference/capabilities.md)."""
        return sealed_json(self)

    @classmethod
    def from_json(cls, text: str | bytes) -> Drift:
        """Read a result back; a newer contract than known is refused."""
        return parse_result(cls, "drift", DRIFT_SCHEMA_VERSION, text)

    @property
    def primary(self) -> list[MetricDrift]:
        """The metrics that the verdicts rest on."""
        return [metric for metric in self.metrics if metric.role == "primary"]

    def headline(self) -> str:
        """The answer in one sentence."""
        counts = Counter(metric.verdict for metric in self.primary)
        listed = ", ".join(
            f"{counts[verdict]} {said(verdict)}" for verdict in get_args(Verdict) if counts[verdict]
        )
        text = f"{len(self.primary)} primary metrics: {listed or 'none compared'}"
        directed = [c for c in self.capabilities if c.relative and not c.two_sided]
        worst = min(directed, key=lambda c: c.relative.value if c.relative else 0, default=None)
        if worst is not None and worst.relative is not None and worst.relative.value < 0:
            loss = worst.relative
            text += (
                f"; largest loss {worst.code} {signed(loss.value)} "
                f"({signed(loss.low)} to {signed(loss.high)}), {said(worst.verdict)}"
            )
        return text

    def to_csv(self) -> str:
        """Every group, capability and metric as one tidy table; changes as fractions."""
        out = io.StringIO()
        writer = csv.DictWriter(out, _CSV_COLUMNS, lineterminator="\n", restval="")
        writer.writeheader()
        for row in self._rows():
            writer.writerow({name: spreadsheet_safe(value) for name, value in row.items()})
        return out.getvalue()

    def _rows(self) -> Iterator[dict[str, Any]]:
        for group in self.groups:
            yield {"level": "group", "group": group.name} | _aggregate_row(group)
        for capability in self.capabilities:
            row = {"level": "capability", "group": capability.group, "capability": capability.code}
            yield row | _aggregate_row(capability)
        for metric in self.metrics:
            yield {"level": "metric"} | _metric_row(metric)
        for gap in self.gaps:
            known = {"capability": gap.capability, "task": gap.task, "metric": gap.metric}
            yield {"level": "gap", **known, "note": gap.reason}


_CSV_COLUMNS = (
    *("level", "group", "capability", "task", "metric", "direction", "role", "by", "n"),
    *("before", "after", "change", "change_low", "change_high"),
    *("relative", "relative_low", "relative_high", "spread"),
    *("without_one_low", "without_one_high", "worst", "lost", "gained", "standardised", "ks"),
    *("lost_at_least", "lost_at_most", "gained_at_least", "gained_at_most"),
    *("failures_before", "failures_after", "only_before", "only_after", "unscored"),
    *("missing", "missing_low", "missing_high"),
    *("p_value", "p_adjusted", "test", "interval", "margin", "mde", "verdict", "decides", "note"),
)


_PLAIN = {"spread", "worst", "p_value", "p_adjusted", "verdict", "decides", "missing"}


def _aggregate_row(cell: Aggregate) -> dict[str, Any]:
    out = cell.leave_one_out
    return {
        **cell.model_dump(include=_PLAIN),
        **_spread("change", cell.change),
        **_spread("relative", cell.relative),
        **_ends("lost", cell.lost),
        **_ends("gained", cell.gained),
        "n": len(cell.parts),
        "without_one_low": out.low if out else None,
        "without_one_high": out.high if out else None,
        "note": f"left out: {', '.join(cell.left_out)}" if cell.left_out else "",
    }


def _metric_row(cell: MetricDrift) -> dict[str, Any]:
    nested = {"change", "relative", "flips", "size", "withheld", "range", "lost", "gained"}
    plain = cell.model_dump(exclude=nested | {"runs_before", "runs_after", "missing"})
    missing = cell.missing
    return {
        **plain,
        **_ends("lost", cell.lost),
        **_ends("gained", cell.gained),
        "missing": missing.items if missing else 0,
        "missing_low": missing.low if missing else None,
        "missing_high": missing.high if missing else None,
        **_spread("change", cell.change),
        **_spread("relative", cell.relative),
        **(cell.flips.model_dump() if cell.flips else {}),
        **(cell.size.model_dump() if cell.size else {}),
        "note": cell.withheld,
    }


def said(verdict: str) -> str:
    """A verdict in plain words.

    Example:
        >>> said("worse"), said("undecided")
        ('worse', "can't tell")
    """
    return "can't tell" if verdict == "undecided" else verdict


def _spread(name: str, estimate: Estimate | None) -> dict[str, float | None]:
    if estimate is None:
        return {}
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}


def _ends(name: str, found: Between | None) -> dict[str, float]:
    if found is None:
        return {}
    ends = {"at_least": found.at_least.value, "at_most": found.at_most.value}
    return {f"{name}_{end}": value for end, value in ends.items()}


def signed(share: float, digits: int = 1) -> str:
    """A change as text, in percent, with its sign.

    Example:
        >>> signed(0.034), signed(-0.5), signed(0.0)
        ('+3.4 %', '-50.0 %', '0.0 %')
    """
    text = percent(share, digits)
    return f"+{text}" if float(text.removesuffix(" %")) > 0 else text
