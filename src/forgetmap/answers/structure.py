"""Answers with a form: calls, JSON and programs.

A text is never run. Python's own parser reads calls and programs, so that spaces, quotes and
comments do not matter.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from forgetmap.answers.programs import LONGEST, OPENS_CODE, as_code, parsed

_QUOTES = "\"'`“”‘’ \t\n"
_NAMED = ("name", "function", "tool", "tool_name", "function_name", "call", "action")
_ARGUMENTS = ("arguments", "parameters", "args", "input", "action_input", "kwargs")
CALL_KEYS = (*_NAMED, *_ARGUMENTS)
_LOOSE_CALL = re.compile(r"(?<!def )(?<!function )\b([A-Za-z_][\w.]{0,80})\s?\(([^()]{0,2000})\)")
_LOOSE_PAIR = re.compile(r"^\s*[\"']?(\w{1,60})[\"']?\s{0,3}[:=]\s{0,3}(.{1,500})$", re.DOTALL)
_LOOKS_CALLED = re.compile(rf"\W{{0,12}}\{{\s{{0,9}}\"(?:{'|'.join(_NAMED)})\"\s?:|<tool_call>")
_LABELLED = re.compile(
    r"^[-*•\t ]{0,9}[*_`\"']{0,2}[A-Za-z][\w ]{0,30}[*_`\"']{0,2}\s?[:=][ \t]{0,9}(\S.{0,80})$",
    re.M,
)
"""A line that gives one value a name."""
_LAST_COMMA = re.compile(r",(\s{0,200}[}\]])")
"""A comma before a closing bracket, which JSON forbids and people write."""
_LEAF_TAG = re.compile(r"<\w{1,30}>([^<>\n]{1,200})</\w{1,30}>")
_PAIRED = re.compile(r"\w[\"']?\s?[:=]")
_PAIRS = 2
"""Named values from which what looks like a call is one."""
_DEEPEST = 100
"""Brackets in brackets up to which a text is read as JSON; no answer has so many."""
_BRACKETS = re.compile(r"[\[\]{}]")
_MAY_HAVE_FORM = re.compile(r"[({\[]")

_TYPES = frozenset(
    (
        "str",
        "string",
        "int",
        "integer",
        "float",
        "number",
        "bool",
        "boolean",
        "list",
        "dict",
        "any",
        "...",
        "ellipsis",
    )
)


class Bare(str):
    """A name in the place of a value, as in f(x)."""


class Call(NamedTuple):
    """A call: what is called, and with what."""

    name: str
    named: Mapping[str, Any]
    placed: tuple[Any, ...] = ()

    @property
    def values(self) -> list[str]:
        """All values as text, in order."""
        return [_plain(value) for value in (*self.placed, *self.named.values())]


@lru_cache(maxsize=256)
def form_of(text: str | None) -> str | None:
    """What form a whole text has: `call`, `json` or `code`; None for a value or for words.

    Example:
        >>> form_of('f(a=1)'), form_of('{"a": 1}'), form_of("def f(x):\\n    return x")
        ('call', 'json', 'code')
        >>> form_of("The answer is 7."), form_of("7"), form_of(None)
        (None, None, None)
    """
    if not text or not _MAY_HAVE_FORM.search(text[:LONGEST]):
        return None
    if as_calls(text):
        return "call"
    if isinstance(as_json(text), dict | list):
        return "json"
    return "code" if as_code(text) and OPENS_CODE.search(text) else None


def as_calls(text: str) -> list[Call] | None:
    """The calls that a whole text is: Python or JSON, one or a list; None where it is not.

    Example:
        >>> as_calls('[f(a=1), g(2)]')
        [Call(name='f', named={'a': 1}, placed=()), Call(name='g', named={}, placed=(2,))]
        >>> as_calls('{"name": "f", "arguments": {"a": 1}}')
        [Call(name='f', named={'a': 1}, placed=())]
    """
    if not _MAY_HAVE_FORM.search(text[:LONGEST]):  # spares parsing what is only words
        return None
    if calls := as_python_calls(text):
        return calls
    value = as_json(text)
    listed = value if isinstance(value, list) else [value]
    called = [_json_call(part) for part in listed]
    return [call for call in called if call] if called and all(called) else None


def as_python_calls(text: str) -> list[Call] | None:
    """The same for calls in Python's notation alone."""
    parts = _expressions(text)
    if not parts or not all(isinstance(part, ast.Call) for part in parts):
        return None
    calls = [_python_call(part) for part in parts]
    return None if None in calls else [call for call in calls if call]


