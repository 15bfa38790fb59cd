"""From outcome patterns to cells: estimates, intervals, tests and verdicts for every group."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from forgetmap.base.errors import InputError
from forgetmap.map.result import (
    Cell,
    Counts,
    Forgetting,
    Headline,
    Influence,
    Interval,
    Net,
    Transition,
    Verdict,
)
from forgetmap.stats import intervals, tests, transitions
from forgetmap.stats.estimate import Estimate
from forgetmap.stats.patterns import Patterns
from forgetmap.stats.power import minimum_detectable_effect
from forgetmap.stats.transitions import FEATURES, FORGET, GAIN, Estimates, N

Floats = NDArray[np.float64]
Adjust = Callable[[list[float]], Floats]

ALPHA = 0.05


@dataclass
class Plan:
    """What every cell is computed with."""

    margin: float = 0.02
    draws: int = 10_000
    seed: int = 0

    def check(self, most_draws: int = 1_000_000) -> None:
        """Refuse numbers that make no sense, before any log is read."""
        if not 0 < self.margin < 1:
            raise InputError(f"the margin must be a fraction between 0 and 1, not {self.margin}")
        if not 100 <= self.draws <= most_draws:
            raise InputError(f"draws must be between 100 and {most_draws:,}, not {self.draws}")
        if self.seed < 0:
            raise InputError(f"the seed must not be negative, not {self.seed}")


class Soft(NamedTuple):
    """The soft estimator's sums, for forgetting and transfer, and draws of them."""

    sums: Floats
    draws: Floats


@dataclass
class CellGroup:
    """One task, or several: their patterns, their feature sums, and draws of those sums."""

    patterns: Patterns
    sums: dict[float, Floats]
    draws: dict[float, Floats]
    soft: Soft | None
    """None where an item lacks option probabilities."""
    clustered: bool
    features: tuple[Floats, list[float]] | None = None
    """Of one task's patterns, as `_values` gives them."""


class Drawn(NamedTuple):
    """Draws of every estimator of a cell, and how to make intervals of them."""

    draws: Estimates
    without: Estimates | None
    """The estimates with one item or cluster left out; None for percentiles of a posterior."""
    weights: Floats
    """How many items or clusters stand behind each entry of `without`, or in all."""

    def interval(
        self, point: float, pick: Callable[[Estimates], Floats], level: float = 0.95
    ) -> tuple[float, float]:
        """The interval of the value that `pick` takes from the estimates."""
        if self.without is None:
            units = float(self.weights.sum())
            wide = intervals.widened(level, units, intervals.PRIOR_MASS + 1)
            return intervals.percentiles(pick(self.draws), wide)
        return intervals.bca(pick(self.draws), point, pick(self.without), self.weights, level)


def _net(estimates: Estimates) -> Floats:
    return estimates.accuracy[1] - estimates.accuracy[0]


@dataclass
class _Draft:
    """A cell before its p-value is adjusted, with what its verdict needs."""

    cell: Cell
    net: tuple[float, float]
    """90 % interval of the accuracy change: inside the margin means equivalent (two one-sided
    tests at 5 %)."""


