"""Whether a text gives an answer that is known: a letter, a number (numbers.py) or words."""

from __future__ import annotations

import re

from forgetmap.answers.language import is_common
from forgetmap.answers.numbers import conclusion, is_number, number_given, pointed_out, value_of
from forgetmap.answers.options import Options, extract, read_options
from forgetmap.answers.text import fold, last_boxed, looked_at, sentences
from forgetmap.base.errors import InputError

NO_ANSWER = ("", "[invalid]", "[no_answer]", "[none]", "none", "null")
"""What harnesses write in the place of an answer that they did not find."""


_YES_NO = re.compile(r"\b(?:yes|no|true|false)\b")


_STATES = re.compile(
    r"\b(?:is|are|was|were|means|equals|ist|sind|heißt|lautet|est|sont|es|son)\b[\s:\"'“«*]{1,4}"
    r"([^.,;:!?\n]{1,80})",
    re.IGNORECASE,
)
_SIDE = re.compile(r"\b(?:and|which|who|because|where|in|of|und|et|y)\b")
_NOTHING = frozenset(("not", "hard", "difficult", "unclear", "unknown", "important", "nicht"))
_NOTHING |= {"a", "an", "ein", "eine", "un", "une", "una"}
"""What no value begins with; "a very special colour" describes it and does not name it."""
_FEW = 6
"""Words up to which what a sentence states can be an answer."""


def states(text: str, prompt: str | None = None) -> bool:
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
    if fold(found[0]) in fold(prompt or ""):  # only what the question says itself
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


_WORD = re.compile(r"[a-z]+")
_LETTERS = re.compile(r"[^\W\d_]+")
_LITTLE = 3
"""Letters up to which a word says nothing about the subject."""
_SHORT = 300
"""Characters up to which a text is an answer as a whole; of a longer one its end is."""


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
        return word_taken(said, rivals) == fold(wanted)
    return _says(fold(said), fold(wanted))


_OFFER = re.compile(r"\b((?:[^\W\d_]{1,30}, ){0,4}[^\W\d_]{1,30}),? or ([^\W\d_]{1,30})\b")
_ALWAYS_OFFERED = (("yes", "no"), ("true", "false"))


def offered(prompt: str | None, target: str) -> tuple[str, ...]:
    """The words that a question offers to choose from, if the right one is among them.

    The last two come first: of "the mood, good or bad" only they are on offer.

    Example:
        >>> offered("Is it red, green or blue?", "Green"), offered(None, "yes")
        (('green', 'blue', 'red'), ('yes', 'no'))
    """
    wanted = fold(target.strip(" ."))
    asked = _OFFER.findall(fold(prompt[-_LONG_PROMPT:])) if prompt and " or " in prompt else []
    offers = [(head.split(", ")[-1], last, *head.split(", ")[:-1]) for head, last in asked]
    return next((words for words in (*offers, *_ALWAYS_OFFERED) if wanted in words), ())


def word_taken(text: str, rivals: tuple[str, ...]) -> str | None:
    """The one word of those on offer that a text takes, or another value that it is as a whole.

    None where it takes none or several.

    Example:
        >>> word_taken("Red or blue? I say blue.", ("red", "blue"))
        'blue'
        >>> word_taken("It is not red but green.", ("red", "blue"))
    """
    said = _OFFER.sub(lambda found: " " if found[2] in rivals else found[0], fold(looked_at(text)))
    for words in (rivals[:2], rivals[2:]):
        if taken := [word for word in words if _says(said, word)]:
            return taken[0] if len(taken) == 1 else None
    return said if 0 < len(said.split()) <= _VALUE else None  # a value that was not on offer


_VALUE = 2
"""Words up to which a text is a value and no sentence."""


_STEM = 5
"""Letters by which a word is known again, whatever its ending."""


def speaks_of(text: str, prompt: str) -> bool:
    """Whether a text takes up a word of the question.

    Example:
        >>> speaks_of("Breathing needs air.", "What gas do we breathe?"), speaks_of("Hi!", "Why?")
        (True, False)
    """
    ours, theirs = (
        {word[:_STEM] for word in _LETTERS.findall(fold(part)) if not is_common(word)}
        for part in (text, prompt[-_LONG_PROMPT:])
    )
    return bool(ours & theirs)


_NAMED_LAST = re.compile(
    r"[\"“][^\"”\n]{1,60}[\"”][^\"“”\n]{1,60}\bis ([\"“][^\"”\n]{1,60}[\"”])\W{0,5}\Z"
)
"""Of several words in quotes the last one, after "is": the opposite of "yes" is "no"."""
_TAG = re.compile(r"</?\w{1,20}>")
_OPTION = re.compile(r"^[ \t]{0,9}\(?([A-Z])[).:][ \t]{1,4}(\S.{0,200})$", re.MULTILINE)
_OPTION_INLINE = re.compile(
    r"[(]([A-Z])[)][ \t]{1,4}([^()\n]{1,200}?)(?=[;,.]?\s{0,4}(?:[(]|$))", re.M
)
"""Options in one line: (A) rose  (B) iron."""
_LONG_PROMPT = 20_000


def letter_given(text: str, k: int | None, prompt: str | None = None) -> str | None:
    """The letter that a text takes; by the words of an option too, where the prompt lists them.

    Example:
        >>> letter_given("It is Oslo.", 2, "Where?\\nA) Rome\\nB) Oslo")
        'B'
    """
    answer = _TAG.sub(" ", looked_at(text))
    if letter := _letter(answer, k):
        return letter
    asked = (prompt or "")[-_LONG_PROMPT:]
    listed = _OPTION.findall(asked)
    listed = listed if len(listed) > 1 else _OPTION_INLINE.findall(asked)
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


def _says(text: str, words: str) -> bool:
    for match in re.finditer(rf"(?<!\w){re.escape(words)}(?!\w)", text):
        if not _DENIED.search(text[max(0, match.start() - 30) : match.start()]):
            return True
    return not words.isascii() and words in text  # scripts that set no spaces between words
