"""Formats of plain records: what is special about each of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import forgetmap
from forgetmap.readers import (
    alpaca_eval,
    bigcodebench,
    evalplus,
    evalscope,
    humaneval,
    ifeval,
    livecodebench,
    lm_eval,
    lmms_eval,
    math_harness,
    nemo_skills,
    olmes,
    swebench,
    tau_bench,
    terminal_bench,
    verl,
)
from golden import LOGS, rows, write_files
from malformed import edit
from places import DATA


def told(path):
    return "\n".join(forgetmap.read(path).meta.warnings)


def scores(found):
    return [row["score"] for row in found]


def edited(name, file, place, change, folder):
    """A golden log with one value changed."""
    files = dict(LOGS[name].load("before"))
    edit(files, file, place, lambda value, _chance: change(value))
    return write_files(files, folder)


# --- IFEval ---------------------------------------------------------------------------------------


def test_ifeval_has_strict_and_loose_verdicts_of_the_same_items():
    found = rows(ifeval, DATA / "ifeval/before")
    assert {row["metric"] for row in found} == {
        f"{level}_level_{mode}_acc" for level in ("prompt", "inst") for mode in ("strict", "loose")
    }
    assert len({row["item"] for row in found}) == 5
    assert {(row["repeat"], row["model"], row["task"]) for row in found} == {
        (0, "before", "ifeval")
    }


def test_ifeval_gives_the_share_of_instructions_that_were_followed():
    found = rows(ifeval, DATA / "ifeval/after", metric="inst_level_strict_acc")
    assert scores(found) == [1, 0.5, 1, 0.5, 1]


@pytest.mark.parametrize(
    ("field", "value"),
    [("follow_all_instructions", False), ("follow_instruction_list", [True, True])],
)
def test_ifeval_records_that_contradict_themselves_are_refused(field, value, tmp_path):
    log = edited("ifeval", "*_strict.jsonl", (0, field), lambda _: value, tmp_path)
    with pytest.raises(forgetmap.InputError, match=r"strict\.jsonl:1: not an IFEval result"):
        forgetmap.read(log)


# --- HumanEval ------------------------------------------------------------------------------------


def test_humaneval_completions_are_repeats_and_a_timeout_is_a_failure():
    found = rows(humaneval, DATA / "humaneval/after.jsonl_results.jsonl", text=True)
    timed_out, second = (row for row in found if row["item_ref"] == "HumanEval/3")
    assert (timed_out["repeat"], timed_out["score"], timed_out["answer"]) == (0, 0, "timed out")
    assert (second["repeat"], second["score"], second["task"]) == (1, 1, "humaneval")


# --- SWE-bench ------------------------------------------------------------------------------------


def test_swebench_summaries_tell_errors_from_empty_patches(tmp_path):
    found = {row["item_ref"]: row for row in rows(swebench, DATA / "swebench/before", text=True)}
    empty, error = found["sympy__sympy-20590"], found["sympy__sympy-21055"]
    assert (empty["score"], empty["status"], empty["answer"]) == (0, "no_answer", "empty_patch")
    assert (error["score"], error["status"], error["answer"]) == (None, "error", "error")
    warnings = told(DATA / "swebench/before")
    assert "SWE-bench counts it as not resolved (1 records)" in warnings
    assert "1 instances have no prediction" in warnings


def test_swebench_counts_are_held_against_its_lists(tmp_path):
    log = edited("swebench", "*", ("resolved_ids",), lambda ids: ids[1:], tmp_path)
    assert "resolved: the harness counted 3 answers, 2 are here" in told(log)


def test_swebench_instances_that_stand_twice_are_refused(tmp_path):
    log = edited("swebench", "*", ("unresolved_ids", 0), lambda _: "sympy__sympy-21055", tmp_path)
    with pytest.raises(forgetmap.InputError, match="'sympy__sympy-21055' stands twice"):
        forgetmap.read(log)


def test_swebench_reports_beside_a_summary_are_not_read_again(tmp_path):
    log = LOGS["swebench"].write("before", tmp_path)
    LOGS["swebench_tree"].write("before", log)
    samples = forgetmap.read(log)
    assert len(samples) == samples.meta.records == 6
    assert "not read" not in told(log)


def test_swebench_failures_of_the_infrastructure_have_no_score(tmp_path):
    files = dict(LOGS["swebench"].load("before"))
    edit(files, "*", ("unresolved_ids",), lambda ids, _chance: [*ids, "astropy__astropy-1"])
    (name,) = files
    summary = json.loads(files[name]) | {"infra_failure_ids": ["astropy__astropy-1"]}
    log = write_files({name: json.dumps(summary).encode()}, tmp_path)
    (row,) = rows(swebench, log, text=True, item_ref="astropy__astropy-1")
    assert (row["score"], row["status"], row["answer"]) == (None, "error", "infra_failure")


# --- LiveCodeBench --------------------------------------------------------------------------------


def test_livecodebench_samples_are_repeats_never_the_worst_of_them():
    found = rows(livecodebench, DATA / "livecodebench/before", item_ref="abc302_a", text=True)
    assert [(row["repeat"], row["score"]) for row in found] == [(0, 1), (1, 0)]
    assert [row["answer"] for row in found] == [None, "Wrong Answer"]
    samples = forgetmap.read(DATA / "livecodebench/before")
    assert samples.models == ["tiny-before"]
    assert samples.settings["generation"] == {"codegeneration": {"temperature": 0.2}}


def test_livecodebench_says_where_pass_at_1_is_another(tmp_path):
    log = edited("livecodebench", "*", (0, "pass@1"), lambda _: 0.5, tmp_path)
    assert "pass@1 is not the share of graded_list (1 records)" in told(log)


def test_livecodebench_problems_without_samples_are_counted(tmp_path):
    log = edited("livecodebench", "*", (0, "graded_list"), lambda _: [], tmp_path)
    assert "1 records hold no answer and were left out" in told(log)
    assert forgetmap.read(log).meta.left_out == 1


# --- tau-bench ------------------------------------------------------------------------------------


def test_tau_bench_trials_that_broke_have_no_score_but_keep_their_item():
    found = rows(tau_bench, DATA / "tau_bench/before", item_ref="3", text=True)
    assert [(row["repeat"], row["score"], row["status"]) for row in found] == [
        (0, 1, "ok"),
        (1, None, "error"),
    ]
    assert len({row["item"] for row in found}) == 1
    assert found[1]["answer"] == "the server did not answer"


def test_tau_bench_settings_come_from_the_name():
    samples = forgetmap.read(DATA / "tau_bench/before")
    assert samples.models == ["tiny-before"]
    assert samples.settings == {
        "agent": {"tau-bench": "tool-calling"},
        "generation": {"tau-bench": {"temperature": "0.0"}},
        "user": {"tau-bench": "tiny-user-llm"},
    }


# --- BigCodeBench ---------------------------------------------------------------------------------


def test_bigcodebench_is_not_taken_for_evalplus():
    assert not evalplus.sniff(DATA / "bigcodebench")
    assert not bigcodebench.sniff(DATA / "evalplus")
    found = rows(bigcodebench, DATA / "bigcodebench/before", item_ref="BigCodeBench/2", text=True)
    assert [(row["score"], row["answer"]) for row in found] == [(0, "timeout"), (0, "fail")]
    assert {(row["model"], row["task"]) for row in found} == {
        ("tiny-before", "bigcodebench-complete")
    }


def test_bigcodebench_is_held_against_its_pass_at_k(tmp_path):
    assert not told(LOGS["bigcodebench"].write("before", tmp_path / "good"))
    log = edited("bigcodebench", "*_at_k.json", ("pass@1",), lambda _: 0.9, tmp_path / "changed")
    assert "pass@1: the harness says 0.9 on average, its answers give 0.625" in told(log)


# --- NeMo-Skills ----------------------------------------------------------------------------------


def test_nemo_skills_seeds_are_repeats_and_a_missing_answer_is_told():
    log = DATA / "nemo_skills/before"
    found = rows(nemo_skills, log, metric="symbolic_correct", task="sums", model="tiny-before")
    assert sorted((row["repeat"], row["score"]) for row in found) == [
        *[(0, 0), (0, 1), (0, 1), (0, 1), (0, 1)],
        *[(1, 0), (1, 1), (1, 1), (1, 1), (1, 1)],
    ]
    (unanswered,) = (row for row in found if row["status"] == "no_answer")
    assert (unanswered["repeat"], unanswered["score"]) == (0, 0)


def test_nemo_skills_judgements_without_a_verdict_have_no_score():
    found = rows(nemo_skills, DATA / "nemo_skills/before", metric="judge_correct")
    assert [row["status"] for row in found].count("unscored") == 1
    assert sum(row["score"] or 0 for row in found) == 7


def test_nemo_skills_is_held_against_its_metrics(tmp_path):
    place = ("sums", "pass@1[avg-of-2]", "num_entries")
    log = edited("nemo_skills", "*metrics.json", place, lambda _: 6, tmp_path)
    assert "output-rs0.jsonl: the harness counted 6 answers, 5 are here" in told(log)


# --- math-evaluation-harness ----------------------------------------------------------------------


def test_math_harness_answers_are_repeats():
    found = rows(math_harness, DATA / "math_harness/before", item_ref="3", text=True)
    assert [(row["repeat"], row["score"], row["status"], row["answer"]) for row in found] == [
        (0, 1, "ok", "6"),
        (1, 0, "no_answer", ""),
    ]
    assert not told(DATA / "math_harness/before")
    samples = forgetmap.read(DATA / "math_harness/before")
    assert samples.settings["template"] == {"sums": "cot"}


def test_math_harness_is_held_against_its_metrics(tmp_path):
    log = edited("math_harness", "*_metrics.json", ("num_scores",), lambda _: 12, tmp_path)
    assert "the harness counted 12 answers, 10 are here" in told(log)


def test_math_harness_accuracy_is_held_against_single_answers(tmp_path):
    files = dict(LOGS["math_harness"].load("before"))
    for field in ("pred", "score", "code"):
        for line in range(5):
            edit(files, "*.jsonl", (line, field), lambda values, _chance: values[:1])
    edit(files, "*_metrics.json", ("num_scores",), lambda _value, _chance: 5)
    assert not told(write_files(files, tmp_path / "good"))
    edit(files, "*_metrics.json", ("acc",), lambda _value, _chance: 60.0)
    log = write_files(files, tmp_path / "other")
    assert "acc: the harness says 0.6 on average, its answers give 0.8" in told(log)


def test_runs_with_other_settings_are_not_repeats(tmp_path):
    log = LOGS["math_harness"].write("before", tmp_path)
    (file,) = log.rglob("*.jsonl")
    file.with_name("test_pal_-1_seed0_t0.6_s0_e-1.jsonl").write_bytes(file.read_bytes())
    with pytest.raises(
        forgetmap.InputError, match="sums was run with other settings than in test_"
    ):
        forgetmap.read(log)


# --- AlpacaEval -----------------------------------------------------------------------------------


def test_alpaca_eval_preferences_become_scores_and_draws_are_halves():
    before, after = (
        rows(alpaca_eval, DATA / f"alpaca_eval/{side}") for side in ("before", "after")
    )
    assert scores(before) == pytest.approx([1, 0.8, 0.2, 0.5, 0.1, None])
    assert scores(after) == pytest.approx([1, 0.3, 0.9, 0.5, 0, 1])
    assert before[-1]["status"] == "unscored"
    samples = forgetmap.read(DATA / "alpaca_eval/before")
    assert samples.models == ["tiny-before"]
    assert samples.settings["baseline"] == {"alpaca_eval": "tiny-baseline"}
    assert not samples.meta.warnings


def test_alpaca_eval_is_held_against_its_leaderboard(tmp_path):
    log = edited("alpaca_eval", "*.json", (0, "preference"), lambda _: 1.0, tmp_path)
    assert "preference: the harness says 0.52 on average, its answers give 0.32" in told(log)


@pytest.mark.parametrize("preference", [0.5, 3, -1])
def test_alpaca_eval_refuses_what_is_no_preference(preference, tmp_path):
    log = edited("alpaca_eval", "*.json", (1, "preference"), lambda _: preference, tmp_path)
    with pytest.raises(forgetmap.InputError, match=r"annotations\.json\[1\]: not an AlpacaEval"):
        forgetmap.read(log)


# --- lmms-eval ------------------------------------------------------------------------------------


def test_lmms_eval_items_with_the_same_question_and_hash_stay_apart():
    found = rows(lmms_eval, DATA / "lmms_eval/before", metric="pope_accuracy", text=True)
    assert scores(found) == [1, 1, 1, 0]
    assert found[0]["prompt"] == found[2]["prompt"]
    assert len({row["item"] for row in found}) == 4


def test_lmms_eval_is_not_taken_for_lm_eval():
    for file in (DATA / "lmms_eval/before").rglob("*.jsonl"):
        assert lmms_eval.sniff(file)
        assert not lm_eval.sniff(file)
    samples = forgetmap.read(DATA / "lmms_eval/before")
    assert samples.models == ["tiny/before"]
    assert samples.settings["few-shot examples"] == {"tiny_pope": 0, "tiny_signs": 0}
    assert not samples.meta.warnings


def test_lmms_eval_values_that_are_not_scores_are_told_and_counted(tmp_path):
    log = edited(
        "lmms_eval", "*signs.jsonl", (0, "exact_match"), lambda _: {"answer": "A"}, tmp_path
    )
    assert "tiny_signs: exact_match not read: no score of single items" in told(log)
    assert forgetmap.read(log).meta.left_out == 1


def test_lmms_eval_filters_are_not_repeats(tmp_path):
    log = LOGS["lmms_eval"].write("before", tmp_path)
    (file,) = log.rglob("*signs.jsonl")
    file.write_text(2 * file.read_text())
    found = rows(lmms_eval, log, task="tiny_signs")
    assert {(row["metric"], row["repeat"]) for row in found} == {
        ("exact_match", 0),
        ("exact_match,filter 2", 0),
    }
    assert "the harness counted 3 answers, 6 are here" in told(log)


@pytest.mark.parametrize("name", ["lmms_eval", "evalscope"])
def test_the_newest_run_of_a_task_counts(name, tmp_path):
    log = LOGS[name].write("before", tmp_path)
    whole = len(forgetmap.read(log))
    for file in sorted(log.rglob("*.json*")):
        later = Path(str(file).replace("20260102_", "20260203_"))
        later.parent.mkdir(parents=True, exist_ok=True)
        later.write_bytes(file.read_bytes())
    assert len(forgetmap.read(log)) == whole
    assert "older runs of the same task and seed were set aside" in told(log)


# --- OLMES ----------------------------------------------------------------------------------------


def test_olmes_gives_the_metric_that_counts_and_the_number_of_options():
    found = rows(olmes, DATA / "olmes/before", metric="primary_score")
    assert [(row["task"], row["score"], row["k"]) for row in found] == [
        *[("tiny_mc", 1, 3), ("tiny_mc", 1, 3), ("tiny_mc", 0, 3), ("tiny_mc", 1, 3)],
        *[("tiny_gen", 1, None), ("tiny_gen", 1, None), ("tiny_gen", 0, None)],
    ]
    metrics = {row["metric"] for row in rows(olmes, DATA / "olmes/before", task="tiny_mc")}
    assert metrics == {"primary_score", "acc_raw", "acc_per_token", "acc_per_char"}


def test_olmes_without_requests_pairs_by_the_native_id(tmp_path):
    log = LOGS["olmes"].write("before", tmp_path)
    for file in log.glob("*requests.jsonl"):
        file.unlink()
    found = rows(olmes, log, metric="primary_score", task="tiny_mc")
    assert [(row["item"], row["item_ref"]) for row in found] == [
        (None, f"mc-{number}") for number in range(1, 5)
    ]


def test_olmes_is_held_against_its_metrics(tmp_path):
    files = dict(LOGS["olmes"].load("before"))
    edit(files, "*_mc-metrics.json", ("metrics", "primary_score"), lambda _value, _chance: 0.5)
    edit(files, "*_mc-metrics.json", ("num_instances",), lambda _value, _chance: 9)
    warnings = told(write_files(files, tmp_path))
    assert "primary_score: the harness says 0.5 on average, its answers give 0.75" in warnings
    assert "the harness counted 9 answers, 4 are here" in warnings


# --- EvalScope ------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["before", "old/before"])
def test_evalscope_answers_of_one_sample_are_repeats(side):
    found = rows(evalscope, DATA / "evalscope" / side, item_ref="2", text=True)
    assert [(row["repeat"], row["score"], row["answer"]) for row in found] == [
        (0, 1, "8"),
        (1, 0, "7"),
    ]
    assert {(row["model"], row["task"]) for row in found} == {("tiny-before", "sums_main")}


def test_evalscope_is_held_against_its_report(tmp_path):
    assert not told(LOGS["evalscope"].write("before", tmp_path / "good"))
    place = ("metrics", 0, "categories", 0, "subsets", 0, "num")
    log = edited("evalscope", "*sums.json", place, lambda _: 9, tmp_path / "changed")
    assert "the harness counted 9 answers, 8 are here" in told(log)


# --- Terminal-Bench -------------------------------------------------------------------------------


def test_terminal_bench_trials_without_a_verdict_have_no_score():
    log = DATA / "terminal_bench/before"
    found = rows(terminal_bench, log, text=True)
    told_of = {(row["item_ref"], row["repeat"]): row for row in found}
    broken, cut = told_of["build-c", 1], told_of["fix-git", 1]
    assert (broken["score"], broken["status"]) == (None, "error")
    assert broken["answer"] == "unknown_agent_error"
    assert (cut["score"], cut["status"]) == (0, "truncated")
    assert "Terminal-Bench counts it as not resolved (1 records)" in told(log)
    samples = forgetmap.read(log)
    assert samples.models == ["tiny-before"]
    assert samples.settings["agent"] == {"tiny-core": "terminus"}


def test_terminal_bench_is_held_against_its_accuracy(tmp_path):
    log = edited("terminal_bench", "*metadata.json", ("accuracy",), lambda _: 0.9, tmp_path)
    assert "resolved: the harness says 0.9 on average, its answers give 0.5" in told(log)


def test_terminal_bench_trials_are_read_where_there_is_no_list_of_them(tmp_path):
    log = LOGS["terminal_bench"].write("before", tmp_path)
    run = json.loads((log / "results.json").read_text())
    for trial in run["results"]:
        folder = log / trial["task_id"] / trial["trial_name"]
        folder.mkdir(parents=True)
        (folder / "results.json").write_text(json.dumps(trial))
    listed = forgetmap.read(log)
    assert len(listed) == listed.meta.records == 8
    (log / "results.json").unlink()
    found = rows(terminal_bench, log)
    assert len(found) == 8
    assert {(row["model"], row["task"]) for row in found} == {("tiny-before", "tiny-core")}


# --- verl -----------------------------------------------------------------------------------------


def test_verl_steps_are_models_and_answers_to_one_prompt_are_repeats():
    found = rows(verl, DATA / "verl/before", metric="acc")
    assert [(row["repeat"], row["score"]) for row in found] == [
        *[(0, 1), (1, 1), (0, 1), (1, 1), (0, 1), (1, 0), (0, 0), (1, 0)],
    ]
    assert scores(rows(verl, DATA / "verl/before", metric="score"))[-2:] == [-1, -1]
    assert forgetmap.read(DATA / "verl").models == ["step 0", "step 40"]


# --- Open LLM Leaderboard -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("leaderboard", "harness", "changed"),
    [("lm_eval_list", "lm_eval_old", ()), ("lighteval_2023", "lighteval_flat", ("model", "run"))],
)
def test_details_of_the_leaderboard_say_what_the_harness_says(
    leaderboard, harness, changed, tmp_path
):
    found, original = (
        rows(LOGS[name].reader, LOGS[name].write("before", tmp_path / name), True)
        for name in (leaderboard, harness)
    )
    left_aside = {"source", "prompt_hash", *changed}
    tasks = {row["task"] for row in found}
    assert [{name: row[name] for name in row.keys() - left_aside} for row in found] == [
        {name: row[name] for name in row.keys() - left_aside}
        for row in original
        if row["task"] in tasks
    ]


def test_the_folder_of_the_leaderboard_names_the_model(tmp_path):
    samples = forgetmap.read(LOGS["lighteval_2023"].write("before", tmp_path))
    assert samples.models == ["tiny/before"]
    assert samples.settings["few-shot examples"] == {"fm_capitals": 0}
