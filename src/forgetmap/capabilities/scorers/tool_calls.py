"""Tool calls: which were made, in whatever style they are written, and whether they are right.

An item's calls are a multiset: their order counts only where `meta["ordered"]` is true. Text around
a call changes nothing, since the unit is the item and not the line.
"""

from __future__ import annotations

import ast
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from forgetmap.answers.items import Item, Value
from forgetmap.capabilities.scorers.scoring import NO_ANSWER, NOT_ASKED, bad_gold, per_answer

METRICS = ("exact", "name_f1", "argument_f1", "spurious", "abstention")
FIELDS = ("gold",)
VERSION = 1

_MOST_CALLS = 50
"""Calls of one answer that are looked at."""
_LONGEST_CALL = 5_000
_TAG = re.compile(r"<(tool_call|function_call|tool_calls|tool|invoke)>")
_FUNCTION_TAG = re.compile(r"<(function)=([\w.\-/]{1,200})>")
_PARAMETER_TAG = re.compile(r"<(parameter)=([\w.\-]{1,200})>")
_MARKED = re.compile(r"(?:\[TOOL_CALLS\]|<\|python_tag\|>|<\|tool_call\|>)")
_OPENING = re.compile(r"[{\[]")
_CALL = re.compile(
    r"(?:^|(?<=[\n\[,;`:=>]))[ \t]{0,8}(?:[-*•][ \t]|\d{1,3}[.)][ \t])?[ \t\[`]{0,4}"
    r"([A-Za-z_][\w\-]{0,99}(?:\.[A-Za-z_][\w\-]{0,99}){0,9})\("
)
"""A name with a bracket where a call may begin: a line, a list, a fence; not amid a sentence."""
_NAMES = ("name", "tool_name", "tool", "function_name")
_ARGUMENTS = ("arguments", "parameters", "args", "input", "kwargs")
_NONE = ("", "none", "null", "[]", "no call", "no function call")


class Call(NamedTuple):
    """One call."""

    name: str
    arguments: dict[str, Any]


@per_answer(METRICS)
def score(item: Item, text: str) -> Value | Sequence[Value]:
    """Compare the calls of each answer with the right ones.

    `exact`: the same calls, no more and no fewer. `name_f1`, `argument_f1`: shares of names, and of
    arguments of calls that belong together. `spurious`: share of the calls made that nobody asked
    for. `abstention`: on items that need no call, that none was made.

    Example:
        >>> item = Item("bfcl", "1", gold=["math.sqrt(x=9)"])
        >>> values = score([item] * 2, ["Sure:\\nmath.sqrt(x=9)\\nDone.", "math.cos(x=4)"])
        >>> [value.value for value in values["exact"]]
        [1.0, 0.0]
    """
    try:
        wanted = read_gold(item.gold, item.tools)
    except ValueError as error:
        return bad_gold(error)
    made = extract(text, item.tools)
    shown = _shown(made)
    if not wanted:
        right = Value(float(not made), answer=shown)
        return right, right, right, Value(float(bool(made)), answer=shown), right
    if not made:
        return NO_ANSWER, NO_ANSWER, NO_ANSWER, Value(0.0), NOT_ASKED
    pairs = match(made, wanted, bool(item.meta.get("ordered")))
    same = sum(
        _shared(one, other) == len(one.arguments) == len(other.arguments) for one, other in pairs
    )
    is_exact = len(made) == len(wanted) == same
    return (
        Value(float(is_exact), answer=shown),
        Value(2 * len(pairs) / (len(made) + len(wanted)), answer=shown),
        Value(_argument_f1(made, wanted, pairs), answer=shown),
        Value(1 - len(pairs) / len(made), answer=shown),
        NOT_ASKED,
    )


def _shown(calls: list[Call]) -> str:
    written = (f"{call.name}({json.dumps(call.arguments, default=str)})" for call in calls)
    return "; ".join(written)[:200]


def _argument_f1(made: list[Call], wanted: list[Call], pairs: list[tuple[Call, Call]]) -> float:
    total = sum(len(call.arguments) for call in (*made, *wanted))
    if not total:  # calls without arguments: right where the names are
        return 2 * len(pairs) / (len(made) + len(wanted))
    return 2 * sum(_shared(one, other) for one, other in pairs) / total


