"""`forgetmap study`: 80 columns, tables, clear errors, and names that stay names."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import TYPE_CHECKING

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from forgetmap.cli.app import app
from forgetmap.study.result import StudyResult
from forgetmap.views.tables.study_markdown import to_markdown
from forgetmap.views.terminal.study import print_study
from study_logs import lose, write_log, write_made_study
from study_results import made_result

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

SHARES = {"little": 0.01, "some": 0.05, "much": 0.2}
HOSTILE = "=1+1|[red]x[/] \\input y \x1b[31m\u202eevil"


def run(*args: object) -> Result:
    return CliRunner().invoke(app, ["study", *map(str, args)])


def test_a_study_in_80_columns(tmp_path: Path) -> None:
    file = write_made_study(tmp_path, SHARES)
    with file.open("a") as text:
        text.write("- {before: base.parquet, after: gone.parquet}\n")
    shown = run(file)
    assert shown.exit_code == 0, shown.output
    lines = shown.output.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("3 pairs: 2 lost more than 2 %")
    places = [shown.output.index(f"\n{name}") for name in SHARES]
    assert places == sorted(places)  # the least lost first
    assert "could not be compared" in shown.output
    assert "no such file or folder" in " ".join(shown.output.split())
    assert "what could be told" in shown.output


def test_the_order_can_be_chosen(tmp_path: Path) -> None:
    file = write_made_study(tmp_path, SHARES)
    text = file.read_text(encoding="utf-8")
    for size, name in enumerate(["much", "little", "some"], 1):
        text = text.replace(f"after: {name}.parquet", f"after: {name}.parquet, size: {size}B")
    file.write_text(text, encoding="utf-8")
    shown = run(file, "--sort", "size").output
    assert shown.index("\nmuch") < shown.index("\nlittle") < shown.index("\nsome")
    wrong = run(file, "--sort", "sise")
    assert wrong.exit_code == 2
    assert "--sort sise: is not known; did you mean 'size'?" in wrong.output


def test_json_csv_and_latex(tmp_path: Path) -> None:
    file = write_made_study(tmp_path, SHARES)
    outputs = [tmp_path / name for name in ("out.json", "out.csv", "out.tex")]
    done = run(file, "-q", "--json", outputs[0], "--csv", outputs[1], "--latex", outputs[2])
    assert (done.exit_code, done.output) == (0, "")
    result = StudyResult.from_json(outputs[0].read_text(encoding="utf-8"))
    rows = list(csv.DictReader(io.StringIO(outputs[1].read_text(encoding="utf-8"))))
    assert [row["pair"] for row in rows if row["level"] == "total"] == list(SHARES)
    much = next(row for row in rows if (row["pair"], row["level"]) == ("much", "total"))
    assert float(much["lost_high_end"]) == result.pair("much").old.lost.high_end
    assert much["rank"] == "3"
    assert r"much & 3 [3--3] & 20.0" in outputs[2].read_text(encoding="utf-8")
    stdout = run(file, "--json", "-")
    assert json.loads(stdout.output)["schema_version"] == 1


def test_markdown_has_every_table_whole(tmp_path: Path) -> None:
    result = made_result(pairs=40)
    text = to_markdown(result)
    names = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert {"Kinds of training", "Leaderboard", "What could be told"} <= set(names)
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1
    assert all(f"`{pair.name}`" in text for pair in result.pairs)
    file = write_made_study(tmp_path, SHARES)
    done = run(file, "-q", "--markdown", tmp_path / "out.md")
    assert (done.exit_code, done.output) == (0, "")
    made = (tmp_path / "out.md").read_text(encoding="utf-8")
    assert "| `much` | 3 (3 to 3) | 20.0 (" in made


def test_markdown_runs_no_name(tmp_path: Path) -> None:
    result = made_result(pairs=6)
    evil = "<img src=x onerror=alert(1)> `|` [x](http://y) @all\n# head"
    pairs = [
        pair.model_copy(update={"attributes": {**pair.attributes, "family": evil, evil: "x"}})
        for pair in result.pairs
    ]
    text = to_markdown(result.model_copy(update={"pairs": pairs, "warnings": [evil]}))
    outside = re.sub(r"`[^`]*`", "", text)
    assert evil.split()[0] in text
    assert not re.search(r"<img|@all|http:|^# head", outside, re.MULTILINE)


def test_outputs_never_replace_what_is_read(tmp_path: Path) -> None:
    file = write_made_study(tmp_path, SHARES)
    done = run(file, "--json", tmp_path / "base.parquet")
    assert done.exit_code == 2
    assert "is read or written already" in done.output


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("pairs:\n- {before: a}\n", "study.yaml:2: a pair needs 'after'"),
        ("pairs:\n- {before: a, after: b}\n", "none of its 1 pairs could be compared"),
        ("pairs: [", "is not YAML"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "study.yaml").write_text(text, encoding="utf-8")
    done = run(tmp_path / "study.yaml")
    assert done.exit_code == 2
    assert told in done.output
    assert len(done.output.splitlines()) == 1


def test_init_then_study(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    before = rng.random(200) < 0.7
    write_log(tmp_path / "smol-135M" / "base.parquet", before)
    for seed in (0, 1):
        log = tmp_path / "smol-135M" / f"sft-seed{seed}.parquet"
        write_log(log, lose(before, 0.1, rng))
    made = run("init", tmp_path)
    assert made.exit_code == 0, made.output
    again = run("init", tmp_path)
    assert again.exit_code == 2
    assert "is there already" in again.output
    shown = run(tmp_path / "study.yaml", "--deterministic")
    assert shown.exit_code == 0, shown.output
    assert "replicates" in shown.output
    elsewhere = tmp_path / "else"
    elsewhere.mkdir()
    assert run("init", tmp_path, "--out", elsewhere / "s.yaml").exit_code == 0
    assert run(elsewhere / "s.yaml", "-q").exit_code == 0
    folder = run(tmp_path)
    assert folder.exit_code == 2
    assert "forgetmap study init" in folder.output


def test_hostile_names_stay_names(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    before = rng.random(100) < 0.7
    write_log(tmp_path / "base.parquet", before)
    entries = []
    for number in range(4):
        write_log(tmp_path / f"{number}.parquet", lose(before, 0.1, rng), model=HOSTILE)
        values = {"name": f"{HOSTILE}{number}", "before": "base.parquet"}
        values |= {"after": f"{number}.parquet", "[b]kind{x}": f"{HOSTILE}{number % 2}"}
        entries.append(values)
    entries.append({"name": f"{HOSTILE} broken", "before": "base.parquet", "after": "\x1b[31mno"})
    file = tmp_path / "study.yaml"
    file.write_text(json.dumps({"pairs": entries}), encoding="utf-8")
    table, tex = tmp_path / "out.csv", tmp_path / "out.tex"
    shown = run(file, "--csv", table, "--latex", tex, "--deterministic")
    assert shown.exit_code == 0, shown.output
    assert "\x1b" not in shown.output
    assert "\u202e" not in shown.output
    assert "[red]x[/]" in shown.output
    for row in csv.reader(io.StringIO(table.read_text(encoding="utf-8"))):
        assert not any(cell.startswith(("=", "\x1b")) for cell in row)
    assert r"\input" not in tex.read_text(encoding="utf-8")


def test_names_that_differ_at_their_ends_are_told_apart_in_80_columns() -> None:
    names = [f"a-family-with-a-long-name-trained-in-a-long-way-{number}" for number in range(6)]
    made = made_result(6, 2)
    pairs = [
        pair.model_copy(update={"name": name}) for pair, name in zip(made.pairs, names, strict=True)
    ]
    board = [
        row.model_copy(update={"name": name})
        for row, name in zip(made.answers.leaderboard, names, strict=True)
    ]
    answers = made.answers.model_copy(update={"leaderboard": board})
    out = Console(width=80, file=io.StringIO())
    print_study(made.model_copy(update={"pairs": pairs, "answers": answers}), out)
    table, _, _ = out.file.getvalue().partition("rank: 1 lost least")  # type: ignore[attr-defined]
    told = {line.split()[0] for line in table.splitlines() if line.startswith("a-fam")}
    assert len(told) == 6
    assert all("…" in name for name in told)
