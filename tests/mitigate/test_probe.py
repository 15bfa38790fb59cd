"""A short probe: trained, asked, told apart from the forecast, and thrown away."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from forgetmap.cli.app import app
from forgetmap.evaluate.questions import Question, Suite, Task
from forgetmap.evaluate.run import evaluate
from forgetmap.mitigate.forecast.build import forecast, read_risks

CITIES = ("Paris", "Berlin", "Rome", "Oslo")


def test_a_probe_without_its_parts_is_refused_in_one_line(tmp_path: Path) -> None:
    for words in (["--probe", "model"], ["--suite", "atlas"], ["--probe", "m", "--suite", "s"]):
        said = CliRunner().invoke(app, ["forecast", str(tmp_path), *words])
        assert said.exit_code == 2
        assert "--probe MODEL needs" in said.output


@pytest.mark.model
@pytest.mark.filterwarnings("ignore")
def test_a_probe_is_told_apart_and_thrown_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from forgetmap.mitigate.forecast.probe import probe
    from forgetmap.mitigate.train.recipes import Recipe
    from tiny_llama import make_tiny_model

    monkeypatch.setenv("TQDM_DISABLE", "1")
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    asked = tuple(
        Question("facts", str(n), f"The capital of land {n}?", CITIES[n % 4], CITIES)
        for n in range(40)
    )
    suite = Suite("facts", "1", (Task("facts", "Facts", lambda: asked),))
    model = make_tiny_model(tmp_path / "model", 0)
    evaluate(str(model), suite, tmp_path / "before")
    forecast(tmp_path / "before", out=tmp_path / "risks.parquet")
    told = (tmp_path / "risks.parquet").read_bytes()
    row = {"prompt": "The best city is", "completion": " Oslo Oslo Oslo"}
    (tmp_path / "new.jsonl").write_text((json.dumps(row) + "\n") * 8, encoding="utf-8")
    found = probe(
        tmp_path / "risks.parquet",
        tmp_path / "before",
        model,
        tmp_path / "new.jsonl",
        suite,
        recipe=Recipe(steps=3, batch=4, learning_rate=0.05, longest=32),
    )
    assert (found.steps, found.found.total.items, found.found.total.asked) == (3, 40, 40)
    assert found.found.total.lost.value > 0  # Paris, Berlin and Rome lose to Oslo
    assert found.found.unanswered == 0
    assert (tmp_path / "risks.parquet").read_bytes() == told
    assert read_risks(tmp_path / "risks.parquet").forecast.probe is None
    assert not list((tmp_path / "scratch").glob("forgetmap-probe-*"))


@pytest.mark.model
@pytest.mark.filterwarnings("ignore")
def test_risks_know_the_probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from forgetmap.mitigate.forecast import probe as module
    from forgetmap.mitigate.train.recipes import Recipe
    from tiny_llama import make_tiny_model

    monkeypatch.setenv("TQDM_DISABLE", "1")
    few = Recipe(steps=3, batch=4, longest=32)
    monkeypatch.setattr(module, "SHORT", few)
    asked = tuple(
        Question("facts", str(n), f"The capital of land {n}?", CITIES[n % 4], CITIES)
        for n in range(40)
    )
    suite = Suite("facts", "1", (Task("facts", "Facts", lambda: asked),))
    model = make_tiny_model(tmp_path / "model", 0)
    evaluate(str(model), suite, tmp_path / "before")
    row = {"prompt": "The best city is", "completion": " Oslo Oslo Oslo"}
    (tmp_path / "new.jsonl").write_text((json.dumps(row) + "\n") * 8, encoding="utf-8")
    out = tmp_path / "risks.parquet"
    about = tmp_path / "before", model, tmp_path / "new.jsonl", suite, out
    told = module.forecast_by_probe(*about, learning_rate=0.05)
    assert told.probe is not None
    assert (told.probe.steps, told.probe.learning_rate) == (3, 0.05)
    assert told.probe.found.total.lost.value > 0
    plain = forecast(tmp_path / "before", trained_on=tmp_path / "new.jsonl")
    assert told.total.expected.value > plain.total.expected.value
    assert len(read_risks(out).table) == 40