def match(made: list[Call], wanted: list[Call], ordered: bool = False) -> list[tuple[Call, Call]]:
    """Pair calls of the same name so that as many arguments as possible agree.

    Example:
        >>> a1, a2 = Call("a", {"x": 1}), Call("a", {"x": 2})
        >>> match([a1, a2], [a2, a1]) == [(a1, a1), (a2, a2)]
        True
    """
    if ordered:
        return [
            (one, other) for one, other in zip(made, wanted, strict=False) if one.name == other.name
        ]
    pairs: list[tuple[Call, Call]] = []
    shared_names = Counter(call.name for call in made) & Counter(call.name for call in wanted)
    for name in shared_names:
        mine = [call for call in made if call.name == name]
        theirs = [call for call in wanted if call.name == name]
        pairs += [(mine[0], theirs[0])] if len(mine) == len(theirs) == 1 else _assign(mine, theirs)
    return pairs


def _assign(mine: list[Call], theirs: list[Call]) -> list[tuple[Call, Call]]:
    from scipy.optimize import linear_sum_assignment

    # Twice the shared arguments less those that differ: a call that is right outweighs two halves.
    gain = [
        [2 * _shared(one, other) - len(one.arguments) - len(other.arguments) for other in theirs]
        for one in mine
    ]
    rows, columns = linear_sum_assignment(gain, maximize=True)
    return [(mine[row], theirs[column]) for row, column in zip(rows, columns, strict=True)]


def _shared(one: Call, other: Call) -> int:
    return sum(
        name in other.arguments and agree(value, other.arguments[name])
        for name, value in one.arguments.items()
    )


def agree(value: Any, wanted: Any) -> bool:
    """Whether two arguments are equal: numbers by size, text as written, the rest part by part.

    Example:
        >>> agree(2, 2.0), agree("Paris ", "Paris"), agree(True, 1), agree([1, 2], (1, 2))
        (True, True, False, True)
    """
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    if isinstance(value, int | float) and isinstance(wanted, int | float):
        return value == wanted or abs(value - wanted) <= 1e-6
    if isinstance(value, str) and isinstance(wanted, str):
        return value.strip() == wanted.strip()
    if isinstance(value, Mapping) and isinstance(wanted, Mapping):
        return value.keys() == wanted.keys() and all(
            agree(value[key], wanted[key]) for key in wanted
        )
    if isinstance(value, list | tuple) and isinstance(wanted, list | tuple):
        return len(value) == len(wanted) and all(map(agree, value, wanted))
    return value is None and wanted is None


def read_gold(gold: Any, tools: Sequence[Mapping[str, Any]] = ()) -> list[Call]:
    """The right calls: objects, Python calls, or nothing where none is right.

    Example:
        >>> read_gold("NONE"), read_gold([{"name": "f", "args": {"x": 1}}])
        ([], [Call(name='f', arguments={'x': 1})])
    """
    if gold is None:
        raise ValueError("the item has no calls; write [] where none is right")
    if isinstance(gold, str):
        gold = [] if gold.strip().lower() in _NONE else [gold]
    wanted: list[Call] = []
    for call in [gold] if isinstance(gold, Mapping) else gold:
        calls = list(_from_json(call)) if isinstance(call, Mapping) else extract(str(call), tools)
        if not calls and str(call).strip().lower() not in _NONE:
            raise ValueError(f"no call can be read from {call!r:.60}")
        wanted += calls
    return wanted


def extract(text: str, tools: Sequence[Mapping[str, Any]] = ()) -> list[Call]:
    """All calls of an answer, of the first style that is found: tags, JSON, Python.

    Example:
        >>> extract("I use `geo.find(city='Rome', n=2)`.")
        [Call(name='geo.find', arguments={'city': 'Rome', 'n': 2})]
        >>> extract("I will look (later).")
        []
    """
    parameters = dict(map(_parameters, tools))
    styles = (style(text, parameters) for style in (_tagged, _json_calls, _python_calls))
    return next(filter(None, styles), [])[:_MOST_CALLS]


Parameters = Mapping[str, list[str]]


