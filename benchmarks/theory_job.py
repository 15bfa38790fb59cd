"""Measure the theory lab: all figures, all check values, the page, quadrature beside Monte Carlo.

Usage: ``python benchmarks/theory_job.py``

Needs matplotlib, Chromium and playwright. Prints a table; exits with 1 if a bar does not hold or a
check value is off. The check values are those of tests/theory/test_theory_values.py.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

from forgetmap import theory as lab

TESTS = Path(__file__).resolve().parents[1] / "tests" / "theory"
BETA, DELTA = 0.2, 4.0
FINE = 1e-8
"""An accuracy that the tests of the lab rely on."""


class Row(NamedTuple):
    """One line of the table."""

    what: str
    value: float
    unit: str = ""
    bar: float | None = None

    def holds(self) -> bool:
        """Whether the value keeps to its bar."""
        return self.bar is None or self.value <= self.bar


def main() -> None:
    rows = [*check_values(), *quadrature(), *figures(), *page()]
    print(f"Load average at the end: {os.getloadavg()[0]:.1f}\n")
    print("| what | value | bar | holds |\n| --- | --- | --- | --- |")
    for row in rows:
        bar = "-" if row.bar is None else f"{row.bar:g} {row.unit}".strip()
        mark = "-" if row.bar is None else "yes" if row.holds() else "NO"
        print(f"| {row.what} | {row.value:,.4g} {row.unit} | {bar} | {mark} |")
    sys.exit(not all(row.holds() for row in rows))


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    outcome = work()
    return time.perf_counter() - start, outcome


def check_values() -> list[Row]:
    """Compute every check value of the specification, and count those that are off."""
    sys.path.insert(0, str(TESTS))
    from test_theory_values import CASES, test_check_value

    def off() -> int:
        count = 0
        for case in CASES:
            try:
                test_check_value(*case.values)
            except AssertionError:
                print(f"off: {case.id}", file=sys.stderr)
                count += 1
        return count

    seconds, count = timed(off)
    return [
        Row(f"check values: {len(CASES)} computed in", seconds, "s"),
        Row("check values: off", count, bar=0),
    ]


def quadrature() -> list[Row]:
    """Misassignment at one point, by quadrature and by drawing old samples.

    Monte Carlo errs by spread / sqrt(samples). The quadrature is held against a far finer one, and
    charged no less than 1e-12 of error.
    """
    x = np.linspace(-14, 14, 400_001)
    density = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
    truth = np.trapezoid(density * taken_for_new(x), x)
    exact, value = timed(lambda: [lab.eps_old(BETA, DELTA) for _ in range(200)][-1])
    error = max(abs(float(value) - float(truth)), 1e-12)

    samples, generator = 4_000_000, np.random.default_rng(0)
    drawing, found = timed(lambda: taken_for_new(generator.standard_normal(samples)))
    spread = float(found.std())
    per_sample = drawing / samples
    mine = exact / 200
    return [
        Row("quadrature: one misassignment", 1e6 * mine, "µs"),
        Row("quadrature: its error", error, bar=FINE),
        Row(f"Monte Carlo: {samples:,} draws", drawing, "s"),
        Row("Monte Carlo: standard error of that", spread / samples**0.5),
        Row("Monte Carlo: off by that many standard errors",
            abs(float(found.mean()) - float(truth)) / (spread / samples**0.5), bar=4),
        Row(f"Monte Carlo to {FINE:g} by extrapolation: times slower than quadrature",
            (spread / FINE) ** 2 * per_sample / mine),
        Row("Monte Carlo at the accuracy of those draws: times slower, quadrature still exact",
            drawing / mine),
    ]  # fmt: skip


def taken_for_new(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Chance that the model takes samples of the old mode for new ones."""
    shares: np.ndarray[Any, Any] = expit(DELTA * x - DELTA**2 / 2 - logit(BETA))
    return shares


def figures() -> list[Row]:
    from forgetmap.views.figures.theory import write_figures

    with tempfile.TemporaryDirectory(prefix="forgetmap-bench-") as folder:
        processor = time.process_time()
        seconds, written = timed(lambda: write_figures(folder))
        processor = time.process_time() - processor
    return [
        Row(f"figures: {len(written)} files", seconds, "s", 20),
        Row("figures: processor time", processor, "s"),
    ]


MOVE = """([name, value]) => {
    const slider = document.getElementById(name);
    slider.value = value;
    const start = performance.now();
    slider.dispatchEvent(new Event("input"));
    document.body.getBoundingClientRect();
    return performance.now() - start;
}"""


def page() -> list[Row]:
    """Move every slider over its range; time until the page is laid out again."""
    from playwright.sync_api import sync_playwright

    from forgetmap.views.html.theory import write_page

    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if not found:
        sys.exit("no Chromium here: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder, "theory.html")
        write_page(path)
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        tab = browser.new_page()
        tab.goto(path.as_uri())
        tab.wait_for_selector("html[data-ready]")
        taken = []
        for name in ("delta", "start", "target", "replay", "batch", "temperature"):
            low, high = (
                float(tab.locator(f"#{name}").get_attribute(end) or 0) for end in ("min", "max")
            )
            taken += [tab.evaluate(MOVE, [name, v]) for v in np.linspace(low, high, 20).tolist()]
        browser.close()
        size = path.stat().st_size / 1e3
    return [
        Row("page: size", size, "kB"),
        Row(f"page: one slider step, median of {len(taken)}", statistics.median(taken), "ms", 50),
        Row("page: the slowest", max(taken), "ms"),
    ]


if __name__ == "__main__":
    main()
