"""Limits of means: against known intervals, and by what they must never do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from forgetmap.stats import spread
from forgetmap.stats.moments import Moments, Units
from forgetmap.stats.patterns import MOMENTS, Patterns


@pytest.mark.parametrize(("lost", "n"), [(5, 100), (20, 200), (3, 50), (60, 1000)])
def test_for_counts_the_limits_are_near_jeffreys(lost, n):
    low, high = spread.limits(spread.spread_of([1] * lost + [0] * (n - lost)))
    expected = stats.beta.ppf([0.025, 0.975], lost + 0.5, n - lost + 0.5)
    assert [float(low), float(high)] == pytest.approx(expected, rel=0.2)


def test_nothing_seen_is_not_nothing():
    """The rule of three, nearly: 0 of n may still be 3 / n."""
    for n in (24, 100, 1000):
        _, high = spread.limits(spread.spread_of([0.0] * n))
        assert 2.5 / n < float(high) < 3.7 / n


@pytest.mark.parametrize("n", [10, 50, 400])
def test_all_lost_is_not_everything(n):
    """The same at the other end, and hardly a word from two items."""
    low, high = spread.limits(spread.spread_of([1.0] * n))
    assert 1 - 5 / n < float(low) < 1 - 2.5 / n
    assert high == 1
    assert spread.limits(spread.spread_of([1.0] * 2))[0] == 0


def test_a_total_in_which_nothing_varies_knows_its_units():
    """Two tasks of 100 items without a loss say what 200 such items say."""
    parts = spread.Spread(*(np.repeat(column, 2) for column in spread.spread_of([0.0] * 100)))
    added = spread.total(parts.times(0.5), np.zeros(2, np.intp), 1)
    whole = spread.high_limit(spread.spread_of([0.0] * 200))
    assert spread.high_limit(added)[0] == pytest.approx(whole, rel=0.01)


def test_for_many_items_the_limits_are_students():
    items = np.random.default_rng(0).normal(0.4, 0.1, 400)
    low, high = spread.limits(spread.spread_of(items))
    expected = stats.t.interval(0.95, 399, items.mean(), stats.sem(items))
    assert [low, high] == pytest.approx(expected, abs=0.002)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=50))
def test_limits_hold_the_mean_and_chances_agree_with_limits(items):
    one = spread.spread_of(items)
    low, high = spread.limits(one)
    mean = np.mean(items)
    assert -1e-9 <= low <= mean + 0.02
    assert mean - 1e-9 <= high <= 1
    if 1e-6 < low < mean:
        assert spread.chance_at_most(one, low) == pytest.approx(0.025, abs=1e-4)
    if high < 1:
        assert spread.chance_at_least(one, high) == pytest.approx(0.025, abs=1e-4)


def test_one_unit_alone_says_nothing():
    low, high = spread.limits(spread.spread_of([0.3]))
    assert (float(low), float(high)) == (0, 1)


def test_a_total_of_parts_is_the_spread_of_the_whole():
    items = np.random.default_rng(1).random(300)
    parts = [spread.spread_of(items[start : start + 100]).times(1 / 3) for start in (0, 100, 200)]
    columns = [np.array([part[i] for part in parts]) for i in range(5)]
    added = spread.total(spread.Spread(*columns), np.zeros(3, np.intp), 1)
    whole = spread.spread_of(items)
    assert added.mean[0] == pytest.approx(whole.mean)
    assert added.variance[0] == pytest.approx(whole.variance, rel=0.1)
    assert added.unit[0] == pytest.approx(whole.unit)


def test_clusters_of_one_item_are_items():
    def patterns(bucket):
        n = np.ones(12)
        right = np.arange(12.0) % 3 > 0
        return Patterns(
            np.full(12, "t"), n, bucket, n, n, n, right.astype(float), n, np.zeros((12, MOMENTS))
        )

    values = np.linspace(0, 1, 12) ** 2
    task = np.zeros(12, np.intp)
    plain, clustered = (
        Units(patterns(bucket), task, 1).of_values(values).spread()
        for bucket in (-np.ones(12), np.arange(12.0))
    )
    for ours, theirs in zip(plain, clustered, strict=True):
        assert ours == pytest.approx(theirs)


def test_small_tasks_share_their_spread_in_a_total():
    one = np.ones(30)
    sums = np.repeat([0.0, 1.0], 15)
    moments = Moments(one, one, one, one, sums, sums, sums, sums, sums, sums)
    assert np.isinf(moments.spread().variance).all()
    shared = moments.spread_in_total()
    assert shared.variance == pytest.approx(np.full(30, 0.25 * 30 / 29))
