"""Words and lists: order, spelling, letters, counting."""

from __future__ import annotations

import itertools
import random
from collections.abc import Collection, Sequence

from forgetmap.evaluate.suites.common import Fact, draw

SOURCE = "read off the words"
_LEVELS = ("easy", "medium", "hard")
WORDS = tuple(
    """anchor apple apron arrow autumn badge bakery balcony ball bamboo banana basket beach bell
    bicycle blanket boat bottle branch bread bridge broom brush bucket butter button cabin cactus
    camera candle canoe canvas carpet carrot castle cave chain chair cherry chimney circle clock
    cloud coat coffee comb compass copper corner cotton cradle crayon cricket crown cup curtain
    desert desk diamond dinner dolphin door dragon drawer dream drum eagle engine envelope feather
    fence fiddle field finger flame flower forest fountain fox frame garden garlic gate giant glass
    glove goose grape guitar hammer harbour harvest hat hill honey horse island ivory jacket jewel
    jungle kettle key kitchen kite ladder lake lamp lantern leaf lemon letter lighthouse lion lizard
    lock magnet map marble market meadow melon mirror monkey moon mountain mushroom needle nest
    notebook ocean olive onion orange orchard otter oven owl paddle paint palace panther paper parrot
    peach pearl pencil pepper pigeon pillow pirate planet plate pocket potato puzzle rabbit radio
    raft rain ribbon river rocket roof rope saddle sail salt sand scarf school shadow sheep shell
    ship silver sister sky snow soap sock spider spoon spring squirrel stable star station stone
    storm stove sugar summer swan table teapot temple tent thunder tiger toast tomato tower town
    train tree trumpet tunnel turtle umbrella valley velvet village violin wagon wall walnut water
    whale wheel whistle window winter wolf wool yarn zebra""".split()
)
TRICKY = tuple(
    """accommodate accidentally achievement acknowledge acquaintance acquire across address
    advertisement aggressive apparent appearance appropriate argument assassinate atmosphere
    attendance awkward bankruptcy beautiful beginning believe beneficial bureaucracy business calendar
    camouflage career catastrophe category cemetery challenge character colleague collectible column
    commemorate commitment committee comparison competition completely conscience conscientious
    conscious consensus convenience correspondence courteous criticism curiosity deceive definitely
    dependent desperate development dictionary dilemma disappear disappoint discipline discrepancy
    ecstasy efficient eighth embarrass environment equipment especially exaggerate excellent
    exhilarate existence experience extraordinary familiar fascinate February fluorescent foreign
    forfeit forty fourth friend fulfilment gauge glamorous government grammar grateful guarantee
    guidance handkerchief happened harass height hierarchy humorous hygiene hypocrisy
    imagination immediately incidentally independent indispensable ingenious inoculate intelligence
    interesting interference interrupt irresistible itinerary jealous knowledge laboratory leisure
    library licence lightning likelihood literature maintenance manoeuvre medieval mediterranean
    millennium miniature miscellaneous mischievous misspell mysterious necessary neighbour
    noticeable nuisance occasion occasionally occurred occurrence opportunity parallel parliament
    particular pastime perceive permanent permission persistent personnel perseverance pharaoh
    phenomenon playwright possession possibility precede preferred prejudice preparation presence
    privilege probably procedure proceed professional pronunciation psychology publicly
    questionnaire queue receipt receive recommend reference referred relevant religious
    remembrance repetition resistance restaurant rhythm ridiculous sacrifice sandwich schedule
    scissors secretary seize separate sergeant similar sincerely skilful souvenir strength
    subtle successful sufficient supersede surprise surveillance susceptible suspicious technique
    temperature temporary tendency therefore thorough threshold tomorrow tongue tragedy transferred
    tyranny unanimous unforgettable unfortunately unnecessary vaccinate vacuum vegetable vehicle
    vengeance veterinary vicious villain visible volunteer Wednesday weird wholly withhold
    yacht yield""".split()
)


def alphabetical(rng: random.Random) -> Sequence[Fact]:
    """The word that comes first in a dictionary; hard ones begin alike."""

    def make(rng: random.Random, number: int) -> Fact:
        level = number % 3
        right = rng.choice(WORDS)
        later = [word for word in WORDS if word > right and word[:level] == right[:level]]
        if len(later) < 3:
            return make(rng, number)
        wrong = rng.sample(later, 3)
        return Fact(
            f"first-{'-'.join((right, *sorted(wrong)))}",
            "Which of these words comes first in alphabetical order?", right, wrong,
            _LEVELS[level], SOURCE,
        )  # fmt: skip

    return draw(150, rng, make)


