"""Maps of schema version 1, as maps of version 2.

Version 1 knew forgetting by `raw`, `excess` and `soft`. The last two are (E d + E d^2) / 2 with
d = p - q, which is at most the loss; (E d + sqrt(E d^2)) / 2 is at least the loss. So an old map
holds a range, and nothing is made up.
"""

from __future__ import annotations

import math
from typing import Any

NOTE = (
    "made by an older forgetmap: what was lost is a range here; compare the logs again for the loss"
)
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
    drop = cell["accuracy_before"] - cell["accuracy_after"]
    paper = None
    if fell.get("paper") and rose.get("paper"):
        paper = {"lost": fell["paper"], "gained": rose["paper"]}
    lost = _range(fell, drop, cell)
    verdict = "lost" if lost["low"] > margin else "held" if lost["high"] < margin else "undecided"
    net = cell["verdict"]["net"]
    return {
        **{name: value for name, value in cell.items() if name not in _RETIRED},
        "clustered": cell.get("interval") == "cluster bootstrap",
        "lost": lost,
        "gained": _range(rose, -drop, cell),
        "raw": {"lost": fell["raw"], "gained": rose["raw"]},
        "paper": paper,
        "verdict": {"net": _NET.get(net, net), "forgetting": verdict, "would_decide": None},
    }


_RETIRED = ("forgetting", "backward_transfer", "headline", "interval", "persistence")


def old_range(estimate: dict[str, float]) -> dict[str, Any]:
    """A number of version 1 whose estimator is not known any more: its interval is what is left."""
    low, high = max(0.0, estimate["low"]), max(0.0, estimate["high"])
    value = min(max(0.0, estimate["value"]), high)
    ends = {"low_end": value, "high_end": high, "low": min(low, value), "high": high}
    return {**ends, "of_known": None, "basis": "mixed"}


def _range(old: dict[str, Any], drop: float, cell: dict[str, Any]) -> dict[str, Any]:
    raw, headline = old["raw"], cell.get("headline", "raw")
    half = old.get(headline) if headline != "raw" else None
    low, high = max(0.0, drop), raw["value"]
    low_limit, high_limit = 0.0, raw["high"]
    if half:
        low, low_limit = max(low, half["value"]), max(0.0, half["low"])
        square = max(2 * half["value"] - drop, 0.0)
        bound = (drop + math.sqrt(square)) / 2
        # Flips of the likeliest option are another number than the loss in probability.
        high = bound if headline == "soft" else min(high, bound)
        high_limit = max(high_limit, high)
    high = max(low, high)
    basis = {"excess": "repeats", "soft": "mixed"}.get(headline, "single_run")
    return {
        "low_end": low,
        "high_end": high,
        "low": min(low_limit, low),
        "high": max(high_limit, high),
        "of_known": None,
        "basis": basis,
    }
