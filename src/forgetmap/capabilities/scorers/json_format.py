"""JSON answers: is it nothing but JSON, can JSON be found, does it fit the schema, is it right."""

from __future__ import annotations

import ast
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import orjson

from forgetmap.answers.items import Item, Value
from forgetmap.answers.text import normal, optional
from forgetmap.capabilities.scorers import numbers
from forgetmap.capabilities.scorers.scoring import NO_ANSWER, NOT_ASKED, per_answer, right_or_wrong

METRICS = ("strict", "recoverable", "schema", "content")
FIELDS = ("schema",)
VERSION = 1

_FENCE = re.compile(r"```[ \t]{0,4}\w{0,20}[ \t]{0,4}\n(.{0,100000}?)```", re.DOTALL)
_OPENING = re.compile(r"[{\[]")
_TRAILING_COMMA = re.compile(r",(?=\s{0,200}[}\]])")
_MOST_PLACES = 20
"""How many brackets are tried as the beginning of JSON within prose."""
_LONGEST_LITERAL = 20_000
_PATTERN_SECONDS = 1.0
_ANSWER_KEYS = ("answer", "final_answer", "result", "value")
NOTHING = object()
"""Stands for no JSON found, since null is JSON."""


@per_answer(METRICS)
def score(item: Item, text: str) -> Value | Sequence[Value]:
    """Judge the form, and then what it holds.

    `content` compares with `gold`: an object as a whole, a plain value with the field named in
    `meta["answer_key"]`, else `answer` or the like, else the only field.

    Example:
        >>> item = Item("quiz", "1", gold="B", schema={"required": ["answer"]})
        >>> values = score([item], ['Sure! ```json\\n{"answer": "B",}\\n```'])
        >>> {name: value[0].value for name, value in values.items()}
        {'strict': 0.0, 'recoverable': 1.0, 'schema': 1.0, 'content': 1.0}
    """
    if item.schema is None:
        return Value(None, "invalid_gold", "the item has no schema")
    found = strict(text)
    is_strict = found is not NOTHING
    if not is_strict:
        found = recover(text)
    if found is NOTHING:
        wrong = Value(0.0)
        return wrong, wrong, NO_ANSWER, NOT_ASKED if item.gold is None else NO_ANSWER
    shown = json.dumps(found, ensure_ascii=False, default=str)[:200]
    try:
        follows = right_or_wrong(fits(found, item.schema), shown)
    except ValueError as error:
        follows = Value(None, "invalid_gold", str(error))
    return (
        right_or_wrong(is_strict, shown),
        right_or_wrong(True, shown),
        follows,
        NOT_ASKED if item.gold is None else right_or_wrong(_is_right(found, item), shown),
    )


def strict(text: str) -> Any:
    """The value, if the whole text is JSON; else `NOTHING`."""
    try:
        return orjson.loads(text.strip())
    except orjson.JSONDecodeError:
        return NOTHING


def recover(text: str) -> Any:
    """The first JSON object or list in the text: fenced, within prose, or nearly JSON.

    Repaired are commas before a closing bracket, and Python's quotes and constants.

    Example:
        >>> recover("Here: {'a': True, } and more.")
        {'a': True}
        >>> recover("no JSON") is NOTHING
        True
    """
    for fenced in _FENCE.finditer(text):
        for repair in (strict, _without_commas, _python_literal):
            if (found := repair(fenced[1])) is not NOTHING and isinstance(found, dict | list):
                return found
    decoder = json.JSONDecoder()
    for place in _places(text):
        try:
            return decoder.raw_decode(text, place)[0]
        except (ValueError, RecursionError):
            continue
    for place in _places(text):
        end = max(text.rfind("}"), text.rfind("]")) + 1
        for repair in (_without_commas, _python_literal):
            if (found := repair(text[place:end])) is not NOTHING:
                return found
    return NOTHING


def _places(text: str) -> Iterator[int]:
    return (match.start() for match in itertools.islice(_OPENING.finditer(text), _MOST_PLACES))


def _without_commas(text: str) -> Any:
    return strict(_TRAILING_COMMA.sub("", text))


def _python_literal(text: str) -> Any:
    if len(text) > _LONGEST_LITERAL:
        return NOTHING
    try:
        found = ast.literal_eval(text.strip())
        orjson.dumps(found)  # a set or bytes is no JSON
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return NOTHING
    return found if isinstance(found, dict | list) else NOTHING


def fits(value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether a value satisfies a JSON Schema; nothing is fetched, and no pattern runs for long.

    ValueError where the schema is none, or refers to another one elsewhere.
    """
    unresolvable = optional("referencing.exceptions").Unresolvable
    try:
        return bool(_validator(json.dumps(schema, sort_keys=True)).is_valid(value))
    except unresolvable as error:
        raise ValueError(f"the JSON Schema refers to what is not in it: {error.ref:.80}") from error
    except RecursionError:
        return False


@lru_cache(maxsize=1024)
def _validator(schema_text: str) -> Any:
    jsonschema, registry = optional("jsonschema"), optional("referencing").Registry()
    schema = json.loads(schema_text)
    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        kind.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise ValueError(f"the JSON Schema is not valid: {error.message:.120}") from error
    return jsonschema.validators.extend(kind, {"pattern": _pattern})(schema, registry=registry)


def _pattern(_validator: Any, pattern: str, value: Any, _schema: Any) -> Iterator[Exception]:
    """The schema's own pattern, stopped when it takes too long; then it does not fit."""
    if not isinstance(value, str):
        return
    try:
        found = optional("regex").search(pattern, value, timeout=_PATTERN_SECONDS)
    except TimeoutError:
        found = None
    if not found:
        yield optional("jsonschema").ValidationError(f"does not match {pattern!r:.80}")


def _is_right(found: Any, item: Item) -> bool:
    if isinstance(item.gold, Mapping | list):
        return same(found, item.gold)
    key = item.meta.get("answer_key")
    if isinstance(found, dict):
        keys = [name for name in (key, *_ANSWER_KEYS) if name in found]
        found = found[keys[0]] if keys else next(iter(found.values()), None)
    return same(found, item.gold)


def same(value: Any, gold: Any) -> bool:
    """Whether two values say the same: numbers by size, text by its words, the rest part by part.

    Example:
        >>> same({"n": "1,234"}, {"n": 1234}), same([1, 2], [2, 1]), same(True, 1)
        (True, False, False)
    """
    if isinstance(value, dict) and isinstance(gold, Mapping):
        return value.keys() == gold.keys() and all(same(value[key], gold[key]) for key in gold)
    if isinstance(value, list) and isinstance(gold, list):
        return len(value) == len(gold) and all(map(same, value, gold))
    if isinstance(value, dict | list) or isinstance(gold, Mapping | list):
        return False
    if isinstance(value, bool) or isinstance(gold, bool) or value is None or gold is None:
        return str(value).lower() == str(gold).lower()
    first, second = numbers.read_gold(value), numbers.read_gold(gold)
    if first is not None and second is not None:
        return abs(first - second) <= numbers.TOLERANCE
    text = normal(str(value)[:2000])
    return text == normal(str(gold)) and bool(text or str(value) == str(gold))
