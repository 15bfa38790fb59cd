"""Verdicts that hold over a whole study: many pairs are many chances of a false alarm."""

from __future__ import annotations

from collections.abc import Callable

from numpy.typing import ArrayLike, NDArray

from forgetmap.map.cells import ALPHA
from forgetmap.map.result import Forgetting, Net
from forgetmap.stats.tests import benjamini_hochberg, holm
from forgetmap.study.result import StudiedPair, StudyCell

Adjust = Callable[[ArrayLike], NDArray]  # type: ignore[type-arg]


def corrected(pairs: list[StudiedPair]) -> list[StudiedPair]:
    """The pairs with the verdicts of their cells corrected over all pairs.

    Old and new skills and categories by Holm, each over all pairs; tasks by Benjamini and Hochberg
    over all tasks of all pairs.
    """
    old = iter(_judged([pair.old for pair in pairs], holm))
    new = iter(_judged([pair.new for pair in pairs if pair.new], holm))
    categories = iter(_judged([c for pair in pairs for c in pair.categories.values()], holm))
    every_task = [cell for pair in pairs for cell in pair.tasks.values()]
    tasks = iter(_judged(every_task, benjamini_hochberg))
    return [
        pair.model_copy(
            update={
                "old": next(old),
                "new": next(new) if pair.new else None,
                "categories": {name: next(categories) for name in pair.categories},
                "tasks": {name: next(tasks) for name in pair.tasks},
            }
        )
        for pair in pairs
    ]


def _judged(cells: list[StudyCell], adjust: Adjust) -> list[StudyCell]:
    """One family of cells with verdicts that are corrected together."""
    lost, held, changed = (
        adjust(numbers)
        for numbers in (
            [_or_one(cell.verdict.p_lost if cell.verdict else None) for cell in cells],
            [_or_one(cell.verdict.p_held if cell.verdict else None) for cell in cells],
            [_or_one(cell.p_value) for cell in cells],
        )
    )
    judged = []
    for place, cell in enumerate(cells):
        if cell.verdict is None:
            judged.append(cell)
            continue
        forgetting: Forgetting = "undecided"
        if lost[place] < ALPHA / 2:
            forgetting = "lost"
        elif held[place] < ALPHA / 2:
            forgetting = "held"
        net: Net = "equal" if cell.verdict.net == "equal" else "undecided"
        if net != "equal" and changed[place] < ALPHA and cell.change.value:
            net = "worse" if cell.change.value < 0 else "better"
        if (forgetting, net) != (cell.verdict.forgetting, cell.verdict.net):
            verdict = cell.verdict.model_copy(update={"forgetting": forgetting, "net": net})
            cell = cell.model_copy(update={"verdict": verdict})
        judged.append(cell)
    return judged


def _or_one(p: float | None) -> float:
    return 1.0 if p is None else p
