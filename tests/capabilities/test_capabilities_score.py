"""From stored answers to scores: what is scored, what is a gap, and that work is not done twice."""

from __future__ import annotations

import json
import textwrap

import pytest
import typer
from typer.testing import CliRunner

from forgetmap.answers.items import Value
from forgetmap.base.errors import InputError
from forgetmap.capabilities.manifest import Manifest
from forgetmap.capabilities.robustness import Outcome, pair_with_originals
from forgetmap.capabilities.score import score_responses
from forgetmap.cli.drift import drift as drift_command
from forgetmap.cli.score import score
from forgetmap.samples.table import Samples
from places import DATA

MANIFEST = """\
name: tiny
groups: {CAN: can}
tasks:
  t.again: {original: t.one}
capabilities:
  - code: X
    group: CAN
    metrics:
      - {task: t.one, scorer: "tiny_scorer:score", metric: accuracy}
      - {task: t.again, scorer: "tiny_scorer:score", metric: accuracy}
      - {task: t.again, scorer: robustness, metric: agreement, needs: [meta.original]}
      - {task: t.again, scorer: robustness, metric: worst_of_k, needs: [meta.original]}
      - {task: t.one, scorer: coherence, metric: coherence, by: judge}
      - {task: t.one, scorer: "tiny_scorer:passages", metric: found, needs: [context]}
      - {task: t.missing, scorer: "tiny_scorer:score", metric: accuracy}
"""
SCORER = """\
from forgetmap.answers.items import Value

VERSION = 3
calls = []

def score(items, responses):
    calls.append(items[0].task)
    return {"accuracy": [
        Value(None, "empty") if not said else Value(float(said == item.gold), answer=said)
        for item, said in zip(items, responses)
    ]}

def passages(items, responses):
    return {"found": [Value(1.0) for _ in items]}

def broken(items, responses):
    raise ZeroDivisionError("oh\\nno")

def wild(items, responses):
    return {"accuracy": [Value(3.0) for _ in items]}

def short(items, responses):
    return {"accuracy": []}

def other(items, responses):
    return {"acuracy": [Value(1.0) for _ in items]}
"""


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A manifest with a scorer of its own, and answers to two of its tasks."""
    (tmp_path / "tiny_scorer.py").write_text(SCORER)
    (tmp_path / "tiny.yaml").write_text(MANIFEST)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "tiny_scorer", raising=False)
    answers = tmp_path / "answers"
    answers.mkdir()
    write(answers / "t_one.jsonl", ("a", "x", "x"), ("b", "y", "x"), ("c", "z", ""))
    again = [("a1", "x", "x", "a"), ("a2", "x", "n", "a"), ("b1", "y", "y", "b")]
    write(answers / "t_again.jsonl", *again)
    return tmp_path


def write(path, *rows):
    path.write_text(
        "".join(
            json.dumps(
                {"id": ref, "prompt": f"{path.stem} {ref}", "gold": gold, "outputs": said}
                | ({"meta": {"original": original[0]}} if original else {})
            )
            + "\n"
            for ref, gold, said, *original in rows
        )
    )


def run(folder, **options):
    return score_responses(
        folder / "answers", folder / "out.parquet", manifest=folder / "tiny.yaml", **options
    )


def rows(folder):
    table = Samples.read(folder / "out.parquet")
    return [row for batch in table.to_batches() for row in batch.to_pylist()]


def test_one_row_per_item_and_metric(tiny):
    scored = run(tiny, model="m")
    found = {(row["task"], row["metric"], row["item_ref"]): row for row in rows(tiny)}
    assert len(found) == scored.rows == 3 + 3 + 2 * 2
    assert {row["model"] for row in found.values()} == {"m"}
    right, wrong, empty = (found["t.one", "accuracy", ref] for ref in "abc")
    assert (right["score"], right["status"], right["answer"]) == (1.0, "ok", "x")
    assert wrong["score"] == 0.0
    assert (empty["score"], empty["status"]) == (None, "empty")
    assert right["prompt"] == "t_one a"
    assert right["response"] == "x"


def test_robustness_is_paired(tiny):
    run(tiny)
    found = {
        (row["metric"], row["item_ref"]): row["score"]
        for row in rows(tiny)
        if row["task"] == "t.again"
    }
    assert found["agreement", "a"] == 0.5
    assert found["worst_of_k", "a"] == 0.0
    assert found["agreement", "b"] == 0.0  # "x" first, "y" in other words
    assert found["worst_of_k", "b"] == 0.0


def test_robustness_is_a_gap_where_there_is_nothing_to_compare_with(tiny):
    (tiny / "answers" / "t_one.jsonl").unlink()
    gaps = {gap.metric: gap.reason for gap in run(tiny).gaps if gap.task == "t.again"}
    assert gaps == dict.fromkeys(
        ("agreement", "worst_of_k"), "t.one accuracy: no answers to this task"
    )


def test_robustness_without_its_original_is_no_number():
    found = pair_with_originals([], [Outcome("r", 0, Value(1.0, answer="x"))], {"r": "gone"})
    assert found["gone", 0]["agreement"] == Value(None, "invalid_gold")
    failed = Value(None, "judge_failed")
    one, two = [Outcome("o", 0, failed)], [Outcome("r", 0, Value(1.0, answer="x"))]
    assert pair_with_originals(one, two, {"r": "o"})["o", 0]["both_right"].value is None


def test_what_cannot_be_scored_is_a_gap_never_a_zero(tiny):
    scored = run(tiny)
    assert {(gap.task, gap.metric): gap.reason for gap in scored.gaps} == {
        ("t.one", "coherence"): "needs a judge (--judge)",
        ("t.one", "found"): "no item has 'context'",
        ("t.missing", "accuracy"): "no answers to this task",
    }
    assert {row["task"] for row in rows(tiny)} == {"t.one", "t.again"}
    warnings = Samples.read(tiny / "out.parquet").meta.warnings
    assert "not scored, no answers to this task: t.missing accuracy" in warnings


def test_a_finished_part_is_not_done_again(tiny):
    import tiny_scorer

    assert run(tiny).reused == 0
    assert tiny_scorer.calls == ["t_one", "t_again"]
    first = rows(tiny)
    (tiny / "out.parquet").unlink()
    assert run(tiny).reused == 3
    assert tiny_scorer.calls == ["t_one", "t_again"]
    assert rows(tiny) == first
    write(tiny / "answers" / "t_again.jsonl", ("a1", "x", "x", "a"))  # only this task has changed
    assert run(tiny).reused == 1
    assert tiny_scorer.calls == ["t_one", "t_again", "t_again"]
    tiny_scorer.VERSION = 4
    assert run(tiny).reused == 0  # the comparison rests on what the scorer gave


def test_a_run_that_was_stopped_goes_on_where_it_was(tiny):
    import tiny_scorer

    def stop(what, done, steps):
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tiny, step=stop)
    assert not (tiny / "out.parquet").exists()
    assert tiny_scorer.calls == ["t_one"]
    assert run(tiny).reused == 1
    assert tiny_scorer.calls == ["t_one", "t_again"]


def test_a_damaged_part_is_done_again(tiny):
    run(tiny)
    first = rows(tiny)
    for part in (tiny / "out.parquet.parts").iterdir():
        part.write_bytes(b"PAR1 broken")
    assert run(tiny).reused == 0
    assert rows(tiny) == first


class FakeJudge:
    version = "fake, prompts 1"
    model = "fake"

    def __init__(self, *values):
        self.values = values
        self.asked = 0

    def score(self, name, items, responses):
        self.asked += 1
        return {name: list(self.values)}


def test_judge_metrics_need_a_judge_and_failures_are_asked_again(tiny):
    judge = FakeJudge(Value(0.0), Value(None, "judge_failed"), Value(0.5))
    run(tiny, judge=judge, rejudge=0)
    found = {row["item_ref"]: row for row in rows(tiny) if row["metric"] == "coherence"}
    assert found["a"]["score"] == 0.0  # a true zero stays
    assert (found["b"]["score"], found["b"]["status"]) == (None, "judge_failed")
    run(tiny, judge=judge, rejudge=0)
    assert judge.asked == 2
    judge.values = (Value(0.0), Value(1.0), Value(0.5))
    run(tiny, judge=judge, rejudge=0)
    run(tiny, judge=judge, rejudge=0)
    assert judge.asked == 3
    assert Samples.read(tiny / "out.parquet").meta.settings["answers"]["judge"] == "fake, prompts 1"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tiny_scorer:broken", "failed on task t.one (ZeroDivisionError: oh)"),
        ("tiny_scorer:wild", "accuracy is 3, outside the manifest's range"),
        ("tiny_scorer:short", "accuracy must be 3 Values"),
        ("tiny_scorer:other", "accuracy wanted, but it gave acuracy"),
        ("tiny_scorer:nothing", "cannot be imported"),
        ("no_such_module:score", "cannot be imported"),
    ],
)
def test_a_scorer_of_ones_own_that_fails_gets_one_clear_line(tiny, name, message):
    text = (tiny / "tiny.yaml").read_text().replace("tiny_scorer:score", name)
    (tiny / "tiny.yaml").write_text(text)
    with pytest.raises(InputError) as error:
        run(tiny)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tiny / "out.parquet").exists()


def test_unknown_tasks_are_told(tiny):
    write(tiny / "answers" / "t_oen.jsonl", ("a", "x", "x"))
    (warning,) = run(tiny).warnings
    assert warning.startswith(
        "task 't_oen' is not in the manifest and was not scored; did you mean"
    )


def test_nothing_to_score(tiny):
    for file in (tiny / "answers").iterdir():
        file.unlink()
    with pytest.raises(InputError, match="holds no answers"):
        run(tiny)
    write(tiny / "answers" / "other.jsonl", ("a", "x", "x"))
    with pytest.raises(InputError, match="is not in the manifest"):
        run(tiny)


def test_one_task_in_two_spellings_is_refused(tmp_path):
    for name in ("gsm8k_core", "gsm8k_subset"):
        write(tmp_path / f"{name}.jsonl", ("a", "4", "4"))
    with pytest.raises(InputError, match=r"are the same task, gsm8k\.core; keep one"):
        score_responses(tmp_path, tmp_path / "out.parquet")


def test_several_models_must_be_chosen_from(tiny):
    for model in ("one", "two"):
        folder = tiny / "answers" / model
        folder.mkdir()
        write(folder / "t_one.jsonl", ("a", "x", "x"))
    with pytest.raises(InputError, match="choose by --model"):
        run(tiny)
    assert run(tiny, model="two").rows == 1


def test_a_samples_file_with_text_can_be_scored(tiny):
    run(tiny, model="m")
    again = score_responses(
        tiny / "out.parquet", tiny / "again.parquet", manifest=tiny / "tiny.yaml"
    )
    assert again.tasks == ["t.one", "t.again"]
    scores = {
        row["item_ref"]: row["score"]
        for batch in Samples.read(tiny / "again.parquet").to_batches()
        for row in batch.to_pylist()
        if row["task"] == "t.one"
    }
    assert scores == {"a": 1.0, "b": 0.0, "c": None}


def test_a_samples_file_without_text_is_refused(tmp_path):
    Samples.from_rows([{"task": "gsm8k.core", "item": 1, "score": 1.0}]).write(
        tmp_path / "s.parquet"
    )
    with pytest.raises(InputError, match="holds no text of the answers"):
        score_responses(tmp_path / "s.parquet", tmp_path / "out.parquet")


def test_a_long_prompt_is_cut_an_answer_is_not(tmp_path):
    row = {"task": "gsm8k.core", "prompt": "p" * 50_000, "gold": "4", "outputs": "4 " * 20_000}
    (tmp_path / "a.jsonl").write_text(json.dumps(row))
    score_responses(tmp_path / "a.jsonl", tmp_path / "out.parquet")
    stored = next(Samples.read(tmp_path / "out.parquet").to_batches()).to_pylist()[0]
    assert len(stored["prompt"]) < 5000
    assert stored["response"] == row["outputs"]


HOSTILE = [
    "import sys; sys.exit()", "9**9**9", "```python\nwhile True: pass\n```",
    '{"a":' * 20_000, "[" * 100_000, "\x00" * 1000, "(" * 50_000, "a" * 1_000_000, "\ud800", "",
    "1e999999", "<tool_call>" * 5000, "\u202e\u0000</script>",
]  # fmt: skip


def test_hostile_answers_do_not_stop_the_run(tmp_path):
    tasks = ("mmlu_pro.core", "gsm8k.core", "boolq.core", "popqa.subset", "mtbench.turn1",
             "harmbench.subset", "bfcl.subset", "gsm8k.schema", "ruler.32k",
             "qasper.citation")  # fmt: skip
    path = tmp_path / "answers.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for task in tasks:
            for number, said in enumerate(HOSTILE):
                row = {"task": task, "id": number, "prompt": f"q{number}", "gold": "4",
                       "choices": ["3", "4"], "schema": {"type": "object"}, "ctx": "It is 4.",
                       "outputs": said}  # fmt: skip
                file.write(json.dumps(row) + "\n")
    scored = score_responses(path, tmp_path / "out.parquet", model="hostile")
    assert set(scored.tasks) == set(tasks)


def app():
    commands = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
    for command in (score, drift_command):
        commands.command()(command)
    return commands


def test_the_command_scores_the_example(tmp_path):
    answers, out = DATA / "captrack" / "before", tmp_path / "before.parquet"
    done = CliRunner().invoke(app(), ["score", str(answers), "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "1,500 values of 7 tasks for before" in " ".join(done.output.split())
    assert "not scored, no answers to this task" in done.output
    means = {}
    for batch in Samples.read(out).to_batches(["task", "metric", "score"]):
        for row in batch.to_pylist():
            if row["metric"] == "accuracy":
                means.setdefault(row["task"], []).append(row["score"])
    assert {task: sum(scores) for task, scores in means.items()} == {
        "mmlu_pro.core": 53, "gsm8k.core": 52, "gsm8k.rephrased": 54, "popqa.subset": 49,
        "boolq.core": 48,
    }  # fmt: skip


def test_the_command_tells_what_the_judge_has_cost(tiny, monkeypatch):
    from forgetmap.capabilities.judge import Judge, Usage

    asked = []

    def judged(self, name, items, responses):
        asked.append((self.url, self.model, name))
        return {name: [Value(0.5) for _ in items]}

    monkeypatch.setattr(Judge, "score", judged)
    monkeypatch.setattr(Judge, "usage", Usage(3, 1, 2, 1500, 60, None))
    done = CliRunner().invoke(
        app(),
        ["score", str(tiny / "answers"), "--out", str(tiny / "o.parquet"),
         "--manifest", str(tiny / "tiny.yaml"), "--judge", "http://localhost:1/v1#small",
         "--rejudge", "0"],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert asked == [("http://localhost:1/v1", "small", "coherence")]
    assert "judge: 3 replies, 1 from the cache" in done.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere", "--out", "o.parquet"], "no such file or folder"),
        ([".", "--out", "o.csv"], "must end in .parquet"),
        ([".", "--out", "o.parquet"], "holds no answers"),
        ([".", "--out", "no/where/o.parquet"], "does not exist"),
        ([".", "--out", "o.parquet", "--judge", "http://localhost"], "write it as URL#MODEL"),
        ([".", "--out", "o.parquet", "--manifest", "x.yaml"], "no such file, and not built in"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app(), ["score", *arguments])
    assert done.exit_code == 2
    assert message in done.output
    assert len(done.output.strip().splitlines()) == 1
    assert not list(tmp_path.glob("*.parquet"))


def test_help_needs_no_heavy_imports():
    code = textwrap.dedent(
        """
        import sys
        import forgetmap.cli.score
        heavy = {"numpy", "pyarrow", "duckdb", "scipy", "pydantic", "yaml", "rich"}
        print(sorted(heavy & set(sys.modules)))
        """
    )
    import subprocess
    import sys

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.strip()
    assert loaded in ("[]", "['rich']"), loaded  # typer may bring rich


def test_the_built_in_manifest_can_be_used_as_an_object(tmp_path):
    scored = score_responses(
        DATA / "captrack" / "after", tmp_path / "o.parquet", manifest=Manifest.load("captrack")
    )
    assert scored.model == "after"
