"""The map as CSV and LaTeX."""

from __future__ import annotations

import csv
import io

import pytest

import forgetmap
from forgetmap.map.example import example_logs
from forgetmap.map.result import Compat, PublishedRow
from forgetmap.samples.identity import content_hash
from forgetmap.samples.table import Samples
from forgetmap.views.tables import maps as tables


@pytest.fixture(scope="module")
def told():
    return forgetmap.compare(*example_logs(), new=["airports"], draws=100)


def rows_of(result):
    return list(csv.DictReader(io.StringIO(tables.to_csv(result))))


def open_answers(task="a_b"):
    return Samples.from_rows(
        {"task": task, "item": content_hash(i), "score": float(i % 2)} for i in range(20)
    )


def test_every_cell_is_a_row(told):
    rows = rows_of(told)
    totals = [row["name"] for row in rows if row["level"] == "total"]
    assert totals == ["items", "old", "new", "categories"]
    assert [row["name"] for row in rows if row["level"] == "task"] == list(told.tasks)
    assert [row["name"] for row in rows if row["new"] == "True"] == ["new", "airports"]


def test_lost_and_gained_have_both_ends_interval_share_and_basis(told):
    row = next(row for row in rows_of(told) if row["name"] == "old")
    for way in ("lost", "gained"):
        found = getattr(told.old, way)
        for end in ("low_end", "high_end", "low", "high"):
            assert float(row[f"{way}_{end}"]) == getattr(found, end)
        assert float(row[f"{way}_of_known"]) == found.of_known.value
        assert row[f"{way}_basis"] == "probabilities"
        for both in ("raw", "paper", "like_these"):
            estimate = getattr(getattr(told.old, both), way)
            assert float(row[f"{both}_{way}"]) == estimate.value
            assert float(row[f"{both}_{way}_low"]) == estimate.low
            assert float(row[f"{both}_{way}_high"]) == estimate.high
    assert row["verdict_forgetting"] == "lost"
    assert row["would_decide"] == ""


def test_what_would_decide_is_a_column():
    before, after = (
        Samples.from_rows(
            {"task": "t", "item": number, "score": float((number + shift) % 9 > 0)}
            for number in range(60)
        )
        for shift in (0, 1)
    )
    [row] = [row for row in rows_of(forgetmap.compare(before, after)) if row["level"] == "task"]
    assert row["verdict_forgetting"] == "undecided"
    assert "would decide" in row["would_decide"]


def test_what_is_not_defined_is_empty():
    for row in rows_of(forgetmap.compare(open_answers(), open_answers(), draws=100)):
        assert row["paper_lost"] == row["paper_gained_high"] == row["like_these_lost"] == ""


def test_no_column_mixes_lost_and_gained(told):
    columns = rows_of(told)[0]
    assert not [name for name in columns if "forgot" in name and name != "verdict_forgetting"]
    for row, cell in zip(rows_of(told), (cell for *_, cell in tables.cells(told)), strict=True):
        assert float(row["lost_low_end"]) >= 0
        assert float(row["lost_high_end"]) == cell.lost.high_end


def test_latex_has_the_papers_columns_and_what_was_lost_and_gained(told):
    text = tables.to_latex(told)
    assert r"Category & Lost & Gained & Forgetting & Backward transfer \\" in text
    assert r"airports (new) & 0.0 [0.0, 0.4] & 67.4 [" in text
    assert "\nOld & 3.4--10.4 [2.7, 11.1] & 5.3--12.3 [4.5, 13.1] & 1.4 $\\pm$ 1.3 & " in text
    total = text.splitlines()[-3]
    assert total.startswith(r"Total & 2.7--8.3 [2.2, 8.9] & 17.5--23.1 [16.6, 24.0] & 0.9 $\pm$ ")
    assert text.count(r"\pm") == 2 * (len(told.tasks) + 2)


def test_latex_marks_raw_flips_where_there_are_no_options():
    text = tables.to_latex(forgetmap.compare(open_answers(), open_answers(), draws=100))
    assert r"a\_b & 0.0 [" in text
    assert text.count(r"$^\dagger$") == 2 * 2


def test_latex_keeps_the_published_numbers(told):
    published = [
        PublishedRow(category=name, metric=metric, value=value, std=0.01, ceiling=0.5)
        for name in ("airports", "Total")
        for metric, value in (("forgetting", 0.04), ("backward_transfer", 0.06))
    ]
    compat = Compat(protocol="post-forget", seeds=3, rows=published, skipped_tasks=[])
    text = tables.to_latex(told.model_copy(update={"compat": compat}))
    assert "standard deviation over seeds" in text
    assert r"airports & -- & -- & 4.0 $\pm$ 1.0 (50.0) & 6.0 $\pm$ 1.0 (50.0) \\" in text
    assert text.splitlines()[-3].startswith("Total & ")
    assert "[" in text.splitlines()[-3]
