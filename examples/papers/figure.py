"""What each kind of training lost, beside what it learned: `python results.py` draws it."""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

sys.path.append(str(Path(__file__).resolve().parents[1]))  # for what the studies share

from cells import NUMBER, read_tables
from claims import LEAST

from forgetmap.views.figures.style import INK, LOST, PALE, SOFT, WON, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Kind(NamedTuple):
    """A row of the table of kinds; all numbers are percent."""

    group: str
    """The setting and the model."""
    name: str
    trainings: int
    lost: tuple[float, ...]
    """Surely, and at most; then the ends of the interval."""
    right: tuple[float, ...]
    """On the new task, before and after."""


def read_kinds(results: str) -> list[Kind]:
    """The rows of the table of kinds, in its order."""
    found = []
    for name, row in read_tables(results)["kinds"].items():
        *group, kind = name.split()
        lost, right = (_numbers(row[column]) for column in ("lost", "new right"))
        found.append(Kind(" ".join(group), kind, int(row["trainings"]), lost, right))
    return found


def _numbers(cell: str) -> tuple[float, ...]:
    return tuple(map(float, NUMBER.findall(cell)))


def draw(results: str, out: Path) -> None:
    """A line for each kind: what it lost on the left, what it learned on the right."""
    from matplotlib import pyplot as plt

    rows = read_kinds(results)
    with style():
        figure, (left, right) = plt.subplots(
            1, 2, sharey=True, figsize=(8.6, 1 + 0.25 * len(rows)), width_ratios=(3, 2)
        )
        y, names = 0, dict[int, str]()
        for group, members in groupby(rows, key=lambda row: row.group):
            left.text(0, y, f" {group}", va="center", fontweight="bold", fontsize=8)
            for row in members:
                y += 1
                _draw(left, right, y, row)
                names[y] = row.name if row.trainings >= LEAST else f"{row.name} ({row.trainings})"
            y += 2
        left.set_yticks(list(names), list(names.values()), fontsize=8)
        left.set_ylim(y - 1.2, -0.8)
        left.set_xlim(left=0)
        left.set_xlabel("lost, % of the old items; pale: may be guessing", fontsize=8)
        right.set_xlabel("right on the new task, %: before and after", fontsize=8)
        for axes in (left, right):
            axes.set_axisbelow(True)
            axes.grid(visible=False, axis="y")
            axes.tick_params(axis="y", length=0)
        figure.savefig(out, metadata={"Date": None})
        plt.close(figure)


def _draw(left: Axes, right: Axes, y: float, row: Kind) -> None:
    surely, at_most, low, high = row.lost
    left.barh(y, at_most, height=0.62, color=LOST, alpha=PALE)
    left.barh(y, surely, height=0.62, color=LOST)
    left.plot([low, high], [y, y], color=INK, lw=0.9)
    before, after = row.right
    right.plot([before, after], [y, y], color=WON, lw=1.4, alpha=PALE)
    right.plot(before, y, "|", color=SOFT, ms=6)
    right.plot(after, y, "o", color=WON, ms=4)
