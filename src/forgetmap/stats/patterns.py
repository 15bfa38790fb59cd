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
    soft: Floats
    """(patterns, 7): items with option probabilities, then the sums of the first three powers of
    the items' soft forgetting, then of their soft transfer."""

    def where(self, mask: NDArray[np.bool_]) -> Patterns:
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
