"""How all scorers look at text: how much of it, its words and sentences, where the answer stands.

The patterns here and in the scorers take time in proportion to the text, whatever it holds: no
pattern begins with an unlimited repetition, and what lies between two marks has a greatest length.
"""

from __future__ import annotations

import importlib
import re
import unicodedata
from functools import cache
from typing import Any

from forgetmap.base.extras import need

LONGEST = 100_000
"""Characters of a response that are looked at. Of a longer one the middle is left out: what counts
stands at the beginning or at the end."""


_THOUGHT = re.compile(r"</(?:think|thinking|thought|reasoning)>", re.IGNORECASE)


def looked_at(response: str) -> str:
    """The part of a response that is looked at.

    Not what a model thinks before it answers, and of an endless answer beginning and end.

    Example:
        >>> looked_at("<think>Is it B?</think>\\nA")
        '\\nA'
    """
    answer = _THOUGHT.split(response)[-1] if "</" in response else response
    if len(answer) <= LONGEST:
        return answer
    return f"{answer[: LONGEST // 2]}\n{answer[-LONGEST // 2 :]}"


def optional(module: str) -> Any:
    """Import a package that only scoring needs."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise need("this scorer", "capabilities") from error


# --- words and sentences --------------------------------------------------------------------------

_WORD = re.compile(r"\w+(?:(?:(?<=[^\W\d_])['’.·](?=[^\W\d_])|(?<=\d)[.,;'’](?=\d))\w+)*")
"""A word where words stand apart: letters, digits, and what joins them (can't, 3.14, 1,234)."""
_NEEDS_SEGMENTING = re.compile(
    "[\u0300-\u036f\u0590-\u1fff\u2c00-\ud7ff\uf900-\ufdff\ufe20-\U0001efff\U00020000-\U0003ffff]"
)
"""Characters for which `\\w` is not enough: combining marks, scripts without spaces."""


@cache
def _boundaries() -> Any:
    return optional("regex").compile(r"(?V1w)\b")


def words(text: str) -> list[str]:
    """The words of a text by the rules of Unicode (UAX 29).

    An ideograph is a word; in scripts without spaces, such as Thai, a letter with its marks is.

    Example:
        >>> words("I can't pay 1,234.50: 你好!")
        ['I', "can't", 'pay', '1,234.50', '你', '好']
    """
    if not _NEEDS_SEGMENTING.search(text):
        return _WORD.findall(text)
    pieces = _boundaries().split(text)
    return [piece for piece in pieces if piece and (piece[0].isalnum() or piece[0] == "_")]


_SENTENCE_END = re.compile(
    r"[.!?…]{1,20}[\"'”’»)\]*_]{0,10}(?=\s|$)|[。！？｡]{1,20}[」』”’）]{0,10}|\n[ \t]*\n|"
    r"\n(?=[ \t]{0,20}(?:[-*+•]|\d{1,3}[.)]|#{1,6})\s)"
)
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\"'“‘])(?:mr|mrs|ms|dr|prof|st|sr|jr|vs|etc|e\.g|i\.e|approx|no|fig|vol|pp|cf|al|"
    r"inc|ltd|co|dept|gen|rev|hon|capt|lt|col|[a-z](?:\.[a-z]){0,4})\.$",
    re.IGNORECASE,
)
_ALWAYS_GOES_ON = frozenset(
    ("mr", "mrs", "ms", "dr", "prof", "st", "e.g", "i.e", "vs", "cf", "gen", "rev")
)
_GOES_ON = re.compile(r"\s+(?:[a-z]|\d)")
_LETTER = re.compile(r"[^\W_]")
_ENUMERATION = re.compile(r"(?:[-*+•]|\d{1,3}[.)]|#{1,6})")


def sentences(text: str) -> list[str]:
    """The sentences of a text; a list item, a heading and a paragraph end one too.

    Example:
        >>> sentences("Dr. Who paid 3.5 pounds, e.g. for tea. Really? Yes!")
        ['Dr. Who paid 3.5 pounds, e.g. for tea.', 'Really?', 'Yes!']
    """
    parts, start = [], 0
    for end in _SENTENCE_END.finditer(text):
        if end.group().startswith(".") and _is_abbreviation(text, end.start(), end.end()):
            continue
        parts.append(text[start : end.end()].strip())
        start = end.end()
    parts.append(text[start:].strip())
    return [one for one in parts if _LETTER.search(one) and not _ENUMERATION.fullmatch(one)]


