"""Is a study honest? Simulated studies with known truth, answered many times.

Every cell has its own simulation error: two standard errors of the simulation. Writes
docs/explanation/study-simulation.md.

    python benchmarks/study_simulation.py [--runs 1000] [--seed N] [--jobs N] [--out FILE]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forgetmap.map.cells import ALPHA
from forgetmap.stats.estimate import Estimate
from forgetmap.stats.tests import holm
from forgetmap.study.answers import answer, leaderboard
from forgetmap.study.findings import REGIMES
from forgetmap.study.items import ItemTable
from forgetmap.study.result import (
    Answers,
    Claim,
    Dose,
    Effect,
    Number,
    Share,
    StudiedPair,
    StudyCell,
)
from forgetmap.study.units import TRAININGS

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "explanation" / "study-simulation.md"
SEED = 20261116
AIM = (0.93, 0.97)
"""Coverage of an interval of 95 %."""
METHODS = ("anchor", "replay", "sft")
CATEGORIES = ("Math", "Logic", "Culture", "Language")
Rng = np.random.Generator


class Cell(NamedTuple):
    """A share of runs with two standard errors of the simulation."""

    value: float
    error: float
    n: int

    def __str__(self) -> str:
        return f"{100 * self.value:.1f} ± {100 * self.error:.1f}" if self.n else "-"


def share(hits: Sequence[bool]) -> Cell:
    """A share of runs; one more hit and one more miss keep the error above zero."""
    n = len(hits)
    if not n:
        return Cell(math.nan, math.nan, 0)
    smooth = (sum(hits) + 1) / (n + 2)
    return Cell(sum(hits) / n, 2 * math.sqrt(smooth * (1 - smooth) / n), n)


# --- simulated studies ---------------------------------------------------------------------------


class Truth(NamedTuple):
    """A study of every family, size, method and seed, and what truly matters in it."""

    families: int = 4
    sizes: int = 4
    methods: int = 2
    seeds: int = 2
    slope: float = 0.0
    """Of the loss, each time the size doubles."""
    method: float = 0.0
    """How much more the last method loses than the first."""
    family_spread: float = 0.03
    kind_spread: float = 0.01
    """Of a kind of training around what its attributes say."""
    seed_spread: float = 0.01
    cell_spread: float = 0.01
    stages: bool = False
    """Whether the methods are stages of post-training."""


def study(truth: Truth, rng: Rng) -> list[StudiedPair]:
    """One draw of a study."""
    names = list(REGIMES) if truth.stages else list(METHODS)
    pairs = []
    for family in range(truth.families):
        of_family = rng.normal(0, truth.family_spread)
        for step in range(truth.sizes):
            for number, name in enumerate(names[: truth.methods]):
                level = 0.2 + of_family + truth.slope * step + rng.normal(0, truth.kind_spread)
                level += truth.method * (number == truth.methods - 1)
                attributes: dict[str, float | str] = {
                    "family": f"f{family}",
                    "size": 1e9 * 2.0**step,
                    "stage" if truth.stages else "method": name,
                }
                for seed in range(truth.seeds):
                    mine = {**attributes, "seed": float(seed)} if truth.seeds > 1 else attributes
                    lost = level + rng.normal(0, truth.seed_spread)
                    cells = lost + rng.normal(0, truth.cell_spread, len(CATEGORIES))
                    gains = 0.1 + rng.normal(0, 0.01) + rng.normal(0, 0.01, len(CATEGORIES))
                    pairs.append(_pair(f"p{len(pairs)}", mine, cells, gains))
    return pairs


def _pair(
    name: str,
    attributes: dict[str, float | str],
    lost: NDArray[np.float64],
    gained: NDArray[np.float64],
) -> StudiedPair:
    parts = {
        part: _cell(float(lost[place]), float(gained[place]))
        for place, part in enumerate(CATEGORIES)
    }
    return StudiedPair(
        name=name,
        attributes=attributes,
        before="before",
        after=name,
        before_log=str(attributes["family"]),
        after_log=name,
        old=_cell(float(lost.mean()), float(gained.mean())),
        new=None,
        categories=parts,
        tasks=parts,
        coverage=None,
        metric={},
        confounds=[],
        warnings=[],
    )


def _cell(lost: float, gained: float) -> StudyCell:
    return StudyCell(
        n=None,
        accuracy_before=None,
        accuracy_after=None,
        change=Number(value=gained - lost),
        lost=Share(low_end=lost, high_end=lost, basis="published"),
        gained=Share(low_end=gained, high_end=gained, basis="published"),
        p_value=None,
        verdict=None,
    )


def answered(truth: Truth, runs: int, seed: int) -> Iterator[Answers]:
    """Many draws, answered."""
    rng = np.random.default_rng(seed)
    for _ in range(runs):
        yield answer(study(truth, rng), None)


# --- 1. intervals --------------------------------------------------------------------------------

SLOPES = {
    "3 families, 4 sizes": Truth(families=3, slope=-0.01),
    "4 families, 4 sizes": Truth(slope=-0.01),
    "6 families, 3 sizes": Truth(families=6, sizes=3, slope=-0.01),
    "6 families, 3 sizes, families alike": Truth(
        families=6, sizes=3, slope=-0.01, family_spread=0.0
    ),
    "6 families, 4 sizes, one seed, three methods": Truth(
        families=6, seeds=1, methods=3, slope=-0.01, method=0.03
    ),
}


class Covered(NamedTuple):
    """How often intervals hold the truth."""

    over_families: Cell
    within_families: Cell
    of_one_kind: Cell
    by_category: Cell
    size_effect: Cell
    """In the model of all attributes."""
    method_effect: Cell


def coverage(truth: Truth, runs: int, seed: int = SEED) -> Covered:
    """The slopes on size and the effects of the model of all attributes."""
    hits: dict[object, list[bool]] = {}
    for found in answered(truth, runs, seed):
        for slope in found.slopes:
            hits.setdefault(slope.within, []).append(_holds(slope.per_doubling, truth.slope))
        for dose in found.doses:
            hits.setdefault("dose", []).append(_holds(dose.per_doubling, truth.slope))
        for model in found.factors.models if found.factors else []:
            for effect in model.effects if model.of == "lost" else []:
                wanted = truth.slope if effect.value is None else _effect(truth, effect.value)
                hits.setdefault(effect.attribute, []).append(_holds(effect.estimate, wanted))
    keys = (None, "family", "kind", "dose", "size", "method")
    return Covered(*(share(hits.get(key, [])) for key in keys))


def _effect(truth: Truth, value: float | str) -> float:
    """Against the first method, which is the reference."""
    return truth.method if value == _last(truth) else 0.0


def _holds(estimate: Estimate, truth: float) -> bool:
    return estimate.low <= truth <= estimate.high


# --- 2. false claims -----------------------------------------------------------------------------

NOTHING = {
    "4 families, 4 sizes, 2 methods, 2 seeds": Truth(),
    "3 families, 3 sizes, 3 methods, 3 seeds": Truth(families=3, sizes=3, methods=3, seeds=3),
    "8 families, 4 sizes, 3 methods, one seed": Truth(families=8, methods=3, seeds=1),
    "3 families, 3 sizes, 6 stages, one seed": Truth(
        families=3, sizes=3, methods=6, seeds=1, stages=True
    ),
}


class Claimed(NamedTuple):
    """In how many studies something is claimed that is not so."""

    statements: Cell
    effects: Cell
    doses: Cell
    findings: Cell
    anything: Cell


def false_claims(truth: Truth, runs: int, seed: int = SEED) -> Claimed:
    """Studies in which nothing matters but family, kind and seed."""
    rows = [_claimed(found) for found in answered(truth, runs, seed)]
    columns = [share([row[place] for row in rows]) for place in range(4)]
    return Claimed(*columns, share([any(row) for row in rows]))


def _claimed(found: Answers) -> tuple[bool, bool, bool, bool]:
    # Families truly differ, and so do two single kinds of training: to say so is not false.
    statements = [
        claim
        for claim in found.claims
        if not claim.text.startswith("family") and _is_general(claim)
    ]
    models = found.factors.models if found.factors else []
    effects = [e for model in models for e in model.effects if e.attribute != "family"]
    findings = found.stages.findings if found.stages else []
    return (
        any(claim.claimed for claim in statements),
        any(effect.claimed for effect in effects),
        any(dose.claimed for dose in found.doses),
        any(
            finding.verdict != "can't tell" and finding.name in DIFFERENCES for finding in findings
        ),
    )


def _is_general(claim: Claim) -> bool:
    """Whether it is about more than two single kinds of training."""
    return claim.unit != TRAININGS


DIFFERENCES = (
    *("domain-gain", "instruct-gain", "base-gain", "base-less", "low-data-loss", "low-data-gain"),
    *("high-data-mixed", "size-loss", "size-gain"),
)
"""Findings that are false where nothing matters; the others are about limits and margins."""


# --- 3. power ------------------------------------------------------------------------------------

POWER = {
    f"{name}, {words}": truth._replace(**effect)
    for name, truth in {
        "4 families, 4 sizes, 2 methods, 2 seeds": Truth(),
        "3 families, 3 sizes, 3 methods, 3 seeds": Truth(families=3, sizes=3, methods=3, seeds=3),
    }.items()
    for words, effect in {
        "size: 0.25 points a doubling": {"slope": -0.0025},
        "size: 0.5 points a doubling": {"slope": -0.005},
        "size: 1 point a doubling": {"slope": -0.01},
        "method: 1 point": {"method": 0.01},
        "method: 2 points": {"method": 0.02},
        "method: 4 points": {"method": 0.04},
    }.items()
}
"""Studies in which one thing matters, and how much."""


class Power(NamedTuple):
    """In how many studies a true effect is claimed, by what is corrected together."""

    claimed: Cell
    """As forgetmap does it: everything together, every part with the same say."""
    plain: Cell
    """Everything together, every single test with the same say."""
    apart: Cell
    """Statements, effects and doses each by themselves."""
    alone: Cell
    """Nothing: the p-value as it is."""


def power(truth: Truth, runs: int, seed: int = SEED) -> Power:
    """How often a statement, an effect or a dose tells the one thing that matters."""
    rows = [_told(found, truth) for found in answered(truth, runs, seed)]
    return Power(*(share(list(column)) for column in zip(*rows, strict=True)))


def _told(found: Answers, truth: Truth) -> list[bool]:
    models = found.factors.models if found.factors else []
    parts: list[Sequence[Claim | Effect | Dose]] = [
        found.claims,
        [effect for model in models for effect in model.effects],
        found.doses,
    ]
    everything = [row for part in parts for row in part]
    plain = holm([row.p_value for row in everything])
    apart = np.concatenate([holm([row.p_value for row in part]) for part in parts])
    hits = [
        (row.claimed, one < ALPHA, own < ALPHA, row.p_value < ALPHA)
        for row, one, own in zip(everything, plain, apart, strict=True)
        if _tells(row, truth)
    ]
    return [any(column) for column in zip(*hits, strict=True)]


def _tells(row: Claim | Effect | Dose, truth: Truth) -> bool:
    """Whether a row is about what matters in the study; two single trainings are not."""
    if isinstance(row, Claim):
        if truth.slope:
            return " size doubles" in row.text
        return row.text.startswith("method") and _last(truth) in row.text and _is_general(row)
    if truth.slope:
        return row.attribute == "size"
    return isinstance(row, Effect) and row.value == _last(truth)


def _last(truth: Truth) -> str:
    """The one method that may lose more than the others."""
    return METHODS[truth.methods - 1]


# --- 4. ranks ------------------------------------------------------------------------------------

RANKS: dict[str, tuple[int, Callable[[int], NDArray[np.float64]]]] = {
    "10 pairs that lost alike, 100 items": (100, lambda n: np.full(n, 0.05)),
    "10 pairs that lost alike, 1,000 items": (1000, lambda n: np.full(n, 0.05)),
    "10 pairs in two groups, 500 items": (
        500,
        lambda n: np.where(np.arange(n) < n / 2, 0.05, 0.15),
    ),
    "10 pairs, each half a point more, 1,000 items": (1000, lambda n: 0.02 + 0.005 * np.arange(n)),
    "10 pairs, each two points more, 1,000 items": (1000, lambda n: 0.02 + 0.02 * np.arange(n)),
}


class Ranked(NamedTuple):
    """What is said about the ranks of ten pairs."""

    right: Cell
    """Studies in which every statement on ranks is true."""
    width: float
    """Mean number of ranks that a pair may have."""


def ranks(items: int, truth: NDArray[np.float64], runs: int, seed: int = SEED) -> Ranked:
    """All pairs on the same items, of which some are easier to lose than others."""
    rng = np.random.default_rng(seed)
    less = (truth[:, None] < truth).sum(axis=0)
    more = (truth[:, None] > truth).sum(axis=0)
    right, widths = [], []
    for _ in range(runs):
        ease = rng.gamma(2.0, 0.5, items)
        lost = rng.random((len(truth), items)) < np.minimum(1, truth[:, None] * ease)
        board = {row.name: row for row in leaderboard(_pairs_of(lost), _table(lost))}
        found = [board[f"p{number}"] for number in range(len(truth))]
        best = np.array([row.best for row in found])
        worst = np.array([row.worst for row in found])
        right.append(bool((best <= 1 + less).all() and (worst >= len(truth) - more).all()))
        widths.append(float((worst - best + 1).mean()))
    return Ranked(share(right), float(np.mean(widths)))


def _pairs_of(lost: NDArray[np.bool_]) -> list[StudiedPair]:
    zero = np.zeros(len(CATEGORIES))
    return [
        _pair(f"p{number}", {"family": "f"}, np.full(len(CATEGORIES), row.mean()), zero)
        for number, row in enumerate(lost)
    ]


def _table(lost: NDArray[np.bool_]) -> ItemTable:
    seen = np.ones_like(lost)
    items = lost.shape[1]
    return ItemTable(
        pairs=[],
        tasks=["t"],
        task=np.zeros(items, np.intp),
        key=np.arange(items, dtype=np.uint64),
        places=[],
        seen=seen,
        loss=lost.astype(np.float32),
        gain=np.zeros_like(lost, np.float32),
        knew=seen,
        lost=lost,
        unit=None,
    )


# --- the page ------------------------------------------------------------------------------------


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table in Markdown."""
    lines = [f"| {' | '.join(head)} |", "| --- |" + " ---: |" * (len(head) - 1)]
    return "\n".join([*lines, *(f"| {' | '.join(map(str, row))} |" for row in rows)])


