"""What every scorer shares: values of missing answers, and the loop over items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps

from forgetmap.answers.items import Item, Value
from forgetmap.answers.text import looked_at
from forgetmap.base.errors import InputError

EMPTY = Value(0.0, "empty")
"""A missing answer is wrong, and its status says so; it never counts as well behaved."""
NO_ANSWER = Value(0.0, "no_answer")
NOT_ASKED = Value(None, "not_applicable", "not asked of this item")
"""For a metric that the item's data say nothing about."""

OneAnswer = Callable[[Item, str], Value | Sequence[Value]]
Scorer = Callable[[Sequence[Item], Sequence[str]], dict[str, list[Value]]]


def per_answer(
    metrics: Sequence[str], empty: Sequence[Value] | None = None
) -> Callable[[OneAnswer], Scorer]:
    """Turn a function that scores one answer into a scorer of many.

    The function gets an item and a text that is not empty. It returns one value per metric, in the
    order of `metrics`, or a single value that holds for all of them. `empty` has the values of an
    empty answer; by default they are 0 with the status `empty`.
    """
    nothing = empty or [EMPTY] * len(metrics)

    def scorer(score_one: OneAnswer) -> Scorer:
        @wraps(score_one)
        def score(items: Sequence[Item], responses: Sequence[str]) -> dict[str, list[Value]]:
            check_lengths(items, responses)
            rows = []
            for item, response in zip(items, responses, strict=True):
                text = looked_at(response)
                try:
                    row = score_one(item, text) if text.strip() else nothing
                except (RecursionError, MemoryError):  # nested beyond all reason
                    row = NO_ANSWER
                rows.append([row] * len(metrics) if isinstance(row, Value) else row)
            return {name: [row[index] for row in rows] for index, name in enumerate(metrics)}

        return score

    return scorer


def bad_gold(reason: object, most: int = 80) -> Value:
    """The value where the item itself is wrong, cut to what people read."""
    return Value(None, "invalid_gold", str(reason)[:most])


def check_lengths(items: Sequence[Item], responses: Sequence[str]) -> None:
    """Items and responses must go together, one by one."""
    if len(items) != len(responses):
        raise InputError(f"{len(items)} items but {len(responses)} responses; they must be as many")


def right_or_wrong(right: bool, answer: str) -> Value:
    """A value of 1 or 0, with the answer cut to what people read."""
    return Value(float(right), answer=answer[:200])
