"""From outcome patterns to means and their spread, for any grouping of the tasks.

Every task uses the best that its log allows (`Basis`), and a group adds its tasks up. A loss has
two ends: what is sure, for which there are several lower bounds of which the best counts, and what
it can be at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from forgetmap.stats import lost as loss
from forgetmap.stats.estimate import Basis
from forgetmap.stats.moments import Moments, Units
from forgetmap.stats.patterns import Moment, Patterns
from forgetmap.stats.spread import Spread, average, high_limit, plus, total

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

_REPEATED = 0.9
"""Share of a task's items that must have repeats on both sides for its noise to be known."""
_BEYOND = 2.0
"""Deviations by which a drop of accuracy must exceed zero to be a bound."""
_FAR_BEYOND, _BY_CHANCE = 3.0, 0.005
"""Deviations by which the loss of one task must exceed zero to count in a total by itself, and the
chance that any task of an unchanged model does: among many tasks some exceed three by chance."""
_CHOSEN = 1.25
"""How much farther a loss must exceed zero whose patterns the data chose: its tail is longer."""


class Floors(NamedTuple):
    """Per task, how often the models flip an item 1->0 between two runs of their own."""

    tasks: list[str]
    floor: Spread


class Ends(NamedTuple):
    """The two ends of what was lost, or gained, in every cell."""

    sure: tuple[Spread, ...]
    """Lower bounds, each valid by itself; the best one counts."""
    most: Spread

    @property
    def low_end(self) -> Floats:
        """The best lower bound."""
        best: Floats = np.max([bound.mean for bound in self.sure], axis=0)
        return np.minimum(np.maximum(best, 0.0), self.high_end)

    @property
    def high_end(self) -> Floats:
        """The upper bound."""
        return np.maximum(self.most.mean, 0.0)

    def mean(self) -> Ends:
        """The plain mean over the cells."""
        return Ends(tuple(average(bound) for bound in self.sure), average(self.most))


class Estimates(NamedTuple):
    """All that is estimated of some cells."""

    n: Floats
    before: Spread
    after: Spread
    change: Spread
    raw: tuple[Spread, Spread]
    """Items that flipped 1->0, and 0->1."""
    paper: tuple[Spread, Spread]
    """NaN where no item has options."""
    lost: Ends
    gained: Ends
    known: tuple[Floats, Floats]
    """Mean chance of being right, before and after, on the scale of lost and gained."""
    noise: Floats
    """NaN where it was not measured."""

    def mean(self) -> Estimates:
        """The plain mean over the cells, as one cell."""
        one = np.ones(1)
        return Estimates(
            n=one * self.n.sum(),
            before=average(self.before),
            after=average(self.after),
            change=average(self.change),
            raw=(average(self.raw[0]), average(self.raw[1])),
            paper=(average(self.paper[0]), average(self.paper[1])),
            lost=self.lost.mean(),
            gained=self.gained.mean(),
            known=(one * self.known[0].mean(), one * self.known[1].mean()),
            noise=one * self.noise.mean(),
        )


class Way(NamedTuple):
    """One direction of change, as rows of the patterns tell it; losses are 0, gains are 1."""

    flips: Floats
    drop: Floats
    runs: tuple[Floats, Floats]
    right: tuple[Floats, Floats]
    exact: Moment
    """Where the log has probabilities: the value itself."""
    firm: Moment
    """And the value less what reshuffled guessing could explain."""


