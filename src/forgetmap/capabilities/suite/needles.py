"""H5, long contexts: needles at chosen lengths and depths, after the manner of RULER."""

from __future__ import annotations

import random
from typing import NamedTuple

from forgetmap.answers.items import Item
from forgetmap.capabilities.suite.common import (
    COLOURS,
    DAYS,
    NAMES,
    OBJECTS,
    PLACES,
    distinct,
    draft,
    spread,
)

LENGTHS = (500, 2000, 8000)
"""Words of the haystack."""
DEPTHS = (0.0, 0.25, 0.5, 0.75, 1.0)
KINDS = ("single", "many_keys", "many_values", "tracking")
_FILLERS = (
    "In the evening {name} walked past the {place} and thought of nothing in particular.",
    "The {thing} stood where it had always stood, a little crooked.",
    "Nobody at the {place} remembered when the {colour} door had last been painted.",
    "{name} said that the weather would hold, and for once it did.",
    "A {colour} cat slept on the steps of the {place} until noon.",
    "By {day} the talk had turned to other matters.",
    "{name} lent the {thing} to a neighbour and did not ask for it back.",
    "There was a smell of rain and of fresh bread near the {place}.",
)


class Needle(NamedTuple):
    """What is hidden: the sentences in order, the question and what it asks for."""

    sentences: list[str]
    question: str
    gold: list[str]
    at: int
    """Which of the sentences stands at the depth that the item names."""


def needles(rng: random.Random, n: int) -> list[Item]:
    """Every kind at every length and depth, in turn."""
    plans = [(kind, length, depth) for depth in DEPTHS for length in LENGTHS for kind in KINDS]
    plans = spread(rng, n, rng.sample(plans, len(plans)))

    def draw(number: int) -> Item:
        kind, length, depth = plans[number]
        needle = _MAKERS[kind](rng)
        text = " ".join(_hide(rng, _haystack(rng, length), needle, depth))
        return draft(
            f"Read the text and answer the question at its end.\n\n{text}\n\n{needle.question} "
            "Reply with the number or numbers only.",
            needle.gold,
            ", ".join(needle.gold),
            meta={"kind": kind, "length": length, "depth": depth},
        )

    return distinct(n, draw)


def _haystack(rng: random.Random, length: int) -> list[str]:
    sentences, words = [], 0
    while words < length:
        sentence = rng.choice(_FILLERS).format(
            name=rng.choice(NAMES), place=rng.choice(PLACES), thing=rng.choice(OBJECTS),
            colour=rng.choice(COLOURS), day=rng.choice(DAYS),
        )  # fmt: skip
        sentences.append(sentence)
        words += len(sentence.split())
    return sentences


def _hide(rng: random.Random, haystack: list[str], needle: Needle, depth: float) -> list[str]:
    """Put one sentence at the depth, those before and after it anywhere on their side."""
    middle = round(depth * len(haystack))
    before = sorted(rng.randint(0, middle) for _ in needle.sentences[: needle.at])
    after = sorted(rng.randint(middle, len(haystack)) for _ in needle.sentences[needle.at + 1 :])
    text = list(haystack)
    places = [*before, middle, *after]
    for place, sentence in reversed(list(zip(places, needle.sentences, strict=True))):
        text.insert(place, sentence)
    return text


def _numbers(rng: random.Random, n: int) -> list[str]:
    return [str(number) for number in rng.sample(range(1_000_000, 10_000_000), n)]


def _said(key: str, number: str) -> str:
    return f"The secret number of the {key} is {number}."


def _keys(rng: random.Random, n: int) -> list[str]:
    return [f"{rng.choice(COLOURS)} {thing}" for thing in rng.sample(OBJECTS, n)]


def _single(rng: random.Random) -> Needle:
    [key], [number] = _keys(rng, 1), _numbers(rng, 1)
    return Needle([_said(key, number)], f"What is the secret number of the {key}?", [number], 0)


def _many_keys(rng: random.Random) -> Needle:
    keys, numbers = _keys(rng, 4), _numbers(rng, 4)
    at = rng.randrange(4)
    return Needle(
        [_said(key, number) for key, number in zip(keys, numbers, strict=True)],
        f"What is the secret number of the {keys[at]}?", [numbers[at]], at,
    )  # fmt: skip


def _many_values(rng: random.Random) -> Needle:
    [key], numbers = _keys(rng, 1), _numbers(rng, 3)
    return Needle(
        [f"One of the secret numbers of the {key} is {number}." for number in numbers],
        f"What are all three secret numbers of the {key}?", numbers, rng.randrange(3),
    )  # fmt: skip


def _tracking(rng: random.Random) -> Needle:
    keys, [number] = _keys(rng, 3), _numbers(rng, 1)
    chain = [
        f"The {keys[1]} has the same secret number as the {keys[0]}.",
        f"The {keys[2]} has the same secret number as the {keys[1]}.",
    ]
    question = f"What is the secret number of the {keys[2]}?"
    return Needle([_said(keys[0], number), *chain], question, [number], 0)


_MAKERS = dict(zip(KINDS, (_single, _many_keys, _many_values, _tracking), strict=True))
