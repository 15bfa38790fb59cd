"""What a remedy keeps and learns: the outcomes of a sweep, its front, and the pick in a budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, TypeVar

from forgetmap.base.model import Frozen
from forgetmap.map.result import Cell, ForgettingMap, Verdict
from forgetmap.stats.estimate import Estimate, Range


class NewSkill(Frozen):
    """The new tasks: the accuracy of the model before, and of this one."""

    before: float
    after: float
    change: Estimate

    @classmethod
    def of(cls, cell: Cell | None, *, same: bool = False) -> Self | None:
        """What a map says of the new tasks; `same` for a model beside itself."""
        if cell is None:
            return None
        nothing = Estimate(value=0.0, low=0.0, high=0.0)  # the same answers: nothing to estimate
        change = nothing if same else cell.change
        return cls(before=cell.accuracy_before, after=cell.accuracy_after, change=change)


class Outcome(Frozen):
    """What one model of a sweep loses and gains against the model before."""

    lost: Range
    """Of the old tasks, against the model before."""
    gained: Range | None
    """The same way round; None in sweeps of version 1 that had new tasks."""
    new: NewSkill | None
    """None where no task is new."""
    verdict: Verdict
    """Against the model before, on the old tasks."""
    is_pareto: bool = False
    """No other point loses less and wins more."""

    @property
    def won(self) -> float:
        """What speaks for a point: the new skill, or what it gained where no task is new."""
        if self.new is not None:
            return self.new.change.value
        return self.gained.high_end if self.gained is not None else 0.0

    def is_sure(self, budget: float) -> bool:
        """Whether the most that it can have lost is within a budget, at the end of the interval."""
        return self.lost.high <= budget


AnyOutcome = TypeVar("AnyOutcome", bound=Outcome)


def outcome_fields(result: ForgettingMap, *, same: bool = False) -> dict[str, Any]:
    """What a map against the model before says of a point."""
    old = result.old
    return {
        "lost": old.lost,
        "gained": old.gained,
        "new": NewSkill.of(result.new, same=same),
        "verdict": old.verdict,
    }


def best_within(points: Sequence[AnyOutcome], budget: float) -> AnyOutcome | None:
    """The point that wins most among those that lose no more than the budget.

    Points that are surely within it go first: the most that can be lost is, at the high end of its
    95 % interval. Without such points, those count that are within it by the estimate alone, which
    is not sure. Of equal wins the one that loses less is taken.
    """
    sure = [point for point in points if point.is_sure(budget)]
    likely = [point for point in points if point.lost.high_end <= budget]
    return max(sure or likely, key=lambda point: (point.won, -point.lost.high_end), default=None)


def mark_pareto(points: Sequence[AnyOutcome]) -> list[AnyOutcome]:
    """Mark the points that no other beats, losing as little and winning as much, and one better.

    It goes by the most that can be lost, so that gains never count against losses.
    """
    places = [(-point.lost.high_end, point.won) for point in points]
    return [
        point.model_copy(
            update={
                "is_pareto": not any(
                    other != place and other[0] >= place[0] and other[1] >= place[1]
                    for other in places
                )
            }
        )
        for point, place in zip(points, places, strict=True)
    ]
