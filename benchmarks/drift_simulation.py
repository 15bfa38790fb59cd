"""Is capability drift honest? Simulated models with a known change, compared many times.

Every table says what must hold, and every cell has its own simulation error: two standard errors of
the simulation. Writes docs/explanation/drift-simulation.md.

    python benchmarks/drift_simulation.py [--runs 1000] [--seed N] [--out FILE]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from forgetmap.capabilities.drift import compare_scores
from forgetmap.capabilities.manifest import Capability, Manifest, Metric
from forgetmap.pairing.scores import MetricPairs
from forgetmap.samples.comparability import Coverage
from forgetmap.samples.table import Samples

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from forgetmap.capabilities.drift_result import Drift
    from forgetmap.pairing.scores import ScorePairs

    Floats = NDArray[np.float64]

ROOT = Path(__file__).resolve().parents[1]
SEED = 20261116
DRAWS = 1_000
BATCH = 100
"""Runs that are compared in one call."""
AIM = (0.93, 0.97)
"""Coverage of an interval of 95 %."""
FEWEST = 20
"""Of fewer runs nothing is said."""
Rng = np.random.Generator


class Cell(NamedTuple):
    """A share or a mean with its simulation error."""

    value: float
    error: float
    """Two standard errors."""
    n: int

    def __str__(self) -> str:
        if self.n < FEWEST:
            return "-"
        return f"{100 * self.value:.1f} ± {100 * self.error:.1f}"


def share(hits: Sequence[bool]) -> Cell:
    """A share of runs; one more hit and one more miss keep the error above zero."""
    n = len(hits)
    if not n:
        return Cell(math.nan, math.nan, 0)
    smooth = (sum(hits) + 1) / (n + 2)
    return Cell(sum(hits) / n, 2 * math.sqrt(smooth * (1 - smooth) / n), n)


def mean(values: Sequence[float]) -> Cell:
    """A mean over runs."""
    n = len(values)
    if n < 2:
        return Cell(math.nan, math.nan, 0)
    return Cell(float(np.mean(values)), 2 * float(np.std(values, ddof=1)) / math.sqrt(n), n)


# --- simulated metrics ----------------------------------------------------------------------------


class Scores(NamedTuple):
    """One simulated metric: the scores, and the true means they were drawn from."""

    before: Floats
    after: Floats
    truth: tuple[float, float]
    range: tuple[float | None, float | None] = (0.0, 1.0)

    @property
    def relative(self) -> float:
        """The true relative change."""
        return self.truth[1] / self.truth[0] - 1


Draw = Callable[[Rng], Scores]


def fresh(n: int, before: float, after: float) -> Draw:
    """Every item has the same chance: all that is seen item by item is noise."""

    def draw(rng: Rng) -> Scores:
        sides = (rng.random(n) < before).astype(float), (rng.random(n) < after).astype(float)
        return Scores(*sides, (before, after))

    return draw


def known(n: int, before: float, after: float, luck: float = 0.3) -> Draw:
    """Easy items stay right; only a share of the items is a matter of luck."""

    def draw(rng: Rng) -> Scores:
        ease = rng.random(n)
        shaken = np.where(rng.random((2, n)) < luck, rng.random((2, n)), ease)
        sides = (shaken[0] < before).astype(float), (shaken[1] < after).astype(float)
        return Scores(*sides, (before, after))

    return draw


def lengths(n: int, factor: float = 0.9, spread: float = 0.8) -> Draw:
    """Skewed lengths without an upper bound."""

    def draw(rng: Rng) -> Scores:
        common = np.exp(rng.normal(5, spread, n))
        before, after = (common * rng.lognormal(0, 0.3, n) for _ in range(2))
        true = math.exp(5 + spread**2 / 2 + 0.3**2 / 2)
        return Scores(before, factor * after, (true, factor * true), (0.0, None))

    return draw


def shares(n: int, factor: float = 0.9) -> Draw:
    """Skewed scores between 0 and 1: most are low, a few are high."""

    def draw(rng: Rng) -> Scores:
        level, noise = rng.beta(0.4, 1.6, n), rng.beta(0.4, 1.6, (2, n))
        before, after = 0.7 * level + 0.3 * noise
        return Scores(before, factor * after, (0.2, factor * 0.2))

    return draw


def rare(n: int, lost: float, gained: float, base: float = 0.8) -> Draw:
    """Models that repeat themselves: only lost and gained items move."""

    def draw(rng: Rng) -> Scores:
        kind = rng.random(n)
        before = (kind < base).astype(float)
        after = np.where(kind < lost, 0.0, np.where(kind > 1 - gained, 1.0, before))
        return Scores(before, after, (base, base - lost + gained))

    return draw


def pairs_of(
    scores: Scores, rng: Rng, missing: float = 0.0, items: NDArray[np.uint64] | None = None
) -> MetricPairs:
    """The scores as they are paired; a share of the answers after has no score."""
    n = len(scores.before)
    lacks = rng.random(n) < missing
    ones = np.ones(n)
    return MetricPairs(
        item=np.arange(n, dtype=np.uint64) if items is None else items,
        before=scores.before,
        after=np.where(lacks, np.nan, scores.after),
        runs_before=ones,
        runs_after=np.where(lacks, 0.0, 1.0),
        said_before=ones,
        said_after=ones,
        failed_before=np.zeros(n),
        failed_after=lacks.astype(float),
        binary=np.isin(scores.before, (0, 1)) & np.isin(scores.after, (0, 1)),
        same_words=np.zeros(n, dtype=np.bool_),
    )


# --- many comparisons at once ---------------------------------------------------------------------


@dataclass
class Simulated:
    """Stands in for two files of scores."""

    pairs: dict[tuple[str, str], MetricPairs]
    samples: dict[str, Samples] = field(default_factory=dict)

    def __post_init__(self) -> None:
        row = {"task": "t", "metric": "m", "item": 1, "score": 1.0, "model": "simulated"}
        self.samples = {side: Samples.from_rows([row]) for side in ("before", "after")}

    def metrics(self) -> dict[tuple[str, str], MetricPairs]:
        """Every metric."""
        return self.pairs

    def coverage(self) -> tuple[Coverage, list[str]]:
        """Nobody asks for it here."""
        counts = dict.fromkeys(
            ("items_before", "items_after", "matched", "only_before", "only_after"), 1
        )
        return Coverage(**counts, conflicts=0, unscored=0, duplicates=0, identity="content"), []


def compared(
    runs: Sequence[Sequence[tuple[Scores, MetricPairs]]], seed: int, capabilities: int = 1
) -> Drift:
    """Compare all runs in one call; each run is a group, its metrics are spread over capabilities.

    Every metric is a task of its own.
    """
    pairs: dict[tuple[str, str], MetricPairs] = {}
    declared = []
    for run, parts in enumerate(runs):
        for number in range(capabilities):
            metrics = []
            for part, (scores, found) in enumerate(parts):
                if part % capabilities == number:
                    task = f"r{run}p{part}"
                    pairs[task, "m"] = found
                    metrics.append(Metric(task=task, scorer="a:b", metric="m", range=scores.range))
            code = f"r{run}c{number}"
            declared.append(Capability(code=code, group=f"g{run}", metrics=tuple(metrics)))
    groups = {f"g{run}": "" for run in range(len(runs))}
    manifest = Manifest(name="simulated", groups=groups, capabilities=tuple(declared))
    return compare_scores(
        cast("ScorePairs", Simulated(pairs)), manifest=manifest, draws=DRAWS, seed=seed
    )


def batches(runs: int) -> Iterator[int]:
    """Sizes of the calls that make up all runs."""
    for start in range(0, runs, BATCH):
        yield min(BATCH, runs - start)


# --- 1. the relative change of one metric ---------------------------------------------------------

SINGLE: dict[str, Draw] = {
    "unchanged, base 2 %, 1,000 items, all noise": fresh(1000, 0.02, 0.02),
    "unchanged, base 5 %, 100 items, all noise": fresh(100, 0.05, 0.05),
    "unchanged, base 5 %, 200 items, all noise": fresh(200, 0.05, 0.05),
    "unchanged, base 5 %, 400 items, all noise": fresh(400, 0.05, 0.05),
    "unchanged, base 5 %, 1,000 items, all noise": fresh(1000, 0.05, 0.05),
    "unchanged, base 5 %, 1,000 items, some noise": known(1000, 0.05, 0.05),
    "unchanged, base 10 %, 200 items, some noise": known(200, 0.10, 0.10),
    "unchanged, base 50 %, 80 items, some noise": known(80, 0.50, 0.50),
    "halved, 10 to 5 %, 300 items, some noise": known(300, 0.10, 0.05),
    "doubled, 5 to 10 %, 400 items, some noise": known(400, 0.05, 0.10),
    "lengths, 10 % shorter, 60 items": lengths(60),
}


class Single(NamedTuple):
    """What is told of one metric over many runs."""

    given: Cell
    bias: Cell
    """Mean of the relative change where it is given, minus the truth."""
    median: float
    """The same for the median."""
    covered: Cell
    alarms: Cell
    """The metric's p < .05 where the relative change is given."""
    aggregate_alarms: Cell
    """The same for the p of the capability that is made of this metric alone."""
    change: Cell
    """Coverage of the absolute change, which is always given."""


