"""The HELM reader on hand-made runs in the form that HELM writes."""

from __future__ import annotations

import json
import shutil

import pytest

from forgetmap.api import compare
from forgetmap.base.errors import InputError
from forgetmap.readers import helm
from forgetmap.readers.framework import ReadOptions
from places import DATA

LOGS = DATA / "helm"
CAPITALS = "capitals:method=multiple_choice_joint"
STATS, STATE, SPEC = "per_instance_stats.json", "scenario_state.json", "run_spec.json"


def load(path, text=True):
    return helm.read(path, ReadOptions(text=text))


def rows(path, text=True, **wanted):
    found = load(path, text).data.to_pylist()
    return [row for row in found if all(row[name] == value for name, value in wanted.items())]


@pytest.fixture
def run(tmp_path):
    """A copy of one run whose files can be changed: `run(file, change)`."""
    folder = tmp_path / "suite" / "capitals"
    shutil.copytree(LOGS / "before" / "capitals", folder)

    def change(name, function):
        content = json.loads((folder / name).read_text())
        changed = function(content)
        (folder / name).write_text(json.dumps(content if changed is None else changed))

    change.folder = folder
    return change


def test_accuracies_are_read_and_nothing_else():
    found = {(row["task"], row["metric"]) for row in rows(LOGS / "before")}
    assert found == {
        (CAPITALS, "exact_match"),
        (CAPITALS, "quasi_exact_match"),
        (f"{CAPITALS}/misspellings", "exact_match"),
        (f"{CAPITALS}/misspellings", "quasi_exact_match"),
        ("sums", "f1_score"),
        ("sums", "final_number_exact_match"),
    }


@pytest.mark.parametrize(
    ("name", "read"),
    [
        *((name, True) for name in ("exact_match", "quasi_prefix_exact_match", "f1_score")),
        *((name, True) for name in ("math_equiv", "math_equiv_chain_of_thought", "pass")),
        *((name, True) for name in ("ifeval_strict_accuracy", "chain_of_thought_correctness")),
        *((name, False) for name in ("exact_match@5", "num_output_tokens", "training_co2_cost")),
        *((name, False) for name in ("logprob", "finish_reason_stop", "inference_runtime")),
        *((name, False) for name in ("max_prob", "predicted_index", "prompt_truncated")),
    ],
)
def test_which_statistics_are_accuracies(name, read):
    assert bool(helm.ACCURACY.fullmatch(name)) == read


def test_only_the_test_split_counts():
    found = rows(LOGS / "before", task=CAPITALS, metric="exact_match")
    assert [(row["item_ref"], row["score"]) for row in found] == [
        *[("id0", 1), ("id1", 1), ("id2", 1), ("id3", 0), ("id4", 1)]
    ]
    assert any(
        "1 answers of the split valid" in text for text in load(LOGS / "before").meta.warnings
    )


def test_without_a_test_split_the_other_counts(run):
    for name in (STATS, STATE):
        text = (run.folder / name).read_text()
        (run.folder / name).write_text(text.replace('"split":"test"', '"split":"valid"'))
    assert len(rows(run.folder, task=CAPITALS, metric="exact_match")) == 6


def test_perturbed_copies_are_other_items():
    plain = rows(LOGS / "before", task=CAPITALS, metric="exact_match")
    copies = rows(LOGS / "before", task=f"{CAPITALS}/misspellings", metric="exact_match")
    assert [(row["item_ref"], row["score"]) for row in copies] == [
        ("id0", 1),
        ("id1", 0),
        ("id2", 1),
    ]
    assert not {row["item"] for row in plain} & {row["item"] for row in copies}


def test_two_perturbations_of_one_name_stay_apart(run):
    def again(entries):
        entries.append(json.loads(json.dumps(entries[-1]).replace('"prob": 0.1', '"prob": 0.5')))

    run(STATS, again)
    run(STATE, lambda state: again(state["request_states"]))
    found = rows(run.folder, task=f"{CAPITALS}/misspellings", metric="exact_match")
    assert len({row["item"] for row in found}) == 4


