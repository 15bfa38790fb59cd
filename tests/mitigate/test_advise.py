"""Advice: every rule speaks when it should, stays silent when not, and none contradicts another."""

from __future__ import annotations

import dataclasses
import json
import re

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from forgetmap.capabilities.drift_result import Drift, DriftSettings, GroupDrift
from forgetmap.cli.advise import advise as command
from forgetmap.cli.app import app as commands
from forgetmap.lineage.result import Lineage, LineageSettings, WorstStage
from forgetmap.map.cause_checks import FORM
from forgetmap.map.causes import CAUSES
from forgetmap.map.result import (
    Both,
    Cell,
    ComparedModel,
    Counts,
    Coverage,
    ForgettingMap,
    Influence,
    MapSettings,
    Verdict,
)
from forgetmap.mitigate.advise import _CURES, RULES, TURNS, Evidence, advise
from forgetmap.samples.comparability import Confound
from forgetmap.stats.estimate import BASIS_MEANING, Estimate, Range
from places import ROOT


def estimate(value, width=0.01):
    return Estimate(value=value, low=value - width, high=value + width)


def lost_range(value, width=0.01, low_end=None, basis="probabilities"):
    """An exact loss; with `low_end`, a range whose high end is the value."""
    low_end = value if low_end is None else low_end
    return Range(
        low_end=low_end,
        high_end=value,
        low=max(0.0, low_end - width),
        high=value + width,
        of_known=None,
        basis=basis,
    )


def cell(lost=0.01, verdict=("equal", "held"), n=1000, low_end=None, basis="probabilities", **more):
    lost = lost if isinstance(lost, Range) else lost_range(lost, low_end=low_end, basis=basis)
    flips = estimate(lost.high_end)
    decides = more.pop("decides", None)
    return Cell(
        **{
            "n": n,
            "repeats_before": 1,
            "repeats_after": 1,
            "counts": Counts(n00=0, n01=0, n10=lost.high_end * n, n11=n - lost.high_end * n),
            "accuracy_before": 0.6,
            "accuracy_after": 0.6,
            "change": estimate(0.0),
            "lost": lost,
            "gained": lost,
            "raw": Both(lost=flips, gained=flips),
            "paper": None,
            "noise_floor": None,
            "k": None,
            "p_value": 1.0,
            "p_adjusted": 1.0,
            "mde": 0.015,
            "verdict": Verdict(net=verdict[0], forgetting=verdict[1], would_decide=decides),
        }
        | more
    )


def evidence(
    old=None,
    categories=None,
    confounds=(),
    matched=1000,
    drift=None,
    lineage=None,
    tasks=None,
    task_categories=None,
    new=(),
):
    old = old or cell()
    found = ForgettingMap(
        before=ComparedModel(name="base", harness="h", runs=1),
        after=ComparedModel(name="tuned", harness="h", runs=1),
        settings=MapSettings(metric={}, threshold=0.5, margin=0.02, seed=0, new=list(new)),
        coverage=Coverage(
            items_before=1000,
            items_after=1000,
            matched=matched,
            only_before=1000 - matched,
            only_after=0,
            conflicts=0,
            unscored=0,
            duplicates=0,
            identity="content",
        ),
        confounds=list(confounds),
        total=cell(0.4, LOST) if new else old,  # what happened to new tasks is no matter
        old=old,
        new=cell(0.9, LOST) if new else None,
        macro=old,
        categories=categories or {},
        tasks=tasks or categories or {"all": old},
        task_categories=task_categories or {},
    )
    return Evidence(found, drift, lineage, "maps/tuned")


def group(name, verdict):
    return GroupDrift(
        name=name,
        relative=estimate(-0.1),
        spread=None,
        parts=[],
        left_out=[],
        leave_one_out=None,
        worst=None,
        p_value=0.01,
        p_adjusted=0.01,
        verdict=verdict,
    )


