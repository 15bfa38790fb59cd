"""Simulated models with a known change: do the intervals cover it, how often is the alarm false?"""

from __future__ import annotations

import numpy as np
import pytest

from forgetmap.capabilities.drift import drift
from forgetmap.capabilities.manifest import Capability, Manifest, Metric
from forgetmap.samples.table import Samples

PARTS = 4
"""Metrics of a capability, to see the aggregates too."""


def right_or_wrong(rng, n, before=0.7, after=0.6):
    """Paired 0/1 outcomes: the model after differs where a shared draw of difficulty says so."""
    ease = rng.random(n)
    fresh = rng.random((2, n)) < 0.3  # some items are a matter of luck for each model
    draws = np.where(fresh, rng.random((2, n)), ease)
    return (draws[0] < before).astype(float), (draws[1] < after).astype(float), before, after


def shares(rng, n, before=0.5, after=0.45):
    level = rng.beta(2, 2, n)
    noise = rng.beta(2, 2, (2, n))
    ours, theirs = (level + noise[0]) / 2, (level + noise[1]) / 2 * (after / before)
    return ours, theirs, before, after


def lengths(rng, n):
    skewed = np.exp(rng.normal(5, 0.6, n))
    before, after = skewed * rng.lognormal(0, 0.2, n), 0.9 * skewed * rng.lognormal(0, 0.2, n)
    mean = float(np.exp(5 + 0.18 + 0.02))
    return before, after, mean, 0.9 * mean


def simulate(draw, n, metrics, *, range_=(0.0, 1.0), seed=0):
    """Compare two simulated models on many metrics at once; returns the result and the truth."""
    rng = np.random.default_rng(seed)
    tasks = [f"task {number}" for number in range(metrics)]
    sides: tuple[list, list] = ([], [])
    truth = ()
    for task in tasks:
        before, after, *truth = draw(rng, n)
        for side, values in zip(sides, (before, after), strict=True):
            side += [
                {"task": task, "metric": "m", "item": item, "score": float(value)}
                for item, value in enumerate(values)
            ]
    manifest = Manifest(
        name="simulated",
        groups={"CAN": ""},
        capabilities=tuple(
            Capability(
                code=f"C{start}",
                group="CAN",
                metrics=tuple(
                    Metric(task=task, scorer="a:b", metric="m", range=range_)
                    for task in tasks[start : start + PARTS]
                ),
            )
            for start in range(0, metrics, PARTS)
        ),
    )
    samples = (Samples.from_rows(side) for side in sides)
    return drift(*samples, manifest=manifest, draws=2000), truth


def covers(estimates, truth):
    return float(np.mean([found.low <= truth <= found.high for found in estimates]))


def coverage(result, truth):
    before, after = truth
    return {
        "change": covers([cell.change for cell in result.metrics], after - before),
        "relative": covers([cell.relative for cell in result.metrics], after / before - 1),
        "aggregate": covers([cell.relative for cell in result.capabilities], after / before - 1),
    }


def test_intervals_cover_a_known_change():
    result, truth = simulate(right_or_wrong, 200, 400)
    found = coverage(result, truth)
    assert 0.925 <= found["change"] <= 0.975  # 400 trials: one standard error is 0.011
    assert 0.925 <= found["relative"] <= 0.975
    assert 0.90 <= found["aggregate"] <= 1.0  # 100 trials


def test_no_more_false_alarms_than_promised():
    result, _ = simulate(lambda rng, n: right_or_wrong(rng, n, 0.7, 0.7), 200, 400, seed=1)
    assert np.mean([cell.p_value < 0.05 for cell in result.metrics]) <= 0.05 + 3 * 0.011
    assert sum(cell.verdict in ("worse", "better") for cell in result.metrics) <= 1  # Holm
    assert sum(cell.verdict in ("worse", "better") for cell in result.capabilities) <= 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draw", "n", "metrics", "range_"),
    [
        pytest.param(right_or_wrong, 60, 2000, (0.0, 1.0), id="few items"),
        pytest.param(right_or_wrong, 500, 1000, (0.0, 1.0), id="many items"),
        pytest.param(shares, 200, 2000, (0.0, 1.0), id="shares"),
        pytest.param(lengths, 100, 2000, (0.0, None), id="lengths"),
        pytest.param(lengths, 500, 1000, (0.0, None), id="many lengths"),
    ],
)
def test_coverage_is_close_to_nominal(draw, n, metrics, range_):
    result, truth = simulate(draw, n, metrics, range_=range_)
    found = coverage(result, truth)
    print(draw.__name__, n, found)
    assert 0.93 <= found["change"] <= 0.97
    assert 0.93 <= found["relative"] <= 0.97
    assert 0.92 <= found["aggregate"] <= 0.98  # 250 or 500 trials