COLUMNS = (
    *("over families", "within families", "of one kind", "by category"),
    *("size effect", "method effect"),
)


Row = tuple[str, *tuple[Cell | str, ...]]
POWER_COLUMNS = ("claimed", "plain Holm", "parts apart", "uncorrected")


def outside(rows: Sequence[Row]) -> str:
    """The cells that are not within the aim, given the error of the simulation."""
    told = [
        f"{name}, {column} ({cell})"
        for name, *cells in rows
        for column, cell in zip(COLUMNS, cells, strict=True)
        if isinstance(cell, Cell)
        and cell.n
        and (cell.value - cell.error > AIM[1] or cell.value + cell.error < AIM[0])
    ]
    return f"Outside the aim: {'; '.join(told) or 'none'}."


def row(part: str, name: str, runs: int, seed: int) -> Row:
    """One row of a table of the page."""
    if part == "ranks":
        items, truth = RANKS[name]
        found = ranks(items, truth(10), runs, seed)
        return name, found.right, f"{found.width:.1f}"
    truths, measure = MEASURED[part]
    return name, *measure(truths[name], runs, seed)


MEASURED: dict[str, tuple[dict[str, Truth], Callable[[Truth, int, int], tuple[Cell, ...]]]] = {
    "intervals": (SLOPES, coverage),
    "false claims": (NOTHING, false_claims),
    "power": (POWER, power),
}
"""What is simulated, and what is looked at in it."""


