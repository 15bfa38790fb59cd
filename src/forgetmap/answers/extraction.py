"""Whether a text gives an answer that is known: a letter, a number (numbers.py) or words."""

from __future__ import annotations

import re
import string

from forgetmap.answers.copied import own_words, unasked
from forgetmap.answers.numbers import is_number, number_given, pointed_out, value_of
from forgetmap.answers.options import CUE, Options, extract, only_named, read_options
from forgetmap.answers.text import fold, last_boxed, looked_at, sentences
from forgetmap.base.errors import InputError

NO_ANSWER = ("", "[invalid]", "[no_answer]", "[none]", "none", "null")
"""What harnesses write in the place of an answer that they did not find."""


_DENIED = re.compile(
    r"\b(?:not|never|isn't|wasn't|no|nicht|pas|non|niet|não)(?: \w{1,12})? ?$|"
    r"n't (?:think|believe) (?:that )?(?:it|that|this)(?:'s| is) ?$"
)


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
    if rivals := offered(prompt, wanted):
        return word_taken(text, rivals, prompt) == fold(wanted)
    asked = prompt if own_words(wanted, prompt) == wanted else None  # else it is to be copied
    return _says(fold(_claim(answer, asked)), fold(wanted))


def _claim(text: str, prompt: str | None) -> str:
    """What of a text counts where a free word was asked for; nothing that it copies."""
    told = (part for part in pointed_out(text) if _LETTERS.search(own_words(part, prompt)))
    said = next(told, None) or own_words(text, prompt)
    named = _NAMED_LAST.search(said[-200:])
    return named[1] if named and last_boxed(text) is None else said


_OFFER = re.compile(
    r"\b((?:[^\W\d_]{1,30}, ){0,4}[^\W\d_]{1,30}),? or (?:an? |the )?([^\W\d_]{1,30})\b"
)
_ONE_OF = re.compile(
    r"\bone of(?: the following)?:? ((?:[^\W\d_]{1,30}, ){1,9}[^\W\d_]{1,30})\b(?! or\b)"
)
"""An offer without "or": one of: red, green, blue."""
_RULED_OUT = re.compile(r"\b(?:is|are|was|were|'s|'re) (?:not|never) (?:an? |the )?\w+")
_OFFER_BEGINS = re.compile(r"(?:^|[:;,.?!(\"]|\b(?:it|is|are|be|as|of|from|either|between))\s*\Z")
_ALWAYS_OFFERED = (("yes", "no"), ("true", "false"))


def offered(prompt: str | None, target: str) -> tuple[str, ...]:
    """The words that a question offers to choose from, if the right one is among them.

    The last two come first: of "the mood, good or bad" only they are on offer.

    Example:
        >>> offered("Is it red, green or blue?", "Green"), offered(None, "yes")
        (('green', 'blue', 'red'), ('yes', 'no'))
        >>> offered("Its colour is one of: red, blue.", "red")
        ('red', 'blue')
    """
    wanted = fold(target.strip(" ."))
    asked = fold(prompt[-_LONG_PROMPT:]) if prompt else ""
    offers = [_offer(found, asked) for found in _OFFER.finditer(asked) if " or " in asked]
    offers += [tuple(found[1].split(", ")) for found in _ONE_OF.finditer(asked)]
    always = [pair for pair in _ALWAYS_OFFERED if not _is_quoted(pair, prompt)]
    return next((words for words in (*offers, *always) if wanted in words), ())


def _is_quoted(words: tuple[str, ...], prompt: str | None) -> bool:
    """Whether a question is about one of some words, as in: the opposite of "yes"."""
    return any(f'"{word}"' in fold(prompt or "") for word in words)


def _offer(found: re.Match[str], asked: str) -> tuple[str, ...]:
    """The words of an offer; those before the last two only where an offer can begin."""
    *more, one = found[1].split(", ")
    begins = _OFFER_BEGINS.search(asked[: found.start()])
    return (one, found[2], *(more if begins and (one, found[2]) not in _ALWAYS_OFFERED else ()))


def word_taken(text: str, rivals: tuple[str, ...], prompt: str | None = None) -> str | None:
    """The only word of those on offer that a text has, denied or not; None where it has several.

    Example:
        >>> word_taken("Red or blue? I say blue.", ("red", "blue"))
        'blue'
        >>> word_taken("It is blue and not red.", ("red", "blue"))
    """
    answer = looked_at(text)
    if opening := _opening(answer, rivals, prompt):
        return opening
    own = " ".join(unasked(part, prompt) for part in sentences(answer))
    said = _OFFER.sub(lambda found: " " if _is_offer(found, rivals) else found[0], fold(own))
    for words in (rivals[:2], rivals[2:]):
        taken = _had(said, words)
        if len(taken) > 1:  # "it is not red" rules one of them out
            taken = _had(_RULED_OUT.sub(" ", said), words)
        if taken:
            return taken[0] if len(taken) == 1 else None
    return None


