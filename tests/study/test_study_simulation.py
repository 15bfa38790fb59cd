"""Simulated studies with known truth: rows of benchmarks/study_simulation.py, and its page."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from places import ROOT
from sizes import sizes

ERRORS = 1.5
"""Of the simulation, which are two standard errors each."""


@pytest.fixture(scope="module")
def simulation():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    import study_simulation

    yield study_simulation
    sys.path.remove(str(ROOT / "benchmarks"))
    sys.modules.pop("study_simulation", None)


def reaches(cell, low, high):
    """Whether the cell can be between the two, given the error of the simulation."""
    assert low <= cell.value + ERRORS * cell.error, str(cell)
    assert cell.value - ERRORS * cell.error <= high, str(cell)


@pytest.mark.parametrize("runs", sizes(30, 1000))
def test_intervals_hold_the_truth(simulation, runs):
    found = simulation.coverage(simulation.SLOPES["4 families, 4 sizes"], runs)
    for cell in found:
        assert cell.n >= runs
        reaches(cell, 0.93, 0.97)


@pytest.mark.parametrize("runs", sizes(60, 1000))
def test_a_slope_within_families_takes_out_what_methods_do(simulation, runs):
    """Methods that lose much apart: as noise they would make every interval hold the truth."""
    truth = simulation.SLOPES["6 families, 4 sizes, one seed, three methods"]
    widths = []
    for found in simulation.answered(truth._replace(method=0.3), runs, 1):
        slopes = {slope.within: slope for slope in found.slopes}
        assert slopes["family"].held == ["method"]
        assert slopes["kind"].held == []
        widths.append([slopes[name].per_doubling for name in ("family", "kind")])
    for one, other in widths:
        assert one.high - one.low < 1.5 * (other.high - other.low)
    reaches(simulation.share([one.low <= truth.slope <= one.high for one, _ in widths]), 0.93, 0.97)


@pytest.mark.parametrize("runs", sizes(30, 400))
def test_a_large_effect_is_claimed(simulation, runs):
    name = "4 families, 4 sizes, 2 methods, 2 seeds, method: 4 points"
    found = simulation.power(simulation.POWER[name], runs)
    assert found.claimed.value > 0.95
    assert found.claimed.value <= found.alone.value


@pytest.mark.parametrize("runs", sizes(30, 1000))
@pytest.mark.parametrize(
    "name",
    ["4 families, 4 sizes, 2 methods, 2 seeds", "3 families, 3 sizes, 6 stages, one seed"],
)
def test_a_study_of_noise_claims_nothing(simulation, name, runs):
    found = simulation.false_claims(simulation.NOTHING[name], runs)
    reaches(found.anything, 0.0, 0.05)


@pytest.mark.parametrize("runs", sizes(60, 1000))
def test_ranks_are_right_all_at_once(simulation, runs):
    for name in ("10 pairs that lost alike, 1,000 items", "10 pairs in two groups, 500 items"):
        items, truth = simulation.RANKS[name]
        reaches(simulation.ranks(items, truth(10), runs).right, 0.95, 1.0)
    apart = simulation.ranks(2000, np.array([0.01, 0.1, 0.3]), 20)
    assert apart.width < 1.1


def test_the_page_has_every_row_and_holds(simulation):
    text = (ROOT / "docs" / "explanation" / "study-simulation.md").read_text(encoding="utf-8")
    rows = {
        cells[0]: cells[1:]
        for line in text.splitlines()
        if line.startswith("| ") and (cells := [cell.strip() for cell in line.split("|")[1:-1]])
    }
    tables = (simulation.SLOPES, simulation.NOTHING, simulation.POWER, simulation.RANKS)
    assert {name for table in tables for name in table} <= set(rows)
    runs = int(re.search(r"--runs (\d+)", text)[1])
    assert runs >= 200

    def numbers(cell):
        value, error = (float(part) for part in cell.split(" ± "))
        return value, error

    for name in simulation.NOTHING:
        value, error = numbers(rows[name][-1])
        assert value - error <= 5, name
    for name in simulation.RANKS:
        value, error = numbers(rows[name][0])
        assert value + error >= 95, name
    for name in simulation.SLOPES:
        for column, cell in zip(simulation.COLUMNS, rows[name], strict=True):
            value, error = numbers(cell)
            assert value + error >= 93, (name, column)
            told = f"{name}, {column} ({cell})" in text
            assert told == (value - error > 97), (name, column)
    assert "Outside the aim: none." in text
    for name in simulation.POWER:
        claimed, *_, uncorrected = (numbers(cell)[0] for cell in rows[name])
        assert claimed <= uncorrected, name


def test_the_measurement_of_studies_runs(tmp_path):
    script = ROOT / "benchmarks" / "study_job.py"
    done = subprocess.run(
        [sys.executable, script, "--pairs", "2", "3", "--tasks", "3", "--items", "20"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith(("| 2 ", "| 3 "))]
    assert [row.split(" | ")[1] for row in rows] == ["120", "180"]


def test_the_bars_of_studies_are_held():
    text = (ROOT / "benchmarks" / "study.md").read_text(encoding="utf-8")
    assert text.count("| PASS |") == 5
    assert "MISS" not in text
