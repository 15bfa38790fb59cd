"""Point estimators: the check values of the specification, and what must hold for any data."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forgetmap.stats import transitions
from forgetmap.stats.transitions import estimate, features, guessing_bounds, latent

CELLS = features([1, 1, 0, 0], [1] * 4, [1, 0, 1, 0], [1] * 4)  # n11, n10, n01, n00


def sums(n11, n10, n01, n00, k=4.0):
    return {float(k): np.array([n11, n10, n01, n00], float) @ CELLS}


def know_or_guess(k, kk, kg, gk, gg):
    """Cell shares under the paper's response model, from latent shares in percent, as fractions."""
    g = Fraction(1, k)
    kk, kg, gk, gg = (Fraction(share, 100) for share in (kk, kg, gk, gg))
    n10 = kg * (1 - g) + gg * g * (1 - g)
    n01 = gk * (1 - g) + gg * g * (1 - g)
    n00 = gg * (1 - g) ** 2
    return 1 - n10 - n01 - n00, n10, n01, n00


@pytest.mark.parametrize(
    ("k", "shares", "raw", "paper", "forgotten", "gained"),
    [
        (4, (60, 0, 0, 40), 7.5, 4.5, 0, 0),
        (4, (50, 10, 5, 35), 14.0625, 10.6875, 10, 5),
        (2, (50, 10, 5, 35), 13.75, 9.25, 10, 5),
        (10, (40, 20, 10, 30), 20.7, 18.9, 20, 10),
    ],
)
def test_check_values_of_the_specification(k, shares, raw, paper, forgotten, gained):
    found = sums(*know_or_guess(k, *shares), k=k)
    result = estimate(found)
    assert 100 * result.raw[0] == pytest.approx(raw, abs=1e-12)
    assert 100 * result.paper[0] == pytest.approx(paper, abs=1e-12)
    assert 100 * latent(found)[0] == pytest.approx(forgotten, abs=1e-12)
    assert 100 * latent(found)[1] == pytest.approx(gained, abs=1e-12)


def test_the_worked_example_of_the_paper_gives_eight_not_six():
    """Accuracy 80 % to 70 %, raw forgetting 10 %, k = 4 (disagreement D6)."""
    result = estimate(sums(70, 10, 0, 20))
    assert result.paper[0] == pytest.approx(0.08)


def test_forgetting_can_exceed_the_published_ceiling():
    """Disjoint right answers at 50 %: F 0.417 against a ceiling of 0.333 (disagreement D7)."""
    result = estimate(sums(0, 50, 50, 0))
    assert result.paper[0] == pytest.approx(5 / 12)
    assert result.ceiling[0] == pytest.approx(1 / 3)


def test_latent_agrees_with_the_closed_form():
    """f = k (k F - (1 - b)) / (k - 1)^2, from the same two assumptions."""
    for k in (2, 3, 4, 10):
        result = estimate(found := sums(430, 120, 70, 380, k=k))
        f = k * (k * result.raw[0] - (1 - result.accuracy[1])) / (k - 1) ** 2
        assert latent(found)[0] == pytest.approx(f)


def test_guessing_bounds_hold_the_truth_for_any_persistence():
    """Simulated know-or-guess models whose guesses persist with probability rho."""
    rng = np.random.default_rng(0)
    items, k, forgotten = 400_000, 4, 0.10
    for rho in (0.0, 0.4, 1.0):
        known_before = rng.random(items) < 0.6
        known_after = known_before & (rng.random(items) >= forgotten / 0.6)
        guess_before = rng.integers(0, k, items) == 0
        fresh = rng.integers(0, k, items) == 0
        persists = ~known_before & (rng.random(items) < rho)
        before = known_before | guess_before
        after = known_after | np.where(persists, guess_before, fresh)
        cells = [before & after, before & ~after, ~before & after, ~before & ~after]
        found = sums(*(cell.sum() for cell in cells))
        low, high = guessing_bounds(found)[0]
        assert low - 0.003 <= forgotten <= high + 0.003
        assert latent(found, rho)[0] == pytest.approx(forgotten, abs=0.004)


