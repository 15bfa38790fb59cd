"""Drift by capability: exact check values, properties, gaps, and what is told of it."""

from __future__ import annotations

import colorsys
import csv
import html
import io
import itertools
import json
import random
import re
import time

import numpy as np
import pytest
import typer
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from rich.console import Console
from scipy import stats as scipy_stats
from typer.testing import CliRunner

from forgetmap.base.errors import InputError, WithheldError
from forgetmap.capabilities.drift import compare_scores, drift, open_scores
from forgetmap.capabilities.drift_aggregates import Question, decide
from forgetmap.capabilities.drift_result import Drift
from forgetmap.capabilities.manifest import Capability, Manifest, Metric
from forgetmap.capabilities.score import score_responses
from forgetmap.cli.drift import drift as drift_command
from forgetmap.cli.score import score
from forgetmap.samples.table import Meta, Samples
from forgetmap.stats.estimate import Estimate
from forgetmap.stats.tests import mcnemar
from forgetmap.views.html.drift import heat_map
from forgetmap.views.html.shell import read
from forgetmap.views.terminal.drift import print_drift
from places import DATA

DRAWS = 1000


def manifest(*metrics, capability="C"):
    return Manifest(
        name="test",
        groups={"CAN": "", "WILL": ""},
        capabilities=(Capability(code=capability, group="CAN", metrics=metrics),),
    )


def metric(task="t", name="m", **more):
    return Metric(task=task, scorer="a:b", metric=name, **more)


def scores(values, task="t", name="m", said=None, **more):
    """Samples of one metric; None is a value that failed."""
    return [
        {
            "task": task, "metric": name, "item": index, "item_ref": str(index), "score": value,
            "status": "ok" if value is not None else "judge_failed",
            "response": said or f"said {value}", **more,
        }
        for index, value in enumerate(values)
    ]  # fmt: skip


def compare(before, after, *metrics, **options):
    sides = (Samples.from_rows(side) for side in (before, after))
    return drift(*sides, manifest=manifest(*(metrics or (metric(),))), draws=DRAWS, **options)


def one(before, after, **kinds):
    return compare(scores(before), scores(after), metric(**kinds)).metrics[0]


BEFORE = [1.0] * 80 + [0.0] * 20
AFTER = [1.0] * 65 + [0.0] * 15 + [1.0] * 4 + [0.0] * 16


def test_exact_numbers_of_a_0_1_metric():
    cell = one(BEFORE, AFTER)
    assert (cell.n, cell.before, cell.after) == (100, 0.8, 0.69)
    assert cell.change.value == pytest.approx(-0.11)
    assert cell.relative.value == pytest.approx(0.69 / 0.8 - 1)
    assert (cell.flips.lost, cell.flips.gained) == (15, 4)
    assert (cell.test, cell.p_value) == ("mcnemar", pytest.approx(mcnemar(15, 4)))
    assert cell.change.low < -0.11 < cell.change.high < 0
    assert cell.verdict == "worse"
    assert cell.size is None


def test_an_interval_holds_its_own_point_where_all_was_lost():
    result = compare(scores([1.0] * 30 + [0.0] * 10), scores([0.0] * 40))
    for found in (result.metrics[0], result.capabilities[0], result.groups[0]):
        assert found.relative.value == -1.0
        assert found.relative.low <= -1.0 < found.relative.high < 0


values_0_1 = st.sampled_from([0.0, 0.3, 1.0])


@given(st.lists(st.tuples(values_0_1, values_0_1), min_size=5, max_size=50))
@settings(max_examples=30)
def test_no_point_lies_outside_its_interval(pairs):
    result = compare(*(scores([pair[side] for pair in pairs], said=str(side)) for side in (0, 1)))
    for row in (*result.metrics, *result.capabilities, *result.groups):
        ends = [end for found in (row.lost, row.gained) for end in (found.at_least, found.at_most)]
        for found in (row.change, row.relative, *ends):
            assert found is None or found.low <= found.value <= found.high


def test_an_interval_ends_where_the_range_does():
    """Ten answers of which seven were lost: no metric from 0 to 1 can fall by more than all."""
    cell = one([1.0] * 7 + [0.0] * 3, [0.0] * 10)
    assert cell.change.low == -1
    assert cell.change.value == pytest.approx(-0.7)


def test_a_metric_that_lost_all_holds_its_own_point():
    cell = one([1.0] * 40, [0.0] * 40)
    assert cell.change.low <= cell.change.value == -1.0 < cell.change.high < -0.8


def test_a_verdict_of_a_change_needs_an_interval_without_zero():
    found = Estimate(value=-0.1, low=-0.21, high=0.01)
    asked = Question(found, (-0.2, -0.001), (-0.2, -0.001), 0.02, 0.01, 0.01, two_sided=False)
    assert decide(asked).verdict == "undecided"
    assert decide(asked._replace(estimate=Estimate(value=-0.1, low=-0.2, high=-0.001))) == (
        "worse",
        None,
    )


# --- answers without a score ----------------------------------------------------------------------

STEADY = [1.0] * 2100 + [0.0] * 900


