"""The drift as one HTML page: a heat map coloured in both directions, and the items behind it.

The page runs no script. Everything from a log is text.
"""

from __future__ import annotations

from forgetmap.base.words import some
from forgetmap.capabilities.drift_result import CapabilityDrift, Drift, MetricDrift
from forgetmap.pairing.scores import ScorePairs
from forgetmap.views.html.shell import Page, depth

_PAGE = Page("drift.html", ("drift.css",))
_SURE = 2
"""Depth of colour that an undecided change cannot exceed."""


def heat_map(result: Drift, scores: ScorePairs) -> str:
    """Draw the drift as one page, with the items that changed most under every metric.

    Args:
        result: The drift.
        scores: The scores it was computed from, to read the items from.
    """
    missing: dict[str, list[str]] = {}
    for gap in result.gaps:
        missing.setdefault(gap.capability, []).append(f"{gap.task} {gap.metric}")
    notes = [f"{gap.task} {gap.metric}: {gap.reason}" for gap in result.gaps]
    notes += [f"confound: {confound.setting} differs" for confound in result.confounds]
    return _PAGE.render(
        result=result,
        version=result.forgetmap_version,
        groups=dict.fromkeys(metric.group for metric in result.metrics),
        totals={group.name: group for group in result.groups},
        places={(cell.task, cell.metric): f"m{n}" for n, cell in enumerate(result.metrics)},
        changed=scores.changed(
            {
                (cell.task, cell.metric): -1 if cell.direction == "down" else 1
                for cell in result.metrics
            }
        ),
        missing={code: some(names, 4) for code, names in missing.items()},
        notes_listed=notes,
        colour_of_capability=_colour_of_capability,
        colour_of_metric=_colour_of_metric,
    )


def _colour_of_capability(cell: CapabilityDrift) -> str:
    return _colour(cell.judged.value if cell.judged else 0.0, cell.two_sided, cell.verdict)


def _colour_of_metric(cell: MetricDrift) -> str:
    share = cell.relative.value if cell.relative else cell.change.value
    if cell.direction == "down":
        share = -share
    return _colour(share, cell.direction == "two-sided", cell.verdict)


def _colour(share: float, two_sided: bool, verdict: str) -> str:
    down, up = ("lower", "higher") if two_sided else ("worse", "better")
    deep = min(depth(abs(share)), _SURE) if verdict == "undecided" else depth(abs(share))
    return f"to-{down if share < 0 else up} depth-{deep}"
