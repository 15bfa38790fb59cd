"""How a text ends: cut off in the middle, or repeating itself."""

from __future__ import annotations

import re
from collections import Counter
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


_LAST = 200
"""Words at the end in which groups that come again are looked for."""


def just_stops(text: str) -> bool:
    """Whether a long text ends in the middle of a sentence."""
    return len(text.split()) >= _LONG and not _ENDS.search(text[-200:])


_SOME = 5
"""Words from which a text without an answer that stops in the middle was probably cut off."""


_STOPS = re.compile(
    r"[.!?…。！？)\]}\"'”’»*_`$>|]\s*$|\d\s*$|= ?\$?\d[\d.,]{0,20} [^\W\d_]{1,20}\s*$"
)
"""How a text ends that says all: with a mark, with a number, with a result and what it counts."""


_CALCULATES = re.compile(r".{0,200}\d\s*[-+*/×]\s*(?:\d[\d,]*(?:\.\d+)?\s*)?")
"""A calculation without its result, or without its last part."""


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


_HANGS = re.compile(
    r"(?:,|\w_|\b(?:the|a|an|of|to|and|or|is|are|was|were|that|which|with|for|in|on|by|from|as|at|be|"
    r"this|its|his|her|their|we|you|il|la|le|les|de|du|des|et|est|un|une|que|el|los|y|es|en|der|"
    r"die|das|und|ist|ein|eine|von|zu))\s*$",
    re.IGNORECASE,
)
_FEWEST_HANGING = 3


def hangs(text: str) -> bool:
    """Whether a text ends with a word after which something must follow.

    Example:
        >>> hangs("The capital of the country is"), hangs("Rome"), hangs("the")
        (True, False, False)
    """
    return len(text.split()) >= _FEWEST_HANGING and _HANGS.search(text[-40:]) is not None


def repeats_itself(text: str) -> bool:
    r"""Whether a text goes round: its end is one thing again and again, or hardly a word is new.

    Example:
        >>> repeats_itself("A\nB\nC\nD"), repeats_itself("I am sure. " * 5)
        (False, True)
        >>> repeats_itself("A: I see a cat on a mat.\nB: I see a cat on a mat.")
        True
    """
    text = text[-20_000:]
    if _says_one_line(text) or _STUTTERS.search(text[-_STUTTER:]) or _same_sentences(text):
        return True
    words = [word.strip(".,;!?").casefold() for word in _MARKS.sub("", text).split()]
    words = [word for word in words if word]
    if _goes_round(words[-_LAST:]) or any(_few_words(words, count) for count in _FEW):
        return True
    tail = f"{' '.join(text.split())} "[-_TIMES * _LONGEST_UNIT :]
    if any(_ends_with_repeats(tail, unit) for unit in _last_words(tail)):
        return True
    if len(words) < _RUNS:
        return False
    groups = list(zip(words, words[1:], words[2:], words[3:], strict=False))
    return len(set(groups)) < _FEWEST_DIFFERENT * len(groups)


_MARKS = re.compile(
    r"^[ \t]{0,9}(?:(?:[A-Za-z]|\d{1,3})[:.)][ \t]{1,9}){1,3}|\n[A-Za-z]:?\Z", re.MULTILINE
)
"""The letter or number of a line in a list: lines that differ in it alone say the same."""
_ROUNDS, _ROUNDS_ALONE, _ROUNDS_OF_SENTENCES = 3.0, 2.25, 2.0
"""How often a group of words must come in a row; less often where the text is nothing else."""
_ALONE = 0.85
"""Share of the words from which a text is nothing but the group."""
_LONG_GROUP = 6
"""Words from which a group is a sentence, and nobody says it twice."""
_FEW = (12, 24, 36)
"""So many words in a row, and no more than a third of them different, say nothing."""


