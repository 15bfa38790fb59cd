"""The number that a text gives as its answer.

Not every number in a text is one that it gives. A part of a calculation is not its result, the
subject of a sentence ("2 is an even number") states nothing, and what is copied from the question
says nothing new.
"""

from __future__ import annotations

import re
from functools import lru_cache

from forgetmap.answers.language import is_common, languages_of
from forgetmap.answers.text import after_cue, fold, last_boxed, looked_at, sentences

NUMBER = re.compile(r"-?\d{1,20}(?:,\d{3})*(?:\.\d{1,20})?")
_CUE = re.compile(r"\b[Aa]nswer to [^.:\n]{1,80} is\b:?")
_CALLED = re.compile(
    rf"\bit is[ \t$*]{{1,4}}({NUMBER.pattern})(?=[*]{{0,2}}\.(?:\s|$))|"
    rf"=[ \t$*]{{0,4}}({NUMBER.pattern})(?![\d.,]*\d)|"
    rf"^[ \t]{{0,9}}(?:[-*•][ \t]{{1,4}})?[*$]{{0,3}}({NUMBER.pattern})[.*]{{0,9}}[ \t]{{0,9}}$",
    re.MULTILINE,
)
"""A number that a text calls its answer: after "it is", after =, or alone in a line."""
_ENUMERATED = re.compile(r"^[ \t]{0,20}\d{1,3}[.)][ \t]+(?=[^\W\d])", re.MULTILINE)
"""The number of a step in a list; it is not the answer."""
_CALCULATION = re.compile(
    r"\d[\d.,]{0,20}(?:\s?(?:[-+*/×÷]|\b(?:x|plus|minus|times)\b)\s?\$?\d[\d.,]{0,20}){1,9}"
)
"""The parts of a calculation, without its result."""
_SUBJECT = re.compile(
    r"\s{1,3}(?:is|are|was|were|has|isn't)\b"
    r"(?! (?:the |my )?(?:answer|result|sum|one|right|correct|best|total)\b)"
)
_POINTED = re.compile(r"=[\s$*]{0,4}$")
_WORD_BEFORE = re.compile(r"([^\W\d_]+)\s?$")
_WORD_AFTER = re.compile(r"\s?([^\W\d_]+)")
_DIGIT = re.compile(r"\d")
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
_CALCULATED = frozenset(("plus", "minus", "times", "divided", "add", "subtract", "multiply"))
_COUNTED = 12
"""Words up to which a number that is spelt out is the answer of a text."""
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
    answer = _ENUMERATED.sub("", looked_at(text))
    called = numbers_called(answer)
    if called:
        return called[-1]
    found = None if cut else _last(conclusion(answer), prompt)
    return _spelt(answer, prompt) if found is None and not _DIGIT.search(answer) else found


def numbers_called(text: str) -> list[float]:
    """The numbers that a text calls its answer, the one that counts last.

    After "the answer is" or ####, or in a box; else those alone in a line, after "it is" or =.

    Example:
        >>> numbers_called("3 + 4 = 7\\n7 + 4 = 11\\n11 +"), numbers_called("Result = 3 * 4")
        ([7.0, 11.0], [])
    """
    pointed = pointed_out(text)
    if pointed is not None and (found := _last(pointed.partition(". ")[0], None)) is not None:
        return [found]
    plain = _without_sums(text)
    return [value_of(next(filter(None, found))) for found in _CALLED.findall(plain)]


def pointed_out(text: str) -> str | None:
    """What a text marks as its answer: in a box, after #### or after "the answer is"."""
    return last_boxed(text) or _after_hashes(text) or after_cue(text) or after_cue(text, _CUE)


def conclusion(text: str) -> str:
    """All of a short text, of a long one its last two sentences."""
    return text if len(text) <= _SHORT else " ".join(sentences(text[-5000:])[-2:])


def _last(text: str, prompt: str | None) -> float | None:
    """The last number of a text that is neither part of a calculation, a subject nor an echo."""
    text = _without_sums(text)
    asked = _neighbours(prompt[-_LONG_PROMPT:]) if prompt else frozenset()
    for found in reversed(list(NUMBER.finditer(text))):
        if _SUBJECT.match(text, found.end()):
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


def _spelt(text: str, prompt: str | None) -> float | None:
    """The last number in words of a short text, in English or in the language of the question.

    "one" in a sentence is seldom a number.
    """
    said = _WORD.findall(fold(text[:_SHORT]))
    if _CALCULATED.intersection(said) or len(said) > _COUNTED:
        return None
    if said[1:2] in (["is"], ["are"]):  # the subject of the sentence
        said = said[1:]
    known = _spelt_for(prompt) if prompt else _SPELT
    for place in range(len(said) - 1, -1, -1):
        both = " ".join(said[max(0, place - 1) : place + 1])
        if both in known or (said[place] in known and (said[place] != "one" or len(said) < 4)):
            return known.get(both, known.get(said[place]))
    return None


def _spelt_for(prompt: str) -> dict[str, float]:
    words = (_SPELT_IN.get(name, "").split() for name in languages_of(prompt[-_SHORT:]))
    return _SPELT | {word: float(value) for told in words for value, word in enumerate(told)}


def _after_hashes(text: str) -> str | None:
    """What follows the last #### in its line, as the answers of GSM8K end."""
    found = re.findall(r"####[ \t]{0,4}(\S.{0,40})", text[-5000:])
    return found[-1] if found else None
