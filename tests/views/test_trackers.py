"""Maps in experiment trackers: W&B offline and MLflow in a local folder, for real."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
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
@pytest.mark.parametrize("place", [None, "runs"], ids=["default", "folder"])
def test_where_mlflow_has_no_place_to_write_the_variables_are_named(
    place: str | None, tmp_path: Path
) -> None:
    """In a process of its own, since MLflow keeps in memory where it wrote before."""
    pytest.importorskip("mlflow", reason="needs the extra `track`")
    if place is None and find_spec("sqlalchemy"):
        pytest.skip("all of MLflow is installed, which can write to its default")
    settings = {name: value for name, value in os.environ.items() if "MLFLOW" not in name}
    if place:
        settings["MLFLOW_TRACKING_URI"] = str(tmp_path / place)
    command = [sys.executable, "-m", "forgetmap", "compare", *map(str, example_logs())]
    told = subprocess.run(
        [*command, "--log", "mlflow"], cwd=tmp_path, env=settings, capture_output=True, text=True
    )
    assert told.returncode == 2
    assert told.stderr.splitlines()[-1] == (
        "forgetmap: --log mlflow: has no place to write to; set MLFLOW_TRACKING_URI to a server, "
        "or to a folder together with MLFLOW_ALLOW_FILE_STORE=true"
    )
    assert "Traceback" not in told.stderr


def test_another_error_of_mlflow_keeps_its_own_words(result: ForgettingMap, monkeypatch) -> None:
    def broken(said: str) -> None:
        def log(_result: ForgettingMap) -> str:
            raise OSError(said)

        monkeypatch.setitem(trackers.TRACKERS, "mlflow", log)

    broken("got unsupported URI 'sqlite:///mlflow.db'")
    with pytest.raises(InputError, match="set MLFLOW_TRACKING_URI to a server"):
        log_map(result, "mlflow")
    broken("server is away")
    with pytest.raises(InputError, match=re.escape("did not take it (server is away)")):
        log_map(result, "mlflow")


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