def drift(**verdicts):
    return Drift(
        before="base",
        after="tuned",
        settings=DriftSettings(manifest="m", margin=0.02, draws=100, seed=0),
        confounds=[],
        groups=[group(name, verdict) for name, verdict in verdicts.items()],
        capabilities=[],
        metrics=[],
        gaps=[],
    )


def lineage(clear=True, lost=0.2):
    stage = WorstStage(
        group="World",
        before="sft",
        after="rl",
        lost=lost_range(lost),
        flipped=30.0,
        flipped_on_path=40.0,
        clear=clear,
    )
    return Lineage(
        root="base",
        nodes=[],
        comparisons=[],
        life_lines=[],
        worst_stages={"rl": [stage]},
        merges=[],
        dose_curves=[],
        runs=[],
        settings=LineageSettings(
            task_map=None, threshold=0.5, margin=0.02, draws=100, seed=0, listed=10
        ),
    )


def rules(seen):
    return [one.rule for one in advise(seen).advice]


LOST = ("worse", "lost")
OPEN = ("undecided", "undecided")
WRONG = {"wrong": 90, "noise": 10}
SURE = {"verdict": LOST, "causes": WRONG}
WIDE = {"low_end": 0.0, "basis": "single_run"}
SHOTS = Confound(setting="few-shot", before=0, after=5)
HALVES = {"a": cell(0.1, LOST, n=500), "b": cell(0.1, LOST, n=500)}
UNEVEN = {"a": cell(0.25, LOST, n=300), "b": cell(0.01, n=700)}
GUESSING = cell(0.116, OPEN, low_end=0.0, accuracy_before=0.253, k={"4": 1000})
"""A model at chance: its guesses were reshuffled, and nothing is surely lost."""