def steady_with(how, count):
    """Nothing changed, but `count` answers lack a score."""
    before, after = scores(STEADY, said="x"), scores(STEADY, said="y")
    if how == "failed":
        for row in after[:count]:
            row |= {"score": None, "status": "judge_failed"}
    elif how == "one-sided":
        after = after[count:]
    else:
        for row in [*before[:count], *after[:count]]:
            row |= {"score": None, "status": "invalid_gold"}
    return compare(before, after)


@pytest.mark.parametrize("how", ["failed", "one-sided"])
def test_half_of_the_answers_missing_is_never_equivalent(how):
    assert steady_with(how, 0).metrics[0].verdict == "equivalent"
    result = steady_with(how, 1500)
    (cell,) = result.metrics
    assert (cell.missing.items, cell.missing.share) == (1500, 0.5)
    assert cell.missing.low < -0.45  # all of them were right before
    for found in (cell, *result.capabilities, *result.groups):
        assert found.verdict == "undecided"
        assert "scores for the 1,500" in found.decides


def test_the_same_words_prove_nothing_of_the_answers_that_are_missing():
    before, after = scores(STEADY, said="x"), scores(STEADY, said="x")
    assert compare(before, after).metrics[0].verdict == "equivalent"
    assert compare(before, after[1500:]).metrics[0].verdict == "undecided"


def test_items_that_a_metric_was_not_asked_of_are_not_missing():
    (cell,) = steady_with("not asked", 1500).metrics
    assert (cell.missing, cell.verdict) == (None, "equivalent")


def test_a_few_missing_answers_do_no_harm():
    (cell,) = steady_with("failed", 15).metrics
    assert cell.missing.items == 15
    assert -0.02 < cell.missing.low < cell.change.low
    assert cell.verdict == "equivalent"


def test_failures_cannot_make_a_model_better():
    """Every answer that got worse failed: what is left has only gains."""
    before = [1.0] * 600 + [0.0] * 400
    after = [None] * 300 + [1.0] * 300 + [1.0] * 100 + [0.0] * 300
    (cell,) = compare(scores(before), scores(after)).metrics
    assert cell.change.low > 0
    assert (cell.verdict, cell.missing.items) == ("undecided", 300)
    assert cell.missing.low < -0.1


@pytest.mark.parametrize("left", [0, 3])
def test_a_metric_that_one_side_lacks_leaves_its_capability_open(left):
    both = scores(STEADY, said="x") + scores(STEADY, "u", said="x")
    after = scores(STEADY, said="x") + scores(STEADY, "u", said="x")[:left]
    result = compare(both, after, metric(), metric("u"))
    assert result.metrics[0].verdict == "equivalent"
    for found in (result.capabilities[0], result.groups[0]):
        assert (found.verdict, found.decides) == ("undecided", "scores of both models for u m")


def test_a_capability_that_one_side_lacks_leaves_its_group_open():
    known = Manifest(
        name="test",
        groups={"CAN": ""},
        capabilities=tuple(
            Capability(code=task, group="CAN", metrics=(metric(task),)) for task in "tu"
        ),
    )
    both = Samples.from_rows(scores(STEADY, said="x") + scores(STEADY, "u", said="x"))
    result = drift(both, Samples.from_rows(scores(STEADY, said="x")), manifest=known, draws=DRAWS)
    assert [found.verdict for found in result.capabilities] == ["equivalent"]
    assert (result.groups[0].verdict, result.groups[0].left_out) == ("undecided", ["u"])


def test_all_items_moving_alike_leave_doubt():
    before = [0.2 + 0.1 * (index % 5) for index in range(40)]
    cell = one(before, [value - 0.1 for value in before])
    assert cell.change.low < -0.1 - 0.005 < -0.1 + 0.005 < cell.change.high


def test_what_would_decide_is_told():
    cell = one([1.0] * 30 + [0.0] * 10, [1.0] * 27 + [0.0] * 3 + [1.0] * 2 + [0.0] * 8)
    assert cell.verdict == "undecided"
    assert re.fullmatch(r"about [\d,]+ items in all", cell.decides)
    assert one(BEFORE, AFTER).decides is None


# --- lost and gained apart ------------------------------------------------------------------------


def test_a_gain_does_not_hide_a_loss():
    before, after = [1.0] * 40 + [0.0] * 60, [0.0] * 30 + [1.0] * 10 + [1.0] * 30 + [0.0] * 30
    result = compare(scores(before), scores(after))
    for row in (result.metrics[0], result.capabilities[0], result.groups[0]):
        assert row.change.value == 0
        for found in (row.lost, row.gained):
            assert (found.at_least.value, found.at_most.value) == (0, pytest.approx(0.3))


@given(st.lists(st.tuples(values_0_1, values_0_1), min_size=5, max_size=50))
@settings(max_examples=20)
def test_gained_minus_lost_is_the_change(pairs):
    before, after = ([pair[side] for pair in pairs] for side in (0, 1))
    there, back = one(before, after), one(after, before)
    for end in ("at_least", "at_most"):
        lost, gained = getattr(there.lost, end), getattr(there.gained, end)
        assert gained.value - lost.value == pytest.approx(there.change.value)
        assert lost.value <= there.lost.at_most.value + 1e-12
        assert lost.value == pytest.approx(getattr(back.gained, end).value)
    falls = np.maximum(np.subtract(before, after), 0)
    assert there.lost.at_most.value == pytest.approx(falls.mean())


