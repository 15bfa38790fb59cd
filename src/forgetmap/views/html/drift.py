"""The drift as one HTML page: a heat map coloured in both directions, and the items behind it.

Everything from a log is text.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from forgetmap.base.words import clean, some
from forgetmap.capabilities.drift_result import (
    Between,
    CapabilityDrift,
    Drift,
    MetricDrift,
    said,
    signed,
)
from forgetmap.pairing.scores import ScorePairs
from forgetmap.views.html.cells import short
from forgetmap.views.html.shell import CONTROLS, FOREST, Page, depth, minus

_PAGE = Page(
    "drift.html",
    ("controls.css", "forest.css", "drift.css"),
    (*CONTROLS, *FOREST, "drift/main.js"),
    charts=False,
)
_SURE = 2
"""Depth of colour that an undecided change cannot exceed."""
_SMALL = 0.02
"""A loss to draw, where nobody knows how large it is."""


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
        finding=finding(result),
        counts=Counter(cell.verdict for cell in result.capabilities),
        forest=_forest(result),
        share_of_range=_share_of_range,
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


def finding(result: Drift) -> str:
    """What got worse and where most, as short as a title."""
    cells = [cell for cell in result.capabilities if cell.judged]
    counts = Counter(cell.verdict for cell in cells)
    worse = [cell for cell in cells if cell.verdict == "worse"]
    others = f"better in {counts['better'] or 'none'}"
    if not worse:
        return f"No capability of {len(cells)} is surely worse; {others}."
    worst = min(worse, key=_net)
    most = f", most in {clean(worst.name, 60)} ({_told(worst)})" if len(worse) > 1 else ""
    only = f": {clean(worst.name, 60)} ({_told(worst)})" if len(worse) == 1 else ""
    return f"Worse in {len(worse)} of {len(cells)} capabilities{most}{only}; {others}."


def _forest(result: Drift) -> list[dict[str, Any]]:
    """What each capability lost and gained, most lost first; not where neither is better."""
    return [
        {
            "name": clean(f"{cell.code} {cell.name}", 60),
            "code": clean(cell.code),
            "verdict": [said(cell.verdict), cell.verdict],
            "cell": {"lost": _range(cell.lost), "gained": _range(cell.gained)},
        }
        for cell in sorted(result.capabilities, key=_most_lost)
        if cell.lost and cell.gained and not cell.two_sided
    ]


def _most_lost(cell: CapabilityDrift) -> float:
    return -cell.lost.at_most.value if cell.lost else 0.0


def _range(found: Between) -> dict[str, float | str | None]:
    """In the form of a map's ranges, which the shared script draws."""
    least, most = found.at_least, found.at_most
    return {
        "low_end": short(least.value),
        "high_end": short(most.value),
        "low": short(min(least.low, most.low)),
        "high": short(max(least.high, most.high)),
        "basis": "single_run",
    }


def _told(cell: CapabilityDrift) -> str:
    """A change in percent of before, or in points of the range where that is withheld.

    Where one metric is worse and the mean is not, the mean would hide it.
    """
    value = _net(cell)
    if value >= 0:
        return f"{clean(cell.worst or 'one metric', 60)} is worse, the mean is not"
    text = minus(signed(value))
    return text if cell.relative else text.replace(" %", "\u00a0pt")


def _share_of_range(cell: MetricDrift) -> float | None:
    """The change of a metric in shares of its range; None where it has no ends."""
    low, high = cell.range
    return None if low is None or high is None else cell.change.value / (high - low)


def _net(cell: CapabilityDrift) -> float:
    return cell.judged.value if cell.judged else 0.0


def _colour_of_capability(cell: CapabilityDrift) -> str:
    """What is worse has the colour of a loss, whatever its other metrics gained."""
    value = _net(cell)
    if cell.verdict == "worse" and value >= 0:
        value = -(cell.lost.at_least.value if cell.lost else _SMALL)
    return _colour(value, cell.two_sided, cell.verdict)


def _colour_of_metric(cell: MetricDrift) -> str:
    share = cell.relative.value if cell.relative else cell.change.value
    if cell.direction == "down":
        share = -share
    return _colour(share, cell.direction == "two-sided", cell.verdict)


def _colour(share: float, two_sided: bool, verdict: str) -> str:
    down, up = ("lower", "higher") if two_sided else ("worse", "better")
    deep = min(depth(abs(share)), _SURE) if verdict == "undecided" else depth(abs(share))
    return f"to-{down if share < 0 else up} depth-{deep}"
