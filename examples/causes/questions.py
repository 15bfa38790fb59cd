"""Questions with one right answer, and the strict harness that reads the answers.

Six kinds are here, the others in wider.py. The harness is strict on purpose: it reads an answer as
BFCL, EvalPlus and lm-eval do. So a model that gives the right answer in another form loses the
item, and the cause must say so.
"""

from __future__ import annotations

import ast
import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from eighth import EIGHTH, RESULT
from eleventh import ELEVENTH
from ninth import NINTH
from seventh import SEVENTH
from sixth import SIXTH, TOTAL
from tenth import TENTH
from wider import LETTER, WIDER, WORKED

from forgetmap.capabilities.scorers.sandbox.programs import Program, run_all

NAMES = ("Anna", "Ben", "Clara", "David", "Elena", "Felix", "Grace", "Hugo", "Ines", "Jonas")
CITIES = ("Oslo", "Rome", "Paris", "Lima", "Cairo", "Berlin", "Madrid", "Tokyo", "Vienna", "Delhi")
THINGS = ("apples", "books", "coins", "stamps", "pencils", "marbles", "cards", "shells", "eggs")


@dataclass(frozen=True)
class Question:
    """A question, and what the harness needs to judge an answer to it."""

    ref: str
    kind: str
    text: str
    target: str
    checks: tuple[str, ...] = field(default=())
    """For a program: tests that it must pass."""


@dataclass(frozen=True)
class Reading:
    """What the harness made of an answer."""

    right: bool
    answer: str | None = None
    status: str = "ok"


def questions(kind: str, number: int, seed: int = 0) -> list[Question]:
    """The first questions of a kind; the same ones on every machine."""
    draw = random.Random(f"{kind} {seed}")  # no secret
    made: dict[str, Question] = {}
    for text, target, checks in _KINDS[kind](draw):
        ref = f"{kind}-{len(made)}"
        made.setdefault(text, Question(ref, kind, text, target, tuple(checks)))
        if len(made) == number:
            break
    return list(made.values())


Made = Iterator[tuple[str, str, list[str]]]


def _calls(draw: random.Random) -> Made:
    while True:
        city, name, n = draw.choice(CITIES), draw.choice(NAMES), draw.randrange(2, 30)
        hour, thing = draw.randrange(6, 22), draw.choice(THINGS)
        signature, request, call = draw.choice(
            [
                (
                    "get_weather(city: str, days: int)",
                    f"What will the weather be in {city} for the next {n} days?",
                    f'get_weather(city="{city}", days={n})',
                ),
                (
                    "book_table(city: str, people: int)",
                    f"Book a table for {n} people in {city}.",
                    f'book_table(city="{city}", people={n})',
                ),
                (
                    "send_message(to: str, text: str)",
                    f'Send {name} the message "See you at {hour}".',
                    f'send_message(to="{name}", text="See you at {hour}")',
                ),
                (
                    "set_alarm(hour: int, label: str)",
                    f'Set an alarm at {hour} with the label "{thing}".',
                    f'set_alarm(hour={hour}, label="{thing}")',
                ),
                (
                    "add_to_cart(item: str, quantity: int)",
                    f"Put {n} {thing} into my cart.",
                    f'add_to_cart(item="{thing}", quantity={n})',
                ),
                (
                    "find_flights(origin: str, destination: str)",
                    f"Find flights from {city} to {CITIES[(CITIES.index(city) + n) % 10]}.",
                    f'find_flights(origin="{city}", '
                    f'destination="{CITIES[(CITIES.index(city) + n) % 10]}")',
                ),
                (
                    "multiply(a: int, b: int)",
                    f"Multiply {n} by {hour}.",
                    f"multiply(a={n}, b={hour})",
                ),
                (
                    "create_user(name: str, age: int, city: str)",
                    f"Create a user {name}, aged {n + 18}, who lives in {city}.",
                    f'create_user(name="{name}", age={n + 18}, city="{city}")',
                ),
            ]
        )
        yield f"Function: {signature}\nRequest: {request}\nReply with the call only.", call, []


