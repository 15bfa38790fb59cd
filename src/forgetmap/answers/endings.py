"""How a text ends: unfinished, or going round in circles."""

from __future__ import annotations

import re
from collections.abc import Sequence

_LOOK = 20_000
"""Characters at the end of a text that are looked at."""

# --- unfinished -----------------------------------------------------------------------------------

_SENTENCE = 5
"""Words from which a last line is a sentence; a shorter one may be a title, a name or a value."""
_STOPS = re.compile(
    r"[.!?…。！？)\]}\"'”’»*_`$>|]\s*\Z|\d\s*\Z|= ?\$?\d[\d.,]{0,20} [^\W\d_]{1,20}\s*\Z"
)
"""How a text ends that says all: with a mark, with a number, with a result and what it counts."""
_CALCULATES = re.compile(
    r".{0,200}\d(?:\s+[-+*/×÷]|\s*[-+*/×÷](?=\s*\Z)|\s+(?:plus|minus|times)\b)\s*"
    r"(?:\d[\d,]*(?:\.\d+)?\s*)?"
)
"""A calculation without its result, or without its last part."""
_HANGS = re.compile(
    r"(?::|\w_|\ba|\b(?i:the|an|of|to|and|or|is|are|was|were|that|which|with|for|in|on|by|from|as|"
    r"at|be|this|its|his|their|than|because|has|have|my|your|our|between|into|we|you|il|la|le|les|"
    r"de|du|des|et|est|un|une|que|el|los|y|es|en|"
    r"der|die|das|und|ist|ein|eine|von|zu))\s*\Z"
)
"""After these something must follow; a large A may be the letter of an option."""
_FEWEST_HANGING, _FEWEST_BEFORE_COLON = 2, 3


def unfinished(text: str) -> bool:
    """Whether the last line is a sentence without its end, or something must follow.

    Example:
        >>> unfinished("To find out how many there are, we need to add"), unfinished("It is the")
        (True, True)
        >>> unfinished("It is hard to say how many there are."), unfinished("New York")
        (False, False)
    """
    last = text.rstrip().rpartition("\n")[2]
    count = len(last.split())
    if last.endswith((",", "=")) or _CALCULATES.fullmatch(last.rpartition("=")[2]):
        return True
    if len(text.split()) >= _FEWEST_HANGING and _HANGS.search(text[-40:]):
        return count >= _FEWEST_BEFORE_COLON or not last.endswith(":")  # else it is a heading
    return count >= _SENTENCE and not _STOPS.search(last[-200:])


# --- in circles -----------------------------------------------------------------------------------

_WORD = re.compile(
    r"\d+(?:[.,:]\d+)+|\w+(?:['’]\w+)*|^[ \t]{0,40}[^\w\s()\[\]{},;]{1,9}[ \t]{0,9}$", re.MULTILINE
)
"""A word or number; a sign too, if nothing else stands in its line."""
_MARK = r"\(?(?:[A-Za-z]|\d{1,3})[:.)]"
_MARKS = re.compile(
    rf"^[ \t]{{0,9}}(?:(?:{_MARK}[ \t]{{1,9}}){{1,9}}(?=\S)(?!{_MARK}(?:\s|\Z))|"
    rf"{_MARK}[ \t]{{1,9}}(?=\S))",
    re.MULTILINE,
)
"""The marks of a line in a list: lines that differ in them alone say the same.

In a line of marks only the first is one.
"""
_GROUP, _THRICE = 4, 3
"""So many words in a row, so many times anywhere, are a circle."""
_IN_A_ROW = {1: 4, 2: 3, 3: 3}
"""How often a word, or two or three, must come directly one after the other."""
_WHOLE = 3
"""Words from which something that is said twice, and nothing else, is a circle, and of a group of
four those that must be there where it is cut off."""
_STUTTERS = re.compile(r"(?=\S{20})(?!\d{20})(\S{0,11}?\w)\1{5,}")
"""Letters that come again and again without a space."""
_OPEN_END = re.compile(rf"[\w,:]\s*\Z|\n[ \t]{{0,9}}{_MARK}\s*\Z")
"""How a text ends that may be cut off."""


