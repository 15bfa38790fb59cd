"""The simulation behind the promises: quick lines here, all of them in `make slow`."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from places import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))
import simulate

QUICK = {
    "same model": "S = 3, n = 200",
    "only gains: all rise": "S = 3, n = 200",
    "10 % fall, 20 % rise": "S = 3, n = 1,000",
    "5 % lack a repeat": "S = 3, n = 200",
    "option probabilities: .5 % fall, the rest wobbles": "n = 200",
    "option probabilities: 5 % lost": "n = 1,000",
    "nothing known, redrawn wholly": "k = 4, n = 1,000",
    "60 % known, a tenth lost": "k = 4, n = 200",
    "macro average": "20 x 40, 2.0% lost",
    "total of tiny tasks": "300 x 1",
    "clusters": "no flip in 24 items",
}


def case_of(regime, setting):
    return next(c for c in simulate.cases() if (c.regime, c.setting) == (regime, setting))


@pytest.mark.parametrize("regime", QUICK)
def test_a_line_of_the_table_holds(regime):
    case = case_of(regime, QUICK[regime])
    measured = simulate.run_case(case, 40)
    assert simulate.holds(case, measured, errors=4), measured  # of so few runs


@pytest.mark.slow
def test_every_line_of_the_table_holds(tmp_path):
    out = tmp_path / "coverage.md"
    command = [sys.executable, ROOT / "benchmarks/simulate.py", "--runs", "200", "--out", out]
    subprocess.run(command, check=True, capture_output=True)
    held, lines = map(int, re.search(r"(\d+) of (\d+) lines hold", out.read_text()).groups())
    assert held >= lines - 3  # at two errors a line, a few of eighty fall out by chance


def test_the_committed_table_has_every_line():
    text = (ROOT / "docs/explanation/coverage.md").read_text()
    held, lines = map(int, re.search(r"(\d+) of (\d+) lines hold", text).groups())
    assert lines == len(simulate.cases())
    assert text.count("**no**") == lines - held