def as_json(text: str) -> Any:
    """The object or list of a JSON text, or of a Python literal; None where it is neither."""
    stripped = text.strip()[:LONGEST].rstrip(";")
    if not stripped.startswith(("{", "[")) or _is_deep(stripped):
        return None
    try:
        return json.loads(_LAST_COMMA.sub(r"\1", stripped))
    except (ValueError, RecursionError):
        node = parsed(stripped, "eval")
        value = None if node is None else _literal(node)
        return value if isinstance(value, dict | list) else None


def _is_deep(text: str) -> bool:
    """Whether brackets stand in brackets so often that to go through them could end the program."""
    if text.count("[") + text.count("{") <= _DEEPEST:
        return False
    depth = 0
    for bracket in _BRACKETS.findall(text):
        depth += 1 if bracket in "[{" else -1
        if depth > _DEEPEST:
            return True
    return False


def as_form(text: str, form: str) -> Any:
    """What a whole text is, read as a `call`, as `json` or as `code`; None where it is not."""
    if form == "call":
        return as_calls(text)
    if form == "json":
        return as_json(text)
    return as_code(text) if OPENS_CODE.search(text) else None


def same_calls(ours: list[Call], theirs: list[Call], *, loosely: bool = False) -> bool:
    """Whether calls are the same; loosely, names of arguments and capital letters do not matter."""
    if len(ours) != len(theirs):
        return False
    return all(
        _same_loosely(one, two) if loosely else one == two
        for one, two in zip(ours, theirs, strict=True)
    )


def loose_calls(text: str, known: Call) -> Iterator[Call]:
    """Calls of a known name anywhere in a text, in any notation: `f(a: 1)`, `F("x", 2)`."""
    for name, body in _LOOSE_CALL.findall(text[:LONGEST]):
        if name.lower() == known.name.lower():
            yield _loose_call(name, body)


def calls_another(text: str, known: Call) -> bool:
    """Whether a text calls another function with values: those of a known one, or two with names.

    Example:
        >>> calls_another('Write make_it(city="Rome") here.', Call("do_it", {"city": "Rome"}))
        True
    """
    bodies = (found for found in _LOOSE_CALL.findall(text[:LONGEST]) if _PAIRED.search(found[1]))
    calls = (_loose_call(name, body) for name, body in bodies)
    return any(not is_signature(call, known) and (
        (known.named and known.named.keys() <= call.named.keys()) or len(call.named) >= _PAIRS
    ) for call in calls)  # fmt: skip


def _loose_call(name: str, body: str) -> Call:
    named: dict[str, Any] = {}
    placed: list[Any] = []
    for part in _split(body):
        pair = _LOOSE_PAIR.match(part)
        if pair:
            named[pair[1]] = pair[2]
        elif part.strip():
            placed.append(Bare(part) if part.strip().isidentifier() else part)
    return Call(name, named, tuple(placed))


def _split(body: str) -> Iterator[str]:
    """The parts between the commas that stand outside quotes."""
    part: list[str] = []
    quotes = 0
    for piece in body.split(","):
        part.append(piece)
        quotes += piece.count('"') + piece.count("'")
        if quotes % 2 == 0:
            yield ",".join(part)
            part = []
    if part:
        yield ",".join(part)


def is_signature(call: Call, known: Call | None = None) -> bool:
    """Whether a call has types or the names of its arguments in the place of values.

    Example:
        >>> [is_signature(call) for call in loose_calls("f(a: str) f(a: 1)", Call("f", {}))]
        [True, False]
    """
    names = _TYPES if known is None else {*_TYPES, *map(str.casefold, known.named)}
    values = [*(part for part in call.placed if not isinstance(part, Bare)), *call.named.values()]
    return all(_plain(value).partition("[")[0] in names for value in values)


