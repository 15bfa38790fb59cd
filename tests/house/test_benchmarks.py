"""The benchmarks run, and every contestant finds what was put into the data."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sizes import sizes

RUN = Path(__file__).parents[2] / "benchmarks" / "run.py"
PARTS = [
    "Pairing Samples files",
    "Pairing with repeats",
    "Native lighteval logs",
    "Reading JSON lines",
    "Plain tables",
    "Memory of reading",
    "Statistics after pairing",
    "Start-up",
]


IN_ONE_PROCESS = """
import functools, json, jobs, measure, run

def run_job(name, **arguments):
    job = jobs.JOBS[name](**arguments)
    return measure.Turn(1.0, 1.0, 1.0, json.loads(json.dumps(job.tell(job.work()))))

run.run_job = run_job
run_command = functools.cache(lambda *command: measure.run_command(command))
run.run_command = lambda command: run_command(*command)
run.main()
"""
"""The same run without a fresh process for each job: starting them takes longer than the work."""


@pytest.mark.parametrize("how", sizes([IN_ONE_PROCESS], []))
def test_a_quick_run_has_all_parts_and_the_same_counts_everywhere(tmp_path, how):
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    out = tmp_path / "results.md"
    done = subprocess.run(
        [sys.executable, *(["-c", *how] if how else [RUN]), "--quick", "--out", out],
        env={**os.environ, "PYTHONPATH": str(RUN.parent)},
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
