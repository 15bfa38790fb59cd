"""What every scorer shares: values of missing answers, and a loop over items."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from forgetmap.answers.items import Item, Value
from forgetmap.answers.text import looked_at
from forgetmap.base.errors import InputError

EMPTY = Value(0.0, "empty")
"""An answer that is not there is wrong, and says so; it never counts as well behaved."""


NO_ANSWER = Value(0.0, "no_answer")


NOT_ASKED = Value(None, "not_applicable", "not asked of this item")
"""For a metric that the item's data say nothing about."""


OneItem = Callable[[Item, str], Sequence[Value]]


def score_each(
    metrics: Sequence[str],
    items: Sequence[Item],
    responses: Sequence[str],
    one: OneItem,
    empty: Sequence[Value] | None = None,
) -> dict[str, list[Value]]:
    """Apply a scorer of one answer to all.

    Args:
        metrics: Names of what `one` yields, in its order.
        items: What was asked.
        responses: What was answered, one text per item.
        one: Scores one answer that is not empty.
        empty: Values of an empty answer, one per metric; by default 0 with the status `empty`.
    """
    check_lengths(items, responses)
    nothing = empty or [EMPTY] * len(metrics)
    rows = []
    for item, response in zip(items, responses, strict=True):
        text = looked_at(response)
        try:
            rows.append(one(item, text) if text.strip() else nothing)
        except (RecursionError, MemoryError):  # nested beyond all reason: no answer to the question
            rows.append([NO_ANSWER] * len(metrics))
    return {name: [row[index] for row in rows] for index, name in enumerate(metrics)}


def check_lengths(items: Sequence[Item], responses: Sequence[str]) -> None:
    """Items and responses must go together, one by one."""
    if len(items) != len(responses):
        raise InputError(f"{len(items)} items but {len(responses)} responses; they must be as many")


def right_or_wrong(right: bool, answer: str) -> Value:
    """A value of 1 or 0, with the answer cut to what people read."""
    return Value(float(right), answer=answer[:200])
