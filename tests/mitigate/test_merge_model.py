"""Merging with real models: transformers loads the results, peft agrees, sweeps run to the end."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra `eval`")
pytest.importorskip("peft", reason="needs the extra `eval`")

import torch
import typer
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer
from typer.testing import CliRunner

from checkpoints import read_model
from forgetmap.base.errors import InputError
from forgetmap.cli import merge as merge_cli
from forgetmap.evaluate.prompts import Asking
from forgetmap.evaluate.questions import Question, Suite, Task
from forgetmap.map.result import ForgettingMap
from forgetmap.mitigate.merge import sweep as sweeping
from forgetmap.mitigate.merge.merging import How, merge
from forgetmap.mitigate.merge.sweep import SweepQuestions, sweep
from forgetmap.mitigate.merge.weight_drift import weight_drift
from tiny_llama import TEXT, make_tiny_model

pytestmark = [pytest.mark.model, pytest.mark.filterwarnings("ignore")]
WORDS = sorted(set(TEXT.replace("?", "").replace(".", "").split()))


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return [str(make_tiny_model(folder / name, seed)) for seed, name in enumerate(("one", "two"))]


def load(name, dtype=torch.float32):
    return AutoModelForCausalLM.from_pretrained(name, dtype=dtype)


def state(model):
    return {name: value.detach().float().numpy() for name, value in model.state_dict().items()}


def save(folder, model, like, **options):
    model.save_pretrained(folder, **options)
    AutoTokenizer.from_pretrained(like).save_pretrained(folder)
    return str(folder)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_what_transformers_saved_is_merged_and_loaded_by_it(models, tmp_path, dtype):
    """In shards, with tied weights; also against torch's own arithmetic."""
    folders = []
    for place, name in enumerate(models):
        model = load(name, dtype)
        model.config.tie_word_embeddings = True
        model.tie_weights()
        size = "60KB" if dtype == torch.float32 else "30KB"
        folders.append(save(tmp_path / str(place), model, name, max_shard_size=size))
    assert len(list((tmp_path / "0").glob("model-*.safetensors"))) > 2
    out = merge(*folders, tmp_path / "merged", weight=0.25)
    merged = load(out, dtype)
    assert merged.get_output_embeddings().weight is merged.get_input_embeddings().weight
    one, two, found = (load(name, dtype).state_dict() for name in (*folders, out))
    for name, value in found.items():
        wanted = (0.75 * one[name].double() + 0.25 * two[name].double()).to(dtype)
        step = torch.finfo(dtype).eps
        assert torch.allclose(value.double(), wanted.double(), rtol=step, atol=0)
    tokenizer = AutoTokenizer.from_pretrained(out)
    assert tokenizer.chat_template == AutoTokenizer.from_pretrained(models[1]).chat_template


@pytest.fixture
def adapter(models, tmp_path):
    def make(name, seed, **options):
        torch.manual_seed(seed)
        told = {"r": 4, "lora_alpha": 12, "target_modules": ["q_proj", "up_proj"], **options}
        model = get_peft_model(load(models[0]), LoraConfig(**told))
        for key, value in model.named_parameters():
            if "lora_" in key or "modules_to_save" in key:
                torch.nn.init.normal_(value, std=0.1)
        model.save_pretrained(tmp_path / name)
        return str(tmp_path / name)

    return make


ADAPTERS = {
    "plain": {},
    "rslora": {"use_rslora": True},
    "patterns": {"rank_pattern": {"up_proj": 2}, "alpha_pattern": {"layers.0.self_attn.q_proj": 3}},
    "embedding": {"target_modules": ["embed_tokens", "v_proj"]},
    "whole head": {"modules_to_save": ["lm_head"]},
}


