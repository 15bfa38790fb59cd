"""H2 to H4, keeping to protocol: answers in a schema, calls of tools, promises across turns."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from forgetmap.answers.items import Item
from forgetmap.capabilities.suite.common import (
    COLOURS,
    NAMES,
    OBJECTS,
    PLACES,
    draft,
    drawn,
)
from forgetmap.capabilities.suite.knowledge import facts_choice

# H2: formats


_CHOICE = {
    "type": "object",
    "properties": {
        "answer": {"type": "string", "enum": ["A", "B", "C", "D"]},
        "confidence": {"type": "number", "minimum": 0, "maximum": 1},
    },
    "required": ["answer", "confidence"],
    "additionalProperties": False,
}


def schema_choice(rng: random.Random, n: int) -> list[Item]:
    """A quiz question whose answer must come as JSON."""
    return [
        draft(
            f"{item.prompt} Reply with nothing but JSON that follows this schema: "
            f"{json.dumps(_CHOICE)}",
            item.gold,
            json.dumps({"answer": item.gold, "confidence": 0.9}),
            schema=_CHOICE,
            meta={"answer_key": "answer"},
        )
        for item in facts_choice(rng, n)
    ]


_RECORD = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer", "minimum": 0},
        "place": {"type": "string"},
        "likes": {"type": "array", "items": {"type": "string"}, "minItems": 1},
    },
    "required": ["name", "age", "place", "likes"],
    "additionalProperties": False,
}


@drawn()
def schema_record(rng: random.Random, _number: int) -> Item:
    """What a sentence says, as a record."""
    name, place, age = rng.choice(NAMES), rng.choice(PLACES), rng.randint(18, 90)
    first, second = rng.sample(COLOURS, 2)
    record = {"name": name, "age": age, "place": place, "likes": [first, second]}
    return draft(
        f"{name} works at the {place}, is {age} years old and likes the colours {first} and "
        f"{second}. Put this into JSON, the colours in this order and the place as one word, "
        f"and write nothing else. The schema: {json.dumps(_RECORD)}",
        record,
        json.dumps(record),
        schema=_RECORD,
    )


@drawn()
def tables(rng: random.Random, number: int) -> Item:
    """What a few sentences say, as a Markdown table."""
    columns, count = ["Name", "Object", "Price"], 2 + number % 3
    names, things = rng.sample(NAMES, count), rng.sample(OBJECTS, count)
    rows = [
        [name, thing, str(rng.randint(2, 60))] for name, thing in zip(names, things, strict=True)
    ]
    sales = " ".join(f"{name} sells a {thing} for {price} coins." for name, thing, price in rows)
    return draft(
        f"{sales} Put this into a Markdown table with the columns Name, Object and Price, the "
        "price as a bare number, and write nothing else.",
        rows,
        "\n".join(f"| {' | '.join(line)} |" for line in [columns, ["---"] * 3, *rows]),
        meta={"columns": columns, "rows": count},
    )


# H3: tools


def _tool(name: str, description: str, **parameters: str) -> dict[str, Any]:
    properties = {key: {"type": kind} for key, kind in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": list(parameters)}
    return {"name": name, "description": description, "parameters": schema}


TOOLS = (
    _tool("get_weather", "Weather of a day in a city.", city="string", day="string"),
    _tool("set_timer", "Start a timer.", minutes="integer", label="string"),
    _tool("bank.convert", "Convert money.", amount="number", source="string", target="string"),
    _tool("calendar.add_event", "Add an event.", title="string", day="string", hour="integer"),
    _tool("send_message", "Send a message to a person.", recipient="string", text="string"),
    _tool("shop.order", "Order goods.", article="string", quantity="integer"),
)
_CITIES = ("Lisbon", "Oslo", "Nairobi", "Lima", "Kyoto", "Quebec", "Prague", "Accra")
_NO_CALL = (
    "What is the plural of {}?",
    "Which letter does the word {} begin with?",
    "How many letters has the word {}?",
    "Say the word {} twice.",
)


class Wish(NamedTuple):
    """A request, and the call that it takes."""

    words: str
    call: dict[str, Any]


def _call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def _wish(rng: random.Random, tool: str) -> Wish:
    city, name, thing = rng.choice(_CITIES), rng.choice(NAMES), rng.choice(OBJECTS)
    day = rng.choice(["Monday", "Friday", "Sunday"])
    few, many = rng.randint(2, 9), rng.randint(10, 55)
    wishes = {
        "get_weather": Wish(
            f"find out the weather in {city} on {day}", _call("get_weather", city=city, day=day)
        ),
        "set_timer": Wish(
            f'start a timer of {many} minutes with the label "{thing}"',
            _call("set_timer", minutes=many, label=thing),
        ),
        "bank.convert": Wish(
            f"convert {many} from EUR to USD",
            _call("bank.convert", amount=many, source="EUR", target="USD"),
        ),
        "calendar.add_event": Wish(
            f'add an event with the title "{thing}" on {day} at {few} o\'clock',
            _call("calendar.add_event", title=thing, day=day, hour=few),
        ),
        "send_message": Wish(
            f'send {name} the message "The {thing} is here"',
            _call("send_message", recipient=name, text=f"The {thing} is here"),
        ),
        "shop.order": Wish(
            f'order {few} pieces of the article "{thing}"',
            _call("shop.order", article=thing, quantity=few),
        ),
    }
    return wishes[tool]


@drawn([1, 2, 0, 1])
def tool_calls(rng: random.Random, _number: int, count: int) -> Item:
    """One call, two calls, or none, with four tools to choose from."""
    offered = rng.sample(TOOLS, 4)
    wishes = [_wish(rng, tool["name"]) for tool in rng.sample(offered, count)]
    request = f"Please {' and '.join(wish.words for wish in wishes)}."
    if not wishes:
        request = rng.choice(_NO_CALL).format(rng.choice(OBJECTS))
    calls = [wish.call for wish in wishes]
    return draft(
        f"Tools: {json.dumps(offered)}\n\nReply with a JSON list of calls, each "
        '{"name": ..., "arguments": {...}}. If none of the tools is needed, reply NONE and nothing '
        f"else.\n\nRequest: {request}",
        calls,
        json.dumps(calls) if calls else "NONE",
        tools=offered,
    )


# H4: promises across turns


class Promise(NamedTuple):
    """What the first turn lays down, and how a text is made to keep it."""

    words: str
    commitment: dict[str, Any]
    keep: Callable[[str], str]


PROMISES = (
    Promise("use at most 30 words", {"max_words": 30}, lambda text: text),
    Promise(
        "call yourself Captain Brill and say that name", {"persona": "Captain Brill"},
        lambda text: f"{text} So says Captain Brill.",
    ),
    Promise("never use the word water", {"exclude": "water"}, lambda text: text),
    Promise(
        "use the phrase as far as we know", {"include": "as far as we know"},
        lambda text: f"{text} That is true as far as we know.",
    ),
    Promise(
        "begin with the words Dear reader", {"starts_with": "Dear reader"},
        lambda text: f"Dear reader, {text}",
    ),
    Promise(
        "end with the sentence Over and out.", {"ends_with": "Over and out."},
        lambda text: f"{text} Over and out.",
    ),
    Promise("write no list", {"format": "no_list"}, lambda text: text),
    Promise("write in small letters only", {"format": "lowercase"}, str.lower),
)  # fmt: skip
_ALONE = (
    Promise(
        "write in German only", {"language": "de"},
        lambda _text: "Das ist eine ganz gewöhnliche Antwort auf deine Frage und zwar auf Deutsch.",
    ),
    Promise(
        "write in French only", {"language": "fr"},
        lambda _text: "Voici une réponse tout à fait ordinaire à la question que tu as posée.",
    ),
    Promise("write nothing but JSON", {"format": "json"}, lambda t: json.dumps({"text": t})),
    Promise("write everything as a list with hyphens", {"format": "list"}, lambda t: f"- {t}"),
    Promise("write in capitals only", {"format": "capitals"}, str.upper),
    Promise(
        "put everything into a Markdown table", {"format": "table"},
        lambda text: f"| Answer |\n| --- |\n| {text} |",
    ),
)  # fmt: skip
_ASKED = (
    "What is bread made of?", "Why do birds sing?", "What is a compass for?",
    "How does a kite fly?", "Why do leaves fall?", "What does a baker do?",
    "How do bees find flowers?", "What is a library for?",
)  # fmt: skip


@drawn()
def promises(rng: random.Random, number: int) -> Item:
    """One, two or three things are agreed in the first turn; the second must keep them."""
    agreed = [rng.choice(_ALONE)] if number % 3 == 0 else _together(rng, 1 + number % 3)
    question = rng.choice(_ASKED)
    text = "It is simple once you look at it."
    for promise in agreed:
        text = promise.keep(text)
    rules = ", ".join(promise.words for promise in agreed)
    return draft(
        [f"From now on, in every answer, keep to this: {rules}. Do you agree?", question],
        None,
        text,
        meta={
            "turn1_response": "Yes, I agree. I will keep to that in every answer.",
            "commitments": [promise.commitment for promise in agreed],
        },
    )


def _together(rng: random.Random, n: int) -> Sequence[Promise]:
    """Promises that can be kept at once, in the order in which they are applied to a text."""
    taken = sorted(rng.sample(range(len(PROMISES)), n))
    return [PROMISES[index] for index in taken]