def test_persistence_is_found_from_repeats():
    rng = np.random.default_rng(1)
    items, k, rho = 300_000, 4, 0.5
    known = rng.random(items) < 0.5

    def model():
        first = rng.integers(0, k, items) == 0
        again = np.where(rng.random(items) < rho, first, rng.integers(0, k, items) == 0)
        return (known | first).astype(int) + (known | again)

    before, after = model(), model()
    counted = features(before, np.full(items, 2), after, np.full(items, 2)).sum(axis=0)
    assert transitions.persistence({4.0: counted}) == pytest.approx(rho, abs=0.01)


def test_excess_is_zero_for_the_same_model_and_raw_for_deterministic_ones():
    rng = np.random.default_rng(2)
    p = rng.beta(0.8, 0.6, 200_000)
    before, after = rng.binomial(3, p), rng.binomial(3, p)
    three = np.full(len(p), 3)
    noisy = estimate({math.inf: features(before, three, after, three).sum(axis=0)})
    assert noisy.raw[0] > 0.1
    assert noisy.excess[0] == pytest.approx(0, abs=0.002)
    assert noisy.excess[1] == pytest.approx(0, abs=0.002)

    fixed_before, fixed_after = 3 * rng.integers(0, 2, 1000), 3 * rng.integers(0, 2, 1000)
    thousand = np.full(1000, 3)
    fixed = estimate(
        {math.inf: features(fixed_before, thousand, fixed_after, thousand).sum(axis=0)}
    )
    assert fixed.excess == pytest.approx(fixed.raw)
    assert fixed.noise_floor == 0


def test_excess_approaches_soft_with_many_repeats():
    """`soft` is what `excess` converges to when the model samples among the options."""
    rng = np.random.default_rng(3)
    u, v = rng.beta(2, 1, 4000), rng.beta(1, 1, 4000)
    soft = np.mean(((u - v) ** 2 + (u - v)) / 2)
    repeats = 400
    counted = features(
        rng.binomial(repeats, u),
        np.full(4000, repeats),
        rng.binomial(repeats, v),
        np.full(4000, repeats),
    ).sum(axis=0)
    assert estimate({math.inf: counted}).excess[0] == pytest.approx(soft, abs=0.002)


def test_items_of_several_k_combine_by_item_count():
    two, ten = sums(50, 10, 5, 35, k=2), sums(400, 200, 100, 300, k=10)
    both = estimate({**two, **ten})
    one, other = estimate(two), estimate(ten)
    for name in ("paper", "ceiling"):
        for side in (0, 1):
            combined = (100 * getattr(one, name)[side] + 1000 * getattr(other, name)[side]) / 1100
            assert getattr(both, name)[side] == pytest.approx(combined)


def test_open_answers_have_no_chance_correction():
    result = estimate(sums(50, 10, 5, 35, k=math.inf))
    assert np.isnan(result.paper[0])
    assert np.isnan(result.latent[0])
    mixed = estimate({**sums(50, 10, 5, 35, k=math.inf), **sums(0, 0, 0, 0.0001, k=4)})
    assert mixed.paper[0] == pytest.approx(mixed.raw[0], abs=1e-5)


counts = st.lists(st.integers(0, 500), min_size=4, max_size=4).filter(lambda cells: sum(cells) > 0)


@given(counts, st.sampled_from([2.0, 3.0, 4.0, 10.0, math.inf]))
def test_swapping_before_and_after_swaps_forgetting_and_transfer(cells, k):
    n11, n10, n01, n00 = cells
    one, other = estimate(sums(n11, n10, n01, n00, k)), estimate(sums(n11, n01, n10, n00, k))
    for name in ("raw", "paper", "ceiling", "accuracy"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name)[::-1], atol=1e-12)


@given(counts, st.sampled_from([2.0, 3.0, 4.0, 10.0]))
def test_identities_of_the_published_formulas(cells, k):
    """b - a = BT - F always; unclipped F - BT = a - b; ceilings differ by k/(k-1) (a - b)."""
    found = sums(*cells, k)
    result = estimate(found)
    a, b = result.accuracy
    assert result.raw[1] - result.raw[0] == pytest.approx(b - a)
    if min(result.paper) > 0:
        assert result.paper[0] - result.paper[1] == pytest.approx(a - b)
    if min(result.ceiling) > 0:
        assert result.ceiling[0] - result.ceiling[1] == pytest.approx(k / (k - 1) * (a - b))
    low, high = guessing_bounds(found)[0]
    assert 0 <= low <= high + 1e-12 <= 1 + 1e-12
