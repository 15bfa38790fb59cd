"""Suites of capabilities: from a run over answers to scores and drift."""

from __future__ import annotations

import importlib.util
import json
import logging

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner

from forgetmap.answers.items import Item
from forgetmap.capabilities import hub, suite
from forgetmap.capabilities.manifest import Manifest
from forgetmap.cli.drift import drift
from forgetmap.cli.evaluate import evaluate as evaluate_command
from forgetmap.cli.score import score
from forgetmap.evaluate import suites
from forgetmap.evaluate.models import Reply, plain_groups
from forgetmap.evaluate.prompts import Asking, Message, make_request
from forgetmap.evaluate.questions import UNSCORED
from forgetmap.evaluate.run import evaluate
from forgetmap.evaluate.suites.capabilities import make_suite

needs_datasets = pytest.mark.skipif(
    importlib.util.find_spec("datasets") is None, reason="the package datasets is not installed"
)


class Knowing:
    """Gives the reference answer, but for the tasks of which it says nothing sensible."""

    settings, warnings = {}, []

    def __init__(self, name, items, forgotten=(), broken=()):
        self.name = self.fingerprint = name
        said = {item.ref: item.meta["reference"] for item in items}
        lost = [item.ref for item in items if item.task in forgotten]
        self.said = said | dict.fromkeys(lost, "I am not sure about that.")
        self.broken = set(broken)
        self.refs = {}

    def plan(self, requests):
        return plain_groups(len(requests), 64)

    def run(self, requests, hints):
        return [self._reply(self.refs[request.prompt]) for request in requests]

    def _reply(self, ref):
        return Reply("error", note="lost") if ref in self.broken else Reply(text=self.said[ref])

    def learn(self, loaded, asking):
        for task in loaded.tasks:
            for question in task.questions():
                self.refs[make_request(task, question, asking).prompt] = question.ref
        return self


@pytest.fixture(scope="module")
def items():
    return suite.build(seed=3, per_capability=24)


@pytest.fixture(scope="module")
def loaded(items):
    return make_suite("open-suite", items)


@pytest.fixture(scope="module")
def few(items):
    """Tasks that are scored in a moment, a conversation among them."""
    quick = {"facts_choice.open", "facts_short.open", "arithmetic.open", "promises.open"}
    quick |= {"programs.open"}  # which are not run unless asked for
    return make_suite("open-suite", [item for item in items if item.task in quick])


def content(samples):
    return [row for batch in samples.to_batches() for row in batch.to_pylist()]


def test_every_item_of_the_open_suite_is_asked_and_none_looks_like_another(items, loaded):
    questions = [question for task in loaded.tasks for question in task.questions()]
    assert len(questions) == len(items)
    assert len({(question.task, question.item) for question in questions}) == len(items)
    assert {task.name for task in loaded.tasks} == set(Manifest.load("open-suite").task_names)
    assert {task.scorer for task in loaded.tasks} == {UNSCORED}
    assert all(task.category for task in loaded.tasks)


def test_the_seed_draws_other_items_and_the_version_tells():
    one, same, other = (suites.load("open-suite", seed) for seed in (1, 1, 2))
    assert one.version == same.version != other.version
    assert (one.seed, other.seed) == (1, 2)


def test_no_reference_and_no_gold_reaches_the_model(items, loaded):
    """Prompts are what the item says and nothing else."""
    prompts = {
        item.ref: item.prompt if isinstance(item.prompt, str) else item.prompt[-1] for item in items
    }
    for task in loaded.tasks:
        for question in task.questions():
            assert make_request(task, question, Asking(chat=True)).prompt[-1] == Message(
                "user", prompts[question.ref]
            )


def test_the_first_turn_of_a_conversation_goes_before_the_second():
    talk = Item("promises.open", "1", ["Be brief.", "Why?"], meta={"turn1_response": "Yes."})
    [task] = make_suite("open-suite", [talk]).tasks
    [question] = task.questions()
    chat = make_request(task, question, Asking(chat=True, system="Help."))
    assert [tuple(turn) for turn in chat.prompt] == [
        ("system", "Help."), ("user", "Be brief."), ("assistant", "Yes."), ("user", "Why?"),
    ]  # fmt: skip
    assert make_request(task, question, Asking()).prompt == "Be brief. Yes.\n\nWhy?"
    assert chat.is_complete is None, "an answer that is scored later must not be cut"


def test_an_item_without_its_first_answer_is_left_out_and_told(caplog):
    asked = [
        Item("mtbench.turn2", "1", [{"user prompt": "Hello."}, "Why?"]),
        Item("mtbench.turn2", "2", ["Hi."]),
    ]
    with caplog.at_level(logging.WARNING, "forgetmap"):
        [task] = make_suite("captrack", asked).tasks
    assert [question.ref for question in task.questions()] == ["2"]
    assert "mtbench.turn2: 1 items lack `turn1_response`" in caplog.text


