"""Does `lost` hold what it promises? Measured by simulation, regime by regime.

Each regime is a population of items with known chances to be right before and after. Items are
drawn from it many times, mapped with forgetmap's own cells, and compared with the truth. Rates of
wrong verdicts are taken where they are worst: with the margin at the true loss, or, where nothing
was lost, at 2 %. Writes docs/explanation/coverage.md.

    python benchmarks/simulate.py [--runs 1000] [--only WORD] [--out FILE]
"""

from __future__ import annotations

import argparse
import math
import sys
import time
import zlib
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from forgetmap.map.cells import CellTable, Plan
from forgetmap.map.result import Cell
from forgetmap.stats.patterns import MOMENTS, Patterns, guessing_churn, item_moments

Floats = NDArray[np.float64]
Chances = tuple[Floats, Floats]
Population = Callable[[np.random.Generator, int], Chances]
ROOT = Path(__file__).resolve().parents[1]
MARGIN = 0.02
OPEN = math.inf


class Drawn(NamedTuple):
    """One log pair of a regime, and what is true of it."""

    patterns: Patterns
    truth: float
    population: float | None = None
    """The truth for tasks like these, where tasks were drawn too."""


@dataclass(frozen=True)
class Case:
    """One line of the table."""

    regime: str
    setting: str
    draw: Callable[[np.random.Generator], Drawn]
    must: dict[str, tuple[float, float]]
    """What must lie between two numbers: `low end`, `covers`, `false lost`, `false held`, ..."""
    plan: dict[str, Any] | None = None
    macro: bool = False


# --- populations -----------------------------------------------------------------------------


def unchanged(rng: np.random.Generator, n: int) -> Chances:
    p = rng.beta(0.4, 0.4, n)
    return p, p


def some_fall(rng: np.random.Generator, n: int) -> Chances:
    """A tenth falls to a fifth of its chance, two tenths rise by half of what is missing."""
    p, place = rng.beta(0.4, 0.4, n), rng.random(n)
    return p, np.where(place < 0.1, p / 5, np.where(place < 0.3, (1 + p) / 2, p))


def only_gains(rng: np.random.Generator, n: int) -> Chances:
    p = rng.beta(0.4, 0.4, n)
    return p, (1 + p) / 2


def some_gain(rng: np.random.Generator, n: int) -> Chances:
    p = rng.beta(0.4, 0.4, n)
    return p, np.where(rng.random(n) < 0.2, 1.0, p)


def hidden_loss(rng: np.random.Generator, n: int) -> Chances:
    """Six in a hundred are wholly lost while half of the others rise from .5 to 1."""
    place = rng.random(n)
    before = np.where(place < 0.06, 1.0, 0.5)
    return before, np.where(place < 0.06, 0.0, np.where(place < 0.53, 1.0, 0.5))


def wobble(rng: np.random.Generator, n: int, size: float) -> Chances:
    p = rng.beta(0.4, 0.4, n).clip(1e-9, 1 - 1e-9)
    q: Floats = special.expit(special.logit(p) + rng.normal(0, size, n))
    return p, q


def rare(rng: np.random.Generator, n: int, share: float, size: float = 0.0) -> Chances:
    """A few items fall from 1 to 0; the others wobble."""
    p, q = wobble(rng, n, size)
    fallen = rng.random(n) < share
    return np.where(fallen, 1.0, p), np.where(fallen, 0.0, q)


def flips(rng: np.random.Generator, n: int, lost: float, gained: float = 0.05) -> Chances:
    """Models without noise: a share is lost, another gained."""
    place = rng.random(n)
    before = np.where(place < lost, 1.0, np.where(place < lost + gained, 0.0, rng.random(n) < 0.5))
    after = np.where(place < lost, 0.0, np.where(place < lost + gained, 1.0, before))
    return before.astype(float), after.astype(float)


def loss_of(population: Population) -> float:
    p, q = population(np.random.default_rng(123), 2_000_000)
    return float(np.maximum(p - q, 0).mean())


# --- logs ------------------------------------------------------------------------------------