class CellTable:
    """All cells of a map: total, macro, categories, tasks."""

    def __init__(self, patterns: Patterns, categories: Mapping[str, str], plan: Plan) -> None:
        self.plan = plan
        self.categories = categories
        tasks = patterns.tasks
        seeds = np.random.SeedSequence(plan.seed).spawn(len(tasks) + 1)
        self.rng = np.random.default_rng(seeds.pop())
        self.groups = {
            name: draw_task(
                patterns.where(patterns.task == name), plan.draws, np.random.default_rng(seed)
            )
            for name, seed in zip(tasks, seeds, strict=True)
        }

    def tasks(self) -> dict[str, Cell]:
        """Every task; p-values adjusted by Benjamini and Hochberg."""
        return self._judged(
            {name: self._pooled([name]) for name in self.groups}, tests.benjamini_hochberg
        )

    def category_cells(self) -> dict[str, Cell]:
        """Every category, pooled by items; p-values adjusted by Holm."""
        members = self._members()
        return self._judged(
            {name: self._pooled(tasks) for name, tasks in members.items()}, tests.holm
        )

    def total(self) -> Cell:
        """All items pooled."""
        return self._judged({"total": self._pooled(list(self.groups))}, tests.holm)["total"]

    def macro(self) -> Cell:
        """The plain mean over categories, as in the paper; over tasks if there is no task map."""
        return self._judged({"macro": self._averaged()}, tests.holm)["macro"]

    def _members(self) -> dict[str, list[str]]:
        members: dict[str, list[str]] = {}
        for task in self.groups:
            if task in self.categories:
                members.setdefault(self.categories[task], []).append(task)
        return dict(sorted(members.items()))

    def _pooled(self, tasks: Sequence[str]) -> _Draft:
        """One task, or several pooled by items."""
        group = merge([self.groups[task] for task in tasks])
        point = transitions.estimate(group.sums)
        drawn, interval = self._drawn(group)
        change, counts, unit = _change(group.patterns)
        return _draft(
            group,
            point,
            drawn,
            interval=interval,
            p_value=self._p_value(group, change, counts, unit),
            mde=_detectable(group, drawn, change, counts),
            influence=self._influence(group, tasks),
        )

    def _averaged(self) -> _Draft:
        """The plain mean of groups; its test is normal, from the spread of the draws."""
        members = list(self._members().values()) or [[task] for task in self.groups]
        groups = [merge([self.groups[task] for task in tasks]) for tasks in members]
        points = [transitions.estimate(group.sums) for group in groups]
        drawn = [self._drawn(group)[0].draws for group in groups]
        whole = merge(list(self.groups.values()))
        n = float(whole.patterns.n.sum())
        mean, mean_draws = _mean(points)._replace(n=np.array(n)), _mean(drawn)
        soft = None
        if whole.soft is not None:
            parts = [(g.soft, float(p.n)) for g, p in zip(groups, points, strict=True) if g.soft]
            soft = Soft(
                n * np.mean([part.sums / size for part, size in parts], axis=0),
                n * np.mean([part.draws / size for part, size in parts], axis=0),
            )
        spread = float(np.std(_net(mean_draws)))
        size = abs(float(mean.accuracy[1] - mean.accuracy[0]))
        reach = float(special.ndtri(1 - ALPHA / 2) + special.ndtri(0.8))
        return _draft(
            CellGroup(whole.patterns, whole.sums, {}, soft, whole.clustered),
            mean,
            Drawn(mean_draws, None, whole.patterns.n),
            interval="cluster bootstrap" if whole.clustered else "bootstrap",
            p_value=1.0 if spread == 0 else float(2 * special.ndtr(-size / spread)),
            mde=min(1.0, reach * spread),
            influence=None,
        )

    def _drawn(self, group: CellGroup) -> tuple[Drawn, Interval]:
        if not group.clustered and _is_small(group):
            counts, values, ks = possible_patterns(group.patterns)
            posterior = intervals.posterior(counts, values, self.plan.draws, self.rng)
            return Drawn(transitions.estimate(_split(posterior, ks)), None, counts), "bayes"
        values, ks = group.features or _values(group.patterns)
        weights = group.patterns.n
        total = values.T @ weights
        if group.clustered:
            values = _by_cluster(group.patterns, weights[:, None] * values)
            weights = np.ones(len(values))
        without = transitions.estimate(_split(total[:, None] - values.T, ks))
        drawn = Drawn(transitions.estimate(group.draws), without, weights)
        return drawn, "cluster bootstrap" if group.clustered else "bootstrap"

    def _p_value(self, group: CellGroup, change: Floats, counts: Floats, unit: int) -> float:
        if not group.clustered:
            return tests.sign_flip(change, counts, unit)
        changes = (group.patterns.n * group.patterns.change)[:, None]
        sums = _by_cluster(group.patterns, changes)
        return tests.cluster_sign_flip(sums[:, 0], self.plan.draws, self.rng)

    def _influence(self, group: CellGroup, tasks: Sequence[str]) -> Influence | None:
        if len(tasks) < 2:
            return None
        parts = [self.groups[task] for task in tasks]
        nothing = np.zeros(FEATURES)
        rest = {
            k: sums[:, None] - np.stack([part.sums.get(k, nothing) for part in parts], axis=1)
            for k, sums in group.sums.items()
        }
        soft = None
        if group.soft:  # then every part has it
            lost = np.array([part.soft.sums[0] for part in parts if part.soft])
            soft = group.soft.sums[0] - lost
        without = _forgetting(rest, soft)
        everything = _forgetting(group.sums, group.soft and group.soft.sums[0])
        changes = dict(zip(tasks, (without - everything).tolist(), strict=True))
        task = max(changes, key=lambda name: (abs(changes[name]), name))
        return Influence(task=task, change=changes[task])

    def _judged(self, drafts: Mapping[str, _Draft], adjust: Adjust) -> dict[str, Cell]:
        """Adjust the p-values of a family of cells and decide their verdicts."""
        adjusted = adjust([draft.cell.p_value for draft in drafts.values()])
        return {
            name: draft.cell.model_copy(
                update={"p_adjusted": float(p), "verdict": self._verdict(draft, float(p))}
            )
            for (name, draft), p in zip(drafts.items(), adjusted, strict=True)
        }

    def _verdict(self, draft: _Draft, p_adjusted: float) -> Verdict:
        margin, cell = self.plan.margin, draft.cell
        change, forgot = cell.accuracy_after - cell.accuracy_before, cell.forgot
        net: Net = "undecided"
        if -margin < draft.net[0] and draft.net[1] < margin:
            net = "equivalent"
        elif p_adjusted < ALPHA and change:
            net = "worse" if change < 0 else "better"
        forgetting: Forgetting = "kept" if forgot.high < margin else "undecided"
        return Verdict(net=net, forgetting="forgot" if forgot.low > margin else forgetting)


