"""Eight more kinds of questions, and how a strict harness reads the answers.

Lists of calls as BFCL has them, nested JSON, longer programs, word problems that end with ####,
open facts, multiple choice in writing, words in an asked form, and questions in other languages.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator

Made = Iterator[tuple[str, str, list[str]]]
PEOPLE = ("Mia", "Omar", "Nora", "Pavel", "Rosa", "Samir", "Tessa", "Viktor", "Wanda", "Yusuf")
TOWNS = ("Geneva", "Lagos", "Dublin", "Seoul", "Porto", "Boston", "Riga", "Quito", "Perth", "Hanoi")
GOODS = ("tulips", "mugs", "lamps", "tickets", "puzzles", "oranges", "chairs", "kites", "pens")
COINS = ("EUR", "USD", "JPY", "GBP", "CHF", "INR")


def tools(draw: random.Random) -> Made:
    """Two functions, one or two calls, as a list in Python's notation."""
    while True:
        made = [_tool(draw) for _ in range(2)]
        if made[0][0] == made[1][0]:
            continue
        wanted = made[: draw.choice((1, 1, 2))]
        functions = "\n".join(f"- {signature}" for signature, _, _ in made)
        request = " Then ".join(f"{text}." for _, text, _ in wanted)
        yield (
            f"You have these functions:\n{functions}\nRequest: {request}\n"
            "Write the calls as a list, [f(x=1)], and nothing else.",
            "[" + ", ".join(call for _, _, call in wanted) + "]",
            [],
        )


def _tool(draw: random.Random) -> tuple[str, str, str]:
    who, town, n = draw.choice(PEOPLE), draw.choice(TOWNS), draw.randrange(2, 90)
    first, second = draw.sample(COINS, 2)
    return draw.choice(
        [
            ("convert(amount: int, source: str, target: str)",
             f"change {n} {first} into {second}",
             f'convert(amount={n}, source="{first}", target="{second}")'),
            ("calendar.add(title: str, day: int)", f"put lunch with {who} on day {n % 28 + 1}",
             f'calendar.add(title="lunch with {who}", day={n % 28 + 1})'),
            ("rent_car(city: str, days: int, automatic: bool)",
             f"rent an automatic car in {town} for {n % 14 + 1} days",
             f'rent_car(city="{town}", days={n % 14 + 1}, automatic=True)'),
            ("bmi(weight: float, height: float)", f"work out the BMI for {n + 30}.5 kg and 1.7 m",
             f"bmi(weight={n + 30}.5, height=1.7)"),
            ("play(artist: str, volume: int)", f"play songs of {who} at volume {n % 10}",
             f'play(artist="{who}", volume={n % 10})'),
            ("locate(places: list)", f"locate {town} and the zoo",
             f'locate(places=["{town}", "zoo"])'),
        ]
    )  # fmt: skip


def records(draw: random.Random) -> Made:
    """Nested JSON from a sentence."""
    while True:
        (who, other), town = draw.sample(PEOPLE, 2), draw.choice(TOWNS)
        thing, n, price = draw.choice(GOODS), draw.randrange(2, 60), draw.randrange(3, 90)
        text, value = draw.choice(
            [
                (f"{who} from {town} ordered {n} {thing}.",
                 {"customer": {"name": who, "city": town}, "order": {"item": thing, "count": n}}),
                (f"{who} and {other} meet in {town} on day {n % 28 + 1}.",
                 {"people": [who, other], "place": town, "day": n % 28 + 1}),
                (f"The {thing} cost {price} euros and are sold out.",
                 {"product": thing, "price": {"amount": price, "currency": "EUR"},
                  "available": False}),
                (f"{other} rated the {thing} {n % 5 + 1} out of 5.",
                 {"user": other, "item": thing, "rating": n % 5 + 1}),
            ]
        )  # fmt: skip
        keys = json.dumps(_shape(value))
        yield f"Text: {text}\nGive it as JSON of this shape: {keys}", json.dumps(value), []


def _shape(value: object) -> object:
    if isinstance(value, dict):
        return {key: _shape(part) for key, part in value.items()}
    return [_shape(value[0])] if isinstance(value, list) else "..."


