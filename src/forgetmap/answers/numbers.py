"""The number that a text gives as its answer.

Not every number in a text is one that it gives. A part of a calculation is not its result, the
subject of a sentence ("2 is an even number") states nothing, and what is copied from the question
says nothing new.
"""

from __future__ import annotations

import re
from functools import lru_cache

from forgetmap.answers.language import is_common, languages_of
from forgetmap.answers.text import TO_WHAT, after_cues, last_boxed, looked_at, sentences

NUMBER = re.compile(r"-?\d{1,20}(?:,\d{3})*(?:\.\d{1,20})?")
_CUE = re.compile(rf"\b[Aa]nswer{TO_WHAT} is\b:?")
_CALLED = re.compile(
    rf"\b(?i:it|that)(?: is|['’]s)[ \t$*]{{1,4}}({NUMBER.pattern})"
    r"(?=[*]{0,2}(?: \w{1,20}){0,2}(?:[.!]?\s*$|\.\s))|"
    rf"=[ \t$*]{{0,4}}({NUMBER.pattern})(?![\d.,]*\d)|"
    rf"^[ \t]{{0,9}}(?:[-*•][ \t]{{1,4}})?[*$]{{0,3}}({NUMBER.pattern})[.*]{{0,9}}[ \t]{{0,9}}$",
    re.MULTILINE,
)
"""A number that a text calls its answer: after "it is", after =, or alone in a line."""
_ENUMERATED = re.compile(
    r"^[ \t]{0,20}\d{1,3}[.)][ \t]+(?=[^\W\d])|^[ \t#*]{0,9}[Ss]tep \d{1,3}\b", re.MULTILINE
)
"""The number of a step in a list; it is not the answer."""
_CALCULATION = re.compile(
    r"(?:sum|product|difference) (?:of|between) \d[\d.,]{0,20} and \d[\d.,]{0,20}|"
    r"\d[\d.,]{0,20}(?:\s?(?:[-+*/×÷]|\b(?:x|plus|minus|times)\b)\s?\$?\d[\d.,]{0,20}){1,9}"
)
"""The parts of a calculation, without its result."""
_SUBJECT = re.compile(
    r"\s{1,3}(?:is|are|was|were|has|isn't)\b"
    r"(?! (?:the |my )?(?:answer|result|sum|one|right|correct|best|total)\b)"
)
_NOT = re.compile(r"\bnot\s{1,3}[$*]{0,3}\Z")
_POINTED = re.compile(r"=[\s$*]{0,4}$")
_WORD_BEFORE = re.compile(r"([^\W\d_]+)\s?$")
_WORD_AFTER = re.compile(r"\s?([^\W\d_]+)")
_WORD = re.compile(r"[^\W\d_]+")
_ONES = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    *("nineteen",),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SPELT = {word: float(value) for value, word in enumerate(_ONES)}
_SPELT |= {word: 10.0 * place for place, word in enumerate(_TENS, start=2)}
_SPELT |= {f"{tens} {ones}": _SPELT[tens] + _SPELT[ones] for tens in _TENS for ones in _ONES[1:10]}
_SPELT["hundred"] = 100.0
_SPELT_IN = {
    "German": "null _ zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
    "French": "zéro _ deux trois quatre cinq six sept huit neuf dix onze douze",
    "Spanish": "cero _ dos tres cuatro cinco seis siete ocho nueve diez once doce",
    "Italian": "zero _ due tre quattro cinque sei sette otto nove dieci undici dodici",
    "Portuguese": "zero _ dois três quatro cinco seis sete oito nove dez onze doze",
    "Dutch": "nul _ twee drie vier vijf zes zeven acht negen tien elf twaalf",
}
"""Zero to twelve, without one, which is an article too."""
_SPELT_OUT = re.compile(
    rf"\b(?:{'|'.join(_TENS)})[- ](?:{'|'.join(_ONES[1:10])})\b|[^\W\d_]+", re.I
)
"""A word, or two that are one number."""
_ENDS = re.compile(r"[\"'*]{0,3}(?:[.!?](?:\s|\Z)|\s*\Z)")
_COUNTED = 12
"""Words up to which every number of a text that is spelt out may be its answer."""
_SHORT = 300
"""Characters up to which a text is an answer as a whole; of a longer one its end is."""


def is_number(target: str) -> bool:
    """Whether an answer is a number, or ends in one as those of GSM8K do."""
    return NUMBER.fullmatch(target.rpartition("####")[2].strip().strip("$%. ")) is not None


def value_of(number: str) -> float:
    """The value of a number as it is written, with or without marks for thousands."""
    return float(number.rpartition("####")[2].strip().strip("$%. ").replace(",", ""))


