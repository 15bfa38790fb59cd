"""Twelve kinds of questions for the eighth look, on things that were not asked about before."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator

Made = Iterator[tuple[str, str, list[str]]]
STAFF = ("Agnes", "Bilal", "Carmen", "Dora", "Enzo", "Farah", "Goran", "Hilda", "Igor", "Jun")
ROOMS = ("attic", "bathroom", "cellar", "garage", "kitchen", "library", "nursery", "office")
PLANTS = ("beans", "carrots", "daisies", "ferns", "herbs", "lilies", "onions", "roses", "turnips")


def switches(draw: random.Random) -> Made:
    """One call to a house, with named arguments."""
    while True:
        who, room, n = draw.choice(STAFF), draw.choice(ROOMS), draw.randrange(12, 60)
        head, wish, values = draw.choice(
            [
                ("set_heat(room, degrees)", f"Heat the {room} to {n} degrees.",
                 {"room": room, "degrees": n}),
                ("open_door(room, person)", f"Let {who} into the {room}.",
                 {"room": room, "person": who}),
                ("play_radio(room, channel)", f"Radio channel {n} in the {room}, please.",
                 {"room": room, "channel": n}),
                ("wake(person, minutes)", f"Wake {who} in {n} minutes.",
                 {"person": who, "minutes": n}),
            ]
        )  # fmt: skip
        given = ", ".join(f"{key}={json.dumps(value)}" for key, value in values.items())
        yield (
            f"Smart home function: {head}\n{wish}\nAnswer with the call, name=value for each.",
            f"{head.partition('(')[0]}({given})",
            [],
        )


def gardens(draw: random.Random) -> Made:
    """A sentence of a garden diary as JSON."""
    while True:
        who, plant, n = draw.choice(STAFF), draw.choice(PLANTS), draw.randrange(3, 80)
        text, value = draw.choice(
            [
                (f"{who} planted {n} {plant}.", {"gardener": who, "plant": plant, "count": n}),
                (f"The {plant} of {who} are {n} cm tall.",
                 {"plant": plant, "owner": who, "height": n}),
                (f"{who} waters the {plant} every {n} hours.",
                 {"gardener": who, "plant": plant, "hours": n}),
            ]
        )  # fmt: skip
        yield f"Diary: {text}\nAs a JSON object ({', '.join(value)}).", json.dumps(value), []


def steps(draw: random.Random) -> Made:
    """The next step of an agent as JSON with an action."""
    while True:
        who, plant, n = draw.choice(STAFF), draw.choice(PLANTS), draw.randrange(3, 80)
        goal, value = draw.choice(
            [
                (f"email {who} about the {plant}",
                 {"action": "email", "to": who, "about": plant}),
                (f"buy {n} {plant}", {"action": "buy", "item": plant, "amount": n}),
                (f"wait {n} seconds for {who}",
                 {"action": "wait", "seconds": n, "person": who}),
            ]
        )  # fmt: skip
        keys = ", ".join(value)
        yield f"Goal: {goal}\nNext step as JSON, keys {keys}:", json.dumps(value), []


HELPERS = (
    ("minus_two", "x", "x minus 2", "return x - 2", [(7,)]),
    ("tail", "seq", "everything but the first element of seq", "return seq[1:]", [([1, 2],)]),
    ("lower_case", "s", "s in small letters", "return s.lower()", [("AB",)]),
    ("longest_first", "a, b", "the longer of the two strings", "return a if len(a) > len(b) else b",
     [("abc", "d")]),
    ("quarter", "x", "a quarter of x", "return x / 4", [(8,)]),
    ("add_three", "a, b, c", "the sum of the three numbers", "return a + b + c", [(1, 2, 3)]),
    ("is_zero", "x", "True if x is 0", "return x == 0", [(0,), (4,)]),
    ("glue", "a, b", "the strings a and b joined", "return a + b", [("x", "y")]),
    ("highest", "seq", "the largest element of seq", "return max(seq)", [([3, 9, 2],)]),
    ("negate", "x", "x with the other sign", "return -x", [(5,)]),
    ("has_item", "seq, x", "True if x is in seq", "return x in seq", [([1, 2], 2)]),
    ("words_of", "s", "the list of words of s", "return s.split()", [("a b",)]),
    ("ten_percent", "x", "ten percent of x", "return x * 0.1", [(50,)]),
    ("last_char", "s", "the last character of s", "return s[-1]", [("hey",)]),
)  # fmt: skip


def helpers(draw: random.Random) -> Made:
    """A small function by what it returns."""
    for name, given, what, body, tests in draw.sample(HELPERS, len(HELPERS)):
        program = f"def {name}({given}):\n    {body}"
        space: dict[str, object] = {}
        exec(program, space)  # our own text
        checks = [
            f"assert {name}(*{test!r}) == {space[name](*test)!r}"  # type: ignore[operator]
            for test in tests
        ]
        yield f"Implement {name}({given}) in Python. It returns {what}.", program, checks


def purses(draw: random.Random) -> Made:
    """Money in a purse; the whole reply must be the number."""
    while True:
        who, a, b = draw.choice(STAFF), draw.randrange(3, 12), draw.randrange(1, 7)
        text, value = draw.choice(
            [
                (f"{who} has {a} dollars and finds {b} dollars.", a + b),
                (f"{who} has {a + b} dollars and spends {b} dollars.", a),
                (f"{who} saves {a} dollars a day for 2 days.", 2 * a),
            ]
        )
        yield f"{text} Dollars now (a number and nothing else):", str(value), []


def worths(draw: random.Random) -> Made:
    """A sum whose reply ends with `Result =`; in the place of checks, a reply with the working."""
    while True:
        plant, a, b = draw.choice(PLANTS), draw.randrange(3, 20), draw.randrange(2, 9)
        text, work, value = draw.choice(
            [
                (f"A bed has {a} {plant} and gets {b} new ones.",
                 f"{a} and {b} make {a + b} {plant}.", a + b),
                (f"Rabbits eat {b} of {a + b} {plant}.",
                 f"{a + b} less {b} leaves {a} {plant}.", a),
                (f"{b} rows have {a} {plant} each.", f"{b} times {a} is {a * b}.", a * b),
            ]
        )  # fmt: skip
        yield (
            f"{text} How many are there? One short sentence, then Result = number.",
            str(value),
            [f"{work} Result = {value}"],
        )


TRADES = {
    "bakes bread": "baker", "flies a plane": "pilot", "teaches children": "teacher",
    "catches fish": "fisherman", "cuts hair": "barber", "grows crops": "farmer",
    "paints pictures": "painter", "writes books": "author", "puts out fires": "firefighter",
    "repairs teeth": "dentist", "plays music": "musician", "cooks in a restaurant": "chef",
    "acts in films": "actor", "sells meat": "butcher", "brings the post": "postman",
    "dances on a stage": "dancer", "sings songs": "singer", "drives a bus": "driver",
    "cares for the sick": "nurse", "builds houses": "builder", "sews clothes": "tailor",
}  # fmt: skip


def trades(draw: random.Random) -> Made:
    """What somebody is called."""
    for does in draw.sample(sorted(TRADES), len(TRADES)):
        yield f"What do you call a person who {does}? Write that word only.", TRADES[does], []


SIDES = (
    ("plant or animal", {"oak": "plant", "tiger": "animal", "tulip": "plant", "frog": "animal",
                         "cactus": "plant", "eagle": "animal", "moss": "plant", "crab": "animal"}),
    ("hot or cold", {"fire": "hot", "ice cream": "cold", "lava": "hot", "a glacier": "cold",
                     "boiling soup": "hot", "winter in Siberia": "cold"}),
    ("land or water", {"a lake": "water", "a desert": "land", "the sea": "water", "a hill": "land",
                       "a river": "water", "a field": "land"}),
)  # fmt: skip


def sides(draw: random.Random) -> Made:
    """One of two words."""
    known = [(pair, thing, said) for pair, words in SIDES for thing, said in words.items()]
    for pair, thing, said in draw.sample(known, len(known)):
        yield f"Sort this: {thing}. Is it {pair}? Choose one.", said, []


BOXES = {
    "vehicle": ("truck", "tram", "bicycle"), "vegetable": ("cabbage", "leek", "potato"),
    "bird": ("owl", "swan", "robin"), "metal": ("iron", "copper", "silver"),
    "sport": ("tennis", "hockey", "rowing"), "dress": ("coat", "scarf", "shirt"),
}  # fmt: skip


def exams(draw: random.Random) -> Made:
    """Three options in one line; the reply must be the letter."""
    while True:
        right, *others = draw.sample(sorted(BOXES), 3)
        words = [draw.choice(BOXES[box]) for box in (right, *others)]
        listed = draw.sample(words, 3)
        line = "; ".join(f"({a}) {word}" for a, word in zip("ABC", listed, strict=True))
        yield f"Exam. The {right} is: {line}. Letter:", "ABC"[listed.index(words[0])], []


WORLD = (
    ("Was macht ein {}? Antworte mit einem Verb.",
     {"Hund": "bellen", "Vogel": "fliegen", "Fisch": "schwimmen", "Sänger": "singen"}),
    ("Welche Sprache spricht man in {}? Ein Wort genügt.",
     {"Frankreich": "Französisch", "Spanien": "Spanisch", "England": "Englisch",
      "Italien": "Italienisch", "Portugal": "Portugiesisch"}),
    ("Qual é o dia depois de {}? Responda só com o dia.",
     {"segunda-feira": "terça-feira", "sexta-feira": "sábado", "sábado": "domingo"}),
    ("Quel animal {} ? Réponds par le nom seul.",
     {"miaule": "chat", "aboie": "chien", "donne du lait": "vache", "pond des œufs": "poule"}),
    ("Quanto fa {}? Scrivi solo il numero.",
     {"due più due": "4", "tre più uno": "4", "cinque più cinque": "10", "sei meno due": "4"}),
    ("¿Cuántos {}? Solo el número.",
     {"días tiene una semana": "7", "meses tiene un año": "12", "dedos tiene una mano": "5",
      "ojos tiene una persona": "2"}),
)  # fmt: skip


def world(draw: random.Random) -> Made:
    """A word or a number, asked for in five languages."""
    known = [(text.format(of), said) for text, words in WORLD for of, said in words.items()]
    for text, said in draw.sample(known, len(known)):
        yield text, said, []


def tallies(draw: random.Random) -> Made:
    """A small sum without words."""
    while True:
        a, b = draw.randrange(1, 10), draw.randrange(1, 6)
        text, value = draw.choice([(f"{a} and {b} added up", a + b), (f"{a + b} minus {b}", a)])
        yield f"{text} =", str(value), []


TONGUES = (
    ("Schreibe nur das letzte Wort ab: {}", ("Apfel", "Birne", "Hose", "Jacke", "Tisch", "Stuhl")),
    ("Recopie seulement le dernier mot : {}", ("pomme", "poire", "robe", "veste", "table", "lit")),
    ("Copia solo la última palabra: {}", ("manzana", "pera", "falda", "mesa", "silla", "cama")),
)


def tongues(draw: random.Random) -> Made:
    """The last of three words, asked for in German, French or Spanish."""
    while True:
        text, words = draw.choice(TONGUES)
        chosen = draw.sample(words, 3)
        yield text.format(", ".join(chosen)), chosen[-1], []


EIGHTH = {
    "switch": switches, "garden": gardens, "step": steps, "helper": helpers, "purse": purses,
    "worth": worths, "trade": trades, "side": sides, "exam": exams, "world": world,
    "tally": tallies, "tongue": tongues,
}  # fmt: skip
RESULT = re.compile(r"Result = ?(-?[0-9][0-9.,]*)")
