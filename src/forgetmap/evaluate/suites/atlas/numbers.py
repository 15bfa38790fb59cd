"""Arithmetic: sums, products, remainders, percentages, fractions, several steps."""

from __future__ import annotations

import random
from collections.abc import Collection
from fractions import Fraction

from forgetmap.evaluate.suites.common import Fact, drawn

SOURCE = "computed"
_LEVELS = ("easy", "medium", "hard", "very hard")


def near_misses(right: int) -> Collection[str]:
    """Whole numbers that a slip leads to: off by one, by ten, by two digits swapped.

    Example:
        >>> sorted(near_misses(12), key=int)
        ['2', '10', '11', '13', '14', '21', '22']
    """
    digits = str(abs(right))
    slips = {right + off for off in (-10, -2, -1, 1, 2, 10)}
    for place in range(len(digits) - 1):
        swapped = digits[:place] + digits[place + 1] + digits[place] + digits[place + 2 :]
        slips.add(int(swapped) * (-1 if right < 0 else 1))
    kept = {value for value in slips if value != right and (value >= 0 or right < 0)}
    return {str(value) for value in kept}


@drawn(200)
def addition(rng: random.Random, number: int) -> Fact:
    """Sums and differences of numbers with one to four digits."""
    size = number % 4 + 1
    one, other = (rng.randint(10 ** (size - 1), 10**size - 1) for _ in range(2))
    sign = "+" if number % 8 < 4 else "-"
    one, other = (one, other) if sign == "+" else (max(one, other), min(one, other))
    right = one + other if sign == "+" else one - other
    return Fact(
        f"{one}{sign}{other}", f"What is {one} {sign} {other}?", str(right),
        near_misses(right), _LEVELS[size - 1], SOURCE,
    )  # fmt: skip


@drawn(180)
def multiplication(rng: random.Random, number: int) -> Fact:
    """Products, from the small table to three digits by two."""
    level = number % 4
    ranges = (
        ((2, 9), (2, 9)),
        ((11, 19), (3, 9)),
        ((21, 99), (11, 39)),
        ((101, 999), (12, 99)),
    )
    one, other = (rng.randint(*bounds) for bounds in ranges[level])
    right = one * other
    wrong = {*near_misses(right), str(right + one), str(right + other)}
    return Fact(
        f"{one}x{other}", f"What is {one} times {other}?", str(right), wrong, _LEVELS[level],
        SOURCE,
    )  # fmt: skip


@drawn(180)
def remainders(rng: random.Random, number: int) -> Fact:
    """What is left over in a division."""
    level = number % 3
    divisor = rng.randint(*((5, 9), (7, 19), (13, 29))[level])
    dividend = rng.randint(*((20, 99), (100, 499), (500, 9999))[level])
    right = str(dividend % divisor)
    return Fact(
        f"{dividend}mod{divisor}",
        f"What is the remainder when {dividend} is divided by {divisor}?", right,
        {str(rest) for rest in range(divisor)} - {right}, _LEVELS[level], SOURCE,
    )  # fmt: skip


@drawn(180)
def percentages(rng: random.Random, number: int) -> Fact:
    """A share of a number that comes out whole."""
    level = number % 3
    share = rng.choice(((10, 50, 25, 20), (5, 15, 30, 40, 60), (12, 35, 45, 65, 85))[level])
    whole = rng.randint(1, (20, 40, 90)[level]) * 20 * (5 if share == 12 else 1)
    right = whole * share // 100
    wrong = {*near_misses(right), str(2 * right), str(whole - right)} - {str(right)}
    return Fact(
        f"{share}of{whole}", f"What is {share} percent of {whole}?", str(right), wrong,
        _LEVELS[level], SOURCE,
    )  # fmt: skip


@drawn(150)
def largest_fraction(rng: random.Random, number: int) -> Fact:
    """The largest of four fractions."""
    level = number % 3
    bound = (9, 15, 30)[level]
    fractions: dict[Fraction, str] = {}
    while len(fractions) < 7:
        below = rng.randint(3, bound)
        above = rng.randint(1, below - 1)
        fractions.setdefault(Fraction(above, below), f"{above}/{below}")
    right = max(fractions)
    wrong = [text for value, text in fractions.items() if value != right]
    return Fact(
        f"largest-{'-'.join(fractions[value].replace('/', ':') for value in sorted(fractions))}",
        "Which of these fractions is the largest?", fractions[right], wrong, _LEVELS[level], SOURCE,
    )  # fmt: skip


@drawn(180)
def steps(rng: random.Random, number: int) -> Fact:
    """Several operations one after another, as an open question."""
    level = number % 4
    value = start = rng.randint(2, 20)
    said = []
    for _ in range(level + 1):
        kind, by = rng.choice(("add", "take away", "multiply by")), rng.randint(2, 9)
        value = {"add": value + by, "take away": value - by, "multiply by": value * by}[kind]
        said.append(f"{kind} {by}")
    prompt = f"Start with {start}; {', then '.join(said)}. What is the result?"
    return Fact(
        f"{start}-{'-'.join(said)}".replace(" ", "_"), prompt, str(value), (), _LEVELS[level],
        SOURCE,
    )  # fmt: skip
