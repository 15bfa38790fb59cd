"""Scores that are more than right or wrong, at the edge of what floats hold."""

from __future__ import annotations

import math

import pytest

from forgetmap.map.graded import score_change
from forgetmap.pairing.pairs import ScoreSums


@pytest.mark.parametrize("score", [1e100, 1e154, 2e186, 1e308])
def test_scores_of_any_size_have_an_interval_or_none(score: float) -> None:
    """Found by fuzzing: the square of such a score is beyond all floats."""
    square = score * score
    fell = ScoreSums(2, score, 0.0, score, square, 0.0, 0.0, 0.0, score)
    change = score_change({"essays": fell}, ["essays"])
    assert change is not None
    assert change.lost.low <= change.lost.value <= change.lost.high <= score
    assert change.gained.value == 0.0


def test_scores_that_cannot_be_added_have_no_mean() -> None:
    sums = ScoreSums(2, math.inf, 0.0, math.inf, math.inf, 0.0, 0.0, 0.0, 1e308)
    assert score_change({"essays": sums}, ["essays"]) is None
