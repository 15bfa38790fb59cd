"""Outcome patterns: all that the statistics need to know about any number of items."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum, auto
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Moment(IntEnum):
    """Columns of `Patterns.moments`: sums over the items with a gold probability in both logs.

    Of such an item, p is the probability of the right option before and q after (means over its
    repeats), `lost` is max(p - q, 0) and `gained` is max(q - p, 0). `churn` is what reshuffled
    guessing can explain of either. It is known where both logs give the probabilities of the same
    options, three or more, with the same one right. `firm_lost` is lost - churn and `firm_gained`
    is gained - churn; where churn is not known they are `lost` and `gained`. For each of these four
    values there are the sums of its first three powers.
    """

    ITEMS = 0
    """Items with a gold probability in both logs: the number of items behind all other columns."""
    CHURN_KNOWN = auto()
    P = auto()
    Q = auto()
    LOST = auto()
    LOST_2 = auto()
    LOST_3 = auto()
    FIRM_LOST = auto()
    FIRM_LOST_2 = auto()
    FIRM_LOST_3 = auto()
    GAINED = auto()
    GAINED_2 = auto()
    GAINED_3 = auto()
    FIRM_GAINED = auto()
    FIRM_GAINED_2 = auto()
    FIRM_GAINED_3 = auto()


def _factors(moment: Moment) -> tuple[str, ...]:
    """The values whose product a moment sums up, from its name: LOST_2 is lost times lost.

    Example:
        >>> _factors(Moment.P), _factors(Moment.GAINED_3), _factors(Moment.FIRM_LOST)
        (('p',), ('gained', 'gained', 'gained'), ('firm_lost',))
    """
    value, _, power = moment.name.lower().rpartition("_")
    return (value,) * int(power) if power.isdecimal() else (moment.name.lower(),)


FACTORS = {moment: _factors(moment) for moment in Moment if moment >= Moment.P}
"""The values of an item whose product each moment sums up."""
MOMENTS = len(Moment)


def item_moments(p: Floats, q: Floats, churn: Floats | None = None) -> Floats:
    """What each item adds to the moments, (items, MOMENTS); NaN in `churn` where it is not known.

    Pairing sums the same up in SQL. This serves items that were never in a log.

    Example:
        >>> rows = item_moments(np.array([0.75, 0.5]), np.array([0.25, 1.0]))
        >>> rows[:, [Moment.ITEMS, Moment.CHURN_KNOWN, Moment.LOST, Moment.GAINED_2]].tolist()
        [[1.0, 0.0, 0.5, 0.0], [1.0, 0.0, 0.0, 0.25]]
    """
    known = np.full(len(p), np.nan) if churn is None else churn
    lost, gained, guessed = np.maximum(p - q, 0), np.maximum(q - p, 0), np.nan_to_num(known)
    values = {"p": p, "q": q, "lost": lost, "gained": gained}
    values |= {"firm_lost": lost - guessed, "firm_gained": gained - guessed}
    rows = np.ones((len(p), MOMENTS))
    rows[:, Moment.CHURN_KNOWN] = ~np.isnan(known)
    for moment, factors in FACTORS.items():
        rows[:, moment] = np.prod([values[name] for name in factors], axis=0)
    return rows


def guessing_churn(before: Floats, after: Floats, right: NDArray[np.int64]) -> Floats:
    """How much of what an item lost or gained reshuffled guessing can explain.

    `before` and `after` are the probabilities of its options, (items, options), three options or
    more; `right` is the place of the right one. The wrong options are the control: among themselves
    they are exchangeable with a right option that is not known.

    Example:
        >>> swapped = np.array([[0.25, 0.75, 0.0]]), np.array([[0.25, 0.0, 0.75]])
        >>> guessing_churn(*swapped, np.array([0])).tolist()
        [0.5625]
    """
    k = before.shape[1]
    wrong = np.arange(k) != right[:, None]
    masses = [(side * wrong).sum(axis=1) for side in (before, after)]
    u, v = (
        side * wrong / np.where(mass > 0, mass, 1)[:, None]
        for side, mass in zip((before, after), masses, strict=True)
    )
    least = np.minimum(*masses)
    moved = np.where(least > 0, np.maximum(u - v, 0).sum(axis=1), 0)
    churn: Floats = least * k / (k - 1) * moved / (k - 1)
    return churn


class Patterns(NamedTuple):
    """A histogram of outcome patterns: parallel arrays, one entry per distinct pattern.

    An entry such as runs 3, right 2 before and runs 3, right 0 after, n = 17 says that 17 items
    were answered right in two of three runs before and in none of three after.
    """

    task: NDArray[np.str_]
    k: Floats
    """Options shown; infinity for open answers."""
    bucket: Floats
    """Cluster bucket, -1 where the log has no clusters."""
    runs_before: Floats
    right_before: Floats
    runs_after: Floats
    right_after: Floats
    n: Floats
    """Items that show the pattern."""
    moments: Floats
    """(patterns, MOMENTS): sums over the items with option probabilities, see `Moment`."""

    def where(self, mask: NDArray[np.bool_] | NDArray[np.intp]) -> Patterns:
        """The patterns of a subset."""
        return Patterns(*(column[mask] for column in self))  # type: ignore[arg-type]

    @staticmethod
    def concatenate(parts: Sequence[Patterns]) -> Patterns:
        """Pool the items of several parts."""
        return Patterns(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    @property
    def tasks(self) -> list[str]:
        """Names of the tasks, in alphabetical order."""
        return [str(name) for name in np.unique(self.task)]

    @property
    def change(self) -> Floats:
        """Change of accuracy of an item with each pattern."""
        result: Floats = self.right_after / self.runs_after - self.right_before / self.runs_before
        return result

    def moment(self, column: Moment) -> Floats:
        """One of the sums over option probabilities."""
        sums: Floats = self.moments[:, column]
        return sums

    def powers(self, column: Moment) -> list[Floats]:
        """The sums of a value's first three powers; `column` is the first."""
        return [self.moments[:, column + power] for power in range(3)]
