"""A lost answer as the rules of causes see it, and what several of them ask about it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from forgetmap.answers import compared, structure, wrapping
from forgetmap.answers.copied import own_lines
from forgetmap.answers.endings import unfinished
from forgetmap.answers.extraction import (
    NO_ANSWER,
    gives,
    is_letter,
    letter_given,
    lists_options,
    offered,
    word_taken,
)
from forgetmap.answers.numbers import is_number, number_given, numbers_called, value_of
from forgetmap.answers.text import after_cues, looked_at, sentences

_HALF_TAG = re.compile(r"</?\w{0,12}>?\s*\Z")
SHORT = 6
"""Words up to which an answer is a value: it is in a text or not, whatever is said around it."""
_ROLES = ("user", "assistant", "system")
NEXT_TURN = re.compile(rf"<\||(?:{'|'.join(_ROLES)})\s*\n")
"""What is left of the marks of a chat where the next turn begins."""
_VALUE = 3
"""Words up to which a first line is a value."""
_HEADING = re.compile(r"#|\W*(?:final |the )?(?:answer|solution|result)\W*\Z", re.IGNORECASE)
_CUE = re.compile(
    r"\b(?:the )?(?:\w{1,9} )?answer(?: to (?:the|this|that|your) question)? is\b", re.I
)


class Lost(NamedTuple):
    """An item that was right more often before, as the rules see it."""

    before: float = 1.0
    """Share of right answers; between 0 and 1 where runs of one model disagree."""
    after: float = 0.0
    k: int | None = None
    target: str | None = None
    answer_before: str | None = None
    answer_after: str | None = None
    """What the harness extracted; for options scored by likelihood, the option."""
    status_after: str | None = "ok"
    prompt_after: str | None = None
    response_before: str | None = None
    response_after: str | None = None
    """What the model wrote; None where nothing was generated, or not kept."""
    runs_before: int = 1
    runs_after: int = 1
    taught: frozenset[str] = frozenset()
    """What the new task teaches to answer, by `taught_answers`; empty for its own items."""


LOGGED = tuple(name for name in Lost._fields if name != "taught")
"""What comes from the logs, row by row."""


def right_answers(item: Lost) -> list[tuple[str, str | None]]:
    """The answer before with its form, and the target too where it is of the same form."""
    was, target = item.response_before or "", item.target or ""
    form = structure.form_of(was)
    found = [was] if was.strip() else []
    if form is not None and structure.form_of(target) == form:
        found.append(target)
    return [(right, form) for right in found]


def stands_apart(item: Lost, right: str) -> bool:
    """Whether a value is in a line alone or after a colon."""
    text, plain = item.response_after or "", compared.dressed_down(right, None)
    if not any(compared.dressed_down(part, None) == plain for part in wrapping.set_apart(text)):
        return False
    told = [compared.dressed_down(part, None) for part in after_cues(text)]
    return not told or any(plain in part or part in plain for part in told)  # only that counts


def nothing_found(item: Lost) -> bool:
    """The harness looked for an answer and found none."""
    if item.answer_after is None:
        kept_before = item.answer_before is not None and item.response_after is not None
        return item.status_after == "no_answer" or kept_before
    return item.status_after == "no_answer" or item.answer_after.strip().lower() in NO_ANSWER


def unread(item: Lost) -> bool:
    """The harness read no answer out of the text: it found none, or took all of it."""
    now = item.response_after
    return nothing_found(item) or compared.is_whole(item.answer_after or now or "", now or "")


def reader(item: Lost) -> Callable[[str], object] | None:
    """What reads an answer of a kind that can be told: a number, a letter, a word on offer."""
    target, prompt = item.target or "", item.prompt_after
    read = _plain_reader(item, target, prompt)
    return None if read is None else lambda text: read(_judged(text, read))


def _judged(text: str, read: Callable[[str], object] | None) -> str:
    """What of a text is judged: the first line, if it is the answer, or else all of it."""
    first = first_value(text)
    return first if first is not None and (read is None or read(first) is not None) else text


def _plain_reader(item: Lost, target: str, prompt: str | None) -> Callable[[str], object] | None:
    if is_number(target):
        return lambda text: number_given(_own(text, prompt), prompt, cut=unfinished(text))
    if asks_letter(item, target):
        # the words of an option count where the sentence is whole
        # a letter that is no option is an answer too
        return lambda text: letter_given(text, None, prompt, by_words=not unfinished(text))
    if rivals := offered(prompt, target):
        return lambda text: word_taken(text, rivals, prompt)
    return None


def asks_letter(item: Lost, target: str) -> bool:
    """Whether the letter of an option was asked for; without options, a letter is a free word."""
    if not is_letter(target):
        return False
    return bool(item.k) or item.prompt_after is None or lists_options(item.prompt_after)


def _own(text: str, prompt: str | None) -> str:
    """What a text says and does not copy."""
    return "\n".join(own_lines(text, prompt))


def copies(item: Lost) -> bool:
    """The text says nothing but what stands in the question, or calls that its answer."""
    now = item.response_after or ""
    left = _CUE.sub("", now)
    return bool(left.strip()) and not _own(left, item.prompt_after)


def asks_again(item: Lost) -> bool:
    """A value was asked for, and the text copies the question, in more than a word or two.

    The words of an option are in the question too, but an answer.
    """
    now, was = item.response_after or "", item.response_before
    is_other = structure.form_of(was) is not None or asks_letter(item, item.target or "")
    return not is_other and len(now.split()) > _VALUE and not _own(now, item.prompt_after)


def is_empty(text: str) -> bool:
    """Nothing but half a tag is left of a text, or its thinking never ends."""
    left = looked_at(text)
    return not _HALF_TAG.sub("", left).strip(" \n\ufffd") or compared.thinks_on(left)


def is_begun(now: str, was: str) -> bool:
    """The text is the beginning of the answer before."""
    return 0 < len(now.strip()) < len(was.strip()) and was.strip().startswith(now.strip())


def breaks_word(now: str, was: str) -> bool:
    """The text is the beginning of the answer before, and ends inside a word or number of it."""
    after = was.strip()[len(now.strip()) :][:1]
    return is_begun(now, was) and now.strip()[-1].isalnum() and after.isalnum()


def stops_in_form(now: str, was: str) -> bool:
    """The text ends in the middle of a call, JSON or a program."""
    if structure.form_of(was) == "code":
        return compared.breaks_off_code(now)
    return compared.breaks_off_value(now, was)


def own_form(item: Lost, text: str) -> str:
    """What of a text may hold a form: not what it copies; a program begins as the question says."""
    is_program = structure.form_of(item.response_before) == "code"
    return text if is_program else _own(looked_at(text), item.prompt_after)


def holds_a_form(item: Lost, text: str) -> bool:
    """Whether a text holds a call, JSON or a program, right or wrong, as the answer before was."""
    return compared.holds_an_answer(own_form(item, text), item.response_before or "")


def first_value(text: str) -> str | None:
    """The first line, if it is a value alone and something else follows, as the next turn."""
    first, second, *_ = [*looked_at(text).strip().split("\n", 2), "", ""]
    value = NEXT_TURN.sub("", f"{first}\n").strip()
    follows = "\n" in text.strip() and (value != first or not 0 < len(second.split()) <= _VALUE)
    follows = follows or second.strip() in _ROLES
    is_value = 0 < len(value.split()) <= _VALUE and value[-1] not in ":,`!?" and ": " not in value
    is_value = is_value and not _HEADING.match(value)
    return value if follows and is_value else None


def is_value(item: Lost) -> bool:
    """The right answer is known, and so short that a text either has it or has it not."""
    right = item.target or item.answer_before
    return right is not None and 0 < len(right.split()) <= SHORT


def says_a_sentence(text: str) -> bool:
    """Whether at least one sentence of a text is finished."""
    return any(one[-1] in ".!?。" for one in sentences(text))


def gives_right(item: Lost, text: str, target: str) -> bool:
    """Whether a text gives the right value, with or without the form that was asked for."""
    said = _judged(text, _plain_reader(item, target, item.prompt_after))
    cut = unfinished(said)
    if is_number(target):
        given = number_given(said, item.prompt_after, cut=cut)
        given_as_asked = number_given(
            said, cut=cut
        )  # a copy is no answer, if it is not the right one
        return value_of(target) in (given, given_as_asked, *numbers_called(said))
    if asks_letter(item, target):
        given_letter = letter_given(said, item.k, item.prompt_after, by_words=not cut)
        return given_letter == target.strip("() ")
    bare = wrapping.plain_value(target)
    wanted = [words for words in (target, bare) if words]
    return any(gives(said, words, item.k, item.prompt_after) for words in wanted)