def number_given(text: str, prompt: str | None = None, *, cut: bool = False) -> float | None:
    """The number that a text ends with; of a text that was cut off, only one that it points out.

    Example:
        >>> number_given("He has 3 and gets 4, so 7 in all."), number_given("There are 2", cut=True)
        (7.0, None)
        >>> number_given("Six."), number_given("and it is 24. Let me", cut=True)
        (6.0, 24.0)
        >>> number_given("2 - 1 is a double negative."), number_given("2 is an even number.")
        (None, None)
        >>> number_given("So Mia has 4 bags.", "Mia fills 4 bags with 2 hats. How many hats?")
    """
    answer = in_digits(_ENUMERATED.sub("", looked_at(text)), prompt)
    if called := numbers_called(answer):
        return called[-1]
    return None if cut else _last(conclusion(answer), prompt)


def numbers_called(text: str) -> list[float]:
    """The numbers that a text calls its answer, the one that counts last.

    After "the answer is" or ####, or in a box; else those alone in a line, after "it is" or =.

    Example:
        >>> numbers_called("3 + 4 = 7\\n7 + 4 = 11\\n11 +"), numbers_called("Result = 3 * 4")
        ([7.0, 11.0], [])
    """
    text = in_digits(text)
    told = (_last(part.partition(". ")[0], None) for part in pointed_out(text))
    pointed = [number for number in told if number is not None]
    if pointed:
        return pointed[::-1]
    plain = _without_sums(text)
    return [value_of(next(filter(None, found))) for found in _CALLED.findall(plain)]


def pointed_out(text: str) -> list[str]:
    """What a text marks as its answer, the last first: in a box, after #### or "the answer is"."""
    marked = [part for part in (last_boxed(text), _after_hashes(text)) if part]
    return [*marked, *after_cues(text), *after_cues(text, _CUE)]


def conclusion(text: str) -> str:
    """All of a short text, of a long one its last two sentences."""
    return text if len(text) <= _SHORT else " ".join(sentences(text[-5000:])[-2:])


def _last(text: str, prompt: str | None) -> float | None:
    """The last number of a text that is neither part of a calculation, a subject nor an echo."""
    text = _without_sums(text)
    asked = _neighbours(in_digits(prompt[-_LONG_PROMPT:])) if prompt else frozenset()
    for found in reversed(list(NUMBER.finditer(text))):
        if _SUBJECT.match(text, found.end()) or _NOT.search(text[: found.start()]):
            continue
        if _POINTED.search(text[max(0, found.start() - 12) : found.start()]):
            return value_of(found[0])
        if not asked & _beside(text, found):
            return value_of(found[0])
    return None


def _without_sums(text: str) -> str:
    return _CALCULATION.sub(lambda found: "#" * len(found[0]), text)


_LONG_PROMPT = 20_000


@lru_cache(maxsize=256)
def _neighbours(prompt: str) -> frozenset[tuple[str, str]]:
    """Every number of the question with the words beside it."""
    return frozenset(pair for found in NUMBER.finditer(prompt) for pair in _beside(prompt, found))


def _beside(text: str, found: re.Match[str]) -> set[tuple[str, str]]:
    """A number with the word before it and the word after it; a common word alone tells nothing."""
    before = _WORD_BEFORE.search(text[max(0, found.start() - 30) : found.start()])
    after = _WORD_AFTER.match(text, found.end())
    near = [word[1].casefold() if word else "" for word in (before, after)]
    told = {place + word for place, word in zip("<>", near, strict=True) if not is_common(word)}
    both = {" ".join(near)} if all(near) else set()
    return {(found[0], words) for words in told - {"<", ">"} | both}


def in_digits(text: str, prompt: str | None = None) -> str:
    """A text with its numbers in digits, those in words of English or the question's language too.

    Those in words count in a short text without digits, or at the end of a sentence: "the two of
    them" counts nothing. "one" in a sentence is seldom a number.

    Example:
        >>> in_digits("Five and twenty-four is a lot."), in_digits("one"), in_digits("one day")
        ('5 and 24 is a lot.', '1', 'one day')
    """
    if len(text) > _SHORT:
        return text
    known = _spelt_for(prompt) if prompt else _SPELT
    count = len(_WORD.findall(text))
    everywhere = count <= _COUNTED and not any(map(str.isdigit, text))

    def digits(found: re.Match[str]) -> str:
        word = " ".join(found[0].casefold().replace("-", " ").split())
        counts = count == 1 or (word != "one" and (everywhere or _ENDS.match(text, found.end())))
        return f"{known[word]:.0f}" if word in known and counts else found[0]

    return _SPELT_OUT.sub(digits, text)


@lru_cache(maxsize=256)
def _spelt_for(prompt: str) -> dict[str, float]:
    words = (_SPELT_IN.get(name, "").split() for name in languages_of(prompt[-_SHORT:]))
    return _SPELT | {word: float(value) for told in words for value, word in enumerate(told)}


def _after_hashes(text: str) -> str | None:
    """What follows the last #### in its line, as the answers of GSM8K end."""
    found = re.findall(r"####[ \t]{0,4}(\S.{0,40})", text[-5000:])
    return found[-1] if found else None