def test_the_gain_of_one_metric_does_not_hide_the_loss_of_another():
    fallen, risen = [1] * 50 + [0] * 50, [0] * 50 + [1] * 50
    sides = [
        scores(one, name="a") + scores(two, name="b")
        for one, two in (([1] * 100, risen), (fallen, [1] * 100))
    ]
    result = compare(*sides, metric(name="a"), metric(name="b"))
    cell = result.capabilities[0]
    assert cell.change.value == 0
    assert [one.verdict for one in result.metrics] == ["worse", "better"]
    assert cell.verdict == result.groups[0].verdict == "worse"
    for found in (cell, result.groups[0]):
        assert found.lost.at_least.value == found.lost.at_most.value == 0.25
        assert found.gained.at_least.value == found.gained.at_most.value == 0.25
        assert found.lost.at_least.low > 0.15


def test_no_page_shows_a_capability_with_a_loss_as_better():
    fallen, risen = [1] * 60 + [0] * 40, [0] * 60 + [1] * 40
    rows = [
        scores(one, name="a") + scores(two, name="b")
        for one, two in (([1] * 100, risen), (fallen, [1] * 100))
    ]
    pairs = open_scores(*map(Samples.from_rows, rows))
    known = manifest(metric(name="a"), metric(name="b"))
    result = compare_scores(pairs, manifest=known, draws=DRAWS)
    assert result.capabilities[0].change.value > 0
    page = heat_map(result, pairs)
    assert "is worse, the mean is not" in page
    assert re.search(r'class="chip worse to-worse depth-[1-5]"', page)


def test_luck_of_one_metric_is_no_sure_loss_of_its_capability():
    changes = [1] * 50 + [0] * 50, [0] * 6 + [1] * 47 + [0] * 47  # 6 fell, 3 rose
    sides = [scores(one, name="a") + scores(two, name="b") for one, two in (changes, changes[::-1])]
    cell = compare(*sides, metric(name="a"), metric(name="b")).capabilities[0]
    assert cell.lost.at_least.value == 0 < cell.lost.at_most.value


def test_lost_is_what_got_worse_by_the_direction_of_the_metric():
    up, down = one(BEFORE, AFTER), one(BEFORE, AFTER, direction="down")
    assert up.lost.at_most.value == pytest.approx(0.15)
    assert up.lost.at_least.value == pytest.approx(0.11)
    assert down.gained == up.lost
    assert one([3.0] * 20, [4.0] * 20, range=(1, 5)).lost is None


def test_lower_is_better_where_the_manifest_says_so():
    assert one(BEFORE, AFTER, direction="down").verdict == "better"
    assert one(AFTER, BEFORE, direction="down").verdict == "worse"
    result = compare(scores(BEFORE), scores(AFTER), metric(direction="down"))
    assert result.capabilities[0].relative.value == pytest.approx(1 - 0.69 / 0.8)
    assert result.capabilities[0].verdict == "better"


def test_two_sided_drift_is_a_shift_with_a_size():
    rng = np.random.default_rng(0)
    before, after = rng.gamma(4, 50, 150), rng.gamma(4, 40, 150)
    cell = one(before, after, range=(0, None), direction="two-sided")
    assert cell.verdict == "lower"
    assert cell.flips is None
    spread = np.sqrt((before.var() + after.var()) / 2)
    assert cell.size.standardised == pytest.approx((after.mean() - before.mean()) / spread)
    assert cell.size.ks == pytest.approx(scipy_stats.ks_2samp(before, after).statistic)
    assert one(after, before, range=(0, None), direction="two-sided").verdict == "higher"


def test_the_interval_agrees_with_an_independent_bootstrap():
    rng = np.random.default_rng(1)
    before = rng.gamma(2, 100, 300)
    after = before * rng.lognormal(-0.1, 0.3, 300)
    cell = one(before, after, range=(0, None), direction="two-sided")
    found = scipy_stats.bootstrap(
        (after - before,), np.mean, n_resamples=4000, method="BCa", random_state=rng
    ).confidence_interval
    width = found.high - found.low
    assert cell.change.low == pytest.approx(found.low, abs=0.1 * width)
    assert cell.change.high == pytest.approx(found.high, abs=0.1 * width)


def test_identical_answers_change_nothing_however_few():
    for n in (6, 200):
        values = [float(index % 3 > 0) for index in range(n)]
        result = compare(scores(values, said="same"), scores(values, said="same"))
        (cell,) = result.metrics
        assert cell.change.value == cell.change.low == cell.change.high == 0
        assert (cell.flips.lost, cell.flips.gained, cell.interval) == (0, 0, "same answers")
        assert cell.verdict == result.capabilities[0].verdict == "equivalent"
        assert result.groups[0].verdict == "equivalent"
        assert result.capabilities[0].relative.value == 0