def repeats_itself(text: str) -> bool:
    r"""Whether a text goes round in circles; the last time may be cut off.

    Four words in a row come three times; or a word comes four times in a row, or two or three
    words three times; or the text is one thing said twice, and nothing else.

    Example:
        >>> repeats_itself("A\nB\nC\nD"), repeats_itself("I am sure. " * 5)
        (False, True)
        >>> repeats_itself("I see a cat on a mat.\nI see a cat on a mat.")
        True
        >>> repeats_itself("I see a cat on a mat.\nI see a ca"), repeats_itself("I see a cat. I")
        (True, False)
        >>> repeats_itself("to be to be to"), repeats_itself("A: \nA: \nA: \nA: ")
        (True, True)
    """
    text = text[-_LOOK:]
    if _STUTTERS.search(text):
        return True
    plain = _MARKS.sub("", text)
    if _begins_again(text) or _begins_again(plain):
        return True
    words = [word.strip().casefold() for word in _WORD.findall(plain)]
    if not _OPEN_END.search(text):
        return _goes_round(words, cut=False)
    colon = text.rstrip().endswith(":")  # after it something new was to come
    said = words if colon else _last_word_whole(words)
    return _goes_round(words, cut=True, ends=colon) or _goes_round(said, cut=True, ends=colon)


def _begins_again(text: str) -> bool:
    """Whether the last lines say again what the first ones say; they may be cut off.

    Of one line three words are enough, of several a third of them.
    """
    lines = [line for part in text.casefold().split("\n") if (line := _WORD.findall(part))]
    words = [word for line in lines for word in line]
    at, may_be_cut = 0, _OPEN_END.search(text) is not None
    for place, line in enumerate(lines[:-1], start=1):
        at += len(line)
        again = len(words) - at
        if at < _WHOLE or again < _WHOLE or words[at] != words[0]:
            continue
        cut = may_be_cut and words[again - 1].startswith(words[-1])
        whole = words[at:] == words[:again]
        if not whole and not (cut and again > _WHOLE and words[at:-1] == words[: again - 1]):
            continue
        one_line = lines[:place].count(lines[0]) == place
        if one_line or again >= at or (cut and 3 * again > at):
            return True
    return False


def _goes_round(words: Sequence[str], *, cut: bool, ends: bool = False) -> bool:
    in_a_row = any(_in_a_row(words, size, times, cut=cut) for size, times in _IN_A_ROW.items())
    again = _says_one_thing(words, cut=cut and not ends)
    return in_a_row or again or _most_often(words, cut=cut) >= _THRICE


def _last_word_whole(words: Sequence[str]) -> list[str]:
    """The words with the last one made whole, if it begins as the word did that stood there before.

    That is the word after the last place where the two words before it stand, or the one before it.
    """
    *told, last = words or [""]
    for size in (2, 1):
        before = told[-size:]
        places = [at for at in range(len(told) - size) if told[at : at + size] == before]
        if places and told[places[-1] + size].startswith(last):
            return [*told, told[places[-1] + size]]
    return list(words)


def _most_often(words: Sequence[str], *, cut: bool) -> int:
    """How often the most frequent group of words comes, without overlaps."""
    last: dict[tuple[str, ...], int] = {}
    times: dict[tuple[str, ...], int] = {}
    for at in range(len(words) - _GROUP + 1):
        group = tuple(words[at : at + _GROUP])
        if at - last.get(group, -_GROUP) >= _GROUP:
            last[group] = at
            times[group] = times.get(group, 0) + 1
    rest = tuple(words[-_WHOLE:])  # of a group that is cut off
    for group, at in last.items():
        if cut and group[:_WHOLE] == rest and len(words) - _WHOLE - at >= _GROUP:
            times[group] += 1
    return max(times.values(), default=0)


def _in_a_row(words: Sequence[str], size: int, times: int, *, cut: bool) -> bool:
    """Whether some words come so often directly one after the other; of a cut last time one."""
    same = 0
    for word, before in zip(words[size:], words, strict=False):
        same = same + 1 if word == before else 0
        if same >= size * (times - 1):
            return True
    return cut and same > size * (times - 2)


def _says_one_thing(words: Sequence[str], *, cut: bool) -> bool:
    """Whether a text is one thing over and over, at least twice; of a cut text half is enough."""
    most = min(2 * len(words) // 3, len(words) - _WHOLE) if cut else len(words) // 2
    return any(
        words[size:] == words[: len(words) - size]
        for size in range(_WHOLE, most + 1)
        if words[size] == words[0]
    )
