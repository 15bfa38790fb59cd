"""The language of a text."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache

from forgetmap.answers.text import looked_at

_FUNCTION_WORDS = {
    "English": "the of and to in is that it was for are with as his they this have from which "
    "you not but be we would there what how who why does do can these those their will has had at "
    "by an if when where your my our were been or he she its into than then so one no only all any "
    "each more other some am",
    "German": "der die das und ist nicht ein eine den von mit sich auf für dem des auch wird "
    "sind werden oder daher also ich wir sie er es zu im am bei aus wie wenn dass einen einem "
    "einer kann nur noch aber haben hat dieser diese dieses antwort lautet was heißt",
    "French": "le la les des et est une dans que qui pour pas sur avec sont du au ce cette nous "
    "donc ou ne un de il elle je vous ils mais se son sa ses leur aux par plus être fait réponse "
    "bonne quelle comment cela",
    "Spanish": "el los las y es una que por para con del se no como son pero su al más entonces "
    "está en la de un lo este esta ser hay muy también respuesta pregunta mi tu cuál qué cómo "
    "porque puede",
    "Italian": "il gli di che è una per con non sono della del nel dei anche quindi più questo "
    "alla si la un lo da ma ha questa essere come risposta perché cosa",
    "Portuguese": "os as e é uma que para com não do da dos em por mais são como ao então está se "
    "de um no na pelo isso esta este ser resposta você seu sua",
    "Dutch": "de het een van en is dat niet op te zijn met voor er aan ook dus worden deze naar "
    "ik je maar om bij uit wat hoe als dit antwoord kan",
}


_LANGUAGES_OF = {
    word: [name for name, words in _FUNCTION_WORDS.items() if word in words.split()]
    for word in " ".join(_FUNCTION_WORDS.values()).split()
}


_FEWEST_WORDS = 4
"""Function words of a language that must be there; fewer may be a quotation."""


_SHARE = 0.4
"""Share of function words from which a short text is in a language, if there are two."""


_LEAD, _LEAD_OF_KIN = 1.5, 1.2
"""How many times another language's words the first one must have; less where both are alike."""
_KIN = frozenset(("French", "Spanish", "Italian", "Portuguese"))


_LOOK = 1000


_CODE = re.compile(r"```.*?(?:```|$)|\$[^$]{0,200}\$", re.DOTALL)


_LETTERS = re.compile(r"[^\W\d_]+")


_THREE_LETTERS = re.compile(r"(?:[A-Za-z][^A-Za-z]*){3}")


_SCRIPTS = {"HIRAGANA": "Japanese", "KATAKANA": "Japanese", "HANGUL": "Korean", "CJK": "Chinese"}


def language_of(text: str | None, *, fewest: int = 0) -> str | None:
    """The language of a text by its script and, for Latin letters, by its function words.

    None where it is too short, or not clear; `fewest` function words are enough where it is given.

    Example:
        >>> language_of("Die Antwort ist also nicht das, was der Text sagt.")
        'German'
        >>> language_of("Ответ: семь"), language_of("Paris")
        ('CYRILLIC', None)
    """
    if text is None:
        return None
    return _language(_CODE.sub(" ", looked_at(text)[:_LOOK]), fewest)


@lru_cache(maxsize=1024)
def _language(prose: str, fewest: int) -> str | None:
    """Kept for some texts: few-shot prompts of one task begin alike."""
    if prose.isascii():
        return _latin_language(prose, fewest) if _THREE_LETTERS.search(prose) else None
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
    return _latin_language(prose, fewest) if script == "LATIN" else script


def _script(letter: str) -> str:
    if letter.isascii():
        return "LATIN"
    first = unicodedata.name(letter, "?").split()[0]
    return _SCRIPTS.get(first, first)


def _latin_language(text: str, fewest: int) -> str | None:
    hits = Counter[str]()
    for word, times in Counter(_LETTERS.findall(text.lower())).items():
        for name in _LANGUAGES_OF.get(word, ()):
            hits[name] += times
    (name, best), *others = [*hits.most_common(), ("", 0)]
    clear = all(
        best >= (_LEAD_OF_KIN if {name, other} <= _KIN else _LEAD) * count
        for other, count in others
    )
    return name if best >= (fewest or _fewest(text)) and clear else None


def _fewest(text: str) -> float:
    """Fewer function words are enough where they are a good part of a short text."""
    return min(_FEWEST_WORDS, max(2.0, _SHARE * len(_LETTERS.findall(text[:200]))))