def test_equal_scores_of_other_answers_are_not_proof_with_few_items():
    cell = one([1.0] * 20, [1.0] * 20)
    same = compare(scores([1.0] * 20, said="x"), scores([1.0] * 20, said="y")).metrics[0]
    assert cell.verdict == "equivalent"  # the same words
    assert same.verdict == "undecided"
    assert same.change.low < 0 < same.change.high


@pytest.mark.parametrize("base", [0.0, 3.0])
def test_an_open_range_where_nothing_moved(base):
    """Without the same words there is doubt, and a share of nothing is no margin."""
    values = [base * (1 + 9 * (index % 2)) for index in range(40)]
    kind = metric(range=(0, None), direction="two-sided")
    other = compare(scores(values, said="x"), scores(values, said="y"), kind).metrics[0]
    assert (other.verdict, other.change.value, other.flips) == ("undecided", 0, None)
    same = compare(scores(values, said="x"), scores(values, said="x"), kind).metrics[0]
    assert same.verdict == "equivalent"


@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([0.0, 0.5, 1.0])),
        min_size=5,
        max_size=60,
    )
)
@settings(max_examples=20)
def test_swapping_the_sides_negates_the_change(pairs):
    before, after = ([pair[side] for pair in pairs] for side in (0, 1))
    there, back = one(before, after), one(after, before)
    assert there.change.value == -back.change.value
    assume(before != after)
    assert there.change.low == pytest.approx(-back.change.high, abs=1e-9)
    assert there.change.high == pytest.approx(-back.change.low, abs=1e-9)
    assert there.p_value == pytest.approx(back.p_value)
    assert there.mde == back.mde
    mirrored = {"worse": "better", "better": "worse"}
    assert there.verdict == mirrored.get(back.verdict, back.verdict)


def test_the_order_of_rows_is_irrelevant():
    rows = [scores(side, said=word) + scores(side[::-1], "u", said=word)
            for side, word in ((BEFORE, "a"), (AFTER, "b"))]  # fmt: skip
    metrics = metric(), metric("u", role="deep-dive")
    first = compare(*rows, *metrics)
    for seed in (1, 2):
        shuffled = [random.Random(seed).sample(side, len(side)) for side in rows]
        assert compare(*shuffled, *metrics) == first


def test_the_same_seed_gives_the_same_result():
    rng = np.random.default_rng(0)
    shares = rng.random((2, 100))
    first, again, *others = (
        compare(*map(scores, shares), seed=seed).metrics[0] for seed in (0, 0, 1, 2, 3)
    )
    assert first == again
    assert {other.change for other in others} == {first.change}
    assert len({other.p_value for other in others}) > 1  # the test of uneven changes draws


@pytest.mark.parametrize("missing", ["before", "after"])
def test_a_task_missing_on_one_side_is_a_gap_never_minus_100_percent(missing):
    both = scores(BEFORE) + scores(BEFORE, "u")
    sides = {"before": both, "after": both, missing: scores(BEFORE)}
    result = compare(sides["before"], sides["after"], metric(), metric("u"), metric("v"))
    assert [cell.task for cell in result.metrics] == ["t"]
    other = "after" if missing == "before" else "before"
    assert {gap.task: gap.reason for gap in result.gaps} == {
        "u": f"only scored {other}",
        "v": "scored on neither side",
    }
    (capability,) = result.capabilities
    assert capability.parts == ["t m"]
    assert capability.left_out == ["u m", "v m"]
    assert capability.relative.value == 0


def test_failed_values_are_left_out_and_counted():
    before, after = list(BEFORE), list(AFTER)
    before[0] = after[1] = after[2] = None
    cell = one(before, after)
    assert (cell.n, cell.unscored) == (97, 3)
    assert cell.failures_before == pytest.approx(0.01)
    assert cell.failures_after == pytest.approx(0.02)
    assert cell.before == pytest.approx(77 / 97)


def test_extraction_failures_stand_beside_the_change():
    after = scores(AFTER)
    for row in after[80:90]:
        row |= {"score": 0.0, "status": "no_answer"}
    cell = compare(scores(BEFORE), after).metrics[0]
    assert (cell.n, cell.failures_before, cell.failures_after) == (100, 0.0, 0.1)


def test_items_that_only_one_side_has_are_counted():
    cell = compare(scores(BEFORE), scores(AFTER[:90])).metrics[0]
    assert (cell.n, cell.only_before, cell.only_after) == (90, 10, 0)


def test_too_few_items_are_a_gap():
    with pytest.raises(WithheldError, match="has 5 items with scores on both sides"):
        compare(scores([1.0] * 4), scores([0.0] * 4))


