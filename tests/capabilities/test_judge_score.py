"""The judge inside `forgetmap score`: values, statuses and exit codes."""

from __future__ import annotations

import json

import pytest
import typer
from test_judge import answers, good, says, scripted, serving
from typer.testing import CliRunner

from forgetmap.base.errors import InputError
from forgetmap.capabilities.judge import Judge
from forgetmap.capabilities.score import score_responses
from forgetmap.cli.score import score
from forgetmap.samples.table import Samples

ROWS = [
    {
        "task": "ragtruth.core", "id": str(n), "prompt": "Retell it.", "gold": "Ada was here.",
        "ctx": ["Ada was here."], "outputs": f"Ada was here. It was day {n}.",
    }
    for n in range(5)
]  # fmt: skip


@pytest.fixture
def responses(work):
    (work / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return work / "answers.jsonl"


def values(path):
    return [
        (row["metric"], row["score"], row["status"])
        for batch in Samples.read(path).to_batches(["metric", "score", "status"])
        for row in batch.to_pylist()
    ]


def run(*arguments):
    app = typer.Typer()
    app.command()(score)
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_judged_metrics_are_scored_and_zero_stays_zero(responses, work):
    with serving(good(**{"1": False, "2": False})) as server:
        judge = Judge(server.url, "m", work / "cache")
        found = score_responses(responses, work / "out.parquet", judge=judge)
    judged = [
        row for row in values(work / "out.parquet") if row[0] in ("faithfulness", "overreach")
    ]
    assert judged
    assert {row[1:] for row in judged} == {(0.0, "ok")}
    assert not [gap for gap in found.gaps if gap.task == "ragtruth.core" and "judge" in gap.reason]


def test_without_a_judge_its_metrics_are_gaps(responses, work):
    (work / "mine.yaml").write_text(
        "name: mine\ngroups: {CAN: x}\ncapabilities:\n  - code: C4\n    group: CAN\n    metrics:\n"
        "      - {task: ragtruth.core, scorer: faithfulness, metric: faithfulness, by: judge}\n"
    )
    with pytest.raises(InputError, match="needs a judge"):
        score_responses(responses, work / "out.parquet", manifest=work / "mine.yaml")


def test_a_few_failures_are_statuses_without_numbers(responses, work):
    with serving(scripted(says("no idea"))) as server:
        judge = Judge(server.url, "m", work / "cache", failure_budget=1.0)
        score_responses(responses, work / "out.parquet", judge=judge)
    judged = [row for row in values(work / "out.parquet") if row[0] == "faithfulness"]
    assert {row[1:] for row in judged} == {(None, "judge_unparsable")}


def test_what_failed_is_judged_again_and_nothing_else(responses, work):
    with serving(scripted(says("no idea"))) as server:
        judge = Judge(server.url, "m", work / "cache", failure_budget=1.0)
        score_responses(responses, work / "out.parquet", judge=judge)
    with serving(good()) as server:
        for _ in range(2):
            judge = Judge(server.url, "m", work / "cache")
            score_responses(responses, work / "out.parquet", judge=judge, rejudge=0)
    assert {row[2] for row in values(work / "out.parquet") if row[0] == "faithfulness"} == {"ok"}
    assert len(server.requests) == len({body for _, body in server.requests})


@pytest.mark.parametrize(
    ("behave", "code", "words"),
    [
        (answers(401), 2, "FORGETMAP_JUDGE_KEY"),
        (answers(404), 2, "check URL"),
        (says("rubbish"), 3, "more than the budget"),
    ],
)
def test_a_judge_that_fails_ends_the_run_with_one_line(responses, work, behave, code, words):
    with serving(scripted(behave)) as server:
        done = run(responses, "--out", work / "out.parquet", "--judge", f"{server.url}#m")
    assert done.exit_code == code, done.output
    assert words in done.output
    assert "Traceback" not in done.output
    assert not (work / "out.parquet").exists()


def test_a_judge_that_works_is_named_by_url_and_model(responses, work):
    with serving(good()) as server:
        done = run(responses, "--out", work / "out.parquet", "--judge", f"{server.url}#tiny/model")
    assert done.exit_code == 0, done.output
    assert {payload["model"] for payload in server.payloads} == {"tiny/model"}


def test_the_judge_is_asked_twice_and_its_steadiness_and_cost_are_told(responses, work):
    with serving(good()) as server:
        arguments = ("--judge", f"{server.url}#m", "--judge-price", "1,2", "--rejudge", "3")
        done = run(responses, "--out", work / "out.parquet", *arguments)
        assert done.exit_code == 0, done.output
        assert "the same value again" in " ".join(done.output.split())
        assert "cost" in done.output
        before = len(server.requests)
        again = run(responses, "--out", work / "out.parquet", *arguments)
    assert "the same value again" in " ".join(again.output.split())
    assert len(server.requests) == before


@pytest.mark.parametrize("price", ["1", "a,b", "1,2,3"])
def test_a_price_is_two_numbers(responses, work, price):
    done = run(
        responses, "--out", work / "o.parquet", "--judge", "http://x#m", "--judge-price", price
    )
    assert done.exit_code == 2
    assert "IN,OUT" in done.output