class TaskEstimates:
    """The patterns of all tasks, ready to be added up by any grouping."""

    def __init__(
        self,
        patterns: Patterns,
        *,
        deterministic: bool = False,
        floors: Floors | None = None,
        same: bool = False,
    ) -> None:
        self.patterns = patterns
        self.names, codes = np.unique(patterns.task, return_inverse=True)
        self.task: Codes = codes.astype(np.intp)
        self.units = Units(patterns, self.task, len(self.names))
        self.n = self._sum(patterns.n)
        self.p = patterns.right_before / patterns.runs_before
        self.q = patterns.right_after / patterns.runs_after
        self.same = same
        """The two logs are one and the same: nothing was lost, whatever the noise of the runs."""
        self.floors = self._by_name(floors) if floors else None
        self.basis = self._bases(deterministic)
        sides = (patterns.runs_before, patterns.runs_after)
        right = (patterns.right_before, patterns.right_after)
        self.ways = (
            Way(
                self.p * (1 - self.q), self.p - self.q, sides, right, Moment.LOST, Moment.FIRM_LOST
            ),
            Way(
                self.q * (1 - self.p),
                self.q - self.p,
                sides[::-1],
                right[::-1],
                Moment.GAINED,
                Moment.FIRM_GAINED,
            ),
        )

    def _sum(self, column: Floats) -> Floats:
        sums = np.bincount(self.task, weights=column, minlength=len(self.names))
        return sums.astype(np.float64)

    def _by_name(self, floors: Floors) -> Spread:
        """The noise floors in the order of the tasks; NaN where a task has none."""
        place = {name: index for index, name in enumerate(floors.tasks)}
        index = [place.get(str(name), -1) for name in self.names]
        return Spread(*(np.append(column, np.nan)[index] for column in floors.floor))

    def _bases(self, deterministic: bool) -> NDArray[np.str_]:
        rows = self.patterns
        twice = (rows.runs_before > 1) & (rows.runs_after > 1)
        basis = np.full(len(self.names), "single_run", dtype="<U13")
        if self.floors is not None:
            basis[np.isfinite(self.floors.mean)] = "noise_run"
        basis[self._sum(rows.n * twice) >= _REPEATED * self.n] = "repeats"
        if deterministic:
            basis[:] = "deterministic"
        basis[self._sum(rows.moment(Moment.ITEMS)) == self.n] = "probabilities"
        return basis

    @cached_property
    def exact(self) -> NDArray[np.bool_]:
        """Tasks in which every item's chances are known."""
        return np.isin(self.basis, ("probabilities", "deterministic"))

    def basis_of(self, tasks: Codes) -> Basis:
        """The basis of a group."""
        named = set(self.basis[tasks].tolist())
        basis: Basis = named.pop() if len(named) == 1 else "mixed"
        return basis

    # --- groups of tasks -----------------------------------------------------------------------

    def estimate(self, cell: Codes, cells: int, *, for_mean: bool = False) -> Estimates:
        """Add the tasks up; `cell` is the group of each task, -1 for tasks left out.

        For a mean over the groups, the patterns that are surely lost are chosen over all groups at
        once: groups that choose their own each choose a little too well, and a mean adds that up.
        """
        grouping = _Grouping(self, cell, cells, for_mean)
        changes = self.units.of_values(self.q - self.p)
        return Estimates(
            n=grouping.n,
            before=grouping.add(self.units.of_values(self.p)),
            after=grouping.add(self.units.of_values(self.q)),
            change=grouping.add(changes),
            raw=(grouping.add(self._flips[0]), grouping.add(self._flips[1])),
            paper=(grouping.paper(self.ways[0]), grouping.paper(self.ways[1])),
            lost=grouping.ends(0),
            gained=grouping.ends(1),
            known=(grouping.known(0), grouping.known(1)),
            noise=grouping.noise(),
        )

    @cached_property
    def _flips(self) -> tuple[Moments, Moments]:
        lost, gained = (self.units.of_values(way.flips) for way in self.ways)
        return lost, gained