def _draft(
    group: CellGroup,
    point: Estimates,
    drawn: Drawn,
    *,
    interval: Interval,
    p_value: float,
    mde: float,
    influence: Influence | None,
) -> _Draft:
    before, after = (float(accuracy) for accuracy in point.accuracy)
    low, high = drawn.interval(after - before, _net)
    bounds = transitions.guessing_bounds(group.sums)
    n = float(point.n)
    cell = Cell(
        n=round(n),
        repeats_before=int(group.patterns.runs_before.max()),
        repeats_after=int(group.patterns.runs_after.max()),
        counts=Counts(
            n00=n * float(point.both_wrong),
            n01=n * float(point.raw[1]),
            n10=n * float(point.raw[0]),
            n11=n * (before - float(point.raw[0])),
        ),
        accuracy_before=before,
        accuracy_after=after,
        change=Estimate(value=after - before, low=low, high=high),
        forgetting=_transition(0, group, point, drawn, bounds[0]),
        backward_transfer=_transition(1, group, point, drawn, bounds[1]),
        noise_floor=_or_none(point.noise_floor),
        persistence=_or_none(point.persistence),
        k=_options(group.patterns),
        p_value=p_value,
        p_adjusted=p_value,
        mde=mde,
        verdict=Verdict(net="undecided", forgetting="undecided"),
        headline=_headline(point, group.soft is not None),
        interval=interval,
        influence=influence,
    )
    return _Draft(cell, drawn.interval(after - before, _net, 1 - 2 * ALPHA))


def _detectable(group: CellGroup, drawn: Drawn, change: Floats, counts: Floats) -> float:
    n = float(counts.sum())
    square = float((counts * change**2).sum() / n)
    if group.clustered:  # items that move together count for fewer
        spread = float(np.var(_net(drawn.draws)))
        n = min(n, square / spread) if spread > 0 else n
    return minimum_detectable_effect(n, square)


