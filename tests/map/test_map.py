"""The map as a whole: what must hold between two logs, and the JSON contract."""

from __future__ import annotations

import csv
import io
import json
import random

import pytest

from forgetmap.api import compare
from forgetmap.base.errors import InputError
from forgetmap.gate.judgement import check_gate
from forgetmap.map.result import ESTIMATORS, Cell, ForgettingMap
from forgetmap.map.task_maps import TaskMap
from forgetmap.samples.table import Samples
from forgetmap.views.tables import maps as tables
from small_logs import random_scores, samples, shuffled

FAST = {"draws": 1000}


def without_randomness(cell: Cell):
    """Point values of a cell; intervals depend on the draws."""
    sides = [cell.forgetting, cell.backward_transfer]
    values = [side.get(name) for side in sides for name in ESTIMATORS]
    return [found and found.value for found in values], cell.counts, cell.p_value, cell.mde


def repeated(seed, items=150, repeats=3, shift=0.0):
    rng = random.Random(seed)
    chances = [random.Random(i).choice([0, 0.2, 0.5, 0.9, 1]) for i in range(items)]
    return {"t": [[float(rng.random() < p - shift) for _ in range(repeats)] for p in chances]}


@pytest.fixture(scope="module")
def example() -> ForgettingMap:
    before = samples(random_scores(1, items=200, right=0.7), gold_probability=0.6)
    after = samples(random_scores(2, items=200, right=0.5), gold_probability=0.4)
    groups = TaskMap("test", {"task0": ("A", None), "task1": ("A", None), "task2": ("B", None)})
    return compare(before, after, task_map=groups, **FAST)


def test_identical_runs_have_no_flips_and_are_equivalent():
    log = samples(random_scores(1, tasks=4, items=250), gold_probability=0.7)
    result = compare(log, shuffled(log), **FAST)
    assert result.total.counts.n10 == result.total.counts.n01 == 0
    assert result.total.verdict.net == "equivalent"
    assert result.total.verdict.forgetting == "kept"
    assert result.total.p_value == 1
    assert result.total.forgot.value == 0


def test_a_handful_of_identical_items_proves_nothing():
    log = samples({"t": [1, 0, 1, 1, 0]}, gold_probability=0.5)
    verdict = compare(log, log, **FAST).total.verdict
    assert (verdict.net, verdict.forgetting) == ("undecided", "undecided")


def test_the_same_model_resampled_has_no_excess():
    result = compare(samples(repeated(1, 600)), samples(repeated(2, 600)), draws=2000)
    excess = result.total.forgetting.excess
    assert result.settings.headline == "excess"
    assert excess.low < 0 < excess.high
    assert result.total.forgetting.raw.value > 0.05
    assert result.total.noise_floor == pytest.approx(result.total.forgetting.raw.value, abs=0.02)


def test_swapping_the_sides_swaps_forgetting_and_transfer():
    before, after = samples(repeated(1)), samples(repeated(2, shift=0.2))
    one, other = compare(before, after, **FAST).total, compare(after, before, **FAST).total
    for name in ESTIMATORS:
        ours, theirs = one.forgetting.get(name), other.backward_transfer.get(name)
        assert (ours and ours.value) == pytest.approx(theirs and theirs.value)
    assert one.p_value == pytest.approx(other.p_value)
    assert one.change.value == pytest.approx(-other.change.value)
    assert one.noise_floor == pytest.approx(other.noise_floor)


def test_the_order_of_rows_changes_nothing():
    before = samples(repeated(1), gold_probability=0.61)
    after = samples(repeated(2), gold_probability=0.52)
    one = compare(before, after, **FAST)
    other = compare(shuffled(before, 3), shuffled(after, 4), **FAST)
    assert one.total == other.total
    assert one.tasks == other.tasks


def test_the_seed_fixes_the_result(example):
    before, after = samples(random_scores(1)), samples(random_scores(2))
    one, same = compare(before, after, seed=5, **FAST), compare(before, after, seed=5, **FAST)
    other = compare(before, after, seed=6, **FAST)
    assert one == same
    assert one.total.forgot != other.total.forgot
    assert without_randomness(one.total) == without_randomness(other.total)