def test_trials_are_repeats_and_two_lists_of_one_answer_are_one():
    found = rows(LOGS / "before", task="sums", metric="final_number_exact_match")
    assert len(found) == 8
    assert [(row["repeat"], row["score"]) for row in found if row["item_ref"] == "id2"] == [
        *[(0, 0), (1, 1)]
    ]


def test_options_and_texts():
    (row,) = rows(LOGS / "before", task=CAPITALS, metric="exact_match", item_ref="id3")
    assert (row["k"], row["target"], row["answer"], row["response"]) == (4, "Suva", "Nuku", " C")
    assert row["prompt"].startswith("Question: What is the capital of Fiji?")
    assert {row["k"] for row in rows(LOGS / "before", task="sums")} == {None}
    assert {row["prompt"] for row in rows(LOGS / "before", text=False)} == {None}
    assert load(LOGS / "before").models == ["example/base"]


def test_settings():
    settings = load(LOGS / "before").settings
    assert settings["few-shot examples"] == {CAPITALS: 5, "sums": 0}
    assert settings["limit"] == {CAPITALS: 10}
    assert settings["generation"]["sums"]["max_tokens"] == 20
    assert settings["prompt template"] == load(LOGS / "after").settings["prompt template"]


def test_compare():
    chosen = {"sums": "final_number_exact_match"}
    result = compare(load(LOGS / "before"), load(LOGS / "after"), metric=chosen, draws=200)
    counts = result.tasks[CAPITALS].counts
    assert (counts.n11, counts.n10, counts.n01, counts.n00) == (2, 2, 1, 0)
    assert (result.coverage.identity, result.confounds) == ("content", [])


def test_a_failed_request_has_no_score(run):
    def fail(state):
        state["request_states"][0]["result"] = {"success": False, "completions": []}
        del state["request_states"][1]["result"]
        state["request_states"][3]["result"]["completions"][0]["text"] = " "

    run(STATE, fail)
    found = rows(run.folder, task=CAPITALS, metric="exact_match")
    assert [(row["score"], row["status"]) for row in found] == [
        *[(None, "error"), (None, "error"), (1, "ok"), (0, "no_answer"), (1, "ok")]
    ]


def test_a_statistic_that_was_dropped_is_no_zero(run):
    """HELM drops NaN, and leaves the mean out where nothing was counted."""

    def drop(entries):
        entries[0]["stats"] = [s for s in entries[0]["stats"] if "exact" not in s["name"]["name"]]
        for stat in entries[1]["stats"]:
            if stat["name"]["name"] == "exact_match":
                stat.update(count=0, sum=0)
                del stat["mean"]
        del entries[2]

    run(STATS, drop)
    found = rows(run.folder, task=CAPITALS, metric="exact_match")
    assert {row["item_ref"]: (row["score"], row["status"]) for row in found} == {
        **dict.fromkeys(("id0", "id1", "id2"), (None, "unscored")),
        **{"id3": (0, "ok"), "id4": (1, "ok")},
    }


def test_options_asked_one_by_one_are_one_item(run):
    def separate(state):
        state["request_states"] = [
            entry | {"reference_index": index, "request_mode": "original"}
            for entry in state["request_states"]
            for index in range(4)
        ]
        state["request_states"][1]["result"]["success"] = False

    run(STATE, separate)
    found = rows(run.folder, task=CAPITALS, metric="exact_match")
    assert [row["status"] for row in found] == ["error", "ok", "ok", "ok", "ok"]
    assert {(row["k"], row["response"]) for row in found if row["score"] is not None} == {(4, None)}


def test_a_degree_is_no_pick_among_options(run):
    def tie(entries):
        for stat in entries[0]["stats"]:
            stat.update(mean=0.5)

    run(STATS, tie)
    found = rows(run.folder, task=CAPITALS, metric="exact_match")
    assert [(row["score"], row["k"]) for row in found][:2] == [(0.5, None), (1, 4)]


def test_without_the_state_the_ids_pair(run):
    (run.folder / STATE).unlink()
    samples = load(run.folder)
    assert samples.data["item"].null_count == len(samples)
    assert samples.models == ["example/base"]
    assert any("pair by the ids" in text for text in samples.meta.warnings)


