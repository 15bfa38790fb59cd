"""Whether a text gives an answer that is known: a letter, a number or words."""

from __future__ import annotations

import re

from forgetmap.answers.options import Options, extract
from forgetmap.answers.text import after_cue, fold, last_boxed, looked_at, sentences
from forgetmap.base.errors import InputError

_NUMBER = re.compile(r"-?\d{1,20}(?:,\d{3})*(?:\.\d{1,20})?")


_YES_NO = re.compile(r"\b(?:yes|no|true|false)\b")


_SHORT = 300
"""Characters up to which a text is an answer as a whole; of a longer one its end is."""


_DENIED = re.compile(r"\b(?:not|never|isn't|wasn't|no|nicht|pas|non|niet|não)(?: \w{1,12})? ?$")


def gives(text: str, target: str, k: int | None = None) -> bool:
    """Whether a text gives an answer: a letter is taken, a number comes last, words are said.

    Example:
        >>> gives("First 3, then 4, so 3 + 4 = 7.", "7"), gives("7 is too much, I say 5.", "7")
        (True, False)
        >>> gives("So (B) it is.", "B", k=4), gives("Not Paris but Rome.", "Paris")
        (True, False)
    """
    answer = looked_at(text)
    wanted = target.rpartition("####")[2].strip()
    if not wanted or not answer.strip():
        return False
    if re.fullmatch(r"\(?[A-Z]\)?", wanted):
        return _letter(answer, k) == wanted.strip("()")
    boxed = last_boxed(answer)
    said = boxed or after_cue(answer) or _conclusion(answer)
    if number := _NUMBER.fullmatch(wanted.strip("$%. ")):
        return _last_number(said) == _value(number.group())
    folded = fold(said)
    if _YES_NO.fullmatch(fold(wanted)):
        return set(_YES_NO.findall(folded)) == {fold(wanted)}
    return _says(folded, fold(wanted))


def _letter(text: str, k: int | None) -> str | None:
    letters = {chr(ord("A") + place): "" for place in range(min(k or 26, 26))}
    try:
        return extract(text, Options(letters, {}))
    except InputError:  # only a misspelt option would need more packages, and none has a text here
        return None


def _conclusion(text: str) -> str:
    """All of a short text, of a long one its last two sentences."""
    return text if len(text) <= _SHORT else " ".join(sentences(text[-5000:])[-2:])


def _last_number(text: str) -> float | None:
    numbers = _NUMBER.findall(text)
    return _value(numbers[-1]) if numbers else None


def _value(number: str) -> float:
    return float(number.replace(",", ""))


def _says(text: str, words: str) -> bool:
    for match in re.finditer(rf"(?<!\w){re.escape(words)}(?!\w)", text):
        if not _DENIED.search(text[max(0, match.start() - 30) : match.start()]):
            return True
    return not words.isascii() and words in text  # scripts that set no spaces between words
