"""The answer after beside the one before: what a text holds of it, and in what dress."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from forgetmap.answers import programs, structure, wrapping
from forgetmap.answers.copied import own_lines

_THINKS = re.compile(r"<(/?)(?:think|thinking|thought|reasoning)>", re.IGNORECASE)
_NAMED_VALUE = re.compile(
    r"\s{0,9}[-*•]?\s{0,9}[*_]{0,2}[A-Za-z][\w ]{0,30}[*_]{0,2}:(?:\s{1,9}\S+){1,3}\s*$"
)
"""A line that gives a value a name."""
_NOTATION = re.compile(
    r"```|\{|</?\w{1,20}>|^\s{0,40}(?:(?:def|class) \w|\w{1,40}_\w{1,40} \(.{0,500}\)\W{0,12}$|"
    r"\W{0,3}(?:\w{1,40} = )?\w[\w.]{0,80}\(.{0,500}\)\W{0,12}$|import \w+|from [\w.]+ import|"
    r"return\b.{0,80}[\w)\]]$|print\(|function \w{1,60}\(|(?:const|let|var) \w+ ?=|#include\b|"
    r"public \w+|SELECT\b|for \w+ in .{1,80}:$|while .{1,80}:$|\w{1,40} ?= ?lambda\b|"
    r"(?:el)?if .{0,60}[=<>(].{0,60}:$)",
    re.MULTILINE,
)
"""What no sentence has: a fence, a brace, a tag, a call in a line alone, a line of a program."""
_PLACEHOLDERS = ("...", "…", "ellipsis")
_NAMED_VALUES = 2
"""Lines with a named value from which a text is in a notation."""
_BRACKET = re.compile(r"(\w+)?(?:(?<=\w)( ))?([(\[{])|[)\]}]")
"""A bracket, and the name before it."""
_CLOSES = {")": "(", "]": "[", "}": "{"}
_LISTED = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)]|[A-Za-z][.)])\s+(\S.*)")
_SENTENCE = re.compile(r"(?![\d\s.)]*\Z).*?(?:\s\S.*[.!?](?:\s|$)|[.!?]\s+\S| = )", re.DOTALL)
"""What no value has: an end after two words or more, something after an end, or a sum."""
_NUMBER_LINE = re.compile(r"\s*\$?-?\d[\d.,]*\s*")
_ROW = 3
"""Values from which a row of them is a list, and words up to which one is a value."""
_DEFINED = re.compile(
    r"^.{0,200}?\bdef \w{1,80}\([^\n]{0,200}\n[ \t]{1,40}(?!\"{3}|'{3}|#)\S", re.MULTILINE
)
"""A function and the first line of what it does, even if Python cannot read it."""


def lists_values(now: str) -> bool:
    """Whether a text is a list of values and nothing else: with bullets, or between commas.

    Example:
        >>> lists_values("- Rome\\n- Oslo"), lists_values("- 9\\n- That is 10.")
        (True, False)
    """
    lines = [line for line in now.splitlines() if line.strip()]
    items = [item[1] for line in lines if (item := _LISTED.match(line))]
    if len(items) == len(lines) > 1:
        return not any(_SENTENCE.match(item) for item in items)
    if len(lines) > 1:  # numbers in lines of their own
        return len(lines) >= _ROW and all(_NUMBER_LINE.fullmatch(line) for line in lines)
    row = items[0] if items else now
    inner = row.strip().removeprefix("[").removesuffix("]")
    parts = inner.rstrip("., ").split(",")
    return len(parts) >= (_ROW if inner == row.strip() else 2) and all(
        0 < len(part.split()) <= _ROW and not _SENTENCE.match(part) for part in parts
    )


def has_notation(text: str, prompt: str | None) -> bool:
    """Whether a text has marks of code, JSON or named values that it does not copy.

    Example:
        >>> has_notation("You can call f(a) for it.", None), has_notation("a: 1\\nb: 2", None)
        (False, True)
    """
    own = own_lines(text, prompt)
    named = sum(_NAMED_VALUE.match(line) is not None for line in own)
    return named >= _NAMED_VALUES or _NOTATION.search("\n".join(own)) is not None


def dressed_down(text: str, form: str | None) -> str:
    """A text without spaces, quotes and full stop; of a value, in small letters."""
    plain = wrapping.squeezed(text).rstrip(".")
    return plain.casefold() if form is None else plain


def keeps(part: str, form: str | None, wanted: Any) -> bool:
    """Whether what is the same but for quotes has the same values: a number in quotes has not."""
    if form not in ("json", "call"):
        return True
    value = structure.as_form(part, form)
    return value == wanted or (form == "call" and value is None)


def wraps(now: str, was: str) -> bool:
    """Whether a text holds a right answer, whole, in a fence, in quotes, in tags or an envelope.

    Example:
        >>> wraps("```json\\n{'a': 1}\\n```", '{"a": 1}'), wraps('"Rome"', "Rome")
        (True, True)
    """
    form = structure.form_of(was)
    plain = dressed_down(was, form)
    parts = [now, *wrapping.inside(now, ticks=form is not None), *wrapping.carried(now)]
    if form is None and len(was) == len(now.strip()):  # only letters became small or large
        return False
    wanted = answer_in(was, form) if form else None
    same = (part for part in parts if plain and dressed_down(part, form) == plain)
    if any(keeps(part, form, wanted) for part in same):
        return True
    if form is None:
        return hands_over(was, now)
    if wrapping.quotes(now, was, form):
        return True
    if form == "code":
        ours, theirs = programs.functions(was), programs.functions(now)
        return (bool(ours) and ours.items() <= theirs.items()) or wanted in _read(parts, form, was)
    if form == "call" and not is_json(was) and wanted == wrapping.calls_in(now):
        return True
    values = _read([*parts, *wrapping.spans(now)], form, was)
    return wanted in values or (form == "json" and wanted in map(envelope, values))


def _read(parts: list[str], form: str, was: str) -> list[Any]:
    """What the parts of a text are, in the notation of before."""
    values = (
        structure.as_form(part, form)
        for part in parts
        if form != "call" or is_json(part) == is_json(was)  # else it is another notation
    )
    return [value for value in values if value is not None]


def is_whole(answer: str, text: str) -> bool:
    """Whether the harness took the whole text for the answer, but for spaces and a full stop."""
    return answer.strip(" \n.") == text.strip(" \n.")


def hands_over(was: str, now: str) -> bool:
    """Whether a value is the only thing that one call hands over."""
    for part in (now, *wrapping.inside(now)):
        calls = structure.as_calls(part) or []
        if len(calls) == 1:
            said = [wrapping.squeezed(value).casefold() for value in calls[0].values]
            return said == [wrapping.squeezed(was).casefold()]
    return False


def answer_in(text: str, form: str) -> Any:
    """The first answer of a form that a text holds; None where there is none."""
    return next(wrapping.answers_of_form(text, form), None)


@lru_cache(maxsize=256)
def holds_an_answer(text: str, was: str) -> bool:
    """Whether a text holds an answer of the form that it had before, in any readable notation."""
    form = structure.form_of(was) or ""
    if form == "call":
        return calls_something(text, was)
    if form == "json":
        found = answer_in(text, form)
        same = has_values(found) and isinstance(found, type(answer_in(was, form)))
        return same or holds_an_object(text)
    return programs.does_something(text) or _DEFINED.search(text) is not None


def calls_something(text: str, was: str) -> bool:
    """Whether a text calls a function with values, not with the names of its arguments."""
    [known, *_] = structure.as_calls(was) or [structure.Call("", {})]
    whole = (call for calls in wrapping.answers_of_form(text, "call") for call in calls)
    inner = (call for call in wrapping.calls_in(text) if call.named)
    loose = structure.loose_calls(text, known)
    if any(not structure.is_signature(call, known) for call in (*whole, *inner, *loose)):
        return True
    keys = {*known.named, *structure.CALL_KEYS}
    named = bool(keys & structure.loose_object(text).keys())
    return structure.calls_another(text, known) or (named and holds_an_object(text))


def holds_an_object(text: str) -> bool:
    """Whether something in braces gives names to values, and is closed."""
    if any(is_map(value) and has_values(value)
           for value in map(structure.as_json, wrapping.spans(text))):  # fmt: skip
        return True
    return has_values(structure.loose_object(text)) and not unclosed(text)


def has_values(value: Any) -> bool:
    """Whether something in braces is not empty, and has more than `...` in the place of values."""
    leaves = [leaf.strip("{}[] ") for leaf in structure.leaves(value)]
    return bool(value) and (not leaves or any(leaf not in _PLACEHOLDERS for leaf in leaves))


def open_fence(text: str) -> bool:
    """Whether a code fence is opened and not closed."""
    return text.count("```") % 2 == 1


def breaks_off_code(text: str) -> bool:
    """Whether a text ends in the middle of a program, before its first statement is whole."""
    if programs.does_something(text):
        return False
    return unclosed(text) or programs.ends_early(text)


def breaks_off_value(text: str, was: str) -> bool:
    """Whether a text ends in the middle of a call or of JSON.

    What stands before the open call in an open list is none; a list of whole calls is one.
    """
    if not unclosed(text):
        return False
    opened = _opened(text)
    inside = any(bracket != "[" for bracket, _ in opened)
    return not holds_an_answer(text[: opened[0][1]] if inside else text, was)


def is_json(text: str) -> bool:
    """Whether a whole text is JSON, and not a list of calls in Python."""
    return structure.as_json(text) is not None and structure.as_python_calls(text) is None


def envelope(value: Any) -> Any:
    """What a JSON object carries in the one field that is an object, or a list of one."""
    if isinstance(value, list) and len(value) == 1:
        return value[0]
    inner = [part for part in value.values() if isinstance(part, dict)] if is_map(value) else []
    return inner[0] if len(inner) == 1 else None


def is_map(value: Any) -> bool:
    """Whether a value is a JSON object."""
    return isinstance(value, dict)


def other_notation(was: str, now: str, form: str) -> bool:
    """Whether two texts hold the same answer in different notations."""
    if form == "call":
        return same_call_otherwise(was, now)
    if form != "json":
        return False
    wanted = structure.as_json(was)
    if not is_map(wanted):
        return False
    calls = wrapping.calls_in(now)
    if any(sorted([call.name.casefold(), *call.values]) == sorted(structure.leaves(wanted))
           for call in calls):  # fmt: skip
        return True
    flat = structure.fields(wanted)
    inner = (structure.as_json(part) for part in wrapping.spans(now))
    values = (*wrapping.answers_of_form(now, "json"), *inner)
    if any(structure.fields(value) == flat for value in values if value is not None):
        return True
    if sorted(structure.labelled_values(now)) == sorted(structure.leaves(wanted)):
        return True
    given = structure.loose_object(now)
    return bool(given) and not unclosed(now) and structure.fields(given) == flat


def same_call_otherwise(was: str, now: str) -> bool:
    """Whether a text makes the same call in another notation."""
    wanted = structure.as_calls(was) or []
    in_order = [call for span in wrapping.spans(now) for call in structure.as_calls(span) or []]
    for calls in (in_order, *wrapping.answers_of_form(now, "call")):
        if structure.same_calls(calls, wanted, loosely=True):
            return True
    if len(wanted) != 1:
        return False
    [call] = wanted
    if any(structure.same_calls([one], wanted, loosely=True)
           for one in structure.loose_calls(now, call)):  # fmt: skip
        return True
    texts = (now, *wrapping.inside(now), *wrapping.spans(now))
    objects = [value for part in texts if (value := structure.as_json(part)) is not None]
    parts = sorted([call.name.casefold(), *call.values])
    if any(sorted(structure.leaves(value)) == parts for value in objects):
        return True
    labelled = sorted(structure.labelled_values(now))
    if labelled == parts:
        return True
    named = (
        call.named
        and not unclosed(now)
        and re.search(rf"(?<![\w.]){re.escape(call.name)}(?!\w)", now)
    )
    given = [structure.fields(value) for value in objects]  # f {"a": 1}, with words around it
    return bool(named) and (
        structure.fields(call.named) in given or labelled == sorted(call.values)
    )


def thinks_on(text: str) -> bool:
    """Whether thinking was opened last and never closed."""
    marks = _THINKS.findall(text)
    return bool(marks) and not marks[-1]


def unclosed(text: str) -> bool:
    """Whether a fence, a brace or a call is open at the end; (as this) in a sentence is no call.

    Example:
        >>> unclosed('{"a": 1'), unclosed("f(a="), unclosed("so far (as"), unclosed("[f(1]")
        (True, True, False, False)
        >>> unclosed("g(0) f((1, 2"), unclosed("set_heat (room"), unclosed("(f(1) and so on")
        (True, True, False)
    """
    if open_fence(text):
        return True
    body = text.strip().strip("`").strip()
    if body.endswith((")", "]", "}")):  # whatever was forgotten, it did not stop in the middle
        return False
    return bool(_opened(body))


def _opened(text: str) -> list[tuple[str, int]]:
    """The brackets that are never closed, each with its place; (as this) in a sentence is none."""
    opened: list[tuple[str, bool, int]] = []
    for found in _BRACKET.finditer(text):
        name, space, bracket = found.groups()
        if bracket is None:
            opened = opened[:-1] if opened and opened[-1][0] == _CLOSES[found[0]] else opened
        else:
            called = bool(name) and (not space or "_" in name)
            opened.append((bracket, bracket != "(" or called, found.start()))
    return [(bracket, at) for bracket, counts, at in opened if counts]
