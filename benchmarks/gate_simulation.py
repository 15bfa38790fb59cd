"""How often does a policy block a checkpoint that lost nothing, and how often one that did?

Populations with known chances are drawn many times, mapped with forgetmap's own cells and judged
with its own gate. The limit lies exactly at the truth, where a false alarm is likeliest. Writes
benchmarks/gate_rates.md.

    python benchmarks/gate_simulation.py [--runs 2000] [--seed N] [--out FILE]
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forgetmap.gate.judgement import judge
from forgetmap.gate.policy import Policy
from forgetmap.map.cells import CellTable, Plan
from forgetmap.map.result import ComparedModel, ForgettingMap, MapSettings
from forgetmap.samples.comparability import Coverage
from forgetmap.stats.patterns import MOMENTS, Patterns, item_moments

Floats = NDArray[np.float64]
Chances = tuple[Floats, Floats]
Population = Callable[[np.random.Generator, int], Chances]
ROOT = Path(__file__).resolve().parents[1]
ALPHA = 0.025
SEED = 20261115
OPEN = math.inf


# --- populations: chances of being right, before and after -------------------------------------


def unchanged(rng: np.random.Generator, n: int) -> Chances:
    """Most items are nearly always right or nearly always wrong."""
    p = rng.beta(0.4, 0.4, n)
    return p, p


def falling(rng: np.random.Generator, n: int) -> Chances:
    """A tenth of the items falls to a fifth of its chance, two tenths rise halfway to one."""
    p, place = rng.beta(0.4, 0.4, n), rng.random(n)
    return p, np.where(place < 0.1, p / 5, np.where(place < 0.3, (1 + p) / 2, p))


def lower(rng: np.random.Generator, n: int) -> Chances:
    """A fifth of the items falls from .9 to .6; nothing rises."""
    p = rng.choice([0.95, 0.9, 0.3], n, p=[0.6, 0.2, 0.2])
    return p, np.where(p == 0.9, 0.6, p)


def flips(rng: np.random.Generator, n: int, lost: float, gained: float = 0.05) -> Chances:
    """Models without noise: a share is lost, another gained."""
    place = rng.random(n)
    known = np.where(place < lost, 1.0, np.where(place < lost + gained, 0.0, rng.random(n) < 0.6))
    after = np.where(place < lost, 0.0, np.where(place < lost + gained, 1.0, known))
    return known, after


@dataclass(frozen=True)
class Case:
    """A population in which nothing is beyond the limit: it lies right on it."""

    name: str
    population: Population
    items: int
    measure: str = "forgetting"
    where: str = "old"
    tasks: int = 1
    runs: int = 1
    options: bool = False
    """The log has option probabilities."""
    clusters: int = 0
    """Clusters of items that are lost together, in every task."""
    deterministic: bool = False


def rare(share: float) -> Population:
    """Models without noise that lost a share of the items."""
    return partial(flips, lost=share)


NO_CHANGE = (
    Case("forgetting, unchanged model, 3 repeats", unchanged, 400, runs=3),
    Case("forgetting, unchanged model, few items, 3 repeats", unchanged, 80, runs=3),
    Case("forgetting, 10 % fall and 20 % rise, 3 repeats", falling, 400, runs=3),
    Case("forgetting, 10 % fall and 20 % rise, 5 repeats", falling, 1000, runs=5),
    Case("forgetting, unchanged model, single runs", unchanged, 400),
    Case("forgetting, option probabilities", falling, 400, options=True),
    Case("forgetting, option probabilities, few items", falling, 50, options=True),
    Case("forgetting, without noise, few losses", rare(0.03), 100, deterministic=True),
    Case("forgetting, 10 clusters", rare(0.05), 200, clusters=10, deterministic=True),
    Case("forgetting, 30 clusters", rare(0.05), 300, clusters=30, deterministic=True),
    Case("raw, single runs", unchanged, 400, "raw"),
    Case("raw, few losses", rare(0.03), 100, "raw"),
    Case("raw, 3 repeats", falling, 300, "raw", runs=3),
    Case("drop, unchanged model, single runs", unchanged, 300, "drop"),
    Case("drop, unchanged model, 3 repeats", unchanged, 300, "drop", runs=3),
    Case("drop at its limit, single runs", lower, 300, "drop"),
    Case("raw, 20 tasks at once", unchanged, 60, "raw", "task:*", tasks=20),
    Case("drop, 20 tasks at once", unchanged, 60, "drop", "task:*", tasks=20),
    Case("forgetting, 20 tasks, 3 repeats", unchanged, 80, where="task:*", tasks=20, runs=3),
    Case(
        "forgetting, 20 tasks, option probabilities",
        *(falling, 60, "forgetting", "task:*"),
        tasks=20,
        options=True,
    ),
    Case(
        "forgetting, 20 tasks, without noise",
        *(rare(0.05), 60, "forgetting", "task:*"),
        tasks=20,
        deterministic=True,
    ),
    Case(
        "forgetting, macro of 57 x 100, without noise",
        *(rare(0.05), 100, "forgetting", "macro"),
        tasks=57,
        deterministic=True,
    ),
    Case("forgetting, macro of 57 x 100, 3 repeats", unchanged, 100, "forgetting", "macro", 57, 3),
    Case("forgetting, total of 57 x 100, 3 repeats", unchanged, 100, tasks=57, runs=3),
    Case("raw, macro of 57 x 100", rare(0.05), 100, "raw", "macro", 57),
    Case("drop, macro of 57 x 100", unchanged, 100, "drop", "macro", 57),
)  # fmt: skip
SIZES = (100, 300, 1000, 3000)
LOST = (0.0, 0.02, 0.05, 0.1, 0.2)
LIMIT = 0.02


# --- logs --------------------------------------------------------------------------------------


def draw(case: Case, rng: np.random.Generator) -> Patterns:
    """What pairing would make of one pair of logs."""
    n = case.tasks * case.items
    task = np.repeat(np.arange(case.tasks), case.items)
    bucket = np.full(n, -1)
    p, q = case.population(rng, n)
    if case.clusters:
        bucket = np.tile(np.arange(case.items) % case.clusters, case.tasks)
        p, q = _together(case, rng, bucket)
    if case.options:
        return _probable(task, case.tasks, p, q)
    right = [rng.binomial(case.runs, side) for side in (p, q)]
    rows, items = np.unique(np.stack([task, bucket, *right]), axis=1, return_counts=True)
    one = np.ones(len(items))
    return Patterns(
        _names(rows[0]), one * OPEN, one * rows[1], one * case.runs, one * rows[2],
        one * case.runs, one * rows[3], one * items, np.zeros((len(items), MOMENTS)),
    )  # fmt: skip


def _together(case: Case, rng: np.random.Generator, bucket: NDArray[np.int64]) -> Chances:
    """Losses without noise that come by cluster: a fifth of their variance lies between these."""
    rate, weight = true_value(case), 4.0
    rates = rng.beta(rate * weight, (1 - rate) * weight, case.clusters)
    lost = rng.random(len(bucket)) < rates[bucket]
    known = (rng.random(len(bucket)) < 0.6) | lost
    return known.astype(float), (known & ~lost).astype(float)


def _probable(task: NDArray[np.intp], tasks: int, p: Floats, q: Floats) -> Patterns:
    """Items with option probabilities, one row a task."""
    moments = np.zeros((tasks, MOMENTS))
    np.add.at(moments, task, item_moments(p, q))
    one, n = np.ones(tasks), np.bincount(task).astype(float)
    return Patterns(_names(np.arange(tasks)), 4 * one, -one, one, one, one, one, n, moments)


def _names(tasks: Any) -> NDArray[np.str_]:
    return np.char.add("t", np.char.zfill(np.asarray(tasks).astype(int).astype(str), 3))


def map_of(patterns: Patterns, case: Case, seed: int) -> ForgettingMap:
    """A map of made-up patterns: only the cells that the limit looks at."""
    plan = Plan(seed=seed, deterministic=case.deterministic)
    table = CellTable(patterns, {}, plan)
    total, n = table.total(), int(patterns.n.sum())
    side = ComparedModel(name="simulated", harness="none", runs=case.runs)
    return ForgettingMap(
        before=side,
        after=side,
        settings=MapSettings(metric={}, threshold=0.5, margin=plan.margin, seed=seed),
        coverage=Coverage(items_before=n, items_after=n, matched=n),
        confounds=[],
        total=total,
        old=total,
        macro=table.macro() if case.where == "macro" else total,
        categories={},
        tasks=table.tasks() if case.where == "task:*" else {},
    )


# --- rates -------------------------------------------------------------------------------------


@cache
def true_value(case: Case) -> float:
    """The measure's value for infinitely many items and runs."""
    p, q = case.population(np.random.default_rng(123), 1_000_000)
    if case.measure == "raw":
        return float((p * (1 - q)).mean())
    if case.measure == "drop":
        return max(0.0, float((p - q).mean()))
    return float(np.maximum(p - q, 0).mean())


