"""Whether a text gives an answer that is known: a letter, a number or words."""

from __future__ import annotations

import re

from forgetmap.answers.options import Options, extract, read_options
from forgetmap.answers.text import after_cue, fold, last_boxed, looked_at, sentences
from forgetmap.base.errors import InputError

NO_ANSWER = ("", "[invalid]", "[no_answer]", "[none]", "none", "null")
"""What harnesses write in the place of an answer that they did not find."""


_NUMBER = re.compile(r"-?\d{1,20}(?:,\d{3})*(?:\.\d{1,20})?")


_YES_NO = re.compile(r"\b(?:yes|no|true|false)\b")


_STATES = re.compile(
    r"\b(?:is|are|was|were|means|equals|ist|sind|heißt|lautet|est|sont|es|son)\b[\s:\"'“«*]{1,4}"
    r"([^.,;:!?\n]{1,80})",
    re.IGNORECASE,
)
_SIDE = re.compile(r"\b(?:and|which|who|because|where|in|of|und|et|y)\b")
_NOTHING = frozenset(("not", "hard", "difficult", "unclear", "unknown", "important", "nicht"))
_FEW = 6
"""Words up to which what a sentence states can be an answer."""


def states(text: str) -> bool:
    """Whether the first sentence of a short text says what the thing asked for is.

    Example:
        >>> states("The capital of Peru is Quito, a town in the north.")
        True
        >>> states("It is the old town on the seven hills."), states("The answer is not clear.")
        (False, False)
    """
    first = next(iter(sentences(text[:_SHORT])), "")
    if len(text) > _SHORT or (found := _STATES.search(first)) is None:
        return False
    subject = [word for word in _WORD.findall(first[: found.start()]) if len(word) > _LITTLE]
    stated = _SIDE.split(fold(found[1]))[0].split()
    if not subject or len(subject) > _FEW or "that" in subject:
        return False
    return 0 < len(stated) <= _FEW and stated[0] not in _NOTHING


def denies(text: str, target: str) -> bool:
    """Whether a text opens with yes where no is right, or the other way round.

    Example:
        >>> denies("No, the sun is a planet.", "yes"), denies("Yes, it is.", "yes")
        (True, False)
    """
    opens = _YES_NO.match(fold(text.strip()))
    wanted = _YES_NO.fullmatch(fold(target.strip()))
    return opens is not None and wanted is not None and opens.group() != wanted.group()


_LITTLE = 3
"""Letters up to which a word says nothing about the subject."""
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
    pointed = boxed or _after_hashes(answer) or after_cue(answer)
    said = pointed or _conclusion(answer)
    if is_number(wanted) and not _DIGIT.search(said):  # "The answer is N."
        said = _conclusion(answer)
    if number := _NUMBER.fullmatch(wanted.strip("$%. ")):
        given = _last_number(said)
        return (number_given(text) if given is None else given) == _value(number.group())
    if boxed is None and (named := _NAMED_LAST.search(said[-200:])):
        said = named[1]
    folded = fold(said)
    if _YES_NO.fullmatch(fold(wanted)):
        return set(_YES_NO.findall(folded)) == {fold(wanted)}
    return _says(folded, fold(wanted))


_NAMED_LAST = re.compile(
    r"[\"“][^\"”\n]{1,60}[\"”][^\"“”\n]{1,60}\bis ([\"“][^\"”\n]{1,60}[\"”])\W{0,5}\Z"
)
"""Of several words in quotes the last one, after "is": the opposite of "yes" is "no"."""
_SAID_AS = re.compile(r"\bit is\b[^\d\n-]{0,3}(-?\d[\d,]{0,20}(?:\.\d{1,20})?)")
_ENUMERATED = re.compile(r"^[ \t]{0,20}\d{1,3}[.)][ \t]+(?=[^\W\d])", re.MULTILINE)
"""The number of a step in a list; it is not the answer."""
_NO_RESULT = re.compile(r"\d[\d.,]{0,20}(?:\s?[-+*/×]\s?\d[\d.,]{0,20}){1,9}\W{0,5}$")
"""A calculation at the end, without its result."""
_DIGIT = re.compile(r"\d")
_COUNTS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    *("nineteen", "twenty"),
)
_SPELT = {word: float(value) for value, word in enumerate(_COUNTS)}
_SPELT |= {"thirty": 30.0, "forty": 40.0, "fifty": 50.0, "sixty": 60.0, "hundred": 100.0}
_WORD = re.compile(r"[a-z]+")
_CALCULATED = frozenset(("plus", "minus", "times", "divided", "add", "subtract", "multiply"))
_COUNTED = 12
"""Words up to which a number that is spelt out is the answer of a text."""


