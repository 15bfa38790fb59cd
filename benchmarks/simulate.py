"""Do the intervals cover, and how often does a gate raise a false alarm? Measured, not assumed.

Each regime is a population of items with known chances to be right before and after. Samples of n
items are drawn from it many times, mapped with forgetmap's own cells, and every 95 % interval is
checked against the population's true value. Writes docs/explanation/coverage.md.

    python benchmarks/simulate.py [--runs 2000] [--out FILE]
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from forgetmap.map.cells import CellTable, Plan
from forgetmap.map.result import ESTIMATORS, Cell
from forgetmap.stats import transitions
from forgetmap.stats.patterns import Patterns

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

ROOT = Path(__file__).resolve().parents[1]
DRAWS = 2_000
BAND = (0.93, 0.97)


@dataclass(frozen=True)
class Kind:
    """A kind of item: its share of the population, and its chance to be right before and after."""

    share: float
    before: float
    after: float


KNOWN_OR_GUESSED = (
    *(Kind(0.52, 1, 1), Kind(0.08, 1, 0.25), Kind(0.06, 0.25, 1), Kind(0.34, 0.25, 0.25)),
)
"""Known items and fresh guesses among four options; 8 % are forgotten, 6 % learned."""
NOISY = (
    *(Kind(0.40, 0.95, 0.95), Kind(0.10, 0.9, 0.3), Kind(0.05, 0.2, 0.8)),
    *(Kind(0.25, 0.5, 0.5), Kind(0.20, 0.05, 0.1)),
)
"""Sampled answers: most items waver, some are lost or learned."""
UNCHANGED = (Kind(0.5, 0.95, 0.95), Kind(0.3, 0.5, 0.5), Kind(0.2, 0.1, 0.1))


@dataclass(frozen=True)
class Regime:
    """One setting of the simulation."""

    name: str
    kinds: tuple[Kind, ...]
    items: int
    runs: int = 1
    tasks: int = 1


REGIMES = (
    Regime("small: 60 items, single runs", KNOWN_OR_GUESSED, 60),
    Regime("large: 1,000 items, single runs", KNOWN_OR_GUESSED, 1000),
    Regime("repeats: 300 items, 3 runs each", NOISY, 300, runs=3),
    Regime("small with repeats: 80 items, 3 runs each", NOISY, 80, runs=3),
    Regime("unchanged model: 400 items, 3 runs each", UNCHANGED, 400, runs=3),
    Regime("20 tasks of 50 items, single runs, total", KNOWN_OR_GUESSED, 50, tasks=20),
)


def pattern_table(regime: Regime) -> tuple[Floats, Floats]:
    """All patterns (runs, right before, runs, right after), and their chance."""
    runs = regime.runs
    grid = np.array([(runs, b, runs, a) for b in range(runs + 1) for a in range(runs + 1)], float)
    chance = np.zeros(len(grid))
    for kind in regime.kinds:
        chance += (
            kind.share
            * _binomial(grid[:, 1], runs, kind.before)
            * _binomial(grid[:, 3], runs, kind.after)
        )
    return grid, chance / chance.sum()


def _binomial(right: Floats, runs: int, p: float) -> Floats:
    ways = np.array([1.0, *np.cumprod((runs - np.arange(runs)) / np.arange(1, runs + 1))])
    return ways[right.astype(int)] * p**right * (1 - p) ** (runs - right)


def patterns_of(grid: Floats, counts: Floats, soft: Floats | None = None) -> Patterns:
    """Patterns of tasks (rows of counts), four options an item."""
    tasks, size = counts.shape
    columns = np.tile(grid, (tasks, 1)).T
    names = np.repeat([f"task{index}" for index in range(tasks)], size)
    n = counts.ravel()
    sums = np.zeros((len(n), 7)) if soft is None else soft
    if soft is None:
        sums[:, 0] = -1  # no option probabilities
    whole = Patterns(names, np.full(len(n), 4.0), np.full(len(n), -1.0), *columns, n, sums)
    return whole.where(n > 0)


def true_values(grid: Floats, chance: Floats) -> dict[str, float]:
    """What the estimators would give for infinitely many items."""
    values = transitions.features(grid[:, 1], grid[:, 0], grid[:, 3], grid[:, 2])
    point = transitions.estimate({4.0: chance @ values})
    truth = {f"{name} F": float(getattr(point, name)[0]) for name in ESTIMATORS if name != "soft"}
    truth |= {f"{name} BT": float(getattr(point, name)[1]) for name in ESTIMATORS if name != "soft"}
    return truth | {"change": float(point.accuracy[1] - point.accuracy[0])}


def intervals_of(cell: Cell) -> dict[str, tuple[float, float]]:
    """Every interval of a cell."""
    found = {"change": (cell.change.low, cell.change.high)}
    for label, side in (("F", cell.forgetting), ("BT", cell.backward_transfer)):
        for name in ESTIMATORS:
            if estimate := side.get(name):
                found[f"{name} {label}"] = estimate.low, estimate.high
    return found


def coverage(
    draw: Callable[[np.random.Generator], Patterns], truth: dict[str, float], runs: int
) -> dict[str, float]:
    """Share of simulated maps whose interval holds the true value, by estimator."""
    rng = np.random.default_rng(20251017)
    hits: dict[str, list[bool]] = {}
    for run in range(runs):
        cell = CellTable(draw(rng), {}, Plan(draws=DRAWS, seed=run)).total()
        for name, (low, high) in intervals_of(cell).items():
            if name in truth:
                hits.setdefault(name, []).append(low - 1e-12 <= truth[name] <= high + 1e-12)
    return {name: float(np.mean(found)) for name, found in hits.items()}


def regime_coverage(regime: Regime, runs: int) -> dict[str, float]:
    """Coverage under one regime."""
    grid, chance = pattern_table(regime)

    def draw(rng: np.random.Generator) -> Patterns:
        return patterns_of(grid, rng.multinomial(regime.items, chance, regime.tasks).astype(float))

    return coverage(draw, true_values(grid, chance), runs)


def soft_items(rng: np.random.Generator, items: int) -> tuple[Floats, Floats]:
    """Probabilities of the right option before and after: most drift a little, some a lot."""
    before = rng.beta(1.2, 0.8, items)
    drift = np.where(
        rng.random(items) < 0.15, rng.normal(-1.5, 1.0, items), rng.normal(0, 0.4, items)
    )
    logit = np.log(before / (1 - before)) + drift
    return before, 1 / (1 + np.exp(-logit))


def soft_coverage(items: int, runs: int) -> dict[str, float]:
    """Coverage of the soft estimator on continuous option probabilities."""
    u, v = soft_items(np.random.default_rng(1), 4_000_000)
    change = u - v
    truth = {
        "soft F": float(np.mean(change**2 + change) / 2),
        "soft BT": float(np.mean(change**2 - change) / 2),
    }

    def draw(rng: np.random.Generator) -> Patterns:
        u, v = soft_items(rng, items)
        grid = np.array([(1, b, 1, a) for b in (0, 1) for a in (0, 1)], float)
        index = 2 * (u > 0.5) + (v > 0.5)
        change = u - v
        powers = [
            ((change**2 + sign * change) / 2) ** degree for sign in (1, -1) for degree in (1, 2, 3)
        ]
        sums = np.stack(
            [np.bincount(index, weights, minlength=4) for weights in (np.ones(items), *powers)],
            axis=1,
        )
        return patterns_of(grid, np.bincount(index, minlength=4)[None].astype(float), sums)

    return coverage(draw, truth, runs)


def cluster_coverage(clusters: int, size: int, runs: int) -> dict[str, float]:
    """Coverage when items of a cluster stand or fall together, with and without knowing it."""
    lost, gained = 0.10, 0.05

    def outcomes(rng: np.random.Generator) -> tuple[Floats, Floats]:
        p_before = rng.beta(2, 1, clusters)[:, None]
        loses = rng.beta(lost * 8, (1 - lost) * 8, clusters)[:, None]
        gains = rng.beta(gained * 8, (1 - gained) * 8, clusters)[:, None]
        x = rng.random((clusters, size)) < p_before
        flip = rng.random((clusters, size)) < np.where(x, loses, gains)
        return x, x ^ flip

    truth = {"raw F": 2 / 3 * lost, "raw BT": 1 / 3 * gained, "change": gained / 3 - lost * 2 / 3}

    def draw(rng: np.random.Generator) -> Patterns:
        x, y = outcomes(rng)
        index = (2 * x + y + 4 * np.arange(clusters)[:, None]).ravel()
        counts = np.bincount(index, minlength=4 * clusters).astype(float)
        grid = np.tile(
            np.array([(1, b, 1, a) for b in (0, 1) for a in (0, 1)], float), (clusters, 1)
        )
        return patterns_of(grid, counts[None])._replace(
            bucket=np.repeat(np.arange(clusters), 4)[counts > 0].astype(float)
        )

    return coverage(draw, truth, runs)


def false_alarms(runs: int) -> list[tuple[str, float, float]]:
    """How often a gate breaks although it should not: at its very limit, or with no change."""
    rows = []
    for name, regime, key, limit in (
        ("nothing changed, 3 runs, max-forgetting=0.01", REGIMES[4], "excess", 0.01),
        ("forgetting exactly at the limit, single runs, n = 1,000", REGIMES[1], "raw", None),
        ("forgetting exactly at the limit, 3 runs, n = 300", REGIMES[2], "excess", None),
        ("forgetting exactly at the limit, single runs, n = 60", REGIMES[0], "raw", None),
    ):
        grid, chance = pattern_table(regime)
        bound = true_values(grid, chance)[f"{key} F"] if limit is None else limit
        rng = np.random.default_rng(7)
        alarms = 0
        for run in range(runs):
            patterns = patterns_of(grid, rng.multinomial(regime.items, chance, 1).astype(float))
            alarms += (
                CellTable(patterns, {}, Plan(draws=DRAWS, seed=run)).total().forgot.low > bound
            )
        rows.append((name, bound, alarms / runs))
    return rows


def report(
    results: dict[str, dict[str, float]], alarms: list[tuple[str, float, float]], runs: int
) -> str:
    """The page as Markdown."""
    names = sorted({name for found in results.values() for name in found})
    outside = [
        (regime, name, value)
        for regime, found in results.items()
        for name, value in found.items()
        if not BAND[0] <= value <= BAND[1]
    ]
    lines = [
        "# Do the intervals cover?",
        "",
        "Made by `make simulate`. The table shows how many of the 95 % intervals hold the true",
        f"value, in percent. Each regime has {runs:,} comparisons with {DRAWS:,} draws each. The",
        f"simulation error is about {196 * np.sqrt(0.95 * 0.05 / runs):.1f} points (95 %).",
        "`benchmarks/simulate.py` describes the regimes. `F` is forgetting and `BT` is backward",
        "transfer.",
        "",
        "| regime | " + " | ".join(names) + " |",
        "| --- |" + " --- |" * len(names),
    ]
    for regime, found in results.items():
        cells = (f"{100 * found[name]:.1f}" if name in found else "" for name in names)
        lines.append(f"| {regime} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "Outside 93 to 97 percent: "
        + (
            ", ".join(
                f"{name} in *{regime}* ({100 * value:.1f})" for regime, name, value in outside
            )
            or "none"
        )
        + ".",
    ]
    lines += [
        "",
        "## False alarms of the gate",
        "",
        "The table shows how often `--gate max-forgetting=LIMIT` breaks but should not, in percent",
        "of the comparisons. The gate looks at the lower end of the 95 % interval, so 2.5 is",
        "nominal.",
        "",
        "| situation | limit | false alarms |",
        "| --- | --- | --- |",
        *(f"| {name} | {limit:.4f} | {100 * share:.1f} |" for name, limit, share in alarms),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Run everything and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--out", type=Path, default=ROOT / "docs/explanation/coverage.md")
    options = parser.parse_args()
    started = time.time()
    results = {}
    for regime in REGIMES:
        results[regime.name] = regime_coverage(regime, options.runs)
        print(regime.name, results[regime.name], f"{time.time() - started:.0f} s", flush=True)
    results["soft: 80 items"] = soft_coverage(80, options.runs)
    results["soft: 400 items"] = soft_coverage(400, options.runs)
    results["clusters: 60 of 8 items"] = cluster_coverage(60, 8, options.runs)
    alarms = false_alarms(options.runs)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(report(results, alarms, options.runs), encoding="utf-8")
    print(options.out.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
