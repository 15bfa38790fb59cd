"""The second study at its tiny setting: each kind of job, a kill, a job that fails, the tables."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmark_rows import write_benchmarks
from forgetmap.base.errors import InputError
from places import ROOT
from tiny_gguf import make_network, write_gguf
from tiny_llama import make_tiny_model

pytestmark = pytest.mark.model

PAPERS = ROOT / "examples" / "papers"
BROKEN = """
    - {data: towns, method: broken, recipe: replay, options: {share: 2}, old: texts,
       rate_of: towns-sft}
    - {data: towns, method: after-broken, merge: linear, of: towns-broken}
"""
"""A training that is refused, and a merge of it, in front of the theory's trainings."""


def command(folder: Path, *more: str) -> list[str]:
    parts = (
        PAPERS / "run.py",
        folder / "plan.yaml",
        folder / "work",
        "--models",
        folder / "models",
    )
    how = ("--setting", "tiny", "--data", folder / "benchmarks", "--workers", "2", *more)
    return [sys.executable, *map(str, (*parts, *how))]


def marks(folder: Path) -> dict[str, int]:
    return {path.stem: path.stat().st_mtime_ns for path in (folder / "work" / "done").glob("*")}


def start_and_kill(folder: Path, log: Path) -> None:
    """Begin the study, and kill it with all its processes while it trains."""
    with log.open("w") as file:
        begun = subprocess.Popen(
            command(folder, "--minutes", "30"), stdout=file, stderr=file, start_new_session=True
        )
    end = time.monotonic() + 120
    while time.monotonic() < end and begun.poll() is None:
        trained = [name for name in marks(folder) if name.startswith("smollm2-")]
        if trained:
            break
        time.sleep(0.1)
    assert begun.poll() is None, log.read_text()
    os.killpg(begun.pid, signal.SIGKILL)
    begun.wait()


