"""The published pipeline: reproduced with its choices, and shown to go wrong where it does."""

from __future__ import annotations

import random
import statistics

import pytest

from forgetmap.api import compare
from forgetmap.map.published import post_forget, published_task
from forgetmap.map.task_maps import TaskMap
from forgetmap.samples.identity import content_hash
from forgetmap.samples.table import Samples

TASKS = {
    "community|bbh_reasoning_letter:navigate|0": ("Logic", 2),
    "community|mmlu_letter:anatomy|0": ("Science/Tech", 4),
    "community|piqa_letter:main|0": ("Common Sense", 4),
    "community|commonsense_qa_letter:main|0": ("Common Sense", 4),
    "community|arc_reasoning_custom_prompt_letter:easy|0": ("Missing", 4),
}
"""As the published code sees them: ARC falls out, PIQA and CommonsenseQA run with k = 4."""


def log(seed, tasks=TASKS, items=60, seeds=3, prompt="{}"):
    rng = random.Random(seed)
    return Samples.from_rows(
        {
            "task": task,
            "item": content_hash(f"{task}{item}"),
            "item_ref": str(item),
            "repeat": repeat,
            "metric": "extractive_match",
            "score": float(rng.random() < 0.6),
            "prompt": prompt.format(f"{item:04d}"),
        }
        for task in tasks
        for repeat in range(seeds)
        for item in range(items)
    )


def plainly(before, after, tasks=TASKS, seeds=3):
    """The published table by a plain loop over rows, written from its description."""
    rows = {side: data.data.to_pylist() for side, data in (("b", before), ("a", after))}
    per_seed = []
    for seed in range(seeds):
        groups: dict[str, list] = {}
        for task, (category, k) in tasks.items():
            sides = [
                sorted(
                    (row for row in rows[side] if row["task"] == task and row["repeat"] == seed),
                    key=lambda row: row["prompt"],
                )
                for side in "ba"
            ]
            counts = {(x, y): 0 for x in (0, 1) for y in (0, 1)}
            for x, y in zip(*sides, strict=True):
                counts[round(x["score"]), round(y["score"])] += 1
            n = sum(counts.values())
            a = (counts[1, 0] + counts[1, 1]) / n
            b = (counts[0, 1] + counts[1, 1]) / n
            chance = (1 - a) * (1 - b) / (k - 1)
            groups.setdefault(category, []).append(
                (
                    max(counts[1, 0] / n - chance, 0),
                    max(counts[0, 1] / n - chance, 0),
                    max((k * a - 1) / (k - 1), 0),
                )
            )
        means = {
            name: [statistics.fmean(column) for column in zip(*results, strict=True)]
            for name, results in groups.items()
        }
        means["Total"] = [statistics.fmean(column) for column in zip(*means.values(), strict=True)]
        per_seed.append(means)
    return {
        name: [
            (statistics.fmean(values), statistics.stdev(values))
            for values in zip(*(means[name] for means in per_seed), strict=True)
        ]
        for name in per_seed[0]
    }


def test_the_table_equals_a_plain_loop():
    before, after = log(1), log(2)
    table = post_forget(before, after, dict.fromkeys(TASKS, "extractive_match"))
    expected = plainly(before, after)
    assert {row.category for row in table.rows} == expected.keys()
    for row in table.rows:
        column = 0 if row.metric == "forgetting" else 1
        value, spread = expected[row.category][column]
        assert row.value == pytest.approx(value, abs=1e-12)
        assert row.std == pytest.approx(spread, abs=1e-12)
        if row.metric == "forgetting":
            assert row.ceiling == pytest.approx(expected[row.category][2][0], abs=1e-12)
    assert table.rows[-1].category == "Total"


def test_total_averages_the_hidden_group_too():
    """D1, D2: ARC is not in Logic, and Total has one group more than the rows that are printed."""
    table = post_forget(log(1), log(2), dict.fromkeys(TASKS, "extractive_match"))
    forgetting = {row.category: row.value for row in table.rows if row.metric == "forgetting"}
    total = forgetting.pop("Total")
    assert "Missing" in forgetting
    assert total == pytest.approx(statistics.fmean(forgetting.values()))


def test_one_seed_has_no_spread():
    table = post_forget(log(1, seeds=1), log(2, seeds=1), dict.fromkeys(TASKS, "extractive_match"))
    assert all(row.std is None for row in table.rows)


def test_a_task_of_unequal_length_is_skipped_and_named():
    """D5: the published pipeline drops it; forgetmap itself pairs what is common."""
    before = log(1)
    rows = [
        row
        for row in log(2).data.to_pylist()
        if row["item_ref"] != "7" or "piqa" not in row["task"]
    ]
    after = Samples.from_rows(rows)
    result = compare(before, after, task_map="post-forget", compat="post-forget", draws=500)
    assert result.compat.skipped_tasks == ["community|piqa_letter:main|0"]
    assert result.tasks["community|piqa_letter:main|0"].n == 59


def test_sorting_by_prompt_can_pair_the_wrong_items():
    """S6: one question begins another, and the character after it differs between the prompts."""
    questions = ["Is it", "Is it so"]
    before = [
        {"q": q, "prompt": f"Q: {q}\n", "score": s} for q, s in zip(questions, (1, 0), strict=True)
    ]
    after = [
        {"q": q, "prompt": f'Q: {q}"', "score": s} for q, s in zip(questions, (1, 0), strict=True)
    ]

    def samples(rows):
        return Samples.from_rows(
            {
                "task": "community|mmlu:anatomy|0",
                "item": content_hash(row["q"]),
                "metric": "extractive_match",
                **{name: row[name] for name in ("prompt", "score")},
            }
            for row in rows
        )

    result = compare(samples(before), samples(after), compat="post-forget", draws=500)
    assert result.total.counts.n10 == result.total.counts.n01 == 0
    (forgetting, *_) = (row for row in result.compat.rows if row.metric == "forgetting")
    assert forgetting.value > 0.4


def test_an_unchanged_model_seems_to_forget_under_the_published_formula():
    """Known share 0.6, k = 4: 4.5 points of forgetting that did not happen."""
    assert published_task((225, 75, 75, 625), k=4).forgetting == pytest.approx(0.045)


def test_the_two_built_in_maps_differ_as_documented():
    ours, theirs = TaskMap.load("post-forget"), TaskMap.load("post-forget-published")
    assert len(ours.rows) == len(theirs.rows) == 99
    assert ours.category("arc_easy") == "Logic"
    assert theirs.category("arc_easy") == "Missing"
    assert theirs.category("no_such_task") == "Missing"
    changed = {task for task in ours.rows if ours.rows[task][1] != theirs.rows[task][1]}
    assert changed == {
        *("commonsense_qa", "piqa", "social_iqa", "musr_murder_mysteries", "musr_team_allocation"),
        *("bbh_movie_recommendation", "bbh_ruin_names", "bbh_geometric_shapes"),
        *("bbh_about_colored_objects", "bbh_date_understanding", "bbh_object_counting"),
        *("truthfulqa_mc1", "salad_bench_mrq"),
    }
    groups = [category for category, _ in ours.rows.values()]
    assert {name: groups.count(name) for name in ("Science/Tech", "Logic", "Culture")} == {
        "Science/Tech": 25,
        "Logic": 20,
        "Culture": 2,
    }
