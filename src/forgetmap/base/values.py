"""Values as logs hold them: numbers in many forms, texts that Arrow can store."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

_WORDS = {
    **dict.fromkeys(("true", "yes", "correct", "pass", "passed", "right", "c"), 1.0),
    **dict.fromkeys(("false", "no", "incorrect", "fail", "failed", "wrong", "i"), 0.0),
}
_NOTHING = {"", "nan", "null", "none", "na", "n/a", "<na>"}


def number(value: object, name: str = "") -> float | None:
    """Read a score: a number, a truth value, or either as text; None where there is none.

    What is not a number is a ValueError; `name` says what it should have been.

    Example:
        >>> [number(value) for value in (True, "0.5", "False", "nan", None)]
        [1.0, 0.5, 0.0, None, None]
    """
    if value is None:
        return None
    if isinstance(value, str):
        word = value.strip().lower()
        if word in _NOTHING:
            return None
        value = _WORDS.get(word, word)
    try:
        score = float(value)  # type: ignore[arg-type]
    except (ValueError, TypeError, OverflowError):
        score = math.inf
    if math.isinf(score):
        raise ValueError(f"{name} {value!r:.40} is not a number".lstrip())
    return None if math.isnan(score) else score


def storable(text: str) -> str:
    """The text without halves of characters, which Arrow cannot store.

    Example:
        >>> storable("caf\\udce9")
        'caf?'
    """
    return text.encode("utf-8", "replace").decode()


def optional_text(value: object) -> str | None:
    """The value as text; None stays None.

    Example:
        >>> optional_text(4), optional_text(None)
        ('4', None)
    """
    return None if value is None else str(value)


def file_name(path: Path) -> str:
    """The name of a file as text that can be stored, whatever bytes it is made of."""
    return storable(path.name)


def fitting(names: Iterable[str], patterns: Iterable[str]) -> tuple[list[str], list[str]]:
    """The names that a pattern fits, in their order, and the patterns that fit none.

    In a pattern `*` and `?` stand for any characters. A name fits itself.

    Example:
        >>> fitting(["air", "airports", "sums"], ["air*", "rivers"])
        (['air', 'airports'], ['rivers'])
    """
    names, patterns = list(names), list(patterns)

    def fits(name: str, pattern: str) -> bool:
        return name == pattern or fnmatchcase(name, pattern)

    found = [name for name in names if any(fits(name, pattern) for pattern in patterns)]
    return found, [one for one in patterns if not any(fits(name, one) for name in names)]
