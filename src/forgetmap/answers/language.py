"""The language of a text."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection
from functools import lru_cache

from forgetmap.answers.function_words import FUNCTION_WORDS
from forgetmap.answers.text import looked_at

_LANGUAGES_OF: dict[str, list[str]] = {}
for _name, _words in FUNCTION_WORDS.items():
    for _word in _words.split():
        _LANGUAGES_OF.setdefault(_word, []).append(_name)


_SAID = 3
"""Words from which a text has a language; fewer may be a name or a value."""


_FEWEST_WORDS = 4
"""Function words of a language that must be there; fewer may be a quotation."""


_SHARE = 0.4
"""Share of function words from which a short text is in a language, if there are two."""


_LEAD, _LEAD_OF_KIN = 1.5, 1.2
"""How many times another language's words the first one must have; less where both are alike."""
_KIN = (
    frozenset(("French", "Spanish", "Italian", "Portuguese", "Catalan", "Romanian")),
    frozenset(("Polish", "Czech", "South Slavic")),
    frozenset(("Dutch", "Afrikaans")),
    frozenset(("Scandinavian", "Icelandic")),
)


_LOOK = 1000


_CODE = re.compile(
    r"```.*?(?:```|$)|\$[^$]{0,200}\$|\{(?:[^{}]|\{[^{}]{0,500}\}){0,500}\}|"
    r"\b\w[\w.]{0,80}\([^()]{0,1000}\)|https?://\S{1,200}|[{\[]\s{0,9}[\"'{][^\n]{0,1000}|"
    r"\bdef \w[^\n]{0,200}(?:\n[ \t][^\n]{0,200}){0,40}",
    re.DOTALL,
)
"""What has no language: code, formulas, objects, calls, whole or not, and addresses."""
_NAME = re.compile(
    r"\b[A-Z][\w.'-]{1,20}"
    r"(?: (?:d[aeiou]s?|del|der|l[aeo]s?|el|van|von|den|al|bin|y)){1,3} (?=[A-Z])"
)
"""A name such as Ana de la Cruz says nothing of a language."""


_ABBREVIATION = re.compile(r"\b[A-Z]{2,}\b")
"""As AI, which is no French word."""


_LETTERS = re.compile(r"[^\W\d_]+")


_THREE_LETTERS = re.compile(r"(?:[A-Za-z][^A-Za-z]*){3}")


_SCRIPTS = {"HIRAGANA": "Japanese", "KATAKANA": "Japanese", "HANGUL": "Korean", "CJK": "Chinese"}


def language_of(text: str | None) -> str | None:
    """The language of a text by its script and, for Latin letters, by its function words.

    None where it is too short, or not clear.

    Example:
        >>> language_of("Die Antwort ist also nicht das, was der Text sagt.")
        'German'
        >>> language_of("Ответ: семь"), language_of("Paris"), language_of("Penso che sia Paris.")
        ('CYRILLIC', None, 'Italian')
    """
    return _language(_prose(text)) if text else None


def languages_of(text: str | None) -> frozenset[str]:
    """The languages that a short text may be in: those that it has the most function words of.

    Example:
        >>> sorted(languages_of("Recopie le mot")), sorted(languages_of("7 minus 3 ="))
        (['French'], ['English'])
    """
    prose = _prose(text or "")
    if (sure := _language(prose)) is not None:
        return frozenset((sure,))
    hits = _hits(prose)
    return frozenset(name for name, count in hits.items() if count == max(hits.values()))


def _prose(text: str) -> str:
    prose = _CODE.sub(" ", looked_at(text)[:_LOOK])
    prose = _NAME.sub(" ", prose)
    return prose if prose.isupper() else _ABBREVIATION.sub(" ", prose)


def speaks_another(text: str, expected: Collection[str]) -> bool:
    """Whether a text is clearly in another language than those that are expected.

    Which one does not matter: words of it are more than those of the languages expected, or small
    words have letters that English has not.

    Example:
        >>> speaks_another("Penso che sia Paris.", ["English"]), speaks_another("Paris", ["Dutch"])
        (True, False)
        >>> speaks_another("Kass käib lõbusalt majas.", ["English"])
        True
    """
    prose = _prose(text)
    script = _script_of(prose)
    if script != "LATIN":
        return script is not None and script not in expected
    words = _LETTERS.findall(prose)
    said = {word.lower() for word in words}
    if sum(len(word) > 1 for word in said) < _SAID:
        return False
    odd = {word for word in words if not word.isascii() and word.islower()}
    odd = odd if "English" in expected else set()
    told: dict[str, set[str]] = {"": odd}
    for word in said:
        for name in _LANGUAGES_OF.get(word, ()):
            told.setdefault(name, {*odd}).add(word)
    ours = max((name in told and len(told[name] - odd) for name in expected), default=0)
    fewest = _fewest(prose)
    return any(
        len(found) >= fewest and len(found) >= max(_lead(name, one) for one in expected) * ours
        for name, found in told.items()
        if name not in expected and (name or not ours)
    )


@lru_cache(maxsize=1024)
def _language(prose: str) -> str | None:
    """Kept for some texts: few-shot prompts of one task begin alike."""
    script = _script_of(prose)
    return _latin_language(prose) if script == "LATIN" else script


def _script_of(prose: str) -> str | None:
    """The script of a text, or the language where one alone has it."""
    if prose.isascii():
        return "LATIN" if _THREE_LETTERS.search(prose) else None
    scripts = Counter[str]()
    for letter, times in Counter(prose).items():
        if letter.isalpha():
            scripts[_script(letter)] += times
    if not scripts:
        return None
    script, count = scripts.most_common(1)[0]
    if "Japanese" in scripts and script == "Chinese":
        script, count = "Japanese", count + scripts["Japanese"]
    if count < 0.6 * scripts.total() or count < 3:
        return None
    return script


def is_common(word: str) -> bool:
    """Whether a word in small letters is one of those that every text is full of."""
    return word in _LANGUAGES_OF


def _script(letter: str) -> str:
    if letter.isascii():
        return "LATIN"
    first = unicodedata.name(letter, "?").split()[0]
    return _SCRIPTS.get(first, first)


def _latin_language(text: str) -> str | None:
    (name, best), *others = [*_hits(text).most_common(), ("", 0)]
    clear = all(best >= _lead(name, other) * count for other, count in others)
    said = len({*_LETTERS.findall(text[:200].lower())})
    return name if said >= _SAID and best >= _fewest(text) and clear else None


def _fewest(text: str) -> float:
    """How many function words a text must have; fewer are enough in a short one."""
    said = len({*_LETTERS.findall(text[:200].lower())})
    return min(_FEWEST_WORDS, max(2.0, _SHARE * said))


def _lead(name: str, other: str) -> float:
    return _LEAD_OF_KIN if any({name, other} <= kin for kin in _KIN) else _LEAD


def _hits(text: str) -> Counter[str]:
    """How many different function words of each language a text has."""
    words = {*_LETTERS.findall(text.lower())}
    return Counter(name for word in words for name in _LANGUAGES_OF.get(word, ()))
