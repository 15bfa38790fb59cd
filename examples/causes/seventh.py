"""Eight kinds of questions for the seventh look, in wordings that were not used before."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

Made = Iterator[tuple[str, str, list[str]]]
CREW = ("Amina", "Boris", "Chloe", "Diego", "Emil", "Fatou", "Greta", "Hassan", "Ivy", "Jakob")
PORTS = ("Accra", "Bruges", "Cadiz", "Durban", "Exeter", "Faro", "Genoa", "Haifa", "Izmir", "Kiel")
CARGO = ("bricks", "bulbs", "carpets", "drums", "grapes", "mirrors", "pumps", "skis", "tiles")


def gates(draw: random.Random) -> Made:
    """One call with named arguments for a wish."""
    while True:
        who, port, load, n = (*map(draw.choice, (CREW, PORTS, CARGO)), draw.randrange(2, 70))
        head, wish, values = draw.choice(
            [
                ("ship(cargo, port)", f"ship the {load} to {port}", {"cargo": load, "port": port}),
                ("pay(name, euros)", f"pay {n} euros to {who}", {"name": who, "euros": n}),
                ("park(car, level)", f"park car {n} on level {n % 5 + 1}",
                 {"car": n, "level": n % 5 + 1}),
                ("remind(name, day)", f"remind {who} on day {n % 30 + 1}",
                 {"name": who, "day": n % 30 + 1}),
                ("weigh(cargo, boxes)", f"weigh {n} boxes of {load}", {"cargo": load, "boxes": n}),
            ]
        )  # fmt: skip
        given = ", ".join(f"{key}={json.dumps(value)}" for key, value in values.items())
        yield (
            f"Function {head}\nWish: {wish}\nCall it with keyword arguments:",
            f"{head.partition('(')[0]}({given})",
            [],
        )


def cards(draw: random.Random) -> Made:
    """A sentence as a JSON card."""
    while True:
        who, port, load, n = (*map(draw.choice, (CREW, PORTS, CARGO)), draw.randrange(2, 70))
        text, value = draw.choice(
            [
                (f"{who} sails to {port} in {n} hours.", {"sailor": who, "to": port, "hours": n}),
                (f"{port} ordered {n} {load}.", {"port": port, "number": n, "cargo": load}),
                (f"{who} sells {load} for {n} euros.", {"seller": who, "cargo": load, "euros": n}),
            ]
        )  # fmt: skip
        yield f"{text}\nJSON with {', '.join(value)}:", json.dumps(value), []


TASKS = (
    ("plus_one", "k", "adds one to k", "return k + 1", [(4,)]),
    ("last_item", "row", "gives the last item of row", "return row[-1]", [([1, 5],)]),
    ("loud", "word", "gives the word in capital letters", "return word.upper()", [("ab",)]),
    ("count_items", "row", "counts the items of row", "return len(row)", [([1, 2, 3],)]),
    ("difference", "a, b", "gives a minus b", "return a - b", [(7, 3)]),
    ("is_positive", "k", "tells whether k is above zero", "return k > 0", [(3,), (-2,)]),
    ("twice", "word", "gives the word two times in a row", "return word * 2", [("ab",)]),
    ("product", "a, b", "multiplies a and b", "return a * b", [(3, 4)]),
    ("sorted_row", "row", "gives the items of row in order", "return sorted(row)", [([2, 1],)]),
    ("square", "k", "gives the square of k", "return k ** 2", [(5,)]),
    ("is_odd", "k", "tells whether k is odd", "return k % 2 == 1", [(3,), (4,)]),
    ("first_letter", "word", "gives the first letter of word", "return word[0]", [("hey",)]),
)


def tasks(draw: random.Random) -> Made:
    """A small function by its name and what it does."""
    for name, given, does, body, tests in draw.sample(TASKS, len(TASKS)):
        program = f"def {name}({given}):\n    {body}"
        space: dict[str, object] = {}
        exec(program, space)  # our own text
        checks = [
            f"assert {name}(*{test!r}) == {space[name](*test)!r}"  # type: ignore[operator]
            for test in tests
        ]
        yield f"Python, please: {name}({given}) {does}.", program, checks


RIDDLES = {
    "It has four wheels and an engine.": "car", "You sleep in it at night.": "bed",
    "It shines at night in the sky.": "moon", "You read it page by page.": "book",
    "It is white, and children build men of it.": "snow", "You wear it on your foot.": "shoe",
    "You drink it hot in the morning, and it is black.": "coffee", "It tells the time.": "clock",
    "It has a trunk and big ears.": "elephant", "You open a door with it.": "key",
    "It keeps the rain off your head.": "umbrella", "It falls from the sky and is wet.": "rain",
    "It is yellow and monkeys like it.": "banana", "It has stripes and looks like a horse.":
    "zebra", "You cut paper with it.": "scissors", "A spider makes it.": "web",
    "Bees live in it.": "hive", "It is the opposite of night.": "day", "Hens lay it.": "egg",
}  # fmt: skip


def riddles(draw: random.Random) -> Made:
    """What is meant by a sentence."""
    for text in draw.sample(sorted(RIDDLES), len(RIDDLES)):
        yield f"Guess the thing. {text} The thing (one word):", RIDDLES[text], []


FEELINGS = {
    "I won the race!": "happy", "My cat died last night.": "sad", "We got married today.": "happy",
    "Nobody came to my party.": "sad", "I lost my job.": "sad", "The baby smiled at me.": "happy",
    "I miss my mother so much.": "sad", "Our team is the champion!": "happy",
    "The sun is out and I am free.": "happy", "I cried all day.": "sad",
    "They broke my bike.": "sad", "What a lovely present!": "happy",
}  # fmt: skip


def feelings(draw: random.Random) -> Made:
    """Whether somebody is happy or sad."""
    for text in draw.sample(sorted(FEELINGS), len(FEELINGS)):
        yield f'"{text}" The speaker is happy or sad?', FEELINGS[text], []


GROUPS = {
    "tree": ("oak", "pine", "birch"), "river": ("Nile", "Thames", "Amazon"),
    "number": ("seven", "twelve", "ninety"), "instrument": ("piano", "violin", "flute"),
    "month": ("March", "August", "May"), "insect": ("ant", "wasp", "beetle"),
}  # fmt: skip


def quizzes(draw: random.Random) -> Made:
    """Four options in lines; the reply must begin with the letter in brackets."""
    while True:
        right, *others = draw.sample(sorted(GROUPS), 4)
        words = [draw.choice(GROUPS[group]) for group in (right, *others)]
        listed = draw.sample(words, 4)
        lines = "\n".join(f"{a}. {word}" for a, word in zip("ABCD", listed, strict=True))
        letter = "ABCD"[listed.index(words[0])]
        yield f"Pick the {right}.\n{lines}\nYour pick:", letter, []


def counts(draw: random.Random) -> Made:
    """A small sum in words; the whole reply must be the number."""
    while True:
        who, load = draw.choice(CREW), draw.choice(CARGO)
        a, b = draw.randrange(2, 9), draw.randrange(1, 6)
        text, value = draw.choice(
            [
                (f"{who} carries {a} {load}, then {b} more.", a + b),
                (f"Of {a + b} {load}, {b} are broken. Count the good ones.", a),
                (f"Two ships carry {a} {load} each.", 2 * a),
            ]
        )
        yield f"{text} The number is", str(value), []


STRANGE = (
    ("¿De qué color es {}? Una sola palabra.",
     {"la nieve": "blanco", "la sangre": "rojo", "la hierba": "verde", "el cielo": "azul",
      "el carbón": "negro", "el sol": "amarillo"}),
    ("Wat is het tegenovergestelde van {}? Eén woord.",
     {"groot": "klein", "warm": "koud", "dag": "nacht", "wit": "zwart", "oud": "jong"}),
    ("Comment s'appelle le petit {} ? Un mot.", {"de la vache": "veau", "du chien": "chiot",
                                                 "du chat": "chaton"}),
    ("Wie viele Tage hat {}? Nur die Zahl.", {"eine Woche": "7", "ein Jahr": "365",
                                              "der April": "30"}),
    ("In quale paese si trova {}? Una parola.", {"Parigi": "Francia", "Roma": "Italia",
                                                 "Berlino": "Germania", "Madrid": "Spagna"}),
)  # fmt: skip


def strange(draw: random.Random) -> Made:
    """One word, asked for in Spanish, Dutch, French, German or Italian."""
    known = [(text.format(of), said) for text, words in STRANGE for of, said in words.items()]
    for text, said in draw.sample(known, len(known)):
        yield text, said, []


SEVENTH = {
    "gate": gates, "card": cards, "task": tasks, "riddle": riddles, "feeling": feelings,
    "quiz": quizzes, "count": counts, "strange": strange,
}  # fmt: skip