def test_runs_are_repeats_within_an_item():
    """Five identical runs of each item tell no more about other items than one run does."""
    repeated = [scores(side) * 5 for side in (BEFORE, AFTER)]
    for side in repeated:
        for number, row in enumerate(side):
            side[number] = row | {"repeat": number // 100}
    once, often = one(BEFORE, AFTER), compare(*repeated).metrics[0]
    assert (often.n, often.runs_before, often.test) == (100, 5, "sign-flip")
    assert often.change.value == once.change.value
    assert often.p_value == pytest.approx(once.p_value)
    width = once.change.high - once.change.low
    assert often.change.high - often.change.low == pytest.approx(width, rel=0.1)


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ([0.0] * 100, [0.0] * 100, "rest on 0 items above zero"),
        ([1.0] * 4 + [0.0] * 46, [0.0] * 46 + [1.0] * 4, "rest on 8 items above zero"),
        ([0.0] * 60, [1.0] * 40 + [0.0] * 20, "before is not clear of zero"),
        ([-1.0, 2.0] * 40, [1.0, 2.0] * 40, "below zero have no relative change"),
    ],
)
def test_relative_change_is_withheld_where_a_ratio_would_mislead(before, after, reason):
    """M3: from nothing to something is no percentage at all. The change is always there."""
    kind = metric(range=(-1, 2)) if min(before) < 0 else metric()
    result = compare(scores(before, said="x"), scores(after, said="y"), kind)
    (cell,) = result.metrics
    assert cell.relative is None
    assert reason in cell.withheld
    for aggregate in (*result.capabilities, *result.groups):
        assert aggregate.relative is None
        assert aggregate.left_out
        assert aggregate.change.value == pytest.approx(cell.change.value / (kind.width or 1))
    assert result.capabilities[0].left_out == ["t m"]


def test_what_is_withheld_is_decided_by_both_sides_alike():
    """A base that came out high by chance must not pass where one that came out low does not."""
    high, low = [1.0] * 28 + [0.0] * 372, [0.0] * 382 + [1.0] * 18
    there = compare(scores(high, said="x"), scores(low, said="y")).metrics[0]
    back = compare(scores(low, said="y"), scores(high, said="x")).metrics[0]
    assert there.relative is not None
    assert back.relative is not None
    assert there.p_value == back.p_value


def test_an_aggregate_without_any_ratio_has_a_change_and_a_verdict():
    before, after = [1.0] * 22 + [0.0] * 10, [0.0] * 32
    result = compare(scores(before, said="x"), scores(after, said="y"))
    for found in (result.capabilities[0], result.groups[0]):
        assert found.relative is None
        assert found.change.value == pytest.approx(-22 / 32)
        assert found.verdict == "worse"


def test_captracks_formula_from_the_same_means():
    """Mean of ratios and population deviation, as in the published table."""
    before = [*scores(BEFORE), *scores([1.0] * 50 + [0.0] * 50, "u")]
    after = [*scores(AFTER), *scores([1.0] * 60 + [0.0] * 40, "u")]
    result = compare(before, after, metric(), metric("u"))
    ratios = [0.69 / 0.8 - 1, 0.6 / 0.5 - 1]
    (capability,) = result.capabilities
    assert capability.relative.value == pytest.approx(np.mean(ratios))
    assert capability.spread == pytest.approx(np.std(ratios))
    assert capability.leave_one_out.low == pytest.approx(ratios[0])
    assert capability.leave_one_out.high == pytest.approx(ratios[1])
    assert capability.worst == "t m"
    (group,) = result.groups
    assert group.relative.value == pytest.approx(np.mean(ratios))
    assert group.spread == pytest.approx(np.std(ratios))


def test_metrics_of_one_task_share_their_noise():
    """Two copies of one metric are no more sure together than one alone."""
    rows = [scores(side) + scores(side, name="copy") for side in (BEFORE, AFTER)]
    twice = compare(*rows, metric(), metric(name="copy")).capabilities[0].relative
    rows = [scores(side) + scores(side, "u") for side in (BEFORE, AFTER)]
    apart = compare(*rows, metric(), metric("u")).capabilities[0].relative
    single = compare(scores(BEFORE), scores(AFTER)).capabilities[0].relative
    assert twice.high - twice.low == pytest.approx(single.high - single.low, rel=0.1)
    assert apart.high - apart.low < 0.85 * (single.high - single.low)


def test_the_margin_decides_what_is_equivalent():
    before = [1.0] * 1400 + [0.0] * 600
    after = [1.0] * 1370 + [0.0] * 30 + [1.0] * 20 + [0.0] * 580
    assert one(before, after).verdict == "equivalent"
    assert one(before, after, margin=0.001).verdict == "undecided"
    scaled = compare(
        scores([10 * value for value in before]), scores([10 * value for value in after]),
        metric(range=(0, 10)),
    ).metrics[0]  # fmt: skip
    assert (scaled.margin, scaled.verdict) == (pytest.approx(0.2), "equivalent")


def test_many_primary_metrics_raise_the_bar():
    rows = [scores(BEFORE), scores(AFTER)]
    quiet = [row for number in range(9) for row in scores(BEFORE, f"quiet {number}", said="x")]
    metrics = [metric(), *(metric(f"quiet {number}") for number in range(9))]
    alone = compare(*rows).metrics[0]
    among = compare(*(side + quiet for side in rows), *metrics).metrics[0]
    assert among.p_value == alone.p_value
    assert among.p_adjusted == pytest.approx(10 * alone.p_value)
    assert (alone.verdict, among.verdict) == ("worse", "undecided")


