"""The lm-eval reader on logs that the real harness wrote (tests/data/make)."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import pytest

from forgetmap.api import compare
from forgetmap.readers.framework import ReadOptions
from forgetmap.readers.registry import read
from places import DATA

VERSIONS = ("0.4.3", "0.4.8", "0.4.13")
LOGS = DATA / "lm_eval"


def rows(path, text=True, **wanted):
    found = read(path, ReadOptions(text=text)).data.to_pylist()
    return [row for row in found if all(row[name] == value for name, value in wanted.items())]


def lines(folder, task):
    (file,) = Path(folder).rglob(f"samples_{task}_*.jsonl")
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_score_is_read(version):
    for task, metric in (("fm_capitals", "acc"), ("fm_elements", "acc_norm")):
        expected = {
            line["doc_id"]: float(line[metric]) for line in lines(LOGS / version / "before", task)
        }
        found = rows(LOGS / version / "before", task=task, metric=metric)
        assert {int(row["item_ref"]): row["score"] for row in found} == expected


@pytest.mark.parametrize("version", VERSIONS)
def test_filters_become_metrics_of_their_own(version):
    found = rows(LOGS / version / "after", task="fm_sums")
    assert {row["metric"] for row in found} == {
        "exact_match,strict-match",
        "exact_match,flexible-extract",
    }
    assert len(found) == 24
    strict = [row for row in found if row["metric"] == "exact_match,strict-match"]
    assert {row["status"] for row in strict} == {"ok", "no_answer"}
    assert all(row["answer"] == "[invalid]" for row in strict if row["status"] == "no_answer")


def test_the_three_versions_give_the_same_items():
    """Identity does not depend on the release: old and new logs pair."""
    for task in ("fm_capitals", "fm_elements", "fm_sums"):
        items = [{row["item"] for row in rows(LOGS / v / "before", task=task)} for v in VERSIONS]
        assert items[0] == items[1] == items[2]
        assert None not in items[0]


def test_options_are_counted_per_item():
    assert {row["k"] for row in rows(LOGS / "0.4.13/before", task="fm_capitals")} == {4}
    counts = {row["k"] for row in rows(LOGS / "0.4.13/before", task="fm_elements")}
    assert counts == {2, 3, 4, 5}
    assert {row["k"] for row in rows(LOGS / "0.4.13/before", task="fm_sums")} == {None}


def test_gold_probability_is_the_softmax_of_the_stored_likelihoods():
    found = rows(LOGS / "0.4.13/before", task="fm_capitals", metric="acc")
    by_ref = {row["item_ref"]: row for row in found}
    for line in lines(LOGS / "0.4.13/before", "fm_capitals"):
        values = [float(value) for value, _ in line["filtered_resps"]]
        weights = [math.exp(value) for value in values]
        row = by_ref[str(line["doc_id"])]
        chances = [weight / sum(weights) for weight in weights]
        assert row["gold_probability"] == pytest.approx(chances[int(line["target"])])
        assert row["option_probabilities"] == pytest.approx(chances, rel=1e-6)
        assert row["right_option"] == int(line["target"])
        options = [request["arg_1"].strip() for request in line["arguments"].values()]
        assert row["answer"] == options[values.index(max(values))]
    normed = rows(LOGS / "0.4.13/before", task="fm_capitals", metric="acc_norm")
    for name in ("gold_probability", "option_probabilities", "right_option"):
        assert {row[name] for row in normed} == {None}


def test_option_probabilities_of_one_item_by_hand():
    """The log says -7.857, -0.0335, -5.465, -10.138."""
    (row,) = [
        row
        for row in rows(LOGS / "0.4.13/before", task="fm_capitals", metric="acc")
        if row["item_ref"] == "0"
    ]
    assert row["option_probabilities"] == pytest.approx(
        [0.000398, 0.995206, 0.004355, 0.000041], abs=1e-6
    )


def _scored(tmp_path, resps, target="1", choices=("a", "b", "c")):
    record = {
        "doc_id": 0,
        "doc": {"question": "q", "choices": list(choices)},
        "target": target,
        "arguments": {},
        "resps": [],
        "filtered_resps": [[str(value), "False"] for value in resps],
        "filter": "none",
        "metrics": ["acc"],
        "acc": 1.0,
    }
    path = tmp_path / "samples_t_2025-01-01T00-00-00.jsonl"
    path.write_text(json.dumps(record) + "\n")
    (row,) = rows(tmp_path)
    return row


def test_several_right_options_have_no_right_option(tmp_path):
    row = _scored(tmp_path, [math.log(0.2), math.log(0.3), math.log(0.5)], target="[0, 2]")
    assert row["option_probabilities"] == pytest.approx([0.2, 0.3, 0.5])
    assert (row["right_option"], row["gold_probability"]) == (None, None)


def test_mutual_information_leaves_the_options_with_the_question(tmp_path):
    """The second half are the options without the question; they are not options of their own."""
    values = [math.log(0.1), math.log(0.3), math.log(0.1), -9.0, -0.1, -2.0]
    row = _scored(tmp_path, values)
    assert row["k"] == 3
    assert row["option_probabilities"] == pytest.approx([0.2, 0.6, 0.2])
    assert row["gold_probability"] == pytest.approx(0.6)


def test_likelihoods_that_are_not_finite_give_no_probabilities(tmp_path):
    row = _scored(tmp_path, [-1.0, -math.inf, -2.0])
    assert (row["option_probabilities"], row["right_option"]) == (None, None)


def test_a_degree_is_no_pick_among_options():
    """truthfulqa_mc2 style: acc is a probability; chance correction does not apply."""
    found = rows(LOGS / "0.4.13/before", task="fm_kinds", metric="acc")
    graded = [row for row in found if row["score"] not in (0.0, 1.0)]
    assert graded
    assert all(row["k"] is None and row["gold_probability"] is None for row in graded)


def test_lists_of_truth_values_become_shares_and_other_lists_are_left_out():
    found = rows(LOGS / "0.4.13/before", task="fm_instructions", metric="inst_level_strict_acc")
    expected = {
        str(line["doc_id"]): sum(line["inst_level_strict_acc"]) / len(line["inst_level_strict_acc"])
        for line in lines(LOGS / "0.4.13/before", "fm_instructions")
    }
    assert {row["item_ref"]: row["score"] for row in found} == expected
    samples = read(LOGS / "0.4.13/before")
    assert any("mcc" in text for text in samples.meta.warnings)
    assert not rows(LOGS / "0.4.13/before", metric="mcc")


def test_repeats_within_a_run_are_one_score():
    assert {row["repeat"] for row in rows(LOGS / "0.4.13/before", task="fm_repeats")} == {0}


def test_scores_per_repeat_of_newer_releases_are_repeats(tmp_path):
    record = {
        **{"doc_id": 0, "doc": {"question": "q"}, "target": "1", "resps": [["a", "b", "c"]]},
        **{"filtered_resps": ["a"], "filter": "none", "metrics": ["exact_match"]},
        **{"exact_match": 1.0, "scores_per_repeat": {"exact_match": [1.0, 0.0, 1.0]}},
    }
    log = tmp_path / "samples_t_2026-01-01T00-00-00.000000.jsonl"
    log.write_text(json.dumps(record) + "\n")
    assert [(row["repeat"], row["score"]) for row in rows(log)] == [(0, 1.0), (1, 0.0), (2, 1.0)]


def test_seeds_are_repeats_and_a_rerun_replaces_the_older(tmp_path):
    shutil.copytree(LOGS / "0.4.13/before", tmp_path / "one")
    shutil.copytree(LOGS / "0.4.13/before_seed7", tmp_path / "two")
    samples = read(tmp_path)
    sums = [row for row in samples.data.to_pylist() if row["task"] == "fm_sums"]
    assert len({row["repeat"] for row in sums}) == 2
    shutil.copytree(LOGS / "0.4.13/before", tmp_path / "again")
    for file in (tmp_path / "again").rglob("*2026-*"):
        file.rename(file.with_name(file.name.replace("2026-", "2027-")))
    again = read(tmp_path)
    assert len(again) == len(samples)
    assert any("older runs" in text for text in again.meta.warnings)
    assert {row["run"][:4] for row in again.data.to_pylist() if row["task"] == "fm_kinds"} == {
        "2027"
    }


def test_reordered_and_missing_items_pair_by_content():
    result = compare(LOGS / "0.4.13/before", LOGS / "0.4.13/after", draws=500)
    assert result.tasks["fm_reordered"].n == 12
    assert result.coverage.only_before == 2
    assert result.coverage.conflicts == 0
    counts = result.tasks["fm_reordered"].counts
    assert (counts.n11, counts.n10, counts.n01, counts.n00) == (6, 4, 1, 1)
    assert (result.tasks["fm_capitals"].counts.n10, result.tasks["fm_capitals"].counts.n01) == (
        4,
        3,
    )


def test_a_limited_run_pairs_on_what_it_has():
    result = compare(LOGS / "0.4.13/before", LOGS / "0.4.13/after_limit", draws=500)
    assert result.total.n == 6
    assert any(confound.setting == "limit" for confound in result.confounds)


def test_the_chat_template_is_named_as_a_confound():
    result = compare(LOGS / "0.4.13/before", LOGS / "0.4.13/after_chat", draws=500)
    assert {"chat template", "task hash"} <= {confound.setting for confound in result.confounds}
    assert result.tasks["fm_sums"].n == 12
    assert result.settings.metric["fm_sums"] == "exact_match,flexible-extract"


def test_without_the_results_file_the_folder_names_the_model(tmp_path):
    shutil.copytree(LOGS / "0.4.13/before/tiny-before", tmp_path / "my-model")
    for file in tmp_path.rglob("results_*.json"):
        file.unlink()
    samples = read(tmp_path)
    assert samples.models == ["my-model"]
    assert samples.settings == {}


def test_a_stripped_document_falls_back_to_its_hash_and_then_to_its_index(tmp_path):
    (file,) = (LOGS / "0.4.13/before").rglob("samples_fm_capitals_*")
    for name, gone in (("hash", ["doc"]), ("index", ["doc", "doc_hash"])):
        records = [json.loads(line) for line in file.read_text().splitlines()]
        text = "\n".join(
            json.dumps({key: value for key, value in record.items() if key not in gone})
            for record in records
        )
        (tmp_path / name).mkdir()
        (tmp_path / name / file.name).write_text(text)
    assert None not in {row["item"] for row in rows(tmp_path / "hash")}
    assert {row["item"] for row in rows(tmp_path / "index")} == {None}
    result = compare(tmp_path / "index", tmp_path / "index", draws=500)
    assert result.coverage.identity == "index"


def test_text_is_loaded_only_on_request():
    for name in ("prompt", "target", "answer", "response"):
        assert {row[name] for row in rows(LOGS / "0.4.13/before", text=False)} == {None}
    sums = rows(LOGS / "0.4.13/before", task="fm_sums")
    assert all(row["prompt"].startswith("Question: What is") for row in sums)
    assert all(row["response"] for row in sums)


def test_sampled_runs_with_three_seeds_measure_the_noise():
    folder = DATA / "lm_eval_sampled"
    result = compare(folder / "before", folder / "after", draws=1000)
    assert (result.before.runs, result.after.runs) == (3, 3)
    assert result.total.lost.basis == "repeats"
    assert result.total.noise_floor > 0


def test_prompts_that_differ_are_a_confound(tmp_path):
    """The same items asked in other words, in one task of three: told, with their number."""
    after = tmp_path / "after"
    shutil.copytree(LOGS / "0.4.13" / "after", after)
    (file,) = after.rglob("samples_fm_capitals_*.jsonl")
    changed = [json.loads(line) for line in file.read_text().splitlines()]
    for line in changed[:5]:
        line["prompt_hash"] = line["prompt_hash"][::-1]
    file.write_text("".join(json.dumps(line) + "\n" for line in changed))
    told = compare(LOGS / "0.4.13" / "before", after).confounds
    found = [confound for confound in told if confound.setting.startswith("prompt")]
    assert [(one.setting, one.after) for one in found] == [
        ("prompt (fm_capitals)", f"another in 5 of {len(changed)} items")
    ]
    same = compare(LOGS / "0.4.13" / "before", LOGS / "0.4.13" / "after").confounds
    assert not [confound for confound in same if confound.setting.startswith("prompt")]


def test_a_log_of_several_batches_keeps_every_score_with_its_line(tmp_path, monkeypatch):
    monkeypatch.setattr("forgetmap.readers.lm_eval.BATCH_ROWS", 5)
    lines_of_log = []
    for number in range(20):
        scores = {"acc": float(number % 2), "acc_norm": 0.5, "f1": [number, 1]}
        metrics = ["f1"] if number % 7 == 3 else ["acc", "acc_norm", "f1"]
        answers = [["-1.0", "False"], ["-2.0", "True"]]
        record = {"doc_id": number, "doc": {"question": f"q{number}"}, "target": "0"}
        record |= {"resps": [], "filtered_resps": answers, "filter": "none", "metrics": metrics}
        lines_of_log.append(json.dumps(record | {name: scores[name] for name in metrics}))
    log = tmp_path / "samples_t_2026-01-01T00-00-00.000000.jsonl"
    log.write_text("\n".join(lines_of_log))
    scored = [number for number in range(20) if number % 7 != 3]
    found = rows(log, text=False)
    assert [(row["item_ref"], row["source"], row["metric"], row["score"]) for row in found] == [
        (str(number), f"{log.name}:{number + 1}", metric, score)
        for number in scored
        for metric, score in (("acc", float(number % 2)), ("acc_norm", 0.5))
    ]
    assert {row["k"] for row in found if row["metric"] == "acc"} == {2}
    assert {row["gold_probability"] is None for row in found if row["metric"] == "acc"} == {False}
    graded = [row for row in found if row["metric"] == "acc_norm"]
    assert {(row["k"], row["gold_probability"]) for row in graded} == {(None, None)}
