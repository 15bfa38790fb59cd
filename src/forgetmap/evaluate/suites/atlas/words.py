"""Words and lists: order, spelling, letters, counting."""

from __future__ import annotations

import itertools
import random
from collections.abc import Collection, Sequence
from importlib.resources import files

from forgetmap.evaluate.suites.common import Fact, drawn

SOURCE = "read off the words"
_LEVELS = ("easy", "medium", "hard")


def _listed(name: str) -> tuple[str, ...]:
    path = files("forgetmap.evaluate.suites").joinpath("data", name)
    return tuple(path.read_text(encoding="utf-8").split())


WORDS = _listed("words.txt")
"""Plain words."""
TRICKY = _listed("spelling.txt")
"""Words that many misspell."""


@drawn(150)
def alphabetical(rng: random.Random, number: int) -> Fact:
    """The word that comes first in a dictionary; hard ones begin alike."""
    level = number % 3
    later: list[str] = []
    while len(later) < 3:
        right = rng.choice(WORDS)
        later = [word for word in WORDS if word > right and word[:level] == right[:level]]
    wrong = rng.sample(later, 3)
    return Fact(
        f"first-{'-'.join((right, *sorted(wrong)))}",
        "Which of these words comes first in alphabetical order?", right, wrong,
        _LEVELS[level], SOURCE,
    )  # fmt: skip


def spelling(_: random.Random) -> Sequence[Fact]:
    """The right spelling of a word that many get wrong, among wrong ones of the same length.

    Options are written letter by letter. A tokenizer knows most right spellings as one token, so
    that the likelihood of whole words would say which has the fewest tokens.
    """
    return [
        Fact(
            f"spelling-{word}", "Which of these is the correct spelling?", _letters(word),
            [_letters(slip) for slip in same_length(word)],
            "easy" if len(word) < 8 else "hard", "word list of forgetmap",
        )
        for word in TRICKY
        if len(same_length(word)) >= 3
    ]  # fmt: skip


def same_length(word: str) -> list[str]:
    """The misspellings that are as long as the word."""
    return sorted(slip for slip in misspellings(word) if len(slip) == len(word))


def _letters(word: str) -> str:
    return "-".join(word)


def misspellings(word: str) -> Collection[str]:
    """Slips of the pen: a letter of the inside doubled or halved, a vowel changed, two swapped.

    Example:
        >>> sorted(misspellings("yield"))[:3]
        ['yeeld', 'yeild', 'yeld']
    """
    slips = set()
    for place in range(1, len(word) - 1):
        here, after = word[place], word[place + 1]
        if here == after:
            slips.add(word[:place] + word[place + 1 :])
        elif here in "lmnprst" and here != word[place - 1]:
            slips.add(word[:place] + here + word[place:])
        if here in "aeiou" and after in "aeiou" and here != after:
            slips.add(word[:place] + after + here + word[place + 2 :])
        if here in "aei":
            slips.add(word[:place] + {"a": "e", "e": "a", "i": "e"}[here] + word[place + 1 :])
    for right, wrong in (("ie", "e"), ("sc", "s"), ("ough", "ogh"), ("th", "t"), ("y", "i")):
        if right in word[1:]:
            slips.add(word[0] + word[1:].replace(right, wrong, 1))
    return slips - _REAL - {word}


_REAL = frozenset(("carer", "dependant", "eight", "fulfillment", "skillful"))
"""Slips that lead to another word, or to a spelling that many accept."""


@drawn(150)
def reversed_words(rng: random.Random, number: int) -> Fact:
    """A word written backwards."""
    level = number % 3
    long_enough = [word for word in (*WORDS, *TRICKY) if len(word) >= 5]
    word = rng.choice([word for word in long_enough if _length(word) == level])
    right = word[::-1]
    wrong = {
        right[:place] + right[place + 1] + right[place] + right[place + 2 :]
        for place in range(len(right) - 1)
    } - {right}
    return Fact(
        f"reversed-{word}", f"How is “{word}” written backwards?", right, wrong,
        _LEVELS[level], SOURCE,
    )  # fmt: skip


@drawn(150)
def sorting(rng: random.Random, number: int) -> Fact:
    """Numbers from the smallest to the largest."""
    level = number % 3
    bound = (20, 200, 2000)[level]
    values = rng.sample(range(1, bound), 4 + level)
    right = sorted(values)
    wrong = set()
    for one, two in itertools.combinations(range(len(right)), 2):
        slipped = list(right)
        slipped[one], slipped[two] = slipped[two], slipped[one]
        wrong.add(", ".join(map(str, slipped)))
    return Fact(
        f"sort-{'-'.join(map(str, values))}",
        f"Which is the list {', '.join(map(str, values))} sorted from smallest to largest?",
        ", ".join(map(str, right)), wrong, _LEVELS[level], SOURCE,
    )  # fmt: skip


_PLACES = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")


@drawn(150)
def list_position(rng: random.Random, number: int) -> Fact:
    """The word at a place of a list, counted from its beginning or its end."""
    level = number % 3
    listed = rng.sample(WORDS, 5 + 2 * level)
    place = rng.randrange(1, len(listed) - 1)
    from_end = rng.random() < 0.5
    right = listed[-place - 1] if from_end else listed[place]
    side = "from the end" if from_end else "from the beginning"
    return Fact(
        f"place-{place + 1}-{'end' if from_end else 'start'}-{'-'.join(listed)}",
        f"List: {', '.join(listed)}. Which word is the {_PLACES[place]} {side}?", right,
        [word for word in listed if word != right], _LEVELS[level], SOURCE,
    )  # fmt: skip


@drawn(150)
def letter_counts(rng: random.Random, number: int) -> Fact:
    """How often a letter stands in a word, as an open question."""
    level = number % 3
    word = rng.choice([word for word in (*WORDS, *TRICKY) if _length(word) == level])
    letter = rng.choice(word.lower())
    return Fact(
        f"letter-{letter}-{word}", f"How often does the letter “{letter}” occur in “{word}”?",
        str(word.lower().count(letter)), (), _LEVELS[level], SOURCE,
    )  # fmt: skip


def _length(word: str) -> int:
    return 0 if len(word) <= 5 else 1 if len(word) <= 9 else 2


@drawn(120)
def different_words(rng: random.Random, number: int) -> Fact:
    """How many different words a list holds, as an open question."""
    level = number % 3
    listed = rng.choices(rng.sample(WORDS, 3 + level), k=5 + 2 * level)
    return Fact(
        f"different-{'-'.join(listed)}",
        f"How many different words are in this list: {', '.join(listed)}?",
        str(len(set(listed))), (), _LEVELS[level], SOURCE,
    )  # fmt: skip


@drawn(120)
def first_letters(rng: random.Random, number: int) -> Fact:
    """The first letters of some words as one word, as an open question."""
    level = number % 3
    listed = rng.sample(WORDS, 3 + level)
    return Fact(
        f"letters-{'-'.join(listed)}",
        f"Write the first letters of these words one after another: {', '.join(listed)}.",
        "".join(word[0] for word in listed), (), _LEVELS[level], SOURCE,
    )  # fmt: skip
