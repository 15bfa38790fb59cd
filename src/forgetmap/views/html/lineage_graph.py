"""The graph of a lineage, laid out in rows: one for every step, so that nothing can be hidden.

A checkpoint has a dot in a lane. From its dot a line goes down to the last checkpoint that was
made from it, and every step branches off that line in a row of its own. No two labels share a row,
and a line that runs sideways meets no dot but its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from forgetmap.lineage.result import Node


class Line(NamedTuple):
    """A straight line in a row: lanes from left to right, percent of the row from its top."""

    from_lane: int
    top: int
    to_lane: int
    bottom: int
    is_step: bool
    """It belongs to the step of this row; else it only passes by."""


@dataclass
class Row:
    """One step, or the root: the checkpoint it leads to, and the lines that cross its row."""

    before: str | None
    after: str
    lane: int
    has_dot: bool
    """A checkpoint with several parents has a row for each, and its dot in the last."""
    lines: list[Line] = field(default_factory=list)


def graph_rows(nodes: Sequence[Node]) -> list[Row]:
    """The rows of a graph, parents above what was made from them.

    Example:
        >>> def node(name, *parents):
        ...     return Node(name=name, parents=list(parents), log="", model="", harness="",
        ...                 numbers={}, items=1, missing=0, known=1)
        >>> rows = graph_rows([node("base"), node("sft", "base"), node("rl", "sft"),
        ...                    node("code", "base"), node("merged", "rl", "code")])
        >>> [(row.before, row.after, row.lane) for row in rows]
        [(None, 'base', 0), ('base', 'sft', 1), ('sft', 'rl', 1), ('base', 'code', 2), \
('rl', 'merged', 1), ('code', 'merged', 1)]
    """
    open_steps = Counter(parent for node in nodes for parent in node.parents)
    made = dict(open_steps)
    lanes: dict[str, int] = {}
    running: dict[int, str] = {}  # by lane, the checkpoint from which steps are still to come
    rows = []
    for node in _in_order(nodes):
        lane = _lane(node, made, lanes, running)
        lanes[node.name] = lane
        for place, parent in enumerate(node.parents or [None]):
            is_last = place == max(0, len(node.parents) - 1)
            row = Row(parent, node.name, lane, is_last)
            if parent is not None:
                row.lines += _passing(running, lane, parent, open_steps[parent] == 1)
                row.lines += _arriving(lanes[parent], lane, is_first=place == 0)
                open_steps[parent] -= 1
                if not open_steps[parent] and running.get(lanes[parent]) == parent:
                    del running[lanes[parent]]
            if not is_last or made.get(node.name):
                row.lines.append(Line(lane, 50, lane, 100, is_step=not is_last))
            rows.append(row)
        if made.get(node.name):
            running[lane] = node.name
    return rows


def _in_order(nodes: Sequence[Node]) -> Iterator[Node]:
    """A checkpoint, then all that follows it, before its next sibling."""
    waiting = {node.name: len(node.parents) for node in nodes}
    stack = [node for node in nodes if not node.parents]
    while stack:
        node = stack.pop()
        yield node
        children = [child for child in nodes if node.name in child.parents]
        for child in children:
            waiting[child.name] -= 1
        stack += [child for child in reversed(children) if not waiting[child.name]]


def _lane(node: Node, made: dict[str, int], lanes: dict[str, int], running: dict[int, str]) -> int:
    """Its parent's lane where nothing else was made from that, else the first that is free."""
    if node.parents and made[node.parents[0]] == 1:
        return lanes[node.parents[0]]
    return next(lane for lane in range(len(running) + 1) if lane not in running)


def _passing(running: dict[int, str], lane: int, parent: str, is_last: bool) -> Iterator[Line]:
    """Lines from above: they pass this row, or end in it."""
    for other, owner in running.items():
        if other != lane:
            ends = owner == parent and is_last
            yield Line(other, 0, other, 50 if ends else 100, is_step=False)


def _arriving(parent: int, lane: int, *, is_first: bool) -> Iterator[Line]:
    """The step of a row, sideways from its parent's line or straight down."""
    if parent != lane:
        yield Line(parent, 50, lane, 50, is_step=True)
    if parent == lane or not is_first:
        yield Line(lane, 0, lane, 50, is_step=True)
