"""Losses by dose and category: known slopes come back, category by category."""

from __future__ import annotations

import numpy as np
import pytest

from forgetmap.study.doses import dose_curves
from forgetmap.study.result import Dose, StudiedPair
from forgetmap.study.units import find_units
from study_logs import made_pair


def curves(pairs: list[StudiedPair]) -> dict[tuple[str, str], Dose]:
    return {(dose.attribute, dose.category): dose for dose in dose_curves(pairs, find_units(pairs))}


def trained(slopes: dict[str, float], families: int = 2, seed: int = 0) -> list[StudiedPair]:
    """Five numbers of examples; every category has a slope of its own."""
    rng = np.random.default_rng(seed)
    return [
        made_pair(
            f"{family}-{step}",
            {"family": f"f{family}", "examples": 1000.0 * 2**step},
            lost=0.1,
            cells={
                name: (0.05 + 0.1 * family + slope * step + rng.normal(0, 0.002), 0.0)
                for name, slope in slopes.items()
            },
        )
        for family in range(families)
        for step in range(5)
    ]


def test_every_category_has_its_own_slope() -> None:
    found = curves(trained({"Math": 0.02, "Logic": 0.0}))
    assert set(found) == {("examples", "Math"), ("examples", "Logic")}
    maths = found["examples", "Math"]
    assert maths.per_doubling.value == pytest.approx(0.02, abs=0.002)
    assert maths.claimed
    assert maths.unit == "pairs, replicates as one, of one kind"
    assert [point.dose for point in maths.points] == [1000.0 * 2**step for step in range(5)]
    assert [point.units for point in maths.points] == [2] * 5
    assert not found["examples", "Logic"].claimed


def test_all_categories_are_one_family_of_tests() -> None:
    found = curves(trained({f"c{n}": 0.0 for n in range(40)}, seed=3))
    assert sum(dose.p_value < 0.05 for dose in found.values()) > 0
    assert not any(dose.claimed for dose in found.values())


def test_new_categories_have_no_dose() -> None:
    pairs = [
        pair.model_copy(update={"new_categories": ["Airports"]})
        for pair in trained({"Airports": 0.1, "Math": 0.01})
    ]
    assert set(curves(pairs)) == {("examples", "Math")}


def test_too_few_doses_say_nothing() -> None:
    assert not curves(trained({"Math": 0.02})[:2])
