"""What a text copies from the question: it is nothing that the model gave."""

from __future__ import annotations

import re
from functools import lru_cache

from forgetmap.answers.text import sentences

_SENTENCE = 3
"""Words from which a whole sentence of the question is a copy."""
_COPIED = 4
"""Words from which a part of a line of the question is a copy; one word may be an answer."""
_WORD = re.compile(r"\d+(?:[.,:]\d+)+|\w+(?:['’]\w+)*")
_INDENT = re.compile(r"[ \t]{1,40}\S")
_LONG_PROMPT = 20_000


def own_lines(text: str, prompt: str | None) -> list[str]:
    """The lines of a text that are not copied from the question, whole or in part.

    Example:
        >>> own_lines("A man who bakes bread.\\nbaker", "What do you call a man who bakes bread?")
        ['baker']
    """
    known = _known(prompt or "")
    lines = [line for line in text.splitlines() if line.strip()]
    return [
        line
        for line, after in zip(lines, [*lines[1:], ""], strict=False)
        if _opens_body(line, after) or not _is_copied(line, known)
    ]


def _opens_body(line: str, after: str) -> bool:
    """The head of a function is no copy if the function goes on."""
    return line.rstrip().endswith(":") and _INDENT.match(after) is not None and "def " in line


@lru_cache(maxsize=256)
def _known(prompt: str) -> tuple[str, ...]:
    """The lines of the question, and its sentences of three words or more."""
    told = (_bare(one) for one in sentences(prompt[-_LONG_PROMPT:]))
    lines = (_bare(line) for line in prompt.splitlines())
    return (*lines, *(one for one in told if len(one.split()) >= _SENTENCE))


def own_words(text: str, prompt: str | None) -> str:
    """A text without the four words or more that stand in a row in a line of the question too.

    Example:
        >>> own_words("The last of: sun, moon, star is star.", "Copy the last of: sun, moon, star")
        '  is star.'
    """
    asked = _rows(prompt[-_LONG_PROMPT:]) if prompt else frozenset()
    if not asked:
        return text
    found = list(_WORD.finditer(text))
    said = [word[0].casefold() for word in found]
    spans = [
        (found[at].start(), found[at + _COPIED - 1].end())
        for at in range(len(said) - _COPIED + 1)
        if tuple(said[at : at + _COPIED]) in asked
    ]
    left: list[str] = []
    at = 0
    for start, end in spans:
        if start > at or not left:
            left.append(text[at:start])
        at = end
    return " ".join([*left, text[at:]])


def unasked(sentence: str, prompt: str | None) -> str:
    """What a sentence says that begins as a line of the question does; nothing, if it asks again.

    Example:
        >>> asked = "Look at this. Is a pear fruit or vegetable?"
        >>> unasked("Look at this: fruit", asked), unasked("Is a pear fruit or what?", asked)
        ('Look at this: fruit', '')
        >>> unasked("Is a pear fruit.", "Is a pear fruit or vegetable?")
        ' .'
    """
    own = own_words(sentence, prompt)
    if own == sentence:
        return sentence
    if sentence.rstrip().endswith("?"):
        return ""
    opening = _WORD.findall(sentence.casefold())[:_COPIED]
    lines = (_WORD.findall(line.casefold()) for line in (prompt or "").splitlines())
    return own if any(line[:_COPIED] == opening for line in lines) else sentence


@lru_cache(maxsize=256)
def _rows(prompt: str) -> frozenset[tuple[str, ...]]:
    """Every four words that stand in a row in a line of the question."""
    lines = [_WORD.findall(line.casefold()) for line in prompt.splitlines()]
    return frozenset(
        tuple(line[at : at + _COPIED]) for line in lines for at in range(len(line) - _COPIED + 1)
    )


def _is_copied(line: str, known: tuple[str, ...]) -> bool:
    bare = _bare(line)
    if not bare:
        return False
    if bare in known:
        return True
    return len(_WORD.findall(bare)) >= _COPIED and any(bare in one for one in known)


def _bare(line: str) -> str:
    """A line without capital letters and without marks at its ends."""
    return line.strip(" \t.,;:!?¿¡\"'(){}[]->").casefold()
