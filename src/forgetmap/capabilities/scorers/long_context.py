"""Long context: were the needles found, however their numbers are written, and nothing else."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from forgetmap.answers.items import Item, Value
from forgetmap.answers.text import tokens
from forgetmap.capabilities.scorers.scoring import NO_ANSWER, bad_gold, per_answer

METRICS = ("exact", "recall")
FIELDS = ("gold",)
VERSION = 1

_NUMBER = re.compile(
    r"(?<![\w.])\d{1,3}(?:[,'’.\u00a0\u202f\u2009 ]\d{3}){1,6}(?![\w,.]\d)(?!\w)|\d{1,40}"
)
_NOT_DIGITS = re.compile(r"\D")
_MOST_NUMBERS = 10_000


@per_answer(METRICS)
def score(item: Item, text: str) -> Value | Sequence[Value]:
    """Look for the needles of each item, a text or number or a list of them.

    `recall`: the share that was found. `exact`: all were, and no other number as long as a needle.

    Example:
        >>> item = Item("ruler", "1", gold="1234567")
        >>> values = score([item] * 3, ["It is 1,234,567.", "1234567 or 7654321", "12345678"])
        >>> [value.value for value in values["exact"]]
        [1.0, 0.0, 0.0]
    """
    needles = _needles(item.gold)
    if not needles:
        return bad_gold(item.gold)
    numbers = _numbers(text)
    said = f" {' '.join(tokens(text))} "
    found = {needle for needle in needles if needle in numbers or f" {needle} " in said}
    lengths = {len(needle) for needle in needles if needle.isdigit()}
    others = {number for number in numbers if len(number) in lengths} - needles
    if not found and not others:
        return NO_ANSWER
    shown = "; ".join(sorted(found | set(sorted(others)[:5])))[:200]
    return (
        Value(float(found == needles and not others), answer=shown),
        Value(len(found) / len(needles), answer=shown),
    )


def _needles(gold: Any) -> set[str]:
    listed = list(gold) if isinstance(gold, list | tuple) else [] if gold is None else [gold]
    plain = {
        _NOT_DIGITS.sub("", str(one))
        if _NUMBER.fullmatch(str(one).strip())
        else " ".join(tokens(str(one)))
        for one in listed
    }
    return plain - {""}


def _numbers(text: str) -> set[str]:
    """The numbers of a text as digits alone, with and without what may be their separators."""
    matches = itertools.islice(_NUMBER.finditer(text), _MOST_NUMBERS)
    return {_NOT_DIGITS.sub("", match[0]) for match in matches}


def by_position(
    items: Sequence[Item], values: Sequence[Value], depths: int = 5
) -> dict[tuple[int, float], tuple[int, float]]:
    """Mean value by length of the context and depth of the needle.

    The items have `meta["length"]` (a whole number) and `meta["depth"]` (0 beginning, 1 end), which
    is divided into `depths` parts. Returns (length, depth from) -> (number of items, mean); values
    without a number are left out.

    Example:
        >>> items = [Item("r", str(n), meta={"length": 4000, "depth": n / 10}) for n in range(10)]
        >>> by_position(items, [Value(float(n > 4)) for n in range(10)], depths=2)
        {(4000, 0.0): (5, 0.0), (4000, 0.5): (5, 1.0)}
    """
    cells: dict[tuple[int, float], list[float]] = {}
    for item, value in zip(items, values, strict=True):
        length, depth = item.meta.get("length"), item.meta.get("depth")
        if value.value is not None and length is not None and depth is not None:
            part = min(int(float(depth) * depths), depths - 1) / depths
            cells.setdefault((int(length), part), []).append(value.value)
    return {cell: (len(held), fmean(held)) for cell, held in sorted(cells.items())}