def test_the_prompt_that_captrack_formatted_is_the_one_that_is_asked():
    row = dict.fromkeys(hub.COLUMNS) | {
        "id": "q1", "family": "mmlu_pro.subset", "prompt": "Capital of Italy?", "gold": "B",
        "formatted_prompt": "Question: Capital of Italy?\nA) Oslo\nB) Rome",
        "choices": ["Oslo", "Rome"],
    }  # fmt: skip
    found = hub.to_items([row], ["default"], Manifest.load("captrack"))
    [question] = make_suite("captrack", found).tasks[0].questions()
    assert question.prompt.endswith("B) Rome")
    assert question.row["prompt"] == "Capital of Italy?"
    assert question.choices == (), "a written answer is wanted, not the likelihood of options"


def test_a_run_writes_answers_that_are_not_scored_yet(items, loaded, tmp_path):
    failing = items[5].ref
    model = Knowing("oracle", items, broken=[failing]).learn(loaded, Asking())
    done = evaluate(model, loaded, tmp_path)
    assert done.manifest == "open-suite"
    rows = content(done.samples)
    assert {row["metric"] for row in rows} == {"outputs"}
    assert {row["status"] for row in rows} == {"unscored", "error"}
    assert all(row["score"] is None for row in rows)
    lines = [json.loads(line) for line in (tmp_path / "responses.jsonl").read_text().splitlines()]
    assert {line["id"] for line in lines} == {item.ref for item in items} - {failing}
    assert {line["model"] for line in lines} == {"oracle"}


@pytest.fixture
def command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    app = typer.Typer()
    for name, function in (("eval", evaluate_command), ("score", score), ("drift", drift)):
        app.command(name)(function)

    def run(*words):
        done = CliRunner().invoke(app, list(words))
        assert done.exit_code == 0, done.output
        return done.output

    return run


def test_from_a_run_to_drift(items, few, command, tmp_path):
    """One model knows everything, the other has forgotten two tasks: drift names them."""
    forgotten = ("facts_short.open", "arithmetic.open")
    for model in (Knowing("base", items), Knowing("tuned", items, forgotten)):
        evaluate(model.learn(few, Asking()), few, tmp_path / model.name)
        command(
            *("score", f"{model.name}/responses.jsonl", "--manifest", "open-suite"),
            *("--out", f"{model.name}.parquet"),
        )
    command(
        *("drift", "base.parquet", "tuned.parquet", "--manifest", "open-suite"),
        *("--draws", "200", "--json", "drift.json", "--quiet"),
    )
    found = json.loads((tmp_path / "drift.json").read_text())
    changed = {cell["task"]: cell for cell in found["metrics"] if cell["metric"] == "accuracy"}
    for task in forgotten:
        assert changed[task]["before"] == 1.0
        assert changed[task]["after"] == 0.0
    assert changed["facts_choice.open"]["after"] == 1.0


def test_two_models_on_the_command_line_go_straight_to_drift(
    items, few, command, tmp_path, monkeypatch
):
    models = {
        "base": Knowing("base", items),
        "tuned": Knowing("tuned", items, ("arithmetic.open",)),
    }
    for where in ("run", "models"):
        monkeypatch.setattr(
            f"forgetmap.evaluate.{where}.open_model",
            lambda name, how, chat: models[name].learn(few, Asking(chat=chat)),
        )
    monkeypatch.setattr("forgetmap.evaluate.suites.load", lambda source, seed: few)
    said = command("eval", "--before", "base", "--after", "tuned", "--suite", "open-suite",
                   "--chat", "--out", "two", "--json", "drift.json")  # fmt: skip
    assert "--manifest open-suite" in said
    assert "Not run: the programs of programs.open; --run-code runs them" in said
    found = json.loads((tmp_path / "drift.json").read_text())
    [sums] = [
        cell for cell in found["metrics"]
        if (cell["task"], cell["metric"]) == ("arithmetic.open", "accuracy")
    ]  # fmt: skip
    assert (sums["before"], sums["after"]) == (1.0, 0.0)
    one = command("eval", "base", "--suite", "open-suite", "--chat", "--out", "one")
    assert "forgetmap score one/responses.jsonl --manifest open-suite" in one


@pytest.mark.extras
@needs_datasets
@pytest.mark.filterwarnings("default")
def test_captrack_is_asked_from_a_local_copy(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    row = dict.fromkeys(hub.COLUMNS) | {
        "id": "q1", "family": "gsm8k.subset", "prompt": "2+2?", "gold": "4"
    }  # fmt: skip
    (tmp_path / "copy" / "data").mkdir(parents=True)
    schema = pa.schema([(name, pa.string()) for name in hub.COLUMNS])
    table = pa.Table.from_pylist([row], schema=schema)
    pq.write_table(table, tmp_path / "copy" / "data" / "test-00000.parquet")
    found = suites.load(f"captrack:{tmp_path / 'copy'}")
    assert found.manifest == "captrack"
    assert [question.prompt for question in found.tasks[0].questions()] == ["2+2?"]


def test_programs_are_run_for_two_models_only(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    questions = tmp_path / "own.jsonl"
    questions.write_text('{"task": "t", "id": "1", "prompt": "2+2?", "target": "4"}\n')
    app = typer.Typer()
    app.command("eval")(evaluate_command)
    two = ["--before", "a", "--after", "b", "--suite", str(questions), "--run-code"]
    for words, said in (
        (["model", "--run-code"], "use it with `forgetmap score`"),
        (two, "no programs to run"),
    ):
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 2
        assert said in done.output
