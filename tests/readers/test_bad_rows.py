"""Rows that make no sense: wrong scores, models, tasks, items, metrics and results files."""

from __future__ import annotations

import itertools
import json
from copy import deepcopy

import pytest

import forgetmap
import forgetmap.readers
import forgetmap.readers.summary
from forgetmap.base.errors import WithheldError
from logs import (
    ALL_OUTPUTS,
    COMPARISON,
    QUICK,
    STAMP,
    Workplace,
    assert_one_line,
    details,
    items,
    lm_eval_record,
    refused_by_every_command,
    write_csv,
    write_jsonl,
    write_lm_eval,
    write_parquet,
)

# --- scores ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("nothing", [None, float("nan")])
def test_a_missing_score_is_unscored_never_zero(
    work: Workplace, suffix: str, nothing: float | None
) -> None:
    writer = {"csv": write_csv, "jsonl": write_jsonl, "parquet": write_parquet}[suffix]
    name = f"run.{suffix}"
    writer(work / name, items([1.0, nothing, 1.0, 0.0]))
    write_jsonl(work / "good.jsonl", items([1, 1, 1, 1]))
    for sides in ((name, "good.jsonl"), ("good.jsonl", name)):
        result = work.compared(*sides)
        assert (result.coverage.matched, result.coverage.unscored) == (3, 1)
        assert result.total.counts.n10 + result.total.counts.n01 == 1


def test_a_score_that_the_harness_left_out_is_unscored(work: Workplace) -> None:
    without = lm_eval_record(1)
    del without["acc"]
    write_lm_eval(work / "before", [lm_eval_record(0), without, lm_eval_record(2, float("nan"))])
    write_lm_eval(work / "after", [lm_eval_record(i) for i in range(3)])
    covered = work.compared("before", "after").coverage
    assert (covered.matched, covered.unscored) == (1, 2)


def test_only_unscored_items_is_an_error(work: Workplace) -> None:
    write_jsonl(work / "run.jsonl", items([None, None]))
    write_jsonl(work / "good.jsonl", items([1, 1]))
    work.refused("compare", "run.jsonl", "good.jsonl", says=("none of the 2 common items", "score"))


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_a_score_that_is_text_is_refused_by_its_row(work: Workplace, suffix: str) -> None:
    writer = {"csv": write_csv, "jsonl": write_jsonl, "parquet": write_parquet}[suffix]
    writer(work / f"run.{suffix}", items(["1", "abc", "0"]))
    refused_by_every_command(work, f"run.{suffix}", ("row 2", "score 'abc'", "not a number"))


def test_a_score_of_a_harness_that_is_text_is_refused_by_its_line(work: Workplace) -> None:
    write_lm_eval(work / "run", [lm_eval_record(0), lm_eval_record(1, "abc")])
    refused_by_every_command(work, "run", (f"samples_sums_{STAMP}.jsonl:2:", "abc", "acc"))


@pytest.mark.parametrize("field", ["k", "gold_probability", "option_probabilities"])
def test_another_number_that_is_text_is_refused_by_row_and_name(
    work: Workplace, field: str
) -> None:
    records = items([1, 0], **{field: None})
    records[1][field] = "abc"
    write_jsonl(work / "run.jsonl", records)
    refused_by_every_command(work, "run.jsonl", ("row 2", field, "abc"))


@pytest.mark.parametrize("value", [-1.0, 1.5, 1e9, float("inf"), float("-inf")])
def test_a_probability_that_is_none_is_no_traceback(work: Workplace, value: float) -> None:
    write_jsonl(work / "run.jsonl", items([1, 0, 1], gold_probability=value))
    write_jsonl(work / "good.jsonl", items([1, 1, 1], gold_probability=0.25))
    result = work.run("compare", "run.jsonl", "good.jsonl", *QUICK)
    if result.exit_code:
        says = ("run.jsonl", "gold_probability")
        assert_one_line(result.exit_code, result.stdout, result.stderr, says, 2, result)