def test_totals_by_items_and_by_categories(example):
    groups = example.categories
    assert set(groups) == {"A", "B"}
    assert groups["A"].n == 400
    mean = (groups["A"].forgetting.raw.value + groups["B"].forgetting.raw.value) / 2
    assert example.macro.forgetting.raw.value == pytest.approx(mean)
    pooled = sum(cell.counts.n10 for cell in example.tasks.values()) / 600
    assert example.total.forgetting.raw.value == pytest.approx(pooled)
    assert example.macro.forgetting.soft.value == pytest.approx(0.12)


def test_adjusted_p_values_are_never_smaller(example):
    for cells in (example.tasks, example.categories):
        assert all(cell.p_adjusted >= cell.p_value for cell in cells.values())


def test_a_clear_loss_is_called_worse_and_forgotten(example):
    assert example.total.verdict.net == "worse"
    assert example.total.verdict.forgetting == "forgot"
    better = compare(
        samples(random_scores(2, right=0.3)), samples(random_scores(1, right=0.8)), **FAST
    )
    assert better.total.verdict.net == "better"


def test_loss_and_gain_do_not_average_out():
    before = samples({"t": [1.0] * 200 + [0.0] * 200 + [1.0] * 400})
    after = samples({"t": [0.0] * 200 + [1.0] * 200 + [1.0] * 400})
    result = compare(before, after, margin=0.1, **FAST).total
    assert result.verdict.net == "equivalent"
    assert result.verdict.forgetting == "forgot"


def test_headline_follows_the_evidence():
    single = samples(random_scores(1)), samples(random_scores(2))
    assert compare(*single, **FAST).settings.headline == "raw"
    soft = [samples(random_scores(seed), gold_probability=0.5) for seed in (1, 2)]
    assert compare(*soft, **FAST).settings.headline == "soft"
    assert compare(samples(repeated(1)), samples(repeated(2)), **FAST).settings.headline == "excess"
    one_sided = compare(samples(repeated(1)), samples(repeated(2, repeats=1)), **FAST)
    assert one_sided.settings.headline == "raw"
    assert one_sided.total.forgetting.excess is None


def test_latent_is_withheld_for_single_runs_and_bounds_take_its_place(example):
    assert example.total.forgetting.latent is None
    low, high = example.total.forgetting.guessing_bounds
    assert 0 <= low < high
    with_repeats = compare(samples(repeated(1)), samples(repeated(2)), **FAST).total
    assert with_repeats.forgetting.latent is not None
    assert 0 <= with_repeats.persistence <= 1


def test_influence_names_the_task_that_carries_the_group():
    before = {"calm": [1.0] * 300, "wild": [1.0] * 300}
    after = {"calm": [1.0] * 300, "wild": [0.0] * 300}
    influence = compare(samples(before), samples(after), **FAST).total.influence
    assert influence.task in ("wild", "calm")
    assert abs(influence.change) == pytest.approx(0.5)


def test_two_clusters_are_few_but_no_reason_to_fail():
    scores = {side: random_scores(seed, 1, 300, 0.6)["task0"] for seed, side in enumerate("ba")}
    before, after = (
        Samples.from_rows(
            {"task": "t", "item": number, "score": score, "cluster": str(number % 2)}
            for number, score in enumerate(scores[side])
        )
        for side in "ba"
    )
    cell = compare(before, after, **FAST).total
    assert cell.interval == "cluster bootstrap"
    assert cell.change.low <= cell.change.value <= cell.change.high


def test_clusters_widen_the_interval():
    rng = random.Random(0)
    before, after = [], []
    for cluster in range(60):
        lost = rng.random() < 0.2
        for item in range(8):
            row = {"task": "t", "item": cluster * 100 + item, "cluster": str(cluster)}
            before.append({**row, "score": 1.0})
            after.append({**row, "score": float(not lost)})
    clustered = compare(Samples.from_rows(before), Samples.from_rows(after), **FAST).total
    plain = compare(
        Samples.from_rows([{**row, "cluster": None} for row in before]),
        Samples.from_rows([{**row, "cluster": None} for row in after]),
        **FAST,
    ).total
    widths = [c.forgetting.raw.high - c.forgetting.raw.low for c in (clustered, plain)]
    assert clustered.interval == "cluster bootstrap"
    assert widths[0] > 1.8 * widths[1]
    assert clustered.p_value > plain.p_value
    assert clustered.mde > plain.mde


def test_small_groups_are_bayesian_and_say_so(example):
    small = compare(samples({"t": [1, 1, 0, 0] * 5}), samples({"t": [1, 0, 1, 0] * 5}), **FAST)
    assert small.total.interval == "bayes"
    assert example.total.interval == "bootstrap"