def _had(text: str, words: tuple[str, ...]) -> list[str]:
    return [word for word in words if re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text)]


def _is_offer(found: re.Match[str], rivals: tuple[str, ...]) -> bool:
    return len({found[2], *found[1].split(", ")} & {*rivals}) > 1


def _opening(text: str, rivals: tuple[str, ...], prompt: str | None) -> str | None:
    """The word on offer that a text opens with, set off from the rest: it counts in any case.

    Unless the text opens with the whole offer, copied from the question: that takes none.
    """
    opens = _OPENS_WITH.match(fold(text[:100]))
    if not opens or opens[1] not in rivals:
        return None
    start = fold(text[:_LONG_OFFER])
    words = [word for word in _OFFERED_WORD.finditer(start) if word[0] != "or"][: len(rivals)]
    copied = start[words[0].start() : words[-1].end()] in fold((prompt or "")[-_LONG_PROMPT:])
    return None if copied and {word[0] for word in words} == {*rivals} else opens[1]


_OPENS_WITH = re.compile(r"\W{0,5}([^\W\d_]{1,30})[\"'*_]{0,3}[.,;!\n]")
"""A word that a text opens with, set off from the rest."""
_OFFERED_WORD = re.compile(r"[^\W\d_]{1,30}")
_LONG_OFFER = 400
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
_MARKED = re.compile(
    r"^[ \t]{0,9}(?:[-*•][ \t]{1,4})?[*_]{0,2}([A-Z])(?:[*_]{0,2}[).:,]|[*_]{0,3}[ \t]*$)|"
    r"[(]([A-Z])(?:[)]|\s*\Z)",
    re.MULTILINE,
)
"""A letter with the mark of an option: at the beginning of a line, or in brackets."""
_LETTER_LINE = re.compile(
    r"^[ \t]{0,9}(?:[-*•][ \t]{1,4})?[*_]{0,2}(?:\(([A-Z])\)|([A-Z])\)?)[*_.]{0,3}[ \t]*$", re.M
)
"""A letter alone in a line."""
_OPTION_MARK = re.compile(r"(?<![^\s(\[])([A-Z])[).:\]]")
_LETTERS = re.compile(r"[^\W_]")
_LONG_PROMPT = 20_000


def letter_given(
    text: str, k: int | None, prompt: str | None = None, *, by_words: bool = True
) -> str | None:
    """The letter that a text takes; `by_words` of an option too, where the prompt lists them.

    Example:
        >>> letter_given("It is Oslo.", 2, "Where?\\nA) Rome\\nB) Oslo")
        'B'
    """
    answer = _TAG.sub(" ", looked_at(text))
    if not CUE.search(answer):
        if len({"".join(found) for found in _MARKED.findall(answer)}) > 1:  # it goes through them
            return _letter(_MARKED.sub(" ", answer), k)
        known = string.ascii_uppercase[: k or 26]
        alone = {"".join(found) for found in _LETTER_LINE.findall(answer)} & {*known}
        if alone:
            return alone.pop()
    words = options_of(prompt)
    letter = _letter(answer, k)
    if letter or not by_words or len(words) < 2:
        return letter
    try:
        return only_named(answer, read_options(words))
    except InputError:  # only a misspelt option needs more packages
        return None


def options_of(prompt: str | None) -> tuple[str, ...]:
    """The words of the options that a question lists, those of (A) first.

    Example:
        >>> options_of("Where?\\nA) Rome\\nB) Oslo"), options_of("Is it A or B?")
        (('Rome', 'Oslo'), ())
    """
    asked = (prompt or "")[-_LONG_PROMPT:]
    listed = _OPTION.findall(asked)
    listed = listed if len(listed) > 1 else _OPTION_INLINE.findall(asked)
    starts = [place for place, (letter, _) in enumerate(listed) if letter == "A"]
    return tuple(words for _, words in listed[starts[-1] :]) if starts else ()


def is_letter(target: str) -> bool:
    """Whether an answer is the letter of an option."""
    return re.fullmatch(r"\(?[A-Z]\)?", target.strip()) is not None


def lists_options(prompt: str) -> bool:
    """Whether a question marks two options or more with a letter."""
    return len({*_OPTION_MARK.findall(prompt[-_LONG_PROMPT:])}) > 1


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
