"""Hidden or gone: shares that come back, beside what luck brings on the same road."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import forgetmap
from forgetmap.base.errors import InputError
from forgetmap.cli.app import app
from forgetmap.mitigate.recover import ANY, recover
from forgetmap.samples.table import Samples

LOST, NEVER, KEPT = range(0, 40), range(40, 80), range(80, 120)


def log(path: Path, right: set[int]) -> Path:
    Samples.from_rows(
        {
            "model": path.stem,
            "task": f"task{n % 2}",
            "item": n + 1,
            "score": float(n in right),
            "prompt": f"Question {n}?",
            "target": "yes",
            "answer": "yes" if n in right else "no",
        }
        for n in range(120)
    ).write(path)
    return path


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("map")
    before = log(folder / "before.parquet", {*LOST, *KEPT})
    after = log(folder / "after.parquet", {*KEPT})
    forgetmap.compare(before, after, save=folder / "saved")
    return folder / "saved"


def test_shares_are_counted_by_road_and_by_any(saved: Path, tmp_path: Path) -> None:
    half = log(tmp_path / "half.parquet", {*range(0, 20), 40, 41})
    shots = log(tmp_path / "shots.parquet", {*range(10, 30), 41, 42})
    found = recover(saved, roads={"half": half, "shots": shots})
    assert found.roads == ["half", "shots"]
    assert found.total["half"].back.value == 0.5
    assert found.total["half"].luck.value == 2 / 40
    came = found.total[ANY]
    assert (came.lost, came.control) == (40, 40)
    assert came.back.value == 30 / 40
    assert came.luck.value == 3 / 40
    assert came.beyond_luck.value == pytest.approx(27 / 40)
    assert 0 < came.beyond_luck.low < came.beyond_luck.value < came.beyond_luck.high <= 1
    assert sum(part.lost for part in found.categories.values()) == 40
    assert sum(part.lost for part in found.causes.values()) == 40


def test_a_road_that_only_guesses_brings_nothing_beyond_luck(saved: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    guessed = log(tmp_path / "guess.parquet", set(np.flatnonzero(rng.random(120) < 0.5).tolist()))
    came = recover(saved, roads={"guess": guessed}).total[ANY]
    assert came.back.value > 0.2
    assert came.beyond_luck.low < 0 < came.beyond_luck.high


def test_items_that_a_road_did_not_ask_are_counted(saved: Path, tmp_path: Path) -> None:
    part = tmp_path / "part.parquet"
    Samples.from_rows(
        {"model": "m", "task": f"task{n % 2}", "item": n + 1, "score": 1.0} for n in range(60)
    ).write(part)
    found = recover(saved, roads={"part": part})
    assert found.unanswered == 20
    assert found.total["part"].control == 20


def test_bad_input_is_one_clear_line(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--road NAME=LOG"):
        recover(saved)
    with pytest.raises(InputError, match="--suite"):
        recover(saved, model="nowhere")
    other = tmp_path / "other.parquet"
    Samples.from_rows([{"model": "m", "task": "x", "item": 1, "score": 1.0}]).write(other)
    with pytest.raises(InputError, match="were these items asked"):
        recover(saved, roads={"other": other})


def test_the_command_prints_the_table(saved: Path, tmp_path: Path) -> None:
    half = log(tmp_path / "half.parquet", {*range(0, 20), 40, 41})
    told = CliRunner().invoke(app, ["recover", str(saved), "--road", f"half={half}"])
    assert told.exit_code == 0, told.output
    assert "Of 40 lost items 50.0 %" in told.output
    assert "some losses were hidden" in told.output


@pytest.mark.model
@pytest.mark.filterwarnings("ignore")
def test_all_roads_of_a_real_model_are_gone_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from forgetmap.evaluate.questions import Question, Suite, Task
    from forgetmap.evaluate.run import evaluate
    from tiny_llama import make_tiny_model

    monkeypatch.setenv("TQDM_DISABLE", "1")
    draw = np.random.default_rng(0)
    cities = ["Paris", "Berlin", "Rome", "Oslo"]
    asked = tuple(
        Question(
            "facts", str(n), f"The capital of land {n}?", cities[draw.integers(4)], tuple(cities)
        )
        for n in range(60)
    )
    suite = Suite("facts", "1", (Task("facts", "Facts", lambda: asked),))
    models = [make_tiny_model(tmp_path / f"model{seed}", seed) for seed in (0, 1)]
    for model in models:
        evaluate(str(model), suite, tmp_path / f"log-{model.name}")
    logs = [tmp_path / f"log-{model.name}" for model in models]
    forgetmap.compare(*logs, save=tmp_path / "map")
    found = recover(
        tmp_path / "map",
        model=str(models[1]),
        before=models[0],
        suite=suite,
        out=tmp_path / "roads",
        most=12,
    )
    assert found.roads == [
        "3 worked examples",
        "10 % of the old weights",
        "25 % of the old weights",
        "50 % of the old weights",
        "10 steps on other old items",
    ]
    assert found.total[ANY].back.value >= max(found.total[road].back.value for road in found.roads)
    assert not (tmp_path / "roads" / "merged").exists()
