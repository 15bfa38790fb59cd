"""Numbers in any language: its separators, its digits, its words for "answer".

Separators come from CLDR (babel). A number that is not right as its language writes it is also read
the English way, since models mix the two.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from functools import cache
from typing import NamedTuple

from forgetmap.answers.items import Item, Value
from forgetmap.answers.text import after_cue, last_boxed, optional
from forgetmap.capabilities.scorers.constraints import detect_language
from forgetmap.capabilities.scorers.scoring import NO_ANSWER, bad_gold, per_answer, right_or_wrong

METRICS = ("accuracy",)
FIELDS = ("gold",)
VERSION = 1

TOLERANCE = Decimal("1e-6")
_LONGEST_NUMBER = 300

_CUE_WORDS = {
    "ar": "الإجابة|الجواب",
    "bn": "উত্তর",
    "de": "antwort|lösung|ergebnis",
    "en": "answer|result",
    "es": "respuesta|resultado",
    "fr": "réponse|résultat",
    "hi": "उत्तर|जवाब",
    "id": "jawaban",
    "it": "risposta|risultato",
    "ja": "答え|回答|解答",
    "ko": "정답|답",
    "nl": "antwoord",
    "pl": "odpowiedź",
    "pt": "resposta|resultado",
    "ru": "ответ",
    "sw": "jibu",
    "te": "సమాధానం",
    "th": "คำตอบ",
    "tr": "cevap|yanıt",
    "uk": "відповідь",
    "vi": "đáp án|câu trả lời|trả lời",
    "zh": "答案|答",
}
_COPULA = "is|ist|es|est|é|è|jest|adalah|ni|है|হল|是|为|は"
_SPACES = "\u00a0\u202f\u2009 "
_NUMERAL = re.compile(
    rf"(?<![\w.])[-−–]?\d{{1,400}}(?:[.,'’٫٬،·{_SPACES}]\d{{1,400}}){{0,60}}(?=(\s?[万萬億亿])?)"
)
_MYRIADS = {"万": 10_000, "萬": 10_000, "億": 10**8, "亿": 10**8}


class Separators(NamedTuple):
    """How a language writes a number."""

    decimal: str
    group: str


_ENGLISH = Separators(".", ",")


@per_answer(METRICS)
def score(item: Item, text: str) -> Value:
    """Compare the final number of each answer with the right one.

    The language is that of `meta["language"]`, a code such as `de`. Where it is not given, it is
    English, or that of the prompt if a number with separators is not the right one in English.

    Example:
        >>> item = Item("mgsm", "1", gold="1234", meta={"language": "de"})
        >>> values = score([item] * 3, ["Antwort: 1.234", "1,234 Euro", "Antwort: 1,5"])
        >>> [value.value for value in values["accuracy"]]
        [1.0, 1.0, 0.0]
    """
    language = item.meta.get("language")
    gold = read_gold(item.gold)
    if gold is None:
        return bad_gold(item.gold)
    numeral = extract(text, language)
    if numeral is None:
        return NO_ANSWER
    try:
        right = _means(numeral, gold, language or "en")
    except LookupError as error:
        return Value(None, "invalid_gold", str(error))
    if not right and language is None and not numeral.isdecimal() and isinstance(item.prompt, str):
        right = _means(numeral, gold, _guess_language(item.prompt))
    return right_or_wrong(right, numeral)


def _guess_language(prompt: str) -> str:
    language = detect_language(prompt)
    return language if language in _CUE_WORDS else "en"


def _means(numeral: str, gold: Decimal, language: str) -> bool:
    return any(abs(value - gold) <= TOLERANCE for value in readings(numeral, language))


def read_gold(gold: object) -> Decimal | None:
    """The right number: as such, as text, or after the #### of GSM8K.

    Example:
        >>> read_gold("He has 3 left. #### 1,234"), read_gold("none")
        (Decimal('1234'), None)
    """
    if isinstance(gold, bool) or gold is None:
        return None
    text = str(gold).rpartition("####")[2].strip().strip("$€£% ")
    try:
        value = Decimal(text.replace(",", ""))
    except InvalidOperation:
        return None
    return value if value.is_finite() else None


@cache
def separators(language: str) -> Separators:
    """The separators of a language, from CLDR.

    Example:
        >>> separators("de"), separators("en")
        (Separators(decimal=',', group='.'), Separators(decimal='.', group=','))
    """
    babel, symbols = optional("babel"), optional("babel.numbers")
    try:
        locale = babel.Locale.parse(language.replace("-", "_"))
    except (babel.UnknownLocaleError, ValueError, TypeError) as error:
        raise LookupError(f"language {language!r:.40}: write a code such as de or pt-BR") from error
    return Separators(symbols.get_decimal_symbol(locale), symbols.get_group_symbol(locale))


@cache
def _cue(language: str | None) -> re.Pattern[str]:
    """The words for "answer" in a language and in English; in all languages for None."""
    code = (language or "").replace("_", "-").partition("-")[0].lower()
    chosen = [_CUE_WORDS.get(code, ""), _CUE_WORDS["en"]] if language else _CUE_WORDS.values()
    cues = "|".join(filter(None, chosen))
    copula = rf"[ \t]{{0,4}}(?:{_COPULA})(?![^\W\d_])|[*_]{{0,3}}[ \t]{{0,4}}[:：=]"
    return re.compile(rf"(?:{cues})(?:{copula})", re.IGNORECASE)


def extract(text: str, language: str | None = None) -> str | None:
    """The final number, as written: after ####, boxed, after a cue word, else the last one.

    Example:
        >>> extract("3 + 4 = 7 apples. The answer is 7."), extract("none at all")
        ('7', None)
    """
    marked = text.rpartition("####")
    places = (
        marked[2].strip().partition("\n")[0] if marked[1] else None,
        last_boxed(text),
        after_cue(text, _cue(language)),
    )
    for place in places:
        if place is not None and (numeral := next(_numerals(place.rpartition("=")[2]), None)):
            return numeral
    for line in reversed(text[-20_000:].splitlines()):
        if numerals := list(_numerals(line.replace("{,}", ","))):
            return numerals[-1]
    return None


def _numerals(text: str) -> Iterator[str]:
    for match in _NUMERAL.finditer(text.replace("{,}", ",")):
        if len(match[0]) <= _LONGEST_NUMBER:
            yield match[0] + (match[1] or "").strip()


def readings(numeral: str, language: str = "en") -> list[Decimal]:
    """What a number as written can mean: the language's own reading, then the English one.

    Example:
        >>> readings("1.234", "de"), readings("১,২৩,৪৫৬", "bn"), readings("3万")
        ([Decimal('1234'), Decimal('1.234')], [Decimal('123456')], [Decimal('30000')])
    """
    factor = _MYRIADS.get(numeral[-1], 1)
    digits = numeral.rstrip("".join(_MYRIADS))
    values = [_read(digits, how) for how in dict.fromkeys((separators(language), _ENGLISH))]
    return list(dict.fromkeys(value * factor for value in values if value is not None))


def _read(numeral: str, how: Separators) -> Decimal | None:
    """Read a number one way; None where it is not written that way."""
    sign = -1 if numeral[0] in "-−–" else 1
    plain = numeral.lstrip("-−–").replace("٫", how.decimal).replace("٬", how.group)
    whole, point, fraction = plain.partition(how.decimal)
    groups = re.split(rf"[{re.escape(how.group)}'’{_SPACES}]", whole)
    if len(groups) > 1 and not _is_grouped(groups):
        return None
    joined = "".join(groups)
    if not joined.isdigit() or (point and not fraction.isdigit()):
        return None
    return sign * Decimal(f"{joined}.{fraction}" if point else joined)


def _is_grouped(groups: list[str]) -> bool:
    """Groups of three, or as in India of two before the last three."""
    if not 1 <= len(groups[0]) <= 3 or len(groups[-1]) != 3:
        return False
    return len({len(group) for group in groups[1:-1]} - {2}) == 0 or all(
        len(group) == 3 for group in groups[1:]
    )
