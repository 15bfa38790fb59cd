"""C2, reasoning in several steps to an answer that can be checked."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

from forgetmap.answers.items import Item
from forgetmap.capabilities.suite.common import NAMES, draft, drawn, lettered, options
from forgetmap.capabilities.suite.knowledge import END_WITH_NUMBER

STEPS: tuple[tuple[str, Callable[[int, int], int]], ...] = (
    ("doubles what {name} has", lambda x, _k: 2 * x),
    ("gives {name} {k} more", lambda x, k: x + k),
    ("takes {k} away from {name}", lambda x, k: x - k),
    ("replaces every coin of {name} by {k}", lambda x, k: x * k),
)


@drawn()
def chains(rng: random.Random, number: int) -> Item:
    """Three to six steps, one after the other."""
    name, other = rng.sample(NAMES, 2)
    amount = rng.randint(10, 60)
    told = [f"{name} starts with {amount} coins."]
    work = [f"{amount}"]
    for _ in range(3 + number % 4):
        k = rng.randint(2, 9)
        words, step = rng.choice([each for each in STEPS if 0 < each[1](amount, k) < 5000])
        amount = step(amount, k)
        told.append(f"{other} {words.format(name=name, k=k)}.")
        work.append(f"then {amount}")
    question = f"How many coins does {name} have in the end? Go step by step."
    return draft(
        f"{' '.join(told)} {question} {END_WITH_NUMBER}",
        str(amount),
        f"{', '.join(work)}.\nAnswer: {amount}",
    )


@drawn(range(4))
def orders(rng: random.Random, _number: int, place: int) -> Item:
    """Who comes where, from comparisons in random order."""
    people = rng.sample(NAMES, 4)  # from tallest to smallest
    pairs = [f"{a} is taller than {b}." for a, b in pairwise(people)]
    rng.shuffle(pairs)
    rank = rng.randrange(4)
    wanted = ("the tallest", "the second tallest", "the third tallest", "the smallest")[rank]
    wrong = [person for person in people if person != people[rank]]
    choices, letter = options(rng, people[rank], wrong, place)
    return draft(
        lettered(f"{' '.join(pairs)} Who is {wanted}?", choices), letter, letter,
        choices=choices,
    )  # fmt: skip


@drawn()
def equations(rng: random.Random, _number: int) -> Item:
    """Linear equations with whole and broken solutions."""
    a, b, c = rng.randint(2, 12), rng.randint(1, 30), rng.randint(31, 90)
    x = Fraction(c - b, a)
    gold = str(x.numerator) if x.denominator == 1 else rf"\frac{{{x.numerator}}}{{{x.denominator}}}"
    return draft(
        rf"Solve for x: ${a}x + {b} = {c}$. Put the exact solution in \boxed{{}}.",
        gold,
        rf"${a}x = {c - b}$, so $x = \boxed{{{gold}}}$.",
    )