def test_settings_that_differ_are_confounds():
    sides = [
        Samples.from_rows(
            scores(BEFORE, model=name),
            Meta(harness="forgetmap score", settings={name: {"scorers": {"t": version}}}),
        )
        for name, version in (("a", "choice 1"), ("b", "choice 2"))
    ]
    (found,) = drift(*sides, manifest=manifest(metric()), draws=DRAWS).confounds
    assert (found.setting, found.before, found.after) == ("scorers", "choice 1", "choice 2")


def test_answers_must_be_scored_first():
    unscored = Samples.from_rows([{"task": "t", "metric": "m", "item": 1, "score": None}])
    with pytest.raises(InputError, match="holds no scores; make them with `forgetmap score`"):
        drift(unscored, unscored, manifest=manifest(metric()))


@pytest.mark.parametrize("options", [{"margin": 0.0}, {"margin": 1.5}, {"draws": 5}, {"seed": -1}])
def test_options_out_of_range(options):
    with pytest.raises(InputError):
        drift(Samples.from_rows(scores(BEFORE)), Samples.from_rows(scores(AFTER)),
              manifest=manifest(metric()), **options)  # fmt: skip


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """The example's scores."""
    folder = tmp_path_factory.mktemp("scores")
    for name in ("before", "after"):
        score_responses(DATA / "captrack" / name, folder / f"{name}.parquet")
    return folder / "before.parquet", folder / "after.parquet"


def test_the_example_shows_what_was_built_into_it(example):
    result = drift(*example, draws=DRAWS)
    verdicts = {cell.name: cell.verdict for cell in result.metrics}
    assert verdicts["gsm8k.rephrased accuracy"] == "worse"
    assert verdicts["gsm8k.rephrased agreement"] == "worse"
    assert verdicts["mtbench.turn1 words"] == "lower"
    assert verdicts["boolq.core accuracy"] == "undecided"
    by_code = {capability.code: capability for capability in result.capabilities}
    assert by_code["C5a"].verdict == "worse"
    assert by_code["W3a"].verdict == "lower"
    assert result.headline().startswith("12 primary metrics: 2 worse")
    assert {gap.reason for gap in result.gaps} >= {"scored on neither side"}


def test_json_round_trip_and_version_guard(example):
    result = drift(*example, draws=DRAWS)
    assert Drift.from_json(result.to_json()) == result
    newer = json.loads(result.to_json()) | {"schema_version": 99}
    with pytest.raises(InputError, match="upgrade forgetmap"):
        Drift.from_json(json.dumps(newer))
    for text in ("{", "[]", '{"schema_version": 1}'):
        with pytest.raises(InputError, match="not a forgetmap drift"):
            Drift.from_json(text)


def test_the_csv_is_tidy_and_safe(example):
    result = drift(*example, draws=DRAWS)
    rows = list(csv.DictReader(io.StringIO(result.to_csv())))
    assert {row["level"] for row in rows} == {"group", "capability", "metric", "gap"}
    cell = next(row for row in rows if row["task"] == "boolq.core" and row["level"] == "metric")
    assert float(cell["change"]) == pytest.approx(2 / 60)
    hostile = compare(scores(BEFORE, "=cmd()"), scores(AFTER, "=cmd()"), metric("=cmd()"))
    assert "'=cmd()" in hostile.to_csv()


EVIL = "<script>window.pwned=1</script>\"'><img src=x onerror=alert(1)>\x1b[31m\u202e{{7*7}}"


def hostile_page():
    rows = [
        scores(
            side, EVIL, EVIL, said=EVIL * reps, prompt=EVIL, target=EVIL, answer=EVIL, model=EVIL
        )
        for side, reps in ((BEFORE, 1), (AFTER, 2))
    ]
    for side in rows:
        for row in side:
            row["item_ref"] = EVIL
    pairs = open_scores(*(Samples.from_rows(side) for side in rows))
    known = Manifest(
        name=EVIL,
        groups={EVIL: EVIL},
        capabilities=(Capability(code=EVIL, name=EVIL, group=EVIL, metrics=(metric(EVIL, EVIL),)),),
    )
    return heat_map(compare_scores(pairs, manifest=known, draws=DRAWS), pairs)


def test_hostile_text_is_text_in_the_heat_map():
    page = hostile_page()
    assert page.count("<script") == 2  # ours: the page's, and what it draws
    assert "<img" not in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert page.count("&lt;script&gt;") > 10
    assert "default-src 'none'; script-src 'sha256-" in page


def test_the_heat_map_shows_both_directions_and_the_items(example):
    pairs = open_scores(*example)
    result = drift(*example, draws=DRAWS)
    page = heat_map(result, pairs)
    assert 'class="chip worse to-worse depth-5"' in page
    assert 'class="chip lower to-lower depth-5"' in page
    assert "to-better depth-" in page
    found = pairs.changed({("gsm8k.rephrased", "accuracy"): 1})["gsm8k.rephrased", "accuracy"]
    assert [item.after.value - item.before.value for item in found] == [-1] * 15 + [1] * 5
    for item in found:
        assert item.item.ref in page
    assert len(page) < 2_000_000


def printed(result):
    out = io.StringIO()
    print_drift(result, Console(file=out, width=100, highlight=False))
    return " ".join(out.getvalue().split())


