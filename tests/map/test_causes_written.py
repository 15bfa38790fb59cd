"""One idea each: how models write answers, in cases that come from no log."""

from __future__ import annotations

from typing import Any

import pytest

from forgetmap.map.causes import UNKNOWN, Lost, cause_of

UNREAD: dict[str, Any] = {"answer_after": "[invalid]", "status_after": "no_answer"}
CALL = 'book_taxi(place="station", hour=9)'
OBJECT = '{"name": "Lea", "age": 31}'
PROGRAM = "def triple(n):\n    return n * 3"


def value(target: str, prompt: str, after: str, before: str = "") -> Lost:
    """A value; the harness compares the whole text."""
    return Lost(target=target, answer_before=before or target, prompt_after=prompt,
                answer_after=after.strip().rstrip("."), response_before=before or target,
                response_after=after)  # fmt: skip


def river(after: str) -> Lost:
    return value("Danube", "Which river flows through Vienna? One word.", after)


def legs(after: str) -> Lost:
    return value("24", "A barn holds 6 cows with 4 legs each. How many legs in all?", after)


def difference(after: str) -> Lost:
    return value("3", "What is 8 - 5? Only the number.", after)


def mood(after: str) -> Lost:
    return value("calm", "The lake lies still. Is this calm or wild?", after)


def animal(after: str) -> Lost:
    return value("gatto", "Quale animale fa miao? Rispondi con una parola.", after)


def letter(after: str) -> Lost:
    prompt = "(A) rose  (B) iron  (C) milk\nWhich one is a metal? Letter:"
    return value("B", prompt, after)._replace(k=3)


def formed(before: str, after: str, status: str = "no_answer") -> Lost:
    return Lost(target=before, answer_before=before, status_after=status, response_before=before,
                response_after=after, prompt_after="Do what the text says.")  # fmt: skip


def call(after: str) -> Lost:
    return formed(CALL, after)


def record(after: str) -> Lost:
    return formed(OBJECT, after)


def program(after: str) -> Lost:
    return formed(PROGRAM, after, "ok")


SET_APART = [
    (river("Certainly! The river you want is: Danube"), "wrapped"),
    (river("Here is my answer:\n\n**Danube**"), "wrapped"),
    (river("Let me think about Vienna.\nIt lies on a large river.\nDanube"), "wrapped"),
    (river("Which river flows through Vienna?\nAnswer: Danube."), "wrapped"),
    (river("Okay:\nDanube\nLet me know if you need more!"), "wrapped"),
    (river(r"$\boxed{Danube}$"), "wrapped"),
    (river("My answer is <final>Danube</final>"), "wrapped"),
    (river("The river is `Danube`, I am sure."), "wrapped"),
    (river("It is the Danube that flows through Vienna."), "wrapped"),
    (river("Danube, as far as I know."), "wrapped"),
    (river("Certainly! The river you want is: Rhine"), "wrong"),
    (river("Let me think about Vienna.\nIt lies on a large river.\nRhine"), "wrong"),
    (letter("The metal is: B"), "wrapped"),
    (letter("The metal among them is B."), "wrapped"),
    (letter("iron"), "wrapped"),
    (letter("The metal is milk."), "wrong"),
    (letter("A rose is a flower and milk is a drink."), "unparsed"),
]

NUMBERS = [
    (legs("6 * 4 = 24 legs"), "wrapped"),
    (legs("There are twenty-four legs."), "wrapped"),
    (legs("So the barn has 24 legs in all."), "wrapped"),
    (legs("6 * 4 = 25 legs"), "wrong"),
    (legs("I get 25."), "wrong"),
    (legs("There are twenty-five legs."), "wrong"),
    (legs("There are 6 cows in the barn."), "unparsed"),
    (legs("We need 6 * 4 for this."), "unparsed"),
    (legs("24 is an even number."), "unparsed"),
    (difference("8 - 5 is a subtraction."), "unparsed"),
    (difference("8 - 5 = 3"), "wrapped"),
    (difference("The result: 3"), "wrapped"),
    (difference("5 is the number that is taken away."), "unparsed"),
    (difference("That makes 4."), "wrong"),
    (difference("I would take 5 from 8 and then look at what the"), "truncated"),
]