def single(draw: Draw, runs: int, seed: int = SEED) -> Single:
    """One metric, many times."""
    rng = np.random.default_rng(seed)
    given, errors, covered, change = [], [], [], []
    alarms: tuple[list[bool], list[bool]] = ([], [])
    for number, size in enumerate(batches(runs)):
        drawn = [[(scores := draw(rng), pairs_of(scores, rng))] for _ in range(size)]
        result = compared(drawn, number)
        wholes = result.capabilities
        for cell, above, [(scores, _)] in zip(result.metrics, wholes, drawn, strict=True):
            net = scores.truth[1] - scores.truth[0]
            change.append(cell.change.low <= net <= cell.change.high)
            given.append(cell.relative is not None)
            if cell.relative is not None:
                errors.append(cell.relative.value - scores.relative)
                covered.append(cell.relative.low <= scores.relative <= cell.relative.high)
                for found, told in zip(alarms, (cell, above), strict=True):
                    found.append(told.p_value < 0.05)
    middle = float(np.median(errors)) if errors else math.nan
    rates = share(covered), *map(share, alarms), share(change)
    return Single(share(given), mean(errors), middle, *rates)


# --- 2. aggregates of ten parts -------------------------------------------------------------------


def every(draw: Draw) -> Callable[[Rng], list[tuple[Scores, float]]]:
    """Ten equal parts, all answers there."""
    return lambda rng: [(draw(rng), 0.0) for _ in range(10)]


