"""Outcome patterns: all that the statistics need to know about any number of items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


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
    """(patterns, sums): sums over the items with option probabilities, named by `MOMENTS`."""

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

    def moment(self, name: str) -> Floats:
        """One column of `moments`, by its name in `MOMENTS`."""
        column: Floats = self.moments[:, MOMENTS.index(name)]
        return column


_VALUES = ("lost", "firm_lost", "gained", "firm_gained")
MOMENTS = (
    *("items", "controlled", "p", "q", "pp", "qq", "pq"),
    *(f"{value}{power}" for value in _VALUES for power in ("", "^2", "^3", "*p", "*q")),
)
"""Names of the sums over items with option probabilities.

`p` and `q` are the right option's probability before and after, `lost` is max(p - q, 0), `gained`
max(q - p, 0). `firm_lost` and `firm_gained` are these less what reshuffled guessing could explain
(`stats.lost.churn`), for the `controlled` items; for the others they are the same."""


def moments_of(p: Floats, q: Floats, churn: Floats) -> Floats:
    """The sums of `MOMENTS` over some items; a churn that is not known is NaN.

    Example:
        >>> sums = moments_of(np.array([0.9, 0.2]), np.array([0.4, 0.3]), np.array([0.1, np.nan]))
        >>> dict(zip(MOMENTS, sums.round(3).tolist()))["firm_lost"]
        0.4
    """
    known = np.where(np.isnan(churn), 0.0, churn)
    lost, gained = np.maximum(p - q, 0), np.maximum(q - p, 0)
    values = (lost, lost - known, gained, gained - known)
    columns = [np.ones_like(p), ~np.isnan(churn), p, q, p * p, q * q, p * q]
    for value in values:
        columns += [value, value**2, value**3, value * p, value * q]
    return np.array([column.sum() for column in columns], float)