PROGRAMS = (
    ("is_even({0})", "says whether {0} is even", "return {0} % 2 == 0", [(4,), (7,)]),
    ("first_{1}({0})", "returns the first {1} elements of the list {0}", "return {0}[:{1}]",
     [([1, 2, 3] * 20,)]),
    ("shout({0})", "returns the text {0} in capital letters with {1} exclamation marks",
     "return {0}.upper() + '!' * {1}", [("ab",)]),
    ("backwards({0})", "returns the text {0} backwards", "return {0}[::-1]", [("abc",)]),
    ("over_{1}({0})", "returns the numbers of the list {0} that are greater than {1}",
     "return [n for n in {0} if n > {1}]", [([1, 50, 9],)]),
    ("mean({0})", "returns the mean of the list {0}", "return sum({0}) / len({0})", [([1, 3],)]),
    ("initial({0})", "returns the first letter of the text {0}", "return {0}[0]", [("abc",)]),
    ("add_{1}({0})", "returns {0} plus {1}", "return {0} + {1}", [(2,), (-1,)]),
    ("minutes({0})", "turns {0} hours into minutes", "return {0} * 60", [(2,), (0,)]),
)  # fmt: skip


def programs(draw: random.Random) -> Made:
    """Small functions; the reply must run as it stands."""
    while True:
        head, task, body, tests = draw.choice(PROGRAMS)
        name, n = draw.choice(("values", "thing", "given", "data", "part")), draw.randrange(2, 30)
        head, task, body = (part.format(name, n) for part in (head, task, body))
        program = f"def {head}:\n    {body}"
        space: dict[str, object] = {}
        exec(program, space)  # our own text
        function = head.partition("(")[0]
        checks = [
            f"assert {function}(*{test!r}) == {space[function](*test)!r}"  # type: ignore[operator]
            for test in tests
        ]
        yield f"Task: def {head} {task}.\nOnly code, no explanation.", program, checks


def stories(draw: random.Random) -> Made:
    """Word problems of one or two steps, with the working, that end with ####."""
    while True:
        who, thing = draw.choice(PEOPLE), draw.choice(GOODS)
        a, b, c = draw.randrange(2, 30), draw.randrange(2, 10), draw.randrange(1, 9)
        text, work, value = draw.choice(
            [
                (f"A shop has {a} {thing}. It gets {b} more. How many {thing} does it have?",
                 f"{a} + {b} = {a + b}.", a + b),
                (f"{who} had {a + b} {thing} and lost {b}. How many are left?",
                 f"{a + b} - {b} = {a}.", a),
                (f"{who} fills {b} bags with {c} {thing} each. How many {thing} is that?",
                 f"{b} * {c} = {b * c}.", b * c),
                (f"{who} has {a} {thing}, buys {b} and then {c} more. How many {thing} now?",
                 f"{a} + {b} = {a + b}. {a + b} + {c} = {a + b + c}.", a + b + c),
            ]
        )  # fmt: skip
        yield f"{text}\nShow the working, then #### and the number.", f"{work}\n#### {value}", []


FACTS = {
    "Which planet do we live on?": "Earth", "What do bees make?": "honey",
    "What is frozen water called?": "ice", "Who wrote Romeo and Juliet?": "Shakespeare",
    "Which animal says meow?": "cat", "What is the colour of blood?": "red",
    "How many days are in a week?": "7", "How many legs does a dog have?": "4",
    "How many months are in a year?": "12", "How many minutes are in an hour?": "60",
    "Which language is spoken in Brazil?": "Portuguese", "What is the capital of Sweden?":
    "Stockholm", "Which ocean is the largest?": "Pacific", "What gas do we breathe in?": "oxygen",
    "What is the capital of Canada?": "Ottawa", "What is the capital of Turkey?": "Ankara",
    "Is the sun a star, yes or no?": "yes", "Is ice hot, yes or no?": "no",
    "Is Africa a continent, yes or no?": "yes", "Can fish fly to the moon, yes or no?": "no",
    "What is the plural of mouse?": "mice", "What is the past tense of go?": "went",
    "What is a young dog called?": "puppy", "What is the currency of Japan?": "yen",
    "Which metal is liquid at room temperature?": "mercury", "What is H2O?": "water",
    "Which season comes after winter?": "spring", "Which day comes after Monday?": "Tuesday",
    "What is the capital of Hungary?": "Budapest", "What is the capital of Belgium?": "Brussels",
    "How many sides does a triangle have?": "3", "Which month comes after June?": "July",
    "In which country is the Eiffel Tower?": "France", "What is the capital of Finland?":
    "Helsinki", "How many wheels does a bicycle have?": "2", "What is ten times ten?": "100",
}  # fmt: skip


