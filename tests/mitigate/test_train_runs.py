"""Training from a file or a command: what is refused, that all is made, resumed and chosen."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from forgetmap.base.errors import InputError
from forgetmap.cli import train as train_cli
from forgetmap.map.result import ForgettingMap
from forgetmap.mitigate.train.recipes import Anchored, Recipe, Replayed
from forgetmap.mitigate.train.runs import TrainingFile, point_name, read_rows

NEW = [{"prompt": f"Question {n}?", "completion": f" {n * 7 % 10}"} for n in range(40)]


def lines(path: Path, rows: list[dict]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def asked(task: str, count: int, shift: int) -> list[dict]:
    return [
        {"task": task, "question": f"{task} {n}?", "target": str(n * shift % 10),
         "choices": [str((n * shift + c) % 10) for c in range(4)]}
        for n in range(count)
    ]  # fmt: skip


@pytest.fixture
def files(tmp_path: Path) -> Path:
    lines(tmp_path / "new.jsonl", NEW)
    lines(tmp_path / "old.jsonl", [{"text": f"Old {n} is {n}."} for n in range(20)])
    lines(tmp_path / "suite.jsonl", [*asked("old", 30, 3), *asked("fresh", 20, 7)])
    return tmp_path


def call(*words: str) -> tuple[int, str]:
    app = typer.Typer()
    app.command()(train_cli.train)
    result = CliRunner().invoke(app, list(words))
    return result.exit_code, result.output


# --- what a person asks for -----------------------------------------------------------------------


def test_a_file_names_things_beside_itself_and_options_win(files: Path) -> None:
    (files / "train.yaml").write_text(
        "model: base\nmethod: anchor\ndata: new.jsonl\nkeep: old.jsonl\nsuite: suite.jsonl\n"
        "set: {steps: 7, learning_rate: 1e-4}\nsweep: {weight: [0.5, 1]}\n"
    )
    plan = TrainingFile.load(files / "train.yaml", {"budget": 0.05})
    assert plan.data == str(files / "new.jsonl")
    assert plan.suite == (str(files / "suite.jsonl"),)
    assert plan.budget == 0.05
    assert plan.points == [{"weight": 0.5}, {"weight": 1}]
    made = plan.recipe({"weight": 0.5})
    assert made == Anchored(steps=7, learning_rate=1e-4, weight=0.5)


def test_the_file_in_the_docs_is_one(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "how-to" / "train.md"
    text = page.read_text().split("```yaml\n")[1].split("```")[0]
    (tmp_path / "train.yaml").write_text(text)
    plan = TrainingFile.load(tmp_path / "train.yaml")
    assert plan.recipe().lora == 16
    assert plan.recipe().trainer_arguments == {"weight_decay": 0.01}


def test_numbers_are_read_as_what_they_are() -> None:
    plan = TrainingFile(model="m", data="d", method="replay", set={"share": "0.5", "lora": "8"})
    assert plan.recipe() == Replayed(share=0.5, lora=8)
    arguments = TrainingFile(model="m", data="d", trainer={"weight_decay": 0.1}).recipe()
    assert arguments == Recipe(trainer_arguments={"weight_decay": 0.1})


@pytest.mark.parametrize(
    ("plan", "fault"),
    [
        ({"method": "anker"}, "--method anker: unknown; did you mean 'anchor'"),
        (
            {"set": {"wieght": 1}, "method": "anchor"},
            "anchor has no 'wieght'; did you mean 'weight'",
        ),
        ({"set": {"weight": 1}}, "sft has no 'weight'"),
        ({"set": {"steps": "many"}}, "steps: input should be a valid integer"),
        ({"set": {"direction": "up"}, "method": "anchor"}, "direction: input should be 'forward'"),
    ],
)
def test_a_recipe_that_makes_no_sense_is_one_line(plan: dict, fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        TrainingFile(model="m", data="d", **plan).recipe()


def test_a_sweep_has_some_points_and_not_endless_ones() -> None:
    plan = TrainingFile(model="m", data="d", sweep={"steps": list(range(65))})
    with pytest.raises(InputError, match="65 points; name 1 to 64"):
        _ = plan.points
    with pytest.raises(InputError, match="cannot be the name of a folder"):
        point_name({"a": "../x"})


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "holds no records"),
        (
            '{"prompt": "a"}\n{"question": "b"}\n',
            r":2: needs one of chosen, messages, prompt, text",
        ),
        ("[1]\n", "a JSON object was expected"),
    ],
)
def test_data_that_cannot_be_trained_on_are_refused(tmp_path: Path, text: str, fault: str) -> None:
    (tmp_path / "new.jsonl").write_text(text)
    with pytest.raises(InputError, match=fault):
        read_rows(tmp_path / "new.jsonl")


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        ((), "data: field required"),
        (("--data", "no.jsonl", "--suite", "suite.jsonl"), "no.jsonl"),
        (("--data", "new.jsonl", "--budget", "much"), "--budget much: write lost=SHARE"),
        (("--data", "new.jsonl", "--set", "steps"), "--set steps: write it as NAME=VALUE"),
        (("--data", "new.jsonl", "--suite", "suite.jsonl", "--new", "other"), "--new other"),
    ],
)
def test_bad_options_are_one_line(
    files: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], fault: str
) -> None:
    monkeypatch.chdir(files)
    code, told = call("base", *words)
    assert code == 2
    assert fault in told
    assert not (files / "forgetmap-train" / "model").exists()


# --- with a real, tiny model ----------------------------------------------------------------------


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("trl", reason="needs the extra `train`")
    from tiny_llama import make_tiny_model

    return str(make_tiny_model(tmp_path_factory.mktemp("train") / "base"))


COMMON = ("--suite", "suite.jsonl", "--new", "fresh", "--set", "batch=8", "--set", "steps=6")


@pytest.mark.model
@pytest.mark.filterwarnings("ignore")
class TestRuns:
    def test_one_command_trains_asks_and_maps(
        self, tiny: str, files: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(files)
        words = (tiny, "--data", "new.jsonl", "--method", "anchor", "--keep", "old.jsonl",
                 *COMMON, "--out", "run", "--every", "3", "--json", "map.json")  # fmt: skip
        code, told = call(*words)
        assert code == 0, told
        run = files / "run"
        made = ForgettingMap.from_json((files / "map.json").read_bytes())
        assert made.to_json() == (run / "map.json").read_text().rstrip("\n")
        assert made.old.n == 30
        assert made.new is not None
        assert (run / "report.html").stat().st_size > 10_000
        assert (run / "model" / "recipe.json").is_file()
        for lineage in (run / "pipeline.yaml", run / "probes"):
            from forgetmap.api import lineage as trace

            assert trace(lineage).nodes
        weights = (run / "model" / "model.safetensors").stat().st_mtime_ns
        code, _ = call(*words)  # nothing is done again
        assert code == 0
        assert (run / "model" / "model.safetensors").stat().st_mtime_ns == weights

    def test_a_run_that_was_killed_begins_anew_or_goes_on(
        self, tiny: str, files: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(files)
        words = (tiny, "--data", "new.jsonl", *COMMON, "--out", "run", "--every", "2")
        assert call(*words)[0] == 0
        (files / "run" / "model" / "recipe.json").unlink()  # as if killed before the end
        shutil.rmtree(files / "run" / "after")
        code, told = call(*words)
        assert code == 0, told

    def test_a_sweep_shows_its_front_picks_and_resumes(
        self, tiny: str, files: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(files)
        words = (tiny, "--data", "new.jsonl", *COMMON, "--out", "run",
                 "--sweep", "learning_rate=1e-7,1e-2", "--json", "sweep.json")  # fmt: skip
        code, told = call(*words, "--budget", "lost=0.9")
        assert code == 0, told
        found = json.loads((files / "sweep.json").read_text())
        assert [point["settings"]["learning_rate"] for point in found["points"]] == [1e-7, 1e-2]
        mild, harsh = (point["lost"]["high_end"] for point in found["points"])
        assert mild < harsh
        kept = [point for point in found["points"] if point["kept"]]
        assert [point["settings"] for point in kept] == [found["chosen"]]
        assert "One training for each row" in told
        start = {
            path: path.stat().st_mtime_ns for path in files.glob("run/*/after/samples.parquet")
        }
        code, told = call(*words, "--budget", "lost=0.9")
        assert code == 0, told
        assert told.count("finished already") == 2
        assert start == {path: path.stat().st_mtime_ns for path in start}

    def test_two_processes_train_one_model(self, tiny: str, files: Path) -> None:
        command = [
            *(sys.executable, "-m", "accelerate.commands.launch", "--cpu", "--num_processes", "2"),
            *("--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no"),
            *("-m", "forgetmap", "train", tiny, "--data", "new.jsonl", *COMMON, "--out", "run"),
        ]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}
        done = subprocess.run(
            command, cwd=files, env=environment, capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, done.stderr[-3000:]
        assert (files / "run" / "report.html").is_file()
        assert done.stdout.count("The report:") == 1  # told once, by the first process
