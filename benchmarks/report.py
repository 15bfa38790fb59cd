"""The written result: one table per part, and every bar with its verdict."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Bar(NamedTuple):
    """Something that forgetmap should reach, and what was measured."""

    what: str
    measured: str
    reached: bool | None
    """None where the bar does not hold on this machine."""

    @property
    def verdict(self) -> str:
        """PASS or MISS."""
        return "-" if self.reached is None else "PASS" if self.reached else "MISS"


class Row(NamedTuple):
    """One line of a table, and the bars that it is held to."""

    cells: list[str]
    bars: list[Bar]

    @property
    def verdict(self) -> str:
        """MISS where any bar is missed."""
        verdicts = {bar.verdict for bar in self.bars}
        return next((word for word in ("MISS", "PASS") if word in verdicts), "-")


@dataclass
class Part:
    """One part of the benchmark."""

    title: str
    about: str
    headers: list[str]
    rows: list[Row] = field(default_factory=list)

    def render(self, number: int, judged: bool) -> str:
        """As Markdown."""
        rows = [[*row.cells, row.verdict if judged else "-"] for row in self.rows]
        table = _table([*self.headers, "verdict"], rows)
        return f"## {number}. {self.title}\n\n{self.about}\n\n{table}"


def render(parts: Sequence[Part], machine: Sequence[str], judged: bool) -> str:
    """The whole file."""
    bars = [bar for part in parts for row in part.rows for bar in row.bars]
    verdicts = _table(
        ["bar", "measured", "verdict"], [[bar.what, bar.measured, bar.verdict] for bar in bars]
    )
    if not judged:
        verdicts = "A quick run: its sizes are too small to judge anything by."
    blocks = [
        "# Benchmarks",
        "Made by `make bench`: forgetmap beside its peers, on the same made-up data, in the same "
        "run. Read the ratios; seconds belong to this machine. Every job ran in a fresh process, "
        "the contestants in turns; the time is that of the work alone, without start-up and "
        "imports (except in the part on start-up), with files in the system's cache. CPU s are "
        "processor seconds over all cores. All contestants found the same counts, those that were "
        "put into the data.",
        "\n".join(f"- {line}" for line in machine),
        "## Bars\n\n" + verdicts,
        *(part.render(number, judged) for number, part in enumerate(parts, 1)),
    ]
    return "\n\n".join(blocks) + "\n"


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headers, ["---"] * len(headers), *rows]
    escaped = ([cell.replace("|", "\\|") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in escaped)
