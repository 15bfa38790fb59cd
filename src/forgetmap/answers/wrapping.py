"""What an answer is wrapped in: fences, tags, quotes, labels, thinking, envelopes, sentences."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from forgetmap.answers.programs import LONGEST, functions, parsed
from forgetmap.answers.structure import Call, as_form, as_json, as_python_calls, loose_object
from forgetmap.answers.text import last_boxed, looked_at

_FENCE = re.compile(r"(?:```|~~~)[\w+-]{0,20}[ \t]*\n?(.*?)(?:```|~~~|\Z)", re.DOTALL)
_TICKS = re.compile(r"`([^`\n]{1,2000})`")
_TAGS = re.compile(r"<(\w{1,20})(?: [^<>\n]{1,200})?>(.{1,10000}?)</\1>", re.DOTALL)
_LABEL = re.compile(r"^[*_#\s]{0,5}(?!\d)[\w ]{1,20}[*_]{0,3}:[*_]{0,3}\s{0,3}(?=\S)")
_BULLET = re.compile(r"^[ \t]{0,9}(?:[-*+•]|\d{1,3}[.)])[ \t]{1,9}(?=\S)", re.MULTILINE)
_NAME = re.compile(r"[-*\s]{0,5}([A-Za-z][\w ]{1,20})[*_]{0,2}: \S")
"""The name that a line gives to a value; a letter alone is that of an option."""
_TABLE_HEAD = re.compile(r"^\|[^\n|]{1,80}\|[ \t]*\n(?:\|[-: |]{1,80}\n)?(?=\|)", re.MULTILINE)
"""The head of a table with one column, which names what stands below it."""
_COLON = re.compile(": ")
_DRESS = "\"'`“”‘’«»*_$ \t\n"
_PAIRS = {"(": ")", "[": "]", "<": ">"}
_NO_QUOTES = dict.fromkeys(map(ord, "\"'`“”‘’"))
_GOES_ON = re.compile(r"\s*[-+*/%=&|^(\[]|\s*[<>.]\s*[\w=]|\s+if .{1,80} else\b")
"""An operator after an expression: the expression is not over."""
_OPENER = re.compile(r"[A-Za-z_][\w.]{0,80}\(|[{\[]")
_CLOSED_BY = {"(": ")", "[": "]", "{": "}"}
_MOST_SPANS = 40
_ANSWERS = ("answer", "result", "output", "value", "response", "reply", "final_answer", "text")
"""Keys under which an envelope carries an answer."""


def inside(text: str, *, ticks: bool = True) -> list[str]:
    """What a text may be wrapped around: fences, a box, tags, quotes, a label, thinking.

    Backticks in a sentence too, if `ticks` says so: a word in them is still a word of the sentence.

    Example:
        >>> inside("Call: f(1)"), inside("'Rome'"), inside("```json\\n{}\\n```")[0]
        (['f(1)'], ['Rome'], '{}\\n')
        >>> inside("<think>Well.</think>Rome")[-1], inside("Answer: [Rome]")
        ('Rome', ['[Rome]', 'Rome'])
    """
    text = text[:LONGEST]
    found: list[str] = [*_FENCE.findall(text)] if "```" in text or "~~~" in text else []
    if ticks and "`" in text:
        found += _TICKS.findall(text)
    if "</" in text:
        found += [body for _, body in _TAGS.findall(text)]
    found += [*bared(text), last_boxed(text) or ""]
    if label := _LABEL.match(text.strip()):
        rest = text.strip()[label.end() :]
        found += [rest, *bared(rest)]
    plain = _BULLET.sub("", text)
    thought = looked_at(text)
    found += [part for part in (plain, thought) if part != text]
    return [part for part in found if part.strip()]


def bared(text: str) -> list[str]:
    """A text without the quotes, stars and brackets around it, layer by layer.

    Example:
        >>> bared("**[Rome]**"), bared("Rome")
        (['[Rome]', 'Rome'], [])
    """
    layers, now = [], text.strip()
    for _ in range(6):
        bare = now.strip(_DRESS)
        if bare == now and len(now) > 1 and _PAIRS.get(now[0]) == now[-1]:
            bare = now[1:-1].strip()
        if bare == now or not bare:
            break
        layers.append(bare)
        now = bare
    return layers


def set_apart(text: str) -> list[str]:
    """The values that stand apart in a text: in a line alone, or after a colon.

    Only where all else is sentences, or lines that give other values their names.

    Example:
        >>> set_apart("Sure! Here you go: Rome"), set_apart("So:\\n**Rome**\\nI hope this helps!")
        (['Rome'], ['**Rome**', 'Rome'])
        >>> set_apart("Rome\\nOslo"), set_apart("It is Rome, I think.")
        ([], [])
    """
    bare = _BULLET.sub("", _TABLE_HEAD.sub("", text[:LONGEST]))
    lines = [line.strip("| \t") for line in bare.splitlines() if line.strip("| \t")]
    names = [name[1].casefold() for line in lines if (name := _NAME.match(line))]
    told_apart = len(set(names)) == len(names)
    values = [
        line for line in lines if not _is_sentence(line) and not (told_apart and _NAME.match(line))
    ]
    found: list[str] = []
    for line in lines:
        if not values or values == [line]:  # all other lines are sentences or have names
            rests = [line[colon.end() :] for colon in _COLON.finditer(line)]
            found += [*([line] if "\n" in text.strip() else []), *rests]
    return [part for one in found for part in (one.strip(), *bared(one)) if part]


def _is_sentence(line: str) -> bool:
    """Whether a line is a greeting, ends with a colon, or has two words and ends as a sentence."""
    end = line.rstrip("\"'*_)")[-1:]
    return end in (":", "!") or (end in (".", "?", ",") and len(line.split()) > 1)


def plain_value(text: str) -> str:
    """The value in the middle of its label, tags and marks.

    Example:
        >>> plain_value("Final: [pear]"), plain_value("<a>pear</a>"), plain_value("pear...")
        ('pear', 'pear', 'pear')
    """
    value = text.strip()
    if tagged := _TAGS.fullmatch(value):
        value = tagged[2]
    if label := _LABEL.match(value):
        value = value[label.end() :]
    return [value, *bared(value)][-1].strip(" .!…")


def answers_of_form(text: str, form: str) -> Iterator[Any]:
    """Every answer of a form that a text holds, the whole text first, then what it wraps."""
    for part in (text, *inside(text)):
        value = as_form(part, form)
        if value is not None:
            yield value


def carried(text: str) -> list[str]:
    """The values that an object in a text carries as its answer: under a key for it, or alone.

    Example:
        >>> carried('{"question": "Where?", "answer": "Rome"}'), carried('{"town": "Rome"}')
        (['Rome'], ['Rome'])
    """
    found = []
    for part in (text, *inside(text)):
        value = as_json(part)
        if isinstance(value, dict):
            said = [value[key] for key in value if str(key).casefold() in _ANSWERS]
            found += said or (list(value.values()) if len(value) == 1 else [])
    if not found and "{" in text:
        loose = loose_object(text)
        found = [value for key, value in loose.items() if key.casefold() in _ANSWERS]
    return [str(value) for value in found if isinstance(value, str | int | float)]


def spans(text: str) -> Iterator[str]:
    """The calls, objects and lists that stand in a text, from bracket to bracket.

    Example:
        >>> list(spans("Use f(a=1) or {'b': [2]}, not g(."))
        ['f(a=1)', "{'b': [2]}"]
    """
    text, at = text[:LONGEST], 0
    for _ in range(_MOST_SPANS):
        opener = _OPENER.search(text, at)
        if opener is None:
            return
        end = _closing(text, opener.end() - 1)
        if end is not None:
            yield text[opener.start() : end]
        at = end or opener.end()


def _closing(text: str, start: int) -> int | None:
    """Where the bracket that opens at `start` is closed, outside of quotes."""
    wanted: list[str] = []
    quote = ""
    for at in range(start, len(text)):
        letter = text[at]
        if quote:
            quote = "" if letter == quote and text[at - 1] != "\\" else quote
        elif letter in "\"'":
            quote = letter
        elif letter in _CLOSED_BY:
            wanted.append(_CLOSED_BY[letter])
        elif letter in _CLOSED_BY.values():
            if letter != wanted.pop():
                return None
            if not wanted:
                return at + 1
    return None


def calls_in(text: str) -> list[Call]:
    """All calls in Python's notation that stand in a text, in order.

    Example:
        >>> calls_in("First f(a=1), then [g(b=2)].")
        [Call(name='f', named={'a': 1}, placed=()), Call(name='g', named={'b': 2}, placed=())]
    """
    return [call for span in spans(text) for call in as_python_calls(_handed(span)) or []]


def _handed(span: str) -> str:
    """The call that another one is only a frame for, as in print(f(a=1)); else the span itself."""
    name, _, rest = span.partition("(")
    inner = rest.removesuffix(")").strip()
    is_frame = name and as_python_calls(inner) and len(list(spans(inner))) == 1
    return inner if is_frame else span


def _after_function(text: str, answer: str) -> str | None:
    """What follows the function that a text begins with, if it is that of the answer."""
    lines = text.splitlines()
    ends = (at for at, line in enumerate(lines) if at and line[:1].strip())
    end = next(ends, len(lines)) if text.startswith("def ") else 0
    head, wanted = functions("\n".join(lines[:end])), functions(answer)
    return "\n" + "\n".join(lines[end:]) if head and head == wanted else None


def rest_after(text: str, answer: str, form: str | None) -> str | None:
    """What follows the answer that a text begins with; None where it begins otherwise.

    Example:
        >>> rest_after('{"a":1} and more', '{"a": 1}', "json"), rest_after("Oslo", "Rome", None)
        (' and more', None)
    """
    text, answer = text.strip(), answer.strip()
    same_case = text.casefold().startswith(answer.casefold()) if form is None else False
    if text.startswith(answer) or same_case:
        return text[len(answer) :]
    if form == "code":
        return _after_function(text, answer)
    if form is None and answer.endswith(".") and text.startswith(answer.rstrip(".")):
        return text[len(answer.rstrip(".")) :]
    if form == "json" and text[:1] in ("{", "["):
        try:
            value, end = json.JSONDecoder().raw_decode(text[:LONGEST])
            in_order = json.dumps(value) == json.dumps(as_json(answer))
        except (ValueError, RecursionError):
            return None
        return text[end:] if in_order else None
    return None


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
    if form != "code" or not line.strip(" .`|"):
        return True
    return not _GOES_ON.match(line) and parsed(answer + line, "exec") is None


def squeezed(text: str) -> str:
    """A text without spaces and quotes: what is left when only its dress changed."""
    return "".join(text[:LONGEST].split()).translate(_NO_QUOTES)
