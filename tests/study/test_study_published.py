"""The bundled published study is what was published, and nothing is made up."""

from __future__ import annotations

import csv
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from forgetmap.cli.app import app
from forgetmap.study.published import MARKS, published_study
from forgetmap.study.result import StudyCell, StudyResult
from forgetmap.views.tables.study import to_csv, to_latex

if TYPE_CHECKING:
    from pathlib import Path

RELATIVE_TO = {
    "Qwen2.5 Base and Coder": "Base+Coder",
    "Qwen2.5 Instruct and OpenThinker 7B": "Inst.+OpenThinker",
    "Qwen2.5 Instruct and OpenThinker3 7B": "Inst.+OpenThinker3",
}
STARTS = {"Qwen2.5 Base": "Base", "Qwen2.5 Coder": "Coder", "Qwen2.5 Instruct": "Inst."}


def name_of(row: dict[str, str]) -> str:
    """The name of our pair for a row of the reference."""
    if int(row["table"]) < 24:
        return row["comparison"]
    merged, start = row["section"].rstrip(")").split(" Merge (Relative to ")
    weight = row["comparison"].replace("(", "").replace(")", "")
    return f"{RELATIVE_TO[merged]} {weight}, from {STARTS.get(start, start)}"


def cell_of(study: StudyResult, pair: str, category: str) -> StudyCell:
    found = study.pair(pair)
    return found.old if category == "Total" else found.categories[category]


def test_it_is_what_the_paper_prints(published: Path) -> None:
    study = published_study()
    with (published / "paper_tables.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 854
    printed = set()
    for row in rows:
        pair, lost = name_of(row), row["metric"] == "forgetting"
        cell = cell_of(study, pair, row["category"])
        share = cell.lost if lost else cell.gained
        ceiling = cell.ceiling_before if lost else cell.ceiling_after
        assert 100 * share.value == pytest.approx(float(row["value"]))
        assert 100 * (share.deviation or 0) == pytest.approx(float(row["std"]))
        assert 100 * (ceiling or 0) == pytest.approx(float(row["ceiling"]))
        printed.add((pair, row["category"]))
    ours = {(pair.name, name) for pair in study.pairs for name in ("Total", *pair.categories)}
    website = {(pair, category) for pair, category in ours - printed}
    assert {category for _, category in website} == {"Safety/Truth"}
    assert len(website) == 19
    assert printed < ours


def test_the_safety_row_is_that_of_the_website(published: Path) -> None:
    study = published_study()
    with (published / "website_plots.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["category"] == "Safety/Truth"]
    checked = 0
    for row in rows:
        name = row["series"].replace("Qwen 2.5", "Q2.5").replace("Instruct (", "Inst. (")
        found = [pair for pair in study.pairs if pair.name == name]
        if "Merge" in row["plot_file"] or not found:
            continue
        cell = found[0].categories["Safety/Truth"]
        share = cell.lost if row["panel"] == "forgetting" else cell.gained
        from_web = "web" in cell.marks
        assert share.value == pytest.approx(float(row["value"]), abs=1e-8 if from_web else 6e-4)
        assert (share.deviation is None) == from_web
        checked += from_web
    assert checked >= 38


def test_nothing_is_made_up() -> None:
    study = published_study()
    assert len(study.pairs) == 47
    assert study.answers.items is None
    assert not study.answers.replicates
    for pair in study.pairs:
        assert pair.before_log is pair.after_log is pair.coverage is None
        for cell in (pair.old, *pair.categories.values()):
            assert cell.n is cell.p_value is cell.verdict is None
            assert cell.lost.estimate is cell.gained.estimate is cell.change.estimate is None
            assert set(cell.marks) <= set(MARKS)
    assert {(row.best, row.worst) for row in study.answers.leaderboard} == {(1, 47)}
    assert StudyResult.from_json(study.to_json()) == study


def test_stage_family_and_size_are_attributes() -> None:
    study = published_study()
    counts = Counter(pair.attributes["stage"] for pair in study.pairs)
    assert sorted(counts.values()) == [5, 5, 5, 7, 9, 16]
    assert study.pair("QwQ (32B)").attributes == {
        "stage": "reasoning from base", "family": "Qwen2.5", "size": 32e9,
    }  # fmt: skip
    assert study.answers.stages is not None
    assert len(study.answers.stages.stages) == 6
    verdicts = {finding.name: finding.verdict for finding in study.answers.stages.findings}
    assert verdicts["instruct-gain"] == "holds"
    assert verdicts["size-gain"] == "can't tell"  # as their own numbers do not show it


@pytest.mark.parametrize(
    ("pair", "category", "marks"),
    [
        ("Q2.5 Inst. (32B)", "Total", {"D1", "D2", "D3", "D8", "D9"}),
        ("Q2.5 Inst. (32B)", "Logic", {"D2", "D3"}),
        ("Q2.5 Inst. (32B)", "Liberal Arts", set()),
        ("Q2.5 Inst. (32B)", "Safety/Truth", {"D3", "web"}),
        ("Nemotron Code Reasoning (7B)", "Language", {"D3", "D5"}),
        ("Open Math 2 (8B)", "Math", {"D3", "D10", "D14"}),
        ("Base+Coder Linear 0.2, from Base", "Culture", {"D3", "D4", "D14"}),
        ("Inst.+OpenThinker Linear 0.8, from Inst.", "Total", {"D14"}),
    ],
)
def test_disagreements_are_marked(pair: str, category: str, marks: set[str]) -> None:
    found = set(cell_of(published_study(), pair, category).marks)
    assert found - {"D5"} == marks - {"D5"}
    assert marks <= found


def test_all_fourteen_are_told() -> None:
    assert [mark for mark in MARKS if mark.startswith("D")] == [f"D{n}" for n in range(1, 15)]
    on_cells = {
        mark
        for pair in published_study().pairs
        for cell in (pair.old, *pair.categories.values())
        for mark in cell.marks
    }
    without = {mark for mark, text in MARKS.items() if text.endswith(("No cell.", "All cells."))}
    assert on_cells == set(MARKS) - without


def test_the_command(tmp_path: Path) -> None:
    outputs = [str(tmp_path / name) for name in ("study.json", "cells.csv", "board.tex")]
    options = [part for both in zip(("--json", "--csv", "--latex"), outputs, strict=True)
               for part in both]  # fmt: skip
    done = CliRunner().invoke(app, ["study", "published", *options])
    assert done.exit_code == 0, done.output
    assert "47 pairs lost 1.3 to 33.5 %, as published by Harmon et al." in done.output
    assert max(map(len, done.output.splitlines())) <= 80
    assert StudyResult.from_json((tmp_path / "study.json").read_text()) == published_study()
    refused = CliRunner().invoke(app, ["study", "published", "--metric", "x"])
    assert refused.exit_code == 2


def test_tables_have_marks_and_deviations() -> None:
    rows = list(csv.DictReader(to_csv(published_study()).splitlines()))
    assert len(rows) == 446
    first = rows[0]
    assert (first["pair"], first["lost_deviation"], first["lost_low"]) == (
        "Q2.5 Inst. (3B)", "0.001", "",
    )  # fmt: skip
    assert "D1" in first["marks"].split()
    assert r"8.5 $\pm$ 0.1" in to_latex(published_study())
