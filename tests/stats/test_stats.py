"""Tests, corrections and power, against scipy and statsmodels."""

from __future__ import annotations

import itertools
import math
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar
from statsmodels.stats.multitest import multipletests

from forgetmap.stats import power, tests


@given(st.integers(0, 200), st.integers(0, 200))
def test_mcnemar_agrees_with_scipy_and_statsmodels(forgotten, gained):
    expected = (
        stats.binomtest(forgotten, forgotten + gained, 0.5).pvalue if forgotten + gained else 1.0
    )
    assert tests.mcnemar(forgotten, gained) == pytest.approx(expected, rel=1e-9)
    table = [[5, forgotten], [gained, 7]]
    if forgotten + gained:
        other = statsmodels_mcnemar(table, exact=True).pvalue
        assert tests.mcnemar(forgotten, gained) == pytest.approx(other, rel=1e-9)


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 100))
def test_sign_flip_is_mcnemar_for_single_runs(forgotten, gained, unchanged):
    found = tests.sign_flip([-1, 0, 1], [forgotten, unchanged, gained])
    assert found == pytest.approx(tests.mcnemar(forgotten, gained), abs=1e-9)


def test_sign_flip_agrees_with_enumeration():
    changes = np.array([1 / 3, 2 / 3, -1 / 3, 1.0, 2 / 3, -1 / 3, 0, 1 / 3])
    observed = abs(changes.sum())
    extreme = [
        abs(np.dot(signs, np.abs(changes))) >= observed - 1e-9
        for signs in itertools.product((-1, 1), repeat=len(changes))
    ]
    distinct, counts = np.unique(np.rint(changes * 3), return_counts=True)
    assert tests.sign_flip(distinct / 3, counts, unit=3) == pytest.approx(np.mean(extreme))


def test_sign_flip_far_out_is_normal():
    """Beyond the exact lattice, thirds; the exact test of the same data in whole steps is near."""
    exact = tests.mcnemar(25_300, 24_700)
    assert tests.sign_flip([-1, 1], [25_300, 24_700], unit=3) == pytest.approx(exact, rel=0.02)
    assert tests.sign_flip([-1, 1], [509_000, 490_000]) < 1e-50


def test_cluster_sign_flip_agrees_with_enumeration():
    sums = np.array([3.0, -1, 2, 2, 1, 0.5, -0.5, 4])
    observed = abs(sums.sum())
    exact = np.mean(
        [abs(np.dot(s, sums)) >= observed - 1e-9 for s in itertools.product((-1, 1), repeat=8)]
    )
    found = tests.cluster_sign_flip(sums, 200_000, np.random.default_rng(0))
    assert found == pytest.approx(exact, abs=0.005)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_adjusted_p_values_agree_with_statsmodels(p_values):
    for ours, method in ((tests.holm, "holm"), (tests.benjamini_hochberg, "fdr_bh")):
        with mock.patch("gc.collect"):  # which statsmodels calls each time, and which takes longest
            theirs = multipletests(p_values, method=method)[1]
        np.testing.assert_allclose(ours(p_values), theirs)


def test_adjusting_nothing_gives_nothing():
    assert len(tests.holm([])) == len(tests.benjamini_hochberg([])) == 0


@pytest.mark.parametrize(("n", "flips"), [(200, 0.1), (1000, 0.05), (5000, 0.2), (500, 0.0)])
def test_the_detectable_change_is_found_four_times_in_five(n, flips):
    """Power of McNemar's exact test at the stated change, by simulation."""
    effect = power.minimum_detectable_effect(n, flips)
    spread = max(flips, effect)
    rng = np.random.default_rng(0)
    draws = rng.multinomial(n, [(spread + effect) / 2, (spread - effect) / 2, 1 - spread], 2000)
    found = np.mean([tests.mcnemar(int(one), int(other)) < 0.05 for one, other, _ in draws])
    assert found == pytest.approx(0.8, abs=0.06)


def test_the_detectable_change_shrinks_with_items_and_has_limits():
    sizes = [power.minimum_detectable_effect(n, 0.1) for n in (50, 100, 1000, 10_000)]
    assert sizes == sorted(sizes, reverse=True)
    assert power.minimum_detectable_effect(0, 0.1) == 1.0
    assert power.minimum_detectable_effect(3, 0.5) == 1.0


def test_a_guesser_is_never_called_clearly_above_chance_too_often():
    """By luck is exact for equal options, and on the safe side for different ones."""
    assert tests.by_luck(7, 10, 0.25) == pytest.approx(
        sum(math.comb(10, n) * 0.25**n * 0.75 ** (10 - n) for n in range(7, 11))
    )
    chances = [1 / 2] * 20 + [1 / 7] * 15 + [1 / 18] * 5
    counts = np.ones(1)
    for chance in chances:
        counts = np.convolve(counts, [1 - chance, chance])
    for right in range(len(chances) + 1):
        exact = counts[right:].sum()
        ours = tests.by_luck(right, len(chances), float(np.mean(chances)))
        if right >= sum(chances) + 1:
            assert ours >= exact - 1e-12