def counted(
    rng: np.random.Generator,
    chances: Chances,
    runs: int | tuple[Any, Any] = 1,
    task: Any = 0,
    bucket: Any = -1,
    k: float = OPEN,
) -> Patterns:
    """Outcomes of some runs, as pairing counts them."""
    n = len(chances[0])
    before, after = runs if isinstance(runs, tuple) else (runs, runs)
    runs_before, runs_after = (np.broadcast_to(side, n) for side in (before, after))
    columns = np.stack(
        [
            np.broadcast_to(task, n),
            np.broadcast_to(bucket, n),
            runs_before,
            rng.binomial(runs_before, chances[0]),
            runs_after,
            rng.binomial(runs_after, chances[1]),
        ]
    )
    rows, items = np.unique(columns, axis=1, return_counts=True)
    table = rows.astype(float)
    empty = np.zeros((len(items), MOMENTS))
    return Patterns(
        np.char.add("t", rows[0].astype(int).astype(str)),
        np.full(len(items), k),
        *(table[1], table[2], table[3], table[4], table[5]),
        items.astype(float),
        empty,
    )


def probable(chances: Chances, churn: Floats | None = None, k: float = 4.0) -> Patterns:
    """Items with option probabilities; the likeliest option counts as the answer."""
    p, q = chances
    moments = item_moments(p, q, churn).sum(axis=0)[None]
    one = np.ones(1)
    right = [(side > 0.5).mean() > 0.5 for side in (p, q)]
    return Patterns(
        np.array(["t"]), one * k, -one, one, one * right[0], one, one * right[1],
        one * len(p), moments,
    )  # fmt: skip


def guesses(
    rng: np.random.Generator, n: int, k: int, redrawn: float, known: float, lost: float
) -> Drawn:
    """A model that knows a share of the items and guesses the rest; training reshuffles guesses."""
    before, fresh = (rng.dirichlet(np.full(k, 1.0), n) for _ in range(2))
    after = (1 - redrawn) * before + redrawn * fresh
    sure = np.full((n, k), 0.03 / (k - 1))
    sure[:, 0] = 0.97
    knows = rng.random(n) < known
    keeps = knows & (rng.random(n) >= lost)
    u, v = np.where(knows[:, None], sure, before), np.where(keeps[:, None], sure, after)
    churn = guessing_churn(u, v, np.zeros(n, np.int64))
    patterns = probable((u[:, 0], v[:, 0]), churn, float(k))
    truth = known * lost * (0.97 - 1 / k)
    return Drawn(patterns, truth)


# --- cases -----------------------------------------------------------------------------------

NULL = {"low end": (-0.003, 0.003), "false lost": (0, 0.025)}
COVERS = {"covers": (0.93, 0.975), "false lost": (0, 0.025), "false held": (0, 0.025)}


def from_runs(population: Population, n: int, runs: Any, truth: float) -> Any:
    return partial(_from_runs, population, n, runs, truth)


def _from_runs(
    population: Population, n: int, runs: Any, truth: float, rng: np.random.Generator
) -> Drawn:
    return Drawn(counted(rng, population(rng, n), runs), truth)


def _from_options(population: Population, n: int, truth: float, rng: np.random.Generator) -> Drawn:
    return Drawn(probable(population(rng, n)), truth)


def _many_tasks(
    tasks: int, items: int, rate: float, spread: float, rng: np.random.Generator
) -> Drawn:
    """Tasks of models without noise; with `spread` the tasks differ in what is lost."""
    rates = np.full(tasks, rate)
    if spread:
        rates = rng.beta(rate * spread, (1 - rate) * spread, tasks)
    parts = [flips(rng, items, own) for own in rates]
    chances = tuple(np.concatenate(side) for side in zip(*parts, strict=True))
    patterns = counted(rng, (chances[0], chances[1]), task=np.repeat(np.arange(tasks), items))
    return Drawn(patterns, float(rates.mean()), rate)


