"""Maps in experiment trackers: W&B offline and MLflow in a local folder, for real."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import forgetmap
from forgetmap.base.errors import InputError
from forgetmap.map.example import example_logs
from forgetmap.map.result import ForgettingMap
from forgetmap.views import trackers
from forgetmap.views.trackers import log_map, lost_items, metrics


@pytest.fixture(scope="module")
def result() -> ForgettingMap:
    before, after = example_logs()
    tasks = before.parents[1] / "tasks.csv"
    return forgetmap.compare(before, after, task_map=tasks, new=["airports"], causes=True)


def test_metrics_are_those_of_the_map_and_tell_gains_apart(result: ForgettingMap) -> None:
    told = metrics(result)
    assert told["forgetmap/lost"] == result.old.lost.value
    assert told["forgetmap/gained"] == result.old.gained.value
    assert told["forgetmap/items"] == 3270
    groups = [name for name in told if name.startswith("forgetmap/lost_in/")]
    assert len(groups) == len(result.categories)


def test_lost_items_are_rows_of_lost_items(result: ForgettingMap, monkeypatch) -> None:
    rows = lost_items(result)
    assert len(rows) == round(result.total.counts.n10)
    assert all(row[3] > row[4] for row in rows)  # right before, wrong after
    monkeypatch.setattr(trackers, "MOST_ROWS", 3)
    assert len(lost_items(result)) == 3


def test_bad_trackers_are_one_line(result: ForgettingMap, monkeypatch) -> None:
    with pytest.raises(InputError, match="--log comet: must be wandb or mlflow"):
        log_map(result, "comet")

    def broken(_result: ForgettingMap) -> str:
        raise OSError("disk full")

    monkeypatch.setitem(trackers.TRACKERS, "wandb", broken)
    with pytest.raises(InputError, match=re.escape("--log wandb: did not take it (disk full)")):
        log_map(result, "wandb")

    def missing(_result: ForgettingMap) -> str:
        raise ImportError("no wandb")

    monkeypatch.setitem(trackers.TRACKERS, "wandb", missing)
    with pytest.raises(InputError, match=r"forgetmap\[track\]"):
        log_map(result, "wandb")


@pytest.mark.extras
@pytest.mark.filterwarnings("ignore")
def test_mlflow_keeps_numbers_items_and_page(
    result: ForgettingMap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = pytest.importorskip("mlflow", reason="needs the extra `track`")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    told = log_map(result, "mlflow")
    (run,) = mlflow.search_runs(experiment_names=["forgetmap"], output_format="list")
    assert run.info.run_id in told
    assert run.data.metrics["forgetmap/lost"] == pytest.approx(result.old.lost.value)
    assert run.data.tags["forgetmap.finding"] == result.headline()
    kept = Path(mlflow.artifacts.download_artifacts(run_id=run.info.run_id, dst_path=tmp_path))
    assert len(json.loads((kept / "lost_items.json").read_text())["data"]) == len(
        lost_items(result)
    )
    assert (kept / "report.html").stat().st_size > 10_000
    with mlflow.start_run() as mine:  # a run that is under way is used
        log_map(result, "mlflow")
        assert mlflow.active_run().info.run_id == mine.info.run_id
    assert "forgetmap/lost" in mlflow.get_run(mine.info.run_id).data.metrics


@pytest.mark.extras
@pytest.mark.filterwarnings("ignore")
def test_wandb_keeps_them_offline(
    result: ForgettingMap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wandb", reason="needs the extra `track`")
    monkeypatch.chdir(tmp_path)
    for name, value in (("MODE", "offline"), ("DIR", str(tmp_path)), ("SILENT", "true")):
        monkeypatch.setenv(f"WANDB_{name}", value)
    monkeypatch.setenv("WANDB_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("WANDB_DATA_DIR", str(tmp_path / "data"))
    told = log_map(result, "wandb")
    assert "offline-run" in told
    (table,) = tmp_path.rglob("lost_items*.table.json")
    assert len(json.loads(table.read_text())["data"]) == len(lost_items(result))
    (kept,) = tmp_path.rglob("run-*.wandb")
    assert b"forgetmap/lost" in kept.read_bytes()
