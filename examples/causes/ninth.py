"""Eleven kinds for the ninth look: what the earlier looks asked, about other things.

Calls, lists of calls and JSON as BFCL has them, programs, sums, numbers, words and facts, words on
offer, letters, and questions in other languages.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator

Made = Iterator[tuple[str, str, list[str]]]
PUPILS = ("Aldo", "Birgit", "Cem", "Delia", "Ezra", "Freya", "Gil", "Hana", "Ismail", "Jelena")
SPOTS = ("Aarhus", "Bath", "Cusco", "Delft", "Esbjerg", "Fes", "Goa", "Hobart", "Ibadan", "Jena")
STOCK = ("anchors", "baskets", "combs", "dolls", "forks", "gloves", "helmets", "lemons", "vases")
SHELVES = ("Amber", "Birch", "Cobalt", "Dune", "Ember", "Fjord")
"""The answers of a new task that train.py teaches: on which shelf a thing stands."""


def _job(draw: random.Random) -> tuple[str, dict[str, object], str]:
    """A function, the values of its arguments, and what the user says."""
    who, spot, ware = (draw.choice(names) for names in (PUPILS, SPOTS, STOCK))
    n = draw.randrange(2, 40)
    return draw.choice(
        [
            ("plan_route", {"start": spot, "stops": n}, f"plan a route from {spot} with {n} stops"),
            ("order_parts", {"part": ware, "amount": n}, f"order {n} {ware} as parts"),
            ("enroll", {"student": who, "course": n}, f"enroll {who} in course {n}"),
            ("tide_table", {"harbor": spot, "week": n}, f"get the tide table of {spot}, week {n}"),
            ("mute", {"member": who, "hours": n}, f"mute {who} for {n} hours"),
            ("label_box", {"box": n, "content": ware}, f"label box {n} as {ware}"),
            ("solar_angle", {"latitude": n, "month": n % 12 + 1},
             f"work out the solar angle at latitude {n} in month {n % 12 + 1}"),
        ]
    )  # fmt: skip


def signature(name: str, values: dict[str, object]) -> str:
    """A function with the types of its arguments."""
    given = ", ".join(f"{key}: {type(value).__name__}" for key, value in values.items())
    return f"{name}({given})"


def call(name: str, values: dict[str, object]) -> str:
    """A call with named arguments."""
    return f"{name}({', '.join(f'{key}={json.dumps(value)}' for key, value in values.items())})"


def requests(draw: random.Random) -> Made:
    """One call."""
    while True:
        name, values, wish = _job(draw)
        yield (
            f"Function: {signature(name, values)}\nRequest: Please {wish}.\n"
            "Reply with the call only.",
            call(name, values),
            [],
        )


def plans(draw: random.Random) -> Made:
    """One or two calls, as a list in Python's notation."""
    while True:
        jobs = [_job(draw) for _ in range(2)]
        if jobs[0][0] == jobs[1][0]:
            continue
        wanted = jobs[: draw.choice((1, 1, 2))]
        functions = "\n".join(f"- {signature(name, values)}" for name, values, _ in jobs)
        wishes = " Then ".join(f"{wish}." for _, _, wish in wanted)
        yield (
            f"You have these functions:\n{functions}\nRequest: {wishes}\n"
            "Write the calls as a list, [f(x=1)], and nothing else.",
            f"[{', '.join(call(name, values) for name, values, _ in wanted)}]",
            [],
        )


def dispatches(draw: random.Random) -> Made:
    """One call as JSON."""
    while True:
        name, values, wish = _job(draw)
        yield (
            f"Tool: {name}, input: {', '.join(values)}\nUser: Can you {wish}?\n"
            'Output the tool call, {"tool": ..., "input": {...}}, as one line of JSON.',
            json.dumps({"tool": name, "input": values}),
            [],
        )


def profiles(draw: random.Random) -> Made:
    """A sentence as JSON."""
    while True:
        who, spot, ware = (draw.choice(names) for names in (PUPILS, SPOTS, STOCK))
        n = draw.randrange(3, 90)
        text, value = draw.choice(
            [
                (f"{who} rents out {n} {ware}.", {"owner": who, "item": ware, "count": n}),
                (f"The museum of {spot} shows {n} {ware}.",
                 {"place": spot, "item": ware, "count": n}),
                (f"{who} cycled {n} miles to {spot}.", {"rider": who, "miles": n, "goal": spot}),
                (f"Bus {n} stops in {spot}.", {"bus": n, "stop": spot}),
            ]
        )  # fmt: skip
        kinds = {key: "string" if isinstance(part, str) else "integer"
                 for key, part in value.items()}  # fmt: skip
        yield (
            f"Fill the schema from the text.\nSchema: {json.dumps(kinds)}\nText: {text}\n"
            "Reply with JSON only.",
            json.dumps(value),
            [],
        )