OFFERED = [
    (mood("The lake seems calm to me."), "wrapped"),
    (mood("Is it calm or wild? Wild."), "wrong"),
    (mood("It can be calm or wild."), "unparsed"),
    (mood("The lake is a nice place for a holiday with children."), "unparsed"),
    (mood("It's not wild, so I say calm."), "wrapped"),
    (mood("The scene is clearly wild, with waves and foam all over."), "wrong"),
]

SUBJECT = [
    (river("I'm not sure what you mean."), "refused"),
    (river("Could you tell me more about it?"), "refused"),
    (river("I'm not sure. It may be the Rhine."), "wrong"),
    (river("Which river flows through Vienna? One word."), "unparsed"),
    (river("You can find many good books in the public library nearby."), "wrong"),
    (river("The river in Vienna is the Rhine, which is long."), "wrong"),
    (river("Vienna has many rivers, and people like to swim there when it gets hot."), "wrong"),
    (river(f"{' '.join(f'word{n}' for n in range(60))}."), UNKNOWN),
]

LANGUAGES = [
    (animal("Sure, here is the word that you want: gatto"), "language"),
    (animal("The animal is the gatto."), "language"),
    (animal("L'animale che fa miao è il gatto."), "wrapped"),
    (animal("Parola: gatto"), "wrapped"),
    (animal("cane"), "wrong"),
    (river("Es ist die Donau, und sie ist sehr lang."), "language"),
    (river("De rivier in Wenen is de Donau en die is heel lang."), "language"),
]

CALLS = [
    (call('{"type": "function", "function": {"name": "book_taxi", '
          '"arguments": {"place": "station", "hour": 9}}}'), "wrapped"),
    (call('Action: book_taxi\nAction Input: {"place": "station", "hour": 9}'), "wrapped"),
    (call('<function=book_taxi>{"place": "station", "hour": 9}</function>'), "wrapped"),
    (call("tool: book_taxi\nplace: station\nhour: 9"), "wrapped"),
    (call('print(book_taxi(place="station", hour=9))'), "wrapped"),
    (call('result = book_taxi(place="station", hour=9)'), "wrapped"),
    (call('Action: book_taxi\nAction Input: {"place": "airport", "hour": 9}'), "wrong"),
    (record('{"name": "Lea", "age": 31,}'), "wrapped"),
    (record("name = Lea\nage = 31"), "wrapped"),
    (record("`name`: Lea\n`age`: 31"), "wrapped"),
    (record('```json\n{"name": "Lea", "age": 13}\n```'), "wrong"),
]  # fmt: skip

PROGRAMS = [
    (program("def threefold(n):\n    return"), "truncated"),
    (program("def help_me(n):\n    return n\n\ndef help_me_more(n):\n    return n\n\ndef help"),
     "wrong"),
    (program("Try this:\n\ndef triple(number):\n    return 3 * number\n\nIt works."), "wrapped"),
]  # fmt: skip

CIRCLES = [
    (call("A guest may take a new taxi.\nA guest may take a new train.\nA guest may take a taxi.\n"
          "A guest may take a taxi."), "degenerate"),
    (call("The place is a list of places and the list is a place. The list of places is a list, "
          "and the place is a list of places. The place is"), "degenerate"),
    (call("First go to the station. Then ask for the driver. He waits until nine."), "prose"),
]  # fmt: skip


