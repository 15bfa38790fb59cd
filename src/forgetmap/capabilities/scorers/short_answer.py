"""Short answers: a right name among aliases, as whole words, and not denied."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from forgetmap.answers.items import Item, Value
from forgetmap.answers.text import after_cue, fold, normal, sentences, tokens
from forgetmap.capabilities.scorers import boolean
from forgetmap.capabilities.scorers.scoring import bad_gold, per_answer, right_or_wrong

METRICS = ("accuracy", "exact", "f1", "denied")
FIELDS = ("gold",)
VERSION = 1

_NEGATION = re.compile(
    r"\bnot\b|n't\b|\b(?:never|neither|nor|cannot|wrong|incorrect|rather|instead)\b"
)
_DENIES = frozenset(("not", "never", "neither", "nor", "cannot"))
_BETWEEN = frozenset(
    (
        *("think", "believe", "say", "suppose", "mean", "sure", "certain", "if", "whether", "that"),
        *("it", "it's", "this", "he", "she", "they", "i", "is", "was", "be", "been", "are", "were"),
        *("would", "answer", "correct", "actually", "really", "in", "at", "by", "from", "to"),
        *("called", "named", "either", "city", "of"),
    )
)
"""Words that may stand between a denial and what it denies: "I do not think it is Rome"."""
_DENIED_AFTER = ("is wrong", "is incorrect", "is not answer", "is not correct", "is not right")


@per_answer(METRICS)
def score(item: Item, text: str) -> Value | Sequence[Value]:
    """Look for a right answer in each response.

    `accuracy`: an alias is there as whole words and its last mention is not denied. `exact` and
    `f1`: the answer line, or the whole response, against the best alias, word by word. `denied`:
    the last mention of a right answer is denied.

    Example:
        >>> item = Item("popqa", "1", gold=["Rome", "Roma"])
        >>> values = score([item] * 2, ["It is Rome.", "I do not think it is Rome."])
        >>> [value.value for value in values["accuracy"]]
        [1.0, 0.0]
    """
    golds = aliases(item.gold)
    if not golds:
        return bad_gold(item.gold)
    answer = after_cue(text) or text
    said = tokens(answer)
    joined = " ".join(said)
    exact = joined in golds
    mentioned = exact or _mentions(golds, answer, joined)
    is_denied = mentioned and not exact and _is_denied(golds, answer)
    return (
        right_or_wrong(mentioned and not is_denied, answer),
        right_or_wrong(exact, answer),
        Value(max(_f1(gold.split(), said) for gold in golds), answer=answer[:200]),
        Value(float(is_denied)),
    )


def aliases(gold: Any) -> list[str]:
    """All right answers in normal form, from a text, a list, or an object that holds one.

    Example:
        >>> aliases({"answer": "The Hague"}), aliases(["Rome", "Roma"])
        (['hague'], ['rome', 'roma'])
    """
    if isinstance(gold, Mapping):
        held = [gold[key] for key in ("text", "answer", "aliases") if gold.get(key)]
        return list(dict.fromkeys(name for one in held for name in aliases(one)))
    if isinstance(gold, str) or not isinstance(gold, Sequence):
        gold = [] if gold is None or (isinstance(gold, float) and math.isnan(gold)) else [gold]
    return [name for name in dict.fromkeys(normal(str(one)) for one in gold) if name]


def _mentions(golds: list[str], answer: str, joined: str) -> bool:
    if set(golds) <= {"yes", "no", "true", "false"}:  # a "no" in a sentence is no answer yet
        return boolean.extract(answer) is boolean.read_gold(golds[0])
    return any(f" {gold} " in f" {joined} " for gold in golds)


def _is_denied(golds: list[str], answer: str) -> bool:
    """Whether the last sentence that names a right answer denies it."""
    if not _NEGATION.search(fold(answer)):
        return False
    for sentence in reversed(sentences(answer)):
        said = f" {' '.join(tokens(sentence))} "
        places = [(said.rfind(f" {gold} "), gold) for gold in golds]
        at, gold = max(places)
        if at >= 0:
            return _denies(said[:at].split(), said[at + len(gold) + 1 :].strip())
    return False


def _denies(before: list[str], after: str) -> bool:
    if after.startswith(_DENIED_AFTER) or before[-2:] in (["rather", "than"], ["instead", "of"]):
        return True
    for word in reversed(before):
        if word in _DENIES or word.endswith("n't"):
            return True
        if word not in _BETWEEN:
            return False
    return False


def _f1(gold: list[str], said: list[str]) -> float:
    shared = sum((Counter(gold) & Counter(said)).values())
    return 2 * shared / (len(gold) + len(said)) if shared else 0.0
