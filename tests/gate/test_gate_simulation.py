"""Error rates of the gate: a short simulation, and the committed table."""

from __future__ import annotations

import re
import sys

import pytest

from places import ROOT
from sizes import sizes

RUNS = 60
TABLE = ROOT / "benchmarks" / "gate_rates.md"


@pytest.fixture
def simulation(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import gate_simulation

    yield gate_simulation
    sys.modules.pop("gate_simulation", None)


@pytest.mark.parametrize("runs", sizes(10, RUNS))
def test_noise_alone_blocks_no_more_often_than_alpha(simulation, runs) -> None:
    for case in simulation.NO_CHANGE:
        rate = simulation.judged(case, simulation.true_value(case), runs)["BLOCK"] / runs
        assert rate <= simulation.most_expected(runs, errors=3.1), case.name


def test_a_large_loss_is_found_and_a_small_one_needs_items(simulation) -> None:
    def rate(items: int) -> float:
        case = simulation.Case("", simulation.rare(0.1), items, deterministic=True)
        return simulation.judged(case, simulation.LIMIT, RUNS)["BLOCK"] / RUNS

    assert rate(1000) == 1
    assert rate(30) < 0.9


def test_too_little_data_is_withheld(simulation) -> None:
    assert simulation.withheld(10) == 1


def test_the_committed_table_holds(simulation) -> None:
    text = TABLE.read_text(encoding="utf-8")
    first = text.split("## Power")[0]
    rates = [float(found) for found in re.findall(r"\| (0\.\d{3}) \|", first)]
    assert len(rates) == len(simulation.NO_CHANGE)
    assert "NO" not in first.replace("Holm", "")
    assert "WITHHELD in 100%" in text
