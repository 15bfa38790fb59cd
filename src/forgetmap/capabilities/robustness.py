"""Robustness: does a model answer the same when a question is put in other words?

An item's `meta.original` names the item it rephrases. Answers are compared per original item, so
that a model which is wrong both times does not count as one that wavers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from forgetmap.answers.items import Value

METRICS = ("agreement", "both_right", "worst_of_k")
VERSION = 1
_RIGHT = 0.5
"""From here on a value of the compared metric counts as right."""


class Outcome(NamedTuple):
    """One scored answer: what was extracted, and its value."""

    ref: str
    repeat: int
    value: Value


def pair_with_originals(
    originals: Sequence[Outcome], rephrased: Sequence[Outcome], origins: Mapping[str, str]
) -> dict[tuple[str, int], dict[str, Value]]:
    """Compare each original item's answer with those to its rephrasings.

    `origins` maps the ref of a rephrasing to that of its original. Returns, by (original's ref,
    repeat): `agreement` (share of rephrasings that got the same answer), `both_right` (share with
    both right), `worst_of_k` (the lowest value, original included). A rephrasing without an
    extracted answer agrees with nothing.

    Example:
        >>> one = [Outcome("q", 0, Value(1.0, answer="B"))]
        >>> two = [Outcome("q-1", 0, Value(1.0, answer="b")),
        ...        Outcome("q-2", 0, Value(0.0, answer="C"))]
        >>> pairs = pair_with_originals(one, two, {"q-1": "q", "q-2": "q"})
        >>> {name: value.value for name, value in pairs["q", 0].items()}
        {'agreement': 0.5, 'both_right': 0.5, 'worst_of_k': 0.0}
    """
    by_original: dict[tuple[str, int], list[Value]] = defaultdict(list)
    for outcome in rephrased:
        if outcome.ref in origins:
            by_original[origins[outcome.ref], outcome.repeat].append(outcome.value)
    known = {(outcome.ref, outcome.repeat): outcome.value for outcome in originals}
    return {key: _compare(known.get(key), values) for key, values in sorted(by_original.items())}


def _compare(original: Value | None, rephrased: Sequence[Value]) -> dict[str, Value]:
    if original is None:  # the original is not among the answers
        return dict.fromkeys(METRICS, Value(None, "invalid_gold"))
    failed = next((value for value in (original, *rephrased) if value.value is None), None)
    if failed is not None:
        return dict.fromkeys(METRICS, Value(None, failed.status))
    values = [value.value or 0.0 for value in rephrased]
    first = original.value or 0.0
    said = _said(original)
    same = [said is not None and _said(value) == said for value in rephrased]
    right = [first >= _RIGHT and value >= _RIGHT for value in values]
    status = "ok" if said is not None else "no_answer"
    return {
        "agreement": Value(sum(same) / len(same), status, original.answer),
        "both_right": Value(sum(right) / len(right), answer=original.answer),
        "worst_of_k": Value(min(first, *values), answer=original.answer),
    }


def _said(value: Value) -> str | None:
    """The extracted answer in a form to compare; None where none was found."""
    if value.answer is None or value.status != "ok":
        return None
    return " ".join(value.answer.casefold().split()) or None