FIRES = {
    "confounds": evidence(cell(0.1, **SURE), confounds=[SHOTS]),
    "coverage": evidence(matched=700),
    "measure": evidence(cell(0.05, OPEN, **WIDE, decides="3 repeats of both models would")),
    "more_items": evidence(cell(0.03, OPEN, decides="about 1,900 more items would")),
    "noise": evidence(cell(0.02, OPEN, noise_floor=0.03)),
    "causes": evidence(cell(0.1, LOST)),
    "form": evidence(cell(0.1, LOST, causes={"truncated": 70, "wrong": 30})),
    "intruded": evidence(cell(0.1, LOST, causes={"intruded": 20, "wrong": 80})),
    "replay": evidence(cell(0.08, **SURE), UNEVEN),
    "merge": evidence(cell(0.04, **SURE), HALVES),
    "anchor": evidence(cell(0.1, **SURE), HALVES),
    "stage": evidence(cell(0.1, **SURE), lineage=lineage()),
    "behaviour": evidence(drift=drift(CAN="equivalent", HOW="worse", WILL="higher")),
    "ability": evidence(drift=drift(CAN="worse")),
    "one_task": evidence(cell(0.04, **SURE, influence=Influence(task="t", change=-0.03))),
    "hidden": evidence(cell(0.1, ("better", "lost"), causes=WRONG)),
    "near_ties": evidence(cell(0.005, ("worse", "held"))),
    "writing": evidence(cell(k={"4": 900, "2": 100})),
    "ship": evidence(cell(0.005), drift=drift(CAN="equivalent", WILL="undecided")),
}
SILENT = {
    "intruded": [
        evidence(cell(0.1, LOST, causes={"intruded": 9, "wrong": 91})),
        evidence(cell(0.1, LOST, causes={"intruded": 4, "wrong": 4})),
        evidence(cell(0.1, LOST, causes={"intruded": 20}), confounds=[SHOTS]),
        FIRES["form"],
    ],
    "confounds": [FIRES["ship"]],
    "coverage": [FIRES["ship"], evidence(matched=950)],
    "measure": [
        FIRES["more_items"],
        FIRES["noise"],
        FIRES["ship"],
        FIRES["anchor"],
        evidence(cell(0.05, LOST, low_end=0.03, basis="repeats")),
    ],
    "more_items": [
        FIRES["measure"],
        FIRES["ship"],
        FIRES["noise"],
        FIRES["near_ties"],
        evidence(cell(0.1, LOST)),
    ],
    "noise": [
        evidence(cell(0.1, LOST, noise_floor=0.2)),
        evidence(cell(0.02, OPEN, noise_floor=0.01)),
        evidence(cell(0.02, OPEN, causes={"noise": 4, "wrong": 6})),
    ],
    "causes": [FIRES["anchor"], FIRES["ship"], evidence(GUESSING)],
    "form": [
        FIRES["anchor"],
        evidence(cell(0.1, LOST, causes={"truncated": 30, "wrong": 70})),
        evidence(cell(0.01, causes={"truncated": 7})),
    ],
    "replay": [
        FIRES["anchor"],
        FIRES["form"],
        evidence(cell(0.08), {"a": cell()}),
        evidence(GUESSING, {"a": GUESSING}),
    ],
    "merge": [FIRES["anchor"], FIRES["replay"], FIRES["one_task"], FIRES["ship"]],
    "anchor": [FIRES["merge"], FIRES["replay"], FIRES["ship"], evidence(GUESSING)],
    "stage": [
        evidence(cell(0.1, **SURE), lineage=lineage(clear=False)),
        evidence(cell(0.1, **SURE), lineage=lineage(lost=0.005)),  # its interval reaches zero
        evidence(lineage=lineage()),
        FIRES["anchor"],
    ],
    "behaviour": [
        evidence(drift=drift(CAN="worse", HOW="worse")),
        evidence(drift=drift(CAN="equivalent", HOW="undecided", WILL="better")),
        FIRES["anchor"],
    ],
    "ability": [evidence(cell(0.1, **SURE), drift=drift(CAN="worse")), FIRES["behaviour"]],
    "one_task": [
        evidence(cell(0.04, **SURE, influence=Influence(task="t", change=0.01))),
        evidence(cell(0.008, influence=Influence(task="t", change=-0.008))),  # noise hangs, too
    ],
    "hidden": [FIRES["anchor"], FIRES["ship"], evidence(GUESSING)],
    "near_ties": [FIRES["ship"], FIRES["anchor"], FIRES["measure"]],
    "writing": [
        FIRES["anchor"],
        evidence(cell(k={"4": 900})),
        evidence(cell(k={"4": 1000}), drift=drift(CAN="equivalent")),
        evidence(cell(k={"4": 1000}), confounds=[SHOTS]),
    ],
    "ship": [
        FIRES["behaviour"],
        FIRES["ability"],
        FIRES["confounds"],
        FIRES["anchor"],
        FIRES["measure"],
        evidence(cell(0.01, ("worse", "held"))),
        evidence(cell(0.01), UNEVEN),
    ],
}


def test_every_rule_is_tried_both_ways():
    names = {rule.__name__ for rule in RULES}
    assert set(FIRES) == set(SILENT) == names


@pytest.mark.parametrize("rule", FIRES)
def test_a_rule_speaks_when_it_should(rule):
    assert rule in rules(FIRES[rule])


@pytest.mark.parametrize(
    ("rule", "seen"), [(rule, seen) for rule, cases in SILENT.items() for seen in cases]
)
def test_a_rule_is_silent_when_it_should(rule, seen):
    assert rule not in rules(seen)


def test_the_reason_has_the_numbers_of_the_map():
    found = {one.rule: one for name in FIRES for one in advise(FIRES[name]).advice}
    assert "few-shot: 0 / 5" in found["confounds"].why
    assert "700 of 1,000" in found["coverage"].why
    assert "about 1,900 more items would" in found["more_items"].why
    told = found["measure"].why
    assert "lost between 0.0 % and 5.0 % (0.0 to 6.0) of 1,000 items" in told
    assert "your margin is 2.0 %" in told
    assert "3 repeats of both models would" in told
    assert "--noise-before" in found["measure"].what_to_do
    assert "truncated 70" in found["form"].why
    assert "--max-tokens" in found["form"].what_to_do
    assert (
        "a lost 25.0 % (24.0 to 26.0), 91.5 % of what is surely lost, in 30.0 % of the items"
        in (found["replay"].why)
    )
    assert "forgetmap replay maps/tuned " in found["replay"].what_to_do
    assert " --category " in found["replay"].what_to_do
    assert "75.0 % of the path's flips to wrong" in found["stage"].why
    assert "HOW worse" in found["behaviour"].why