def test_the_study_runs_goes_on_and_says_what_failed(tmp_path: Path) -> None:
    make_tiny_model(tmp_path / "models" / "smollm2")
    write_benchmarks(tmp_path / "benchmarks")
    plan = (PAPERS / "plan.yaml").read_text()
    plan = plan.replace("  theory:\n", f"  theory:{BROKEN}", 1)
    plan = plan.replace("size: [smollm2], theory", "size: [smollm2, gemma3-270m], theory")
    (tmp_path / "plan.yaml").write_text(plan)

    start_and_kill(tmp_path, tmp_path / "killed.txt")
    timed = tmp_path / "work" / "calibration" / "smollm2.json"
    speed = json.loads(timed.read_text())
    del speed["steps"]["anchor"]  # as of a plan that did not have this recipe yet
    timed.write_text(json.dumps(speed))
    before = {name: at for name, at in marks(tmp_path).items() if name != "calibrate-smollm2"}
    budget = subprocess.run(
        command(tmp_path, "--minutes", "0.01"), capture_output=True, text=True, check=False
    )
    assert budget.returncode == 2, budget.stderr
    assert "fits into 0.01 minutes of 2: 0 jobs" in budget.stdout
    assert "smollm2-towns-modes-10-0" in budget.stdout.split("left out: ")[1]
    assert "anchor" in json.loads(timed.read_text())["steps"], "what is new in a plan is timed"

    done = subprocess.run(
        command(tmp_path, "--minutes", "30"), capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr[-3_000:]
    assert "smollm2-towns-broken-0 (InputError: replay: share 2 must" in done.stderr
    assert "convert-gemma3-270m (InputError: " in done.stderr, "a model that is not there"
    not_begun = done.stdout.split("not begun: ")[-1]
    assert "gemma3-270m-towns-sft-0" in not_begun
    assert "smollm2-towns-after-broken-0" in not_begun
    after = marks(tmp_path)
    assert before.items() <= after.items(), "what was finished is not done again"
    runs = {path.parent.name for path in (tmp_path / "work" / "runs").glob("*/run.json")}
    assert {"smollm2-towns-then-merged-0", "smollm2-towns-modes-25-0"} <= runs
    told = json.loads((tmp_path / "work/runs/smollm2-towns-then-grpo-0/run.json").read_text())
    assert told["start"] == "towns-then-dpo"
    assert told["kl_forward_new"] >= 0
    recipes = {"sft", "dpo", "grpo", "sdft", "anchor", "retention", "replay"}
    assert recipes <= {
        json.loads((tmp_path / "work/runs" / run / "run.json").read_text()).get("recipe")
        for run in runs
    }
    assert not list((tmp_path / "work" / "weights").glob("smollm2-towns-then-*")), "not needed"
    check_tables(tmp_path)
    check_earlier_logs(tmp_path, len(after))


def check_tables(folder: Path) -> None:
    """Logs and tables come out of what was done."""
    logs = folder / "logs" / "tiny"
    collect = [PAPERS / "collect.py", folder / "plan.yaml", folder / "work", logs]
    subprocess.run([sys.executable, *map(str, collect), "--setting", "tiny"], check=True)
    study = (PAPERS / "study.yaml").read_text()
    study = study.replace("setting: [small, full]", "setting: [tiny]").replace("/full/", "/tiny/")
    (folder / "study.yaml").write_text(study)
    made = [PAPERS / "results.py", folder, "--out", folder / "results.md"]
    subprocess.run([sys.executable, *map(str, made)], check=True)
    text = (folder / "results.md").read_text()
    assert "| tiny smollm2 towns-then-dpo beside smollm2 towns-then-tuned | 1 | " in text
    assert "| confirmed |" not in text, "one training confirms nothing"


def check_earlier_logs(folder: Path, done: int) -> None:
    """A machine that keeps nothing goes on from the logs: what they hold is not done again."""
    shutil.move(folder / "work", folder / "earlier")
    timed = folder / "work" / "calibration" / "smollm2.json"
    timed.parent.mkdir(parents=True)
    own = json.loads((folder / "earlier" / "calibration" / "smollm2.json").read_text())
    timed.write_text(json.dumps(own | {"load": 123.0}))
    again = subprocess.run(
        command(folder, "--minutes", "30", "--budget-only", "--have", str(folder / "logs/tiny")),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(timed.read_text())["load"] == 123, "its own times stay"
    not_logged = 2  # the model's folder, and what it writes to be replayed
    assert f"done: {done - not_logged}\n" in again.stdout
    assert "smollm2-towns-broken-0" not in again.stdout.split("done: ")[0]


def budget(folder: Path, setting: str, *more: str) -> subprocess.CompletedProcess[str]:
    parts = [PAPERS / "run.py", PAPERS / "plan.yaml", folder, "--setting", setting, *more]
    how = ("--minutes", "1", "--untimed", "--budget-only")
    return subprocess.run(
        [sys.executable, *map(str, (*parts, *how))], capture_output=True, text=True, check=False
    )


def made(folder: Path, *files: str) -> Path:
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text('{"seconds": 5}')
    return folder


def test_a_folder_is_of_one_setting_and_a_budget_changes_nothing(tmp_path: Path) -> None:
    done = ("before-smollm2", "smollm2-domain-pretrained-0")  # its weights are wanted once more
    work = made(tmp_path / "work", *(f"done/{name}.json" for name in done), "data/old.yaml")
    (work / "data" / "setting.txt").write_text("small\n")
    other = budget(work, "full")
    assert other.returncode == 1
    assert other.stderr.endswith("is of the setting small; give full a folder of its own\n")
    assert "; done: 1\n" in budget(work, "small").stdout
    assert set(marks(tmp_path)) == set(done)


def test_questions_that_were_half_written_are_written_again(tmp_path: Path) -> None:
    work = made(tmp_path / "work", "data/old.yaml")
    found = budget(work, "tiny", "--data", str(tmp_path / "nothing"))
    assert str(tmp_path / "nothing") in found.stderr


def test_what_earlier_logs_say_replaces_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    for folder in (PAPERS, PAPERS.parent):
        monkeypatch.syspath_prepend(folder)
    own = ("plan", "work", "materials")
    request.addfinalizer(lambda: [sys.modules.pop(name, None) for name in own])
    from plan import Plan
    from work import Place, restore

    work = made(tmp_path / "work", "rates/rate-a.json", "done/rate-a.json")
    about = {"setting": {"name": "tiny"}, "known": {}, "calibration": {}}
    about |= {"rates": {"rate-a": {"rate": 1}, "rate-b": {"rate": 2}}}
    about |= {"seconds": {"rate-a": 1, "rate-b": 2, "texts-a": 3}}
    (tmp_path / "about.json").write_text(json.dumps(about))
    restore(Place(Plan.load(PAPERS / "plan.yaml"), "tiny", work, tmp_path), tmp_path)
    told = {path.stem: json.loads(path.read_text()) for path in work.glob("*/rate-*.json")}
    assert json.loads((work / "rates/rate-a.json").read_text()) == {"seconds": 5}
    assert json.loads((work / "rates/rate-b.json").read_text()) == {"rate": 2}
    assert told.keys() == {"rate-a", "rate-b"}
    assert set(marks(tmp_path)) == {"rate-a", "rate-b"}

    anew = tmp_path / "anew"
    about["seconds"]["a-sft-0"] = 4
    (tmp_path / "about.json").write_text(json.dumps(about))
    place = Place(Plan.load(PAPERS / "plan.yaml"), "tiny", anew / "work", tmp_path)
    restore(place, tmp_path, only_choices=True)
    assert set(marks(anew)) == {"rate-a", "rate-b"}, "what was trained is trained anew"


def test_a_gguf_is_made_a_folder_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    for folder in (PAPERS, PAPERS.parent):
        monkeypatch.syspath_prepend(folder)
    own = ("plan", "work", "materials")  # names that other scripts have, too
    request.addfinalizer(lambda: [sys.modules.pop(name, None) for name in own])
    from plan import Plan
    from work import Place, convert

    (tmp_path / "models").mkdir()
    write_gguf(tmp_path / "models/qwen-0.5b.gguf", make_network("qwen2"), "qwen2", copy_head=True)
    plan = Plan.load(PAPERS / "plan.yaml")
    place = Place(plan, "full", tmp_path / "work", tmp_path / "models")
    convert(place, "qwen-0.5b")
    assert (place.before("qwen-0.5b") / "config.json").is_file()
    with pytest.raises(InputError, match=r"holds neither the folder smollm2 nor smollm2\.gguf"):
        convert(place, "smollm2")
