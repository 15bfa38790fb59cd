"""The command line: what it prints, writes and returns."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from forgetmap.base.words import WIDTH
from forgetmap.cli.app import app
from forgetmap.map.result import ForgettingMap
from forgetmap.readers.registry import read
from places import DATA

BEFORE, AFTER = (str(DATA / "lm_eval/0.4.13" / side) for side in ("before", "after"))


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def printed():
    return run("compare", BEFORE, AFTER, "--draws", 500).output


def test_the_headline_sentence_comes_first(printed):
    assert printed.startswith("Lost between 11.6 % and 27.8 % (")
    sentence = printed.split("tiny-before ->")[0]
    assert "gained" in sentence
    assert "Verdict: " in sentence


def test_the_output_fits_a_hundred_columns(printed):
    assert max(len(line) for line in printed.splitlines()) <= WIDTH
    assert "\x1b" not in printed


def test_long_names_give_way_and_numbers_stay(tmp_path):
    for name in ("before", "after"):
        rows = "".join(
            f'{{"task":"{"x" * 80}","question":"{i}","score":{i % 2}}}\n' for i in range(9)
        )
        (tmp_path / f"{name}.jsonl").write_text(rows)
    output = run("compare", tmp_path / "before.jsonl", tmp_path / "after.jsonl").output
    assert max(len(line) for line in output.splitlines()) <= WIDTH
    assert "44.4→44.4" in output


def test_json_to_a_file_and_to_stdout_agree(tmp_path):
    out = tmp_path / "map.json"
    assert run("compare", BEFORE, AFTER, "--draws", 500, "--json", out, "--quiet").output == ""
    shown = run("compare", BEFORE, AFTER, "--draws", 500, "--json", "-").stdout
    assert json.loads(shown) == json.loads(out.read_text())
    assert ForgettingMap.from_json(out.read_text()).total.n == 104


def test_all_outputs_are_written(tmp_path):
    result = run(
        *("compare", BEFORE, AFTER, "--draws", 500, "--csv", tmp_path / "map.csv"),
        *("--latex", tmp_path / "map.tex", "--flips", tmp_path / "flips.jsonl"),
    )
    assert result.exit_code == 0
    flips = [json.loads(line) for line in (tmp_path / "flips.jsonl").read_text().splitlines()]
    assert {row["transition"] for row in flips} == {"forgotten", "gained"}
    forgotten = [
        row for row in flips if row["task"] == "fm_capitals" and row["transition"] == "forgotten"
    ]
    assert len(forgotten) == 4
    for row in forgotten:
        assert row["k"] == 4
        assert row["answer_before"] != row["answer_after"]
    assert "\\begin{tabular}" in (tmp_path / "map.tex").read_text()
    assert (tmp_path / "map.csv").read_text().count("\n") == 1 + 2 + 8


def test_a_lost_format_is_named_as_the_cause(tmp_path):
    run(
        *("compare", BEFORE, AFTER, "--draws", 500, "--flips", tmp_path / "flips.jsonl"),
        *("--metric", "fm_sums=exact_match,strict-match"),
    )
    flips = [json.loads(line) for line in (tmp_path / "flips.jsonl").read_text().splitlines()]
    lost = [r["cause"] for r in flips if r["task"] == "fm_sums" and r["transition"] == "forgotten"]
    assert sorted(lost) == ["wrapped", "wrong", "wrong", "wrong", "wrong"]


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_flips_of_identical_logs_are_an_empty_file(suffix, tmp_path):
    out = tmp_path / f"flips.{suffix}"
    assert run("compare", BEFORE, BEFORE, "--draws", 500, "--flips", out).exit_code == 0
    assert out.exists()


@pytest.mark.parametrize(
    ("limit", "code"),
    [("max-forgetting=0.05", 1), ("max-forgetting=0.9", 0), ("max-drop=0.5", 0)],
)
def test_gates_decide_the_exit_code(limit, code, tmp_path):
    out = tmp_path / "map.json"
    result = run("compare", BEFORE, AFTER, "--draws", 500, "--gate", limit, "--json", out)
    assert result.exit_code == code
    assert f"gate {limit}:" in result.output.replace("\n", " ")
    assert out.exists()


def test_show_tells_what_a_log_holds():
    result = run("show", BEFORE)
    assert "lm-eval 0.4.13" in result.output
    assert "tiny-before" in result.output
    summary = json.loads(run("show", BEFORE, "--json", "-").stdout)
    capitals = next(row for row in summary["tasks"] if row["task"] == "fm_capitals")
    assert (capitals["items"], capitals["repeats"], capitals["k"]) == (16, 1, "4")


def test_show_tells_which_tasks_are_above_chance(tmp_path):
    rows = [f"{task},{n}?,{right},4" for n in range(20) for task, right in ("a1", "b0")]
    rows += [f"open,{n}?,1," for n in range(20)]
    log = tmp_path / "run.csv"
    log.write_text("\n".join(["task,question,correct,k", *rows]))
    said = " ".join(run("show", log, "--above-chance").stdout.split())
    assert "clearly above chance (1 of 2 tasks): a not" in said
    assert "not clearly above chance (1 of 2 tasks): b" in said
    by_task = {
        row["task"]: row for row in json.loads(run("show", log, "--json", "-").stdout)["tasks"]
    }
    assert (by_task["a"]["chance"], by_task["open"]["chance"]) == (0.25, None)
    assert by_task["a"]["by_luck"] < 1e-9 < by_task["b"]["by_luck"] == 1
    log.write_text("task,question,correct\nsums,2+2?,1\n")
    assert "none can be tested for chance" in run("show", log, "--above-chance").stdout


def test_convert_keeps_the_map(tmp_path):
    for side, folder in (("before", BEFORE), ("after", AFTER)):
        assert run("convert", folder, tmp_path / f"{side}.parquet").exit_code == 0
    one = run("compare", BEFORE, AFTER, "--draws", 500, "--json", "-").stdout
    other = run(
        *("compare", tmp_path / "before.parquet", tmp_path / "after.parquet"),
        *("--draws", 500, "--json", "-"),
    ).stdout
    assert json.loads(one)["tasks"] == json.loads(other)["tasks"]
    assert json.loads(one)["confounds"] == json.loads(other)["confounds"]
    assert read(tmp_path / "before.parquet").meta.harness == "lm-eval"


def test_convert_to_every_eval_ever_and_back_keeps_the_map(tmp_path):
    for side, folder in (("before", BEFORE), ("after", AFTER)):
        result = run("convert", folder, tmp_path / side, "--to", "every-eval-ever")
        assert result.exit_code == 0, result.output
    one = run("compare", BEFORE, AFTER, "--draws", 500, "--json", "-").stdout
    other = run("compare", tmp_path / "before", tmp_path / "after", "--draws", 500, "--json", "-")
    assert json.loads(one)["tasks"] == json.loads(other.stdout)["tasks"]


def test_convert_without_text_keeps_none(tmp_path):
    run("convert", BEFORE, tmp_path / "bare.parquet", "--no-text")
    samples = read(tmp_path / "bare.parquet")
    assert {
        text for batch in samples.to_batches(["prompt"]) for text in batch["prompt"].to_pylist()
    } == {None}


def test_one_of_several_models_is_chosen(tmp_path):
    (tmp_path / "both").mkdir()
    for side, folder in (("before", BEFORE), ("after", AFTER)):
        (tmp_path / "both" / side).symlink_to(folder)
    both = tmp_path / "both"
    chosen = run(
        *("compare", both, both, "--before-model", "tiny-before", "--after-model", "tiny-after"),
        *("--draws", 500, "--json", "-"),
    )
    plain = run("compare", BEFORE, AFTER, "--draws", 500, "--json", "-")
    assert json.loads(chosen.stdout)["total"] == json.loads(plain.stdout)["total"]
    assert "tiny-after" in run("show", both, "--model", "tiny-after").output


def test_demo_writes_its_outputs_and_says_where(tmp_path):
    result = run("demo", "--out", tmp_path / "demo")
    assert result.exit_code == 0
    assert result.output.startswith("of all checkpoints sft lost most, against before: ")
    assert "\nOld skills: lost " in result.output
    assert "47 pairs lost 1.3 to 33.5 %, as published by Harmon et al." in result.output
    assert "forgetmap study published" in result.output
    written = {path.name for path in (tmp_path / "demo").iterdir()}
    pages = {"report.html", "lineage.html"}
    assert written == {*pages, "map.json", "map.csv", "map.tex", "flips.csv"}
    assert all(name in result.output for name in written)


def test_the_package_runs_as_a_module():
    told = [sys.executable, "-m", "forgetmap", "--version"]
    shown = subprocess.run(told, check=True, capture_output=True, text=True).stdout
    assert shown == run("--version").output


def test_help_teaches_and_version_is_printed():
    assert "forgetmap compare runs/base runs/tuned" in run("compare", "--help").output
    assert run("--version").output.startswith("forgetmap ")


def test_importing_the_package_loads_nothing_heavy():
    code = (
        "import sys, forgetmap, forgetmap.cli.app;"
        "heavy = {'numpy', 'pyarrow', 'duckdb', 'scipy', 'pydantic', 'rich'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_gate_on_a_handful_of_items_is_withheld(tmp_path):
    (tmp_path / "log.csv").write_text("question,correct\nq0,1\nq1,0\n")
    out = tmp_path / "map.json"
    arguments = ("compare", tmp_path / "log.csv", tmp_path / "log.csv", "--json", out)
    result = run(*arguments, "--gate", "max-drop=0.1")
    assert result.exit_code == 3
    assert "only 2 items were compared" in result.stderr
    assert out.exists()
    assert run(*arguments).exit_code == 0