@pytest.mark.parametrize("likelihoods", [("nan", "nan"), ("-inf", "-inf"), ("inf", "0.0")])
def test_likelihoods_of_a_broken_model_are_no_traceback(
    work: Workplace, likelihoods: tuple[str, str]
) -> None:
    """A model in the wrong precision answers NaN; its accuracy can still be compared."""
    options = {f"gen_args_{i}": {"arg_0": "q", "arg_1": f" {i}"} for i in range(2)}
    common = {"arguments": options, "target": "0"}
    fine = [["-1.0", "False"], ["-2.0", "False"]]
    broken = [[value, "False"] for value in likelihoods]
    for name, answers in (("before", fine), ("after", broken)):
        records = [lm_eval_record(i, 1.0, filtered_resps=answers, **common) for i in range(3)]
        write_lm_eval(work / name, records)
    result = work.compared("before", "after")
    assert result.coverage.matched == 3
    assert "nan" not in result.to_json().lower()


def test_a_target_that_only_looks_like_a_digit_is_no_harm(work: Workplace) -> None:
    options = {f"gen_args_{i}": {"arg_0": "q", "arg_1": t} for i, t in enumerate(("²", "³"))}
    answers = [["-1.0", "True"], ["-2.0", "False"]]
    record = lm_eval_record(0, 1.0, arguments=options, filtered_resps=answers, target="²")
    write_lm_eval(work / "run", [record])
    assert work.compared("run", "run").coverage.matched == 1


# --- which model, task, item, metric --------------------------------------------------------------


def test_two_models_in_one_log_are_listed_and_can_be_chosen(work: Workplace) -> None:
    one, two = items([1, 0, 1], model="tiny"), items([0, 0, 0], model="large")
    write_jsonl(work / "both.jsonl", [*one, *two])
    write_jsonl(work / "good.jsonl", items([1, 1, 1]))
    listed = ("2 models", "large, tiny")
    work.refused("compare", "both.jsonl", "good.jsonl", says=(*listed, "--before-model"))
    work.refused("compare", "good.jsonl", "both.jsonl", says=(*listed, "--after-model"))
    result = work.compared("both.jsonl", "good.jsonl", "--before-model", "tiny")
    assert (result.before.name, result.coverage.matched) == ("tiny", 3)
    assert result.total.accuracy_before == pytest.approx(2 / 3)
    both = work.compared(
        *("both.jsonl", "both.jsonl"), "--before-model", "tiny", "--after-model", "large"
    )
    assert (both.before.name, both.after.name) == ("tiny", "large")


def test_two_models_in_one_folder_are_listed_and_can_be_chosen(work: Workplace) -> None:
    for name, score in (("tiny", 1.0), ("large", 0.0)):
        records = [lm_eval_record(i, score) for i in range(3)]
        write_lm_eval(work / "runs" / name, records, results={"model_name": name})
    says = ("2 models", "large, tiny", "--before-model")
    work.refused("compare", "runs", "runs/tiny", says=says)
    result = work.compared("runs", "runs/tiny", "--before-model", "large")
    assert result.total.accuracy_before == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("compare", "before.jsonl", "after.jsonl", "--before-model", "nobody"),
        ("show", "before.jsonl", "--model", "nobody"),
        ("convert", "before.jsonl", "out.parquet", "--model", "nobody"),
    ],
)
def test_a_model_that_is_not_there(
    work: Workplace, pair: tuple[str, str], arguments: tuple[str, ...]
) -> None:
    work.refused(*arguments, says=("no model 'nobody'", "it holds: before"))


def test_the_same_id_with_other_content_is_a_conflict(work: Workplace) -> None:
    write_jsonl(work / "before.jsonl", [{**r, "id": i} for i, r in enumerate(items([1, 1, 1]))])
    changed = [{**r, "id": i} for i, r in enumerate(items([0, 0, 0]))]
    changed[1]["question"] = "another question"
    write_jsonl(work / "after.jsonl", changed)
    result = work.compared("before.jsonl", "after.jsonl")
    covered = result.coverage
    assert (covered.matched, covered.conflicts) == (2, 1)
    assert (covered.only_before, covered.only_after) == (0, 0)
    assert any("different content" in text and "all#1" in text for text in result.warnings)


def test_all_in_conflict_is_an_error_that_names_the_flag_which_works(work: Workplace) -> None:
    for name, wording in (("before", "Q:"), ("after", "Question:")):
        records = [{"id": i, "question": f"{wording} {i}", "correct": 1} for i in range(4)]
        write_jsonl(work / f"{name}.jsonl", records)
    says = ("no item in common", "--identity index")
    work.refused("compare", "before.jsonl", "after.jsonl", says=says)
    result = work.compared("before.jsonl", "after.jsonl", "--identity", "index")
    assert (result.coverage.matched, result.coverage.identity) == (4, "index")


