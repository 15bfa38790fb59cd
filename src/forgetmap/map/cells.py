"""The cells of a map: estimates with intervals, tests and verdicts for every group of tasks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from forgetmap.base.errors import InputError
from forgetmap.base.values import fitting
from forgetmap.base.words import some
from forgetmap.map.estimates import Codes, Ends, Estimates, Floors, TaskEstimates, groups_of
from forgetmap.map.result import Both, Cell, Counts, Forgetting, Influence, Net, Verdict
from forgetmap.map.verdicts import would_decide
from forgetmap.stats import tests
from forgetmap.stats.estimate import Estimate, Range
from forgetmap.stats.moments import by_task, clusters
from forgetmap.stats.patterns import Patterns
from forgetmap.stats.power import minimum_detectable_effect
from forgetmap.stats.spread import (
    Spread,
    chance_at_least,
    chance_at_most,
    high_limit,
    limits,
    low_limit,
)

Floats = NDArray[np.float64]
Adjust = Callable[[Sequence[float]], Floats]

ALPHA = 0.05


@dataclass(frozen=True)
class Plan:
    """What every cell is computed with."""

    margin: float = 0.02
    draws: int = 10_000
    """Of the test that exchanges the signs of whole clusters."""
    seed: int = 0
    new: frozenset[str] = field(default_factory=frozenset)
    """Tasks that the training was meant to teach."""
    deterministic: bool = False
    floors: Floors | None = None
    same: bool = False
    """Both logs are one and the same."""
    notes: list[str] = field(default_factory=list)
    """What a reader must know of how the map was made."""

    def check(self, most_draws: int = 1_000_000) -> None:
        """Refuse numbers that make no sense, before any log is read."""
        if not 0 < self.margin < 1:
            raise InputError(f"the margin must be a fraction between 0 and 1, not {self.margin}")
        if not 100 <= self.draws <= most_draws:
            raise InputError(f"draws must be between 100 and {most_draws:,}, not {self.draws}")
        if self.seed < 0:
            raise InputError(f"the seed must not be negative, not {self.seed}")

    def for_tasks(self, names: Iterable[str]) -> Plan:
        """The plan with the new tasks by their names, where it has patterns that fit them."""
        names = list(names)
        new, unknown = fitting(names, sorted(self.new))
        if unknown:
            raise InputError(f"--new {some(unknown)}: no such task; there are {some(names)}")
        return replace(self, new=frozenset(new))


class CellTable:
    """All cells of a map: total, old, new, macro, categories, tasks."""

    def __init__(self, patterns: Patterns, categories: Mapping[str, str], plan: Plan) -> None:
        self.plan = plan = plan.for_tasks(str(name) for name in patterns.tasks)
        self.rng = np.random.default_rng(plan.seed)
        self.table = TaskEstimates(
            patterns, deterministic=plan.deterministic, floors=plan.floors, same=plan.same
        )
        self.names = [str(name) for name in self.table.names]
        self.categories = {task: categories[task] for task in self.names if task in categories}
        self.everything = np.zeros(len(self.names), np.intp)
        own = np.arange(len(self.names))
        self._alone = self._estimate(own, len(own))

    def _estimate(self, cell: Codes, cells: int) -> Estimates:
        return self.table.estimate(cell, cells)

    def tasks(self) -> dict[str, Cell]:
        """Every task; p-values and verdicts adjusted by Benjamini and Hochberg."""
        own = np.arange(len(self.names))
        return self._cells(self.names, own, self._alone, tests.benjamini_hochberg)

    def category_cells(self) -> dict[str, Cell]:
        """Every category, pooled by items; p-values and verdicts adjusted by Holm."""
        names = sorted(set(self.categories.values()))
        if not names:
            return {}
        places = {task: names.index(category) for task, category in self.categories.items()}
        groups = groups_of(places, self.table.names)
        return self._cells(names, groups, self._estimate(groups, len(names)), tests.holm)

    def total(self) -> Cell:
        """All items pooled."""
        return self._one(self.everything)

    def old(self) -> Cell | None:
        """All items but those of the new tasks; None where all tasks are new."""
        new = np.isin(self.table.names, list(self.plan.new))
        return None if new.all() else self._one(np.where(new, -1, 0))

    def new(self) -> Cell | None:
        """The items of the new tasks; None where no task is new."""
        new = np.isin(self.table.names, list(self.plan.new))
        return self._one(np.where(new, 0, -1)) if new.any() else None

    def _one(self, groups: Codes) -> Cell:
        return self._cells(["all"], groups, self._estimate(groups, 1), tests.holm)["all"]

    def macro(self) -> Cell:
        """The plain mean over categories, as in the paper; over tasks if there is no task map."""
        names = sorted(set(self.categories.values()))
        places = {task: names.index(category) for task, category in self.categories.items()}
        groups = groups_of(places, self.table.names) if names else np.arange(len(self.names))
        cells = len(names) or len(self.names)
        mean = self.table.estimate(groups, cells, for_mean=True).mean()
        everything = np.where(groups >= 0, 0, -1)
        [(tasks, rows)] = self._members(everything, 1)
        spread = math.sqrt(float(mean.change.variance[0]))
        size = abs(float(mean.change.mean[0]))
        reach = float(special.ndtri(1 - ALPHA / 2) + special.ndtri(0.8))
        draft = self._draft(_Told(mean), 0, tasks, rows).model_copy(
            update={
                "p_value": 1.0 if spread == 0 else float(2 * special.ndtr(-size / spread)),
                "mde": min(1.0, reach * spread),
            }
        )
        return self._judged([draft], mean, tests.holm)[0]

    # --- one cell ------------------------------------------------------------------------------

    def _cells(
        self, names: list[str], groups: Codes, estimates: Estimates, adjust: Adjust
    ) -> dict[str, Cell]:
        told = _Told(estimates)
        drafts = [
            self._draft(told, place, tasks, rows)
            for place, (tasks, rows) in enumerate(self._members(groups, len(names)))
        ]
        return dict(zip(names, self._judged(drafts, estimates, adjust), strict=True))

    def _members(self, groups: Codes, cells: int) -> Iterator[tuple[Codes, Patterns]]:
        """The tasks of each group and their patterns."""
        for tasks, rows in zip(
            _by_group(groups, cells), _by_group(groups[self.table.task], cells), strict=True
        ):
            yield tasks, self.table.patterns.where(rows)

    def _draft(self, told: _Told, place: int, tasks: Codes, rows: Patterns) -> Cell:
        """A cell without its verdicts."""
        change, counts, unit = _change(rows)
        n = float(told.estimates.n[place])
        before, after = (
            float(side.mean[place]) for side in (told.estimates.before, told.estimates.after)
        )
        fell, rose = (float(side.mean[place]) for side in told.estimates.raw)
        p_value = self._p_value(tasks, rows, change, counts, unit)
        return Cell(
            n=round(n),
            repeats_before=int(rows.runs_before.max()),
            repeats_after=int(rows.runs_after.max()),
            counts=_counts(n, before, fell, rose),
            accuracy_before=before,
            accuracy_after=after,
            change=told.change(place),
            lost=self._range(told.lost, place, tasks),
            gained=self._range(told.gained, place, tasks),
            raw=told.raw(place),
            paper=told.paper(place),
            like_these=self._like_these(tasks, told, place),
            noise_floor=_or_none(told.estimates.noise[place]),
            k=_options(rows),
            p_value=p_value,
            p_adjusted=p_value,
            mde=_detectable(rows, float(told.estimates.change.variance[place]), change, counts),
            verdict=Verdict(net="undecided", forgetting="undecided"),
            influence=self._influence(tasks),
            clustered=bool(self.table.units.clustered[tasks].any()),
        )

    def _range(self, told: _ToldEnds, place: int, tasks: Codes) -> Range:
        basis = self.table.basis_of(tasks)
        if self.plan.same:
            return Range(low_end=0, high_end=0, low=0, high=0, of_known=None, basis=basis)
        low_end, high_end, low, high, known = (float(column[place]) for column in told)
        whole = Range(
            low_end=low_end, high_end=high_end, low=low, high=high, of_known=None, basis=basis
        )
        if known <= 0:
            return whole
        value, low, high = (min(number / known, 1.0) for number in (whole.value, low, high))
        return whole.model_copy(update={"of_known": Estimate(value=value, low=low, high=high)})

    def _like_these(self, tasks: Codes, told: _Told, place: int) -> Both | None:
        """The same if the tasks are a sample: whole tasks are the units.

        With few tasks their spread can come out small by chance. To say of tasks like these more
        than of these tasks would be wrong, so their interval holds the other.
        """
        if len(tasks) < 2 or self.plan.same:
            return None
        n, basis = self.table.n[tasks], self.table.basis_of(tasks)
        both = []
        for ends, these in ((self._alone.lost, told.lost), (self._alone.gained, told.gained)):
            low, high = by_task(ends.low_end[tasks], n), by_task(ends.high_end[tasks], n)
            both.append(
                Estimate(
                    value=float((low if basis == "repeats" else high).mean[0]),
                    low=min(float(low_limit(low)[0]), float(these.low[place])),
                    # A task not seen may have lost as much as the worst one seen.
                    high=max(
                        float(high_limit(high, most=float(ends.high_end[tasks].max()))[0]),
                        float(these.high[place]),
                    ),
                )
            )
        return Both(lost=both[0], gained=both[1])

    def _influence(self, tasks: Codes) -> Influence | None:
        """The task without which the loss would change most."""
        if len(tasks) < 2:
            return None
        n, ends = self.table.n[tasks], self._alone.lost
        lost = np.where(self.table.basis == "repeats", ends.low_end, ends.high_end)[tasks] * n
        changes = (lost.sum() - lost) / (n.sum() - n) - lost.sum() / n.sum()
        names = self.table.names[tasks].tolist()
        place = max(range(len(names)), key=lambda index: (abs(changes[index]), names[index]))
        return Influence(task=names[place], change=float(changes[place]))

    def _p_value(
        self, tasks: Codes, rows: Patterns, change: Floats, counts: Floats, unit: int
    ) -> float:
        if not self.table.units.clustered[tasks].any():
            return tests.sign_flip(change, counts, unit)
        _, task = np.unique(rows.task, return_inverse=True)
        _, cluster = clusters(task, rows.bucket)
        sums = np.bincount(cluster, weights=rows.n * rows.change)
        return tests.cluster_sign_flip(sums, self.plan.draws, self.rng)

    # --- verdicts ------------------------------------------------------------------------------

    def _judged(self, drafts: list[Cell], estimates: Estimates, adjust: Adjust) -> list[Cell]:
        """Adjust the p-values of a family of cells, and decide on its verdicts."""
        margin = self.plan.margin
        surely = np.min([chance_at_most(bound, margin) for bound in estimates.lost.sure], axis=0)
        held = chance_at_least(estimates.lost.most, margin)
        if self.plan.same:
            surely, held = np.ones_like(surely), np.zeros_like(held)
        adjusted = adjust([cell.p_value for cell in drafts])
        lost_p, held_p = adjust(surely.tolist()), adjust(held.tolist())
        low = -high_limit(_negative(estimates.change), ALPHA)
        high = high_limit(estimates.change, ALPHA)
        judged = []
        for place, cell in enumerate(drafts):
            p = float(adjusted[place])
            net: Net = "undecided"
            if self.plan.same or (-margin < low[place] and high[place] < margin):
                net = "equal"
            elif p < ALPHA and cell.change.value:
                net = "worse" if cell.change.value < 0 else "better"
            forgetting: Forgetting = "undecided"
            if lost_p[place] < ALPHA / 2:
                forgetting = "lost"
            elif held_p[place] < ALPHA / 2:
                forgetting = "held"
            missing = would_decide(cell, margin) if forgetting == "undecided" else None
            verdict = Verdict(
                net=net,
                forgetting=forgetting,
                would_decide=missing,
                p_lost=float(surely[place]),
                p_held=float(held[place]),
            )
            judged.append(cell.model_copy(update={"p_adjusted": p, "verdict": verdict}))
        return judged


class _ToldEnds(NamedTuple):
    """The two ends of what was lost or gained, with limits, cell by cell."""

    low_end: Floats
    high_end: Floats
    low: Floats
    high: Floats
    known: Floats

    @classmethod
    def of(cls, ends: Ends, known: Floats) -> _ToldEnds:
        low = np.max([low_limit(bound) for bound in ends.sure], axis=0)
        high = np.maximum(high_limit(ends.most), ends.high_end)
        return cls(ends.low_end, ends.high_end, np.clip(low, 0.0, ends.low_end), high, known)


class _Told:
    """Estimates with their limits, worked out for all cells at once."""

    def __init__(self, estimates: Estimates) -> None:
        self.estimates = estimates
        self.lost = _ToldEnds.of(estimates.lost, estimates.known[0])
        self.gained = _ToldEnds.of(estimates.gained, estimates.known[1])
        self._raw = tuple((spread.mean, *limits(spread)) for spread in estimates.raw)
        self._paper = tuple((spread.mean, *limits(spread)) for spread in estimates.paper)
        change = estimates.change
        self._change = change.mean, -high_limit(_negative(change)), high_limit(change)

    def change(self, place: int) -> Estimate:
        value, low, high = (float(column[place]) for column in self._change)
        return Estimate(value=value, low=low, high=high)

    def raw(self, place: int) -> Both:
        return _both(self._raw, place)

    def paper(self, place: int) -> Both | None:
        return None if np.isnan(self._paper[0][0][place]) else _both(self._paper, place)


def _both(sides: Sequence[Sequence[Floats]], place: int) -> Both:
    lost, gained = (
        Estimate(value=value, low=min(low, value), high=max(high, value))
        for value, low, high in ([float(column[place]) for column in side] for side in sides)
    )
    return Both(lost=lost, gained=gained)


def _counts(n: float, before: float, fell: float, rose: float) -> Counts:
    """Items by outcome, rounded where only the digits of the computer differ."""
    shares = {"n00": 1 - before - rose, "n01": rose, "n10": fell, "n11": before - fell}
    return Counts(**{name: round(n * share, 9) for name, share in shares.items()})


def _by_group(groups: Codes, cells: int) -> list[Codes]:
    """The places of each group's entries; those of group -1 are left out."""
    order = np.argsort(groups, kind="stable")
    ends = np.searchsorted(groups[order], np.arange(cells + 1))
    return [order[start:stop] for start, stop in pairwise(ends.tolist())]


def _detectable(rows: Patterns, variance: float, change: Floats, counts: Floats) -> float:
    n = float(counts.sum())
    square = float((counts * change**2).sum() / n)
    if (rows.bucket != rows.bucket[0]).any() and 0 < variance < math.inf:
        n = min(n, square / variance)  # items that move together count for fewer
    return minimum_detectable_effect(n, square)


def _negative(spread: Spread) -> Spread:
    return spread._replace(mean=-spread.mean, third=-spread.third)


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


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
