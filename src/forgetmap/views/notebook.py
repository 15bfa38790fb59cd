"""A map in a notebook: a compact table with a small forest plot, no script in it."""

from __future__ import annotations

from forgetmap.map.result import ForgettingMap
from forgetmap.views.figures.style import LOST, SOFT, WON
from forgetmap.views.html.shell import fill

_MOST_ROWS = 30


def to_html(result: ForgettingMap) -> str:
    """The total and every category, each with its numbers and its intervals drawn.

    Example:
        >>> import forgetmap
        >>> shown = to_html(forgetmap.demo())
        >>> shown.count('role="img"') > 1, "<script" in shown
        (True, False)
    """
    cells = result.categories or result.tasks
    ordered = sorted(cells.items(), key=lambda pair: -pair[1].forgot.value)
    rows = [("Total", result.total), *ordered[:_MOST_ROWS]]
    estimates = [estimate for _, cell in rows for estimate in (cell.forgot, cell.gained)]
    low = min(0.0, *(estimate.low for estimate in estimates))
    high = max(estimate.high for estimate in estimates) or 1.0
    return fill(
        "notebook.html",
        result=result,
        rows=rows,
        left_out=max(0, len(ordered) - _MOST_ROWS),
        low=low,
        high=high,
        place=lambda share: f"{100 * (share - low) / (high - low):.1f}%",
        colours={"lost": LOST, "won": WON, "zero": SOFT},
    )