def _clusters(
    clusters: int, items: int, rate: float, alike: float, rng: np.random.Generator
) -> Drawn:
    """Clusters of items that are lost together: `alike` is the correlation within a cluster."""
    weight = 1 / alike - 1
    rates = rng.beta(rate * weight, (1 - rate) * weight, clusters) if rate else np.zeros(clusters)
    bucket = np.repeat(np.arange(clusters), items)
    chances = flips(rng, clusters * items, 0.0)
    lost = rng.random(clusters * items) < rates[bucket]
    before = np.where(lost, 1.0, chances[0])
    after = np.where(lost, 0.0, chances[0])
    return Drawn(counted(rng, (before, after), bucket=bucket), rate)


def _missing_repeats(n: int, truth: float, rng: np.random.Generator) -> Drawn:
    """One item in twenty lacks a repeat; one item has a single one."""
    runs = np.where(rng.random(n) < 0.05, 2, 3)
    runs[0] = 1
    return Drawn(counted(rng, some_fall(rng, n), (runs, 3)), truth)


def cases() -> list[Case]:
    """All lines of the table."""
    every: list[Case] = []
    for runs in (3, 5):
        for n in (50, 200, 1000, 10_000):
            setting = f"S = {runs}, n = {n:,}"
            draw = from_runs(unchanged, n, runs, 0.0)
            every.append(Case("same model", setting, draw, NULL))
    for population, name in ((only_gains, "all rise"), (some_gain, "a fifth rises")):
        for runs, n in ((3, 200), (3, 1000), (5, 1000)):
            must = {"low end": (-0.002, 0.002), "least": (-0.002, 1), "false lost": (0, 0.025)}
            draw = from_runs(population, n, runs, 0.0)
            every.append(Case(f"only gains: {name}", f"S = {runs}, n = {n:,}", draw, must))
    truth = loss_of(some_fall)
    for runs, n in ((3, 1000), (3, 10_000), (5, 1000)):
        every.append(
            Case(
                "10 % fall, 20 % rise",
                f"S = {runs}, n = {n:,}",
                from_runs(some_fall, n, runs, truth),
                {"low end": (0.028, 0.042), "inside": (0.95, 1), "false held": (0, 0.025)},
            )
        )
    for n in (200, 1000):
        draw = partial(_missing_repeats, n, truth)
        must = {"inside": (0.95, 1), "finite": (1, 1)}
        every.append(Case("5 % lack a repeat", f"S = 3, n = {n:,}", draw, must))
    every += _option_cases() + _guessing_cases() + _group_cases()
    return every


def _option_cases() -> list[Case]:
    populations: dict[str, Population] = {
        "wobble": partial(wobble, size=0.3),
        "strong wobble": partial(wobble, size=2.0),
        ".5 % fall from 1 to 0": partial(rare, share=0.005),
        "2 % fall from 1 to 0": partial(rare, share=0.02),
        ".5 % fall, the rest wobbles": partial(rare, share=0.005, size=0.3),
        "10 % fall, 20 % rise": some_fall,
        "6 % lost, half rise": hidden_loss,
    }
    every = []
    for name, population in populations.items():
        truth = loss_of(population)
        for n in (50, 200, 500, 2000):
            draw = partial(_from_options, population, n, truth)
            # Of two or three losses no interval covers just 95 %: counts move in steps.
            few = n == 50 or (n <= 500 and "from 1 to 0" in name)
            must = {**COVERS, "covers": (0.93, 0.995)} if few else COVERS
            every.append(
                Case(f"option probabilities: {name}", f"n = {n:,}", draw, must, {"margin": truth})
            )
    five = partial(rare, share=0.05)
    known = {"found": (0.995, 1)}
    draw = partial(_from_options, five, 1000, 0.05)
    every.append(Case("option probabilities: 5 % lost", "n = 1,000", draw, known))
    return every


