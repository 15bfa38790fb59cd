"""Answers with a form: calls, JSON and programs, and what they are wrapped in.

A text is never run. Python's own parser reads calls and programs, so that spaces, quotes and
comments do not matter.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

LONGEST = 20_000
"""Characters that are parsed; an answer with a form is shorter."""
_FENCE = re.compile(r"(?:```|~~~)[\w+-]{0,20}[ \t]*\n?(.*?)(?:```|~~~|\Z)", re.DOTALL)
_TICKS = re.compile(r"`([^`\n]{1,2000})`")
_TAGS = re.compile(r"<(\w{1,20})>(.{1,10000}?)</\1>", re.DOTALL)
_LABEL = re.compile(r"^[\w ]{1,20}:\s{0,3}(?=\S)")
_QUOTES = "\"'`“”‘’ \t\n"
_NO_QUOTES = dict.fromkeys(map(ord, "\"'`“”‘’"))
_NAMED = ("name", "function", "tool", "tool_name", "function_name", "call", "action")
_ARGUMENTS = ("arguments", "parameters", "args", "input", "action_input", "kwargs")
_LOOSE_CALL = re.compile(r"\b([A-Za-z_][\w.]{0,80})\s?\(([^()]{0,2000})\)")
_LOOSE_PAIR = re.compile(r"^\s*[\"']?(\w{1,60})[\"']?\s{0,3}[:=]\s{0,3}(.{1,500})$", re.DOTALL)
_LOOKS_CALLED = re.compile(rf"\W{{0,12}}\{{\s{{0,9}}\"(?:{'|'.join(_NAMED)})\"\s?:|<tool_call>")
_MAY_HAVE_FORM = re.compile(r"[({\[]")
_OPENS_CODE = re.compile(r"^(?:async def|def|class|import|from|@|for|while|if|with|try)\b", re.M)

_FUNCTION = re.compile(r"^(?:async )?def .*", re.M | re.DOTALL)
_DEFINES = re.compile(r"(?:async def|def|class)\b|@")
_INDENTS = ("", " ", "\t")
_GOES_ON = re.compile(r"\s*[-+*/%=&|^(\[]|\s*[<>.]\s*[\w=]")
"""An operator after an expression: the expression is not over."""

_TYPES = frozenset(
    ("str", "string", "int", "integer", "float", "number", "bool", "boolean", "list", "dict", "any")
)


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
    return "code" if as_code(text) and _OPENS_CODE.search(text) else None


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
    if not stripped.startswith(("{", "[")):
        return None
    try:
        return json.loads(stripped)
    except (ValueError, RecursionError):
        node = _parsed(stripped, "eval")
        value = None if node is None else _literal(node)
        return value if isinstance(value, dict | list) else None


def as_code(text: str) -> str | None:
    """A program in normal form, without comments and docstrings; None where it does not parse."""
    tree = _parsed(text, "exec")
    if tree is None or not tree.body:
        return None
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and len(body) > 1 and _is_text(body[0]):
            del body[0]
    try:
        return ast.unparse(tree)
    except (RecursionError, ValueError):
        return None


def inside(text: str) -> list[str]:
    """What a text may be wrapped around: fences, backticks, tags, quotes, a label.

    Example:
        >>> inside("Call: f(1)"), inside("'Rome'"), inside("```json\\n{}\\n```")[0]
        (['f(1)'], ['Rome'], '{}\\n')
    """
    text = text[:LONGEST]
    found: list[str] = [*_FENCE.findall(text)] if "```" in text or "~~~" in text else []
    if "`" in text:
        found += _TICKS.findall(text)
    if "</" in text:
        found += [body for _, body in _TAGS.findall(text)]
    bare = text.strip(_QUOTES)
    if bare != text.strip():
        found.append(bare)
    if label := _LABEL.match(text.strip()):
        found.append(text.strip()[label.end() :])
    return [part for part in found if part.strip()]


def answers_of_form(text: str, form: str) -> Iterator[Any]:
    """Every answer of a form that a text holds, the whole text first, then what it wraps."""
    for part in (text, *inside(text)):
        value = as_form(part, form)
        if value is not None:
            yield value


def as_form(text: str, form: str) -> Any:
    """What a whole text is, read as a `call`, as `json` or as `code`; None where it is not."""
    if form == "call":
        return as_calls(text)
    if form == "json":
        return as_json(text)
    return as_code(text) if _OPENS_CODE.search(text) else None


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
    """Whether a text calls another function with the arguments of a known one.

    Example:
        >>> calls_another('Write make_it(city="Rome") here.', Call("do_it", {"city": "Rome"}))
        True
    """
    bodies = (found for found in _LOOSE_CALL.findall(text[:LONGEST]) if "=" in found[1])
    calls = (_loose_call(name, body) for name, body in bodies)
    return any(known.named and known.named.keys() <= call.named.keys()
               and not is_signature(call) for call in calls)  # fmt: skip


def _loose_call(name: str, body: str) -> Call:
    named: dict[str, Any] = {}
    placed: list[Any] = []
    for part in _split(body):
        pair = _LOOSE_PAIR.match(part)
        if pair:
            named[pair[1]] = pair[2]
        elif part.strip():
            placed.append(part)
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


def is_signature(call: Call) -> bool:
    """Whether a call names types in the place of values: the function as it was described.

    Example:
        >>> [is_signature(call) for call in loose_calls("f(a: str) f(a: 1)", Call("f", {}))]
        [True, False]
    """
    return all(value.partition("[")[0] in _TYPES for value in call.values)


def ends_early(text: str) -> bool:
    """Whether a program stops in its last line, or before it does anything with a value.

    Example:
        >>> ends_early("def f(x):\\n    if x"), ends_early("def f(x) x\\nprint(f(1))")
        (True, False)
        >>> ends_early("def f(x):\\n    y = x % 1")
        True
    """
    stripped = text.strip()[:LONGEST]
    if not _OPENS_CODE.search(stripped):
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(stripped)
    except SyntaxError as error:
        return (error.lineno or 0) >= stripped.count("\n") + 1
    except (ValueError, RecursionError, MemoryError):
        return False
    return _assigns_last(tree)


def _assigns_last(tree: ast.Module) -> bool:
    """Whether a program ends in a function that sets a name of its own and does no more."""
    block: list[ast.stmt] = tree.body
    in_function = False
    while block:
        last = block[-1]
        in_function |= isinstance(last, ast.FunctionDef | ast.AsyncFunctionDef)
        if isinstance(last, ast.Assign):
            return in_function and all(isinstance(name, ast.Name) for name in last.targets)
        block = getattr(last, "orelse", None) or getattr(last, "body", [])
    return False


def finishes_a_function(text: str) -> bool:
    """Whether a text defines a function to its end: something follows, or a line that returns.

    The definition of another function may follow because the first one is its helper, so that
    tells nothing.

    Example:
        >>> finishes_a_function("def f(x):\\n    return x\\n\\nprint(f(")
        True
        >>> finishes_a_function("def f(x):\\n    return x")
        False
    """
    found = _FUNCTION.search(text[:LONGEST])
    if found is None:
        return False
    lines = found[0].splitlines()
    end = next((at for at, line in enumerate(lines) if at and line[:1] not in _INDENTS), None)
    tree = _parsed("\n".join(lines[:end]), "exec")
    if tree is None:
        return False
    if end is None:
        return isinstance(tree.body[0].body[-1], ast.Return) and found[0].endswith("\n")
    head, follows = lines[0].partition("(")[0], lines[end]
    return follows.startswith(head) or not _DEFINES.match(follows)


def quotes(text: str, answer: str, form: str) -> bool:
    """Whether a text holds an answer word for word, and does not go on with it.

    Example:
        >>> quotes("It is f(a=1) and no more.", "f(a=1)", "call")
        True
        >>> quotes("def f(x):\\n    return x * 4 + 1", "def f(x):\\n    return x * 4", "code")
        False
    """
    answer = answer.strip()
    before, found, after = text.partition(answer)
    if not found or re.search(r"\w$", before) or re.match(r"\w", after):
        return False
    line = after.partition("\n")[0]
    if form != "code" or not line.strip(" .`"):
        return True
    return not _GOES_ON.match(line) and _parsed(answer + line, "exec") is None


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


def loose_object(text: str) -> dict[str, str]:
    """Keys and values of what looks like one flat object, whatever its quotes."""
    start, end = text.find("{"), text.rfind("}")
    body = text[start + 1 : end if end > start else None][:LONGEST] if start >= 0 else ""
    pairs = (_LOOSE_PAIR.match(part) for part in re.split(r",|\n", body))
    return {pair[1]: _plain(pair[2]) for pair in pairs if pair}


def looks_called(text: str) -> bool:
    """Whether a text begins as a tool call does, even if it does not parse."""
    return _LOOKS_CALLED.match(text) is not None


def squeezed(text: str) -> str:
    """A text without spaces and quotes: what is left when only its dress changed."""
    return "".join(text[:LONGEST].split()).translate(_NO_QUOTES)


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
    node = _parsed(text, "eval")
    if node is not None:
        return list(node.elts) if isinstance(node, ast.List | ast.Tuple) else [node]
    tree = _parsed(text, "exec")
    body = tree.body if tree is not None else []
    lines = [line.value for line in body if isinstance(line, ast.Expr)]
    return lines if len(lines) == len(body) else []


def _is_text(node: ast.stmt) -> bool:
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


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
        return ast.unparse(node)


def _json_call(value: Any) -> Call | None:
    if not isinstance(value, dict):
        return None
    name = next((value[key] for key in _NAMED if isinstance(value.get(key), str)), None)
    given = next((value[key] for key in _ARGUMENTS if key in value), None)
    if name is None and len(value) == 1:
        [(name, given)] = value.items()
    if isinstance(given, str):
        given = as_json(given)
    return Call(name, given) if isinstance(name, str) and isinstance(given, dict) else None


def _parsed(text: str, mode: str) -> Any:
    """The tree of a text; None where Python cannot read it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a model wrote may hold odd escapes
            tree = ast.parse(text.strip()[:LONGEST], mode=mode)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return tree.body if isinstance(tree, ast.Expression) else tree
