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
from forgetmap.map.result import ForgettingMap
from forgetmap.map.task_maps import TaskMap
from forgetmap.samples.table import Samples
from forgetmap.views.tables import maps as tables
from small_logs import random_scores, samples, shuffled

FAST = {"draws": 1000}


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


def test_a_log_compared_with_itself_says_so():
    log = samples(repeated(1))
    result = compare(log, log, **FAST)
    lost = result.total.lost
    assert (lost.low_end, lost.high_end, lost.low, lost.high) == (0, 0, 0, 0)
    assert (result.total.verdict.net, result.total.verdict.forgetting) == ("equal", "held")
    assert any("one and the same" in text for text in result.warnings)
    assert check_gate(result, ["max-forgetting=0"])[0].holds


def test_a_copy_of_a_log_is_the_same_log(tmp_path):
    for name in ("one", "other"):
        (tmp_path / f"{name}.csv").write_text("id,score\n1,1\n2,0\n")
    result = compare(tmp_path / "one.csv", tmp_path / "other.csv", **FAST)
    assert any("one and the same" in text for text in result.warnings)


def test_identical_runs_have_no_flips_and_are_equal():
    log = samples(random_scores(1, tasks=4, items=250), gold_probability=0.7)
    result = compare(log, shuffled(log), **FAST)
    assert result.total.counts.n10 == result.total.counts.n01 == 0
    assert result.total.verdict.net == "equal"
    assert result.total.verdict.forgetting == "held"
    assert result.total.p_value == 1
    assert result.total.lost.value == 0


def test_a_handful_of_identical_items_proves_nothing():
    log = samples({"t": [1, 0, 1, 1, 0]}, gold_probability=0.5)
    verdict = compare(log, shuffled(log), **FAST).total.verdict
    assert (verdict.net, verdict.forgetting) == ("undecided", "undecided")
    assert "more items" in verdict.would_decide


def test_the_same_model_resampled_has_lost_nothing():
    total = compare(samples(repeated(1, 600)), samples(repeated(2, 600)), **FAST).total
    assert total.lost.basis == "repeats"
    assert total.lost.low_end == 0
    assert total.raw.lost.value > 0.05
    assert total.noise_floor == pytest.approx(total.raw.lost.value, abs=0.02)
    assert total.verdict.forgetting != "lost"


def test_swapping_the_sides_swaps_lost_and_gained():
    before, after = samples(repeated(1)), samples(repeated(2, shift=0.2))
    one, other = compare(before, after, **FAST).total, compare(after, before, **FAST).total
    for mine, theirs in ((one.lost, other.gained), (one.gained, other.lost)):
        ends = ("low_end", "high_end", "low", "high")
        assert [getattr(mine, name) for name in ends] == pytest.approx(
            [getattr(theirs, name) for name in ends]
        )
        assert mine.of_known.value == pytest.approx(theirs.of_known.value)
        assert mine.basis == theirs.basis
    assert one.raw.lost.value == pytest.approx(other.raw.gained.value)
    assert one.raw.lost.high == pytest.approx(other.raw.gained.high)
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


def test_totals_by_items_and_by_categories(example):
    groups = example.categories
    assert set(groups) == {"A", "B"}
    assert groups["A"].n == 400
    mean = (groups["A"].raw.lost.value + groups["B"].raw.lost.value) / 2
    assert example.macro.raw.lost.value == pytest.approx(mean)
    pooled = sum(cell.counts.n10 for cell in example.tasks.values()) / 600
    assert example.total.raw.lost.value == pytest.approx(pooled)
    assert example.macro.lost.value == pytest.approx(0.2)


def test_adjusted_p_values_are_never_smaller(example):
    for cells in (example.tasks, example.categories):
        assert all(cell.p_adjusted >= cell.p_value for cell in cells.values())


def test_a_clear_loss_is_called_worse_and_lost(example):
    assert example.total.verdict.net == "worse"
    assert example.total.verdict.forgetting == "lost"
    better = compare(
        samples(random_scores(2, right=0.3)), samples(random_scores(1, right=0.8)), **FAST
    )
    assert better.total.verdict.net == "better"


def test_loss_and_gain_do_not_average_out():
    before = samples({"t": [1.0] * 200 + [0.0] * 200 + [1.0] * 400})
    after = samples({"t": [0.0] * 200 + [1.0] * 200 + [1.0] * 400})
    result = compare(before, after, margin=0.1, deterministic=True, **FAST).total
    assert result.verdict.net == "equal"
    assert result.verdict.forgetting == "lost"


