"""Open answers: what a response answers, whether it is right, and when nothing more is needed.

A task whose cue is `Answer:` wants the answer at once: the first line that gives one counts. Any
other task lets the model reason first: the first line `Answer: ...` counts, and where there is
none, what the response as a whole comes to. Early stopping follows the same rule, so it never
changes a verdict. A response without an answer is a status, never a guess.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import islice
from typing import NamedTuple

from forgetmap.answers.items import Item
from forgetmap.answers.options import extract as extract_option
from forgetmap.answers.options import read_options
from forgetmap.answers.text import after_cue, fold, last_boxed, looked_at
from forgetmap.base.errors import InputError
from forgetmap.capabilities.scorers import numbers, short_answer
from forgetmap.evaluate.questions import Question, Task

SCORERS = ("exact", "number", "letter", "contains", "reasoning-gym", "letter-published")
_TOLERANCE = Decimal("1e-6")
_LONGEST = 500
"""Characters of an answer; what is longer is an essay."""
_MOST_LINES = 20
"""Lines with something in them among which an answer that was wanted at once is looked for."""

_CUE_LINE = re.compile(r"\s{0,9}[*_#>]{0,4}\s?(?:final )?answer\s?(?:is\b|[*_]{0,3}\s?[:=])", re.I)
_WRAPPING = " \t\n\"'“”‘’`*_"
_LETTERS = string.ascii_uppercase


class Answer(NamedTuple):
    """What a response answers; None with the reason as status."""

    text: str | None
    status: str


def extract(task: Task, response: str, choices: Sequence[str] = ()) -> Answer:
    """Find the answer that a response gives after the cue; the task's scorer says how it looks.

    Example:
        >>> sums = Task("sums", "Math", lambda: [], scorer="number")
        >>> extract(sums, " 12 apples\\nQuestion: ..."), extract(sums, "I do not know")
        (Answer(text='12', status='ok'), Answer(text=None, status='no_answer'))
        >>> reasoned = Task("quiz", "QA", lambda: [], cue="", scorer="letter")
        >>> extract(reasoned, "A looks good. B is better.\\nAnswer: B", ["Oslo", "Rome"]).text
        'B'
    """
    _check(task)
    if not response.strip():
        return Answer(None, "empty")
    if task.scorer == "letter-published":
        return _answer(_published_letter(response, len(choices)))
    if _is_thinking(response):
        return Answer(None, "no_answer")
    text = looked_at(response)
    if task.scorer == "reasoning-gym":
        tagged = _tagged(text)
        return _answer(text.strip().partition("\n\n")[0] if tagged is None else tagged)
    answer = _first(task, text.split("\n"), choices)
    if answer is None and not _is_direct(task):
        answer = _read(task, text, choices)
    return _answer(answer)


def is_complete(task: Task, text: str, choices: Sequence[str] = ()) -> bool:
    """Whether the answer stands already in the beginning of a response, so that it may stop.

    Example:
        >>> sums = Task("sums", "Math", lambda: [], scorer="number")
        >>> is_complete(sums, " 12"), is_complete(sums, " 12\\n")
        (False, True)
    """
    _check(task)
    if task.scorer == "letter-published" or _is_thinking(text):
        return False
    visible = looked_at(text)
    if task.scorer == "reasoning-gym":
        return _tagged(visible) is not None
    return _first(task, visible.split("\n")[:-1], choices) is not None


def is_right(task: Task, question: Question, answer: str) -> bool:
    """Whether an extracted answer is right.

    Example:
        >>> sums = Task("sums", "Math", lambda: [], scorer="number")
        >>> is_right(sums, Question("sums", "1", "1,000 + 200 =", "1200"), "1,200.0")
        True
        >>> names = Task("names", "QA", lambda: [])
        >>> is_right(names, Question("names", "1", "Who?", "The Hague"), "the hague.")
        True
    """
    _check(task)
    accepted = (question.target, *question.aliases)
    if task.scorer == "number":
        value = _number(answer)
        golds = [_number(one) for one in accepted]
        return value is not None and any(
            gold is not None and abs(value - gold) <= _TOLERANCE for gold in golds
        )
    if task.scorer in ("letter", "letter-published"):
        return answer in {_letter(question, one) for one in accepted}
    if task.scorer == "contains":
        item = Item(question.task, question.ref, gold=list(accepted))
        return short_answer.score([item], [answer])["accuracy"][0].value == 1.0
    if task.scorer == "reasoning-gym":
        from forgetmap.evaluate.suites import reasoning_gym

        return reasoning_gym.score(question, answer) >= 1.0
    return _plain(answer) in map(_plain, accepted)


def _check(task: Task) -> None:
    if task.scorer not in SCORERS:
        raise InputError(
            f"task {task.name}: unknown scorer {task.scorer!r}; known are {', '.join(SCORERS)}"
        )


def _is_direct(task: Task) -> bool:
    return task.cue.strip().casefold().startswith("answer")


def _is_thinking(text: str) -> bool:
    """Whether a response is still at what it thinks before it answers."""
    return text.rfind("<think>") > text.rfind("</think>")


def _tagged(text: str) -> str | None:
    """What stands in the first <answer>...</answer>."""
    _, begins, rest = text.partition("<answer>")
    tagged, ends, _ = rest.partition("</answer>")
    return tagged.strip() if begins and ends else None


def _answer(text: str | None) -> Answer:
    return Answer(text[:_LONGEST], "ok") if text else Answer(None, "no_answer")


def _first(task: Task, lines: Sequence[str], choices: Sequence[str]) -> str | None:
    """The answer of the first line that gives one."""
    for part in _places(task, lines):
        if answer := _read(task, part, choices):
            return answer
    return None


def _places(task: Task, lines: Sequence[str]) -> Iterator[str]:
    """Where an answer may stand: in any line if it was asked for at once, else after the cue."""
    filled = (line for line in lines if line.strip())
    for line in islice(filled, _MOST_LINES) if _is_direct(task) else filled:
        cue = _CUE_LINE.match(line)
        rest = line[cue.end() :] if cue else line
        is_opening = rest.rstrip().endswith(":")  # "Sure, here is the answer:"
        if rest.strip(_WRAPPING) and not is_opening and (cue or _is_direct(task)):
            yield rest.strip().removeprefix("**").strip()


def _read(task: Task, part: str, choices: Sequence[str]) -> str | None:
    if task.scorer == "number":
        number = numbers.extract(part)
        return number if number and _number(number) is not None else None
    if task.scorer == "letter":
        options = read_options(tuple(choices) or tuple(_LETTERS[:10]))
        return extract_option(part, options)
    if task.scorer == "contains" or _is_direct(task):
        return part.strip(_WRAPPING)
    last_line = part.strip().rpartition("\n")[2]
    return last_boxed(part) or (after_cue(part) or last_line).strip(_WRAPPING)


def _number(text: str) -> Decimal | None:
    return numbers.read_gold(text.replace("−", "-").replace("–", "-"))


def _letter(question: Question, answer: str) -> str:
    """The letter of an option; a target that is no option is a letter itself."""
    options = question.choices
    return _LETTERS[options.index(answer)] if answer in options else answer.strip("() .").upper()


def _plain(text: str) -> str:
    """An answer without case, wrapping, final point and article; signs inside it stay."""
    kept = " ".join(fold(text).split()).strip(_WRAPPING).rstrip(".").strip(_WRAPPING)
    return re.sub(r"^(?:the|an?) (?=\S)", "", kept)


def _published_letter(response: str, options: int) -> str | None:
    """The letter as the published pipeline finds it, by falling priority.

    Its last resort is a letter anywhere, even inside a word, so that a text without an answer still
    yields one. Kept to reproduce published numbers; nothing else uses it.
    """
    letter = rf"\(?([A-{_LETTERS[(options or 26) - 1]}])\)?"
    word = rf"(?<![A-Za-z]){letter}(?![A-Za-z])"
    for pattern in (
        rf"(?i:final answer is)\W{{0,9}}{word}\W{{0,3}}I hope",
        rf"(?i:final answer).{{0,50}}?(?i:is)\W{{0,9}}{word}",
        rf"(?i:answer):.{{0,50}}?{word}",
        rf"(?i:answer).{{0,50}}?{word}",
        rf"\A\s{{0,99}}{word}",
        rf"(?m)^[ \t]{{0,99}}{word}",
        word,
        letter,
    ):
        if letters := list(re.finditer(pattern, response, re.DOTALL)):
            return str(letters[-1][1])
    return None