def test_what_was_never_known_is_no_loss_to_mend():
    """At chance, with guesses reshuffled: no cure, only how to find out."""
    found = advise(evidence(GUESSING, {"a": GUESSING}))
    assert [one.rule for one in found.advice] == ["measure", "writing"]
    assert "up to 11.6 % can be reshuffled guessing" in found.advice[0].why
    assert "far above chance" in found.advice[0].what_to_do


@pytest.mark.parametrize("basis", BASIS_MEANING)
def test_every_basis_has_a_way_to_measure_more(basis):
    (first, *_) = advise(evidence(cell(0.05, OPEN, low_end=0.0, basis=basis))).advice
    assert first.rule == "measure"
    assert first.what_to_do


def test_gains_do_not_excuse_a_loss():
    """Groups that gained do not make the loss of another smaller, in no number that is told."""
    gained = cell(0.0, ("better", "held"), n=700).model_copy(update={"gained": lost_range(0.5)})
    seen = evidence(cell(0.075, ("better", "lost"), causes=WRONG), {**UNEVEN, "b": gained})
    found = {one.rule: one for one in advise(seen).advice}
    assert "100.0 % of what is surely lost" in found["replay"].why
    assert "lost 7.5 %" in found["hidden"].why


def test_only_the_old_skills_are_advised_on():
    tasks = {
        "taught": cell(0.9, LOST, n=500),
        "beside": cell(0.25, LOST, n=300),
        "far": cell(0.01, n=700),
    }
    of = {"taught": "Mixed", "beside": "Mixed", "far": "Far"}
    groups = {"Mixed": cell(0.6, LOST, n=800), "Far": tasks["far"]}
    options = {"tasks": tasks, "task_categories": of, "new": ["taught"]}
    seen = evidence(cell(0.08, **SURE), groups, **options)
    (told,) = [one for one in advise(seen).advice if one.rule == "replay"]
    assert "beside lost 25.0 %" in told.why
    assert "taught" not in told.why
    assert "--category Mixed" in told.what_to_do  # as the replay set calls it
    held = evidence(cell(0.005), {"New": tasks["taught"]}, tasks={"taught": tasks["taught"]},
                    task_categories={"taught": "New"}, new=["taught"])  # fmt: skip
    assert "ship" in rules(held)


def test_a_group_that_lost_is_named_where_the_whole_cannot_tell():
    seen = evidence(cell(0.05, OPEN, **WIDE, causes=WRONG), UNEVEN)
    assert "replay" in rules(seen)
    assert not {"merge", "anchor"} & set(rules(seen))


def test_noise_by_cause():
    assert "noise" in rules(evidence(cell(0.02, OPEN, causes={"noise": 6, "wrong": 4})))


def test_every_cause_of_form_has_a_cure():
    assert set(_CURES) == set(FORM) == set(CAUSES) - {"noise", "wrong", "intruded"}


def test_commands_that_are_named_exist():
    known = {one.name or one.callback.__name__ for one in commands.registered_commands}
    known |= {one.name for one in commands.registered_groups}
    for seen in FIRES.values():
        for one in advise(seen).advice:
            named = set(re.findall(r"forgetmap ([a-z][a-z-]+)", one.what_to_do))
            assert named <= known, one


# --- no two contradict ----------------------------------------------------------------------------