def shown(before, after):
    """The page, without its tags."""
    pairs = open_scores(Samples.from_rows(before), Samples.from_rows(after))
    result = compare_scores(pairs, manifest=manifest(metric()), draws=DRAWS)
    return result, " ".join(html.unescape(re.sub(r"<[^>]+>", " ", heat_map(result, pairs))).split())


def test_lost_and_gained_are_on_screen_and_page():
    before, after = [1.0] * 40 + [0.0] * 60, [0.0] * 30 + [1.0] * 10 + [1.0] * 30 + [0.0] * 30
    result, page = shown(scores(before), scores(after))
    assert "0-30/0-30" in printed(result)
    assert "Lost 0.0–30.0 %, gained 0.0–30.0 %" in page
    assert re.search(r"lost 0\.0 % \(0\.0 % to [\d.]+ %\) at least, 30\.0 % \(.*?\) at most", page)
    rows = list(csv.DictReader(io.StringIO(result.to_csv())))
    assert {row["lost_at_most"] for row in rows} == {"0.3"}


def test_missing_answers_are_on_screen_and_page():
    after = scores(STEADY, said="y")
    for row in after[:1500]:
        row |= {"score": None, "status": "judge_failed"}
    result, page = shown(scores(STEADY, said="x"), after)
    text = printed(result)
    assert "1 can't tell" in text
    assert "can't tell: t m; scores for the 1,500 of 3,000 items that lack one would" in text
    assert "most missing: t m, 1,500 items (50.0 %); at worst its change lies between -50." in text
    assert "answers without a valid value: t m 0.0 % -> 50.0 %" in text
    assert "can't tell" in page
    assert "what would decide scores for the 1,500 of 3,000 items that lack one" in page
    assert "without a score 1,500 items (50.0 %); at worst the change lies between -0.5" in page


def test_an_aggregate_without_a_ratio_shows_its_change_in_points():
    before, after = [1.0] * 22 + [0.0] * 10, [0.0] * 32
    result, page = shown(scores(before, said="x"), scores(after, said="y"))
    assert "-68.8 pt (" in printed(result)
    assert "−68.8 pt (" in page


def test_losses_of_a_metric_that_should_fall_are_rises():
    pairs = open_scores(*(Samples.from_rows(scores(side)) for side in (BEFORE, AFTER)))
    (items,) = pairs.changed({("t", "m"): -1}, losses=2, gains=1).values()
    assert [item.after.value - item.before.value for item in items] == [1, 1, -1]


def luminance(red, green, blue):
    linear = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (red, green, blue)
    )
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_the_text_on_every_colour_can_be_read():
    """At least 4.5 to 1, as WCAG asks of small text."""
    style = read("page.css")
    hues = re.findall(r"\.to-\w+ {\s+--hue: (\d+) (\d+)%;", style)
    depths = re.findall(r"\.depth-\d {\s+--light: (\d+)%;\s+--dark: (\d+)%;", style)
    assert "color: light-dark(#1b1d21, #ffffff);" in style
    assert (len(hues), len(depths)) == (4, 5)
    inks = luminance(0.11, 0.11, 0.13), 1.0
    for (hue, saturation), lightness in itertools.product(hues, depths):
        for ink, share in zip(inks, lightness, strict=True):
            rgb = colorsys.hls_to_rgb(int(hue) / 360, int(share) / 100, int(saturation) / 100)
            dark, light = sorted([luminance(*rgb), ink])
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (hue, share)


def test_the_heat_map_in_a_real_browser(example, tmp_path):
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    import shutil

    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("needs chromium")
    (tmp_path / "evil.html").write_text(hostile_page(), encoding="utf-8")
    good = heat_map(drift(*example, draws=DRAWS), open_scores(*example))
    (tmp_path / "good.html").write_text(good, encoding="utf-8")
    with playwright.sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 400, "height": 800})
        said: list[str] = []
        asked: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.on("request", lambda request: asked.append(request.url))
        page.goto((tmp_path / "evil.html").as_uri())
        assert page.evaluate("window.pwned") is None
        page.goto((tmp_path / "good.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        page.click("a.chip >> nth=4")
        assert page.locator("details[open] details").count() > 0
        browser.close()
    assert said == []
    assert all(
        url.startswith("file:") and url.endswith(("evil.html", "good.html")) for url in asked
    )


def app():
    commands = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
    for command in (score, drift_command):
        commands.command()(command)
    return commands


def test_the_command_writes_everything(example, tmp_path):
    outputs = {name: tmp_path / f"drift.{name}" for name in ("json", "csv", "report")}
    flags = [part for name, path in outputs.items() for part in (f"--{name}", str(path))]
    done = CliRunner().invoke(
        app(), ["drift", *map(str, example), "--draws", "1000", "--seed", "3", *flags]
    )
    assert done.exit_code == 0, done.output
    assert all(path.stat().st_size > 1000 for path in outputs.values())
    assert "C5a gsm8k.rephrased agreement" in done.output
    assert max(len(line) for line in done.output.splitlines()) <= 100
    again = CliRunner().invoke(
        app(), ["drift", *map(str, example), "--draws", "1000", "--json", "-"]
    )
    assert json.loads(again.stdout)["before"] == "before"


def test_the_command_prints_captracks_own_table(tmp_path):
    from test_captrack_compat import result_file

    base, tuned = result_file(tmp_path, "base"), result_file(tmp_path, "tuned", **{"C1 b": 0.4})
    out = tmp_path / "relative_differences.csv"
    command = ["drift", str(base), str(tuned), "--compat", "captrack", "--csv", str(out)]
    done = CliRunner().invoke(app(), command)
    assert done.exit_code == 0, done.output
    assert "C1 Knowledge" in done.output
    assert (tmp_path / "relative_differences_std.csv").exists()
    wrong = CliRunner().invoke(app(), [*command[:4], "other"])
    assert (wrong.exit_code, len(wrong.output.strip().splitlines())) == (2, 1)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["nowhere.parquet", "nowhere.parquet"], 2), (["--margin", "2"], 2), (["--manifest", "x"], 2)],
)
def test_bad_input_is_one_line(example, arguments, code):
    paths = [] if len(arguments) == 2 and arguments[0].endswith("parquet") else map(str, example)
    done = CliRunner().invoke(app(), ["drift", *paths, *arguments])
    assert done.exit_code == code
    assert len(done.output.strip().splitlines()) == 1


