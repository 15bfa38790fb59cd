"""Formats of plain records: what is special about each of them."""

from __future__ import annotations

import pytest

import forgetmap
from forgetmap.readers import humaneval, ifeval, swebench
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