def draw_task(patterns: Patterns, draws: int, rng: np.random.Generator) -> CellGroup:
    """Sum the features of one task's items, and draw those sums by the bootstrap."""
    values, ks = _values(patterns)
    has_soft = bool((patterns.soft[:, 0] == patterns.n).all())
    soft_sums = patterns.soft[:, _SOFT_MEANS].sum(axis=0)
    # Of one cluster nothing can be resampled.
    clustered = bool((patterns.bucket != patterns.bucket[0]).any())
    if clustered:
        columns = np.hstack([patterns.n[:, None] * values, patterns.soft[:, _SOFT_MEANS]])
        both = intervals.cluster_bootstrap(_by_cluster(patterns, columns), draws, rng)
        drawn, soft_draws = both[:-2], both[-2:]
        # A draw of clusters has its own number of items; the soft sums are put on the task's.
        sizes = drawn.reshape(len(ks), FEATURES, draws)[:, N].sum(axis=0)
        soft_draws = soft_draws / sizes * patterns.n.sum()
    else:
        drawn = intervals.bootstrap(patterns.n, values, draws, rng)
        powers, n = patterns.soft.sum(axis=0), float(patterns.n.sum())
        soft_draws = np.stack(
            [intervals.mean_draws(n, powers[part], draws, rng) for part in _SOFT_POWERS]
        )
    return CellGroup(
        patterns,
        _split(values.T @ patterns.n, ks),
        _split(drawn, ks),
        Soft(soft_sums, soft_draws) if has_soft else None,
        clustered,
        (values, ks),
    )


_SOFT_MEANS = [1, 4]
_SOFT_POWERS = (slice(1, 4), slice(4, 7))


def merge(groups: Sequence[CellGroup]) -> CellGroup:
    """Pool groups by items: sums and their draws add up."""
    if len(groups) == 1:
        return groups[0]
    softs = [group.soft for group in groups if group.soft is not None]
    soft = None
    if len(softs) == len(groups):
        soft = Soft(
            np.sum([part.sums for part in softs], axis=0),
            np.sum([part.draws for part in softs], axis=0),
        )
    return CellGroup(
        Patterns.concatenate([group.patterns for group in groups]),
        _add([group.sums for group in groups]),
        _add([group.draws for group in groups]),
        soft,
        any(group.clustered for group in groups),
    )


def possible_patterns(patterns: Patterns) -> tuple[Floats, Floats, list[float]]:
    """Counts and features of every pattern that could have been seen, seen or not."""
    shape = np.stack([patterns.k, patterns.runs_before, patterns.runs_after], axis=1)
    right = np.stack([patterns.right_before, patterns.right_after], axis=1)
    seen: Counter[tuple[float, ...]] = Counter()
    for pattern, items in zip(np.hstack([shape, right]).tolist(), patterns.n, strict=True):
        seen[tuple(pattern)] += items
    universe = [
        (k, runs_before, runs_after, right_before, right_after)
        for k, runs_before, runs_after in np.unique(shape, axis=0).tolist()
        for right_before in range(int(runs_before) + 1)
        for right_after in range(int(runs_after) + 1)
    ]
    table = np.array(universe, dtype=float)
    values, ks = _values_of(table[:, 0], *table[:, [3, 1, 4, 2]].T)
    return np.array([seen[pattern] for pattern in universe], float), values, ks


def _values(patterns: Patterns) -> tuple[Floats, list[float]]:
    return _values_of(
        patterns.k,
        patterns.right_before,
        patterns.runs_before,
        patterns.right_after,
        patterns.runs_after,
    )


def _values_of(k: Floats, *outcome: Floats) -> tuple[Floats, list[float]]:
    """Features per pattern, in one block of columns for each k."""
    ks = sorted(set(k.tolist()))
    base = transitions.features(*outcome)
    return np.hstack([base * (k == value)[:, None] for value in ks]), ks


def _split(sums: Floats, ks: Sequence[float]) -> dict[float, Floats]:
    return {k: sums[index * FEATURES : (index + 1) * FEATURES] for index, k in enumerate(ks)}


def _add(parts: Sequence[Mapping[float, Floats]]) -> dict[float, Floats]:
    keys = {key: None for part in parts for key in part}
    return {key: np.sum([part[key] for part in parts if key in part], axis=0) for key in keys}


