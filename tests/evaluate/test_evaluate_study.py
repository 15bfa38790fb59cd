"""`eval --study`: what a study names and lacks is made, once, by served models on this machine."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("httpx", reason="needs the extra `eval`")

from test_evaluate_endpoint import serve  # noqa: F401

from forgetmap.study.build import run_study
from logs import Workplace, write_jsonl

STUDY = """
defaults:
  before: runs/base
  after: runs/{{method}}-{{seed}}
  suite: sums.jsonl
  eval_before: "{before}"
pairs:
  - {{eval_after: "{after}", for: {{method: [sft, rl], seed: [0]}}}}
"""


def forgetful(lost: int):
    """A server's trouble: it has forgotten some sums."""

    def trouble(prompt, attempt):
        number = int(prompt.split(" plus ")[0].split()[-1])
        choice = {"text": " 7777\\n", "finish_reason": "stop"}
        body = {"choices": [choice], "usage": {"completion_tokens": 2}}
        return (200, json.dumps(body).encode()) if number < lost else None

    return trouble


def write_study(work: Workplace, before: str, after: str) -> None:
    rows = [
        {"task": "sums", "id": f"s{n}", "question": f"{n} plus {n} =", "answer": str(2 * n)}
        for n in range(1, 31)
    ]
    write_jsonl(work / "sums.jsonl", rows)
    (work / "study.yaml").write_text(STUDY.format(before=before, after=after))


def test_what_is_missing_is_made_once(serve, work: Workplace):  # noqa: F811
    base, tuned = serve(), serve(forgetful(11))
    write_study(work, base.name, tuned.name)
    made = work.worked("eval", "--study", "study.yaml", "--max-tokens", "8")
    assert made.stdout.count("30 answers") == 3
    assert "nothing is missing; now: forgetmap study study.yaml" in made.stdout
    result = run_study(work / "study.yaml")
    assert [pair.name for pair in result.pairs] == ["sft-0", "rl-0"]
    assert [round(pair.old.change.value, 3) for pair in result.pairs] == [-0.333, -0.333]
    asked = base.questions, tuned.questions
    again = work.worked("eval", "--study", "study.yaml", "--max-tokens", "8")
    assert "answers" not in again.stdout
    assert (base.questions, tuned.questions) == asked == (30, 60)


def test_a_run_that_was_stopped_goes_on(serve, work: Workplace):  # noqa: F811
    base, tuned = serve(), serve()
    write_study(work, base.name, tuned.name)
    work.worked("eval", "--study", "study.yaml")
    (work / "runs/sft-0/manifest.json").unlink()
    answers = work / "runs/sft-0/answers.jsonl"
    answers.write_text("".join(answers.read_text().splitlines(keepends=True)[:20]))
    done = work.worked("eval", "--study", "study.yaml")
    assert "10 answers, 20 were finished already" in done.stdout
    assert tuned.questions == 70


def test_a_run_that_was_stopped_at_its_very_start_goes_on(serve, work: Workplace):  # noqa: F811
    base, tuned = serve(), serve()
    write_study(work, base.name, tuned.name)
    (work / "runs/sft-0").mkdir(parents=True)
    (work / "runs/sft-0/.lock").touch()
    done = work.worked("eval", "--study", "study.yaml", "--max-tokens", "8")
    assert done.stdout.count("30 answers") == 3


def test_a_model_that_fails_does_not_stop_the_others(serve, work: Workplace):  # noqa: F811
    tuned = serve()
    write_study(work, "http://127.0.0.1:9/v1#gone", tuned.name)
    failed = work.run("eval", "--study", "study.yaml")
    assert failed.exit_code == 2
    assert "1 of 3 missing logs could not be made; runs/base: " in failed.stderr
    assert (work / "runs/rl-0/manifest.json").is_file()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{before: runs/base, after: runs/x}", "name the model to ask as eval_before"),
        ("{before: base.csv, after: x.csv, eval_before: m, eval_after: m}", "without .csv"),
        (
            "{before: runs/a, after: runs/a, eval_before: m, eval_after: n}",
            "another model or suite",
        ),
    ],
)
def test_a_study_that_does_not_say_how(work: Workplace, text: str, says: str):
    (work / "study.yaml").write_text(f"pairs:\n- {text}\n")
    work.refused("eval", "--study", "study.yaml", says=[says])


def test_one_way_at_a_time(work: Workplace):
    work.refused("eval", "x", "--study", "study.yaml", says=["give one MODEL"])
    work.refused("eval", "--study", "s.yaml", "--run-code", says=["--study makes logs"])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_ray_cluster_makes_what_is_missing(serve, work: Workplace):  # noqa: F811
    ray = pytest.importorskip("ray", reason="needs the extra `ray`")
    base, tuned = serve(), serve(forgetful(11))
    write_study(work, base.name, tuned.name)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        done = work.run("eval", "--study", "study.yaml", "--executor", "ray", "--workers", "2")
    finally:
        ray.shutdown()
    assert done.exit_code == 0, done.output
    result = run_study(work / "study.yaml")
    assert [round(pair.old.change.value, 3) for pair in result.pairs] == [-0.333, -0.333]
    assert (base.questions, tuned.questions) == (30, 60)