class _Grouping:
    """Tasks by group, and the sums over each group."""

    def __init__(
        self, table: TaskEstimates, cell: Codes, cells: int, for_mean: bool = False
    ) -> None:
        self.table = table
        self.for_mean = for_mean
        self.inside = cell >= 0
        self.cell, self.cells = np.where(self.inside, cell, 0), cells
        self.n = self._sum(table.n)
        self.weight = np.where(self.inside, table.n / self.n[self.cell], 0.0)
        self.alone = self._sum(np.ones(len(cell))) == 1
        """Groups of a single task, which borrow nothing."""
        self.row_cell = np.where(self.inside[table.task], self.cell[table.task], 0)
        self.row_n = np.where(self.inside[table.task], table.patterns.n, 0.0)

    def _sum(self, column: Floats) -> Floats:
        sums = np.bincount(self.cell[self.inside], column[self.inside], minlength=self.cells)
        return sums.astype(np.float64)

    def _row_sum(self, column: Floats) -> Floats:
        sums = np.bincount(self.row_cell, self.row_n * column, minlength=self.cells)
        return sums.astype(np.float64)

    def _total(self, spread: Spread, where: NDArray[np.bool_] | None = None) -> Spread:
        """Add up the tasks of each group by their items."""
        keep = self.inside if where is None else self.inside & where
        part = spread.at(keep).times(self.weight[keep])
        return total(part, self.cell[keep], self.cells)

    def _spread(self, moments: Moments) -> Spread:
        own, borrowed = moments.spread(), moments.spread_in_total()
        alone = self.alone[self.cell]
        return Spread(*(np.where(alone, *columns) for columns in zip(own, borrowed, strict=True)))

    def add(self, moments: Moments, where: NDArray[np.bool_] | None = None) -> Spread:
        """The mean over the items of each group."""
        return self._total(self._spread(moments), where)

    def known(self, way: int) -> Floats:
        """The mean chance of being right on the side that a loss (a gain) is taken from."""
        table = self.table
        exact = table.basis == "probabilities"
        chances = self._sum(
            np.where(exact, table._sum(table.patterns.moment((Moment.P, Moment.Q)[way])), 0.0)
        )
        counted = self._row_sum(np.where(exact[table.task], 0.0, (table.p, table.q)[way]))
        return (chances + counted) / self.n

    def noise(self) -> Floats:
        """How often a model flips an item between two of its own runs, as far as it is known."""
        rows = self.table.patterns
        floors = []
        for share, runs in ((self.table.p, rows.runs_before), (self.table.q, rows.runs_after)):
            twice = runs > 1
            spread = share * (1 - share) * runs / np.where(twice, runs - 1, 1)
            items = self._row_sum(twice.astype(float))
            with np.errstate(divide="ignore", invalid="ignore"):
                known = items >= _REPEATED * self.n
                floors.append(np.where(known, self._row_sum(spread * twice) / items, np.nan))
        measured: Floats = (floors[0] + floors[1]) / 2
        if self.table.floors is None:
            return measured
        return np.where(np.isnan(measured), self._total(self.table.floors).mean, measured)

    def paper(self, way: Way) -> Spread:
        """Flips less lucky guesses as in Harmon et al., by number of options, cut at zero."""
        table, k = self.table, self.table.patterns.k
        values = np.zeros(len(k))
        for options in np.unique(k):
            rows = k == options
            n = self._row_sum(rows.astype(float))
            with np.errstate(divide="ignore", invalid="ignore"):
                a, b = (self._row_sum(rows * side) / n for side in (table.p, table.q))
            accuracy = a[self.row_cell], b[self.row_cell]
            value = loss.beyond_chance(way.flips, table.p, table.q, k, accuracy)
            positive = self._row_sum(np.where(rows, value, 0.0)) > 0
            values = np.where(rows & positive[self.row_cell], value, values)
        spread = self.add(table.units.of_values(values))
        none = self._row_sum(np.isfinite(k).astype(float)) == 0
        return Spread(*(np.where(none, np.nan, column) for column in spread))

    # --- the two ends --------------------------------------------------------------------------

    def ends(self, direction: int) -> Ends:
        """What was lost (0) or gained (1), between its two ends."""
        table, way = self.table, self.table.ways[direction]
        if table.same:
            zero = np.zeros(self.cells)
            nothing = Spread(zero, zero, zero, np.ones(self.cells), zero)
            return Ends((nothing,), nothing)
        exact = table.exact
        firm = self._spread(self._firm(way))
        drop = self._spread(self._drop(way))
        choice = np.zeros_like(self.row_cell) if self.for_mean else self.row_cell
        pooled = self._spread(self._sure(way, choice, 1 if self.for_mean else self.cells))
        alone = self._spread(self._sure(way, table.task, len(table.names)))
        beyond = self._beyond_noise(direction)
        first = self._total(_choose(exact, firm, pooled))
        second = self._total(
            _choose(exact, firm, _choose(np.isfinite(beyond.mean), beyond, pooled))
        )
        far = max(_FAR_BEYOND, float(special.ndtri(1 - _BY_CHANCE / len(table.names))))
        firm_alone, fell, noisy = (_sound(spread, far) for spread in (firm, drop, beyond))
        chosen = _sound(alone, _CHOSEN * far)
        parts = _choose(exact, _larger(firm_alone, fell), _larger(chosen, noisy))
        bounds = [first, second, self._total(parts)]
        bounds.append(self._fallen(drop))
        return Ends(tuple(bounds), self._most(way, direction, exact))

    def _fallen(self, drop: Spread) -> Spread:
        """The drop of accuracy, which is a lower bound as well.

        Chance makes half of all unchanged models drop a little. So it counts where it is clear,
        not at all with repeats, which tell more; and as it is for single runs, which tell no more.
        """
        basis = self.table.basis
        fallen = self._total(drop)
        repeated = self._sum((basis == "repeats").astype(float)) > 0
        single = self._sum(np.isin(basis, ("single_run", "noise_run")).astype(float)) > 0
        return _zeroed(_choose(single, fallen, _sound(fallen, _BEYOND)), repeated)

    def _firm(self, way: Way) -> Moments:
        """Losses of exact tasks that reshuffled guessing cannot explain."""
        table = self.table
        rows = table.patterns
        n, a, b = (table._sum(rows.n * side) for side in (np.ones(len(rows.n)), table.p, table.q))
        accuracy = ((a / n)[table.task], (b / n)[table.task])
        counted = loss.beyond_chance(way.flips, table.p, table.q, rows.k, accuracy)
        return self._exact(way.firm, counted)

    def _drop(self, way: Way) -> Moments:
        """The drop of accuracy, on the scale of each task's losses."""
        table, sign = self.table, 1 if way.exact is Moment.LOST else -1
        fell, rose = (table.patterns.powers(value) for value in (Moment.LOST, Moment.GAINED))
        exact = (table.basis == "probabilities")[table.task]
        powers = (sign * (fell[0] - rose[0]), fell[1] + rose[1], sign * (fell[2] - rose[2]))
        return table.units.moments(
            *(
                np.where(exact, power, table.patterns.n * way.drop ** (degree + 1))
                for degree, power in enumerate(powers)
            )
        )

    def _exact(self, value: Moment, counted: Floats) -> Moments:
        """A value of tasks with probabilities by its moments, of other tasks as counted."""
        table = self.table
        exact = (table.basis == "probabilities")[table.task]
        return table.units.moments(
            *(
                np.where(exact, sums, table.patterns.n * counted**power)
                for power, sums in enumerate(table.patterns.powers(value), start=1)
            )
        )

    def _sure(self, way: Way, cell: Codes, cells: int) -> Moments:
        """What is surely lost by the runs, with patterns chosen over the rows of each cell."""
        table = self.table
        values = np.zeros(len(table.task))
        counted = ~table.exact[table.task]
        counted &= self.inside[table.task]
        before_runs, after_runs = (side[counted].astype(np.intp) for side in way.runs)
        span = int(after_runs.max(initial=0)) + 1
        for shape in np.unique(before_runs * span + after_runs).tolist():
            before, after = divmod(shape, span)
            rows = np.flatnonzero(counted & (way.runs[0] == before) & (way.runs[1] == after))
            outcome = (way.right[0][rows] * (after + 1) + way.right[1][rows]).astype(np.intp)
            counts = np.zeros((cells, (before + 1) * (after + 1)))
            np.add.at(counts, (cell[rows], outcome), table.patterns.n[rows])
            values[rows] = loss.sure_loss(counts, before, after)[cell[rows], outcome]
        return table.units.of_values(values)

    def _beyond_noise(self, direction: int) -> Spread:
        """Flips beyond the noise that second runs measured; NaN for tasks without."""
        table = self.table
        raw = self._spread(table._flips[direction])
        if table.floors is None:
            return Spread(*(np.full(len(table.names), np.nan) for _ in raw))
        taken = table.floors.times(np.full(len(table.names), -1.0))
        beyond = plus(raw, taken)._replace(unit=raw.unit)
        noisy = table.basis == "noise_run"
        return Spread(*(np.where(noisy, column, np.nan) for column in beyond))

    def _most(self, way: Way, direction: int, exact: NDArray[np.bool_]) -> Spread:
        """The most that can have been lost."""
        table = self.table
        bounded = np.isin(table.basis, ("repeats", "noise_run"))
        known = self.add(self._exact(way.exact, way.flips), exact)
        raw = table._flips[direction]
        unknown = self.add(raw, ~exact & ~bounded)
        if not bounded.any():
            return plus(known, unknown)
        return plus(known, unknown, self._bound(raw, way, direction, bounded))

    def _bound(self, raw: Moments, way: Way, direction: int, bounded: NDArray[np.bool_]) -> Spread:
        """At most (E d + sqrt(E d^2)) / 2 was lost, and at most what flipped; d = p - q."""
        table = self.table
        share = self._sum(np.where(bounded, self.weight, 0.0))
        flips = self.add(raw, bounded)
        drop = self.add(table.units.of_values(way.drop), bounded)
        square = self._total(self._squared(direction), bounded)
        value = np.minimum(flips.mean, _bound_of(drop.mean, square.mean, share))
        value = np.maximum(value, np.maximum(drop.mean, 0.0))
        most = np.minimum(high_limit(flips), _bound_of(high_limit(drop), high_limit(square), share))
        deviation = np.maximum(most - value, 0.0) / 1.96
        none = np.zeros(self.cells)
        return Spread(value, deviation**2, none, np.full(self.cells, 1e6), none)

    def _squared(self, direction: int) -> Spread:
        """The mean of (p - q)^2 of every task, from repeats or from measured noise."""
        table = self.table
        way = table.ways[direction]
        square = loss.squared_change(way.right[0], way.runs[0], way.right[1], way.runs[1])
        seen = np.isfinite(square)
        items = table._sum(table.patterns.n * seen)
        mean = table._sum(table.patterns.n * np.where(seen, square, 0)) / np.maximum(items, 1)
        repeats = self._spread(table.units.of_values(np.where(seen, square, mean[table.task])))
        if table.floors is None:
            return repeats
        flips = self._spread(table.units.of_values(table.ways[0].flips + table.ways[1].flips))
        noisy = plus(flips, table.floors.times(np.full(len(table.names), -2.0)))
        return _choose(table.basis == "noise_run", noisy._replace(unit=flips.unit), repeats)


