"""Whether two ways to run one model agree: the same items, the log-likelihood of every option."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from statistics import median

from forgetmap.base.errors import InputError
from forgetmap.evaluate.models import Model
from forgetmap.evaluate.prompts import Asking, Request, make_request
from forgetmap.evaluate.run import Questions, load_suite

SAME = 1e-3
"""Nats: what sums in another order can make of float32."""
CLOSE = 0.5
"""Nats: what half precision may do. The number is a choice, not a measurement; another text, a lost
first token or a shift by one token is apart by several, as 8 bits can be (benchmarks/parity.md)."""


@dataclass(frozen=True)
class Parity:
    """How far two ways are apart."""

    items: int
    apart: float
    """Largest difference between two log-likelihoods of one option, in nats."""
    middle: float
    """The median of these differences."""
    changed: int
    """Items whose best option is another one."""
    lead: float
    """How far ahead the best option was, at most, where it changed; in nats."""

    @property
    def verdict(self) -> str:
        """`same`, `close` or `differs`."""
        if self.apart <= SAME:
            return "same"
        return "close" if max(self.lead, self.middle) <= CLOSE else "differs"

    def __str__(self) -> str:
        """One line."""
        told = f"{self.items} items, options {self.apart:.2g} nats apart at most "
        told += f"(median {self.middle:.2g}), {self.changed} changed answers"
        told += f" (the best led by {self.lead:.2f} nats at most)" if self.changed else ""
        return f"{self.verdict}: {told}"


def parity(reference: Sequence[Sequence[float]], other: Sequence[Sequence[float]]) -> Parity:
    """Compare two lists of items, each with the log-likelihoods of its options.

    Example:
        >>> print(parity([[-1.0, -2.0], [-3.0, -1.0]], [[-1.1, -2.0], [-3.0, -1.0]]))
        close: 2 items, options 0.1 nats apart at most (median 0), 0 changed answers
    """
    pairs = list(zip(reference, other, strict=True))
    gaps = [abs(a - b) for one, two in pairs for a, b in zip(one, two, strict=True)]
    moved = [one for one, two in pairs if _best(one) != _best(two)]
    leads = [sorted(one)[-1] - sorted(one)[-2] for one in moved]
    return Parity(len(pairs), max(gaps), median(gaps), len(moved), max(leads, default=0.0))


def _best(likelihoods: Sequence[float]) -> int:
    return max(range(len(likelihoods)), key=likelihoods.__getitem__)


def likelihoods(model: Model, requests: Sequence[Request]) -> list[tuple[float, ...]]:
    """The log-likelihoods of the options of each request.

    Raises:
        InputError: If the model gives none for a request.
    """
    found: dict[int, tuple[float, ...]] = {}
    for group in model.plan(requests):
        replies = model.run([requests[place] for place in group.places], group.hints)
        for place, reply in zip(group.places, replies, strict=True):
            if reply.status != "ok":
                raise InputError(f"{model.name}: {reply.note}")
            found[place] = reply.likelihoods
    return [found[place] for place in range(len(requests))]


def options_of(suite: Questions, count: int, asking: Asking) -> list[Request]:
    """The first questions with options, one task after the other."""
    asked = [
        [make_request(task, one, asking) for one in task.questions()[:count] if one.choices]
        for task in load_suite(suite, asking.seed).tasks
    ]
    mixed = (one for one in chain.from_iterable(zip_longest(*asked)) if one and one.options)
    return list(islice(mixed, count))
