"""Whether a text gives an answer that is known: a letter, a number (numbers.py) or words."""

from __future__ import annotations

import re
import string

from forgetmap.answers.numbers import conclusion, is_number, number_given, pointed_out, value_of
from forgetmap.answers.options import CUE, Options, extract, read_options
from forgetmap.answers.text import fold, last_boxed, looked_at
from forgetmap.base.errors import InputError

NO_ANSWER = ("", "[invalid]", "[no_answer]", "[none]", "none", "null")
"""What harnesses write in the place of an answer that they did not find."""


_DENIED = re.compile(r"\b(?:not|never|isn't|wasn't|no|nicht|pas|non|niet|não)(?: \w{1,12})? ?$")


def gives(text: str, target: str, k: int | None = None, prompt: str | None = None) -> bool:
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
    if is_number(wanted):
        return number_given(text, prompt) == value_of(wanted)
    boxed = last_boxed(answer)
    said = pointed_out(answer) or conclusion(answer)
    if boxed is None and (named := _NAMED_LAST.search(said[-200:])):
        said = named[1]
    if rivals := offered(prompt, wanted):
        return (_opening(answer, rivals) or word_taken(said, rivals)) == fold(wanted)
    return _says(fold(said), fold(wanted))


_OFFER = re.compile(r"\b((?:[^\W\d_]{1,30}, ){0,4}[^\W\d_]{1,30}),? or ([^\W\d_]{1,30})\b")
_OFFER_BEGINS = re.compile(r"(?:^|[:;,.?!(\"]|\b(?:it|is|are|be|as|of|from|either|between))\s*\Z")
_ALWAYS_OFFERED = (("yes", "no"), ("true", "false"))


def offered(prompt: str | None, target: str) -> tuple[str, ...]:
    """The words that a question offers to choose from, if the right one is among them.

    The last two come first: of "the mood, good or bad" only they are on offer.

    Example:
        >>> offered("Is it red, green or blue?", "Green"), offered(None, "yes")
        (('green', 'blue', 'red'), ('yes', 'no'))
    """
    wanted = fold(target.strip(" ."))
    asked = fold(prompt[-_LONG_PROMPT:]) if prompt and " or " in prompt else ""
    offers = [_offer(found, asked) for found in _OFFER.finditer(asked)]
    return next((words for words in (*offers, *_ALWAYS_OFFERED) if wanted in words), ())


def _offer(found: re.Match[str], asked: str) -> tuple[str, ...]:
    """The words of an offer; those before the last two only where an offer can begin."""
    *more, one = found[1].split(", ")
    begins = _OFFER_BEGINS.search(asked[: found.start()])
    return (one, found[2], *(more if begins and (one, found[2]) not in _ALWAYS_OFFERED else ()))


def word_taken(text: str, rivals: tuple[str, ...]) -> str | None:
    """The one word of those on offer that a text takes, or another value that it is as a whole.

    None where it takes none or several.

    Example:
        >>> word_taken("Red or blue? I say blue.", ("red", "blue"))
        'blue'
        >>> word_taken("It is not red but green.", ("red", "blue"))
    """
    said = _OFFER.sub(lambda found: _untaken(found, rivals), fold(looked_at(text)))
    if opening := _opening(said, rivals):
        return opening
    for words in (rivals[:2], rivals[2:]):
        if taken := [word for word in words if _says(said, word)]:
            return taken[0] if len(taken) == 1 else None
    return None


def _untaken(offer: re.Match[str], rivals: tuple[str, ...]) -> str:
    """Nothing in the place of "this or that": it takes none of them."""
    offers = {offer[2], *offer[1].split(", ")} & {*rivals}
    return " " if offers and offer[2] not in ("a", "an", "the") else offer[0]


def _opening(text: str, rivals: tuple[str, ...]) -> str | None:
    """The word on offer that a text opens with, set off from the rest: it counts in any case."""
    opens = _OPENS_WITH.match(fold(text[:100]))
    return opens[1] if opens and opens[1] in rivals else None


_OPENS_WITH = re.compile(r"\W{0,5}([^\W\d_]{1,30})[\"'*_]{0,3}[.,;!\n]")
"""A word that a text opens with, set off from the rest."""
_NAMED_LAST = re.compile(
    r"[\"“][^\"”\n]{1,60}[\"”][^\"“”\n]{1,60}\bis ([\"“][^\"”\n]{1,60}[\"”])\W{0,5}\Z"
)
"""Of several words in quotes the last one, after "is": the opposite of "yes" is "no"."""
_TAG = re.compile(r"</?\w{1,20}>")
_OPTION = re.compile(r"^[ \t]{0,9}\(?([A-Z])[).:][ \t]{1,4}(\S.{0,200})$", re.MULTILINE)
_OPTION_INLINE = re.compile(
    r"[(]([A-Z])[)][ \t]{1,4}([^()\n]{1,200}?)(?=[;.]\s|[;,.]?\s{0,4}(?:[(]|$))", re.M
)
"""Options in one line: (A) rose  (B) iron."""
_MARKED = re.compile(r"[(]([A-Z])(?:[)]|\s*\Z)")
_LETTER_LINE = re.compile(
    r"^[ \t]{0,9}(?:[-*•][ \t]{1,4})?[*_]{0,2}(?:\(([A-Z])\)|([A-Z]))[*_.]{0,3}[ \t]*$", re.M
)
"""A letter alone in a line."""
_LABEL = re.compile(r"^[ \t]{0,9}[A-Z][:.)][ \t]", re.MULTILINE)
_LONG_PROMPT = 20_000


def letter_given(
    text: str, k: int | None, prompt: str | None = None, *, by_words: bool = True
) -> str | None:
    """The letter that a text takes; `by_words` of an option too, where the prompt lists them.

    Example:
        >>> letter_given("It is Oslo.", 2, "Where?\\nA) Rome\\nB) Oslo")
        'B'
    """
    asked = (prompt or "")[-_LONG_PROMPT:]
    listed = _OPTION.findall(asked)
    listed = listed if len(listed) > 1 else _OPTION_INLINE.findall(asked)
    starts = [place for place, (letter, _) in enumerate(listed) if letter == "A"]
    options = listed[starts[-1] :] if starts else []
    answer = _TAG.sub(" ", looked_at(text))
    known = string.ascii_uppercase[: k or 26]
    alone = {"".join(found) for found in _LETTER_LINE.findall(answer)} & {*known}
    if not CUE.search(answer) and len(alone) > 1:
        return None
    if not CUE.search(answer) and len({*_MARKED.findall(answer)}) > 1:  # several are gone through
        answer, by_words = _LABEL.sub(" ", _MARKED.sub(" ", answer)), False
    if letter := alone.pop() if len(alone) == 1 else _letter(answer, k):
        return letter
    words = tuple(words for _, words in options)
    return _taken(answer, read_options(words)) if by_words and len(words) > 1 else None


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


def _says(text: str, words: str) -> bool:
    for match in re.finditer(rf"(?<!\w){re.escape(words)}(?!\w)", text):
        if not _DENIED.search(text[max(0, match.start() - 30) : match.start()]):
            return True
    return not words.isascii() and words in text  # scripts that set no spaces between words
