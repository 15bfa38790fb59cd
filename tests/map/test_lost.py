"""Lost and gained: the properties that the estimand must have, on random data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forgetmap.map.cells import CellTable, Plan
from forgetmap.map.result import Cell
from forgetmap.stats.patterns import MOMENTS, Patterns, item_moments

CHANCE = st.floats(0, 1)
ITEMS = st.lists(st.tuples(CHANCE, CHANCE), min_size=2, max_size=40)


def known(items, task="t") -> Patterns:
    """Items whose chances are known, one pattern each."""
    p, q = (np.array(side) for side in zip(*items, strict=True))
    one = np.ones(len(p))
    return Patterns(
        np.full(len(p), task), 4 * one, -one, one, (p > 0.5) * one, one, (q > 0.5) * one, one,
        item_moments(p, q),
    )  # fmt: skip


def counted(before, after, runs=1, task="t") -> Patterns:
    """Items with some runs, of which so many were right."""
    one = np.ones(len(before))
    right = np.array(before, float), np.array(after, float)
    return Patterns(
        np.full(len(one), task), np.inf * one, -one, runs * one, right[0], runs * one, right[1],
        one, np.zeros((len(one), MOMENTS)),
    )  # fmt: skip


def total(*parts: Patterns, **plan) -> Cell:
    return CellTable(Patterns.concatenate(parts), {}, Plan(**plan)).total()


@given(ITEMS)
@settings(max_examples=60, deadline=None)
def test_lost_and_gained_differ_by_the_change_of_accuracy(items):
    """Property 1, and 4: swapping the runs swaps lost and gained."""
    p, q = (np.array(side) for side in zip(*items, strict=True))
    cell, swapped = total(known(items)), total(known([(b, a) for a, b in items]))
    assert cell.gained.high_end - cell.lost.high_end == pytest.approx((q - p).mean(), abs=1e-9)
    assert cell.lost.high_end == pytest.approx(np.maximum(p - q, 0).mean(), abs=1e-9)
    assert swapped.gained.high_end == pytest.approx(cell.lost.high_end, abs=1e-9)
    assert swapped.lost.low == pytest.approx(cell.gained.low, abs=1e-9)


@given(ITEMS)
@settings(max_examples=60, deadline=None)
def test_lost_lies_between_its_bounds(items):
    """Properties 2, 5 and 6."""
    p, q = (np.array(side) for side in zip(*items, strict=True))
    d, lost = p - q, total(known(items)).lost.high_end
    assert max(0, d.mean()) - 1e-9 <= lost <= (p * (1 - q)).mean() + 1e-9
    assert (d.mean() + (d**2).mean()) / 2 - 1e-9 <= lost
    assert lost <= (d.mean() + np.sqrt((d**2).mean())) / 2 + 1e-9


@given(ITEMS, st.lists(st.tuples(CHANCE, CHANCE).map(sorted), min_size=2, max_size=30))
@settings(max_examples=60, deadline=None)
def test_a_group_that_lost_nothing_adds_nothing(items, rising):
    """Property 3: whatever it gained."""
    cell = total(known(items), known(rising, "rising"))
    alone = total(known(items))
    assert total(known(rising)).lost.high_end == pytest.approx(0, abs=1e-12)
    assert cell.lost.high_end * cell.n == pytest.approx(alone.lost.high_end * alone.n, abs=1e-9)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=60))
@settings(max_examples=60, deadline=None)
def test_of_deterministic_models_lost_is_the_flips(items):
    before, after = zip(*items, strict=True)
    cell = total(counted(before, after), deterministic=True)
    assert cell.lost.high_end == pytest.approx(np.mean([b > a for b, a in items]))
    single = total(counted(before, after)).lost
    drop = np.mean(before) - np.mean(after)
    assert single.low_end == pytest.approx(max(0, drop))
    assert single.high_end == pytest.approx(cell.raw.lost.value)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=60),
    st.integers(1, 4),
)
@settings(max_examples=60, deadline=None)
def test_every_number_is_in_order_and_finite(items, split):
    before, after = zip(*items, strict=True)
    parts = [counted(before[:split], after[:split], 3, "a"), counted(before, after, 3, "b")]
    table = CellTable(Patterns.concatenate(parts), {"a": "x", "b": "y"}, Plan())
    cells = [table.total(), table.macro(), *table.tasks().values()]
    for cell in [*cells, *table.category_cells().values()]:
        for share in (cell.lost, cell.gained):
            assert 0 <= share.low <= share.low_end <= share.high_end <= share.high <= 1
        for share in (cell.raw.lost, cell.raw.gained, cell.change):
            assert share.low <= share.value <= share.high
        counts = cell.counts
        assert counts.n00 + counts.n01 + counts.n10 + counts.n11 == pytest.approx(cell.n)


def test_a_hidden_loss_is_seen():
    """Six in a hundred are wholly lost while half of the others rise from .5 to 1."""
    items = [(1.0, 0.0)] * 60 + [(0.5, 1.0)] * 470 + [(0.5, 0.5)] * 470
    cell = total(known(items))
    assert cell.lost.value == pytest.approx(0.06)
    assert cell.verdict.forgetting == "lost"
    assert cell.change.value > 0  # the average rose, and hides it


def test_a_task_of_its_own_changes_no_other_task():
    calm, other = known([(0.9, 0.8)] * 30), known([(0.5, 0.4)] * 20, "u")
    clustered = other._replace(bucket=np.arange(20.0) % 4)
    plain, with_clusters = (
        CellTable(Patterns.concatenate([calm, part]), {}, Plan()).tasks()["t"]
        for part in (other, clustered)
    )
    assert plain.lost == with_clusters.lost


def test_one_item_with_a_single_repeat_breaks_nothing():
    many = counted([3] * 40 + [0] * 10, [3] * 40 + [0] * 10, 3)
    odd = counted([1], [0], 1)
    cell = total(many, odd)
    assert cell.n == 51
    assert np.isfinite([cell.lost.low, cell.lost.high]).all()
    assert cell.lost.basis == "repeats"


def test_a_net_number_never_stands_for_what_was_lost():
    """Single runs in which as much was gained as lost: their low end is the drop, 0."""
    cell = total(counted([1] * 20 + [0] * 20 + [1] * 60, [0] * 20 + [1] * 20 + [1] * 60))
    assert cell.change.value == 0
    assert (cell.lost.low_end, cell.lost.high_end) == (0, pytest.approx(0.2))
    assert cell.lost.value == pytest.approx(0.2)
