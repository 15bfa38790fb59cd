"""Losses at equal learning: curves with known truth, and what must not be said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from forgetmap.base.errors import InputError
from forgetmap.study.build import run_study
from forgetmap.study.file import Study
from forgetmap.study.trade_off import by_start, trade_off
from forgetmap.study.units import find_units
from study_logs import made_pair

if TYPE_CHECKING:
    from pathlib import Path

    from forgetmap.study.result import AtLearning, StudiedPair, TradeOff


def found(pairs: list[StudiedPair], curve: str | None = None) -> TradeOff:
    return trade_off(pairs, find_units(pairs), curve)


def pair(name: str, method: str, learned: float, lost: float, **more: float | str) -> StudiedPair:
    return made_pair(name, {"method": method, **more}, lost=lost, learned=learned)


def at(result: TradeOff, level: float) -> dict[object, AtLearning]:
    (row,) = [row for row in result.equal if row.learned == pytest.approx(level)]
    return {method.value: method for method in row.methods}


def test_a_method_that_learned_nothing_does_not_win() -> None:
    pairs = [pair("lazy", "lazy", 0.0, 0.0)]
    pairs += [pair(f"{m}{x}", m, x, x * k) for m, k in (("a", 0.1), ("b", 0.3)) for x in (0.2, 0.8)]
    result = found(pairs)
    assert result.learned_by == "new tasks"
    assert result.attribute == "method"
    assert result.front == ["lazy", "a0.2", "a0.8"]
    assert result.fronts == {"before": ["lazy", "a0.2", "a0.8"]}
    rows = at(result, 0.8)
    assert (rows["lazy"].lost, rows["lazy"].why) == (None, "not reached")
    assert rows["a"].lost == pytest.approx(0.08)
    assert rows["b"].lost == pytest.approx(0.24)
    assert [row.learned for row in result.equal] == pytest.approx([0.2, 0.8])


def test_losses_are_interpolated_and_never_extrapolated() -> None:
    pairs = [pair("a1", "a", 0.2, 0.02), pair("a2", "a", 0.6, 0.10)]
    pairs += [pair("b1", "b", 0.4, 0.05), pair("b2", "b", 0.9, 0.06)]
    result = found(pairs)
    assert [row.learned for row in result.equal] == pytest.approx([0.4, 0.6])
    assert at(result, 0.4)["a"].lost == pytest.approx(0.06)
    assert at(result, 0.6)["b"].lost == pytest.approx(0.054)
    assert at(result, 0.6)["b"].interval is None
    assert result.unit.startswith("none")


def test_a_curve_that_falls_is_averaged() -> None:
    pairs = [pair("a1", "a", 0.2, 0.10), pair("a2", "a", 0.4, 0.04), pair("a3", "a", 0.6, 0.20)]
    pairs += [pair("b1", "b", 0.1, 0.0), pair("b2", "b", 0.7, 0.3)]
    curve = found(pairs).curves[0]
    assert curve.smoothed
    assert [lost for _, lost in curve.fitted] == pytest.approx([0.07, 0.07, 0.20])
    assert [point.lost for point in curve.points] == [0.10, 0.04, 0.20]


def test_trainings_on_other_tasks_share_no_curve() -> None:
    pairs = [
        made_pair(f"{task}-{name}", {"method": name}, lost, learned=learned).model_copy(
            update={"new_tasks": [task]}
        )
        for task, more in (("sums", 0.0), ("facts", 0.3))
        for name, lost, learned in (("a", 0.1, 0.2 + more), ("b", 0.2, 0.2 + more))
    ]
    result = found(pairs)
    assert [(level.start, round(level.learned, 6)) for level in result.equal] == [
        ("before: sums", 0.2),
        ("before: facts", 0.5),
    ]
    assert all(len(curve.points) == 1 for curve in result.curves)


def test_two_logs_of_one_model_are_two_starts_and_named_apart() -> None:
    pairs = [
        pair(f"{log}-{name}", name, 0.2, 0.1).model_copy(update={"before_log": log})
        for log in ("small/before", "full/before")
        for name in "ab"
    ]
    pairs.append(pair("other-a", "a", 0.2, 0.1).model_copy(update={"before": "other"}))
    assert by_start(pairs) == {
        "before (small)": [0, 1], "before (full)": [2, 3], "other": [4],
    }  # fmt: skip


def test_a_training_of_another_model_keeps_none_off_the_front() -> None:
    pairs = [pair("weak", "a", 0.2, 0.3), pair("weaker", "b", 0.1, 0.4)]
    other = {"before": "other", "before_log": "other.parquet"}
    pairs.append(pair("strong", "a", 0.5, 0.1).model_copy(update=other))
    result = found(pairs)
    assert result.front == ["strong"]
    assert result.fronts == {"before": ["weak"], "other": ["strong"]}
    alike = [one.model_copy(update={"attributes": {}}) for one in pairs]
    assert found(alike).fronts == {"": ["strong"]}, "without curves, all are rivals"


def test_nothing_in_common_is_told() -> None:
    apart = [pair("a1", "a", 0.1, 0.1), pair("b1", "b", 0.5, 0.1)]
    assert "no two curves" in str(found(apart).note)
    assert not found(apart).equal
    without = [made_pair("x", {}, lost=0.1, learned=0.1)]
    assert "no pair has method" in str(found(without).note)
    assert found(without).front == ["x"]


def test_gains_count_as_learning_without_new_tasks() -> None:
    pairs = [made_pair(n, {"method": n}, lost=0.1, gained=0.2) for n in "ab"]
    assert found(pairs).learned_by == "gained"
    assert [row.learned for row in found(pairs).equal] == pytest.approx([0.2])


def test_the_study_names_what_tells_the_curves_apart(tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    file.write_text("curve: recipe\npairs:\n- {before: a, after: b, recipe: x}\n")
    assert Study.load(file).curve == "recipe"
    file.write_text("curve: recip\npairs:\n- {before: a, after: b, recipe: x}\n")
    with pytest.raises(InputError, match=r"no pair has the attribute 'recip'.*'recipe'"):
        run_study(file)


def test_intervals_over_trainings_cover() -> None:
    """Three seeds at two strengths; what a seed learned and lost varies."""
    rng = np.random.default_rng(5)
    hits = draws = 0
    for _ in range(300):
        pairs = [
            pair(f"{m}{x}{s}", m, x + rng.normal(0, 0.03), 0.2 * x + rng.normal(0, 0.02),
                 strength=x, seed=float(s))
            for m in "ab" for x in (0.3, 0.7) for s in range(3)
        ]  # fmt: skip
        for level in found(pairs).equal:
            for row in level.methods:
                if row.interval:
                    draws += 1
                    hits += row.interval.low <= 0.2 * level.learned <= row.interval.high
    assert 0.92 <= hits / draws <= 0.985