def unequal(rng: Rng) -> list[tuple[Scores, float]]:
    """Parts of all sizes and kinds."""
    kinds = [known(size, 0.7, 0.6) for size in (15, 20, 30, 50, 100, 400)]
    kinds += [shares(25), shares(80), known(40, 0.9, 0.85), known(60, 0.4, 0.5)]
    return [(draw(rng), 0.0) for draw in kinds]


def gappy(rng: Rng) -> list[tuple[Scores, float]]:
    """Some answers lack a score, some parts are too small for a relative change."""
    kinds = [known(60, 0.7, 0.6), known(100, 0.5, 0.5), shares(60), shares(100)]
    kinds += [known(80, 0.8, 0.7), known(60, 0.9, 0.9), known(100, 0.6, 0.65), shares(80)]
    kinds += [fresh(100, 0.04, 0.04), fresh(150, 0.05, 0.03)]
    return [(draw(rng), 0.2) for draw in kinds]


def low(rng: Rng) -> list[tuple[Scores, float]]:
    """Low bases, some above and some below what a ratio needs."""
    kinds = [fresh(size, 0.05, 0.05) for size in (200, 300, 400, 500, 600)]
    kinds += [known(size, 0.10, 0.08) for size in (150, 200, 250, 300, 350)]
    return [(draw(rng), 0.0) for draw in kinds]