def leaves(value: Any) -> list[str]:
    """All values of nested JSON as text.

    Example:
        >>> leaves({"call": "f", "with": {"a": 1, "b": ["x"]}})
        ['f', '1', 'x']
    """
    if isinstance(value, Mapping):
        return [leaf for part in value.values() for leaf in leaves(part)]
    if isinstance(value, list | tuple):
        return [leaf for part in value for leaf in leaves(part)]
    return [_plain(value)]


def fields(value: Any, key: str = "") -> list[tuple[str, str]]:
    """Every value of nested JSON with its nearest key, in order of both.

    Example:
        >>> fields({"of": {"a": 1}, "b": ["x", "y"]})
        [('a', '1'), ('b', 'x'), ('b', 'y')]
    """
    if isinstance(value, Mapping):
        found = [pair for name, part in value.items() for pair in fields(part, str(name))]
    elif isinstance(value, list | tuple):
        found = [pair for part in value for pair in fields(part, key)]
    else:
        found = [(key.casefold(), _plain(value))]
    return sorted(found, key=lambda pair: pair[0])


def labelled_values(text: str) -> list[str]:
    """The values of lines such as `Name: Anna`, and of tags such as `<name>Anna</name>`.

    Example:
        >>> labelled_values("Name: Anna\\n- **Age:** 7"), labelled_values("<a><b>x</b></a>")
        (['anna', '7'], ['x'])
    """
    found = _LABELLED.findall(text[:LONGEST]) or _LEAF_TAG.findall(text[:LONGEST])
    return [_plain(value.strip(" *_,.;")) for value in found]


def loose_object(text: str) -> dict[str, str]:
    """Keys and values of what looks like one flat object, whatever its quotes."""
    start, end = text.find("{"), text.rfind("}")
    body = text[start + 1 : end if end > start else None][:LONGEST] if start >= 0 else ""
    pairs = (_LOOSE_PAIR.match(part) for part in re.split(r",|\n", body))
    return {pair[1]: _plain(pair[2].strip('"{} ')) for pair in pairs if pair}


def looks_called(text: str) -> bool:
    """Whether a text begins as a tool call does, even if it does not parse."""
    return _LOOKS_CALLED.match(text) is not None


def _same_loosely(one: Call, two: Call) -> bool:
    if one.name.lower() != two.name.lower():
        return False
    if one.named and two.named and not one.placed and not two.placed:
        named = ({key: _plain(value) for key, value in call.named.items()} for call in (one, two))
        return next(named) == next(named)
    return one.values == two.values


def _plain(value: Any) -> str:
    return str(value).strip(_QUOTES).casefold()


def _expressions(text: str) -> list[ast.expr]:
    """The expressions that a text lists, in brackets or line by line; none where it has others."""
    node = parsed(text, "eval")
    if node is not None:
        return list(node.elts) if isinstance(node, ast.List | ast.Tuple) else [node]
    tree = parsed(text, "exec")
    body = tree.body if tree is not None else []
    lines = [line.value for line in body if isinstance(line, ast.Expr)]
    return lines if len(lines) == len(body) else []


def _python_call(node: Any) -> Call | None:
    placed = [_literal(part) for part in node.args]
    named = {word.arg: _literal(word.value) for word in node.keywords}
    if None in named:
        return None
    return Call(ast.unparse(node.func), named, tuple(placed))


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, MemoryError, RecursionError, SyntaxError):
        text = ast.unparse(node)
        return Bare(text) if isinstance(node, ast.Name) else text


def _json_call(value: Any) -> Call | None:
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("function"), dict):  # {"type": "function", "function": {...}}
        return _json_call(value["function"])
    name = next((value[key] for key in _NAMED if isinstance(value.get(key), str)), None)
    given = next((value[key] for key in _ARGUMENTS if key in value), None)
    if name is None and len(value) == 1:
        [(name, given)] = value.items()
    if isinstance(given, str):
        given = as_json(given)
    return Call(name, given) if isinstance(name, str) and isinstance(given, dict) else None