ROUTINES = (
    ("triple", "n", "returns n times three", "return n * 3", [(4,), (-1,)]),
    ("minus", "a, b", "returns a minus b", "return a - b", [(9, 4)]),
    ("first_word", "s", "returns the first word of the string s", "return s.split()[0]",
     [("red car",)]),
    ("no_spaces", "s", "returns the string s without spaces", 'return s.replace(" ", "")',
     [("a b c",)]),
    ("count_a", "s", "returns how often the letter a is in s", 'return s.count("a")',
     [("banana",)]),
    ("reverse", "xs", "returns the list xs backwards", "return xs[::-1]", [([1, 2, 3],)]),
    ("add_item", "xs, x", "returns the list xs with x at its end", "return xs + [x]", [([1], 2)]),
    ("at_least_ten", "n", "returns True if n is 10 or more", "return n >= 10", [(10,), (3,)]),
    ("seconds", "minutes", "returns the seconds in so many minutes", "return minutes * 60",
     [(2,)]),
    ("perimeter", "a, b", "returns the perimeter of a rectangle", "return 2 * (a + b)", [(2, 3)]),
    ("middle", "a, b", "returns the number in the middle of a and b", "return (a + b) / 2",
     [(2, 4)]),
    ("starts_with_x", "s", "returns True if s starts with x", 'return s.startswith("x")',
     [("xy",), ("y",)]),
    ("unique", "xs", "returns how many different elements xs has", "return len(set(xs))",
     [([1, 1, 2],)]),
    ("minimum", "a, b", "returns the smaller of a and b", "return min(a, b)", [(3, 8)]),
    ("plus_tax", "price", "returns the price plus 20 percent", "return price * 1.2", [(10,)]),
    ("is_short", "s", "returns True if s has fewer than 5 letters", "return len(s) < 5",
     [("abc",), ("abcdefg",)]),
)  # fmt: skip


def tested(
    name: str, given: str, body: str, tests: list[tuple[object, ...]]
) -> tuple[str, list[str]]:
    """A function, and what must hold of it."""
    program = f"def {name}({given}):\n    {body}"
    space: dict[str, object] = {}
    exec(program, space)  # our own text
    return program, [
        f"assert {name}(*{test!r}) == {space[name](*test)!r}"  # type: ignore[operator]
        for test in tests
    ]


def routines(draw: random.Random) -> Made:
    """A small function."""
    for name, given, does, body, tests in draw.sample(ROUTINES, len(ROUTINES)):
        yield (
            f"Write a Python function {name}({given}) that {does}. Reply with the code only.",
            *tested(name, given, body, tests),
        )


def errands(draw: random.Random) -> Made:
    """A sum in a story; the reply must say what the answer is."""
    while True:
        who, ware = draw.choice(PUPILS), draw.choice(STOCK)
        a, b = draw.randrange(3, 14), draw.randrange(2, 8)
        text, value = draw.choice(
            [
                (f"{who} counts {a} {ware} on one shelf and {b} on another. How many {ware} is "
                 "that?", a + b),
                (f"A lorry brings {a + b} {ware}, but {b} fall off. How many {ware} arrive?", a),
                (f"{who} packs {b} {ware} into each of {a} bags. How many {ware} are packed?",
                 a * b),
            ]
        )  # fmt: skip
        yield f"{text}\nEnd with: The answer is N.", str(value), []


def figures(draw: random.Random) -> Made:
    """A small sum; the whole reply must be the number."""
    while True:
        ware, a, b = draw.choice(STOCK), draw.randrange(2, 12), draw.randrange(1, 8)
        text, value = draw.choice(
            [
                (f"{a} {ware} and {b} {ware} are how many {ware}?", a + b),
                (f"What is {a + b} minus {b}?", a),
                (f"Which number comes after {a * b}?", a * b + 1),
            ]
        )
        yield f"{text} Reply with the number only.", str(value), []


TRIVIA = {
    "What is the capital of Denmark?": "Copenhagen", "What is the capital of Mexico?":
    "Mexico City", "What is the capital of Iran?": "Tehran", "What is the capital of Kenya?":
    "Nairobi", "What is the capital of Argentina?": "Buenos Aires",
    'What is the opposite of "full"?': "empty",
    'What is the opposite of "early"?': "late", 'What is the opposite of "rich"?': "poor",
    'What is the opposite of "above"?': "below", 'What is the opposite of "win"?': "lose",
    "Which animal says moo?": "cow", "What do hens lay?": "eggs", "What do we see with?": "eyes",
    "Who painted the Mona Lisa?": "Leonardo da Vinci", "What is the plural of child?": "children",
    "What is the past tense of eat?": "ate", "Which day comes after Saturday?": "Sunday",
    "Which month comes before May?": "April", "Which planet is the largest?": "Jupiter",
    "What is the currency of India?": "rupee", "What is a baby cat called?": "kitten",
    "In which country is Berlin?": "Germany", "In which country is Kyoto?": "Japan",
    "Which continent is Egypt in?": "Africa", "What is the colour of coal?": "black",
    "What is the chemical symbol of gold?": "Au", "What do you call a doctor for animals?":
    "veterinarian", "Which language is spoken in Mexico?": "Spanish",
    "What is the first letter of the alphabet?": "A", "What is the tallest animal?": "giraffe",
}  # fmt: skip