def _bound_of(drop: Floats, square: Floats, share: Floats) -> Floats:
    bound: Floats = (drop + np.sqrt(np.maximum(square, 0.0) * share)) / 2
    return bound


def _choose(where: NDArray[np.bool_], one: Spread, other: Spread) -> Spread:
    return Spread(*(np.where(where, *columns) for columns in zip(one, other, strict=True)))


def _larger(one: Spread, other: Spread) -> Spread:
    return _choose(one.mean >= np.nan_to_num(other.mean, nan=-np.inf), one, other)


def _sound(spread: Spread, deviations: float) -> Spread:
    """Zero where a mean is not clearly above zero; its variance stays part of a total's."""
    with np.errstate(invalid="ignore"):
        unclear = ~(spread.mean > deviations * np.sqrt(spread.variance))
    kept = Spread(*(np.nan_to_num(column, nan=0.0, posinf=np.inf) for column in spread))
    mean, third = (np.where(unclear, 0.0, column) for column in (kept.mean, kept.third))
    return kept._replace(mean=mean, third=third, freedom=np.maximum(kept.freedom, 1.0))


def _zeroed(spread: Spread, where: NDArray[np.bool_]) -> Spread:
    mean, variance, third = (np.where(where, 0.0, column) for column in spread[:3])
    return spread._replace(mean=mean, variance=variance, third=third)


def noise_floors(before: Patterns | None, after: Patterns | None) -> Floors:
    """The noise floors from a second run of one model, or of both.

    Each side's patterns pair the first run with the second. Where only one side has them, the
    other is taken to be as noisy.
    """
    sides = []
    for patterns in (before, after):
        if patterns is not None:
            table = TaskEstimates(patterns)
            flips = (table.ways[0].flips + table.ways[1].flips) / 2
            sides.append((table.names.tolist(), table.units.of_values(flips).spread()))
    (names, floor), *rest = sides
    if not rest:
        return Floors(names, floor)
    common = [name for name in names if name in rest[0][0]]
    one, other = (
        spread.at(np.array([listed.index(name) for name in common], np.intp)).times(0.5)
        for listed, spread in sides
    )
    return Floors(common, plus(one, other))


def groups_of(names: Mapping[str, int], tasks: NDArray[np.str_]) -> Codes:
    """The group of each task by name, -1 for a task without one."""
    return np.array([names.get(str(task), -1) for task in tasks], np.intp)
