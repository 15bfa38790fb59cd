"""The manifest: what ships, what users add, and that unknown names are errors."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from forgetmap.base.errors import InputError
from forgetmap.capabilities import scorers
from forgetmap.capabilities.judge_prompts import JUDGEMENTS
from forgetmap.capabilities.manifest import ROBUSTNESS, Manifest
from forgetmap.cli.app import app

CODES = [
    *("C1", "C2", "C3", "C4", "C5a", "C5b", "C5c", "W1a", "W1b", "W2a", "W2b", "W3a", "W3b"),
    *("H1", "H2", "H3", "H4", "H5", "H6"),
]
"""CapTrack's nineteen columns."""
CORE = (
    *("mmlu_pro", "gsm8k", "hotpotqa", "boolq", "ragtruth", "winogrande", "hellaswag"),
    *("mgsm", "ifeval"),
)


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def captrack():
    return Manifest.load("captrack")


def test_the_taxonomy_is_complete(captrack):
    assert [capability.code for capability in captrack.capabilities] == CODES
    assert list(captrack.groups) == ["CAN", "WILL", "HOW"]
    groups = {capability.code[0]: capability.group for capability in captrack.capabilities}
    assert groups == {"C": "CAN", "W": "WILL", "H": "HOW"}
    assert all(capability.primary for capability in captrack.capabilities)
    assert len(captrack.task_names) == 37


def test_every_rule_metric_names_what_its_scorer_needs(captrack):
    for metric in captrack.metrics.values():
        if metric.by == "judge":
            assert metric.metric in JUDGEMENTS[metric.scorer].metrics
        elif metric.scorer == ROBUSTNESS:
            assert metric.needs == ("meta.original",)
        elif metric.scorer != "code":  # whose tests may be in gold or in the context
            needed = {name for name in scorers.load(metric.scorer).FIELDS if name != "meta.kwargs"}
            assert needed <= set(metric.needs), metric


def test_style_is_two_sided_and_unsafe_refusal_is_not(captrack):
    by_code = {capability.code: capability for capability in captrack.capabilities}
    assert [by_code[code].two_sided for code in ("W3a", "W3b", "W1b", "W1a", "C1")] == [
        *(True, True, True, False, False)
    ]


@pytest.mark.parametrize("name", CORE)
def test_s1_core_and_subset_are_the_same_task(captrack, name):
    spellings = (f"{name}.core", f"{name}.subset", f"{name}_core", f"{name}_subset")
    assert {captrack.task(spelling) for spelling in spellings} == {f"{name}.core"}


MINE = """\
name: mine
extends: captrack
groups: {OURS: what we care about}
capabilities:
  - code: C1
    metrics:
      - {task: law.exam, scorer: multiple_choice, metric: accuracy, needs: [gold, choices]}
  - code: L1
    name: Legal style
    group: OURS
    metrics:
      - {task: law.letters, scorer: "my_scorers:politeness", metric: polite, direction: two-sided}
"""


def load(tmp_path, text):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    return Manifest.load(path)


def test_a_manifest_extends_another_without_touching_code(tmp_path, captrack):
    mine = load(tmp_path, MINE)
    by_code = {capability.code: capability for capability in mine.capabilities}
    assert len(by_code["C1"].metrics) == len(captrack.capabilities[0].metrics) + 1
    assert by_code["C1"].name == captrack.capabilities[0].name
    assert by_code["L1"].group == "OURS"
    assert mine.task("law_exam") == "law.exam"
    assert mine.task("gsm8k_subset") == "gsm8k.core"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("scorer: multiple_choice", "scorer: multiple_choise",
         "mine.yaml:7: unknown scorer 'multiple_choise'; did you mean 'multiple_choice'?"),
        ("metric: accuracy", "metric: acuracy",
         "mine.yaml:7: the scorer multiple_choice has no metric 'acuracy'; did you"),
        ("group: OURS", "group: OUR", "mine.yaml:10: capability L1: unknown group 'OUR'; did you"),
        ("needs: [gold, choices]", "needs: [gold, choises]",
         "mine.yaml:7: an item has no field 'choises'; did you mean 'choices'?"),
        ("direction: two-sided", "direction: sideways", "mine.yaml:12: capabilities.1.metrics"),
        ("direction: two-sided", "directoin: up", "did you mean 'direction'?"),
        ("extends: captrack", "extends: captrak", "mine.yaml:2: extends: unknown manifest"),
        ("task: law.exam", "task: gsm8k.core", "occurs twice"),
        ("code: L1", "code: C1", "mine.yaml:8: capability 'C1' occurs twice"),
        ("metric: polite", "metric: polite, range: [1, 0]", "the range [1, 0] is empty"),
        ("groups: {OURS: what we care about}",
         "groups: {OURS: ''}\ntasks: {law.exm: {aliases: [x]}}",
         "no metric uses the task 'law.exm'; did you mean 'law.exam'?"),
        ("metric: polite", "metric: polite, margin: 2", "less than 1"),
        ("name: mine", "name: [", "is not YAML"),
        ("name: mine", "nme: mine", "mine.yaml:1: unknown key 'nme'; did you mean 'name'"),
    ],
)  # fmt: skip
def test_unknown_names_are_errors_that_say_where(tmp_path, old, new, message):
    with pytest.raises(InputError) as error:
        load(tmp_path, MINE.replace(old, new, 1))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_robustness_needs_something_to_compare(tmp_path):
    more = "      - {task: law.letters, scorer: robustness, metric: agreement, role: deep-dive}\n"
    with pytest.raises(InputError, match=r"compares law\.letters accuracy, which is not in"):
        load(tmp_path, MINE + more)


def test_two_sided_and_directed_primaries_do_not_mix(tmp_path):
    more = "      - {task: law.letters, scorer: refusals, metric: refusal, needs: [prompt]}\n"
    with pytest.raises(InputError, match="mixes two-sided primary metrics"):
        load(tmp_path, MINE + more)


@pytest.mark.parametrize("content", [b"\xff\xfe", b"- 1\n- 2\n", b"", b"a: &a [*a]\n"])
def test_files_that_are_no_manifest(tmp_path, content):
    path = tmp_path / "mine.yaml"
    path.write_bytes(content)
    with pytest.raises(InputError):
        Manifest.load(path)


def test_a_name_that_is_neither_file_nor_built_in():
    with pytest.raises(InputError, match="no such file, and not built in"):
        Manifest.load("nowhere.yaml")


def test_the_list_for_people_and_for_programs(tmp_path):
    shown = invoke("capabilities")
    assert shown.exit_code == 0
    assert "C5c Robustness across languages" in shown.output
    assert max(len(line) for line in shown.output.splitlines()) <= 100
    listed = json.loads(invoke("capabilities", "--json", "-").stdout)
    assert [entry["code"] for entry in listed["capabilities"]] == CODES
    wrong = invoke("capabilities", "--manifest", tmp_path / "no.yaml")
    assert wrong.exit_code == 2
