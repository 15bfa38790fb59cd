"""Pairing: by content, with everything counted that could not be paired."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forgetmap.base.errors import InputError
from forgetmap.pairing.many_logs import ManyLogs
from forgetmap.pairing.metrics import choose_metric
from forgetmap.pairing.two_logs import LogPair, pair
from forgetmap.samples.identity import content_hash
from forgetmap.samples.table import Samples
from small_logs import random_scores, samples, shuffled


def transitions(pairs):
    """Items by (right before, right after) for single runs."""
    found = pairs.patterns
    return {
        (int(b), int(a)): int(found.n[(found.right_before == b) & (found.right_after == a)].sum())
        for b in (0, 1)
        for a in (0, 1)
    }


def test_items_pair_by_content_whatever_their_order():
    before, after = random_scores(1), random_scores(2)
    pairs = pair(shuffled(samples(before), 5), shuffled(samples(after), 6))
    expected = dict.fromkeys(((0, 0), (0, 1), (1, 0), (1, 1)), 0)
    for task in before:
        for x, y in zip(before[task], after[task], strict=True):
            expected[int(x), int(y)] += 1
    assert transitions(pairs) == expected
    assert pairs.coverage.matched == 360


def test_all_pairings_of_repeats_are_kept_as_patterns():
    pairs = pair(samples({"t": [[1, 1, 0], [0, 0, 0]]}), samples({"t": [[0, 1], [1, 1]]}))
    found = pairs.patterns
    rows = np.stack([found.runs_before, found.right_before, found.runs_after, found.right_after])
    assert sorted(map(tuple, rows.T)) == [(3, 0, 2, 2), (3, 2, 2, 1)]


def test_coverage_counts_what_is_on_one_side_only():
    before, after = samples({"t": [1, 0, 1, 1]}), samples({"t": [1, 1]})
    coverage = pair(before, after).coverage
    assert (coverage.items_before, coverage.items_after, coverage.matched) == (4, 2, 2)
    assert (coverage.only_before, coverage.only_after) == (2, 0)


def test_items_of_tasks_that_only_one_log_has_are_counted():
    before = samples({"arc": [1, 0, 1, 1], "boolq": [1, 1, 0], "csqa": [0, 1]})
    after = samples({"arc": [1, 0, 1, 1]})
    covered = pair(before, after).coverage
    assert (covered.items_before, covered.items_after, covered.matched) == (9, 4, 4)
    assert (covered.only_before, covered.only_after) == (5, 0)
    assert (covered.missing_before, covered.missing_after) == ([], ["boolq", "csqa"])
    assert pair(after, before).coverage.missing_before == ["boolq", "csqa"]


def test_a_task_without_a_shared_metric_counts_as_missing_on_both_sides():
    before = samples({"arc": [1, 0], "boolq": [1, 1, 0]})
    renamed = [
        {**row, "metric": "other" if row["task"] == "boolq" else row["metric"]}
        for row in before.data.to_pylist()
    ]
    covered = pair(before, Samples.from_rows(renamed)).coverage
    assert (covered.items_before, covered.items_after, covered.matched) == (5, 5, 2)
    assert (covered.only_before, covered.only_after) == (3, 3)
    assert covered.missing_before == covered.missing_after == ["boolq"]


def test_an_unscored_item_is_neither_right_nor_wrong():
    pairs = pair(samples({"t": [1, None, 0]}), samples({"t": [0, 1, float("nan")]}))
    assert pairs.coverage.unscored == 2
    assert pairs.coverage.matched == 1
    assert transitions(pairs) == {(0, 0): 0, (0, 1): 0, (1, 0): 1, (1, 1): 0}


def test_a_failed_repeat_leaves_the_others():
    pairs = pair(samples({"t": [[1, None, 0]]}), samples({"t": [[0, 0, 0]]}))
    assert pairs.patterns.runs_before.tolist() == [2]
    assert pairs.patterns.right_before.tolist() == [1]
    assert (pairs.coverage.matched, pairs.coverage.unscored_runs) == (1, 1)


def test_failed_repeats_are_counted_in_both_logs():
    """Of compared items only: an item without any score is told as an item."""
    before = samples({"t": [[1, None, 0], [1, 1, 1], [None, None, None]], "u": [[1, 1, None]]})
    after = samples({"t": [[0, 0, None], [None, None, 1], [1, None, 1]], "u": [[1, 1, 1]]})
    expected = (3, 1, 5)
    coverage = pair(before, after).coverage
    assert (coverage.matched, coverage.unscored, coverage.unscored_runs) == expected
    twice = Samples(pa.concat_tables([before.data, before.data]), before.meta)
    assert pair(twice, after).coverage.unscored_runs == 5
    logs = ManyLogs({"before": before, "after": after}, None, 0.5, "content")
    logs.outcomes()
    assert logs.pairs("before", "after").coverage == coverage
    single = pair(samples({"t": [1, None]}), samples({"t": [1, 1]})).coverage
    assert (single.unscored, single.unscored_runs) == (1, 0)


def test_the_same_id_with_other_content_is_a_conflict():
    before = samples({"t": [1, 1, 0]})
    rows = before.data.to_pylist()
    rows[1]["item"] = content_hash("edited")
    pairs = pair(before, Samples.from_rows(rows))
    assert pairs.coverage.conflicts == 1
    assert pairs.conflicts == [("t", "1")]
    assert (pairs.coverage.only_before, pairs.coverage.only_after) == (0, 0)
    assert pairs.coverage.matched == 2


def test_reordered_ids_are_no_conflict():
    before = samples({"t": [1, 1, 0]})
    rows = before.data.to_pylist()
    for row, ref in zip(rows, ("2", "0", "1"), strict=True):
        row["item_ref"] = ref
    assert pair(before, Samples.from_rows(rows)).coverage.conflicts == 0


@pytest.mark.parametrize("seed", range(4))
def test_duplicates_count_once_whatever_the_order_of_rows(seed):
    rows = samples({"t": [1, 0, 1]}).data.to_pylist()
    rows += [{**rows[0], "score": 0.0}, {**rows[1], "score": 1.0, "item_ref": "9"}]
    random.Random(seed).shuffle(rows)
    pairs = pair(Samples.from_rows(rows), samples({"t": [1, 1, 1]}))
    assert pairs.coverage.duplicates == 2
    assert pairs.coverage.matched == 3
    # Among duplicates the smallest id wins, and among equal ids the smallest score.
    assert transitions(pairs) == {(0, 0): 0, (0, 1): 2, (1, 0): 0, (1, 1): 1}


def test_duplicates_outside_the_common_items_are_counted_too():
    rows = samples({"t": [1, 0, 1]}).data.to_pylist()
    pairs = pair(Samples.from_rows([*rows, rows[2]]), samples({"t": [1, 1]}))
    assert pairs.coverage.duplicates == 1
    assert pairs.coverage.only_before == 1


def test_without_content_the_harness_ids_pair_and_it_is_said():
    rows = [{"task": "t", "item_ref": str(index), "score": 1.0} for index in range(3)]
    pairs = pair(Samples.from_rows(rows), Samples.from_rows(rows))
    assert pairs.coverage.identity == "index"
    assert pairs.coverage.matched == 3


def test_index_identity_pairs_across_different_content():
    before = samples({"t": [1, 1, 0]})
    rows = [{**row, "item": content_hash(row["item_ref"])} for row in before.data.to_pylist()]
    with pytest.raises(InputError, match="--identity index"):
        pair(before, Samples.from_rows(rows))
    pairs = pair(before, Samples.from_rows(rows), identity="index")
    assert pairs.coverage.matched == 3
    assert pairs.coverage.identity == "index"


def test_tasks_without_content_and_with_it_can_stand_together():
    rows = [{"task": "bare", "item_ref": str(index), "score": 1.0} for index in range(3)]
    both = [*rows, *samples({"t": [1, 0]}).data.to_pylist()]
    pairs = pair(Samples.from_rows(both), Samples.from_rows(both))
    assert pairs.coverage.matched == 5


def test_items_of_different_k_stay_apart():
    rows = samples({"t": [1, 0, 1]}).data.to_pylist()
    rows[0]["k"] = 2
    pairs = pair(Samples.from_rows(rows), Samples.from_rows(rows))
    assert sorted(pairs.patterns.k) == [2, 4, 4]


def test_clusters_are_kept():
    rows = samples({"t": [1, 0, 1, 1]}).data.to_pylist()
    for row, cluster in zip(rows, "aabb", strict=True):
        row["cluster"] = cluster
    pairs = pair(Samples.from_rows(rows), Samples.from_rows(rows))
    assert sorted(set(pairs.patterns.bucket)) == [0, 1]


def test_the_threshold_decides_what_is_correct():
    graded = samples({"t": [0.4, 0.6, 0.8]})
    assert transitions(pair(graded, graded))[1, 1] == 2
    assert transitions(pair(graded, graded, threshold=0.7))[1, 1] == 1


def test_metrics_are_chosen_by_rule_or_by_hand():
    rows = samples({"t": [1, 0]}).data.to_pylist()
    log = Samples.from_rows(
        [{**row, "metric": metric} for row in rows for metric in ("acc", "acc_norm")]
    )
    assert pair(log, log).metrics == {"t": "acc"}
    assert pair(log, log, metric="acc_norm").metrics == {"t": "acc_norm"}
    assert pair(log, log, metric={"t": "acc_norm"}).metrics == {"t": "acc_norm"}
    with pytest.raises(InputError, match="no task has a metric in common"):
        pair(log, log, metric="bleu")
    with pytest.raises(InputError, match="no task u in both logs"):
        pair(log, log, metric={"u": "acc"})


@pytest.mark.parametrize(
    ("metrics", "expected"),
    [
        (
            {"exact_match,strict-match", "exact_match,flexible-extract"},
            "exact_match,flexible-extract",
        ),
        ({"prompt_level_strict_acc", "prompt_level_loose_acc"}, "prompt_level_loose_acc"),
        ({"exact_match,maj@3", "exact_match,score-first"}, "exact_match,score-first"),
        ({"bleu"}, "bleu"),
    ],
)
def test_the_most_lenient_metric_is_preferred(metrics, expected):
    assert choose_metric("t", metrics) == expected


def test_ambiguous_metrics_are_refused_by_name():
    with pytest.raises(InputError, match=r"--metric t=NAME"):
        choose_metric("t", {"bleu", "rouge"})


def test_flips_show_a_right_answer_before_and_a_wrong_one_after():
    def log(outcomes):
        return Samples.from_rows(
            {
                "task": "t",
                "item": content_hash("q"),
                "repeat": repeat,
                "score": score,
                "answer": f"answer {repeat}",
                "target": "gold",
            }
            for repeat, score in enumerate(outcomes)
        )

    (row,) = next(iter(pair(log([0, 1, 1]), log([1, 0, 0])).flips())).to_pylist()
    assert row["transition"] == "forgotten"
    assert (row["answer_before"], row["answer_after"]) == ("answer 1", "answer 1")
    assert (round(row["before"], 3), round(row["after"], 3)) == (0.667, 0.333)
    assert row["item"] == f"{content_hash('q'):016x}"


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(1, 3))
def test_histograms_agree_with_a_plain_loop(seed, repeats_before, repeats_after):
    rng = random.Random(seed)

    def log(repeats):
        return {
            f"task{t}": [[rng.choice([0, 1, 1, None]) for _ in range(repeats)] for _ in range(20)]
            for t in range(2)
        }

    before, after = log(repeats_before), log(repeats_after)
    expected: dict[tuple, int] = {}
    for task in before:
        for x, y in zip(before[task], after[task], strict=True):
            x, y = ([s for s in scores if s is not None] for scores in (x, y))
            if x and y:
                key = (task, len(x), sum(x), len(y), sum(y))
                expected[key] = expected.get(key, 0) + 1
    if not expected:
        return
    found = pair(shuffled(samples(before), seed), shuffled(samples(after), seed + 1)).patterns
    columns = (found.task, found.runs_before, found.right_before, found.runs_after)
    rows = zip(*columns, found.right_after, strict=True)
    assert dict(zip(rows, found.n, strict=True)) == expected


def _odd_log(rng, tasks, repeats, of_item):
    """Rows of some items of each task, not all scored; `of_item` tells options and full marks."""
    rows = []
    for task, item in sorted(rng.sample([(t, i) for t in tasks for i in range(40)], k=60)):
        k, top = of_item(rng, task)
        rows += [
            {"task": task, "item": content_hash(f"{task} {item}"), "repeat": repeat, "k": k,
             "score": rng.choice([0, top / 2, top, top, None])}
            for repeat in range(repeats)
        ]  # fmt: skip
    return Samples.from_rows(rows)


def _by_both_roads(before, after):
    """The patterns from packed outcomes, and those from items side by side."""
    logs = LogPair({"before": before, "after": after}, None, None, "content")
    logs._define_items()
    return logs._packed_histogram(*logs.sides), logs._histogram(*logs.sides)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_single_runs_are_packed_without_a_loss(seed):
    """Items of one log alone, other numbers of options, own scales, tasks of one log alone."""
    rng = random.Random(seed)

    def of_item(rng, task):
        return rng.choice([None, 0, 2, 4, 2**31 - 1]), 5 if task == "marks" else 1

    tasks = ["marks", "it's", "sums", "facts"]
    logs = [_odd_log(rng, tasks[: 3 + n], 1, of_item) for n in (0, 1)]
    packed, plain = _by_both_roads(*logs)
    assert packed == plain
    assert pair(*logs).coverage == pair(*(shuffled(log, seed) for log in logs)).coverage


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_repeats_are_packed_without_a_loss(seed):
    rng = random.Random(seed)
    logs = [
        _odd_log(rng, ["sums", "facts"], runs, lambda _, task: (len(task), 1)) for runs in (2, 3)
    ]
    packed, plain = _by_both_roads(*logs)
    assert packed == plain


def test_repeats_with_other_numbers_of_options_are_not_packed():
    rng = random.Random(1)
    logs = [
        _odd_log(rng, ["sums", "facts"], 2, lambda rng, _: (rng.choice([2, 4]), 1))
        for _ in range(2)
    ]
    packed, _ = _by_both_roads(*logs)
    assert packed is None


def test_tasks_with_the_same_hash_stay_apart():
    scores = random_scores(7)
    before, after = samples(scores), shuffled(samples(random_scores(8)))
    logs = LogPair({"before": before, "after": after}, None, None, "content")
    logs.stock = {
        side: {key: replace(held, code=1) for key, held in stock.items()}
        for side, stock in logs.stock.items()
    }
    same = logs.pairs()
    assert logs._packed_histogram(*logs.sides) is None
    told = pair(before, after)
    assert same.coverage == told.coverage
    for ours, theirs in zip(same.patterns, told.patterns, strict=True):
        assert np.array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("scores", "graded"),
    [([0, 1, None], False), ([None, None], False), ([0, 0.5, 1], True), ([0, 2], True),
     ([-1, 1], True), ([-0.0, 1.0], False)],
)  # fmt: skip
def test_scores_are_graded_where_they_are_more_than_right_or_wrong(scores, graded):
    logs = LogPair({name: samples({"t": scores}) for name in "ab"}, None, None, "content")
    assert [held.graded for stock in logs.stock.values() for held in stock.values()] == [graded] * 2


def test_nan_in_a_samples_file_is_no_score(tmp_path):
    """Databases sort NaN above every number; a file with one must not count it as right."""
    import pyarrow.parquet as pq

    rows = [
        {"item": content_hash(i), "score": 1.0, "k": 4, "gold_probability": 0.5} for i in range(8)
    ]
    good = tmp_path / "good.parquet"
    Samples.from_rows(rows).write(good)
    table = pq.read_table(good)
    for name in ("score", "gold_probability"):
        values = [float("nan"), *table[name].to_pylist()[1:]]
        place = table.schema.get_field_index(name)
        table = table.set_column(place, table.schema.field(name), [values])
    bad = tmp_path / "bad.parquet"
    pq.write_table(table, bad)
    found = pair(Samples.read(good), Samples.read(bad))
    assert (found.coverage.matched, found.coverage.unscored) == (7, 1)


def test_two_models_of_one_log_are_compared():
    both = Samples.from_rows(
        {"model": model, "item": content_hash(i), "score": float(i % 2)}
        for model in ("a", "b")
        for i in range(10)
    )
    assert pair(both.only("a"), both.only("b")).coverage.matched == 10
    assert both.only("a").only("a").models == ["a"]