def _parameters(tool: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Name of a tool and the order of its parameters, for arguments that are given by position."""
    inner = tool.get("function") if isinstance(tool.get("function"), Mapping) else tool
    schema = (inner or {}).get("parameters") or {}
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    return str((inner or {}).get("name")), list(properties or ())


def _tagged(text: str, parameters: Parameters) -> list[Call]:
    found: list[Call] = []
    for name, inside in _elements(text, _FUNCTION_TAG):
        given = {key: _value(value.strip()) for key, value in _elements(inside, _PARAMETER_TAG)}
        arguments = given or _value(inside.strip() or "{}")
        found.append(Call(name, arguments if isinstance(arguments, dict) else {}))
    if found:
        return found
    inside_tags = [inside for _, inside in _elements(text, _TAG)]
    if not inside_tags and (mark := _MARKED.search(text)):
        inside_tags = [text[mark.end() :]]
    for inside in inside_tags:
        found += _json_calls(inside, parameters) or _python_calls(inside, parameters)
    return found


def _elements(text: str, opening: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """What opening tags name, and what stands up to the closing tag or the end."""
    for tag in itertools.islice(opening.finditer(text), _MOST_CALLS):
        inside = text[tag.end() : tag.end() + _LONGEST_CALL]
        yield tag.group(tag.re.groups), inside.partition(f"</{tag[1]}>")[0]


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _json_calls(text: str, _parameters: Parameters) -> list[Call]:
    found: list[Call] = []
    decoder, position, tried = json.JSONDecoder(), 0, 0
    while (opening := _OPENING.search(text, position)) and tried < _MOST_CALLS:
        tried += 1
        try:
            value, position = decoder.raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            position = opening.end()
            continue
        found += _from_json(value)
    return found


def _from_json(value: Any) -> Iterator[Call]:
    """The calls that a JSON value holds: an object, a list of them, or what OpenAI returns."""
    if isinstance(value, list):
        for one in value:
            yield from _from_json(one)
    if not isinstance(value, Mapping):
        return
    for key in ("tool_calls", "calls", "function_calls"):
        if isinstance(value.get(key), list):
            yield from _from_json(value[key])
            return
    inner = value.get("function") or value.get("function_call")
    if isinstance(inner, Mapping):
        yield from _from_json(inner)
        return
    name = inner if isinstance(inner, str) else _first(value, _NAMES)
    arguments = _first(value, _ARGUMENTS)
    if isinstance(arguments, str):
        arguments = _value(arguments)
    if isinstance(name, str) and isinstance(arguments, Mapping):
        yield Call(name, dict(arguments))


def _first(value: Mapping[str, Any], keys: Iterable[str]) -> Any:
    return next((value[key] for key in keys if key in value), None)


def _python_calls(text: str, parameters: Parameters) -> list[Call]:
    found: list[Call] = []
    position = 0
    for _ in range(4 * _MOST_CALLS):
        if not (start := _CALL.search(text, position)):
            break
        end = _closing(text, start.end() - 1)
        call = _parse(start[1], text[start.end() : end], parameters) if end else None
        position = end + 1 if call and end else start.end()
        if call:
            found.append(call)
    return found


def _closing(text: str, opening: int) -> int | None:
    """Where the bracket that opens there is closed, quotation marks considered."""
    depth, quote, position = 0, "", opening
    while position < min(len(text), opening + _LONGEST_CALL):
        letter = text[position]
        if quote:
            position += letter == "\\"
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
            if not depth:
                return position
        position += 1
    return None


def _parse(name: str, inside: str, parameters: Parameters) -> Call | None:
    """A call from the text between its brackets; None where that is no list of arguments."""
    try:
        call = ast.parse(f"_({inside.strip()})", mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return None
    given = {keyword.arg: _literal(keyword.value) for keyword in call.keywords if keyword.arg}
    by_position = bool(call.args) and not given and name not in parameters
    has_names = any(isinstance(argument, ast.Name | ast.Starred) for argument in call.args)
    if by_position and (parameters or has_names):
        return None  # prose with brackets: Note(1), item(s)
    order = parameters.get(name, [])
    for number, argument in enumerate(call.args):
        given[order[number] if number < len(order) else str(number)] = _literal(argument)
    return Call(name, given)


def _literal(node: ast.expr) -> Any:
    """A value as it is written; what is no value, as its source. Nothing is computed."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return ast.unparse(node)
