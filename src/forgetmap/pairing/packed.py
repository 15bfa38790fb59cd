"""Repeats as bits: what two logs did on an item, in one number and by one grouping of both logs.

Each row becomes three bits, at a place for its log and repeat: that it is there, that it has a
score, that it is right. All rows of an item, of both logs, are then one number. That takes half the
time of grouping each log and joining the two, but tells nothing of probabilities and clusters.
"""

from __future__ import annotations

_REPEATS = 9
"""Repeats that fit beside each other; runs are numbered in multiples of 1000, whose remainder by
this is that of the number of the run."""
_SEEN = sum(1 << 3 * place for place in range(_REPEATS))
_AFTER = 3 * _REPEATS
"""Where the bits of the second log begin."""


def fits(repeats: int) -> bool:
    """Whether so many repeats have a place each; else two may share one.

    Example:
        >>> fits(3), fits(2001)
        (True, False)
    """
    return repeats <= _REPEATS


def packed_sql(before: str, after: str, limit: str, where: str) -> str:
    """SQL for the items by what was done on them, from two views of rows.

    The columns: task; runs and right ones, before and after; items; unscored runs, before and
    after; rows that share a place with another one. `where` keeps to some tasks.
    """
    bits = (
        f"CASE WHEN score >= {limit} THEN 7 WHEN score IS NOT NULL THEN 3 ELSE 1 END::BIGINT"
        f" << (CAST(abs(repeat::BIGINT) % {_REPEATS} AS INT) * 3 + {{start}})"
    )
    rows = [
        f"SELECT task, key, {bits.format(start=start)} AS bits FROM {view} {where}"
        for view, start in ((before, 0), (after, _AFTER))
    ]
    told = ", ".join(_told(side, start) for side, start in (("before", 0), ("after", _AFTER)))
    return f"""
        WITH items AS (
            SELECT task, key, bit_or(bits) AS bits, count(*) AS held
            FROM ({" UNION ALL ".join(rows)}) AS rows GROUP BY task, key),
        told AS (
            SELECT task, {told}, held - bit_count(bits & {_SEEN | _SEEN << _AFTER}) AS shared
            FROM items)
        SELECT task, runs_before, right_before, runs_after, right_after, count(*),
               sum(unscored_before), sum(unscored_after), sum(shared)
        FROM told GROUP BY task, runs_before, right_before, runs_after, right_after"""


def _told(side: str, start: int) -> str:
    """SQL for what the bits of one side tell; its runs are null where it lacks the item."""
    seen, scored, right = (f"(bits & {_SEEN << start + place})" for place in range(3))
    return f"""CASE WHEN {seen} <> 0 THEN bit_count({scored}) END AS runs_{side},
               CASE WHEN {seen} <> 0 THEN bit_count({right}) END AS right_{side},
               bit_count({seen}) - bit_count({scored}) AS unscored_{side}"""