TEN: dict[str, Callable[[Rng], list[tuple[Scores, float]]]] = {
    "right or wrong, 20 items": every(known(20, 0.7, 0.6)),
    "right or wrong, 45 items": every(known(45, 0.8, 0.7)),
    "right or wrong, 60 items": every(known(60, 0.7, 0.6)),
    "right or wrong, 60 items, unchanged": every(known(60, 0.7, 0.7)),
    "right or wrong, 200 items": every(known(200, 0.7, 0.6)),
    "few flips: 3 % lost, 1 % gained, 50 items": every(rare(50, 0.03, 0.01)),
    "losses only: 4 % lost, 60 items": every(rare(60, 0.04, 0.0)),
    "all noise, base 20 %, 100 items": every(fresh(100, 0.2, 0.2)),
    "skewed shares, 30 items": every(shares(30)),
    "skewed shares, 100 items": every(shares(100)),
    "skewed lengths, 40 items": every(lengths(40, spread=0.5)),
    "very skewed lengths, 100 items": every(lengths(100)),
    "unequal parts, 15 to 400 items": unequal,
    "low bases, 150 to 600 items": low,
    "a fifth of the scores missing, two parts tiny": gappy,
}


class Whole(NamedTuple):
    """What is told of an aggregate over many runs."""

    covered: Cell
    below: Cell
    """The truth lies below the interval."""
    above: Cell
    bias: Cell
    group: Cell
    """Coverage of a group of five capabilities of two parts each."""
    change: Cell
    """Coverage of the plain change, which is given for all parts with a range."""


def whole(draw: Callable[[Rng], list[tuple[Scores, float]]], runs: int, seed: int = SEED) -> Whole:
    """A capability of ten metrics, and a group of the same ten."""
    rng = np.random.default_rng(seed)
    below, above, errors, group, change = [], [], [], [], []
    for number, size in enumerate(batches(runs)):
        drawn = [
            [(scores, pairs_of(scores, rng, missing)) for scores, missing in draw(rng)]
            for _ in range(size)
        ]
        one, five = compared(drawn, number), compared(drawn, number, 5)
        truths = {
            f"r{run}p{part} m": scores.relative
            for run, parts in enumerate(drawn)
            for part, (scores, _) in enumerate(parts)
        }
        inner = {cell.code: [truths[name] for name in cell.parts] for cell in five.capabilities}
        for cell, parts in zip(one.capabilities, drawn, strict=True):
            if cell.change is not None:
                net = float(np.mean([scores.truth[1] - scores.truth[0] for scores, _ in parts]))
                change.append(cell.change.low <= net <= cell.change.high)
            if cell.relative is not None:
                truth = float(np.mean([truths[name] for name in cell.parts]))
                below.append(truth < cell.relative.low)
                above.append(truth > cell.relative.high)
                errors.append(cell.relative.value - truth)
        for found in five.groups:
            if found.relative is not None:
                truth = float(np.mean([np.mean(inner[code]) for code in found.parts]))
                group.append(found.relative.low <= truth <= found.relative.high)
    inside = [not (under or over) for under, over in zip(below, above, strict=True)]
    sides = share(below), share(above)
    return Whole(share(inside), *sides, mean(errors), share(group), share(change))


# --- 3. answers without a score -------------------------------------------------------------------

STEADY = rare(3000, 0.002, 0.002)
"""Hardly an item moves: surely within the margin of two points."""
MISSING = (0.0, 0.005, 0.05, 0.5)


class Verdicts(NamedTuple):
    """How often a metric and its capability are called equivalent, or better."""

    metric: Cell
    capability: Cell


def with_missing(
    draw: Draw, missing: float, words: Sequence[str], runs: int, *, failures: bool = False
) -> Verdicts:
    """Verdicts where a share of the answers has no score.

    Args:
        draw: The metric.
        missing: Share of the answers after that lack a score, at random.
        words: The verdicts to count.
        runs: How many.
        failures: The answers that lack a score are those that got worse, whatever their share.
    """
    rng = np.random.default_rng(SEED)
    metric, capability = [], []
    for number, size in enumerate(batches(runs)):
        drawn = []
        for _ in range(size):
            scores = draw(rng)
            if failures:
                after = np.where(scores.after < scores.before, np.nan, scores.after)
                scores = scores._replace(after=after)
            drawn.append([(scores, pairs_of(scores, rng, missing))])
        result = compared(drawn, number)
        metric += [cell.verdict in words for cell in result.metrics]
        capability += [cell.verdict in words for cell in result.capabilities]
    return Verdicts(share(metric), share(capability))


