"""Life lines: what became of every item on the way from the root to a checkpoint.

All rules work on states: 1 known, 0 not known, -1 missing. Missing is never taken for wrong: an
item that is missing at any stage of a path is `incomplete` on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import special

from forgetmap.stats.estimate import Estimate

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
States = NDArray[np.int8]

Kind = Literal[
    "kept", "lost for good", "recovered", "oscillating", "learned", "learned and lost",
    "never known", "incomplete",
]  # fmt: skip
KINDS: tuple[Kind, ...] = get_args(Kind)
MEANINGS: dict[Kind, str] = {
    "kept": "known at every stage",
    "lost for good": "known at the start, lost at one stage, never known again",
    "recovered": "known at the start, lost at one stage, known again from a later one on",
    "oscillating": "changed three times or more",
    "learned": "not known at the start, known from one stage on",
    "learned and lost": "not known at the start, learned at one stage, lost again for good",
    "never known": "known at no stage",
    "incomplete": "missing or not scored at one stage or more; nothing is assumed about it",
}
NEVER = -1
"""Instead of a stage: it did not happen."""


@dataclass(frozen=True)
class Lives:
    """The life lines of all items along one path; arrays are one entry per item.

    Example:
        >>> states = np.array([[1, 1, 1, 0], [1, 0, 0, 1], [1, 0, 1, -1]], np.int8)
        >>> lives = Lives(states)
        >>> [lives.kind_of(item) for item in range(4)]
        ['kept', 'lost for good', 'recovered', 'incomplete']
        >>> lives.first_lost.tolist(), lives.last_learned.tolist()
        ([-1, 1, 1, -1], [-1, -1, 2, -1])
    """

    states: States
    """(stages, items)"""

    @cached_property
    def present(self) -> Bools:
        """Items that at least one stage has."""
        return np.asarray((self.states >= 0).any(axis=0))

    @cached_property
    def complete(self) -> Bools:
        """Items that every stage has, with a score."""
        return np.asarray((self.states >= 0).all(axis=0))

    @cached_property
    def _steps(self) -> States:
        """Changes from stage to stage; none for incomplete items."""
        return np.where(self.complete, np.diff(self.states, axis=0), np.int8(0))

    @cached_property
    def times_forgotten(self) -> Ints:
        """How often a known item was lost."""
        return np.asarray((self._steps < 0).sum(axis=0))

    @cached_property
    def times_flipped(self) -> Ints:
        """How often an item changed, either way."""
        return np.asarray((self._steps != 0).sum(axis=0))

    @cached_property
    def first_learned(self) -> Ints:
        """First stage at which an item is known."""
        return _first((self.states == 1) & self.complete)

    @cached_property
    def first_lost(self) -> Ints:
        """First stage at which an item that was known is not."""
        return _after(_first(self._steps < 0))

    @cached_property
    def last_learned(self) -> Ints:
        """Last stage at which an item that was not known is known."""
        last = _first((self._steps > 0)[::-1])
        return np.where(last == NEVER, NEVER, len(self._steps) - last)

    @cached_property
    def kinds(self) -> NDArray[np.int8]:
        """The kind of every item, as its place in `KINDS`; only `present` items mean anything."""
        flips, knew = self.times_flipped, self.states[0] == 1
        rules: list[tuple[Kind, Bools]] = [
            ("incomplete", ~self.complete),
            ("oscillating", flips > 2),
            ("kept", knew & (flips == 0)),
            ("lost for good", knew & (flips == 1)),
            ("recovered", knew & (flips == 2)),
            ("never known", ~knew & (flips == 0)),
            ("learned", ~knew & (flips == 1)),
            ("learned and lost", ~knew & (flips == 2)),
        ]
        places = [np.int8(KINDS.index(kind)) for kind, _ in rules]
        return np.select([mask for _, mask in rules], places)

    def kind_of(self, item: int) -> Kind:
        """The kind of one item."""
        return KINDS[int(self.kinds[item])]

    def of_kind(self, kind: Kind) -> Ints:
        """The items of one kind."""
        return np.flatnonzero(self.present & (self.kinds == KINDS.index(kind)))

    def fates(self) -> Iterator[tuple[Kind, int, int, int]]:
        """Every (kind, stage first lost, stage last learned) that occurs, with its item count."""
        items = np.flatnonzero(self.present)
        table = np.stack([self.kinds, self.first_lost, self.last_learned])[:, items]
        codes, counts = np.unique(table, axis=1, return_counts=True)
        for (kind, lost, back), count in zip(codes.T.tolist(), counts.tolist(), strict=True):
            yield KINDS[kind], lost, back, count

    def lost_before(self, stage: int) -> Bools:
        """Items that were lost at some stage before this one."""
        return np.asarray((self._steps[: stage - 1] < 0).any(axis=0))


def _first(mask: Bools) -> Ints:
    """The first stage where the mask holds, `NEVER` where it does not."""
    return np.where(mask.any(axis=0), mask.argmax(axis=0), NEVER)


def _after(step: Ints) -> Ints:
    """The stage that a step leads to."""
    return np.where(step == NEVER, NEVER, step + 1)


def share(hits: Bools, clusters: Ints | None = None) -> Estimate | None:
    """The share of items that a mask hits, with Jeffreys' 95 % interval; None without items.

    Items of one cluster stand or fall together: where they do, the interval is that of fewer items
    (as many as would give the variance that the clusters show).

    Example:
        >>> estimate = share(np.array([True] * 8 + [False] * 2))
        >>> estimate.value, round(estimate.low, 3), round(estimate.high, 3)
        (0.8, 0.497, 0.956)
    """
    n = len(hits)
    if n == 0:
        return None
    value = float(hits.mean())
    units = float(n)
    if clusters is not None and 0 < value < 1:
        _, index = np.unique(clusters, return_inverse=True)
        spread = np.bincount(index, weights=hits - value)
        groups = len(spread)
        if groups > 1:
            variance = groups / (groups - 1) * float((spread**2).sum()) / n**2
            units = min(units, value * (1 - value) / variance)
    ends = special.betaincinv(value * units + 0.5, (1 - value) * units + 0.5, [0.025, 0.975])
    low, high = (float(end) for end in ends)
    return Estimate(value=value, low=0.0 if value == 0 else low, high=1.0 if value == 1 else high)