def _objects(draw: random.Random) -> Made:
    while True:
        city, name, n = draw.choice(CITIES), draw.choice(NAMES), draw.randrange(18, 80)
        thing, price = draw.choice(THINGS), draw.randrange(2, 60)
        schema, text, value = draw.choice(
            [
                (
                    '{"name": string, "age": integer, "city": string}',
                    f"{name} is {n} years old and lives in {city}.",
                    {"name": name, "age": n, "city": city},
                ),
                (
                    '{"item": string, "price": integer}',
                    f"The {thing} cost {price} dollars.",
                    {"item": thing, "price": price},
                ),
                (
                    '{"buyer": string, "item": string, "count": integer}',
                    f"{name} bought {n} {thing}.",
                    {"buyer": name, "item": thing, "count": n},
                ),
                (
                    '{"city": string, "temperature": integer, "unit": string}',
                    f"In {city} it is {price} degrees Celsius.",
                    {"city": city, "temperature": price, "unit": "Celsius"},
                ),
                (
                    '{"from": string, "to": string}',
                    f"{name} travels from {city} to {CITIES[(CITIES.index(city) + 3) % 10]}.",
                    {"from": city, "to": CITIES[(CITIES.index(city) + 3) % 10]},
                ),
            ]
        )
        question = (
            f"Fill the schema from the text.\nSchema: {schema}\nText: {text}\nReply with JSON only."
        )
        yield question, json.dumps(value), []


def _programs(draw: random.Random) -> Made:
    while True:
        a, b = draw.randrange(2, 40), draw.randrange(2, 40)
        name, task, body, tests = draw.choice(
            [
                ("scale(x)", f"returns x times {a} plus {b}", f"x * {a} + {b}",
                 [(3,), (0,), (-2,)]),
                ("shift(x)", f"returns x minus {a}", f"x - {a}", [(3,), (50,)]),
                ("far(x)", f"returns whether x is greater than {a}", f"x > {a}", [(a,), (a + 1,)]),
                ("total(xs)", f"returns the sum of the list xs plus {a}", f"sum(xs) + {a}",
                 [([1, 2],), ([],)]),
                ("rest(x)", f"returns the remainder of x divided by {a}", f"x % {a}",
                 [(97,), (5,)]),
                ("repeat(s)", f"returns the string s repeated {a} times", f"s * {a}", [("ab",)]),
                ("count(s)", f"returns the length of the string s plus {a}", f"len(s) + {a}",
                 [("abc",), ("",)]),
                ("bigger(x, y)", f"returns the larger of x and y, plus {a}", f"max(x, y) + {a}",
                 [(1, 2), (5, 3)]),
                ("last(xs)", f"returns the last element of the list xs times {a}", f"xs[-1] * {a}",
                 [([1, 2, 3],)]),
                ("square(x)", f"returns x squared minus {a}", f"x * x - {a}", [(4,), (-3,)]),
            ]
        )  # fmt: skip
        arguments = name[name.index("(") + 1 : -1]
        right = eval(f"lambda {arguments}: {body}")  # our own text
        function = name.partition("(")[0]
        checks = [
            f"assert {function}({', '.join(map(repr, test))}) == {right(*test)!r}" for test in tests
        ]
        question = f"Write a Python function {name} that {task}. Reply with the code only."
        yield question, f"def {name}:\n    return {body}", checks


def _sums(draw: random.Random) -> Made:
    while True:
        name, other = draw.sample(NAMES, 2)
        thing, a, b = draw.choice(THINGS), draw.randrange(3, 20), draw.randrange(2, 10)
        story, value = draw.choice(
            [
                (f"{name} has {a} {thing} and gets {b} more from {other}. How many {thing} does "
                 f"{name} have now?", a + b),
                (f"{name} has {a + b} {thing} and gives {b} to {other}. How many {thing} are left?",
                 a),
                (f"There are {b} boxes with {a} {thing} each. How many {thing} are there?", a * b),
                (f"{other} shares {a * b} {thing} equally among {b} children. How many does each "
                 "child get?", a),
                (f"{name} buys {b} {thing} at {a} dollars each and pays with {a * b + 20} dollars. "
                 "How much is the change?", 20),
            ]
        )  # fmt: skip
        yield f"{story}\nEnd with: The answer is N.", str(value), []