def test_json_round_trip_and_contract(example):
    text = example.to_json()
    assert ForgettingMap.from_json(text) == example
    loaded = json.loads(text)
    assert loaded["schema_version"] == 1
    contract = {
        *("schema_version", "forgetmap_version", "before", "after", "settings", "coverage"),
        *("confounds", "total", "macro", "categories", "tasks"),
    }
    assert contract <= loaded.keys()
    cell = {
        *("n", "repeats_before", "repeats_after", "counts", "accuracy_before", "accuracy_after"),
        *("forgetting", "backward_transfer", "noise_floor", "k", "p_value", "p_adjusted", "mde"),
        *("verdict", "causes", "influence"),
    }
    assert cell <= loaded["total"].keys()
    side = {"raw", "paper", "latent", "excess", "soft", "ceiling", "guessing_bounds"}
    assert side == loaded["total"]["forgetting"].keys()
    assert loaded["total"]["k"] == {"4": 600}
    assert set(loaded["total"]["counts"]) == {"n00", "n01", "n10", "n11"}
    assert sum(loaded["total"]["counts"].values()) == pytest.approx(600)


def test_a_newer_map_is_refused(example):
    newer = {**json.loads(example.to_json()), "schema_version": 99}
    with pytest.raises(InputError, match="schema version 99"):
        ForgettingMap.from_json(json.dumps(newer))
    with pytest.raises(InputError, match="not a forgetmap map: at"):
        ForgettingMap.from_json('{"total": 1}')


def test_csv_has_every_cell_and_estimator(example):
    rows = list(csv.DictReader(io.StringIO(tables.to_csv(example))))
    assert [row["level"] for row in rows] == ["total"] * 2 + ["category"] * 2 + ["task"] * 3
    assert float(rows[0]["forgetting_raw"]) == example.total.forgetting.raw.value
    assert rows[0]["forgetting_excess"] == ""


def test_latex_has_the_papers_layout(example):
    text = tables.to_latex(example)
    assert text.count(r"\pm") == 2 * 3
    assert r"Total & 12.0" in text  # soft: ((u-v)^2 + (u-v))/2 with u - v = 0.2
    assert r"\_" in tables.to_latex(compare(samples({"a_b": [1]}), samples({"a_b": [1]}), **FAST))


def test_gates_break_only_when_the_interval_is_beyond_the_limit(example):
    forgot = example.total.forgot
    held, broken = check_gate(
        example, [f"max-forgetting={forgot.low + 0.001}", f"max-forgetting={forgot.low - 0.001}"]
    )
    assert held.holds
    assert not broken.holds
    assert not check_gate(example, ["max-drop=0.01"])[0].holds


def test_settings_that_differ_are_named():
    one, other = samples({"t": [1, 0]}), samples({"t": [1, 1]})
    one.meta.settings = {"m": {"few-shot examples": {"t": 5}, "dtype": "bfloat16"}}
    other.meta.settings = {"m": {"few-shot examples": {"t": 0}, "dtype": "bfloat16"}}
    (confound,) = compare(one, other, **FAST).confounds
    assert (confound.setting, confound.before, confound.after) == ("few-shot examples", 5, 0)


def test_the_task_map_gives_k_where_the_log_has_none():
    log = samples({"piqa": [1, 0], "my_task": [1, 0]}, k=None)
    result = compare(log, log, task_map="post-forget", **FAST)
    assert result.tasks["piqa"].k == {"2": 2}
    assert result.tasks["my_task"].k is None
    assert set(result.categories) == {"Common Sense", "unmapped"}
    assert any("my_task" in text for text in result.warnings)


def test_ignored_tasks_are_left_out_and_said():
    log = samples({"piqa": [1, 0], "bbh_word_sorting": [1, 0]})
    result = compare(log, log, task_map="post-forget", **FAST)
    assert set(result.tasks) == {"piqa"}
    assert any("bbh_word_sorting" in text for text in result.warnings)


def test_a_mean_over_tiny_identical_groups_proves_nothing_either():
    log = samples({"t": [1, 0, 1], "u": [0, 1, 1]})
    macro = compare(log, log, **FAST).macro
    assert (macro.verdict.net, macro.verdict.forgetting) == ("undecided", "undecided")
