"""CapTrack's published tables, from its result files."""

from __future__ import annotations

import csv
import math

import pytest

from forgetmap.base.errors import InputError
from forgetmap.capabilities.published import COLUMNS, captrack_table
from places import SHARED

NAMES = {
    "Qwen3 80B DPO": "qwen-3-80b-ioob-dpo-l-final",
    "Qwen3 80B IFT": "qwen-3-80b-ioob-ift-l-final",
    "Qwen3 80B IFT+DPO": "qwen-3-80b-iift-dpo-l-final",
}
GROUPS = {
    "Qwen3 80B DPO": ((-1.128, 3.829), (-1.870, 1.104), (-0.056, 0.424)),
    "Qwen3 80B IFT": ((0.513, 2.179), (0.992, 1.555), (-0.767, 0.638)),
    "Qwen3 80B IFT+DPO": ((-0.719, 5.482), (-4.321, 2.089), (-0.760, 0.843)),
}
BASE = "qwen-3-80b-in-oob_averaged.csv"


@pytest.fixture(scope="module")
def reference():
    folder = SHARED / "reference" / "captrack"
    if not folder.is_dir():
        pytest.skip("CapTrack's results (../shared/reference/captrack) are not here")
    return folder


@pytest.fixture(scope="module")
def table(reference):
    results = reference / "captrack_results"
    return captrack_table(results / BASE, results)


@pytest.mark.parametrize(
    ("file", "which"),
    [("relative_differences.csv", "mean"), ("relative_differences_std.csv", "std")],
)
def test_both_published_tables_to_1e_9(reference, table, file, which):
    models = {model.name: model for model in table.models}
    with (reference / "comparison_results" / file).open(newline="") as opened:
        rows = list(csv.DictReader(opened))
    assert [row[""] for row in rows] == list(NAMES)
    for row in rows:
        found = models[NAMES[row[""]]].columns
        assert list(row)[1:] == list(found)
        for column, value in found.items():
            assert getattr(value, which) == pytest.approx(float(row[column]), abs=1e-9)


def test_group_averages_to_1e_3(table):
    models = {model.name: model for model in table.models}
    for name, expected in GROUPS.items():
        groups = models[NAMES[name]].groups
        assert list(groups) == ["CAN", "WILL", "HOW"]
        for found, (mean, std) in zip(groups.values(), expected, strict=True):
            assert found.mean == pytest.approx(mean, abs=1e-3)
            assert found.std == pytest.approx(std, abs=1e-3)


def test_the_four_headline_numbers(table):
    model = next(model for model in table.models if model.name == NAMES["Qwen3 80B DPO"])
    assert model.metrics["C1 Accuracy (MMLU-Pro)"] == pytest.approx(0.45, abs=0.005)
    assert model.metrics["H1 Pass Rate (IFEval)"] == pytest.approx(0.67, abs=0.005)
    assert model.columns["C5c Multilingual"].mean == pytest.approx(-16.41, abs=0.005)
    assert model.columns["W3a Verbosity"].mean == pytest.approx(-4.30, abs=0.005)


def test_the_csv_has_the_published_layout(table):
    rows = list(csv.reader(table.to_csv().splitlines()))
    assert rows[0] == ["", *(column.name for column in COLUMNS)]
    assert len(rows) == 4


def result_file(folder, name, **changed):
    names = [f"{column.code} {column.label or 'a'}".strip() for column in COLUMNS] + ["C1 b"]
    values = {**dict.fromkeys(names, 0.5), "C1_DD b": 0.9, "W2b Overreach (X)": 0.1, **changed}
    path = folder / f"{name}.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*values, "model_name"])
        writer.writerow([*values.values(), name])
    return path


def test_a_task_that_was_not_scored_is_refused_not_minus_100_percent(tmp_path):
    base, tuned = result_file(tmp_path, "base"), result_file(tmp_path, "tuned", **{"C1 b": 0.0})
    with pytest.raises(InputError, match=r"exactly 0\.0 on some side: C1 b"):
        captrack_table(base, tuned)


def test_the_published_faults_on_request(tmp_path):
    """S2: missing after reads as -100 %, missing before as infinity, missing in both vanishes."""
    full = result_file(tmp_path, "full")
    missing = result_file(tmp_path, "missing", **{"C1 b": 0.0})
    as_loss = captrack_table(full, missing, "captrack-published").models[0]
    assert as_loss.columns["C1 Knowledge"].mean == -50.0
    assert as_loss.columns["C1 Knowledge"].std == 50.0
    as_gain = captrack_table(missing, full, "captrack-published").models[0]
    assert math.isinf(as_gain.columns["C1 Knowledge"].mean)
    assert math.isnan(as_gain.columns["C1 Knowledge"].std)
    gone = captrack_table(missing, missing, "captrack-published")
    assert gone.models[0].columns["C1 Knowledge"].mean == 0.0
    assert gone.zeros == ["C1 b"]


def test_overreach_rates_do_not_leak_into_overreach_scores(tmp_path):
    base = result_file(tmp_path, "base")
    tuned = result_file(tmp_path, "tuned", **{"W2b Overreach (X)": 0.9})
    assert captrack_table(base, tuned).models[0].columns["W2 Overreach"].mean == 0.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "is not a CapTrack result CSV"),
        ("", "is not a CapTrack result CSV"),
        ("C1 x,C1 y\n1,oops\n", "C1 y is 'oops', not a number"),
        ("C1 x\nnan\n", "C1 x is nan"),
        ("C1 x\n0.5\n", "differ in their columns"),
    ],
)
def test_other_files_get_one_clear_line(tmp_path, text, message):
    base = result_file(tmp_path, "base")
    other = tmp_path / "other.csv"
    other.write_text(text)
    with pytest.raises(InputError, match=message):
        captrack_table(base, other)


def test_an_empty_folder_and_an_unknown_protocol(tmp_path):
    base = result_file(tmp_path, "base")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="holds no CapTrack result CSV"):
        captrack_table(base, tmp_path / "empty")
    with pytest.raises(InputError, match="known are captrack, captrack-published"):
        captrack_table(base, base, "other")


def test_cells_that_hinge_on_one_metric(table):
    """The figures of docs/explanation/capability-drift.md."""
    model = next(model for model in table.models if model.name == NAMES["Qwen3 80B DPO"])
    knowledge = {name: r for name, r in model.metrics.items() if name.startswith("C1 ")}
    assert knowledge.pop("C1 Accuracy (livemathbench)") == pytest.approx(54.8, abs=0.05)
    assert sum(knowledge.values()) / len(knowledge) == pytest.approx(0.38, abs=0.005)
    assert model.metrics["C5c Multilingual (MGSM)"] == pytest.approx(-33.9, abs=0.05)
    assert model.metrics["C5c Multilingual (XTREME)"] == pytest.approx(1.1, abs=0.05)