CAPITALS = {
    "France": "Paris", "Italy": "Rome", "Spain": "Madrid", "Norway": "Oslo", "Peru": "Lima",
    "Egypt": "Cairo", "Japan": "Tokyo", "Austria": "Vienna", "Germany": "Berlin",
    "Greece": "Athens", "Poland": "Warsaw", "Cuba": "Havana", "England": "London",
    "Russia": "Moscow", "China": "Beijing", "Portugal": "Lisbon", "Ireland": "Dublin",
}  # fmt: skip
OPPOSITES = {
    "hot": "cold", "big": "small", "up": "down", "black": "white", "good": "bad", "old": "young",
    "left": "right", "day": "night", "open": "closed", "fast": "slow", "high": "low",
    "happy": "sad", "in": "out", "yes": "no", "love": "hate", "hard": "soft", "wet": "dry",
}  # fmt: skip


def _words(draw: random.Random) -> Made:
    while True:
        land, word = draw.choice(list(CAPITALS)), draw.choice(list(OPPOSITES))
        text, target = draw.choice(
            [
                (f"What is the capital of {land}?", CAPITALS[land]),
                (f'What is the opposite of "{word}"?', OPPOSITES[word]),
            ]
        )
        yield f"{text} Reply with one word.", target, []


def _numbers(draw: random.Random) -> Made:
    while True:
        a, b = draw.randrange(1, 10), draw.randrange(1, 6)
        text, value = draw.choice(
            [(f"{a} + {b}", a + b), (f"{a + b} - {b}", a), (f"{a} * {min(b, 2)}", a * min(b, 2))]
        )
        yield f"What is {text}? Reply with the number only.", str(value), []


_KINDS = {
    "call": _calls, "json": _objects, "code": _programs, "sum": _sums, "word": _words,
    "number": _numbers, **WIDER, **SIXTH, **SEVENTH, **EIGHTH,
    **NINTH, **TENTH, **ELEVENTH,
}  # fmt: skip
EXAMPLES = {kind: [(q.text, q.target) for q in questions(kind, 3, seed=99)] for kind in _KINDS}
"""Three solved examples of each kind."""
for _kind in ("sum", "errand"):
    EXAMPLES[_kind] = [(text, f"The answer is {target}.") for text, target in EXAMPLES[_kind]]
EXAMPLES["choice"] = [(text, f"Answer: {target}") for text, target in EXAMPLES["choice"]]
for _kind in ("working", "worth", "puzzle", "tale"):
    EXAMPLES[_kind] = [(q.text, q.checks[0]) for q in questions(_kind, 3, seed=99)]


# --- the harness ----------------------------------------------------------------------------------


_PROGRAMS = ("code", "program", "stub", "task", "helper", "routine", "snippet", "method")
_TOLD = (
    *("call", "json", "record", "fact", "order", "note", "mood", "card", "riddle"),
    *("garden", "purse", "trade", "exam"),
    *("request", "profile", "trivia", "figure", "test"),
    *("service", "extract", "recall", "digit", "letter"),
    *("chain", "schema", "known", "multiple", "tale"),
)
"""Kinds whose harness is told that an answer was cut off."""


def read_answers(asked: list[Question], texts: list[str], cut: list[bool]) -> list[Reading]:
    """What the harness makes of each answer."""
    programs = [
        Program(text, question.checks)
        for question, text in zip(asked, texts, strict=True)
        if question.kind in _PROGRAMS
    ]
    outcomes = iter(run_all(programs))
    readings = []
    for question, text, was_cut in zip(asked, texts, cut, strict=True):
        if question.kind in _PROGRAMS:
            reading = _read_program(next(outcomes))
        else:
            reading = _READERS[question.kind](text, question.target)
        # Harnesses that are told of the cut say so; half of ours are not told.
        told = was_cut and not reading.right and question.kind in _TOLD
        readings.append(Reading(False, reading.answer, "truncated") if told else reading)
    return readings


def _read_call(text: str, target: str) -> Reading:
    """As BFCL: the text must be a call, with the right name and the right values."""
    said, wanted = as_call(text), as_call(target)
    if said is None:
        return Reading(False, None, "no_answer")
    return Reading(said == wanted, json.dumps(said))