def judged(case: Case, limit: float, runs: int, seed: int = SEED) -> Counter[str]:
    """How often each verdict was given."""
    policy = Policy.model_validate(
        {
            "alpha": ALPHA,
            "undecided": "pass",
            "require": {"items": 20},
            "limits": [{"where": case.where, "measure": case.measure, "max": limit}],
        }
    )
    rng = np.random.default_rng(seed)
    return Counter(judge(map_of(draw(case, rng), case, run), policy).verdict for run in range(runs))


def most_expected(runs: int, errors: float = 2.0) -> float:
    """Alpha and some standard errors of the simulation."""
    return ALPHA + errors * math.sqrt(ALPHA * (1 - ALPHA) / runs)


def false_blocks(runs: int, seed: int = SEED) -> Iterator[tuple[str, float]]:
    """Share of BLOCK where the true value lies on its limit."""
    for case in NO_CHANGE:
        yield case.name, judged(case, true_value(case), runs, seed)["BLOCK"] / runs


def power(runs: int, seed: int = SEED) -> Iterator[tuple[int, list[float]]]:
    """Share of BLOCK by items and by what was truly lost, without noise, limit 2 %."""
    for size in SIZES:
        cases = [Case("", rare(lost), size, deterministic=True) for lost in LOST]
        yield size, [judged(case, LIMIT, runs, seed)["BLOCK"] / runs for case in cases]


