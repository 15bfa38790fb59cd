"""Capability drift of the pairs of a study: computed or saved, corrected, and what is withheld."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

import numpy as np
import pytest
from rich.console import Console

from forgetmap.base.errors import InputError
from forgetmap.capabilities.drift import drift
from forgetmap.samples.identity import content_hash
from forgetmap.samples.table import Samples
from forgetmap.study import drifts
from forgetmap.study.build import run_study
from forgetmap.study.file import Study
from forgetmap.study.result import StudyResult
from forgetmap.views.tables.study import to_csv
from forgetmap.views.terminal.study import print_study
from study_logs import write_made_study

if TYPE_CHECKING:
    from pathlib import Path


def write_scores(path: Path, right: float, items: int = 200) -> None:
    """Scores of three metrics; the last is zero before, so a relative change is withheld."""
    rows = [
        {"task": task, "metric": metric, "item": content_hash(f"{n}"), "model": path.stem,
         "score": float(n < items * s)}
        for task, metric, s in (("boolq.core", "accuracy", right), ("gsm8k.core", "accuracy", 0.5),
                                ("truthfulqa.full", "accuracy", 0.0))
        for n in range(items)
    ]  # fmt: skip
    Samples.from_rows(rows).write(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two pairs: one with files of scores, one with a saved drift."""
    write_made_study(tmp_path, {"much": 0.2, "little": 0.01})
    write_scores(tmp_path / "before.parquet", 0.9)
    for name, right in (("much", 0.3), ("little", 0.9)):
        write_scores(tmp_path / f"scores-{name}.parquet", right)
    saved = drift(tmp_path / "before.parquet", tmp_path / "scores-little.parquet")
    (tmp_path / "little.json").write_text(saved.to_json())
    (tmp_path / "study.yaml").write_text(
        "deterministic: true\n"
        "pairs:\n"
        "- {name: much, before: base.parquet, after: much.parquet, kind: much,\n"
        "   drift_before: before.parquet, drift_after: 'scores-{kind}.parquet'}\n"
        "- {name: little, before: base.parquet, after: little.parquet, drift: little.json}\n"
    )
    return tmp_path


def test_pairs_by_capability(folder: Path) -> None:
    result = run_study(folder / "study.yaml")
    much, little = (result.pair(name).drift for name in ("much", "little"))
    assert much is not None
    assert little is not None
    alone = drift(folder / "before.parquet", folder / "scores-much.parquet")
    assert set(much.groups) == {group.name for group in alone.groups}
    assert set(much.capabilities) == {found.code for found in alone.capabilities}
    for found in alone.capabilities:
        cell = much.capabilities[found.code]
        assert (cell.relative, cell.change, cell.group) == (
            found.relative, found.change, found.group,
        )  # fmt: skip
        assert cell.p_adjusted >= cell.p_value
    assert any(cell.verdict == "worse" for cell in much.capabilities.values())
    assert all(cell.verdict not in ("worse", "better") for cell in little.capabilities.values())
    assert StudyResult.from_json(result.to_json()).to_json() == result.to_json()


def test_what_is_withheld_is_told(folder: Path) -> None:
    found = run_study(folder / "study.yaml").pair("much").drift
    assert found is not None
    withheld = [cell for cell in found.capabilities.values() if cell.relative is None]
    assert all(cell.withheld for cell in withheld)
    assert withheld


def test_views_have_it(folder: Path) -> None:
    result = run_study(folder / "study.yaml")
    out = Console(width=80, record=True, file=io.StringIO())
    print_study(result, out)
    text = out.export_text()
    assert "behaviour: relative change by group" in text
    rows = list(csv.DictReader(to_csv(result).splitlines()))
    assert {"capability group", "capability"} <= {row["level"] for row in rows}
    cells = [row for row in rows if row["level"] == "capability"]
    assert any(float(row["relative"] or 0) < -0.5 and row["net"] == "worse" for row in cells)


def test_it_is_not_computed_twice(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run_study(folder / "study.yaml")
    monkeypatch.setattr(drifts, "drift", lambda *_, **__: pytest.fail("computed again"))
    assert run_study(folder / "study.yaml") == first


def test_a_broken_file_does_not_stop_the_pair(folder: Path) -> None:
    (folder / "little.json").write_text("{}")
    (folder / "before.parquet").unlink()
    result = run_study(folder / "study.yaml")
    assert len(result.pairs) == 2
    for pair in result.pairs:
        assert pair.drift is not None
        assert pair.drift.failure is not None
    assert any("2 pairs have no drift; much:" in warning for warning in result.warnings)


def test_one_side_alone_is_told(folder: Path) -> None:
    text = (folder / "study.yaml").read_text().replace("drift_before: before.parquet, ", "")
    (folder / "study.yaml").write_text(text)
    found = run_study(folder / "study.yaml").pair("much").drift
    assert found is not None
    assert "go together" in str(found.failure)


def test_an_open_name_is_refused(folder: Path) -> None:
    text = (folder / "study.yaml").read_text().replace("{kind}", "{other}")
    (folder / "study.yaml").write_text(text)
    with pytest.raises(InputError, match=r"study.yaml:.: drift_after: nothing says what \{other\}"):
        Study.load(folder / "study.yaml")


def test_no_drift_no_cells(tmp_path: Path) -> None:
    result = run_study(write_made_study(tmp_path, {"a": 0.1, "b": 0.2}))
    assert [pair.drift for pair in result.pairs] == [None, None]
    assert np.isfinite(result.pairs[0].old.lost.value)
