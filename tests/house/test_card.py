"""The command for a graphics card goes on where it was stopped, and shows what was measured."""

from __future__ import annotations

import importlib
import json
import sys
from types import ModuleType

import pytest

from places import ROOT


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    sys.modules.pop("card", None)
    return importlib.import_module("card")


SCRIPT = """
import sys
print("loading")
print("| a | b |", *sys.argv[1:])
if "bad" in sys.argv:
    raise ValueError("no such model")
sys.exit("missed" in sys.argv)
"""


def test_what_is_done_is_not_done_again_and_a_failure_stops_no_other(
    card, monkeypatch, tmp_path, capsys
):
    (tmp_path / "script.py").write_text(SCRIPT)
    steps = [
        card.Step("good", "script.py MODELS/m CARD/q", 1),
        card.Step("bad", "script.py bad", 1),
        card.Step("missed", "script.py missed", 1),
        card.Step("long", "script.py long", 100),
    ]
    monkeypatch.setattr(card, "HERE", tmp_path)
    monkeypatch.setattr(card, "STEPS", steps)
    place = tmp_path / "card"
    place.mkdir()
    assert card.measure(place, tmp_path / "models", 5) == ["bad", "long"]
    told = capsys.readouterr().out
    assert "failed: bad: ValueError: no such model" in told
    assert "left for the next time: long" in told
    assert f"{tmp_path / 'models' / 'm'} {place / 'q'}" in (place / "good.txt").read_text()
    assert (place / "missed.txt").is_file(), "a missed bar is a result"
    (place / "good.txt").write_text("kept")
    assert card.measure(place, tmp_path / "models", 200) == ["bad"]
    assert (place / "good.txt").read_text() == "kept"


def test_the_page_shows_what_was_measured_so_far(card, tmp_path):
    names = ", ".join(step.name for step in card.STEPS)
    assert card.page(tmp_path) == f"{card.HEAD}\n\nNot measured yet: {names}.\n"
    (tmp_path / "speed-qwen-1.5b.txt").write_text("NVIDIA\n\n| road |\n| --- |\n| plain |\n")
    told = {"items": 200, "right": 84, "checked": 50, "apart": 2.3e-5, "changed": 0}
    (tmp_path / "mmlu-qwen-0.5b.json").write_text(json.dumps(told))
    (tmp_path / "speed-qwen-1.5b.note").write_text("Other work ran beside it.\n")
    page = card.page(tmp_path)
    head = "## Scoring and writing: Qwen2.5-Coder-1.5B-Instruct, Q4_K_M"
    assert f"{head}\n\nNVIDIA\n\n| road |" in page
    assert "| plain |\n\nOther work ran beside it.\n" in page
    assert "Not measured yet: mmlu-smollm2, mmlu-gemma3-270m, mmlu-qwen-1.5b, callback-" in page
    row = "| Qwen2.5-Coder-0.5B-Instruct, Q4_K_M | 200 | 42.0 (35.3 to 48.9) | 50 | 2.3e-05 | 0 |"
    assert row in page


def test_the_page_is_of_what_was_measured(card):
    page = card.page(ROOT / "benchmarks" / "card")
    assert page == (ROOT / "benchmarks" / "card.md").read_text(), "run: card.py --page"
    share = "2.6 %"
    assert (
        f"Probes take {share.replace(' ', '')} of the training time beside them (bar 3%)." in page
    )
    for told in ("docs/how-to/callback.md", "benchmarks/callback.md"):
        assert f"[{share}](" in (ROOT / told).read_text()


def test_every_step_runs_a_script_that_is_there(card):
    for step in card.STEPS:
        assert (ROOT / "benchmarks" / step.command.split()[0]).is_file()