def test_without_the_spec_the_state_names_the_model(run):
    (run.folder / SPEC).unlink()
    assert load(run.folder).models == ["example/base"]
    (run.folder / STATE).unlink()
    with pytest.raises(InputError, match="the model is not known"):
        load(run.folder)


def test_a_later_suite_replaces_and_a_run_without_scores_is_told(run, tmp_path):
    before = len(load(tmp_path))
    shutil.copytree(run.folder, tmp_path / "suite2" / "capitals")
    samples = load(tmp_path)
    assert len(samples) == before
    assert any("older runs" in text for text in samples.meta.warnings)
    (run.folder / STATS).unlink()
    assert any("1 runs have no" in text for text in load(tmp_path).meta.warnings)
    assert helm.sniff(run.folder)
    with pytest.raises(InputError, match="as far as scoring"):
        load(run.folder)


def test_no_accuracy_at_all(run):
    text = (run.folder / STATS).read_text()
    (run.folder / STATS).write_text(text.replace("exact_match", "toxicity"))
    with pytest.raises(InputError, match="no run has an accuracy"):
        load(run.folder)


BAD = {
    "instance_id a number": (STATS, lambda found: found[2].update(instance_id=3), r"\[2\]"),
    "no trial": (STATS, lambda found: found[2].pop("train_trial_index"), r"\[2\]"),
    "trial a text": (STATS, lambda found: found[2].update(train_trial_index="0"), r"\[2\]"),
    "no stats": (STATS, lambda found: found[2].update(stats=None), r"\[2\]"),
    "a stat without name": (STATS, lambda found: found[2]["stats"].append({}), r"\[2\]"),
    "mean a text": (*(STATS, lambda found: found[2]["stats"][6].update(mean="much"), r"\[2\]"),),
    "two values": (
        STATS,
        lambda found: found[2]["stats"].append(found[2]["stats"][6] | {"mean": 0.0}),
        "two values of exact_match",
    ),
    "perturbation without name": (STATS, lambda found: found[7].update(perturbation={}), r"\[7\]"),
    "an entry that is a number": (STATS, lambda _found: [1], r"\[0\]"),
    "not a list": (STATS, lambda _found: {}, "a list"),
    "an instance that was not asked": (
        *(STATS, lambda found: found[2].update(instance_id="id99"), "lacks id99"),
    ),
    "no instance": (STATE, lambda found: found["request_states"][1].pop("instance"), r"\[1\]"),
    "input a text": (
        *(STATE, lambda found: found["request_states"][1]["instance"].update(input="x"), r"\[1\]"),
    ),
    "no states": (STATE, lambda found: found.pop("request_states"), "a list"),
    "no adapter": (SPEC, lambda found: found.pop("adapter_spec"), SPEC),
    "spec a list": (SPEC, lambda _found: [], SPEC),
}


@pytest.mark.parametrize(("name", "change", "told"), BAD.values(), ids=BAD)
def test_what_cannot_be_trusted_is_named(name, change, told, run):
    def apply(content):
        changed = change(content)
        return changed if isinstance(changed, list) or changed == {} else content

    run(name, apply)
    with pytest.raises(InputError, match=told):
        load(run.folder)


@pytest.mark.parametrize("name", [STATS, STATE, SPEC])
@pytest.mark.parametrize("content", ["", "nonsense", "[", "\x00", "3", '"x"', "null"])
def test_broken_files_are_named(name, content, run):
    (run.folder / name).write_text(content)
    with pytest.raises(InputError, match=name):
        load(run.folder)


def test_who_claims_what():
    assert helm.sniff(LOGS / "before")
    assert helm.sniff(LOGS / "before" / "sums" / STATS)
    for other in ("lm_eval/0.4.13/before", "lighteval/0.13.0/before", "every_eval_ever/before"):
        files = [file for file in (DATA / other).rglob("*") if file.is_file()]
        assert files
        assert not any(helm.sniff(path) for path in (DATA / other, *files))
