"""How a text ends: cut off in the middle, or repeating itself."""

from __future__ import annotations

import re
from collections.abc import Iterator

_LONG = 50
"""Words from which a text that stops in the middle of a sentence was probably cut off."""


_ENDS = re.compile(r"[.!?…。！？:;)\]}\"'”’»*_`$>|-]\s*$|\d\s*$|(?:^|\n)[^\n]{0,40}$")
"""How a text ends that was not cut off; a short last line may be a title, a name, a value."""


_TIMES = 5


_LONGEST_UNIT = 400


_COVERED = 30
"""Characters that the repetition must cover: `1000000` is a number."""


_RUNS = 60
"""Words from which the share of different word groups says something."""


_FEWEST_DIFFERENT = 0.25


def just_stops(text: str) -> bool:
    """Whether a long text ends in the middle of a sentence."""
    return len(text.split()) >= _LONG and not _ENDS.search(text[-200:])


_SOME = 5
"""Words from which a text without an answer that stops in the middle was probably cut off."""


_STOPS = re.compile(r"[.!?…。！？)\]}\"'”’»*_`$>|]\s*$|\d\s*$")


_CALCULATES = re.compile(r"[^=]{1,40}\d\s*[-+*/×]\s*\d[\d.,]*\s*$")
"""A calculation without its result."""


_LAST_LINE = re.compile(r"\n\s*\S{1,20}\s*$")
"""A line of one word at the end: the answer of a short text, a beginning in a long one."""


def breaks_off(text: str) -> bool:
    """Whether a text that gives no answer ends in the middle of a sentence.

    Example:
        >>> breaks_off("To find out how many there are, we need to add the")
        True
        >>> breaks_off("It is hard to say how many there are of them.")
        False
    """
    count = len(text.split())
    if count >= _SOME and _CALCULATES.fullmatch(text.rpartition("\n")[2].rpartition("=")[2]):
        return True
    if count < _SOME or _STOPS.search(text[-200:]):
        return False
    return count >= 4 * _SOME or not _LAST_LINE.search(text[-200:])


def repeats_itself(text: str) -> bool:
    r"""Whether a text goes round: its end is one thing five times, or it has hardly new words.

    Example:
        >>> repeats_itself("A\nB\nC\nD"), repeats_itself("I am sure. " * 5)
        (False, True)
    """
    if _one_thing(text):
        return True
    words = text[-20_000:].split()
    tail = f"{' '.join(words)} "[-_TIMES * _LONGEST_UNIT :]
    if any(_ends_with_repeats(tail, unit) for unit in _last_words(tail)):
        return True
    if len(words) < _RUNS:
        return False
    groups = list(zip(words, words[1:], words[2:], words[3:], strict=False))
    return len(set(groups)) < _FEWEST_DIFFERENT * len(groups)


_WHOLE = re.compile(r"(\S[^\n]{5,80}?)\s*\1+(.*)", re.DOTALL)


def _one_thing(text: str) -> bool:
    """Whether a short text is one thing over and over, and stops in the middle of it."""
    said = " ".join(text[:400].split())
    if len(said) >= 400 or " " not in said:
        return False
    found = _WHOLE.fullmatch(f"{said} ")
    if not found:
        return False
    unit, rest = found[1].strip(), found[2].strip()
    return bool(rest) and len(rest) >= len(unit) / 3 and unit.startswith(rest)


def _last_words(tail: str) -> Iterator[str]:
    """The last word, the last two and so on: what can repeat where the text ends with a space."""
    start = tail.rfind(" ", 0, -1)
    while len(tail) - 1 - start <= len(tail) // _TIMES and start >= 0:
        yield tail[start + 1 :]
        start = tail.rfind(" ", 0, start)


def _ends_with_repeats(tail: str, unit: str) -> bool:
    if tail[-2 * len(unit) : -len(unit)] != unit:  # spares building the longer text
        return False
    times = max(_TIMES, -(-_COVERED // len(unit)))
    return tail.endswith(unit * times) and any(letter.isalnum() for letter in unit)