def _is_abbreviation(text: str, dot: int, end: int) -> bool:
    before = _ABBREVIATION.search(text[max(0, dot - 12) : dot + 1])
    if not before:
        return False
    last = before.group().strip(" \n\t(\"'“‘.").casefold()
    if last in _ALWAYS_GOES_ON:
        return True
    if len(last) == 1 and before.group()[-2].isupper() and last != "i":
        return end < len(text)  # an initial: J. Smith
    return bool(_GOES_ON.match(text, end))


# --- normal form ----------------------------------------------------------------------------------

_STRAIGHT = str.maketrans({"’": "'", "‘": "'", "ʼ": "'", "`": "'", "“": '"', "”": '"', "−": "-"})
_ARTICLES = frozenset(("a", "an", "the"))


def fold(text: str) -> str:
    """Case, width and apostrophes made alike.

    Example:
        >>> fold("I CAN’T")
        "i can't"
    """
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", text).casefold().translate(_STRAIGHT)


def tokens(text: str) -> list[str]:
    """Words in normal form: folded, without articles, thousands and initials without marks.

    Example:
        >>> tokens("The Answer: 1,234 cats in the U.S.")
        ['answer', '1234', 'cats', 'in', 'us']
    """
    said = [word for word in words(fold(text)) if word not in _ARTICLES]
    if "," in text or "." in text:
        said = [word.replace("," if word[0].isdigit() else ".", "") for word in said]
    return said


def normal(text: str) -> str:
    """The tokens of a text, joined; two texts with the same ones say the same."""
    return " ".join(tokens(text))


# --- where the answer stands ----------------------------------------------------------------------

_CUE = re.compile(
    r"\b[Aa](?:nswer|NSWER)"
    r"(?:[ \t]{1,4}(?:is|was|would be|should be|must be)\b:?|[*_]{0,3}[ \t]{0,4}[:=])"
)


TO_WHAT = r" to (?:[^.:\n\"“”]|[\"“][^\"“”\n]{1,80}[\"”]){1,80}?"
"""What an answer is said to be to, as in: the answer to "Why?" is."""
_MOST_CUES = 5
_EMPHASIS_LEFT = re.compile(r"^[*_]{1,3}(?=\s)")
"""What is left of the bold print of the cue itself, as in **Answer:** 7."""


def last_boxed(text: str) -> str | None:
    r"""What stands in the last \boxed{...}; None where there is none.

    Example:
        >>> last_boxed(r"first \boxed{1}, then \boxed{\frac{1}{2}}.")
        '\\frac{1}{2}'
    """
    start = text.rfind("\\boxed{")
    if start < 0:
        return None
    depth, begin = 0, start + len("\\boxed")
    for position in range(begin, min(len(text), begin + 2000)):
        depth += {"{": 1, "}": -1}.get(text[position], 0)
        if not depth:
            return text[begin + 1 : position].strip()
    return None


def after_cues(text: str, cue: re.Pattern[str] = _CUE) -> list[str]:
    """What follows each "answer is" or "Answer:", the last one first, at most `_MOST_CUES`.

    Each is the rest of its line, or the next line if nothing else stands there.

    Example:
        >>> after_cues("Let me see. Answer: no. Wait, the answer is **Rome**.")
        ['**Rome**.', 'no. Wait, the answer is **Rome**.']
    """
    ends = [match.end() for match in cue.finditer(text)][-_MOST_CUES:]
    rests = (_EMPHASIS_LEFT.sub("", text[end : end + 2000]) for end in reversed(ends))
    lines = (rest.strip().partition("\n")[0].strip() for rest in rests)
    return [line for line in lines if line]


def after_cue(text: str, cue: re.Pattern[str] = _CUE) -> str | None:
    """What follows the last cue; None where there is none."""
    return next(iter(after_cues(text, cue)), None)