def _goes_round(words: list[str]) -> bool:
    """Whether a text ends with a group of words over and over, the last time perhaps in part."""
    back = words[::-1]
    for size in range(2, len(words) // 2 + 1):
        if not back[size].startswith(back[0]):
            continue
        same = _same_as_before(back, size)
        alone = same + size >= _ALONE * len(words)
        alone_rounds = _ROUNDS_ALONE if size < _LONG_GROUP else _ROUNDS_OF_SENTENCES
        if same + size >= size * (alone_rounds if alone else _ROUNDS):
            covered = " ".join(words[-same - size :])
            if alone:
                return len(covered) >= _COVERED // 2
            return len(covered) >= _COVERED and any(letter.isalpha() for letter in covered)
    return False


def _says_one_line(text: str) -> bool:
    """Whether a text is one line, or one word, over and over; the last time perhaps in part."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    thrice = zip(lines, lines[1:], lines[2:], strict=False)
    if _same_lines(lines) or any(a == b == c and _TELLS.search(a) for a, b, c in thrice):
        return True
    lines = [line.strip() for line in _MARKS.sub("", text).splitlines() if line.strip()]
    if _ends_with_lines(lines):
        return True
    if len(lines) == 1:
        lines = lines[0].split()
        if len(lines) < _ROUNDS or not lines[0][:1].isalpha():
            return False
    return _same_lines(lines)


def _ends_with_lines(lines: list[str]) -> bool:
    """Whether the last lines, all with a word, differ in a letter or a number at most."""
    last = [_COUNTED.sub("#", line).rstrip(" .,;:") for line in lines[-_TIMES:]]
    return len(last) == _TIMES and len(set(last)) == 1 and _A_WORD.search(last[0]) is not None


_COUNTED = re.compile(r"\b(?:\d+|[A-Za-z])\b")
_TELLS = re.compile(r"[^\W\d_]|\"{3}")
"""A line that is more than closing brackets."""
_A_WORD = re.compile(r"[^\W\d_]{2}")


_STUTTER = 240
_STUTTERS = re.compile(r"(?=\S{24})(\S{0,11}[^\W_])\1{4,}\S{0,12}\s*\Z")
"""Letters that come again and again without a space, at the end."""
_SENTENCE_ENDS = re.compile(r"[.!?\"”]+\s+|\n+")
_MOSTLY = 0.6
"""Share of the words from which sentences that come again make a text go round."""
_FULL = 5
"""Words from which a sentence that comes again says something."""


def _same_sentences(text: str) -> bool:
    """Whether most of a text are sentences that come three times, but for a word of five."""
    parts = [part.split() for part in _SENTENCE_ENDS.split(text[-4000:])]
    said = [Counter(word.strip("\".,;:'") for word in part) for part in parts]
    if len(said) > _MOST_SENTENCES:
        return False
    said = [part for part in said if part]
    if len(said) == 2 and said[0].total() >= _FULL and _alike(said[0], said[1], share=_TWICE):
        return True
    sizes = [part.total() for part in said]
    again = sum(
        size
        for part, size in zip(said, sizes, strict=True)
        if size >= _FULL and sum(_alike(part, other) for other in said) >= _ROUNDS
    )
    return again > _MOSTLY * sum(sizes)


_SHARED, _TWICE = 0.8, 0.9
"""Share of the words from which sentences say the same: of three or more, and of only two."""


def _alike(one: Counter[str], other: Counter[str], share: float = _SHARED) -> bool:
    """Whether two sentences have nearly the same words."""
    return (one & other).total() >= share * max(one.total(), other.total())


_MOST_SENTENCES = 80


def _same_lines(lines: list[str]) -> bool:
    if len(lines) < 2:
        return False
    *whole, last = lines
    once_more = last == lines[0] or (len(whole) > 1 and lines[0].startswith(last))
    return once_more and set(whole) == {lines[0]}


def _few_words(words: list[str], count: int) -> bool:
    """Whether the last words, none of them a number, are a few that take turns."""
    said = [word.strip("\"'“”.,;:!?(){}[]") for word in words[-count:]]
    said = [word for word in said if word]
    few = len(set(said)) <= count // 3
    return len(words) >= count and few and all(word.replace("-", "").isalpha() for word in said)


def _same_as_before(back: list[str], size: int) -> int:
    """How many words, from the last one back, are those `size` places on; the last may be cut."""
    pairs = enumerate(zip(back[1:], back[size + 1 :], strict=False), start=1)
    return next((at for at, (now, was) in pairs if now != was), len(back) - size)


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
