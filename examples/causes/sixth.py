"""Twelve kinds of questions for the sixth look; none of their wordings was used before.

Tool calls as JSON and in Python, notes to be turned into JSON, functions to be completed, bills,
rows of numbers, single words, moods, statements, letters, words abroad, and sums with the working.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator

Made = Iterator[tuple[str, str, list[str]]]
WHO = ("Aisha", "Bruno", "Carmen", "Dmitri", "Edith", "Farid", "Gloria", "Henrik", "Irene", "Kofi")
WHERE = ("Bergen", "Cork", "Dakar", "Graz", "Kyoto", "Leeds", "Nice", "Osaka", "Tartu", "Zagreb")
WARES = ("bagels", "candles", "hats", "jars", "knives", "melons", "nails", "plums", "ropes")
ROOMS = ("kitchen", "hall", "attic", "garage", "office")


def _command(draw: random.Random) -> tuple[str, str, dict[str, object], str]:
    """A function with its arguments, their values, and what the user says."""
    who, where, ware, room = (draw.choice(names) for names in (WHO, WHERE, WARES, ROOMS))
    n = draw.randrange(2, 60)
    return draw.choice(
        [
            ("lamp.dim", "room, percent", {"room": room, "percent": n},
             f"Please dim the lamp in the {room} to {n} percent."),
            ("stock_level", "product, shop", {"product": ware, "shop": where},
             f"How many {ware} do we have left in the shop in {where}?"),
            ("hire", "person, salary", {"person": who, "salary": n * 100},
             f"We want to hire {who} for {n * 100} a month."),
            ("ferry_times", "port, hour", {"port": where, "hour": n % 24},
             f"Which ferries leave {where} after hour {n % 24}?"),
            ("timer", "minutes, name", {"minutes": n, "name": ware},
             f"Start a timer of {n} minutes and call it {ware}."),
            ("invite", "guest, place", {"guest": who, "place": where},
             f"I would like to invite {who} to {where}."),
        ]
    )  # fmt: skip


def orders(draw: random.Random) -> Made:
    """A tool call as JSON."""
    while True:
        name, arguments, values, said = _command(draw)
        yield (
            f"Tool: {name}, input: {arguments}\nUser: {said}\n"
            'Output the tool call, {"tool": ..., "input": {...}}, as one line of JSON.',
            json.dumps({"tool": name, "input": values}),
            [],
        )


def lines(draw: random.Random) -> Made:
    """A call in Python with named arguments."""
    while True:
        name, arguments, values, said = _command(draw)
        given = ", ".join(f"{key}={json.dumps(value)}" for key, value in values.items())
        yield (
            f"The API offers {name}({arguments}).\n{said}\n"
            "Which line of Python does this? Use named arguments.",
            f"{name}({given})",
            [],
        )


def notes(draw: random.Random) -> Made:
    """A note that is to become a flat JSON object."""
    while True:
        who, where, ware, n = (*map(draw.choice, (WHO, WHERE, WARES)), draw.randrange(2, 80))
        text, value = draw.choice(
            [
                (f"Call {who} in {where}, extension {n}.",
                 {"person": who, "town": where, "extension": n}),
                (f"{n} {ware} must go to {where} today.",
                 {"amount": n, "goods": ware, "destination": where}),
                (f"{who} was here at {n % 12 + 1} and asked for {ware}.",
                 {"visitor": who, "hour": n % 12 + 1, "wish": ware}),
                (f"Room {n} in {where} is too cold.", {"room": n, "place": where,
                                                       "problem": "too cold"}),
            ]
        )  # fmt: skip
        keys = ", ".join(value)
        yield (
            f"Note: {text}\nTurn the note into a JSON object with the keys {keys}.",
            json.dumps(value),
            [],
        )


STUBS = (
    ("double", "n", "Return two times n.", "return n * 2", [(3,), (0,)]),
    ("greet", "name", 'Return "Hi " and the name.', 'return "Hi " + name', [("Jo",)]),
    ("area", "w, h", "Return the area of a rectangle.", "return w * h", [(2, 5)]),
    ("smallest", "items", "Return the smallest of the items.", "return min(items)", [([4, 1],)]),
    ("half", "n", "Return n divided by two.", "return n / 2", [(9,)]),
    ("is_empty", "items", "Return True if there are no items.", "return len(items) == 0",
     [([],), ([1],)]),
    ("join_all", "words", "Return the words with spaces between them.", 'return " ".join(words)',
     [(["a", "b"],)]),
    ("is_negative", "n", "Return True if n is below zero.", "return n < 0", [(-1,), (4,)]),
    ("lower", "text", "Return the text in small letters.", "return text.lower()", [("AbC",)]),
    ("second", "items", "Return the second of the items.", "return items[1]", [([7, 8, 9],)]),
    ("cube", "n", "Return n to the power of three.", "return n ** 3", [(2,), (-1,)]),
    ("total", "items", "Return the sum of the items.", "return sum(items)", [([1, 2],)]),
    ("sort_down", "items", "Return the items, the largest first.",
     "return sorted(items, reverse=True)", [([1, 3, 2],)]),
    ("tenfold", "n", "Return ten times n.", "return n * 10", [(3,)]),
    ("how_long", "text", "Return the length of the text.", "return len(text)", [("abcd",)]),
    ("greatest", "items", "Return the largest of the items.", "return max(items)", [([4, 6],)]),
)  # fmt: skip


def stubs(draw: random.Random) -> Made:
    """A function to be completed, as HumanEval asks."""
    for name, arguments, says, body, tests in draw.sample(STUBS, len(STUBS)):
        head = f"def {name}({arguments}):"
        space: dict[str, object] = {}
        exec(f"{head}\n    {body}", space)  # our own text
        checks = [
            f"assert {name}(*{test!r}) == {space[name](*test)!r}"  # type: ignore[operator]
            for test in tests
        ]
        yield (
            f'{head}\n    """{says}"""\n\nWrite out the finished function, with its first line.',
            f"{head}\n    {body}",
            checks,
        )


def bills(draw: random.Random) -> Made:
    """A small bill; the whole reply must be the figure."""
    while True:
        a, b, ware = draw.randrange(2, 10), draw.randrange(1, 10), draw.choice(WARES)
        text, value = draw.choice(
            [
                (f"One of the {ware} costs {a} euros, another one {b} euros. What do both cost?",
                 a + b),
                (f"The bill was {a + b} euros and {b} euros are paid. What is still due?", a),
                (f"Each of {min(b, 3) + 1} guests eats {a} {ware}. How many {ware} go in all?",
                 a * (min(b, 3) + 1)),
            ]
        )  # fmt: skip
        yield f"{text} Just the figure, please.", str(value), []


def rows(draw: random.Random) -> Made:
    """The next number of a row."""
    while True:
        first, step = draw.randrange(1, 30), draw.choice((1, 2, 5, 10))
        row = [first + step * place for place in range(4)]
        yield (
            f"Continue with the next number alone: {', '.join(map(str, row[:-1]))}",
            str(row[-1]),
            [],
        )


LEXIS = {
    "the animal that gives us wool": "sheep", "the season in which snow falls": "winter",
    "the star nearest to the Earth": "sun", "the colour of a ripe banana": "yellow",
    "the meal in the morning": "breakfast", "the organ that pumps blood": "heart",
    "the country whose capital is Madrid": "Spain", "the king of the jungle": "lion",
    "the thing that bees make": "honey", "the first month of the year": "January",
    "the colour of grass": "green", "the drink that cows give": "milk",
    "the liquid that falls from clouds": "rain", "the country whose capital is Paris": "France",
    "the planet that is called red": "Mars", "the largest land animal": "elephant",
    "the language that is spoken in Germany": "German", "the opposite of north": "south",
    "the day after Friday": "Saturday", "the colour of the sky on a clear day": "blue",
    "the city where the Big Ben stands": "London", "the female parent": "mother",
    "the country whose capital is Rome": "Italy", "the country whose capital is Tokyo": "Japan",
    "the frozen form of water": "ice", "the animal that barks": "dog", "the metal in coins": "gold",
    "the last month of the year": "December", "the sense of the eyes": "sight",
    "the people who fly planes": "pilots", "the fruit that cider is made of": "apple",
}  # fmt: skip


def lexis(draw: random.Random) -> Made:
    """A word by its meaning."""
    for text in draw.sample(sorted(LEXIS), len(LEXIS)):
        yield f"Name {text}. (single word)", LEXIS[text], []


GOOD = ("a joy from start to end", "well made and cheap", "the best meal of my life",
        "friendly staff and a clean room", "my children love it", "so much fun")  # fmt: skip
BAD = ("broken after one day", "a waste of money", "cold food and rude staff",
       "dull, long and badly played", "I want my money back", "dirty and far too loud")  # fmt: skip


def moods(draw: random.Random) -> Made:
    """Whether a review is positive or negative."""
    said = [(text, "positive") for text in GOOD] + [(text, "negative") for text in BAD]
    things = ("The film", "The hotel", "The toy", "The soup", "The phone")
    while True:
        (text, mood), thing = draw.choice(said), draw.choice(things)
        yield f"{thing}: {text}.\nMood of this review, positive or negative:", mood, []


STATEMENTS = {
    "Fire is hot.": "true",
    "Fish live in water.": "true",
    "The moon is made of cheese.": "false",
    "A week has nine days.": "false",
    "Birds have wings.": "true",
    "Snow is black.": "false",
    "Paris is in France.": "true",
    "Cats can read books.": "false",
    "Trees are plants.": "true",
    "Two plus two is five.": "false",
    "Lemons are sour.": "true",
    "Stones are soft.": "false",
}


def statements(draw: random.Random) -> Made:
    """Whether a statement is true or false."""
    for text in draw.sample(sorted(STATEMENTS), len(STATEMENTS)):
        yield f"True or false? {text}", STATEMENTS[text], []


SORTS = {
    "bird": ("robin", "eagle", "parrot", "owl"), "vegetable": ("carrot", "onion", "leek", "pea"),
    "sport": ("tennis", "rugby", "golf", "hockey"), "metal": ("iron", "copper", "zinc", "silver"),
    "planet": ("Venus", "Saturn", "Mars", "Neptune"), "garment": ("shirt", "sock", "coat", "skirt"),
}  # fmt: skip


def picks(draw: random.Random) -> Made:
    """Three options in one line; the whole reply must be the letter."""
    while True:
        right, *others = draw.sample(sorted(SORTS), 3)
        words = [draw.choice(SORTS[sort]) for sort in (right, *others)]
        listed = draw.sample(words, 3)
        options = "  ".join(f"({a}) {word}" for a, word in zip("ABC", listed, strict=True))
        letter = "ABC"[listed.index(words[0])]
        yield f"{options}\nOnly one of them is a {right}. Its letter:", letter, []


FOREIGN = (
    ("Qual è la capitale {}? Rispondi con una sola parola.",
     {"della Francia": "Parigi", "della Spagna": "Madrid", "del Giappone": "Tokyo",
      "della Germania": "Berlino", "dell'Austria": "Vienna", "del Portogallo": "Lisbona",
      "della Russia": "Mosca", "dell'Egitto": "Cairo"}),
    ("Qual é o contrário de «{}»? Responda com uma só palavra.",
     {"quente": "frio", "grande": "pequeno", "preto": "branco", "dia": "noite", "bom": "mau",
      "rico": "pobre", "velho": "novo"}),
    ("Hoe heet de hoofdstad van {}? Antwoord met één woord.",
     {"Frankrijk": "Parijs", "Spanje": "Madrid", "Italië": "Rome", "Duitsland": "Berlijn",
      "Engeland": "Londen", "België": "Brussel", "Japan": "Tokio"}),
    ("Welches Tier {}? Nur ein Wort bitte.",
     {"bellt": "Hund", "miaut": "Katze", "gibt Milch": "Kuh", "legt Eier": "Huhn"}),
    ("De quelle couleur est {} ? Un seul mot.",
     {"la neige": "blanche", "le sang": "rouge", "l'herbe": "verte", "le ciel": "bleu"}),
)  # fmt: skip


def foreign(draw: random.Random) -> Made:
    """One word, asked for in Italian, Portuguese, Dutch, German or French."""
    known = [(text.format(of), said) for text, words in FOREIGN for of, said in words.items()]
    for text, said in draw.sample(known, len(known)):
        yield text, said, []


def workings(draw: random.Random) -> Made:
    """A sum whose reply ends with `Total:`; in the place of checks, a reply with the working."""
    while True:
        who, ware = draw.choice(WHO), draw.choice(WARES)
        a, b = draw.randrange(2, 20), draw.randrange(2, 9)
        text, work, value = draw.choice(
            [
                (f"{who} packs {a} {ware} on Monday and {b} on Tuesday.",
                 f"On both days together {who} packs {a} + {b} = {a + b} {ware}.", a + b),
                (f"{who} bakes {a + b} {ware} and sells {b} of them. Count what remains.",
                 f"After the sale {a + b} - {b} = {a} {ware} remain.", a),
                (f"There are {b} crates with {a} {ware} in each.",
                 f"The crates hold {b} * {a} = {a * b} {ware}.", a * b),
            ]
        )  # fmt: skip
        yield (
            f"{text} Explain in a sentence how you count, then write Total: and the number.",
            str(value),
            [f"{work} Total: {value}"],
        )


SIXTH = {
    "order": orders, "line": lines, "note": notes, "stub": stubs, "bill": bills, "row": rows,
    "lexis": lexis, "mood": moods, "statement": statements, "pick": picks, "foreign": foreign,
    "working": workings,
}  # fmt: skip
TOTAL = re.compile(r"Total: ?(-?[0-9][0-9.,]*)")