@pytest.mark.parametrize("options", ADAPTERS.values(), ids=ADAPTERS)
def test_an_adapter_is_read_as_peft_merges_it(models, adapter, tmp_path, options):
    lora = adapter("lora", 3, **options)
    wanted = state(PeftModel.from_pretrained(load(models[0]), lora).merge_and_unload())
    out = merge(models[0], f"{models[0]}+{lora}", tmp_path / "merged", weight=1)
    found = state(load(out))
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-6)
    half = state(load(merge(models[0], f"{models[0]}+{lora}", tmp_path / "half", weight=0.5)))
    base = state(load(models[0]))
    for name, value in wanted.items():
        np.testing.assert_allclose(half[name], (base[name] + value) / 2, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("options", list(ADAPTERS.values())[:4], ids=list(ADAPTERS)[:4])
def test_adapters_merged_as_adapters_are_what_peft_makes_of_them(
    models, adapter, tmp_path, options
):
    one, two = adapter("a", 3), adapter("b", 4, **options)
    base = state(load(models[0]))
    whole = [
        state(PeftModel.from_pretrained(load(models[0]), lora).merge_and_unload())
        for lora in (one, two)
    ]
    scaled = merge(models[0], two, tmp_path / "scaled", weight=0.3)
    joined = merge(one, two, tmp_path / "joined", weight=0.3)
    for lora, parts in ((scaled, (0, 0.3)), (joined, (0.7, 0.3))):
        found = state(PeftModel.from_pretrained(load(models[0]), lora).merge_and_unload())
        for name, start in base.items():
            changes = (model[name] - start for model in whole)
            wanted = start + sum(part * change for part, change in zip(parts, changes, strict=True))
            np.testing.assert_allclose(found[name], wanted, rtol=1e-5, atol=2e-6)


def test_the_drift_of_an_adapter_is_of_low_rank(models, adapter):
    found = weight_drift(models[0], f"{models[0]}+{adapter('lora', 3)}")
    ranks = {row.module: row.effective_rank for row in found.tensors if row.layer == 0}
    assert 1 < ranks["self_attn.q_proj"] <= 4.001
    assert ranks["self_attn.k_proj"] == 0


# Sweeps


def quiz(task, count, seed):
    draw = random.Random(seed)
    made = []
    for number in range(count):
        choices = tuple(draw.sample(WORDS, 4))
        text = f"Question {number}: {' '.join(draw.choices(WORDS, k=8))}?"
        made.append(Question(task, f"q{number}", text, draw.choice(choices), choices))
    return Task(task, "Quiz", lambda: made)


SUITE = Suite("tiny", "1", (quiz("old", 60, 0), quiz("new", 40, 1)))


def test_a_sweep_runs_resumes_and_chooses(models, tmp_path, monkeypatch):
    said = []
    options = {"new": ["new"], "budget": 1.0, "draws": 300}
    out = tmp_path / "out"
    result = sweep(*models, out, [0, 0.5, 1], SweepQuestions(SUITE), say=said.append, **options)
    assert [point.parent for point in result.points] == ["before", None, "after"]
    assert (result.old_tasks, result.new_tasks) == (["old"], ["new"])
    ends = result.points[0], result.points[2]
    assert (ends[0].lost.high, ends[0].gained.high) == (0, 0)
    assert ends[0].lost_of_after.high_end > 0
    assert ends[1].lost_of_after.high == 0
    middle = result.points[1]
    assert middle.lost.basis == "probabilities"
    assert middle.lost.low <= middle.lost.low_end <= middle.lost.high_end <= middle.lost.high
    assert middle.new.before == ends[0].new.after
    assert {point.new.before for point in result.points} == {middle.new.before}
    for side in ("before", "after"):
        made = ForgettingMap.from_json((out / "weight-0.5" / f"map-{side}.json").read_bytes())
        assert made.after.name == "linear-0.5"
        assert made.settings.new == ["new"]
    assert result.chosen in (0.5, 1)
    assert result.sure

    merged = out / "weight-0.5" / "linear-0.5"
    assert merged.exists() == (result.chosen == 0.5)
    shutil.rmtree(merged, ignore_errors=True)
    monkeypatch.setattr(sweeping, "merge", None)  # nothing is merged again
    del options["budget"]
    again = sweep(*models, out, [0, 0.5, 1], SweepQuestions(SUITE), say=said.append, **options)
    assert again.points == result.points
    assert said[-1] == "weight 0.5: finished already"

    with pytest.raises(InputError, match="belongs to a sweep of other models"):
        sweep(*models, out, [0.5], SweepQuestions(SUITE), how=How("slerp"), **options)


@pytest.mark.parametrize("new", [["fresh"], ["new", "fresh*"], ["*"]])
def test_names_of_new_tasks_are_checked_before_any_model_is_asked(models, tmp_path, new):
    with pytest.raises(InputError, match="--new"):
        sweep(*models, tmp_path / "out", [0.5], SweepQuestions(SUITE), new=new)
    assert not (tmp_path / "out").exists()


def test_a_sweep_that_died_goes_on(models, tmp_path, monkeypatch):
    def die(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(sweeping, "measure", die)
    with pytest.raises(KeyboardInterrupt):
        sweep(*models, tmp_path / "out", [0.5], SweepQuestions(SUITE))
    monkeypatch.undo()
    said = []
    sweep(*models, tmp_path / "out", [0.5], SweepQuestions(SUITE), draws=300, say=said.append)
    assert said[-1] == "weight 0.5: finished already"


def test_a_sweep_of_an_adapter_makes_adapters(models, adapter, tmp_path):
    lora = adapter("lora", 3)
    options = {"draws": 300, "keep": True}
    found = sweep(models[0], lora, tmp_path / "out", [0.5], SweepQuestions(SUITE), **options)
    kept = tmp_path / "out" / "weight-0.5" / "linear-0.5"
    assert (kept / "adapter_model.safetensors").is_file()
    how = How("ties", density=0.5)
    whole = sweep(
        models[0], lora, tmp_path / "ties", [0.5, 1], SweepQuestions(SUITE), how=how, **options
    )
    assert (tmp_path / "ties" / "weight-0.5" / "ties-0.5" / "model.safetensors").is_file()
    assert [point.parent for point in whole.points] == [None, None]  # trimmed: not the model after
    assert found.after == whole.after == "one+lora"


def test_models_that_cannot_be_merged_are_refused_before_anything_is_asked(models, tmp_path):
    other = shutil.copytree(models[1], tmp_path / "other")
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps({**config, "model_type": "gemma"}))
    with pytest.raises(InputError, match="only models of one architecture"):
        sweep(models[0], str(other), tmp_path / "out", [0.5], SweepQuestions(SUITE))
    assert not (tmp_path / "out").exists()


def test_the_command_sweeps(models, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib", reason="needs pip install 'forgetmap[figures]'")
    rows = [
        {"task": task.name, "id": question.ref, "question": question.prompt,
         "choices": list(question.choices), "answer": question.target}
        for task in SUITE.tasks for question in task.questions()
    ]  # fmt: skip
    monkeypatch.chdir(tmp_path)
    suite = tmp_path / "tiny.jsonl"
    suite.write_text("".join(json.dumps(row) + "\n" for row in rows))
    app = typer.Typer()
    app.command()(merge_cli.merge)
    arguments = [*models, "--sweep", "0:1:0.5", "--suite", str(suite), "--out", "out",
                 "--new", "new*", "--choose", "0.9", "--drift", "--figures", "figures",
                 "--json", "told.json", "--limit", "30"]  # fmt: skip
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert "learns most within a loss of at most 90.0 %" in done.output
    told = json.loads((tmp_path / "told.json").read_text())
    assert [point["weight"] for point in told["sweep"]["points"]] == [0, 0.5, 1]
    assert told["sweep"]["chosen"] is not None
    assert sorted(file.name for file in (tmp_path / "figures").iterdir()) == [
        "drift.png", "drift.svg", "sweep.png", "sweep.svg",
    ]  # fmt: skip


def test_reading_by_hand_agrees_with_torch(models):
    """The reader that the other tests trust."""
    found, wanted = read_model(Path(models[0])), load(models[0])
    for name, value in found.items():
        np.testing.assert_array_equal(value, wanted.state_dict()[name].numpy())


def test_sampling_settings_reach_the_models(models, tmp_path):
    asked = SweepQuestions(
        SUITE, Asking(shots=0, letters=True, max_tokens=2), tasks=["old"], limit=5
    )
    found = sweep(*models, tmp_path / "out", [0.5], asked, draws=300)
    assert found.old_tasks == ["old"]
