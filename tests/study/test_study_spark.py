"""A study whose logs live in a lake: Spark gives what DuckDB gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
import pytest

from forgetmap.samples.table import Samples
from forgetmap.study import build
from forgetmap.study.build import run_study
from spark_session import NEEDS_SPARK, local_spark  # noqa: F401
from study_logs import write_made_study

if TYPE_CHECKING:
    from pathlib import Path

    from forgetmap.study.result import StudyResult

pytestmark = NEEDS_SPARK
SHARES = {"sft": 0.2, "rl": 0.05, "dpo": 0.12}


def same_numbers(one: StudyResult, other: StudyResult) -> None:
    for mine, theirs in zip(one.pairs, other.pairs, strict=True):
        assert (mine.old, mine.new, mine.tasks) == (theirs.old, theirs.new, theirs.tasks)
        assert mine.coverage == theirs.coverage
    assert one.answers == other.answers


def test_spark_gives_the_study_of_duckdb(tmp_path: Path) -> None:
    file = write_made_study(tmp_path, SHARES)
    file.write_text(f"new: task1\n{file.read_text()}")
    results = {
        engine: run_study(file, engine=engine, cache=tmp_path / engine)
        for engine in ("duckdb", "spark")
    }
    same_numbers(results["spark"], results["duckdb"])
    assert results["spark"].answers.items is not None
    assert results["spark"].answers.items.most


def test_probabilities_repeats_clusters_and_items_without_content(tmp_path: Path) -> None:
    """All that a log may have; items that have an id alone get another key, and no other number."""
    luck = np.random.default_rng(0)
    lines = ["pairs:"]
    for name in ("base", "sft", "rl"):
        rows = [
            {
                "model": name,
                "task": task,
                "item": None if task == "ids" else (7 * number + 2**63),
                "item_ref": str(number),
                "repeat": repeat,
                "score": float(luck.random() < 0.6),
                "cluster": f"c{number // 4}",
                **({"k": 4, "gold_probability": luck.random()} if task == "options" else {}),
            }
            for task in ("ids", "options")
            for number in range(80)
            for repeat in range(2)
        ]
        Samples.from_rows(rows).write(tmp_path / f"{name}.parquet")
        if name != "base":
            lines.append(f"- {{before: base.parquet, after: {name}.parquet}}")
    (tmp_path / "study.yaml").write_text("\n".join(lines))
    one, other = (
        run_study(tmp_path / "study.yaml", engine=engine, cache=tmp_path / engine)
        for engine in ("duckdb", "spark")
    )
    assert one.answers.items is not None
    assert other.answers.items is not None
    assert other.answers.leaderboard == one.answers.leaderboard
    assert other.answers.items.overlap == one.answers.items.overlap
    counts = [(each.items, each.lost_in_all) for each in (one.answers.items, other.answers.items)]
    assert counts[0] == counts[1]


def test_addresses_and_folders_are_read_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The logs of all models in one folder of a lake, at an address; nothing is paired twice."""
    write_made_study(tmp_path, SHARES)
    (tmp_path / "lake").mkdir()
    for path in tmp_path.glob("*.parquet"):
        path.rename(tmp_path / "lake" / path.name)
    text = f"""
deterministic: true
pairs:
  - before: file://{tmp_path}/lake
    after: file://{tmp_path}/lake/*.parquet
    before_model: base
    after_model: "{{method}}"
    for: {{method: [sft, rl, dpo]}}
"""
    (tmp_path / "lake.yaml").write_text(text)
    first = run_study(tmp_path / "lake.yaml", engine="spark", cache=tmp_path / "kept")
    assert [pair.name for pair in first.pairs] == ["sft", "rl", "dpo"]
    assert [round(pair.old.lost.value, 3) for pair in first.pairs] == [0.2, 0.05, 0.12]
    monkeypatch.setattr(build, "build_map", None)
    assert run_study(tmp_path / "lake.yaml", engine="spark", cache=tmp_path / "kept") == first


def test_items_that_are_too_many_stay_in_the_lake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_made_study(tmp_path, SHARES)
    monkeypatch.setattr(build, "MOST_CELLS", 900)
    result = run_study(file, engine="spark", cache=tmp_path / "kept")
    assert result.answers.items is None
    assert "no two pairs are told apart" in result.answers.compared_by
    kept = list((tmp_path / "kept").glob("*.items.parquet"))
    assert all(pq.read_metadata(path).num_rows == 0 for path in kept)
    assert run_study(file, engine="spark", cache=tmp_path / "kept") == result