# --- 4. rows that contradict themselves -----------------------------------------------------------

ODD: dict[str, Draw] = {
    "all lost, 30 items": rare(30, 0.8, 0.0),
    "all lost and nothing else, 40 items": rare(40, 1.0, 0.0, base=1.0),
    "few items, 8": known(8, 0.5, 0.4),
    "one item in a hundred lost, 200 items": rare(200, 0.01, 0.0),
    "very skewed lengths, 10 items": lengths(10, spread=1.5),
}


class Odd(NamedTuple):
    """How often a row contradicts itself."""

    outside: Cell
    """A point outside its interval."""
    alarms: Cell
    """A verdict of a change whose interval covers zero."""


def contradictions(draw: Draw, runs: int, seed: int = SEED) -> Odd:
    """Rows of metrics and capabilities that contradict themselves."""
    rng = np.random.default_rng(seed)
    outside, alarms = [], []
    for number, size in enumerate(batches(runs)):
        drawn = [[(scores := draw(rng), pairs_of(scores, rng))] for _ in range(size)]
        result = compared(drawn, number)
        for cell in (*result.metrics, *result.capabilities):
            told = [found for found in (cell.change, cell.relative) if found is not None]
            outside.append(any(not found.low <= found.value <= found.high for found in told))
        alarms += [
            cell.verdict in ("worse", "better") and cell.judged.low <= 0 <= cell.judged.high
            for cell in result.capabilities
            if cell.judged is not None
        ]
    return Odd(share(outside), share(alarms))


# --- 5. lost and gained apart ---------------------------------------------------------------------


@dataclass(frozen=True)
class Chances:
    """Items of a few kinds: share of the items, chance of being right before and after."""

    kinds: tuple[tuple[float, float, float], ...]
    n: int

    @property
    def lost(self) -> float:
        """What was truly lost."""
        return sum(part * max(before - after, 0.0) for part, before, after in self.kinds)

    def __call__(self, rng: Rng) -> Scores:
        """Draw single runs."""
        kind = rng.choice(len(self.kinds), self.n, p=[part for part, _, _ in self.kinds])
        chance = np.array([[before, after] for _, before, after in self.kinds])[kind].T
        before, after = (rng.random((2, self.n)) < chance).astype(float)
        truth = [sum(part * kind[side] for part, *kind in self.kinds) for side in (0, 1)]
        return Scores(before, after, (truth[0], truth[1]))


APART: dict[str, Chances] = {
    "unchanged, all noise, 300 items": Chances(((1.0, 0.5, 0.5),), 300),
    "10 % wholly lost, 10 % learned, 300 items": Chances(
        ((0.1, 1.0, 0.0), (0.1, 0.0, 1.0), (0.5, 0.95, 0.95), (0.3, 0.1, 0.1)), 300
    ),
    "10 % wholly lost, half of the rest better, 100 items": Chances(
        ((0.1, 1.0, 0.0), (0.45, 0.5, 0.9), (0.45, 0.9, 0.9)), 100
    ),
    "only gains, 200 items": Chances(((0.5, 0.4, 0.7), (0.5, 0.9, 0.95)), 200),
    "5 % lost, nothing else, 60 items": Chances(((0.05, 1.0, 0.0), (0.95, 0.9, 0.9)), 60),
}


class Apart(NamedTuple):
    """What is told of lost items over many runs."""

    at_least: Cell
    at_most: Cell
    held: Cell
    """The truth lies between the low end of the one and the high end of the other."""
    alarms: Cell
    """The interval of the low end lies above what was truly lost."""


def apart(chances: Chances, runs: int, seed: int = SEED) -> Apart:
    """What was lost, from single runs."""
    rng = np.random.default_rng(seed)
    ends: tuple[list[float], list[float]] = ([], [])
    held, alarms = [], []
    for number, size in enumerate(batches(runs)):
        drawn = [[(scores := chances(rng), pairs_of(scores, rng))] for _ in range(size)]
        for cell in compared(drawn, number).metrics:
            lost = cell.lost
            if lost is None:
                continue
            ends[0].append(lost.at_least.value)
            ends[1].append(lost.at_most.value)
            held.append(lost.at_least.low <= chances.lost <= lost.at_most.high)
            alarms.append(lost.at_least.low > chances.lost)
    return Apart(mean(ends[0]), mean(ends[1]), share(held), share(alarms))


