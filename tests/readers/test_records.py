"""Formats of plain records: what is special about each of them."""

from __future__ import annotations

import pytest

import forgetmap
from forgetmap.readers import (
    alpaca_eval,
    bigcodebench,
    evalplus,
    humaneval,
    ifeval,
    livecodebench,
    math_harness,
    nemo_skills,
    swebench,
    tau_bench,
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