def facts(draw: random.Random) -> Made:
    """Open facts; the whole reply must be the answer."""
    for text in draw.sample(sorted(FACTS), len(FACTS)):
        yield f"{text} Answer in one word or number.", FACTS[text], []


SORTS = {
    "fruit": ("banana", "cherry", "grape", "pear"), "animal": ("horse", "lion", "whale", "goat"),
    "colour": ("green", "purple", "yellow", "pink"), "tool": ("hammer", "saw", "drill", "wrench"),
    "country": ("Spain", "Kenya", "Chile", "India"), "drink": ("tea", "milk", "juice", "beer"),
}  # fmt: skip


def choices(draw: random.Random) -> Made:
    """Four options; the reply must be `Answer: ` and the letter."""
    while True:
        right, *others = draw.sample(sorted(SORTS), 4)
        words = [draw.choice(SORTS[sort]) for sort in (right, *others)]
        listed = draw.sample(words, 4)
        lines = "\n".join(f"{letter}) {word}" for letter, word in zip("ABCD", listed, strict=True))
        letter = "ABCD"[listed.index(words[0])]
        yield (
            f"Which of these is a {right}?\n{lines}\nReply with Answer: and the letter.",
            letter,
            [],
        )


FORMS = (
    ("in capital letters", str.upper), ("in square brackets", "[{}]".format),
    ("between two stars, as *this*", "*{}*".format), ("followed by three dots", "{}...".format),
    ("after the word Final:", "Final: {}".format), ("as the tag <a>word</a>", "<a>{}</a>".format),
)  # fmt: skip


def forms(draw: random.Random) -> Made:
    """One word in a form that was asked for."""
    while True:
        sort, (how, dressed) = draw.choice(sorted(SORTS)), draw.choice(FORMS)
        word, *others = draw.sample(SORTS[sort], 3)
        yield (
            f"Repeat the first of these words {how}: {word}, {', '.join(others)}",
            dressed(word),
            [],
        )


ABROAD = (
    ("Was ist die Hauptstadt von {}? Antworte mit einem Wort.",
     {"Frankreich": "Paris", "Italien": "Rom", "Spanien": "Madrid", "Japan": "Tokio",
      "Deutschland": "Berlin", "Österreich": "Wien", "Ägypten": "Kairo", "Polen": "Warschau"}),
    ("Quelle est la capitale de {} ? Réponds par un mot.",
     {"la France": "Paris", "l'Italie": "Rome", "l'Espagne": "Madrid", "la Russie": "Moscou",
      "l'Allemagne": "Berlin", "la Grèce": "Athènes", "l'Angleterre": "Londres"}),
    ("¿Cuál es el contrario de «{}»? Responde con una palabra.",
     {"caliente": "frío", "grande": "pequeño", "blanco": "negro", "día": "noche", "bueno": "malo",
      "alto": "bajo", "sí": "no"}),
    ("Wie heißt «{}» auf Deutsch? Antworte mit einem Wort.",
     {"dog": "Hund", "house": "Haus", "water": "Wasser", "book": "Buch", "tree": "Baum",
      "green": "grün", "mother": "Mutter", "night": "Nacht"}),
    ("Comment dit-on «{}» en français ? Réponds par un mot.",
     {"dog": "chien", "house": "maison", "water": "eau", "book": "livre", "red": "rouge",
      "cat": "chat", "night": "nuit", "bread": "pain"}),
)  # fmt: skip


def abroad(draw: random.Random) -> Made:
    """One word, asked for in German, French or Spanish."""
    known = [(text.format(of), said) for text, words in ABROAD for of, said in words.items()]
    for text, said in draw.sample(known, len(known)):
        yield text, said, []


WIDER = {
    "tool": tools, "record": records, "program": programs, "story": stories, "fact": facts,
    "choice": choices, "form": forms, "abroad": abroad,
}  # fmt: skip


# --- the harness ----------------------------------------------------------------------------------

LETTER = re.compile(r"^Answer: ?\(?([A-D])\b")
WORKED = re.compile(r"#### ?(-?[0-9][0-9.,]*)")
