"""The drift as one HTML page: a heat map coloured in both directions, and the items behind it.

The page runs no script. Everything from a log is text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forgetmap.base.words import percent, some
from forgetmap.capabilities.drift_result import signed
from forgetmap.views.html.shell import Page, depth

if TYPE_CHECKING:
    from forgetmap.capabilities.drift_result import CapabilityDrift, Drift, MetricDrift
    from forgetmap.pairing.scores import ScorePairs

    Places = dict[tuple[str, str], str]

_PAGE = Page("drift.html", "drift.css")
_SURE = 2
"""Depth of colour that an undecided change cannot exceed."""


def heat_map(result: Drift, scores: ScorePairs) -> str:
    """Draw the drift as one page, with the items that changed most under every metric.

    Args:
        result: The drift.
        scores: The scores it was computed from, to read the items from.
    """
    changed = scores.changed(
        {(cell.task, cell.metric): -1 if cell.direction == "down" else 1 for cell in result.metrics}
    )
    places = {(cell.task, cell.metric): f"m{n}" for n, cell in enumerate(result.metrics)}
    totals = {group.name: group for group in result.groups}
    groups = [
        {
            "name": name,
            "total": totals.get(name),
            "rows": [
                _row(result, capability, places)
                for capability in result.capabilities
                if capability.group == name
            ],
        }
        for name in dict.fromkeys(metric.group for metric in result.metrics)
    ]
    metrics = [
        {
            "cell": cell,
            "place": places[cell.task, cell.metric],
            "facts": _facts(cell),
            "changed": changed.get((cell.task, cell.metric), []),
        }
        for cell in result.metrics
    ]
    missing = [f"{gap.task} {gap.metric}: {gap.reason}" for gap in result.gaps]
    missing += [f"confound: {confound.setting} differs" for confound in result.confounds]
    return _PAGE.render(
        result=result,
        version=result.forgetmap_version,
        groups=groups,
        metrics=metrics,
        missing=missing,
    )


def _row(result: Drift, cell: CapabilityDrift, places: Places) -> dict[str, Any]:
    missing = [f"{gap.task} {gap.metric}" for gap in result.gaps if gap.capability == cell.code]
    share = cell.relative.value if cell.relative else 0.0
    return {
        "cell": cell,
        "colour": _colour(share, cell.two_sided, cell.verdict),
        "missing": some(missing, 4) if missing else "",
        "tiles": [
            _tile(metric, places) for metric in result.primary if metric.capability == cell.code
        ],
    }


def _tile(cell: MetricDrift, places: Places) -> dict[str, Any]:
    share = cell.relative.value if cell.relative else cell.change.value
    if cell.direction == "down":
        share = -share
    return {
        "cell": cell,
        "colour": _colour(share, cell.direction == "two-sided", cell.verdict),
        "place": places[cell.task, cell.metric],
        "change": signed(cell.relative.value)
        if cell.relative
        else f"{cell.change.value:+.3g} absolute",
    }


def _colour(share: float, two_sided: bool, verdict: str) -> str:
    down, up = ("lower", "higher") if two_sided else ("worse", "better")
    deep = min(depth(abs(share)), _SURE) if verdict == "undecided" else depth(abs(share))
    return f"to-{down if share < 0 else up} depth-{deep}"


def _facts(cell: MetricDrift) -> dict[str, str]:
    change, relative = cell.change, cell.relative
    facts = {
        "items": f"{cell.n:,}",
        "before, after": f"{cell.before:.4g}, {cell.after:.4g}",
        "change": f"{change.value:+.4g} ({change.low:+.4g} to {change.high:+.4g})",
        "relative": f"{signed(relative.value)} ({signed(relative.low)} to {signed(relative.high)})"
        if relative
        else f"withheld: {cell.withheld}",
        "direction, role": f"{cell.direction}, {cell.role}",
        "p, adjusted": f"{cell.p_value:.3g}, {cell.p_adjusted:.3g} ({cell.test})",
        "margin, smallest detectable": f"{cell.margin:.3g}, {cell.mde:.3g}",
        "failures": f"{percent(cell.failures_before)}, {percent(cell.failures_after)}",
    }
    if cell.flips:
        facts["flips 1→0, 0→1"] = f"{cell.flips.lost:g}, {cell.flips.gained:g}"
    if cell.size:
        standardised = "-" if cell.size.standardised is None else f"{cell.size.standardised:+.2f}"
        facts["standardised, KS distance"] = f"{standardised}, {cell.size.ks:.2f}"
    return facts