def spelling(_: random.Random) -> Sequence[Fact]:
    """The right spelling of a word that many get wrong, among wrong ones."""
    return [
        Fact(
            f"spelling-{word}", "Which of these is the correct spelling?", word, misspellings(word),
            "easy" if len(word) < 8 else "hard", "word list of forgetmap",
        )
        for word in TRICKY
        if len(misspellings(word)) >= 3
    ]  # fmt: skip


def misspellings(word: str) -> Collection[str]:
    """Slips of the pen: a letter of the inside doubled or halved, a vowel changed, two swapped.

    Example:
        >>> sorted(misspellings("yield"))[:3]
        ['yeald', 'yeild', 'yeld']
    """
    found = set()
    for place in range(1, len(word) - 1):
        here, after = word[place], word[place + 1]
        if here == after:
            found.add(word[:place] + word[place + 1 :])
        elif here in "lmnprst" and here != word[place - 1]:
            found.add(word[:place] + here + word[place:])
        if here in "aeiou" and after in "aeiou" and here != after:
            found.add(word[:place] + after + here + word[place + 2 :])
        if here in "aei":
            found.add(word[:place] + {"a": "e", "e": "a", "i": "e"}[here] + word[place + 1 :])
    for right, wrong in (("ie", "e"), ("sc", "s"), ("ough", "ogh"), ("th", "t"), ("y", "i")):
        if right in word[1:]:
            found.add(word[0] + word[1:].replace(right, wrong, 1))
    return found - _REAL - {word}


_REAL = frozenset(("dependant", "eight"))
"""Slips that lead to another word, or to a spelling that many accept."""


def reversed_words(rng: random.Random) -> Sequence[Fact]:
    """A word written backwards."""

    def make(rng: random.Random, number: int) -> Fact:
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

    return draw(150, rng, make)


def sorting(rng: random.Random) -> Sequence[Fact]:
    """Numbers from the smallest to the largest."""

    def make(rng: random.Random, number: int) -> Fact:
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

    return draw(150, rng, make)


_PLACES = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")


def list_position(rng: random.Random) -> Sequence[Fact]:
    """The word at a place of a list, counted from its beginning or its end."""

    def make(rng: random.Random, number: int) -> Fact:
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

    return draw(150, rng, make)


def letter_counts(rng: random.Random) -> Sequence[Fact]:
    """How often a letter stands in a word, as an open question."""

    def make(rng: random.Random, number: int) -> Fact:
        level = number % 3
        word = rng.choice([word for word in (*WORDS, *TRICKY) if _length(word) == level])
        letter = rng.choice(word.lower())
        return Fact(
            f"letter-{letter}-{word}", f"How often does the letter “{letter}” occur in “{word}”?",
            str(word.lower().count(letter)), (), _LEVELS[level], SOURCE,
        )  # fmt: skip

    return draw(150, rng, make)


def _length(word: str) -> int:
    return 0 if len(word) <= 5 else 1 if len(word) <= 9 else 2


def different_words(rng: random.Random) -> Sequence[Fact]:
    """How many different words a list holds, as an open question."""

    def make(rng: random.Random, number: int) -> Fact:
        level = number % 3
        listed = rng.choices(rng.sample(WORDS, 3 + level), k=5 + 2 * level)
        return Fact(
            f"different-{'-'.join(listed)}",
            f"How many different words are in this list: {', '.join(listed)}?",
            str(len(set(listed))), (), _LEVELS[level], SOURCE,
        )  # fmt: skip

    return draw(120, rng, make)


def first_letters(rng: random.Random) -> Sequence[Fact]:
    """The first letters of some words as one word, as an open question."""

    def make(rng: random.Random, number: int) -> Fact:
        level = number % 3
        listed = rng.sample(WORDS, 3 + level)
        return Fact(
            f"letters-{'-'.join(listed)}",
            f"Write the first letters of these words one after another: {', '.join(listed)}.",
            "".join(word[0] for word in listed), (), _LEVELS[level], SOURCE,
        )  # fmt: skip

    return draw(120, rng, make)
