"""Recipes: what they refuse, that each trains, that a stopped run goes on as if it had not been."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from forgetmap.base.errors import InputError
from forgetmap.base.model import sealed
from forgetmap.evaluate.questions import Question, Suite, Task
from forgetmap.mitigate.train.recipes import (
    Anchored,
    Materials,
    Preferred,
    PulledBack,
    Recipe,
    Replayed,
    Retained,
    Rewarded,
    SelfDistilled,
    _holds_weights,
    provenance,
    train,
)
from tiny_llama import make_tiny_model

SIZE = {"steps": 6, "batch": 8, "learning_rate": 1e-3}
NEW = [{"prompt": f"Question {n}?", "completion": f" {n * 7 % 10}"} for n in range(40)]
OLD = [{"prompt": f"Old {n}?", "completion": f" {n * 3 % 10}"} for n in range(40)]
PREFERENCES = [
    {"prompt": row["prompt"], "chosen": row["completion"], "rejected": " no"} for row in NEW
]


def questions() -> Suite:
    asked = tuple(
        Question(
            "old", str(n), f"Old {n}?", str(n % 10), tuple(str((n + c) % 10) for c in range(4))
        )
        for n in range(40)
    )
    return Suite("old", "1", (Task("old", "Old", lambda: asked),))


def has_an_e(completions: list[str], **_: Any) -> list[float]:
    return [float("e" in text) for text in completions]


MATERIALS = {
    "dpo": Materials(PREFERENCES),
    "grpo": Materials(NEW, reward=has_an_e),
    "replay": Materials(NEW, OLD),
    "retention": Materials(NEW, questions=questions()),
}
RECIPES = [
    Recipe(**SIZE),
    Recipe(**SIZE, lora=4),
    Replayed(**SIZE, old_batch=8),
    Replayed(**SIZE, old_batch=8, lora=4),
    Anchored(**SIZE),
    Anchored(**SIZE, direction="reverse", lora=4),
    Retained(**SIZE),
    Retained(**SIZE, lora=4),
    PulledBack(**SIZE, every=2),
    PulledBack(**SIZE, every=2, lora=4),
    SelfDistilled(**SIZE, longest_answer=4),
    Rewarded(**SIZE, generations=4, longest_answer=4),
    Rewarded(**SIZE, generations=4, longest_answer=4, beta=0.0),
    Preferred(**SIZE),
]


@pytest.mark.parametrize(
    ("recipe", "materials", "message"),
    [
        (Recipe(), Materials([]), "sft: no new data to train on"),
        (Replayed(), Materials(NEW), "replay: needs old data: `forgetmap replay` makes some"),
        (Replayed(share=1.0), Materials(NEW, OLD), "replay: share 1.0 must lie between 0 and 1"),
        (Retained(), Materials(NEW), "retention: needs questions with options, as a suite"),
        (Rewarded(), Materials(NEW), "grpo: needs a reward function"),
        (
            Rewarded(batch=9, generations=4),
            Materials(NEW, reward=has_an_e),
            "grpo: batch 9 must be a multiple of generations 4",
        ),
        (
            Anchored(direction="sideways"),  # type: ignore[arg-type]
            Materials(NEW),
            "anchor: direction 'sideways': say forward or reverse",
        ),
    ],
)
def test_a_recipe_says_what_it_lacks(
    recipe: Recipe, materials: Materials, message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as error:
        train(recipe, tmp_path / "before", materials, tmp_path / "out")
    assert str(error.value) == message
    assert not (tmp_path / "out").exists()


CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "method": ({"recipe": Anchored(steps=10)}, "method"),
    "one row of new data": ({"materials": Materials([*NEW[:-1], {"text": "other"}], OLD)}, "new"),
    "old data": ({"materials": Materials(NEW, OLD[1:])}, "old data"),
    "base of the same name": ({"before": "other"}, "weights before"),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("what", ["a model", "checkpoints"])
def test_a_run_is_known_by_the_content_of_model_data_and_settings(
    tmp_path: Path, change: str, what: str
) -> None:
    """Else changed data give the old model back, and a stopped run goes on as another."""
    for folder, weights in (("before", b"one"), ("other", b"two")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "model.safetensors").write_bytes(weights)
    mine = {"recipe": Recipe(steps=10), "before": "before", "materials": Materials(NEW, OLD)}
    out = tmp_path / "out"
    (out / "checkpoint-5").mkdir(parents=True)
    told = provenance(mine["recipe"], tmp_path / mine["before"], mine["materials"])
    name = "recipe.json" if what == "a model" else "recipe-begun.json"
    (out / name).write_text(json.dumps(sealed(told)))
    changed_run, differs = CHANGES[change]
    other = mine | changed_run
    with pytest.raises(InputError, match=f"holds {what} of another recipe .*{differs}"):
        train(other["recipe"], tmp_path / other["before"], other["materials"], out)


def test_checkpoints_that_nothing_tells_of_are_not_continued(tmp_path: Path) -> None:
    (tmp_path / "out" / "checkpoint-5").mkdir(parents=True)
    with pytest.raises(InputError, match="checkpoints of an unknown run"):
        train(Recipe(), tmp_path / "before", Materials(NEW), tmp_path / "out")


@pytest.mark.parametrize(
    ("files", "holds"),
    [
        (["config.json", "model.safetensors"], True),
        (["config.json", "model-00001-of-00002.safetensors"], True),
        (["adapter_config.json", "adapter_model.safetensors"], True),
        (["config.json", "training_args.bin"], False),
        (["adapter_config.json", "model.safetensors"], False),
        ([], False),
    ],
)
def test_a_model_is_its_config_and_weights(tmp_path: Path, files: list[str], holds: bool) -> None:
    for name in files:
        (tmp_path / name).touch()
    assert _holds_weights(tmp_path) is holds


@pytest.mark.model
class TestTraining:
    @pytest.fixture(scope="class")
    def before(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        return make_tiny_model(tmp_path_factory.mktemp("before"))

    @pytest.fixture(autouse=True)
    def quiet(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")

    @pytest.mark.filterwarnings("ignore")  # of TRL and its friends, which change by the month
    @pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: f"{recipe.name}-{recipe.lora}")
    def test_every_recipe_trains(self, recipe: Recipe, before: Path, tmp_path: Path) -> None:
        out = train(recipe, before, MATERIALS.get(recipe.name, Materials(NEW)), tmp_path / "out")
        assert json.loads((out / "recipe.json").read_text())["method"] == recipe.name
        assert (out / "adapter_config.json").is_file() == bool(recipe.lora)
        assert changed(before, out) > 0

    @pytest.mark.filterwarnings("ignore")
    @pytest.mark.parametrize(
        "recipe", [Recipe(**SIZE), Replayed(**SIZE, old_batch=8), PulledBack(**SIZE, every=2)]
    )
    def test_a_stopped_run_goes_on_as_if_it_had_not_been(
        self, recipe: Recipe, before: Path, tmp_path: Path
    ) -> None:
        from transformers import TrainerCallback

        class Stop(TrainerCallback):  # type: ignore[misc]
            def on_step_end(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
                if state.global_step == 5:
                    raise KeyboardInterrupt

        kept = replace(recipe, save_every=3)
        materials = Materials(NEW, OLD)
        whole = train(kept, before, materials, tmp_path / "whole")
        with pytest.raises(KeyboardInterrupt):
            train(kept, before, materials, tmp_path / "stopped", callbacks=[Stop()])
        assert not (tmp_path / "stopped" / "recipe.json").exists()
        stopped = train(kept, before, materials, tmp_path / "stopped")
        assert changed(whole, stopped) == 0

    @pytest.mark.filterwarnings("ignore")
    def test_a_finished_run_is_left_alone_and_never_mixed_up(
        self, before: Path, tmp_path: Path
    ) -> None:
        out = train(Recipe(**SIZE), before, Materials(NEW), tmp_path / "out")
        written = (out / "model.safetensors").stat().st_mtime_ns
        train(Recipe(**SIZE), before, Materials(NEW), out)
        assert (out / "model.safetensors").stat().st_mtime_ns == written
        with pytest.raises(InputError, match=r"another recipe \(learning_rate differ\)"):
            train(Recipe(**{**SIZE, "learning_rate": 1e-4}), before, Materials(NEW), out)

    @pytest.mark.filterwarnings("ignore")
    def test_retention_keeps_exactly_what_an_evaluation_finds_right(
        self, before: Path, tmp_path: Path
    ) -> None:
        from forgetmap.evaluate.run import evaluate
        from forgetmap.mitigate.train.penalties import Retention
        from forgetmap.mitigate.train.recipes import _items, _job, _load

        right = evaluate(str(before), questions(), tmp_path / "eval").samples
        expected = {
            row["item_ref"]
            for batch in right.to_batches(["item_ref", "score", "metric"])
            for row in batch.to_pylist()
            if row["score"] == 1.0 and row["metric"] == "acc"
        }
        job = _job(Retained(**SIZE), before, MATERIALS["retention"], tmp_path / "out")
        penalty = Retention(_items(job), job.pad, margin=1.0, batch=7, seed=0)
        penalty.keep_right(_load(before), "cpu")
        assert {str(place) for place in penalty.kept} == expected
        assert 0 < len(expected) < 40

    @pytest.mark.filterwarnings("ignore")
    def test_the_page_on_training_runs(
        self, before: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        page = Path(__file__).parents[2] / "docs" / "how-to" / "train.md"
        blocks = re.findall(r"```py\n(.*?)```", page.read_text(), re.DOTALL)
        assert len(blocks) == 2
        monkeypatch.chdir(tmp_path)
        shutil.copytree(before, "runs/base-model")
        Path("anchor.jsonl").write_text(
            json.dumps({"question": "1 + 1 =", "answer": "2", "choices": ["2", "3"]})
        )
        names: dict[str, Any] = {}
        exec(blocks[0].replace("steps=300", "steps=2"), names)
        assert Path("runs/tuned-model/recipe.json").is_file()
        exec(blocks[1].replace("runs/tuned-model", "runs/watched"), names)
        assert Path("runs/probes/step-2/manifest.json").is_file()

    def test_divergences_equal_a_reference_in_double_precision(self) -> None:
        import numpy as np
        import torch
        from scipy.special import log_softmax

        from forgetmap.mitigate.train.penalties import token_kl

        rng = np.random.default_rng(0)
        now, then = rng.normal(size=(2, 3, 5, 11))
        counted = rng.random((3, 5)) < 0.6
        p, q = log_softmax(then, axis=-1)[counted], log_softmax(now, axis=-1)[counted]
        for direction, (first, second) in {"forward": (p, q), "reverse": (q, p)}.items():
            expected = (np.exp(first) * (first - second)).sum(-1).mean()
            found = token_kl(
                torch.tensor(now), torch.tensor(then), torch.tensor(counted), direction
            )
            assert float(found) == pytest.approx(expected, rel=1e-12)

    @pytest.mark.parametrize("lora", [0, 4])
    @pytest.mark.filterwarnings("ignore")
    def test_an_anchor_starts_at_no_divergence(
        self, lora: int, before: Path, tmp_path: Path
    ) -> None:
        from forgetmap.mitigate.train.recipes import _job

        recipe = Anchored(**SIZE, lora=lora)
        trainer = recipe.trainer(_job(recipe, before, Materials(NEW, OLD), tmp_path / "out"))
        batch = next(iter(trainer.get_train_dataloader()))
        assert float(trainer._penalty(trainer.model, batch, 0).detach()) == pytest.approx(
            0, abs=1e-6
        )

    def test_old_rows_come_once_an_epoch_and_the_same_for_the_same_step(self) -> None:
        from forgetmap.mitigate.train.penalties import Row, Rows

        rows = Rows([Row((n,)) for n in range(12)], pad=0, batch=4, seed=3)
        drawn = [rows.draw(step, "cpu")["input_ids"].flatten().tolist() for step in range(6)]
        assert sorted(chain(*drawn[:3])) == sorted(chain(*drawn[3:])) == list(range(12))
        assert drawn[:3] != drawn[3:]
        assert rows.draw(4, "cpu")["input_ids"].flatten().tolist() == drawn[4]


def changed(one: Path, other: Path) -> float:
    """Largest difference between the weights of two folders (or of an adapter and its start)."""
    from safetensors.torch import load_file

    if (other / "adapter_model.safetensors").is_file():
        weights = load_file(other / "adapter_model.safetensors")
        return max(float(value.abs().max()) for name, value in weights.items() if "lora_B" in name)
    first, second = load_file(one / "model.safetensors"), load_file(other / "model.safetensors")
    return max(float((first[name] - second[name]).abs().max()) for name in first)
