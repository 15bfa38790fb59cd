"""How often does a policy block a checkpoint that lost nothing, and how often one that did?

Populations with known chances are drawn many times, mapped with forgetmap's own cells and judged
with its own gate. Writes benchmarks/gate_rates.md.

    python benchmarks/gate_simulation.py [--runs 2000] [--seed N] [--out FILE]
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forgetmap.gate.judgement import judge
from forgetmap.gate.policy import Policy
from forgetmap.map.cells import CellTable, Plan
from forgetmap.map.result import ComparedModel, Coverage, ForgettingMap, MapSettings
from forgetmap.stats import transitions
from simulate import KNOWN_OR_GUESSED, UNCHANGED, Kind, Regime, pattern_table, patterns_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forgetmap.stats.patterns import Patterns

ROOT = Path(__file__).resolve().parents[1]
ALPHA = 0.05
DRAWS = 1_000
SEED = 20261115
RARE = (Kind(0.97, 1, 1), Kind(0.03, 1, 0))
"""Deterministic runs of which three items in a hundred are lost."""

LOSING = (Kind(0.6, 0.95, 0.95), Kind(0.2, 0.9, 0.6), Kind(0.2, 0.3, 0.3))
"""Six points of accuracy are lost."""


class Case(NamedTuple):
    """A population in which nothing is beyond the limit: it lies right on it."""

    name: str
    regime: Regime
    measure: str
    where: str = "total"


NO_CHANGE = (
    Case("excess, unchanged model, 3 runs", Regime("", UNCHANGED, 400, runs=3), "excess"),
    Case("excess, few items", Regime("", UNCHANGED, 80, runs=3), "excess"),
    Case("raw, single runs", Regime("", KNOWN_OR_GUESSED, 400), "raw"),
    Case("raw, few losses", Regime("", RARE, 100), "raw"),
    Case("drop, unchanged model, single runs", Regime("", UNCHANGED, 300), "drop"),
    Case("drop, unchanged model, 3 runs", Regime("", UNCHANGED, 300, runs=3), "drop"),
    Case("drop at its limit, single runs", Regime("", LOSING, 300), "drop"),
    Case("raw, 20 tasks at once", Regime("", KNOWN_OR_GUESSED, 60, tasks=20), "raw", "task:*"),
    Case("excess, 10 tasks at once", Regime("", UNCHANGED, 80, 3, 10), "excess", "task:*"),
)
SIZES = (100, 300, 1000, 3000)
LOST = (0.0, 0.02, 0.05, 0.1, 0.2)
LIMIT = 0.02


def judged(case: Case, limit: float, runs: int, seed: int = SEED) -> Counter[str]:
    """How often each verdict was given."""
    grid, chance = pattern_table(case.regime)
    policy = Policy.model_validate(
        {
            "alpha": ALPHA,
            "undecided": "pass",
            "require": {"items": 20},
            "limits": [{"where": case.where, "measure": case.measure, "max": limit}],
        }
    )
    rng = np.random.default_rng(seed)
    verdicts: Counter[str] = Counter()
    for run in range(runs):
        counts = rng.multinomial(case.regime.items, chance, size=case.regime.tasks).astype(float)
        verdicts[judge(map_of(patterns_of(grid, counts), run), policy).verdict] += 1
    return verdicts


def true_value(case: Case) -> float:
    """The measure's value for infinitely many items."""
    grid, chance = pattern_table(case.regime)
    values = transitions.features(grid[:, 1], grid[:, 0], grid[:, 3], grid[:, 2])
    point = transitions.estimate({4.0: chance @ values})
    if case.measure == "drop":
        return float(point.accuracy[0] - point.accuracy[1])
    return float(getattr(point, case.measure)[0])


def map_of(patterns: Patterns, seed: int) -> ForgettingMap:
    """A map of made-up patterns."""
    table = CellTable(patterns, {}, Plan(draws=DRAWS, seed=seed))
    total, n = table.total(), int(patterns.n.sum())
    side = ComparedModel(name="simulated", harness="none", runs=total.repeats_before)
    return ForgettingMap(
        before=side,
        after=side,
        settings=MapSettings(
            metric={}, threshold=0.5, margin=0.02, seed=seed, headline=total.headline, draws=DRAWS
        ),
        coverage=Coverage(
            items_before=n,
            items_after=n,
            matched=n,
            only_before=0,
            only_after=0,
            conflicts=0,
            unscored=0,
            duplicates=0,
            identity="content",
        ),
        confounds=[],
        total=total,
        macro=total,
        categories={},
        tasks=table.tasks() if len(patterns.tasks) > 1 else {},
    )


def most_expected(runs: int, errors: float = 2.0) -> float:
    """Alpha and some standard errors of the simulation."""
    return ALPHA + errors * math.sqrt(ALPHA * (1 - ALPHA) / runs)


def false_blocks(runs: int, seed: int = SEED) -> dict[str, float]:
    """Share of BLOCK where the true value lies on its limit."""
    return {
        case.name: judged(case, max(0.0, true_value(case)), runs, seed)["BLOCK"] / runs
        for case in NO_CHANGE
    }


def power(runs: int, seed: int = SEED) -> Iterator[tuple[int, list[float]]]:
    """Share of BLOCK by items and by what was truly lost, single runs, limit 2 %."""
    for size in SIZES:
        rates = []
        for lost in LOST:
            kinds = (Kind(1 - lost, 1, 1), Kind(lost, 1, 0))
            case = Case("", Regime("", kinds, size), "raw")
            rates.append(judged(case, LIMIT, runs, seed)["BLOCK"] / runs)
        yield size, rates


def withheld(runs: int, seed: int = SEED) -> float:
    """Share of WITHHELD with 15 items, of which the policy asks for 20."""
    case = Case("", Regime("", KNOWN_OR_GUESSED, 15), "raw")
    return judged(case, LIMIT, runs, seed)["WITHHELD"] / runs


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
    for name, rate in false_blocks(runs, seed).items():
        lines.append(f"| {name} | {rate:.3f} | {'yes' if rate <= most_expected(runs) else 'NO'} |")
    lines += [
        "",
        f"## Power: share of BLOCK, raw forgetting, limit {LIMIT:.0%}",
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