# --- 6. metrics that move in two directions -------------------------------------------------------

STILL = Chances(((1.0, 0.5, 0.5),), 200)
FALLS = Chances(((0.4, 0.9, 0.4), (0.6, 0.5, 0.5)), 200)
RISES = Chances(((0.4, 0.4, 0.9), (0.6, 0.5, 0.5)), 200)
MIXED: dict[str, tuple[Chances, ...]] = {
    "ten unchanged, all noise": (STILL,) * 10,
    "one falls by 20 points, nine unchanged": (FALLS, *(STILL,) * 9),
    "five fall by 20 points, five rise by as much": (FALLS, RISES) * 5,
    "nine rise by 20 points, one falls by as much": (FALLS, *(RISES,) * 9),
}


class Mixed(NamedTuple):
    """What is told of a capability whose metrics move apart."""

    worse: Cell
    reassured: Cell
    """Called equivalent or better."""
    at_least: Cell
    alarms: Cell
    """The interval of the low end lies above what was truly lost."""


def mixed(parts: Sequence[Chances], runs: int, seed: int = SEED) -> Mixed:
    """A capability of several metrics, one comparison at a time: verdicts are of one family."""
    rng = np.random.default_rng(seed)
    truth = float(np.mean([part.lost for part in parts]))
    verdicts, least, alarms = [], [], []
    for number in range(runs):
        drawn = [(scores := part(rng), pairs_of(scores, rng)) for part in parts]
        (cell,) = compared([drawn], number).capabilities
        verdicts.append(cell.verdict)
        if cell.lost is not None:
            least.append(cell.lost.at_least.value)
            alarms.append(cell.lost.at_least.low > truth)
    return Mixed(
        share([verdict == "worse" for verdict in verdicts]),
        share([verdict in ("equivalent", "better") for verdict in verdicts]),
        mean(least),
        share(alarms),
    )


# --- the page -------------------------------------------------------------------------------------


def table(names: Sequence[str], rows: Iterator[Sequence[object]]) -> list[str]:
    """A Markdown table with an empty line after it."""
    lines = [f"| {' | '.join(names)} |", f"| --- |{' ---: |' * (len(names) - 1)}"]
    lines += [f"| {' | '.join(str(cell) for cell in row)} |" for row in rows]
    return [*lines, ""]


def single_rows(runs: int, seed: int) -> Iterator[Sequence[object]]:
    for name, draw in SINGLE.items():
        found = single(draw, runs, seed)
        middle = "-" if found.bias.n < FEWEST else f"{100 * found.median:+.1f}"
        rates = found.covered, found.alarms, found.aggregate_alarms, found.change
        yield name, found.given, found.bias, middle, *rates


def whole_lines(runs: int, seed: int) -> list[str]:
    """The table of aggregates, and which of them lie outside the aim."""
    results = {name: whole(draw, runs, seed) for name, draw in TEN.items()}
    outside = [
        f"{name} ({cell})"
        for name, found in results.items()
        for cell in dict.fromkeys((found.covered, found.group, found.change))
        if cell.n >= FEWEST and not AIM[0] <= cell.value <= AIM[1]
    ]
    rows = (
        (name, found.covered, found.below, found.above, found.bias, found.group, found.change)
        for name, found in results.items()
    )
    return [*table(WHOLE_COLUMNS, rows), f"Outside the aim: {'; '.join(outside) or 'none'}.", ""]


def missing_rows(runs: int) -> Iterator[Sequence[object]]:
    for missing in MISSING:
        found = with_missing(STEADY, missing, ["equivalent"], runs)
        yield f"unchanged, {100 * missing:g} % of the answers missing: equivalent", *found
    worse = rare(1000, 0.3, 0.1)
    found = with_missing(worse, 0.0, ["equivalent", "better"], runs, failures=True)
    yield "20 points lost, every answer that got worse is missing: equivalent or better", *found


def odd_rows(runs: int, seed: int) -> Iterator[Sequence[object]]:
    for name, draw in ODD.items():
        yield name, *contradictions(draw, runs, seed)