MORE = [
    (letter("(A) rose  (B) iron  (C) milk"), "unparsed"),
    (letter("(A) rose, (B) iron, (C) milk. So it is C."), "wrong"),
    (value("B", "The metal: (A) oak; (B) iron; (C) milk. Letter:", "(A) oak; (B) iron; (C) milk."),
     "unparsed"),
    (value("good", "Mood of the letter, good or bad:", "The letter is good."), "wrapped"),
    (value("good", "Mood of the letter, good or bad:", "The letter sounds bad to me."), "wrong"),
    (letter("<reply>C</reply>"), "wrong"),
    (value("A", "(A) rose  (B) iron\nThe flower:", "I would take A in this case."), "wrapped"),
    (value("A", "(A) rose  (B) iron\nThe flower:", "A flower is a plant."), "unparsed"),
    (river("The river in Vienna is a very long one."), "wrong"),
    (river("Danubeuser\nWhich river flows through Cologne?"), "ran_on"),
    (river("name: Danube\nsure: yes"), "wrapped"),
    (call("The name of the"), "prose"),
    (call("book_taxi(place="), "truncated"),
    (call("<b>station</b>"), "unparsed"),
    (call("Es ist book_taxi(place=\"station\", hour=9) und nichts anderes."), "language"),
    (program('def triple(n):\n    """Three times n."""'), "truncated"),
    (mood("Calm. It is never wild."), "wrapped"),
    (mood("happiness"), "unparsed"),
    (river("Rhine\nuser\nWhich river flows through Cologne and then through the land of the many "
           "small towns and"), "wrong"),
    (legs("The barn holds 6 * "), "truncated"),
    (legs("The number of legs is:"), "truncated"),
    (river("a) Rhine\nb) Danube\nc) Elbe"), "list"),
    (river("Rhine, Danube, Elbe, Oder, "), "list"),
    (call("You can do this with a function of your own.\n\n```python\ndef book"), "truncated"),
    (program("def triple(n):\n    return n + 3\n\ndef sixfold(n):\n    ret"), "wrong"),
    (program('def triple(n):\n    """\n    """\n    """\n    """'), "degenerate"),
    (river("I see, I see, I see. I see."), "degenerate"),
    (river("The Rhine flows through Vienna.\nThe Rhine flows through Vie"), "degenerate"),
    (river("The Rhine is long. It is wide. The Rhine is long."), "wrong"),
    (river("A: Rhine\nB: Rhine\nC: Rhine\nD: Rhi"), "degenerate"),
    (river("A river flows through Vienna.\nriver flows through Vienna"), "wrong"),
    (river("River flows through Vienna."), "unparsed"),
    (river("Danube\nRhine"), "ran_on"),
    (river("- Danube\n- It is a long river.\n- That is all."), "wrapped"),
    (river("Direi proprio Rhine, senza dubbio."), "language"),
    (animal("I am going with cane on that."), "language"),
    (animal("My guess: gatto"), "wrapped"),
    (letter("It is (A) iron or so.\nThat one is (C) iron."), "unparsed"),
    (legs("The barn holds 24 cows and then it gets"), "truncated"),
    (legs("6 * 4 = 24\n24 + 4 = 28\n28 +"), "wrapped"),
    (legs("6 minus 4 ="), "truncated"),
    (legs("- 10\n- That is 24.\n- No more."), "wrong"),
    (value("5", "Quanto fa due più tre? Solo il numero.", "sei"), "wrong"),
    (legs("Here is a function for it:\n\n```python\ndef legs"), "unparsed"),
    (record('{"age": 31, "name": "Lea"}\n\nWhat is next?'), "wrapped"),
    (record('{"name": "Leo", "age": 31}\n{"name": "L'), "wrong"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("item", "expected"),
    [*SET_APART, *NUMBERS, *OFFERED, *SUBJECT, *LANGUAGES, *CALLS, *PROGRAMS, *CIRCLES, *MORE],
)
def test_what_models_write(item: Lost, expected: str) -> None:
    assert (cause_of(item) or UNKNOWN) == expected


def test_a_program_that_equals_the_target_is_right_whatever_came_before() -> None:
    item = Lost(target=PROGRAM, response_before="def triple(n):\n    return n + n + n",
                response_after=f"My idea: {PROGRAM}")  # fmt: skip
    assert cause_of(item) == "wrapped"