def as_call(text: str) -> dict[str, Any] | None:
    """Name and arguments of a call, or of a list with one call."""
    try:
        node = ast.parse(text.strip(), mode="eval").body
        node = node.elts[0] if isinstance(node, ast.List) and len(node.elts) == 1 else node
        if not isinstance(node, ast.Call) or node.args:
            return None
        values = {word.arg: ast.literal_eval(word.value) for word in node.keywords if word.arg}
        return {"name": ast.unparse(node.func), "arguments": values}
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None


def _read_calls(text: str, target: str) -> Reading:
    """The same for a list of calls, as BFCL wants it."""
    said, wanted = _listed(text), _listed(target)
    return Reading(said == wanted, json.dumps(said)) if said else Reading(False, None, "no_answer")


def _listed(text: str) -> list[dict[str, Any]] | None:
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not isinstance(node, ast.List):
        return None
    calls = [as_call(ast.unparse(part)) for part in node.elts]
    return [call for call in calls if call] if all(calls) else None


def _read_object(text: str, target: str) -> Reading:
    try:
        said = json.loads(text)
    except ValueError:
        return Reading(False, None, "no_answer")
    return Reading(said == json.loads(target), json.dumps(said))


def _read_program(outcomes: list[str]) -> Reading:
    """As EvalPlus: the whole text is the program, and all tests must pass."""
    return Reading(all(outcome == "passed" for outcome in outcomes))


_ANSWER_IS = re.compile(r"The answer is (-?[0-9.,]*[0-9])")


def _read_sum(text: str, target: str) -> Reading:
    """As the strict filter of lm-eval's GSM8K."""
    found = _ANSWER_IS.search(text)
    if not found:
        return Reading(False, "[invalid]", "no_answer")
    return Reading(found[1].replace(",", "") == target, found[1])


def _read_found(pattern: re.Pattern[str]) -> Callable[[str, str], Reading]:
    """What a pattern finds in the text, and nothing else."""

    def read(text: str, target: str) -> Reading:
        found = pattern.search(text.strip())
        if not found:
            return Reading(False, "[invalid]", "no_answer")
        wanted = target.rpartition("####")[2].strip()
        return Reading(found[1].strip(".,").replace(",", "") == wanted, found[1])

    return read


def _read_form(text: str, target: str) -> Reading:
    """The whole text must be the answer in its form; capital letters count."""
    return Reading(text.strip() == target, text.strip())


def _read_exact(text: str, target: str) -> Reading:
    """As lm-eval's exact match: the whole text must be the answer, but for case and full stop."""
    said = text.strip().rstrip(".")
    return Reading(said.lower() == target.lower(), said)


_READERS = {
    "call": _read_call, "json": _read_object, "sum": _read_sum, "word": _read_exact,
    "number": _read_exact, "tool": _read_calls, "record": _read_object, "fact": _read_exact,
    "abroad": _read_exact, "form": _read_form, "story": _read_found(WORKED),
    "choice": _read_found(LETTER), "order": _read_object, "line": _read_call, "note": _read_object,
    "working": _read_found(TOTAL),
    **dict.fromkeys(("bill", "row", "lexis", "mood", "statement", "pick", "foreign"), _read_exact),
    **dict.fromkeys(("riddle", "feeling", "quiz", "count", "strange"), _read_exact),
    "gate": _read_call, "card": _read_object,
    **dict.fromkeys(("purse", "trade", "side", "exam", "world", "tally", "tongue"), _read_exact),
    "switch": _read_call, "garden": _read_object, "step": _read_object,
    "worth": _read_found(RESULT),
    "request": _read_call, "plan": _read_calls, "dispatch": _read_object, "profile": _read_object,
    "errand": _read_sum,
    **dict.fromkeys(("figure", "trivia", "verdict", "test", "accent"), _read_exact),
    "service": _read_call, "batch": _read_calls, "payload": _read_object, "extract": _read_object,
    "puzzle": _read_sum,
    **dict.fromkeys(("digit", "recall", "either", "letter", "locale"), _read_exact),
    "action": _read_call, "chain": _read_calls, "nested": _read_call, "schema": _read_object,
    "tale": _read_found(WORKED),
    **dict.fromkeys(("reckoning", "multiple", "tag", "known", "region"), _read_exact),
}  # fmt: skip