def _by_cluster(patterns: Patterns, columns: Floats) -> Floats:
    """Sum columns by (task, cluster bucket)."""
    _, task = np.unique(patterns.task, return_inverse=True)
    labels = np.stack([task, patterns.bucket], axis=1)
    _, index = np.unique(labels, axis=0, return_inverse=True)
    sums = np.zeros((int(index.max()) + 1, columns.shape[1]))
    np.add.at(sums, index, columns)
    return sums


def _change(patterns: Patterns) -> tuple[Floats, Floats, int]:
    """Distinct per-item accuracy changes, their counts, and the unit they are multiples of."""
    runs = {*patterns.runs_before.tolist(), *patterns.runs_after.tolist()}
    unit = math.lcm(*(int(number) for number in runs))
    steps = np.rint(patterns.change * unit)
    distinct, index = np.unique(steps, return_inverse=True)
    return distinct / unit, np.bincount(index, weights=patterns.n).astype(np.float64), unit


def _options(patterns: Patterns) -> dict[str, int] | None:
    known = sorted({k for k in patterns.k.tolist() if math.isfinite(k)})
    return {f"{k:g}": int(patterns.n[patterns.k == k].sum()) for k in known} or None


def _headline(point: Estimates, has_soft: bool) -> Headline:
    """`excess` where both sides have repeats, else `soft` where options have probabilities."""
    if not np.isnan(point.excess[0]):
        return "excess"
    return "soft" if has_soft else "raw"


def _forgetting(sums: Mapping[float, Floats], soft: Floats | None) -> Floats:
    """Forgetting by the headline estimator, as `_headline` chooses it."""
    point = transitions.estimate(sums)
    plain = point.raw[0] if soft is None else soft / point.n
    return np.where(np.isnan(point.excess[0]), plain, point.excess[0])


def _transition(
    side: int, group: CellGroup, point: Estimates, drawn: Drawn, bounds: tuple[Floats, Floats]
) -> Transition:
    def estimate_of(name: str) -> Estimate | None:
        def pick(estimates: Estimates) -> Floats:
            values: Floats = getattr(estimates, name)[side]
            return values

        value = float(pick(point))
        if np.isnan(value):
            return None
        low, high = drawn.interval(value, pick)
        return Estimate(value=value, low=low, high=high)

    raw = estimate_of("raw")
    assert raw is not None  # defined for every item
    return Transition(
        raw=raw,
        paper=estimate_of("paper"),
        latent=estimate_of("latent"),
        excess=estimate_of("excess"),
        soft=_soft(side, group),
        ceiling=_or_none(point.ceiling[side]),
        guessing_bounds=None if np.isnan(bounds[0]) else (float(bounds[0]), float(bounds[1])),
    )


def _soft(side: int, group: CellGroup) -> Estimate | None:
    if group.soft is None:
        return None
    n = float(group.patterns.n.sum())
    draws = group.soft.draws[side] / n
    if group.patterns.soft.sum(axis=0)[_SOFT_POWERS[side]][1] < intervals.NOTHING_MOVED:
        draws = draws + intervals.unseen(n, len(draws))
    low, high = intervals.percentiles(draws)
    return Estimate(value=float(group.soft.sums[side]) / n, low=low, high=high)


def _is_small(group: CellGroup) -> bool:
    total = np.sum(list(group.sums.values()), axis=0)
    return intervals.is_small(total[N], total[FORGET], total[GAIN])


def _or_none(value: Floats) -> float | None:
    return None if np.isnan(value) else float(value)


def _mean(estimates: Sequence[Estimates]) -> Estimates:
    """The plain mean of every field over groups."""

    def mean(name: str) -> object:
        parts = [getattr(estimate, name) for estimate in estimates]
        if isinstance(parts[0], tuple):
            return tuple(np.mean([part[side] for part in parts], axis=0) for side in (0, 1))
        return np.mean(parts, axis=0)

    return Estimates(**{name: mean(name) for name in Estimates._fields})  # type: ignore[arg-type]
