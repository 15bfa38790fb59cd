"""Logic: orders, syllogisms, truth values, turns, swaps."""

from __future__ import annotations

import random
from itertools import pairwise

from forgetmap.evaluate.suites.common import Fact, drawn

SOURCE = "derived from the statements"
NAMES = (
    *("Ada", "Ben", "Carla", "Dmitri", "Elif", "Femi", "Grace", "Hiro", "Ines", "Jonas", "Kira"),
    *("Liam", "Mona", "Nils", "Olga", "Pedro", "Rosa", "Sven", "Tara", "Umar", "Wanda", "Yusuf"),
)
_KINDS = (
    *("blips", "drons", "melks", "farps", "glims", "hobbers", "jats", "krells", "lomps", "nurbs"),
    *("pilks", "quons", "rabs", "snids", "tovs", "vims", "wugs", "yorks", "zents", "torps"),
)
_LEVELS = ("easy", "medium", "hard")
_COMPARED = (("older", "oldest", "youngest"), ("taller", "tallest", "shortest"),
             ("faster", "fastest", "slowest"), ("richer", "richest", "poorest"))  # fmt: skip


@drawn(150)
def orderings(rng: random.Random, number: int) -> Fact:
    """Who stands at one end of an order told pair by pair."""
    level = number % 3
    people = rng.sample(NAMES, 4 + level)
    more, most, least = rng.choice(_COMPARED)
    pairs = [f"{one} is {more} than {two}." for one, two in pairwise(people)]
    rng.shuffle(pairs)
    asked, right = rng.choice(((most, people[0]), (least, people[-1])))
    return Fact(
        f"order-{more}-{asked}-{'-'.join(people)}", f"{' '.join(pairs)} Who is the {asked}?",
        right, [one for one in people if one != right], _LEVELS[level], SOURCE,
    )  # fmt: skip


@drawn(150)
def syllogisms(rng: random.Random, number: int) -> Fact:
    """The one statement that follows from the others."""
    level = number % 3
    chain = rng.sample(_KINDS, 3 + level)
    first, last = chain[0], chain[-1]
    some, no = rng.random() < 0.5, rng.random() < 0.5
    said = [f"All {one} are {two}." for one, two in pairwise(chain)]
    if some:
        said[0] = f"Some {first} are {chain[1]}."
    if no:
        said[-1] = f"No {chain[-2]} are {last}."
    right, wrong = _conclusion(first, last, some, no)
    rng.shuffle(said)
    return Fact(
        f"syllogism-{'some' if some else 'all'}-{'no' if no else 'all'}-{'-'.join(chain)}",
        f"{' '.join(said)} Which of these statements must be true?", right, wrong,
        _LEVELS[level], SOURCE,
    )  # fmt: skip


def _conclusion(one: str, two: str, some: bool, no: bool) -> tuple[str, list[str]]:
    """What follows about two kinds, and what does not."""
    follows = {
        (False, False): f"All {one} are {two}.",
        (False, True): f"No {one} are {two}.",
        (True, False): f"Some {one} are {two}.",
        (True, True): f"Some {one} are not {two}.",
    }
    right = follows[some, no]
    wrong = {
        (False, False): [f"All {two} are {one}.", f"No {one} are {two}.",
                         f"Some {one} are not {two}.", f"No {two} are {one}."],
        (False, True): [f"All {one} are {two}.", f"Some {one} are {two}.", f"All {two} are {one}.",
                        f"Some {two} are {one}."],
        (True, False): [f"All {one} are {two}.", f"No {one} are {two}.", f"All {two} are {one}.",
                        f"No {two} are {one}."],
        (True, True): [f"All {one} are {two}.", f"No {one} are {two}.", f"All {two} are {one}.",
                       f"Some {two} are not {one}."],
    }[some, no]  # fmt: skip
    return right, wrong


@drawn(120)
def true_expression(rng: random.Random, number: int) -> Fact:
    """The only true one of four expressions of propositional logic."""
    level = number % 2
    right, wrong = "", set[str]()
    while not right or len(wrong) < 5:
        text, value = _expression(rng, level + 2)
        if not value:
            wrong.add(text)
        elif not right:
            right = text
    return Fact(
        f"true-{right.replace(' ', '_')}", "Which of these expressions is true?", right, wrong,
        "hard" if level else "easy", SOURCE,
    )  # fmt: skip


def _expression(rng: random.Random, depth: int) -> tuple[str, bool]:
    """An expression and its value; both are built together, nothing is evaluated from text."""
    if depth == 0:
        value = rng.random() < 0.5
        return str(value), value
    (one, left), (two, right) = _expression(rng, depth - 1), _expression(rng, rng.randrange(depth))
    kind = rng.choice(("and", "or", "xor"))
    value = {"and": left and right, "or": left or right, "xor": left != right}[kind]
    if rng.random() < 0.4:
        return f"not ({one} {kind} {two})", not value
    return f"({one} {kind} {two})", value


_COMPASS = ("north", "east", "south", "west")
_TURNS = {"turn left": -1, "turn right": 1, "turn around": 2}


@drawn(130)
def directions(rng: random.Random, number: int) -> Fact:
    """Where somebody looks after some turns."""
    level = number % 3
    place = start = rng.randrange(4)
    turns = rng.choices(list(_TURNS), k=3 + 2 * level)
    place = (start + sum(_TURNS[turn] for turn in turns)) % 4
    right = _COMPASS[place]
    return Fact(
        f"turns-{start}-{'-'.join(turn.split()[1] for turn in turns)}",
        f"You face {_COMPASS[start]}. You {', '.join(turns)}. Which way do you face now?",
        right, set(_COMPASS) - {right}, _LEVELS[level], SOURCE,
    )  # fmt: skip


_BALLS = ("red", "blue", "green", "yellow", "white", "black")


@drawn(150)
def swaps(rng: random.Random, number: int) -> Fact:
    """Who holds a ball after some swaps."""
    level = number % 3
    people = rng.sample(NAMES, 4)
    held = dict(zip(people, rng.sample(_BALLS, 4), strict=True))
    said = [", ".join(f"{one} has the {ball} ball" for one, ball in held.items()) + "."]
    ref = [f"{one}:{ball}" for one, ball in held.items()]
    for _ in range(2 + 2 * level):
        one, two = rng.sample(people, 2)
        held[one], held[two] = held[two], held[one]
        said.append(f"{one} and {two} swap.")
        ref.append(f"{one}+{two}")
    right = rng.choice(people)
    prompt = f"{' '.join(said)} Who has the {held[right]} ball now?"
    return Fact(
        f"swaps-{'-'.join(ref)}-{held[right]}", prompt, right,
        [one for one in people if one != right], _LEVELS[level], SOURCE,
    )  # fmt: skip