HOW_TO_TRAIN = {"replay", "merge", "anchor", "stage"}
APART = [
    ({"ship"}, {*HOW_TO_TRAIN, "behaviour", "ability", "form", "more_items", "measure", "noise"}),
    ({"ship"}, {"confounds", "coverage", "hidden", "causes", "near_ties"}),
    ({"confounds"}, {*HOW_TO_TRAIN, "form", "behaviour", "ability", "noise", "more_items"}),
    ({"confounds"}, {"measure", "hidden", "near_ties"}),
    ({"noise"}, {*HOW_TO_TRAIN, "form", "hidden", "causes", "more_items", "measure"}),
    ({"more_items", "measure"}, {*HOW_TO_TRAIN, "form", "hidden", "causes"}),
    ({"more_items"}, {"measure"}),
    ({"near_ties"}, {*HOW_TO_TRAIN, "form", "hidden", "causes", "more_items", "measure", "noise"}),
    ({"form"}, HOW_TO_TRAIN),
    ({"replay"}, {"merge", "anchor"}),
    ({"merge"}, {"anchor", "one_task"}),
    ({"anchor"}, {"one_task"}),
    ({"behaviour"}, {"ability"}),
]
"""Advice that must never stand side by side."""

SHARES = st.floats(0, 0.5)
NETS = st.sampled_from(["worse", "better", "equal", "undecided"])
CAUSED = st.none() | st.dictionaries(st.sampled_from(CAUSES), st.integers(0, 50))


@st.composite
def ranges(draw):
    """Ranges as a map has them, and a verdict that may go with them."""
    low, low_end, high_end, high = sorted(draw(SHARES) for _ in range(4))
    basis = draw(st.sampled_from(list(BASIS_MEANING)))
    found = Range(
        low_end=low_end, high_end=high_end, low=low, high=high, of_known=None, basis=basis
    )
    forgetting = "lost" if low > 0.02 else "held" if high < 0.02 else "undecided"
    return found, (draw(NETS), forgetting)


@st.composite
def cells(draw):
    change = draw(st.none() | st.floats(-0.3, 0.3))
    lost, verdict = draw(ranges())
    return cell(
        lost,
        verdict,
        n=draw(st.integers(1, 5000)),
        causes=draw(CAUSED),
        mde=draw(st.floats(0.001, 0.5)),
        noise_floor=draw(st.none() | SHARES),
        influence=None if change is None else Influence(task="a", change=change),
    )


@st.composite
def all_evidence(draw):
    verdicts = st.sampled_from(["worse", "better", "lower", "higher", "equivalent", "undecided"])
    return evidence(
        draw(cells()),
        draw(st.dictionaries(st.sampled_from("abc"), cells())),
        draw(st.sampled_from([(), (SHOTS,)])),
        draw(st.integers(0, 1000)),
        draw(st.none() | st.builds(drift, CAN=verdicts, WILL=verdicts, HOW=verdicts)),
        draw(st.none() | st.builds(lineage, st.booleans())),
    )


@given(all_evidence())
def test_there_is_always_advice_and_no_two_pieces_contradict(seen):
    found = advise(seen).advice
    spoken = {one.rule for one in found}
    assert spoken
    for one, others in APART:
        assert not (one & spoken and others & spoken), spoken
    turns = [TURNS.index(one.turn) for one in found]
    assert turns == sorted(turns)
    for one in found:
        assert all([one.title, one.why, one.what_to_do, one.expected, one.rests_on])
        assert not re.search(
            r"\b(will|guarantee\w*|always)\b", one.expected.replace("will bring", "")
        )
    if seen.old.lost.low <= 0 and not seen.hit:  # nothing is sure, so there is nothing to mend
        assert not {*HOW_TO_TRAIN, "form", "hidden", "causes", "one_task"} & spoken


# --- the command ----------------------------------------------------------------------------------

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(command)


def run(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments])


def test_the_command_reads_a_file_or_a_saved_folder(tmp_path):
    FIRES["replay"].map.write(tmp_path / "map.json")
    shown = run(tmp_path / "map.json")
    assert shown.exit_code == 0, shown.output
    assert "1. Replay what was lost" in shown.output
    assert "Rules, not promises" in shown.output
    by_folder = run(tmp_path, "--json", "-")
    found = json.loads(by_folder.stdout)
    assert found["advice"][0]["rule"] == "replay"
    assert f"forgetmap replay {tmp_path}" in found["advice"][0]["what_to_do"]