def _guessing_cases() -> list[Case]:
    every = []
    for k in (3, 4, 5, 10):
        for redrawn, words in ((0.3, "mildly"), (1.0, "wholly")):
            draw = _drawn_guesses(1000, k, redrawn, 0.0, 0.0)
            must = {"low end": (-0.005, 0.005), "false lost": (0, 0.025)}
            every.append(Case(f"nothing known, redrawn {words}", f"k = {k}, n = 1,000", draw, must))
    for n in (200, 1000):
        draw = _drawn_guesses(n, 4, 1.0, 0.6, 0.1)
        every.append(
            Case("60 % known, a tenth lost", f"k = 4, n = {n:,}", draw, {"inside": (0.95, 1)})
        )
    return every


def _drawn_guesses(n: int, k: int, redrawn: float, known: float, lost: float) -> Any:
    return partial(_guessed, n, k, redrawn, known, lost)


def _guessed(
    n: int, k: int, redrawn: float, known: float, lost: float, rng: np.random.Generator
) -> Drawn:
    return guesses(rng, n, k, redrawn, known, lost)


def _group_cases() -> list[Case]:
    every = []
    wide = {**COVERS, "covers": (0.93, 0.98)}
    for tasks, items, rate in ((57, 100, 0.05), (20, 40, 0.005), (20, 40, 0.02)):
        draw = partial(_many_tasks, tasks, items, rate, 0.0)
        plan = {"margin": rate, "deterministic": True}
        setting = f"{tasks} x {items}, {rate:.1%} lost"
        every.append(Case("macro average", setting, draw, wide, plan, macro=True))
    at_least = {"covers": (0.93, 1), "false lost": (0, 0.025), "false held": (0, 0.025)}
    for tasks, items in ((300, 3), (300, 1)):
        draw = partial(_many_tasks, tasks, items, 0.05, 0.0)
        plan = {"margin": 0.05, "deterministic": True}
        every.append(Case("total of tiny tasks", f"{tasks} x {items}", draw, at_least, plan))
    for clusters, items, rate in ((6, 20, 0.05), (10, 20, 0.05), (30, 10, 0.05), (20, 10, 0.005)):
        draw = partial(_clusters, clusters, items, rate, 0.2)
        plan = {"margin": rate, "deterministic": True}
        setting = f"{clusters} clusters of {items}, {rate:.1%} lost"
        every.append(Case("clusters", setting, draw, at_least, plan))
    draw = partial(_clusters, 6, 4, 0.0, 0.2)
    every.append(
        Case("clusters", "no flip in 24 items", draw, {"held": (0, 0)}, {"deterministic": True})
    )
    for tasks in (5, 20, 57):
        draw = partial(_many_tasks, tasks, 100, 0.05, 20.0)
        must = {"covers like these": (0.93, 0.98), "covers": (0.93, 0.98)}
        plan = {"deterministic": True}
        every.append(Case("tasks as a sample", f"{tasks} tasks x 100", draw, must, plan))
    return every


# --- measuring -------------------------------------------------------------------------------


class Seen(NamedTuple):
    """What one simulated pair gave."""

    low_end: float
    high_end: float
    low: float
    high: float
    verdict: str
    truth: float
    population: float | None
    like_these: tuple[float, float] | None


def look(case: Case, seed: list[int]) -> Seen:
    """Draw one pair and map it."""
    drawn = case.draw(np.random.default_rng(seed))
    table = CellTable(drawn.patterns, {}, Plan(**{"margin": MARGIN, **(case.plan or {})}))
    cell: Cell = table.macro() if case.macro else table.total()
    lost, like = cell.lost, cell.like_these
    return Seen(
        *(lost.low_end, lost.high_end, lost.low, lost.high),
        *(cell.verdict.forgetting, drawn.truth, drawn.population),
        like and (like.lost.low, like.lost.high),
    )