def page(runs: int, seed: int, jobs: int) -> str:
    """The whole page."""
    asked = [(part, name) for part, (truths, _) in MEASURED.items() for name in truths]
    asked += [("ranks", name) for name in RANKS]
    with ProcessPoolExecutor(jobs) as pool:
        waiting = [pool.submit(row, *one, runs, seed) for one in asked]
        found = [(part, each.result()) for (part, _), each in zip(asked, waiting, strict=True)]
    covered, false, powers, ranked = (
        [cells for part, cells in found if part == wanted] for wanted in (*MEASURED, "ranks")
    )
    return f"""# Is a study honest?

Written by `python benchmarks/study_simulation.py --runs {runs}`. Studies with known truth are drawn
and answered {runs:,} times a row. All numbers are percent. `±` is the simulation's own error (two
standard errors).

## Intervals

How many of the 95 % intervals hold the truth: 93 to 97 is the aim. Every study has all its
families, sizes, methods (two unless it says otherwise) and seeds (two). The first four columns are
slopes of the loss on the logarithm of size: over all pairs with families as units, within families,
within pairs that are alike in family and method, and by category. The last two are effects in the
model of all attributes.

{table(("study", *COLUMNS), covered)}

{outside(covered)}

A slope within families takes out what the methods do, with a level for each of them. The one within
pairs of one kind has a level for each family and method.

## False claims

Studies in which neither size nor method matters, while families, kinds of training and seeds do.
In how many of them is something claimed about size, method or stage? All that a study claims is one
family of tests (Holm), so 5 is the most that is allowed in the last column.

{table(("study", "statements", "effects", "doses", "findings", "anything"), false)}

## Power

One thing matters in each of these studies: the loss falls by so much each time the size doubles, or
the last method loses so much more than the others. In how many studies is it claimed, by any
statement, effect or dose? `claimed` is what forgetmap does: all that a study claims is one family,
in which each part (statements on all pairs, on two trainings, effects, doses, findings) has
the same weight. The other columns show what that costs, or saves. `plain Holm` gives each single
test the same weight. `parts apart` corrects each part by itself, and `uncorrected` not at all; both
claim more that is false.

{table(("study, and what matters", *POWER_COLUMNS), powers)}

## Ranks

In how many studies every statement on ranks is true, and how many ranks a pair may have on average.
Items differ in how easily they are lost. All comparisons of two pairs are one family (Holm), so 95
is the least that is allowed.

{table(("study", "all right", "ranks per pair"), ranked)}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--out", type=Path, default=PAGE)
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    asked.out.write_text(page(asked.runs, asked.seed, asked.jobs), encoding="utf-8")


if __name__ == "__main__":
    main()