@pytest.mark.parametrize("rule", ["behaviour", "ability"])
def test_no_advice_on_a_drift_whose_interval_covers_zero(rule):
    """Files of earlier versions have verdicts of a change with such intervals."""
    sure = FIRES[rule]
    doubtful = Estimate(value=-0.1, low=-0.21, high=0.01)
    groups = [one.model_copy(update={"relative": doubtful}) for one in sure.drift.groups]
    seen = dataclasses.replace(sure, drift=sure.drift.model_copy(update={"groups": groups}))
    assert rule in rules(sure)
    assert rule not in rules(seen)


def test_a_group_without_a_ratio_is_heard_by_its_change():
    change = Estimate(value=-0.1, low=-0.2, high=-0.05)
    groups = [
        one.model_copy(update={"relative": None, "change": change})
        for one in FIRES["ability"].drift.groups
    ]
    drifted = FIRES["ability"].drift.model_copy(update={"groups": groups})
    seen = dataclasses.replace(FIRES["ability"], drift=drifted)
    (told,) = [one.why for one in advise(seen).advice if one.rule == "ability"]
    assert "CAN worse -10.0 %" in told


def test_drift_and_lineage_are_heard(tmp_path):
    FIRES["anchor"].map.write(tmp_path / "map.json")
    (tmp_path / "drift.json").write_text(drift(CAN="equivalent", HOW="worse").to_json())
    lineage().write(tmp_path / "lineage.json")
    shown = run(
        tmp_path / "map.json",
        *("--drift", tmp_path / "drift.json", "--lineage", tmp_path / "lineage.json"),
    )
    assert shown.exit_code == 0, shown.output
    assert "Act at the stage sft -> rl" in shown.output
    assert "Anchor the behaviour" in shown.output


def test_a_real_lineage_is_read(tmp_path):
    from forgetmap.cli.lineage import lineage as trace

    real = typer.Typer()
    real.command()(trace)
    path = tmp_path / "lineage.json"
    made = CliRunner().invoke(
        real,
        [str(ROOT / "examples/lineage/pipeline.yaml"), "--json", str(path), "--draws", "100"],
    )
    assert made.exit_code == 0, made.output
    FIRES["anchor"].map.write(tmp_path / "map.json")
    shown = run(tmp_path / "map.json", "--lineage", path)
    assert shown.exit_code == 0, shown.output


@pytest.mark.parametrize(
    ("option", "content", "message"),
    [
        (None, "{}", "not a forgetmap map"),
        (None, "nonsense", "not a forgetmap map"),
        ("--drift", "{}", "not a forgetmap drift"),
        ("--lineage", "{}", "not a forgetmap lineage: at "),
        ("--lineage", '{"schema_version": 99}', "the lineage has schema version 99"),
        ("--lineage", "nonsense", "not a forgetmap lineage: not JSON"),
    ],
)
def test_bad_files_are_told_in_one_line(tmp_path, option, content, message):
    FIRES["anchor"].map.write(tmp_path / "map.json")
    (tmp_path / "bad.json").write_text(content)
    given_files = [tmp_path / "map.json", option, tmp_path / "bad.json"]
    shown = run(*(given_files if option else given_files[2:]))
    assert shown.exit_code == 2
    assert message in shown.output
    assert len(shown.output.splitlines()) == 1


def test_hostile_names_are_shown_clean(tmp_path):
    evil = "a\x1b[2J\u202e"
    seen = evidence(cell(0.08, **SURE), {evil: UNEVEN["a"], "b": UNEVEN["b"]})
    seen.map.write(tmp_path / "map.json")
    shown = run(tmp_path / "map.json")
    assert shown.exit_code == 0
    assert "\x1b" not in shown.output
    assert "\u202e" not in shown.output