def apart_rows(runs: int, seed: int) -> Iterator[Sequence[object]]:
    for name, chances in APART.items():
        yield name, f"{100 * chances.lost:.1f}", *apart(chances, runs, seed)


def mixed_rows(runs: int, seed: int) -> Iterator[Sequence[object]]:
    for name, parts in MIXED.items():
        truth = float(np.mean([part.lost for part in parts]))
        yield name, f"{100 * truth:.1f}", *mixed(parts, runs, seed)


def report(runs: int, seed: int = SEED) -> str:
    other = "" if seed == SEED else f" --seed {seed}"
    few = max(runs // 5, 20)
    return "\n".join(
        [
            *INTRODUCTION.format(runs=runs, few=few, other=other).splitlines(),
            "",
            *SINGLE_TEXT.splitlines(),
            "",
            *table(
                SINGLE_COLUMNS,
                single_rows(runs, seed),
            ),
            *WHOLE_TEXT.splitlines(),
            "",
            *whole_lines(runs, seed),
            *MISSING_TEXT.splitlines(),
            "",
            *table(("case", "metric", "capability"), missing_rows(few)),
            *ODD_TEXT.splitlines(),
            "",
            *table(("case", "point outside", "alarm across zero"), odd_rows(runs, seed)),
            *APART_TEXT.splitlines(),
            "",
            *table(
                ("case", "truly lost", "at least", "at most", "truth between", "at least too high"),
                apart_rows(runs, seed),
            ),
            *MIXED_TEXT.splitlines(),
            "",
            *table(MIXED_COLUMNS, mixed_rows(runs, seed)),
        ]
    )


SINGLE_COLUMNS = (
    *("metric", "given", "bias", "bias of the median", "covered", "p < .05"),
    *("p < .05, capability", "change covered"),
)
WHOLE_COLUMNS = (
    *("ten parts", "covered", "truth below", "truth above", "bias", "group covered"),
    "change covered",
)
MIXED_COLUMNS = (
    *("ten metrics of 200 items", "truly lost", "worse", "equivalent or better", "at least"),
    "at least too high",
)
INTRODUCTION = """# Is drift honest?

Written by `python benchmarks/drift_simulation.py --runs {runs}{other}`. Simulated models with a
known change are compared {runs:,} times a row ({few:,} in the table of missing answers). All
numbers are percent. `±` is the simulation's own error (two standard errors)."""
SINGLE_TEXT = """## One metric

`given` is how often there is a relative change. `bias` is its mean distance from the truth where
it is given, and `bias of the median` is that of its median. A ratio of noisy numbers lies a little
above the truth on average: in unchanged models at most by 2 over the number of items it rests on,
which is at least 30.
`p < .05` counts the runs with a relative change. In unchanged models 5 is nominal. The plain change
is always given."""
WHOLE_TEXT = """## Aggregates of ten parts

How many of the 95 % intervals hold the truth: 93 to 97 is the aim. `group` is a group of five
capabilities of two parts each. `-` means that too few items lie behind each part for a relative
change; the plain change is still there."""
MISSING_TEXT = """## Answers without a score

The margin is two points, and each metric has 3,000 items (1,000 in the last row). With half of the
answers missing nothing may be called equivalent."""
ODD_TEXT = """## Rows that contradict themselves

Both columns must be 0."""
APART_TEXT = """## Lost and gained apart

Single runs, so that what was lost is only known between two ends. The truth must lie between them,
intervals included, in at least 95, and the low end may be too high in at most 2.5."""

MIXED_TEXT = """## Metrics that move apart

A capability of ten metrics. The gain of one must not hide the loss of another: where the fall of a
metric is sure, its capability is worse. A fall that is not seen may still be called better (last
row). In unchanged models at most 5 may be called worse: 2.5 by the mean, and 2.5 by a single
metric. The low end may be too high in at most 2.5."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=SEED)
    page = ROOT / "docs" / "explanation" / "drift-simulation.md"
    parser.add_argument("--out", type=Path, default=page)
    arguments = parser.parse_args()
    text = report(arguments.runs, arguments.seed)
    arguments.out.write_text(text, encoding="utf-8")
    print(f"{arguments.out}: written")


if __name__ == "__main__":
    main()