def withheld(runs: int, seed: int = SEED) -> float:
    """Share of WITHHELD with 15 items, of which the policy asks for 20."""
    return judged(Case("", unchanged, 15), LIMIT, runs, seed)["WITHHELD"] / runs


def report(runs: int, seed: int = SEED) -> str:
    other = "" if seed == SEED else f" --seed {seed}"
    lines = [
        "# Error rates of the gate",
        "",
        f"Written by `python benchmarks/gate_simulation.py --runs {runs}{other}`. The settings are "
        f"alpha {ALPHA}, correction Holm and `undecided: pass`.",
        "",
        "## False BLOCK when the true value is exactly at the limit",
        "",
        f"| case | BLOCK | at most {most_expected(runs):.3f} (alpha and two standard errors) |",
        "| --- | ---: | --- |",
    ]
    for name, rate in false_blocks(runs, seed):
        lines.append(f"| {name} | {rate:.3f} | {'yes' if rate <= most_expected(runs) else 'NO'} |")
        print(lines[-1], flush=True)
    lines += [
        "",
        f"## Power: share of BLOCK, what was lost without noise, limit {LIMIT:.0%}",
        "",
        f"| items | {' | '.join(f'{lost:.0%} lost' for lost in LOST)} |",
        f"| ---: |{' ---: |' * len(LOST)}",
    ]
    lines += [
        f"| {n:,} | {' | '.join(f'{rate:.3f}' for rate in rates)} |"
        for n, rates in power(runs, seed)
    ]
    lines += [
        "",
        "With 15 items and a policy that requires 20, the verdict is WITHHELD in "
        f"{withheld(runs, seed):.0%}.",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "gate_rates.md")
    arguments = parser.parse_args()
    arguments.out.write_text(report(arguments.runs, arguments.seed), encoding="utf-8")
    print(f"{arguments.out}: written")


if __name__ == "__main__":
    main()