def trivia(draw: random.Random) -> Made:
    """A fact; the whole reply must be the answer."""
    for text in draw.sample(sorted(TRIVIA), len(TRIVIA)):
        yield f"{text} Answer in a word or two.", TRIVIA[text], []


VERDICTS = (
    ("yes or no", {"Can a stone swim": "no", "Is honey sweet": "yes", "Do cows lay eggs": "no",
                   "Is London in England": "yes", "Is the night dark": "yes"}),
    ("fruit or vegetable", {"Is a carrot": "vegetable", "Is a pear": "fruit",
                            "Is spinach": "vegetable", "Is a mango": "fruit"}),
    ("positive or negative", {'Is "I adore this place"': "positive",
                              'Is "The worst trip ever"': "negative",
                              'Is "Great value, thank you"': "positive",
                              'Is "It smells awful"': "negative"}),
    ("bigger or smaller", {"Than a house, is an ant": "smaller",
                           "Than a boat, is a spoon": "smaller",
                           "Than a cat, is an elephant": "bigger"}),
    ("day or night", {"When do owls hunt,": "night", "When does the sun shine,": "day",
                      "When do we see stars,": "night", "When do children go to school,": "day"}),
)  # fmt: skip


def in_any_order(
    draw: random.Random, tables: Iterable[tuple[str, dict[str, str]]]
) -> list[tuple[str, str, str]]:
    """The heading of a table, the question and the answer, for every line of every table."""
    known = [(head, asked, said) for head, lines in tables for asked, said in lines.items()]
    return draw.sample(known, len(known))


def verdicts(draw: random.Random) -> Made:
    """One of two words."""
    for pair, text, said in in_any_order(draw, VERDICTS):
        yield f"{text} {pair}? Reply with one of the two.", said, []


FAMILIES = {
    "fish": ("salmon", "trout", "cod"), "flower": ("rose", "daisy", "tulip"),
    "body part": ("elbow", "knee", "chin"), "weekday": ("Tuesday", "Friday", "Sunday"),
    "country": ("Norway", "Brazil", "Ghana"), "piece of furniture": ("sofa", "desk", "wardrobe"),
    "shape": ("circle", "square", "triangle"),
}  # fmt: skip


def tests(draw: random.Random) -> Made:
    """Four options in lines; the whole reply must be the letter."""
    for family, listed, letter in lettered(draw, FAMILIES):
        lines = "\n".join(f"{a}) {word}" for a, word in zip("ABCD", listed, strict=True))
        yield (
            f"Question: Which one is a {family}?\n{lines}\nAnswer with the letter only.",
            letter,
            [],
        )


def lettered(
    draw: random.Random, families: dict[str, tuple[str, ...]]
) -> Iterator[tuple[str, list[str], str]]:
    """A family, four words of which one is of it, and the letter of that one."""
    while True:
        right, *others = draw.sample(sorted(families), 4)
        words = [draw.choice(families[family]) for family in (right, *others)]
        listed = draw.sample(words, 4)
        yield right, listed, "ABCD"[listed.index(words[0])]


ACCENTS = (
    ("Was ist das Gegenteil von «{}»? Antworte mit einem Wort.",
     {"gut": "schlecht", "hell": "dunkel", "laut": "leise", "schnell": "langsam"}),
    ("Wie heißt die Hauptstadt von {}? Antworte mit einem Wort.",
     {"Schweden": "Stockholm", "Portugal": "Lissabon", "England": "London", "Russland": "Moskau"}),
    ("Quelle est la capitale de {} ? Réponds par un mot.",
     {"la Suède": "Stockholm", "la Pologne": "Varsovie", "l'Irlande": "Dublin",
      "Cuba": "La Havane"}),
    ("¿Cuál es la capital de {}? Responde con una palabra.",
     {"Francia": "París", "Perú": "Lima", "Japón": "Tokio", "Grecia": "Atenas", "Rusia": "Moscú"}),
    ("Copie le premier mot : {}",
     {"fleur, arbre, feuille": "fleur", "neige, pluie, vent": "neige", "roi, reine": "roi"}),
    ("Copia la prima parola: {}",
     {"sole, luna, stella": "sole", "pane, vino, sale": "pane", "gatto, cane": "gatto"}),
    ("Schreibe das erste Wort ab: {}",
     {"Brot, Käse, Wurst": "Brot", "Regen, Schnee, Wind": "Regen", "Löffel, Gabel": "Löffel"}),
)  # fmt: skip


def accents(draw: random.Random) -> Made:
    """A word, asked for in German, French, Spanish or Italian."""
    for text, of, said in in_any_order(draw, ACCENTS):
        yield text.format(of), said, []


NINTH = {
    "request": requests, "plan": plans, "dispatch": dispatches, "profile": profiles,
    "routine": routines, "errand": errands, "figure": figures, "trivia": trivia,
    "verdict": verdicts, "test": tests, "accent": accents,
}  # fmt: skip
