"""Maps of schema version 1, as maps of version 2.

Version 1 knew forgetting by `raw`, `excess` and `soft`. The last two are (E d + E d^2) / 2 with
d = p - q, which is at most the loss; (E d + sqrt(E d^2)) / 2 is at least the loss. So an old map
holds a range, and nothing is made up.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from forgetmap.stats.estimate import Estimate, share

NOTE = (
    "made by an older forgetmap: what was lost is a range here; compare the logs again for the loss"
)
MERGED = {"format": "wrapped"}
"""Causes of older maps, and those that they are a part of now."""
_MOST = 2**53
"""A file may claim any number of items; beyond this one, numbers with a fraction have gaps."""
_NET = {"equivalent": "equal"}


def upgrade(content: dict[str, Any]) -> dict[str, Any]:
    """Turn the content of a version 1 map into that of version 2."""
    margin = content["settings"]["margin"]
    total = upgrade_cell(content["total"], margin)
    return {
        **content,
        "schema_version": 2,
        "settings": {**content["settings"], "new": []},
        "warnings": [*content.get("warnings", []), NOTE],
        "total": total,
        "old": total,
        "macro": upgrade_cell(content["macro"], margin),
        "categories": {
            name: upgrade_cell(cell, margin) for name, cell in content["categories"].items()
        },
        "tasks": {name: upgrade_cell(cell, margin) for name, cell in content["tasks"].items()},
    }


def upgrade_cell(cell: dict[str, Any], margin: float) -> dict[str, Any]:
    """Turn a version 1 cell into one of version 2."""
    fell, rose = cell["forgetting"], cell["backward_transfer"]
    headline = cell.get("headline", "raw")
    paper = None
    if fell.get("paper") and rose.get("paper"):
        paper = {"lost": fell["paper"], "gained": rose["paper"]}
    lost = _range(fell, rose, headline)
    verdict = "lost" if lost["low"] > margin else "held" if lost["high"] < margin else "undecided"
    net = cell["verdict"]["net"]
    return {
        **{name: value for name, value in cell.items() if name not in _RETIRED},
        "clustered": cell.get("interval") == "cluster bootstrap",
        "lost": lost,
        "gained": _range(rose, fell, headline),
        "raw": {"lost": fell["raw"], "gained": rose["raw"]},
        "paper": paper,
        "verdict": {"net": _NET.get(net, net), "forgetting": verdict, "would_decide": None},
    }


def merge_causes(
    causes: Mapping[str, int], without: Mapping[str, Estimate] | None, lost: float, n: int
) -> tuple[dict[str, int], dict[str, Estimate] | None]:
    """Losses by cause, and what is lost without each, where some are a part of another one now.

    What is lost without both of two causes is what is lost, less the part of each.
    """
    counts, left = Counter[str](), dict[str, float]()
    for name, count in causes.items():
        now: str = MERGED.get(name) or name
        counts[now] += count
        if without and name in without:
            left[now] = left.get(now, lost) - (lost - without[name].value)
    told = {name: share(part * n, n) for name, part in left.items()} if 0 < n < _MOST else {}
    return dict(counts), told if without else None


_RETIRED = ("forgetting", "backward_transfer", "headline", "interval", "persistence")


def old_range(told: dict[str, float], other: dict[str, float], headline: str) -> dict[str, Any]:
    """What a number of version 1 says of the loss, or of the gain.

    The same number in the other direction is less by the drop, E d, whichever estimator it is.
    Flips are at least the loss; of them only the drop is sure. `excess` and `soft` are at most the
    loss.
    """
    drop, high = told["value"] - other["value"], max(0.0, told["high"])
    least, most, low = max(0.0, drop), max(0.0, told["value"]), 0.0
    if headline != "raw":
        least, low = max(least, told["value"]), max(0.0, told["low"])
        most = (drop + math.sqrt(max(told["value"] + other["value"], 0.0))) / 2
    most = max(least, most)
    return {
        "low_end": least,
        "high_end": most,
        "low": min(low, least),
        "high": max(high, most),
        "of_known": None,
        "basis": _BASIS.get(headline, "single_run"),
    }


_BASIS = {"excess": "repeats", "soft": "mixed"}


def _range(old: dict[str, Any], other: dict[str, Any], headline: str) -> dict[str, Any]:
    flips = old_range(old["raw"], other["raw"], "raw")
    if headline == "raw" or not (old.get(headline) and other.get(headline)):
        return flips
    told = old_range(old[headline], other[headline], headline)
    high_end = told["high_end"]
    if headline == "excess":  # flips of the likeliest option do not bound what `soft` measures
        high_end = max(told["low_end"], min(high_end, flips["high_end"]))
    return {**told, "high_end": high_end, "high": max(flips["high"], high_end)}
