"""The open suite: every item is checked with an answer that is right, and with none."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict

import pytest
import typer
from typer.testing import CliRunner

from forgetmap.base.errors import InputError
from forgetmap.capabilities import scorers
from forgetmap.capabilities.manifest import ROBUSTNESS, Manifest
from forgetmap.capabilities.responses import load_responses
from forgetmap.capabilities.score import score_responses
from forgetmap.capabilities.scorers import constraints
from forgetmap.capabilities.scorers.long_context import by_position
from forgetmap.capabilities.suite import MAKERS, build, instructions, needles, write
from forgetmap.capabilities.suite.shift import LANGUAGES
from forgetmap.cli.score import score as score_command
from forgetmap.cli.suite import suite as suite_command
from forgetmap.samples.table import Samples
from walls import needs_sandbox, why_no_sandbox

MANIFEST = Manifest.load("open-suite")
CAPABILITIES = {
    *("C1", "C2", "C3", "C4", "C5a", "C5b", "C5c", "W1a", "W1b", "W1c", "W2", "W3a", "W3b"),
    *("H1", "H2", "H3", "H4", "H5", "H6"),
}


@pytest.fixture(scope="module", params=[0, 7])
def items(request):
    return build(seed=request.param)


def of(items, task):
    return [item for item in items if item.task == task]


def scored(items, metric, responses):
    if metric.scorer in scorers.RUN_CODE and (reason := why_no_sandbox()):
        pytest.skip(reason)
    return scorers.load(metric.scorer).score(items, responses)[metric.metric]


RULES = [
    metric for metric in MANIFEST.metrics.values()
    if metric.by == "rule" and metric.scorer != ROBUSTNESS
]  # fmt: skip


# Every item


@pytest.mark.parametrize("metric", RULES, ids=lambda m: f"{m.task} {m.metric}")
def test_the_reference_gets_full_marks_and_silence_does_not(items, metric):
    asked = of(items, metric.task)
    values = scored(asked, metric, [item.meta["reference"] for item in asked])
    silence = scored(asked, metric, [""] * len(asked))
    assert any(value.value is not None for value in values)
    for item, value, nothing in zip(asked, values, silence, strict=True):
        if metric.direction == "two-sided":
            assert value.value is not None, item
            continue
        if value.status == "not_applicable":  # e.g. abstention, asked only where no call is right
            assert metric.role == "deep-dive", item
            continue
        best = 0.0 if metric.direction == "down" else 1.0
        assert (value.value, value.status) == (best, "ok"), (item, value)
        assert nothing.value in (0.0, None), item
        assert nothing.status in ("empty", "no_answer"), item


def test_a_wrong_answer_gets_no_marks(items):
    """The reference of another item of the task is wrong, where the answers differ."""
    for metric in RULES:
        if metric.scorer not in ("multiple_choice", "numbers", "short_answer", "mathematics",
                                 "long_context", "tool_calls"):  # fmt: skip
            continue
        if metric.metric not in ("accuracy", "exact"):
            continue
        asked = of(items, metric.task)
        others = asked[1:] + asked[:1]
        values = scored(asked, metric, [item.meta["reference"] for item in others])
        for item, other, value in zip(asked, others, values, strict=True):
            if item.gold != other.gold and not shared_answer(item, other):
                assert value.value == 0.0, (item, other.meta["reference"])


def shared_answer(item, other):
    said = other.meta["reference"].casefold()
    golds = item.gold if isinstance(item.gold, list) else [item.gold]
    return any(str(gold).casefold() in said for gold in golds if isinstance(gold, str)) or (
        isinstance(item.gold, dict) and item.gold["answer"] in said
    )


# Counts and balance


def test_there_are_enough_items_of_every_capability(items):
    counts = Counter(item.meta["capability"] for item in items)
    assert set(counts) == CAPABILITIES
    assert min(counts.values()) >= 40


def test_the_manifest_and_the_suite_have_the_same_tasks_and_capabilities(items):
    assert set(MANIFEST.task_names) == {item.task for item in items}
    codes = {capability.code for capability in MANIFEST.capabilities}
    assert codes - {"W2a", "W2b"} == CAPABILITIES - {"W2"}
    for capability in MANIFEST.capabilities:
        assert capability.primary, capability.code
        for metric in capability.primary:
            own = MAKERS.get(capability.code) or MAKERS["W2" if "W2" in capability.code else "C1"]
            assert metric.task in own or "rephrased" in metric.task


def test_ids_and_questions_are_unique(items):
    assert len({item.ref for item in items}) == len(items)
    assert len({(item.task, str(item.prompt)) for item in items}) == len(items)


def test_the_same_seed_gives_the_same_items_and_another_seed_others():
    assert build(seed=3) == build(seed=3)
    one, two = build(seed=3), build(seed=4)
    assert not {item.ref for item in one} & {item.ref for item in two}
    by_task = defaultdict(lambda: ([], []))
    for side, found in enumerate((one, two)):
        for item in found:
            by_task[item.task][side].append(str(item.prompt))
    for task, (first, second) in by_task.items():
        assert first != second, task


def test_a_task_does_not_change_when_others_grow():
    small = {item.ref: item for item in build(per_capability=40)}
    assert all(small[item.ref] == item for item in of(build(per_capability=40), "chains.open"))
    large = build(per_capability=60)
    assert len(large) > len(small)
    assert min(Counter(item.meta["capability"] for item in large).values()) >= 60


@pytest.mark.parametrize(
    ("task", "options"),
    [("facts_choice.open", 4), ("orders.open", 4), ("grounded.open", 4), ("strange_rules.open", 3)],
)
def test_the_right_option_stands_everywhere_equally_often(items, task, options):
    counts = Counter(item.gold for item in of(items, task))
    assert len(counts) == options
    assert max(counts.values()) - min(counts.values()) <= 1
    for item in of(items, task):
        assert len(set(item.choices)) == len(item.choices) == options
        assert all(len(choice) > 1 for choice in item.choices), "could be taken for a letter"


def test_yes_and_no_said_and_not_said_are_balanced(items):
    truths = Counter(item.gold for item in of(items, "reading_boolean.open"))
    assert truths["yes"] == truths["no"]
    answerable = Counter(item.meta["answerable"] for item in of(items, "grounded.open"))
    assert answerable[True] == answerable[False]


def test_a_task_that_has_not_enough_items_says_so():
    with pytest.raises(InputError, match=r"task \w+\.open: .*only .* items.*ask for fewer"):
        build(per_capability=100)
    with pytest.raises(InputError, match="at least 1"):
        build(per_capability=0)


# What single parts promise


def test_rephrasings_ask_the_same_of_the_same_options(items):
    by_ref = {item.ref: item for item in items}
    again = [item for item in items if "original" in item.meta]
    assert len(again) >= 40
    for item in again:
        original = by_ref[item.meta["original"]]
        assert item.prompt != original.prompt
        assert (item.gold, item.choices) == (original.gold, original.choices)
        assert f"{item.task}".replace("_rephrased", "") == original.task
        assert set(re.findall(r"\d+", item.prompt)) == set(re.findall(r"\d+", original.prompt))


def test_all_instruction_types_occur_and_all_are_known_to_the_scorer(items):
    used = {
        name for item in of(items, "instructions.open") for name in item.meta["instruction_id_list"]
    }
    assert used == set(constraints.INSTRUCTIONS) == set(instructions.INSTRUCTIONS)


def test_there_are_many_languages(items):
    for task in ("numbers_abroad.open", "capitals_abroad.open"):
        found = {item.meta["language"] for item in of(items, task)}
        assert found == set(LANGUAGES)
    assert len(LANGUAGES) >= 6
    for language in LANGUAGES.values():
        assert len(language.countries) == len(language.capitals) == 8


def test_needles_stand_at_their_depth_and_only_there(items):
    asked = of(items, "needles.open")
    assert {item.meta["kind"] for item in asked} == set(needles.KINDS)
    assert {item.meta["length"] for item in asked} == set(needles.LENGTHS)
    assert {item.meta["depth"] for item in asked} == set(needles.DEPTHS)
    for item in asked:
        text = item.prompt.partition("\n\n")[2].rpartition("\n\n")[0]
        assert abs(len(text.split()) - item.meta["length"]) < 60
        places = [text.index(number) / len(text) for number in item.gold]
        assert all(text.count(number) == 1 for number in item.gold)
        nearest = min(places, key=lambda place: abs(place - item.meta["depth"]))
        assert abs(nearest - item.meta["depth"]) < 0.08
    values = scorers.load("long_context").score(asked, [i.meta["reference"] for i in asked])
    assert all(mean == 1.0 for _, mean in by_position(asked, values["exact"]).values())


def test_some_requests_need_no_tool_and_some_need_two(items):
    counts = Counter(len(item.gold) for item in of(items, "tool_calls.open"))
    assert min(counts[0], counts[1], counts[2]) >= 10
    for item in of(items, "tool_calls.open"):
        offered = {tool["name"] for tool in item.tools}
        assert {call["name"] for call in item.gold} <= offered


def test_a_call_too_many_is_seen_where_none_was_right(items):
    none = [item for item in of(items, "tool_calls.open") if not item.gold]
    call = json.dumps([{"name": none[0].tools[0]["name"], "arguments": {}}])
    assert {
        v.value for v in scorers.load("tool_calls").score(none, [call] * len(none))["exact"]
    } == {0}


def test_a_made_up_quotation_is_seen(items):
    asked = of(items, "quotes.open")
    invented = ['"On Monday nobody brought anything anywhere at all."'] * len(asked)
    values = scorers.load("evidence").score(asked, invented)["quotes_found"]
    assert {value.value for value in values} == {0.0}


def test_citing_everything_costs_precision(items):
    for task, everything in (("selections.open", 9), ("citations.open", 7)):
        for item in of(items, task):
            form = item.meta.get("citation_format", "[id]")
            said = " ".join(form.replace("id", str(n)) for n in range(1, everything + 1))
            found = scorers.load("citations").score([item], [said])
            assert found["recall"][0].value == 1.0
            assert found["precision"][0].value < 0.5


# The whole chain


@pytest.fixture
def answered(tmp_path):
    """The suite as a file, answered with the references."""
    path = tmp_path / "items.jsonl"
    write(build(), path)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        row["outputs"] = row["meta"]["reference"]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_what_is_written_is_read_back_the_same(answered):
    found = load_responses(answered, MANIFEST, "oracle")
    assert found.warnings == []
    read = {item.ref: item for answers in found.tasks.values() for item in answers.items}
    for item in build():
        back = read[item.ref]
        for name in ("task", "prompt", "gold", "schema", "meta"):
            assert getattr(back, name) == getattr(item, name), (item.ref, name)
        for name in ("choices", "context", "tools"):
            assert list(getattr(back, name)) == list(getattr(item, name)), (item.ref, name)


@needs_sandbox
def test_the_whole_chain_runs_on_it(answered, tmp_path):
    out = tmp_path / "scores.parquet"
    found = score_responses(answered, out, model="oracle", manifest="open-suite", run_code=True)
    assert {gap.reason for gap in found.gaps} == {"needs a judge (--judge)"}
    means = defaultdict(list)
    for batch in Samples.read(out).to_batches(["task", "metric", "score"]):
        for row in batch.to_pylist():
            if row["score"] is not None:
                means[row["task"], row["metric"]].append(row["score"])
    for (task, name), scores in means.items():
        metric = MANIFEST.metrics[task, name]
        if metric.direction == "up":
            assert set(scores) == {1.0}, (task, name)


def test_programs_are_only_run_when_asked(answered, tmp_path, monkeypatch):
    def nothing_is_run(_programs):
        raise AssertionError("a program is run")

    monkeypatch.setattr("forgetmap.capabilities.scorers.code.run_all", nothing_is_run)
    out = tmp_path / "scores.parquet"
    found = score_responses(answered, out, model="oracle", manifest="open-suite")
    gaps = {(gap.task, gap.metric) for gap in found.gaps if "--run-code" in gap.reason}
    assert gaps == {("programs.open", "accuracy"), ("programs.open", "tests_passed")}
    assert "programs.open" not in found.tasks
    with pytest.raises(AssertionError, match="a program is run"):
        score_responses(answered, out, model="oracle", manifest="open-suite", run_code=True)


def test_the_command_says_how_to_run_programs(answered, tmp_path):
    app = typer.Typer()
    app.command()(score_command)
    options = ["--manifest", "open-suite", "--model", "oracle", "--out"]
    done = CliRunner().invoke(app, [str(answered), *options, str(tmp_path / "scores.parquet")])
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert "not scored, runs what the model wrote (only with --run-code): 2 metrics" in said
    assert "programs.open accuracy" in said


def run(*arguments):
    app = typer.Typer()
    app.command()(suite_command)
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_the_command_writes_the_items(tmp_path):
    out = tmp_path / "items.jsonl"
    done = run("--out", out, "--seed", 5, "--per-capability", 2)
    assert done.exit_code == 0, done.output
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert f"{len(rows)} items of {len({row['task'] for row in rows})} tasks" in done.output
    assert [row["id"] for row in rows] == [item.ref for item in build(5, 2)]
    assert run("--out", out, "--quiet").output == ""


@pytest.mark.parametrize("arguments", [["--per-capability", "0"], ["--per-capability", "100"]])
def test_the_command_refuses_what_cannot_be_made(tmp_path, arguments):
    done = run("--out", tmp_path / "items.jsonl", *arguments)
    assert done.exit_code == 2
    assert not list(tmp_path.iterdir())


def test_the_command_needs_a_place_to_write(tmp_path):
    done = run("--out", tmp_path / "nowhere" / "items.jsonl")
    assert done.exit_code == 2
    assert "create it first" in done.output
