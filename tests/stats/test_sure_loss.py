"""What is surely lost, from runs: never too much, and all of it where runs have no noise."""

from __future__ import annotations

import numpy as np
import pytest

from forgetmap.stats import lost


def surely_lost(p, q, runs, rng):
    counts = np.zeros((1, runs + 1, runs + 1))
    np.add.at(counts[0], (rng.binomial(runs, p), rng.binomial(runs, q)), 1)
    flat = counts.reshape(1, -1)
    return float((lost.sure_loss(flat, runs, runs) * flat).sum() / len(p))


@pytest.mark.parametrize("runs", [1, 2, 3, 5])
def test_looks_add_up_to_the_drop_of_accuracy(runs):
    outcomes = lost.runs(runs, runs)
    before, after = np.divmod(np.arange((runs + 1) ** 2), runs + 1)
    assert outcomes.look.sum(axis=1) == pytest.approx((before - after) / runs)
    for right in range(2 * runs + 1):
        same = outcomes.right == right
        assert outcomes.exchange[same].sum() == pytest.approx(1)
        assert outcomes.exchange[same] @ outcomes.look[same] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("runs", "n"), [(3, 50), (3, 1000), (5, 200)])
def test_an_unchanged_model_has_lost_next_to_nothing(runs, n):
    rng = np.random.default_rng(0)
    seen = []
    for _ in range(300):
        p = rng.beta(0.4, 0.4, n)
        seen.append(surely_lost(p, p, runs, rng))
    assert min(seen) >= 0
    assert np.mean(seen) < 0.003


def test_gains_are_not_losses_and_hide_none():
    rng = np.random.default_rng(1)
    gains, mixed = [], []
    for _ in range(100):
        p, place = rng.beta(0.4, 0.4, 1000), rng.random(1000)
        gains.append(surely_lost(p, (1 + p) / 2, 3, rng))
        after = np.where(place < 0.1, p / 5, np.where(place < 0.3, (1 + p) / 2, p))
        mixed.append(surely_lost(p, after, 3, rng))
    assert max(gains) < 0.002
    assert 0.028 < np.mean(mixed) < 0.042  # the truth is .040


def test_without_noise_all_of_it_is_sure():
    rng = np.random.default_rng(2)
    p = (rng.random(500) < 0.5).astype(float)
    q = np.where(rng.random(500) < 0.06, 0.0, p)
    assert surely_lost(p, q, 3, rng) == pytest.approx(lost.lost(p, q))


def test_squared_changes_are_unbiased():
    rng = np.random.default_rng(3)
    p, q = np.full(200_000, 0.7), np.full(200_000, 0.4)
    three = np.full(200_000, 3.0)
    looks = lost.squared_change(
        rng.binomial(3, p).astype(float), three, rng.binomial(3, q).astype(float), three
    )
    assert looks.mean() == pytest.approx(0.09, abs=0.003)
    assert np.isnan(lost.squared_change(*np.array([[1.0], [1.0], [0.0], [3.0]]))).all()
