"""What a scorer gets and gives: an item with what is known about it, and a value with its status.

An item carries everything its scorer needs, so that scoring never looks anything up: neither a data
set nor a prompt's text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

FAILURES = (
    *("no_answer", "empty", "invalid_gold", "not_applicable"),
    *("judge_failed", "judge_unparsable", "error"),
)
"""Why there is no number; `not_applicable`: the item does not ask for what the metric measures.

A failed value is never a number; `no_answer` may count as wrong (0.0) where not answering is a
fault of the model, and then carries that number.
"""


@dataclass(frozen=True, slots=True)
class Item:
    """One question of one task, as its data set gives it; fields a task does not use are empty."""

    task: str
    ref: str
    """The data set's own id."""
    prompt: str | Sequence[Any] = ""
    """Text, or the turns of a conversation."""
    gold: Any = None
    choices: Sequence[str] = ()
    context: str | Sequence[str] = ""
    """The passage or passages that the answer must rest on."""
    schema: Mapping[str, Any] | None = None
    """JSON Schema that the answer must satisfy."""
    tools: Sequence[Mapping[str, Any]] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    """What else the scorer needs: instruction ids and arguments, language, depth, first turn."""


@dataclass(frozen=True, slots=True)
class Value:
    """The value of one metric for one answer.

    Example:
        >>> Value(1.0, answer="B").status
        'ok'
        >>> Value(None, "no_answer").value is None
        True
    """

    value: float | None
    status: str = "ok"
    answer: str | None = None
    """What was extracted from the response, for people to read."""

    def __post_init__(self) -> None:
        if self.value is not None and not math.isfinite(self.value):
            raise ValueError(f"a value must be finite or None, not {self.value}")
        if self.status != "ok" and self.status not in FAILURES:
            raise ValueError(f"status {self.status!r}: known are ok, {', '.join(FAILURES)}")
        if self.value is None and self.status == "ok":
            raise ValueError("a value that is missing needs a status that says why")