def test_conflicts_and_duplicates_together_still_add_up(work: Workplace) -> None:
    """Two ids, one content on each side: more ids in conflict than items."""
    for name, text in (("before", "old"), ("after", "new")):
        twice = [{"id": i, "question": text, "correct": 1} for i in (1, 2)]
        write_jsonl(work / f"{name}.jsonl", [*twice, {"id": 3, "question": "same", "correct": 1}])
    covered = work.compared("before.jsonl", "after.jsonl").coverage
    assert covered.matched == 1
    assert min(covered.only_before, covered.only_after) >= 0
    assert covered.items_before == covered.matched + covered.only_before + covered.conflicts


def test_no_common_task(work: Workplace) -> None:
    for name in ("sums", "capitals"):
        write_jsonl(work / f"{name}.jsonl", items([1, 0], task=name))
    says = ("no task in common", "before: sums", "after: capitals")
    work.refused("compare", "sums.jsonl", "capitals.jsonl", says=says)


def test_no_common_item(work: Workplace) -> None:
    write_jsonl(work / "a.jsonl", [{"id": "a", "question": "a", "correct": 1}])
    write_jsonl(work / "b.jsonl", [{"id": "b", "question": "b", "correct": 1}])
    says = ("no item in common", "1 before, 1 after", "--identity index")
    work.refused("compare", "a.jsonl", "b.jsonl", says=says)


def test_one_item_without_content_does_not_let_other_contents_be_paired(work: Workplace) -> None:
    """Row numbers serve only where no content is stored."""
    blank = {"question": "", "correct": 1}
    before, after = items([1, 1, 1]), items([0, 1, 1])
    write_jsonl(work / "before.jsonl", [*before, blank])
    write_jsonl(work / "after.jsonl", [*reversed(after), blank])
    result = work.compared("before.jsonl", "after.jsonl", "--flips", "flips.jsonl")
    prompts = [json.loads(line) for line in (work / "flips.jsonl").read_text().splitlines()]
    assert all(record["prompt_before"] == record["prompt_after"] for record in prompts)
    assert result.total.counts.n10 == 1


def test_a_question_that_the_first_row_lacks_is_still_content(work: Workplace) -> None:
    first = {"correct": 1}
    write_jsonl(work / "before.jsonl", [first, *items([1, 1, 1])])
    write_jsonl(work / "after.jsonl", [first, *reversed(items([0, 1, 1]))])
    work.compared("before.jsonl", "after.jsonl", "--flips", "flips.jsonl")
    for line in (work / "flips.jsonl").read_text().splitlines():
        record = json.loads(line)
        assert record["prompt_before"] == record["prompt_after"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"target": 0}, {"target": None}),
        ({"target": False}, {"target": ""}),
        ({"question": "a\x1f\x1fb", "target": "c"}, {"question": "a", "target": "b\x1f\x1fc"}),
        ({"question": "a", "choices": "b\x1fc"}, {"question": "a\x1fb", "choices": "c"}),
    ],
)
def test_different_contents_are_different_items(work: Workplace, one: dict, other: dict) -> None:
    common = {"question": "same", "correct": 1}
    write_jsonl(work / "before.jsonl", [{**common, **one}, {"question": "both", "correct": 1}])
    write_jsonl(work / "after.jsonl", [{**common, **other}, {"question": "both", "correct": 1}])
    assert work.compared("before.jsonl", "after.jsonl").coverage.matched == 1


def test_a_number_is_the_same_content_in_every_format(work: Workplace) -> None:
    records = items([1, 1, 1])
    for target, record in enumerate(records):
        record["target"] = target
    write_jsonl(work / "before.jsonl", records)
    write_csv(work / "after.csv", records)
    assert work.compared("before.jsonl", "after.csv").coverage.matched == 3


def test_an_empty_cell_is_the_same_content_in_every_format(work: Workplace) -> None:
    records = items([1, 1, 1], target="", choices="")
    write_jsonl(work / "empty.jsonl", records)
    write_csv(work / "empty.csv", records)
    write_jsonl(work / "without.jsonl", items([1, 1, 1]))
    for one, other in itertools.combinations(("empty.jsonl", "empty.csv", "without.jsonl"), 2):
        assert work.compared(one, other).coverage.matched == 3


