"""What logs did on an item in one number: less to join and to group, and so quicker.

It tells nothing of probabilities and clusters. Repeats become bits. Each row has three, at a
place for its log and repeat: that it is there, that it has a score, that it is right. All rows of
an item, of both logs, are then one number, by one grouping of both. That takes half the time of
grouping each log and joining the two. Single runs are joined, the task by its hash.
"""

from __future__ import annotations

_REPEATS = 9
"""Repeats that fit beside each other; runs are numbered in multiples of 1000, whose remainder by
this is that of the number of the run."""
_SEEN = sum(1 << 3 * place for place in range(_REPEATS))
_AFTER = 3 * _REPEATS
"""Where the bits of the second log begin."""
_OUTCOMES = 3
"""Of a single run: no score, wrong, right."""
_OPEN = -1
"""Stands for the number of options of an open answer, which has none."""


def fits(repeats: int) -> bool:
    """Whether so many repeats have a place each; else two may share one.

    Example:
        >>> fits(3), fits(2001)
        (True, False)
    """
    return repeats <= _REPEATS


def packed_sql(before: str, after: str, limit: str, where: str) -> str:
    """SQL for the items by what was done on them, from two views of rows.

    The columns: the hash of the task; runs and right ones, before and after; items; unscored runs,
    before and after. `where` keeps to some tasks. A row that shares its place with another one is
    not counted, so fewer runs than rows tell of it.
    """
    bits = (
        f"CASE WHEN score >= {limit} THEN 7 WHEN score IS NOT NULL THEN 3 ELSE 1 END::BIGINT"
        f" << (CAST(abs(repeat::BIGINT) % {_REPEATS} AS INT) * 3 + {{start}})"
    )
    rows = [
        f"SELECT hash(task) AS code, key, {bits.format(start=start)} AS bits FROM {view} {where}"
        for view, start in ((before, 0), (after, _AFTER))
    ]
    told = ", ".join(_told(side, start) for side, start in (("before", 0), ("after", _AFTER)))
    return f"""
        WITH items AS (
            SELECT code, key, bit_or(bits) AS bits
            FROM ({" UNION ALL ".join(rows)}) AS rows GROUP BY code, key),
        told AS (SELECT code, {told} FROM items)
        SELECT code, runs_before, right_before, runs_after, right_after, count(*),
               sum(unscored_before), sum(unscored_after)
        FROM told GROUP BY code, runs_before, right_before, runs_after, right_after"""


def _told(side: str, start: int) -> str:
    """SQL for what the bits of one side tell; its runs are null where it lacks the item."""
    seen, scored, right = (f"(bits & {_SEEN << start + place})" for place in range(3))
    return f"""CASE WHEN {seen} <> 0 THEN bit_count({scored}) END AS runs_{side},
               CASE WHEN {seen} <> 0 THEN bit_count({right}) END AS right_{side},
               bit_count({seen}) - bit_count({scored}) AS unscored_{side}"""


def single_sql(before: str, after: str, limit: str, where: str) -> str:
    """SQL for the items by what was done on them, from two views with one row for each item.

    The columns: the hash of the task; what each log did, for `single_run`; items. `where` keeps to
    some tasks. An item that is in several rows of a view counts as often as they meet.
    """
    outcome = f"CASE WHEN score >= {limit} THEN 2 WHEN score IS NOT NULL THEN 1 ELSE 0 END"
    ours, theirs = (
        f"""SELECT hash(task) AS code, key,
                   {outcome} + {_OUTCOMES} * coalesce(k::BIGINT, {_OPEN}) AS did
            FROM {view} {where}"""
        for view in (before, after)
    )
    return f"""SELECT coalesce(b.code, a.code), b.did, a.did, count(*)
               FROM ({ours}) AS b FULL JOIN ({theirs}) AS a ON b.code = a.code AND b.key = a.key
               GROUP BY coalesce(b.code, a.code), b.did, a.did"""


def single_run(did: int | None) -> tuple[int | None, int | None, int | None]:
    """The number of options, the runs and the right ones, of what a log did on an item.

    Example:
        >>> single_run(3 * 4 + 2), single_run(3 * -1 + 0), single_run(None)
        ((4, 1, 1), (None, 0, 0), (None, None, None))
    """
    if did is None:  # it lacks the item
        return None, None, None
    k, outcome = divmod(did, _OUTCOMES)
    return None if k == _OPEN else k, min(outcome, 1), max(outcome - 1, 0)
