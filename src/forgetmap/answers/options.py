"""Which option an answer takes, by letter or by its text.

Places are tried from the plainest to the vaguest.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from forgetmap.answers.text import TO_WHAT, after_cues, last_boxed, normal, optional, sentences

_ALIKE = 90.0
"""Likeness in percent from which a short answer is taken for an option it misspells."""


_AHEAD = 5.0
"""By how much it must be more like that option than like any other."""


_NEGATIONS = frozenset(("not", "no", "never", "none", "cannot", "without"))


_PREFIX = re.compile(r"\s{0,5}[(\[]?([A-Z])[).:\]]\s{1,5}(?=\S)")


CUE = re.compile(
    rf"\b(?:[Aa](?:nswer|NSWER)(?:{TO_WHAT})?|(?:[Cc]orrect|[Rr]ight|[Bb]est|[Ff]inal) (?:choice|"
    rf"option))[*_]{{0,3}}"
    r"(?:[ \t]{1,4}(?:is|was|would be|should be|must be)\b:?|[ \t]{0,4}[:=])"
)


_OPENS = (
    r"[\s*_\"'“‘(\[{$\\]{0,12}(?:text\{|mathrm\{|mathbf\{|[Oo]ption\s|[Cc]hoice\s)?[*_(\[]{0,4}"
)


_LETTER_FIRST = re.compile(rf"{_OPENS}(?:([A-Z])(?![\w'’])|([a-z])(?=[)\].:*_}}]|\s*$))")


_LETTER_ONLY = re.compile(rf"{_OPENS}([A-Za-z])[\s.)\]*_}}\"']{{0,9}}")


_AFFIRMED = re.compile(
    r"(?<![\w'’])([A-Z])[)\].:*_\"']{0,4} (?:is|must be) (?:the )?(?:right|correct|best|true)\b"
)


_LEADING = re.compile(
    r"\s{0,20}[*_(\[]{0,4}([A-Z])(?:[*_]{0,3}[).:\]]|[*_]{1,3}|\s{0,20}$|\s{0,3}[-–—\n])"
)


_BOLD = re.compile(r"\*\*\s?[(\[]?([A-Z])(?:[)\].:]|(?=\*\*))")


_BRACKETED = re.compile(r"[(\[]([A-Z])[)\]]")


_ALONE = re.compile(
    r"(?<![\w'’])(?:([B-HJ-Z])(?![\w'’])|((?<=[a-z,] )A(?= [a-z])|[AI](?=\s{0,3}"
    r"(?:[.,;:!)*]|(?:or|and) [A-Z]\b|$))))(?!\.\w|\s{0,2}[=+<>^/])|(?<=[\"'“‘])([A-Z])(?=[\"'”’])"
)
"""A letter that is a word of its own; A and I only where they can be no word of a sentence."""


_OTHER_LETTER = re.compile(
    r"\b(?:vitamin|hepatitis|influenza|coenzyme|protein|factor|type|group|plan|grade|class|phase|"
    r"figure|table|appendix|section|part|point|line|set|event|matrix|node|variable|case|person|"
    r"company|country|drug|model)\s$|[=+<>^/]\s{0,2}$",
    re.IGNORECASE,
)
"""What stands before a letter that names something else: vitamin C, x = B."""


_DENIED_BEFORE = re.compile(
    r"\b(?:not|never|n't|rather than|instead of|except)\s{1,3}(?:\w{1,12}\s){0,3}[\"'(\[*]{0,3}$",
    re.IGNORECASE,
)


_DENIED_AFTER = re.compile(
    r"[)\].:*_\"']{0,4}\s{0,3}(?:is|was|are|seems|looks|can|does)\s?"
    r"(?:n't|not\b|wrong|incorrect|false|too\b|un\w|ruled)"
)


_LABEL = re.compile(r"(?:^|[.;:]\s{1,3})[*_(\[]{0,4}([A-Z])[).:\]]", re.MULTILINE)


LOOK = 5000
"""Characters from the end in which an option is looked for where nothing points to it."""


class Options(NamedTuple):
    """The options of an item."""

    by_letter: Mapping[str, str]
    """Letter -> text in normal form."""
    by_text: Mapping[str, str]
    """Text in normal form -> letter, where one option alone has that text."""


@lru_cache(maxsize=4096)
def read_options(choices: tuple[str, ...]) -> Options:
    """Letters and texts of the options; a letter that all of them carry themselves is taken off.

    Without options, or with more than there are letters, there are none to choose from.
    """
    if not choices or len(choices) > len(string.ascii_uppercase):
        return Options({}, {})
    own = [_PREFIX.match(choice) for choice in choices]
    if all(own) and len({match[1] for match in own if match}) == len(choices):
        letters = {
            match[1]: choice[match.end() :]
            for match, choice in zip(own, choices, strict=True)
            if match
        }
    else:
        letters = dict(zip(string.ascii_uppercase, choices, strict=False))
    by_letter = {letter: normal(text) for letter, text in letters.items()}
    texts = list(by_letter.values())
    by_text = {
        text: letter for letter, text in by_letter.items() if text and texts.count(text) == 1
    }
    return Options(by_letter, by_text)


def extract(text: str, options: Options) -> str | None:
    """The letter of the option that the answer takes; None where it takes none.

    Example:
        >>> options = read_options(("Paris", "Rome", "Oslo"))
        >>> extract("(A) is wrong, (C) is too far north. So it must be (B).", options)
        'B'
        >>> extract("Rome", options), extract("Not Rome", options), extract("A or B", options)
        ('B', None, None)
    """
    for part in (last_boxed(text), *after_cues(text, CUE)):
        if part and (letter := _letter_or_text(part, options)):
            return letter
    if letter := _whole(text, options):
        return letter
    for pattern in (_AFFIRMED, _BOLD, _BRACKETED, _ALONE):
        if letter := _only_letter(text, pattern, options):
            return letter
    return _named(text, options)


def _letter_or_text(part: str, options: Options) -> str | None:
    match = _LETTER_FIRST.match(part)
    letter = (match[1] or match[2]).upper() if match else ""
    is_pronoun = letter == "I" and re.match(r"\s[a-z]", part[match.end() :] if match else "")
    if letter in options.by_letter and not is_pronoun:
        return letter
    return _named(part[:500], options)


def _whole(text: str, options: Options) -> str | None:
    """The answer is an option and nothing else, or begins with its letter."""
    if len(text) <= 500:
        alone = _LETTER_ONLY.fullmatch(text)
        letter = alone[1].upper() if alone else options.by_text.get(normal(text))
        if letter in options.by_letter:
            return letter
    first = _LEADING.match(text)
    if not first or first[1] not in options.by_letter or _denied(text, first.start(1)):
        return None
    labels = {match[1] for match in _LABEL.finditer(text[:LOOK])}
    return None if labels - {first[1]} else first[1]  # several: the options are gone through


def _only_letter(text: str, pattern: re.Pattern[str], options: Options) -> str | None:
    """The one letter that stands there; of several, the one of the last sentence that has any."""
    letters = _letters(text[-LOOK:], pattern, options)
    if len(letters) > 1:
        for sentence in reversed(sentences(text[-LOOK:])):
            if letters := _letters(sentence, pattern, options):
                break
    return letters.pop() if len(letters) == 1 else None


def _letters(text: str, pattern: re.Pattern[str], options: Options) -> set[str]:
    letters = {
        match.group(match.lastindex or 0)
        for match in pattern.finditer(text)
        if not _denied(text, match.start(match.lastindex or 0))
        and not (pattern is _ALONE and _names_another(text, match.start()))
    }
    return letters & options.by_letter.keys()


def _names_another(text: str, at: int) -> bool:
    return bool(_OTHER_LETTER.search(text[max(0, at - 12) : at]))


def _denied(text: str, at: int) -> bool:
    """Whether the letter there is said to be wrong."""
    before = _DENIED_BEFORE.search(text[max(0, at - 40) : at])
    return bool(before or _DENIED_AFTER.match(text, at + 1))


def only_named(text: str, options: Options) -> str | None:
    """The letter of the only option whose words a text has; None where it has several, or none."""
    meant = _meant(text[-LOOK:], options)
    if not meant and len(text) <= 200:
        return _nearest(normal(text), options)
    return meant[0] if len(meant) == 1 else None


def _named(text: str, options: Options) -> str | None:
    """The one option that the answer names, in all of it or in the last sentence that names any."""
    tail = text[-LOOK:]
    meant = _meant(tail, options)
    if not meant:
        return _nearest(normal(text), options) if len(text) <= 200 else None
    if len(meant) > 1:
        meant = next(filter(None, (_meant(one, options) for one in reversed(sentences(tail)))), [])
    return meant[0] if len(meant) == 1 else None


def _meant(text: str, options: Options) -> list[str]:
    """The options whose text is named and not denied."""
    said = f" {normal(text)} "
    named = {
        letter: option
        for option, letter in options.by_text.items()
        if (at := said.rfind(f" {option} ")) >= 0
        and not _DENIED_BEFORE.search(said[max(0, at - 40) : at + 1])
    }
    # An option that is part of another one that is named ("York" in "New York") is not meant.
    return [
        letter
        for letter, option in named.items()
        if not any(option != other and f" {option} " in f" {other} " for other in named.values())
    ]


def _nearest(said: str, options: Options) -> str | None:
    """The option that a short answer misspells, if it is like no other and denies nothing."""
    if len(said) < 4 or any(f" {option} " in f" {said} " for option in options.by_text):
        return None
    ranked = optional("rapidfuzz.process").extract(
        said, list(options.by_text), scorer=optional("rapidfuzz.fuzz").ratio, limit=2
    )
    if not ranked or ranked[0][1] < _ALIKE or (ranked[1:] and ranked[0][1] - ranked[1][1] < _AHEAD):
        return None
    nearest = ranked[0][0]
    same_sense = _NEGATIONS & set(said.split()) == _NEGATIONS & set(nearest.split())
    return options.by_text[nearest] if same_sense else None