def test_a_single_item_gives_a_map_that_can_be_read_again(work: Workplace) -> None:
    write_jsonl(work / "one.jsonl", items([1], k=2, gold_probability=0.5))
    assert work.compared("one.jsonl", "one.jsonl").total.n == 1
    write_parquet(work / "run" / "details_sums.parquet", [details(0)])
    assert work.compared("run", "run").total.n == 1


def test_details_without_a_question_are_not_all_one_item(work: Workplace) -> None:
    for name in ("before", "after"):
        records = [
            details(i, doc={"choices": ["a", "b"], "gold_index": [0], "id": str(i)})
            for i in range(3)
        ]
        write_parquet(work / name / "details_sums.parquet", records)
    result = work.compared("before", "after")
    assert (result.coverage.matched, result.coverage.identity) == (3, "index")


@pytest.mark.parametrize("scores", [(1, 1), (1, 0), (None, 1), (None, 0)])
def test_duplicate_rows_are_counted_whatever_their_order(
    work: Workplace, scores: tuple[int | None, int | None]
) -> None:
    twice = [
        {"id": i, "question": "twice", "correct": score, "answer": f"answer {i}", "task": "t"}
        for i, score in enumerate(scores)
    ]
    rows = [*items([1, 1, 0], task="t"), *twice]
    write_jsonl(work / "good.jsonl", [*items([1, 0, 0], task="t"), {**twice[0], "correct": 0}])
    found = []
    for order in (rows, rows[::-1], rows[3:] + rows[:3], sorted(rows, key=str)):
        write_jsonl(work / "run.jsonl", order)
        result = work.compared("run.jsonl", "good.jsonl", "--flips", "flips.csv")
        assert (result.coverage.matched, result.coverage.duplicates) == (4, 1)
        found.append((result.total.counts, (work / "flips.csv").read_text()))
    assert all(other == found[0] for other in found)


@pytest.mark.parametrize("id_of_copy", [0, 1])
def test_which_duplicate_is_shown_does_not_hang_on_row_order(
    work: Workplace, id_of_copy: int
) -> None:
    twice = [
        {"id": i * id_of_copy, "question": "twice", "correct": 1, "answer": f"answer {i}"}
        for i in range(2)
    ]
    write_jsonl(work / "good.jsonl", [{**twice[0], "correct": 0}])
    shown = set()
    for rows in (twice, twice[::-1]):
        write_jsonl(work / "run.jsonl", rows)
        work.compared("run.jsonl", "good.jsonl", "--flips", "flips.csv")
        shown.add((work / "flips.csv").read_text())
    assert len(shown) == 1


def test_the_largest_seed_is_no_harm(work: Workplace) -> None:
    write_jsonl(work / "run.jsonl", items([1, 0], seed=2**31 - 1))
    assert work.compared("run.jsonl", "run.jsonl").coverage.matched == 2


def test_no_metric_in_common(work: Workplace) -> None:
    write_lm_eval(work / "before", [lm_eval_record(0, metric="acc")])
    write_lm_eval(work / "after", [lm_eval_record(0, metric="exact_match")])
    says = ("no task has a metric in common", "sums", "before has acc", "after has exact_match")
    work.refused("compare", "before", "after", says=says)


def test_an_unknown_metric(work: Workplace) -> None:
    write_lm_eval(work / "run", [lm_eval_record(0)])
    says = ("asked was bleu", "before has acc")
    work.refused("compare", "run", "run", "--metric", "bleu", says=says)
    work.refused("compare", "run", "run", "--metric", "sums=bleu", says=says)
    says = ("no task capitals", "they share sums")
    work.refused("compare", "run", "run", "--metric", "capitals=acc", says=says)
    says = ("--metric acc", "NAME=VALUE")
    work.refused("compare", "run", "run", "--metric", "acc", "--metric", "em", says=says)


def test_ambiguous_metrics_must_be_chosen_and_can_be(work: Workplace) -> None:
    record = lm_eval_record(0, mine=1.0, yours=0.0)
    record["metrics"] = ["mine", "yours"]
    del record["acc"]
    write_lm_eval(work / "run", [record])
    says = ("task sums", "mine, yours", "--metric sums=NAME")
    work.refused("compare", "run", "run", says=says)
    result = work.compared("run", "run", "--metric", "sums=yours")
    assert result.settings.metric == {"sums": "yours"}


