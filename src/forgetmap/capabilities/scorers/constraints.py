"""Constraints on a text that a rule can check: the 25 instruction types of IFEval.

`INSTRUCTIONS` binds the arguments of an instruction and gives a check of a text. Arguments that are
missing or make no sense raise an error (KeyError, TypeError, ValueError); a check never fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import orjson

from forgetmap.answers.text import fold, optional, sentences, words

Check = Callable[[str], bool]
Arguments = Mapping[str, Any]

_PLACEHOLDER = re.compile(r"\[[^\[\]\n]{1,300}\]")
_HIGHLIGHT = re.compile(r"(?<!\*)(\*{1,2})(?=[^\s*])[^\n*]{1,2000}\1(?!\*)")
_BULLET = re.compile(r"^[ \t]{0,20}(?:\*(?!\*)|-(?![-\s]*$))[ \t]{0,20}\S", re.MULTILINE)
_TITLE = re.compile(r"<<[^\n<>]{0,500}[^\s<>][^\n<>]{0,500}>>")
_FENCE = re.compile(r"```(?:json|JSON|Json)?\n?(.*)```", re.DOTALL)
_CHOICES = ("my answer is yes.", "my answer is no.", "my answer is maybe.")
_QUOTES = ('"', "“", "”", "„", "«", "»")


Bind = Callable[[Arguments], Check]


def _amount(arguments: Arguments, number: str, relation: str) -> Callable[[int], bool]:
    """ "at least" or "less than" so many, as IFEval has it."""
    limit = int(arguments[number])
    at_least = {"at least": True, "less than": False}[arguments[relation]]
    return lambda count: (count >= limit) is at_least


def _counted(count: Callable[[str], int], number: str, relation: str) -> Bind:
    """What `count` finds in the text is at least, or less than, a number."""

    def bind_amount(arguments: Arguments) -> Check:
        fits = _amount(arguments, number, relation)
        return lambda text: fits(count(text))

    return bind_amount


def _at_least(pattern: re.Pattern[str], number: str) -> Bind:
    """The text holds a pattern at least a number of times."""

    def bind_limit(arguments: Arguments) -> Check:
        limit = int(arguments[number])
        return lambda text: len(pattern.findall(text)) >= limit

    return bind_limit


def keywords_existence(arguments: Arguments) -> Check:
    """All keywords occur, in any case, also as part of a word."""
    wanted = [fold(str(word)) for word in _texts(arguments["keywords"])]
    return lambda text: all(word in fold(text) for word in wanted)


def keywords_frequency(arguments: Arguments) -> Check:
    """A keyword occurs at least, or less than, so many times."""
    word, fits = fold(str(arguments["keyword"])), _amount(arguments, "frequency", "relation")
    return lambda text: fits(fold(text).count(word))


def letter_frequency(arguments: Arguments) -> Check:
    """A letter occurs at least, or less than, so many times, in any case."""
    letter = str(arguments["letter"]).lower()
    fits = _amount(arguments, "let_frequency", "let_relation")
    return lambda text: fits(text.lower().count(letter))


def number_bullets(arguments: Arguments) -> Check:
    """Exactly so many bullet points, with * or - ."""
    wanted = int(arguments["num_bullets"])
    return lambda text: len(_BULLET.findall(text)) == wanted


def keywords_forbidden(arguments: Arguments) -> Check:
    """None of the words occurs as a whole word."""
    listed = "|".join(re.escape(fold(str(word))) for word in _texts(arguments["forbidden_words"]))
    forbidden = re.compile(rf"(?<!\w)(?:{listed})(?!\w)")
    return lambda text: not forbidden.search(fold(text))


def response_language(arguments: Arguments) -> Check:
    """The text is in the language, given by its ISO 639-1 code."""
    wanted = str(arguments["language"]).lower()
    return lambda text: detect_language(text) in (wanted, wanted.partition("-")[0])


def number_paragraphs(arguments: Arguments) -> Check:
    """Exactly so many paragraphs, with *** between them."""
    wanted = int(arguments["num_paragraphs"])

    def check(text: str) -> bool:
        parts = [part.strip() for part in text.strip().removesuffix("***").split("***")]
        return len(parts) == wanted and all(parts)

    return check


def nth_paragraph_first_word(arguments: Arguments) -> Check:
    """So many paragraphs, with an empty line between them; one of them begins with a word."""
    count, nth = int(arguments["num_paragraphs"]), int(arguments["nth_paragraph"])
    first = fold(str(arguments["first_word"]))
    if not 1 <= nth <= count:
        raise ValueError(f"paragraph {nth} of {count}")

    def check(text: str) -> bool:
        parts = [part for part in re.split(r"\n[ \t]{0,20}\n", text) if part.strip()]
        return len(parts) == count and words(fold(parts[nth - 1][:500]))[:1] == [first]

    return check


def postscript(arguments: Arguments) -> Check:
    """A postscript, by its marker; the dots of P.S. may have spaces between them."""
    marker = fold(str(arguments["postscript_marker"])).replace(" ", "")
    if not marker:
        raise ValueError("no marker")
    found = re.compile(r"\s{0,3}".join(map(re.escape, marker)))
    return lambda text: bool(found.search(fold(text)))


def multiple_sections(arguments: Arguments) -> Check:
    """At least so many sections, each begun by a word and a number."""
    word, wanted = str(arguments["section_spliter"]).strip(), int(arguments["num_sections"])
    found = re.compile(rf"{re.escape(word)}\s{{0,3}}\d")
    return lambda text: len(found.findall(text)) >= wanted


def json_only(text: str) -> bool:
    """Nothing but JSON, a code fence around it apart."""
    fenced = _FENCE.fullmatch(text.strip())
    try:
        orjson.loads((fenced[1] if fenced else text).strip())
    except orjson.JSONDecodeError:
        return False
    return True


def two_responses(text: str) -> bool:
    """Two different answers with ****** between them."""
    parts = [part.strip() for part in text.split("******")]
    parts = parts[0 if parts[0] else 1 : len(parts) if parts[-1] else -1]
    return len(parts) == 2 and all(parts) and parts[0] != parts[1]


def repeat_prompt(arguments: Arguments) -> Check:
    """The request is repeated first, word by word."""
    wanted = " ".join(fold(str(arguments["prompt_to_repeat"])).split())
    return lambda text: " ".join(fold(text[: 4 * len(wanted) + 100]).split()).startswith(wanted)


def end_checker(arguments: Arguments) -> Check:
    """The text ends with a phrase, quotation marks apart."""
    wanted = fold(str(arguments["end_phrase"])).strip()
    return lambda text: fold(text).strip().strip('"').strip().endswith(wanted)


def quotation(text: str) -> bool:
    """The whole text stands in double quotation marks."""
    bare = text.strip()
    return len(bare) > 1 and bare.startswith(_QUOTES) and bare.endswith(_QUOTES)


INSTRUCTIONS: dict[str, Bind] = {
    "keywords:existence": keywords_existence,
    "keywords:frequency": keywords_frequency,
    "keywords:forbidden_words": keywords_forbidden,
    "keywords:letter_frequency": letter_frequency,
    "language:response_language": response_language,
    "length_constraints:number_sentences": _counted(
        lambda text: len(sentences(text)), "num_sentences", "relation"
    ),
    "length_constraints:number_paragraphs": number_paragraphs,
    "length_constraints:number_words": _counted(
        lambda text: len(words(text)), "num_words", "relation"
    ),
    "length_constraints:nth_paragraph_first_word": nth_paragraph_first_word,
    "detectable_content:number_placeholders": _at_least(_PLACEHOLDER, "num_placeholders"),
    "detectable_content:postscript": postscript,
    "detectable_format:number_bullet_lists": number_bullets,
    "detectable_format:constrained_response": lambda _arguments: (
        lambda text: any(choice in fold(text) for choice in _CHOICES)
    ),
    "detectable_format:number_highlighted_sections": _at_least(_HIGHLIGHT, "num_highlights"),
    "detectable_format:multiple_sections": multiple_sections,
    "detectable_format:json_format": lambda _arguments: json_only,
    "detectable_format:title": lambda _arguments: lambda text: bool(_TITLE.search(text)),
    "combination:two_responses": lambda _arguments: two_responses,
    "combination:repeat_prompt": repeat_prompt,
    "startend:end_checker": end_checker,
    "startend:quotation": lambda _arguments: quotation,
    "change_case:capital_word_frequency": _counted(
        lambda text: sum(map(str.isupper, words(text))), "capital_frequency", "capital_relation"
    ),
    "change_case:english_capital": lambda _arguments: str.isupper,
    "change_case:english_lowercase": lambda _arguments: str.islower,
    "punctuation:no_comma": lambda _arguments: lambda text: "," not in text,
}
"""Id of an instruction -> the function that binds its arguments."""


def bind(instruction: str, arguments: Arguments | None) -> Check:
    """The check of one instruction; ValueError where it is not known or lacks an argument.

    Example:
        >>> has_two_titles = bind("keywords:existence", {"keywords": ["Dr", "Prof"]})
        >>> has_two_titles("Prof Dr Who"), has_two_titles("Dr Who")
        (True, False)
    """
    given = {name: value for name, value in (arguments or {}).items() if value is not None}
    if instruction not in INSTRUCTIONS:
        raise ValueError(f"no instruction is called {instruction!r:.60}")
    try:
        return INSTRUCTIONS[instruction](given)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{instruction}: argument {error}") from error


def _texts(value: Any) -> list[str]:
    texts = [value] if isinstance(value, str) else list(value)
    if not texts:
        raise ValueError("an empty list")
    return texts


def detect_language(text: str) -> str | None:
    """The language of a text, always the same for the same text; None where there is no text.

    Example:
        >>> detect_language("Das ist ein ganz gewöhnlicher deutscher Satz.")
        'de'
    """
    return _detect(text[:2000])


@lru_cache(maxsize=1024)
def _detect(text: str) -> str | None:
    langdetect = optional("langdetect")
    langdetect.DetectorFactory.seed = 0  # it draws at random otherwise
    try:
        return str(langdetect.detect(text)).partition("-")[0]
    except langdetect.LangDetectException:
        return None
