"""The page on forecasts says what the benchmarks measured: every row and every figure of it."""

from __future__ import annotations

import importlib.util
import re
from typing import Any

import pytest

from forgetmap.mitigate.forecast.build import bundled
from forgetmap.mitigate.forecast.items import read_history
from places import ROOT

PAGE = ROOT / "docs" / "explanation" / "forecast.md"
NAMES = ("forecast", "chosen_items", "probe", "recover", "replay_by_risk")
MEASURED = [ROOT / "benchmarks" / f"{name}.md" for name in NAMES]
FIGURE = re.compile(r"\d+\.\d+")
AIMS = {"0.85", "0.75", "1.5"}
"""What we set ourselves, which is not measured."""


def rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("|")]


def test_every_row_is_one_that_a_benchmark_wrote() -> None:
    measured = {row for page in MEASURED for row in rows(page.read_text(encoding="utf-8"))}
    told = rows(PAGE.read_text(encoding="utf-8"))
    assert len(told) > 15
    assert set(told) <= measured


def test_figures_in_the_words_are_in_the_tables() -> None:
    text = PAGE.read_text(encoding="utf-8")
    words = "\n".join(line for line in text.splitlines() if not line.startswith("|"))
    cells = set(FIGURE.findall("\n".join(rows(text))))
    assert set(FIGURE.findall(words)) - cells <= AIMS  # whole figures: 0.75 is not in 10.75


@pytest.fixture(scope="module")
def benchmark() -> Any:
    """The script that writes the tables."""
    path = ROOT / "benchmarks" / "forecast.py"
    spec = importlib.util.spec_from_file_location("benchmark_of_forecasts", path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_the_table_of_the_second_study_comes_out_of_its_logs(benchmark: Any) -> None:
    page = (ROOT / "benchmarks" / "forecast.md").read_text(encoding="utf-8")
    assert benchmark.second_study() in page, "run: python benchmarks/forecast.py --second"


@pytest.mark.slow
def test_the_table_by_the_chance_alone_comes_out_of_the_logs(benchmark: Any) -> None:
    page = (ROOT / "benchmarks" / "forecast.md").read_text(encoding="utf-8")
    made = benchmark.by_chance(read_history(benchmark.STUDY))
    assert page.endswith(made), "run: python benchmarks/forecast.py --second"


def test_the_bundled_curves_are_those_that_were_measured() -> None:
    cells = (ROOT / "benchmarks" / "forecast.md").read_text(encoding="utf-8")
    for each in [*bundled().quality, *bundled(probed=True).quality]:
        row = rf"{each.auc_known:.3f} \| [\d.]+ \| {each.auc_all:.3f} \|"
        assert re.search(row, cells)
        assert f"| {100 * each.level_off:.1f} points |" in cells