def test_withheld_is_exit_code_3(
    work: Workplace, pair: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def withhold(*_args: object, **_named: object) -> None:
        raise WithheldError("too few items to say anything; evaluate more")

    monkeypatch.setattr(COMPARISON, "pair", withhold)
    work.refused("compare", *pair, *ALL_OUTPUTS, says=("too few items",), code=3)


# --- what stands beside the samples ---------------------------------------------------------------


@pytest.mark.parametrize(
    "results",
    [
        [],
        "text",
        {"config": []},
        {"config": "text"},
        {"configs": ["sums"]},
        {"configs": {"sums": 3}},
        {"n-shot": 3, "versions": [], "task_hashes": "x"},
        {"config": {"random_seed": [1, 2]}},
        {"config": {"random_seed": {"a": 1}}},
        {"lm_eval_version": 4},
        {"lm_eval_version": {"major": 4}},
        {"model_name": {"name": "m"}},
        {"model_name": "\ud800"},
        {"chat_template_sha": "\udfff"},
        {"config": {"limit": 10**400}},
        {"config": {"limit": float("nan")}},
    ],
)
def test_a_strange_results_file_is_no_traceback(work: Workplace, results: object) -> None:
    write_lm_eval(work / "odd", [lm_eval_record(0), lm_eval_record(1)], results=results)
    write_lm_eval(work / "good", [lm_eval_record(0), lm_eval_record(1)])
    for arguments in (
        ("show", "odd"),
        ("compare", "odd", "good", *QUICK, "--json", "map.json"),
        ("convert", "odd", "out.parquet"),
    ):
        result = work.run(*arguments)
        if result.exit_code:
            says = (f"results_{STAMP}.json",)
            assert_one_line(result.exit_code, result.stdout, result.stderr, says, 2, result)


@pytest.mark.parametrize(
    "results",
    [
        {"config_general": []},
        {"config_general": {"model_config": "text"}},
        {"config_general": {"generation_parameters": "text"}},
        {"config_general": {"generation_parameters": {"seed": [1]}}},
        {"config_general": {"model_name": 3}},
    ],
)
def test_a_strange_results_file_of_lighteval_is_no_traceback(
    work: Workplace, results: object
) -> None:
    name = f"details_sums|0_{STAMP}.parquet"
    write_parquet(work / "run" / "details" / "tiny" / STAMP / name, [details(0)])
    (work / "run" / "results" / "tiny").mkdir(parents=True)
    file = work / "run" / "results" / "tiny" / f"results_{STAMP}.json"
    file.write_text(json.dumps(results))
    result = work.run("show", "run")
    if result.exit_code:
        assert_one_line(result.exit_code, result.stdout, result.stderr, (file.name,), 2, result)


def test_a_broken_results_file_is_named(work: Workplace) -> None:
    write_lm_eval(work / "run", [lm_eval_record(0)])
    (work / "run" / f"results_{STAMP}.json").write_text('{"model_name": "tiny"')
    refused_by_every_command(work, "run", (f"results_{STAMP}.json", "not valid JSON"))


def test_a_results_file_that_changed_is_read_again(work: Workplace) -> None:
    for name in ("tiny", "large"):
        write_lm_eval(work / "run", [lm_eval_record(0)], results={"model_name": name})
        assert forgetmap.read("run").models == [name]


def test_reading_two_runs_together_does_not_change_either(work: Workplace) -> None:
    for task, shots in (("sums", 0), ("capitals", 5)):
        results = {"model_name": "tiny", "n-shot": {task: shots}}
        write_lm_eval(work / "runs" / task, [lm_eval_record(0)], task=task, results=results)
    alone = deepcopy(forgetmap.read("runs/sums").meta.settings)
    forgetmap.read("runs")
    assert forgetmap.read("runs/sums").meta.settings == alone


@pytest.mark.parametrize("shots", ["²", "0", "many"])
def test_a_details_file_name_with_odd_shots_is_no_traceback(work: Workplace, shots: str) -> None:
    write_parquet(work / "run" / f"details_lighteval|sums|{shots}_{STAMP}.parquet", [details(0)])
    assert work.worked("show", "run")
