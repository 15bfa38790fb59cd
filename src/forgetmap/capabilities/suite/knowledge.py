"""C1, what a model knows and can do: facts, arithmetic, small programs; and rephrasings for C5a."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import NamedTuple

from forgetmap.answers.items import Item
from forgetmap.capabilities.suite.common import draft, drawn, lettered, options

SYMBOLS = {
    "hydrogen": "H", "helium": "He", "lithium": "Li", "beryllium": "Be", "boron": "B",
    "carbon": "C", "nitrogen": "N", "oxygen": "O", "fluorine": "F", "neon": "Ne", "sodium": "Na",
    "magnesium": "Mg", "aluminium": "Al", "silicon": "Si", "phosphorus": "P", "sulfur": "S",
    "chlorine": "Cl", "argon": "Ar", "potassium": "K", "calcium": "Ca", "titanium": "Ti",
    "chromium": "Cr", "manganese": "Mn", "iron": "Fe", "cobalt": "Co", "nickel": "Ni",
    "copper": "Cu", "zinc": "Zn", "arsenic": "As", "bromine": "Br", "silver": "Ag", "tin": "Sn",
    "iodine": "I", "tungsten": "W", "platinum": "Pt", "gold": "Au", "mercury": "Hg", "lead": "Pb",
    "radon": "Rn", "uranium": "U",
}  # fmt: skip
CAPITALS = {
    "Austria": "Vienna", "Belgium": "Brussels", "Bulgaria": "Sofia", "Canada": "Ottawa",
    "Chile": "Santiago", "China": "Beijing", "Colombia": "Bogotá", "Croatia": "Zagreb",
    "Cuba": "Havana", "Denmark": "Copenhagen", "Ecuador": "Quito", "Egypt": "Cairo",
    "Ethiopia": "Addis Ababa", "Finland": "Helsinki", "France": "Paris", "Germany": "Berlin",
    "Ghana": "Accra", "Greece": "Athens", "Hungary": "Budapest", "Iceland": "Reykjavik",
    "India": "New Delhi", "Ireland": "Dublin", "Italy": "Rome", "Japan": "Tokyo",
    "Kenya": "Nairobi", "Latvia": "Riga", "Lithuania": "Vilnius", "Morocco": "Rabat",
    "Mongolia": "Ulaanbaatar", "Nepal": "Kathmandu", "Norway": "Oslo", "Peru": "Lima",
    "Poland": "Warsaw", "Portugal": "Lisbon", "Romania": "Bucharest", "Senegal": "Dakar",
    "Slovenia": "Ljubljana", "Spain": "Madrid", "Sweden": "Stockholm", "Uruguay": "Montevideo",
}  # fmt: skip
ALIASES = {"aluminium": ["aluminum"], "sulfur": ["sulphur"], "Bogotá": ["Bogota"],
           "Reykjavik": ["Reykjavík"]}  # fmt: skip


class Fact(NamedTuple):
    """A table of facts and ways to ask for one; the first way is the original."""

    table: dict[str, str]
    choice: tuple[str, str, str]
    short: str


FACTS = (
    Fact(
        SYMBOLS,
        (
            "What is the chemical symbol of {}?",
            "Which of these stands for {} in the periodic table?",
            "A chemist writes down {} in short. What does she write?",
        ),
        "Which chemical element has the symbol {}? Reply with its name only.",
    ),
    Fact(
        CAPITALS,
        (
            "What is the capital of {}?",
            "In which city does the government of {} have its seat, as its capital?",
            "A traveller wants to see the capital of {}. Where must she go?",
        ),
        "Of which country is {} the capital? Reply with its name only.",
    ),
)


@drawn(range(4))
def facts_choice(rng: random.Random, number: int, place: int) -> Item:
    """Facts as multiple choice, with the right option at each place equally often."""
    kind = number % len(FACTS)
    # A symbol such as B would be taken for the letter of an option.
    table = {name: value for name, value in FACTS[kind].table.items() if len(value) > 1}
    subject = rng.choice(list(table))
    wrong = rng.sample([value for value in table.values() if value != table[subject]], 3)
    choices, letter = options(rng, table[subject], wrong, place)
    return draft(
        lettered(FACTS[kind].choice[0].format(subject), choices), letter, letter,
        choices=choices, meta={"fact": kind, "subject": subject},
    )  # fmt: skip


@drawn()
def facts_short(rng: random.Random, number: int) -> Item:
    """Facts the other way round, to be named."""
    fact = FACTS[number % len(FACTS)]
    name, given = rng.choice(list(fact.table.items()))
    return draft(fact.short.format(given), [name, *ALIASES.get(name, [])], name)


SUMS = (
    (
        "A shop sells {a} {what} on each of {b} days and {c} more on the last day. How many does "
        "it sell in all?",
        "For {b} days a shop sold {a} {what} a day. Then it sold another {c}. What is the total?",
        "Take {b} days with {a} {what} sold per day and add {c} {what}. How many {what} is that?",
    ),
    (
        "{a} crates hold {b} {what} each. {c} {what} are taken out. How many are left?",
        "Someone removes {c} {what} from a store of {a} crates with {b} {what} in each. How many "
        "{what} remain?",
        "There were {a} crates, each with {b} {what}; now {c} {what} are gone. How many are still "
        "there?",
    ),
)
GOODS = ("apples", "candles", "bolts", "postcards", "marbles", "ribbons", "bottles", "tiles")
END_WITH_NUMBER = 'End with "Answer:" and the number.'


@drawn()
def arithmetic(rng: random.Random, number: int) -> Item:
    """Sums in two steps."""
    kind = number % len(SUMS)
    a, b, c = rng.randint(12, 95), rng.randint(3, 19), rng.randint(5, 30)
    gold = a * b + (c if kind == 0 else -c)
    slots = {"a": a, "b": b, "c": c, "what": rng.choice(GOODS)}
    return draft(
        f"{SUMS[kind][0].format(**slots)} {END_WITH_NUMBER}", str(gold), f"Answer: {gold}",
        meta={"sum": kind, "slots": slots},
    )  # fmt: skip


def rephrase_choice(original: Item, way: int) -> Item:
    """The same question in other words; the options stay as they are."""
    fact = FACTS[original.meta["fact"]]
    question = fact.choice[1 + way].format(original.meta["subject"])
    return replace(original, prompt=lettered(question, original.choices))


def rephrase_arithmetic(original: Item, way: int) -> Item:
    """The same sum in other words."""
    question = SUMS[original.meta["sum"]][1 + way].format(**original.meta["slots"])
    return replace(original, prompt=f"{question} {END_WITH_NUMBER}")


class Program(NamedTuple):
    """A small function to be written: what it returns, in words and in code, and test inputs."""

    wanted: str
    expression: str
    inputs: tuple[str, ...]


_LISTS = ("[]", "[3]", "[1, 2, 3, 4, 5, 6]", "[-4, 0, 7, 7, 12]")
_TEXTS = ("''", "'a'", "'lighthouse'", "'a b  c'")
PROGRAMS = (
    Program(
        "returns the numbers of the list `values` that are greater than {k}",
        "[value for value in values if value > {k}]",
        _LISTS,
    ),
    Program(
        "returns the sum of all numbers of the list `values`, each multiplied by {k}",
        "sum(value * {k} for value in values)",
        _LISTS,
    ),
    Program(
        "returns how many numbers of the list `values` can be divided by {k} without remainder",
        "sum(value % {k} == 0 for value in values)",
        _LISTS,
    ),
    Program(
        "returns the last {k} numbers of the list `values`, or all if there are fewer",
        "values[-{k}:]",
        _LISTS,
    ),
    Program(
        "returns the text `values` reversed and repeated {k} times",
        "values[::-1] * {k}",
        _TEXTS,
    ),
    Program(
        "returns the first {k} characters of the text `values` in capitals",
        "values[:{k}].upper()",
        _TEXTS,
    ),
)


@drawn()
def programs(rng: random.Random, number: int) -> Item:
    """Small functions, with tests; what each test expects is computed here."""
    program = PROGRAMS[number % len(PROGRAMS)]
    k, name = rng.randint(2, 9), f"{rng.choice(GOODS)}_{rng.randint(1, 99)}"
    expression = program.expression.format(k=k)
    tests = [
        f"assert {name}({given}) == {eval(expression, {'values': eval(given)})!r}"  # texts above
        for given in program.inputs
    ]
    code = f"def {name}(values):\n    return {expression}"
    prompt = f"Write a Python function `{name}(values)` that {program.wanted.format(k=k)}."
    return draft(prompt, tests, f"```python\n{code}\n```")