def test_hostile_names_reach_no_terminal(tmp_path):
    for name, side in (("b", BEFORE), ("a", AFTER)):
        rows = scores(side, "boolq.core", "accuracy", said=EVIL, model="m\x1b[2J\u202e")
        Samples.from_rows(rows).write(tmp_path / f"{name}.parquet")
    paths = [str(tmp_path / "b.parquet"), str(tmp_path / "a.parquet")]
    done = CliRunner().invoke(app(), ["drift", *paths, "--draws", "200"])
    assert done.exit_code == 0, done.output
    assert "\x1b" not in done.output
    assert "\u202e" not in done.output


@pytest.mark.slow
def test_20_000_items_and_10_000_draws_in_under_30_seconds(tmp_path):
    rng = np.random.default_rng(0)
    tasks = [f"t{number}" for number in range(20)]
    metrics = [
        entry
        for task in tasks
        for entry in (metric(task, "right"), metric(task, "share"),
                      metric(task, "words", range=(0, None), role="deep-dive"))
    ]  # fmt: skip
    paths = []
    for side in ("before", "after"):
        rows = []
        for task in tasks:
            rows += scores((rng.random(1000) < 0.6).astype(float), task, "right", said=side)
            rows += scores(rng.random(1000), task, "share", said=side)
            rows += scores(rng.poisson(100, 1000).astype(float), task, "words", said=side)
        paths.append(tmp_path / f"{side}.parquet")
        Samples.from_rows(rows).write(paths[-1])
    start = time.process_time()
    result = drift(*paths, manifest=manifest(*metrics), draws=10_000)
    assert time.process_time() - start < 30
    assert len(result.metrics) == 60


# --- what was compared ----------------------------------------------------------------------------


def test_every_item_is_accounted_for():
    before, after = scores([1.0] * 30), scores([1.0] * 30)
    after[0]["item"] = 1000  # the same id, other content
    after[1] |= {"item": 1001, "item_ref": "new"}
    after[2]["score"] = None
    before.append(before[3] | {"score": 0.5})
    result = compare(before, after)
    coverage = result.coverage
    assert (coverage.items_before, coverage.items_after, coverage.matched) == (30, 30, 27)
    assert (coverage.conflicts, coverage.only_before, coverage.only_after) == (1, 1, 1)
    assert (coverage.unscored, coverage.duplicates, coverage.identity) == (1, 1, "content")
    assert "same id, different content, not paired: t#0" in result.warnings
    both = coverage.matched + coverage.unscored
    assert coverage.items_before == both + coverage.only_before + coverage.conflicts


def test_a_task_without_content_on_one_side_is_paired_by_id():
    before, after = scores([1.0] * 30), scores([0.0] * 30)
    for row in after:
        row["item"] = None
    result = compare(before, after)
    assert result.coverage.identity == "index"
    assert result.metrics[0].n == 30


def test_results_of_earlier_versions_lack_the_newer_fields():
    result = compare(scores(BEFORE), scores(AFTER))
    stored = json.loads(result.model_dump_json())
    for row in (*stored["groups"], *stored["capabilities"], *stored["metrics"]):
        for name in ("lost", "gained", "missing", "decides"):
            del row[name]
    for row in (*stored["groups"], *stored["capabilities"]):
        del row["change"]
    stored["metrics"][0]["interval"] = "bootstrap"
    old = Drift.from_json(json.dumps(stored))
    assert (old.metrics[0].lost, old.groups[0].change, old.groups[0].missing) == (None, None, 0)
    assert old.schema_version == result.schema_version == 1
    assert old.to_csv().count("\n") == result.to_csv().count("\n")


def test_results_of_earlier_versions_have_no_coverage():
    stored = json.loads(compare(scores(BEFORE), scores(AFTER)).model_dump_json())
    del stored["coverage"]
    assert Drift.from_json(json.dumps(stored)).coverage is None
