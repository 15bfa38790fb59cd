"""Yes or no: where the answer says one of them plainly."""

from __future__ import annotations

import re

from forgetmap.answers.items import Item, Value
from forgetmap.answers.text import after_cue, fold, last_boxed, sentences
from forgetmap.capabilities.scorers.scoring import NO_ANSWER, bad_gold, per_answer, right_or_wrong

METRICS = ("accuracy",)
FIELDS = ("gold",)
VERSION = 1

_YES, _NO = ("yes", "true", "1", "1.0", "correct"), ("no", "false", "0", "0.0", "incorrect")
_SAID = re.compile(
    r"\b(?:(?P<flipped>not|n't|isn't)\s{1,3})?(?P<word>yes|true|correct|no|false|incorrect)\b"
    r"(?!\s{1,3}(?:doubt|matter|one|longer|more|need|idea|way|other|such|evidence|mention))"
)
_LEADING = re.compile(r"[\W_]{0,20}(yes|no|true|false)\b(?!\W{1,3}(?:and|or)\b|[ \t]{1,3}[a-z])")


@per_answer(METRICS)
def score(item: Item, text: str) -> Value:
    """Compare the yes or no that was said with the right one.

    Example:
        >>> item = Item("boolq", "1", gold="yes")
        >>> [value.value for value in score([item] * 2, ["Yes, it is.", "No."])["accuracy"]]
        [1.0, 0.0]
    """
    gold = read_gold(item.gold)
    if gold is None:
        return bad_gold(item.gold)
    said = extract(text)
    if said is None:
        return NO_ANSWER
    return right_or_wrong(said == gold, "yes" if said else "no")


def read_gold(gold: object) -> bool | None:
    """The right answer: a truth value, or a word or number for one."""
    word = str(gold).strip().casefold()
    return True if word in _YES else False if word in _NO else None


def extract(text: str) -> bool | None:
    """What the answer says: boxed, after "answer is", first of all, or the only word of the kind.

    Example:
        >>> extract("It rains. Therefore the statement is not true."), extract("Yes and no.")
        (False, None)
    """
    boxed, answer = last_boxed(text), after_cue(text)
    last = next(reversed(sentences(text[-2000:])), None)
    for part, look in (
        *((boxed, _only), (answer, _leading), (answer, _only)),
        *((text, _leading), (last, _only), (text, _only)),
    ):
        if part is not None and (said := look(part)) is not None:
            return said
    return None


def _leading(text: str) -> bool | None:
    """The word that the text begins with, unless it takes it back at once."""
    word = _LEADING.match(fold(text[:200]))
    return word[1] in _YES if word else None


def _only(text: str) -> bool | None:
    said = {
        (match["word"] in _YES) is not bool(match["flipped"])
        for match in _SAID.finditer(fold(text))
    }
    return said.pop() if len(said) == 1 else None
