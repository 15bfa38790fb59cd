"""The benchmarks run, and every contestant finds what was put into the data."""

import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).parents[2] / "benchmarks" / "run.py"
PARTS = [
    "Pairing Samples files",
    "Pairing with repeats",
    "Native lighteval logs",
    "Reading JSON lines",
    "Memory of reading",
    "Statistics after pairing",
    "Start-up",
]


def test_a_quick_run_has_all_parts_and_the_same_counts_everywhere(tmp_path):
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    out = tmp_path / "results.md"
    done = subprocess.run(
        [sys.executable, RUN, "--quick", "--out", out],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr  # a wrong count ends the run
    titles, rows = read_tables(out.read_text(encoding="utf-8"))
    assert titles == ["Bars", *(f"{number}. {part}" for number, part in enumerate(PARTS, 1))]
    contestants = [cells[1] for cells in rows if cells[0] == "20,000"]
    assert len(contestants) == 4
    assert all(cells[-1] == "-" for cells in rows)  # so small a run judges nothing


def read_tables(text):
    """The headings of the second level, and the cells of every row that is not a header."""
    lines = text.splitlines()
    titles = [line.removeprefix("## ") for line in lines if line.startswith("## ")]
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    return titles, [cells for cells in rows if cells[-1] not in ("verdict", "---")]
