"""A map in a notebook: a compact table with a small bar chart, no script in it."""

from __future__ import annotations

from forgetmap.map.result import FORGETTING_WORDS, NET_WORDS, ForgettingMap
from forgetmap.views import words
from forgetmap.views.figures.style import LOST, SOFT, WON
from forgetmap.views.html.shell import fill

_MOST_ROWS = 30


def to_html(result: ForgettingMap) -> str:
    """The total and every category, each with its numbers and its ranges drawn.

    Example:
        >>> import forgetmap
        >>> shown = to_html(forgetmap.demo())
        >>> shown.count('role="img"') > 1, "<script" in shown
        (True, False)
    """
    names = words.marked_categories(result) or words.marked_tasks(result)
    ordered = words.by_loss(result.categories or result.tasks)
    shown = [(names[name], cell) for name, cell in ordered[:_MOST_ROWS]]
    old = [("Old items", result.old)] if words.is_split(result) else []
    rows = [*old, ("Total", result.total), *shown]
    high = max(found.high for _, cell in rows for found in (cell.lost, cell.gained)) or 1.0
    return fill(
        "notebook.html",
        result=result,
        words=words,
        rows=rows,
        left_out=max(0, len(ordered) - _MOST_ROWS),
        high=high,
        place=lambda share: f"{100 * share / high:.1f}%",
        colours={"lost": LOST, "won": WON, "line": SOFT},
        verdicts=FORGETTING_WORDS,
        nets=NET_WORDS,
    )