def test_the_basis_is_the_best_that_each_log_allows():
    single = samples(random_scores(1)), samples(random_scores(2))
    assert compare(*single, **FAST).total.lost.basis == "single_run"
    assert compare(*single, deterministic=True, **FAST).total.lost.basis == "deterministic"
    options = [samples(random_scores(seed), gold_probability=0.5) for seed in (1, 2)]
    assert compare(*options, **FAST).total.lost.basis == "probabilities"
    repeats = samples(repeated(1)), samples(repeated(2))
    assert compare(*repeats, **FAST).total.lost.basis == "repeats"
    one_sided = compare(samples(repeated(1)), samples(repeated(2, repeats=1)), **FAST)
    assert one_sided.total.lost.basis == "single_run"


def test_a_second_run_measures_the_noise():
    logs = [samples(repeated(seed, 2000, repeats=1)) for seed in range(4)]
    plain = compare(logs[0], logs[1], **FAST).total.lost
    noisy = compare(
        logs[0], logs[1], noise_before=logs[2], noise_after=logs[3], margin=0.05, **FAST
    ).total
    assert (plain.basis, noisy.lost.basis) == ("single_run", "noise_run")
    assert noisy.lost.high_end < plain.high_end
    assert noisy.noise_floor == pytest.approx(noisy.raw.lost.value, abs=0.02)
    assert noisy.verdict.forgetting != "lost"


def test_new_tasks_are_reported_apart():
    before = samples({"old": [1.0] * 100, "airports": [0.0] * 100}, gold_probability=None)
    after = samples({"old": [1.0] * 90 + [0.0] * 10, "airports": [1.0] * 100})
    result = compare(before, after, new=["air*"], deterministic=True, **FAST)
    assert result.settings.new == ["airports"]
    assert result.old.n == result.new.n == 100
    assert result.old.lost.value == pytest.approx(0.1)
    assert (result.new.accuracy_before, result.new.accuracy_after) == (0, 1)
    assert result.total.lost.value == pytest.approx(0.05)
    assert "New skill: 0.0 % -> 100.0 %" in result.headline()
    with pytest.raises(InputError, match="--new nonsense: no such task"):
        compare(before, after, new=["nonsense"], **FAST)


def test_influence_names_the_task_that_carries_the_group():
    before = {"calm": [1.0] * 300, "wild": [1.0] * 300}
    after = {"calm": [1.0] * 300, "wild": [0.0] * 300}
    influence = compare(samples(before), samples(after), deterministic=True, **FAST).total.influence
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
    widths = [c.raw.lost.high - c.raw.lost.low for c in (clustered, plain)]
    assert widths[0] > 1.8 * widths[1]
    assert clustered.p_value > plain.p_value
    assert clustered.mde > plain.mde


def test_json_round_trip_and_contract(example):
    text = example.to_json()
    assert ForgettingMap.from_json(text) == example
    loaded = json.loads(text)
    assert loaded["schema_version"] == 2
    contract = {
        *("schema_version", "forgetmap_version", "before", "after", "settings", "coverage"),
        *("confounds", "total", "old", "macro", "categories", "tasks"),
    }
    assert contract <= loaded.keys()
    cell = {
        *("n", "repeats_before", "repeats_after", "counts", "accuracy_before", "accuracy_after"),
        *("lost", "gained", "raw", "paper", "like_these", "k", "p_value", "p_adjusted", "mde"),
        *("verdict", "causes", "influence"),
    }
    assert cell <= loaded["total"].keys()
    ends = {"low_end", "high_end", "low", "high", "of_known", "basis"}
    assert ends == loaded["total"]["lost"].keys()
    verdict = {"net", "forgetting", "would_decide", "p_lost", "p_held"}
    assert loaded["total"]["verdict"].keys() == verdict
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
    assert float(rows[0]["raw_lost"]) == example.total.raw.lost.value
    assert float(rows[0]["lost_low_end"]) == example.total.lost.low_end


def test_latex_has_the_papers_layout(example):
    text = tables.to_latex(example)
    assert text.count(r"\pm") == 2 * 3
    assert r"Total & 20.0" in text
    assert r"\_" in tables.to_latex(compare(samples({"a_b": [1]}), samples({"a_b": [1]}), **FAST))


def test_gates_break_only_when_the_interval_is_beyond_the_limit(example):
    lost = example.total.lost
    held, broken = check_gate(
        example, [f"max-forgetting={lost.low + 0.001}", f"max-forgetting={lost.low - 0.001}"]
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
    macro = compare(log, shuffled(log), **FAST).macro
    assert (macro.verdict.net, macro.verdict.forgetting) == ("undecided", "undecided")


def test_any_flipped_bit_of_a_map_is_noticed_or_harmless(example):
    good = example.to_json().encode()
    rng = random.Random(3)
    for _ in range(300):
        place, bit = rng.randrange(len(good)), 1 << rng.randrange(8)
        text = good[:place] + bytes([good[place] ^ bit]) + good[place + 1 :]
        try:
            assert ForgettingMap.from_json(text) == example  # white space, or the checksum's name
        except InputError:
            continue
