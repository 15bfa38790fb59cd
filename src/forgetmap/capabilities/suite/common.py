"""What the generators of the suite share: drafts of items, balanced options, names."""

from __future__ import annotations

import itertools
import math
import random
import string
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from forgetmap.answers.items import Item
from forgetmap.base.errors import InputError

Maker = Callable[[random.Random, int], list[Item]]
"""Makes that many different items of one task; task and ref are filled in later."""

NAMES = (
    *("Mara", "Tobin", "Ilse", "Oren", "Petra", "Lukas", "Nadia", "Soren", "Vera", "Emil"),
    *("Greta", "Hugo", "Jana", "Kofi", "Lena", "Milo", "Noor", "Otto", "Rhea", "Timo"),
)
OBJECTS = (
    *("lantern", "violin", "basket", "compass", "kettle", "ladder", "telescope", "blanket"),
    *("hammer", "teapot", "saddle", "mirror", "trumpet", "anchor", "clock", "candle"),
)
PLACES = (
    *("harbour", "library", "orchard", "market", "lighthouse", "bakery", "station", "museum"),
    *("workshop", "school", "theatre", "garden", "tower", "mill", "chapel", "stable"),
)
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
COLOURS = ("red", "blue", "green", "yellow", "white", "black", "brown", "grey")


def draft(prompt: str | Sequence[str], gold: Any, reference: str, **fields: Any) -> Item:
    """An item without task and ref; `reference` is an answer that gets full marks."""
    meta = {**fields.pop("meta", {}), "reference": reference}
    return Item(task="", ref="", prompt=prompt, gold=gold, meta=meta, **fields)


def distinct(n: int, draw: Callable[[int], Item]) -> list[Item]:
    """Draw until there are `n` items with different prompts; `draw` gets the item's number."""
    items: dict[str, Item] = {}
    for _ in range(200 * n):
        if len(items) == n:
            break
        item = draw(len(items))
        items.setdefault(str(item.prompt), item)
    if len(items) < n:
        raise InputError(f"this part of the suite has only about {len(items)} items, not {n}")
    return list(items.values())


def drawn(*balanced: Sequence[Any]) -> Callable[[Callable[..., Item]], Maker]:
    """Turn a function that draws one item into a maker of many different ones.

    The function gets the random generator, the item's number, and one value of each sequence in
    `balanced`; every value comes up about equally often.
    """

    def maker(draw: Callable[..., Item]) -> Maker:
        @wraps(draw)
        def make(rng: random.Random, n: int) -> list[Item]:
            columns = [spread(rng, n, values) for values in balanced]
            return distinct(
                n, lambda number: draw(rng, number, *(column[number] for column in columns))
            )

        return make

    return maker


def spread(rng: random.Random, n: int, values: Sequence[Any]) -> list[Any]:
    """Each value about equally often, in random order.

    Example:
        >>> sorted(spread(random.Random(0), 5, "AB"))
        ['A', 'A', 'A', 'B', 'B']
    """
    drawn = [values[number % len(values)] for number in range(n)]
    rng.shuffle(drawn)
    return drawn


def options(
    rng: random.Random, right: str, wrong: Sequence[str], position: int
) -> tuple[list[str], str]:
    """The options with the right one at a given position, and its letter.

    Example:
        >>> options(random.Random(0), "Rome", ["Oslo"], 1)
        (['Oslo', 'Rome'], 'B')
    """
    listed = list(wrong)
    rng.shuffle(listed)
    listed.insert(position, right)
    return listed, string.ascii_uppercase[position]


def lettered(question: str, choices: Sequence[str]) -> str:
    """A question with its options, and how to answer it."""
    letters = string.ascii_uppercase
    lines = [f"{letter}) {text}" for letter, text in zip(letters, choices, strict=False)]
    return "\n".join([question, *lines, "Answer with the letter of the right option."])


def combinations(n: int, *parts: Sequence[str]) -> list[tuple[str, ...]]:
    """`n` different combinations that use every value of every part about equally often.

    Example:
        >>> combinations(3, ["a", "b"], ["x", "y"])
        [('a', 'x'), ('b', 'x'), ('a', 'y')]
    """
    most = math.prod(map(len, parts))
    if n > most:
        raise InputError(f"this part of the suite has only {most} items, not {n}")
    # product() turns its last part fastest; here the first part is to turn fastest.
    drawn_backwards = itertools.islice(itertools.product(*reversed(parts)), n)
    return [combination[::-1] for combination in drawn_backwards]