def measure(seen: list[Seen]) -> dict[str, tuple[float, float]]:
    """Every measure of a case with its own simulation error (one standard error)."""

    def share(hits: list[bool]) -> tuple[float, float]:
        rate = float(np.mean(hits))
        return rate, math.sqrt(max(rate * (1 - rate), 1 / len(hits)) / len(hits))

    low_ends = np.array([one.low_end for one in seen])
    tiny = 1e-9
    covered = [one.low - tiny <= one.truth <= one.high + tiny for one in seen]
    result = {
        "low end": (float(low_ends.mean()), float(low_ends.std() / math.sqrt(len(seen)))),
        "least": (float(low_ends.min()), 0.0),
        "high end": (float(np.mean([one.high_end for one in seen])), 0.0),
        "covers": share(covered),
        "inside": share(covered),
        "false lost": share([one.verdict == "lost" for one in seen]),
        "false held": share([one.verdict == "held" for one in seen]),
        "held": (float(np.mean([one.verdict == "held" for one in seen])), 0.0),
        "found": (float(np.mean([one.verdict == "lost" for one in seen])), 0.0),
        "finite": (float(np.mean([np.isfinite([one.low, one.high]).all() for one in seen])), 0.0),
    }
    sampled = [one for one in seen if one.like_these and one.population is not None]
    if sampled:
        result["covers like these"] = share(
            [low <= one.population <= high for one in sampled for low, high in [one.like_these]]  # type: ignore[operator, misc, union-attr]
        )
    return result


def holds(case: Case, measured: dict[str, tuple[float, float]], errors: float = 2.0) -> bool:
    """Whether every measure lies within its bars, so many simulation errors allowed."""
    return all(
        low - errors * measured[name][1] <= measured[name][0] <= high + errors * measured[name][1]
        for name, (low, high) in case.must.items()
    )


def run_case(case: Case, runs: int) -> dict[str, tuple[float, float]]:
    """Simulate one line of the table."""
    own = zlib.crc32(f"{case.regime} {case.setting}".encode())  # or all lines err alike
    return measure([look(case, [own, seed]) for seed in range(runs)])


def row(case: Case, measured: dict[str, tuple[float, float]], truth: float) -> str:
    """One line of the table in Markdown."""
    told = []
    for name, (low, high) in case.must.items():
        value, error = measured[name]
        bars = f"{low * 100:.3g} to {high * 100:.3g}"
        around = f" ± {error * 100:.1f}" if error else ""
        told.append(f"{name} {value * 100:.1f}{around} (must: {bars})")
    ends = f"{measured['low end'][0] * 100:.1f} to {measured['high end'][0] * 100:.1f}"
    verdict = "yes" if holds(case, measured) else "**no**"
    cells = (case.regime, case.setting, f"{truth * 100:.2f}", ends, "; ".join(told), verdict)
    return f"| {' | '.join(cells)} |"


HEADER = """# What the intervals promise, simulated

`python benchmarks/simulate.py` draws items from populations whose loss is known, maps them, and
compares. All numbers are percent. *Ends* are the means of the two ends of `lost`. Each measure has
its simulation error (one standard error) and its bars; *holds* allows two of these errors. Rates
of false verdicts are taken where they are worst: with the margin at the true loss, or, where
nothing was lost, at 2 %.

"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--only", default="", help="only the regimes that hold this word")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/explanation/coverage.md")
    options = parser.parse_args()
    chosen = [case for case in cases() if options.only in f"{case.regime} {case.setting}"]
    began, lines, held = time.monotonic(), [], 0
    with ProcessPoolExecutor(2) as pool:
        work = [pool.submit(run_case, case, options.runs) for case in chosen]
        for case, job in zip(chosen, work, strict=True):
            measured = job.result()
            truth = case.draw(np.random.default_rng(0)).truth
            lines.append(row(case, measured, truth))
            held += holds(case, measured)
            print(lines[-1], flush=True)
    names = ("regime", "setting", "truth", "ends", "measured", "holds")
    table = f"| {' | '.join(names)} |\n|{' --- |' * len(names)}\n"
    summary = f"\n{held} of {len(chosen)} lines hold, at {options.runs:,} simulated pairs a line.\n"
    print(summary, f"{time.monotonic() - began:.0f} s", file=sys.stderr)
    if not options.only:
        options.out.write_text(HEADER + table + "\n".join(lines) + "\n" + summary)


if __name__ == "__main__":
    main()
