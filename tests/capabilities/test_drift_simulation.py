"""Simulated models with a known change: rows of benchmarks/drift_simulation.py, and its page."""

from __future__ import annotations

import re
import sys

import pytest

from places import ROOT
from sizes import sizes

PAGE = ROOT / "docs" / "explanation" / "drift-simulation.md"
ERRORS = 1.5
"""Of the simulation, which are two standard errors each."""


@pytest.fixture(scope="module")
def simulation():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    import drift_simulation

    yield drift_simulation
    sys.path.remove(str(ROOT / "benchmarks"))
    sys.modules.pop("drift_simulation", None)


def reaches(cell, low, high):
    """Whether the cell can be between the two, given the error of the simulation."""
    assert low <= cell.value + ERRORS * cell.error, str(cell)
    assert cell.value - ERRORS * cell.error <= high, str(cell)


@pytest.mark.parametrize("runs", sizes(200, 2000))
@pytest.mark.parametrize("items", [400, 1000])
def test_an_unchanged_capability_of_low_base_reads_as_unchanged(simulation, items, runs):
    """Withholding by the base that was seen read it as -14 and -9 %."""
    found = simulation.single(simulation.fresh(items, 0.05, 0.05), runs)
    assert found.given.value > 0.8
    reaches(found.bias, 0.0, 2 / 30)  # the bias of a ratio is at most 2 over the items behind it
    assert abs(found.median) < 0.04
    reaches(found.alarms, 0.0, 0.05)
    reaches(found.aggregate_alarms, 0.0, 0.06)
    reaches(found.covered, 0.93, 0.97)


def test_a_base_too_low_for_a_ratio_still_has_its_change(simulation):
    found = simulation.single(simulation.fresh(100, 0.05, 0.05), 100)
    assert found.given.value < 0.05
    reaches(found.change, 0.93, 1.0)


@pytest.mark.parametrize("runs", sizes(60, 1000))
@pytest.mark.parametrize(
    "name", ["all noise, base 20 %, 100 items", "a fifth of the scores missing, two parts tiny"]
)
def test_aggregates_of_ten_parts_cover(simulation, name, runs):
    found = simulation.whole(simulation.TEN[name], runs)
    for cell in (found.covered, found.group, found.change):
        reaches(cell, 0.93, 0.97)


def test_half_of_the_answers_missing_is_never_equivalent(simulation):
    found = simulation.with_missing(simulation.STEADY, 0.5, ["equivalent"], 10)
    assert found.metric.value == found.capability.value == 0
    found = simulation.with_missing(simulation.STEADY, 0.0, ["equivalent"], 10)
    assert found.metric.value == found.capability.value == 1


def test_no_row_contradicts_itself(simulation):
    for draw in simulation.ODD.values():
        found = simulation.contradictions(draw, 20)
        assert found.outside.value == 0
        assert found.alarms.n == 0 or found.alarms.value == 0


@pytest.mark.parametrize("runs", sizes(60, 1000))
def test_what_was_lost_lies_between_its_ends(simulation, runs):
    for name, chances in simulation.APART.items():
        found = simulation.apart(chances, runs)
        assert found.held.value + ERRORS * found.held.error >= 0.95, name
        assert found.alarms.value - ERRORS * found.alarms.error <= 0.025, name


@pytest.mark.parametrize("runs", sizes(10, 400))
def test_no_metric_makes_up_for_another(simulation, runs):
    for name, parts in simulation.MIXED.items():
        found = simulation.mixed(parts, runs)
        assert found.alarms.value - ERRORS * found.alarms.error <= 0.025, name
        if "unchanged, all" in name:
            assert found.worse.value - ERRORS * found.worse.error <= 0.05, name
        else:
            assert found.worse.value + ERRORS * found.worse.error >= 0.8, name


def rows_of(title):
    """The rows of a table of the page: names, and the numbers of cells that have an error."""
    part = PAGE.read_text(encoding="utf-8").split(f"## {title}\n")[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| ")]
    return {
        name: [tuple(map(float, re.findall(r"-?[\d.]+", cell))) if "±" in cell else cell
               for cell in cells]
        for name, *cells in rows[2:]
    }  # fmt: skip


def test_the_committed_page_holds(simulation):
    ten = rows_of("Aggregates of ten parts")
    assert list(ten) == list(simulation.TEN)
    for name, (covered, *_, group, change) in ten.items():
        for cell in (covered, group, change):
            if cell != "-":
                assert 93 - cell[1] <= cell[0] <= 97 + cell[1], name
    singles = rows_of("One metric")
    assert list(singles) == list(simulation.SINGLE)
    for name, (_, bias, *_) in singles.items():
        assert bias == "-" or abs(bias[0]) <= 100 * 2 / 30 + bias[1], name
    for cells in rows_of("Rows that contradict themselves").values():
        assert all(cell == "-" or cell[0] == 0 for cell in cells)
    apart = rows_of("Metrics that move apart")
    assert list(apart) == list(simulation.MIXED)
    for name, (_, worse, _, _, alarms) in apart.items():
        assert alarms[0] - alarms[1] <= 2.5, name
        assert worse[0] - worse[1] <= 5 if "unchanged, all" in name else worse[0] >= 80, name
    assert rows_of("Answers without a score")[
        "unchanged, 50 % of the answers missing: equivalent"
    ][0][0] == 0  # fmt: skip
