"""What the statistics cost: nothing that grows with the items, and no more than linear in tasks."""

from __future__ import annotations

import time

import numpy as np
import pytest

from forgetmap.map.cells import CellTable, Plan
from forgetmap.stats.patterns import MOMENTS, Patterns, item_moments
from logs import child


def patterns(tasks: int, items: int, runs: int, scale: int = 1, clusters: int = 0) -> Patterns:
    """Unchanged models; every item stands for `scale` items."""
    rng = np.random.default_rng(0)
    n = tasks * items
    chances = rng.beta(0.4, 0.4, n)
    bucket = np.tile(np.arange(items) % clusters, tasks) if clusters else np.full(n, -1)
    task = np.repeat(np.arange(tasks), items)
    columns = np.stack([task, bucket, *(rng.binomial(runs, chances) for _ in range(2))])
    rows, counts = np.unique(columns, axis=1, return_counts=True)
    one = np.ones(len(counts))
    return Patterns(
        np.char.zfill(rows[0].astype(str), 6), one * np.inf, one * rows[1], one * runs,
        one * rows[2], one * runs, one * rows[3], one * counts * scale,
        np.zeros((len(counts), MOMENTS)),
    )  # fmt: skip


def with_probabilities(tasks: int, items: int, scale: int) -> Patterns:
    """One row a task, as pairing makes of single runs."""
    rng = np.random.default_rng(0)
    one = np.ones(tasks)
    moments = [item_moments(rng.random(items), rng.random(items)).sum(axis=0) for _ in range(tasks)]
    return Patterns(
        np.char.zfill(np.arange(tasks).astype(str), 6), 4 * one, -one, one, one, one, one,
        one * items * scale, np.array(moments) * scale,
    )  # fmt: skip


def every_cell(found: Patterns) -> float:
    """Seconds that all cells of a map take, with eight categories."""
    categories = {name: f"category {int(name) % 8}" for name in found.tasks}
    began = time.process_time()
    table = CellTable(found, categories, Plan(new=frozenset(found.tasks[:3])))
    cells = [table.total(), table.old(), table.new(), table.macro()]
    cells += [*table.category_cells().values(), *table.tasks().values()]
    assert all(cell is not None for cell in cells)
    return time.process_time() - began


@pytest.mark.parametrize(
    "found",
    [
        patterns(100, 200, 1),
        patterns(100, 200, 3),
        patterns(100, 200, 3, scale=1_000_000),
        patterns(100, 500, 8, scale=1_000),
        patterns(100, 1000, 1, clusters=200),
        with_probabilities(100, 200, 1_000_000),
    ],
    ids=["single", "repeats", "a million times", "many repeats", "clusters", "probabilities"],
)
def test_a_hundred_tasks_take_under_two_seconds_whatever_n(found: Patterns) -> None:
    assert every_cell(found) < 2


@pytest.mark.slow
def test_twenty_thousand_tasks_take_seconds_and_little_memory() -> None:
    code = """
from pathlib import Path
from test_speed import every_cell, patterns
seconds = every_cell(patterns(20_000, 5, 3))
# Of this program alone: what the system accounts to a child can be its parent's.
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
print(seconds, int(status["VmHWM"].split()[0]) / 1e6)
"""
    done = child(code, timeout=300)
    assert done.returncode == 0, done.stderr
    seconds, gigabytes = map(float, done.stdout.split())
    assert seconds < 30
    assert gigabytes < 1
