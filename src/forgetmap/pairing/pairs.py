"""What comes of pairing two logs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from forgetmap.base.errors import InputError
from forgetmap.samples.comparability import Coverage
from forgetmap.stats.patterns import Patterns

if TYPE_CHECKING:
    import pyarrow as pa

    from forgetmap.pairing.two_logs import LogPair


@dataclass(frozen=True)
class Pairs:
    """Two logs, paired: outcome patterns, and what could not be paired.

    Example:
        >>> import forgetmap
        >>> from forgetmap.map.example import example_logs
        >>> pairs = forgetmap.pair(*map(forgetmap.read, example_logs()))
        >>> pairs.coverage.matched, pairs.metrics["airports"]
        (4070, 'acc')
    """

    patterns: Patterns
    metrics: dict[str, str] = field(default_factory=dict)
    coverage: Coverage = field(default_factory=Coverage)
    conflicts: list[tuple[str, str]] = field(default_factory=list)
    """(task, the harness's id) of items whose content differs between the logs."""
    warnings: list[str] = field(default_factory=list)
    prompts: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Per task whose prompts are not all the same: items with another prompt, items paired."""
    scores: dict[str, ScoreSums] = field(default_factory=dict)
    """Per task whose scores are more than right or wrong: what they sum up to."""
    thresholds: dict[str, float] = field(default_factory=dict)
    """Per task whose scale is not that from 0 to 1: the score from which an answer is right."""
    source: LogPair | None = field(default=None, repr=False)

    def flips(self) -> Iterable[pa.RecordBatch]:
        """Stream the items whose outcome changed, with both answers, always in the same order.

        The texts are those of a run that shows the change: for a forgotten item a right answer
        before and a wrong one after.
        """
        return self._items.flips()

    def unchanged(self) -> Iterable[pa.RecordBatch]:
        """Stream the compared items whose outcome stayed the same, without their text."""
        return self._items.unchanged()

    def outcomes(self) -> pa.Table:
        """Every compared item, one row each, without text, in the order of task and key.

        `fall` is how far its chance of being right fell: of the right option's probability where
        both logs have it, else of its share of right runs. `knew` and `knows` say whether more
        than half of its runs were right before and after, `right_after` the share of its runs
        that are right after. `chance` is the chance of being right before, from which it fell, and
        `k` the number of options.
        """
        return self._items.outcomes()

    @property
    def _items(self) -> LogPair:
        if self.source is None:
            raise InputError("these pairs were not made from logs; there are no items to list")
        return self.source

    def churn(self) -> dict[str, int] | None:
        """Items by task that are wrong in every run on both sides, with no answer in common.

        None where the logs hold no answers.
        """
        return self.source.churn() if self.source is not None else None

    def targets(self, tasks: Iterable[str]) -> list[str]:
        """Right answers to some tasks, each once, so far as the logs hold them."""
        return self.source.targets(tasks) if self.source is not None else []


class ScoreSums(NamedTuple):
    """Sums over the items of a task of their mean scores, and of how far these fell or rose."""

    n: int
    before: float
    after: float
    fall: float
    fall_2: float
    """Of the squares."""
    rise: float
    rise_2: float
    low: float
    """Where the scale begins."""
    high: float
