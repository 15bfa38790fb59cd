"""Bad pipelines get one clear line with the file and the line in it; nothing is half written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import typer
from typer.testing import CliRunner

from forgetmap.base.errors import InputError
from forgetmap.cli.lineage import lineage as command
from forgetmap.lineage.pipeline import Checkpoint, Pipeline, from_run
from lineage_logs import write_history
from logs import assert_one_line, assert_safe_for_a_terminal, content_of, items, write_jsonl

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
app.command()(command)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_history(tmp_path)
    return tmp_path


def refused(work: Path, *arguments: object, says: tuple[str, ...]) -> None:
    there = content_of(work)
    result = run(*arguments, "--json", "out.json", "--report", "out.html", "--csv", "out.csv")
    assert_one_line(result.exit_code, result.stdout, result.stderr, says, 2, result)
    assert content_of(work) == there


HEAD = "checkpoints:\n  base: {log: base.jsonl}\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (HEAD + "  sft: {log: sft.jsonl, parent: base}\n", (":3:", "did you mean 'parents'?")),
        (HEAD + "  sft: {log: sft.jsonl, parents: bas}\n", (":3:", "'bas'", "did you mean 'base'")),
        (HEAD + "  sft:\n    parents: base\n    log: x.jsonl\n", (":5:", "x.jsonl", "not there")),
        (HEAD + "  sft: {log: sft.jsonl}\n", (":3:", "base, sft have no parents", "the root")),
        (HEAD + "  sft: {log: sft.jsonl, parents: [base, base]}\n", (":3:", "base twice")),
        (HEAD + "  sft: {log: sft.jsonl, parents: rl}\n  rl: {log: rl.jsonl, parents: sft}\n",
         (":3:", "sft, rl form a cycle")),
        ("checkpoints:\n  a: {log: base.jsonl, parents: a}\n  b: {log: sft.jsonl}\n",
         (":2:", "cycle")),
        (HEAD + "  base: {log: sft.jsonl}\n", (":3:", "'base' occurs twice")),
        (HEAD + "  sft: {log: sft.jsonl, parents: base, steps: many}\n", (":3:", "steps", "numb")),
        (HEAD + "  sft: {log: sft.jsonl, parents: base, steps: .inf}\n", (":3:", "steps", "fini")),
        (HEAD + "  sft: {parents: base}\n", (":3:", "log", "required")),
        (HEAD, ("checkpoints", "at least 2")),
        ("chekpoints: {}\n", ("pipeline.yaml:1:",)),
        ("task_mp: x\n" + HEAD + "  sft: {log: sft.jsonl, parents: base}\n",
         (":1:", "did you mean 'task_map'?")),
        ("checkpoints: [1, 2]\n", (":1:", "dictionary")),
        ("checkpoints: {base: {log: a\n", ("is not YAML",)),
        ("- 1\n- 2\n", ("pipeline.yaml:1:",)),
        ("", ("pipeline.yaml:1:",)),
        (HEAD + "  sft: !!python/object/apply:os.system ['true']\n", ("is not YAML",)),
        (HEAD + "  sft: {log: sft.jsonl, parents: base, model: nobody}\n",
         ("checkpoint sft", "no model 'nobody'")),
        (HEAD + "  sft: {log: sft.jsonl, parents: base}\ntask_map: none.csv\n", ("none.csv",)),
    ],
)  # fmt: skip
def test_a_bad_pipeline_is_refused_with_its_line(
    work: Path, text: str, says: tuple[str, ...]
) -> None:
    (work / "pipeline.yaml").write_text(text)
    refused(work, "pipeline.yaml", says=says)


def test_bytes_that_are_no_text(work: Path) -> None:
    (work / "pipeline.yaml").write_bytes(b"checkpoints: \xff\xfe")
    refused(work, "pipeline.yaml", says=("is not UTF-8",))


def test_a_broken_log_is_named_with_its_checkpoint(work: Path) -> None:
    (work / "rl.jsonl").write_text("not json\nat all\n")
    refused(work, "pipeline.yaml", says=("checkpoint rl", "rl.jsonl:1"))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--identity", "name"), ("--identity name", "content or index")),
        (("--margin", "2"), ("margin",)),
        (("--draws", "5"), ("draws",)),
        (("--seed", "-1"), ("seed",)),
        (("--threshold", "nan"), ("threshold",)),
        (("--metric", "nothing"), ("no task has a metric in common",)),
        (("--task-map", "no.csv"), ("no.csv",)),
    ],
)
def test_bad_options(work: Path, options: tuple[str, ...], says: tuple[str, ...]) -> None:
    refused(work, "pipeline.yaml", *options, says=says)


def test_outputs_must_not_overwrite_inputs(work: Path) -> None:
    there = content_of(work)
    result = run("pipeline.yaml", "--json", "pipeline.yaml")
    assert_one_line(result.exit_code, result.stdout, result.stderr, ("read or written",), 2)
    assert content_of(work) == there


def test_a_missing_pipeline(work: Path) -> None:
    refused(work, "no.yaml", says=("no.yaml",))


def test_bad_runs(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a folder"):
        from_run(tmp_path / "nothing")
    with pytest.raises(InputError, match="holds 0 logs"):
        from_run(tmp_path)
    write_jsonl(tmp_path / "final.jsonl", items([1]))
    with pytest.raises(InputError, match="the name holds no number"):
        from_run(tmp_path)
    (tmp_path / "final.jsonl").rename(tmp_path / "a-1.jsonl")
    write_jsonl(tmp_path / "b-01.jsonl", items([1]))
    with pytest.raises(InputError, match="the same number as a-1"):
        from_run(tmp_path)


def test_a_graph_made_in_python_is_checked_too() -> None:
    with pytest.raises(InputError, match="unknown parent 'x'"):
        Pipeline.of({"a": Checkpoint(log="a"), "b": Checkpoint(log="b", parents="x")})


def test_the_command_prints_the_tree(work: Path) -> None:
    result = run("pipeline.yaml", "--draws", "200", "--json", "out.json", "--csv", "out.csv")
    assert (result.exit_code, result.stderr) == (0, "")
    for text in ("base", "├─ ", "merge merged: of 11 items 3 lost by merging, 1 new", "lost for"):
        assert text in result.stdout
    assert (work / "out.json").exists()
    assert (work / "out.csv").read_text().startswith("before,after,edge,")


def test_names_from_outside_are_harmless_in_a_terminal(work: Path) -> None:
    text = (work / "pipeline.yaml").read_text()
    (work / "pipeline.yaml").write_text(text.replace("merged:", '"\\e[31m\\u202emerged":'))
    for stage in ("base", "sft", "rl", "code", "merged"):
        path = work / f"{stage}.jsonl"
        path.write_text(path.read_text().replace('"lost"', '"\\u001b[31mlost\\u202e"'))
    result = run("pipeline.yaml", "--draws", "200")
    assert result.exit_code == 0
    assert_safe_for_a_terminal(result.stdout)