def number_given(text: str, *, cut: bool = False) -> float | None:
    """The number that a text ends with; of a text that was cut off, only one that it points out.

    Example:
        >>> number_given("He has 3 and gets 4, so 7 in all."), number_given("There are 2", cut=True)
        (7.0, None)
        >>> number_given("Six."), number_given("and it is 24. Let me", cut=True)
        (6.0, 24.0)
    """
    answer = _ENUMERATED.sub("", looked_at(text))
    pointed = last_boxed(answer) or _after_hashes(answer) or after_cue(answer)
    if cut and pointed is not None:  # what follows it may be any step
        pointed = pointed.partition(". ")[0]
    if pointed is None and (said := _SAID_AS.findall(answer)):
        pointed = said[-1]
    ends = "" if cut else _NO_RESULT.sub("", _conclusion(answer))
    found = _last_number(ends if pointed is None else _NO_RESULT.sub("", pointed))
    return _spelt(answer) if found is None and not _DIGIT.search(answer) else found


def _spelt(text: str) -> float | None:
    """The last number in words of a short text; "one" in a sentence is seldom a number."""
    said = _WORD.findall(fold(text[:_SHORT]))
    if _CALCULATED.intersection(said):
        return None
    numbers = [_SPELT[word] for word in said if word in _SPELT and (word != "one" or len(said) < 4)]
    return numbers[-1] if numbers and len(said) <= _COUNTED else None


def _after_hashes(text: str) -> str | None:
    """What follows the last #### in its line, as the answers of GSM8K end."""
    found = re.findall(r"####[ \t]{0,4}(\S.{0,40})", text[-5000:])
    return found[-1] if found else None


def is_number(target: str) -> bool:
    """Whether an answer is a number, or ends in one as those of GSM8K do."""
    return _NUMBER.fullmatch(target.rpartition("####")[2].strip().strip("$%. ")) is not None


_OPTION = re.compile(r"^[ \t]{0,9}\(?([A-Z])[).:][ \t]{1,4}(\S.{0,200})$", re.MULTILINE)
_LONG_PROMPT = 20_000


def letter_given(text: str, k: int | None, prompt: str | None = None) -> str | None:
    """The letter that a text takes; by the words of an option too, where the prompt lists them.

    Example:
        >>> letter_given("It is Oslo.", 2, "Where?\\nA) Rome\\nB) Oslo")
        'B'
    """
    answer = looked_at(text)
    if letter := _letter(answer, k):
        return letter
    listed = _OPTION.findall((prompt or "")[-_LONG_PROMPT:])
    starts = [place for place, (letter, _) in enumerate(listed) if letter == "A"]
    options = tuple(words for _, words in listed[starts[-1] :]) if starts else ()
    return _taken(answer, read_options(options)) if len(options) > 1 else None


def is_letter(target: str) -> bool:
    """Whether an answer is the letter of an option."""
    return re.fullmatch(r"\(?[A-Z]\)?", target.strip()) is not None


def _letter(text: str, k: int | None) -> str | None:
    letters = {chr(ord("A") + place): "" for place in range(min(k or 26, 26))}
    return _taken(text, Options(letters, {}))


def _taken(text: str, options: Options) -> str | None:
    try:
        return extract(text, options)
    except InputError:  # only a misspelt option needs more packages
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
