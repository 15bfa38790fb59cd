"""Forgetting is watched from the configuration files of Axolotl and LLaMA-Factory.

Axolotl's own plug-in classes are taken from its wheel, which needs no card to be imported. All of
LLaMA-Factory pins other packages, so its `run_exp` is stood in for by one with the arguments that
version 0.9.5 has, over a real trainer of transformers.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from pyarrow import parquet

import forgetmap
from forgetmap.base.errors import InputError
from forgetmap.mitigate.replay.build import MESSAGES, build_replay
from forgetmap.mitigate.train import llamafactory
from forgetmap.mitigate.train.callback import callback_by
from forgetmap.samples.table import Samples
from places import ROOT
from tiny_llama import TEXT, make_tiny_model

PLUGIN = "forgetmap.mitigate.train.axolotl"
PAGE = (ROOT / "docs/how-to/trainers.md").read_text(encoding="utf-8")
model = pytest.mark.model


def blocks(kind):
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (None, "suite: is missing"),
        ({"suite": "atlas"}, "out: is missing"),
        ({"suite": "atlas", "out": "x", "evry": 5}, "evry: is not known; did you mean 'every'"),
    ],
)
def test_bad_settings_are_one_line(settings, words):
    with pytest.raises(InputError, match=re.escape(words)):
        callback_by(settings)


def test_the_settings_of_the_docs_are_five_lines_and_known():
    shown = [yaml.safe_load(block) for block in blocks("yaml")]
    told = [one["forgetmap"] for one in shown if "forgetmap" in one]
    assert len(told) == 2
    for block in blocks("yaml"):
        assert len(block.splitlines()) <= 5
    for settings in told:
        assert set(settings) <= {"suite", "out", "every", "limit", "budget", "when_exceeded"}
    assert shown[0]["plugins"] == [f"{PLUGIN}.ForgettingPlugin"]


@pytest.fixture
def replay(tmp_path):
    """A replay set as `forgetmap replay` writes it, with a turn of each role."""
    logs = []
    for name, right in (("before", 1.0), ("after", 0.0)):
        rows = [
            {"model": name, "task": "t", "item": n, "score": right, "prompt": f"Is {n} odd?"}
            for n in range(20)
        ]
        Samples.from_rows(rows).write(tmp_path / f"{name}.parquet")
        logs.append(tmp_path / f"{name}.parquet")
    forgetmap.compare(*logs, save=tmp_path / "map", draws=100)
    turns = [("system", "Be brief."), ("user", "Who wrote Utopia?"), ("assistant", "More.")]
    messages = [{"role": role, "content": text} for role, text in turns]
    row = {"messages": messages, "task": "t"}
    (tmp_path / "pool.jsonl").write_text(json.dumps(row) + "\n")
    build_replay(tmp_path / "map", tmp_path / "replay", 1, pool=tmp_path / "pool.jsonl", logs=logs)
    return tmp_path / "replay" / MESSAGES


def test_llamafactory_is_told_the_names_that_the_written_rows_have(replay):
    """It takes no defaults for tags, once some are named."""
    (block,) = blocks("json")
    assert len(block.splitlines()) <= 5
    (entry,) = json.loads(block).values()
    assert (entry["file_name"], entry["formatting"]) == (replay.name, "openai")
    (row,) = [json.loads(line) for line in replay.read_text().splitlines()]
    tags = entry["tags"]
    turns = row[entry["columns"]["messages"]]
    assert all(set(turn) == {tags["role_tag"], tags["content_tag"]} for turn in turns)
    roles = [turn[tags["role_tag"]] for turn in turns]
    assert roles == [tags["system_tag"], tags["user_tag"], tags["assistant_tag"]]


@pytest.mark.extras
@pytest.mark.filterwarnings("ignore")
def test_verl_gets_parquet_with_a_column_of_messages(replay, monkeypatch):
    pytest.importorskip("datasets", reason="needs the extra `train`")
    (code,) = [block for block in blocks("py") if "to_parquet" in block]
    monkeypatch.chdir(replay.parents[1])
    exec(compile(code, "trainers.md", "exec"), {})
    (row,) = parquet.read_table(replay.with_suffix(".parquet")).to_pylist()
    assert row["messages"] == json.loads(replay.read_text())["messages"]
    (line,) = blocks("sh")
    assert "replay/replay.parquet" in line
    assert "data.messages_key=messages" in line


def test_what_is_not_installed_is_one_line(tmp_path, capsys):
    assert llamafactory.main([str(tmp_path / "train.yaml")]) == 2
    assert "pip install llamafactory" in capsys.readouterr().err
    assert llamafactory.main([]) == 2
    assert capsys.readouterr().err.startswith("forgetmap: give one file")


@pytest.fixture
def anchor(tmp_path):
    rows = [
        {
            "question": f"{n}: the capital of France?",
            "choices": ["Paris", "Rome"],
            "answer": "Paris",
        }
        for n in range(6)
    ]
    path = tmp_path / "anchor.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def make_trainer(folder, **more):
    """A trainer of transformers that takes two steps on a tiny model."""
    from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments

    tiny = make_tiny_model(folder / "tiny")
    tokenizer = AutoTokenizer.from_pretrained(tiny)
    ids = tokenizer(TEXT)["input_ids"][:32]
    rows = [{"input_ids": ids, "labels": ids}] * 2
    how = TrainingArguments(
        str(folder / "out"), max_steps=2, per_device_train_batch_size=1, report_to=[],
        save_strategy="no", use_cpu=True, disable_tqdm=True, logging_steps=1,
    )  # fmt: skip
    network = AutoModelForCausalLM.from_pretrained(tiny)
    return Trainer(network, how, train_dataset=rows, processing_class=tokenizer, **more)


def logged(trainer):
    return [row["forgetmap/lost"] for row in trainer.state.log_history if "forgetmap/lost" in row]


@model
@pytest.mark.filterwarnings("ignore")
def test_axolotls_own_manager_adds_the_callback(anchor, tmp_path, monkeypatch):
    wheels = Path(os.environ.get("FORGETMAP_WHEELS", "/nowhere"))
    found = [*wheels.glob("axolotl-*.whl"), *wheels.glob("addict-*.whl")]
    if len(found) < 2:
        pytest.skip("FORGETMAP_WHEELS names no folder with the wheels of axolotl and addict")
    for wheel in found:
        monkeypatch.syspath_prepend(str(wheel))
    monkeypatch.delitem(sys.modules, PLUGIN, raising=False)
    from axolotl.integrations.base import BasePlugin, PluginManager
    from axolotl.utils.dict import DictDefault

    manager = PluginManager.get_instance()
    manager.register(f"{PLUGIN}.ForgettingPlugin")
    (plugin,) = manager.plugins.values()
    assert isinstance(plugin, BasePlugin)
    (named,) = manager.get_input_args()
    module, name = named.rsplit(".", 1)
    assert getattr(sys.modules[module], name)(forgetmap={"suite": "atlas"}).forgetmap
    cfg = DictDefault(
        {"forgetmap": {"suite": str(anchor), "out": str(tmp_path / "probes"), "every": 1}}
    )
    trainer = make_trainer(tmp_path)
    for callback in manager.add_callbacks_post_trainer(cfg, trainer):  # as its builder does
        trainer.add_callback(callback)
    trainer.train()
    assert len(logged(trainer)) == 3
    assert (tmp_path / "probes" / "pipeline.yaml").is_file()


@model
@pytest.mark.filterwarnings("ignore")
def test_llamafactory_is_started_with_the_callback(anchor, tmp_path, monkeypatch):
    seen = {}

    def run_exp(args=None, callbacks=None):
        seen["args"] = args
        seen["trainer"] = trainer = make_trainer(tmp_path, callbacks=callbacks)
        trainer.train()

    for name in ("llamafactory", "llamafactory.train", "llamafactory.train.tuner"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sys.modules["llamafactory.train.tuner"].run_exp = run_exp
    file = tmp_path / "train.yaml"
    told = {"suite": str(anchor), "out": str(tmp_path / "probes"), "every": 1}
    file.write_text(yaml.safe_dump({"stage": "sft", "forgetmap": told}))
    assert llamafactory.main([str(file)]) == 0
    assert seen["args"] == {"stage": "sft"}
    assert len(logged(seen["trainer"])) == 3
    from transformers import Trainer

    assert Trainer.__init__.__name__ == "__init__"


def cells():
    """The code of the notebook for Unsloth, cell by cell."""
    book = json.loads((ROOT / "examples/unsloth.ipynb").read_text(encoding="utf-8"))
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in book["cells"]}) == len(book["cells"])
    for cell in book["cells"]:
        code = cell["cell_type"] == "code"
        wanted = {"cell_type", "id", "metadata", "source"}
        assert set(cell) == wanted | ({"execution_count", "outputs"} if code else set())
        if code:
            assert (cell["execution_count"], cell["outputs"]) == (None, [])  # it was not run
            yield "".join(cell["source"])


def test_the_notebook_for_unsloth_is_one_and_is_named():
    assert 5 <= len(list(cells())) <= 7
    assert "examples/unsloth.ipynb" in PAGE


@model
@pytest.mark.filterwarnings("ignore")
def test_the_notebook_for_unsloth_runs_with_a_stand_in(anchor, tmp_path, monkeypatch):
    """The stand-in has the two methods that the notebook uses; the rest is TRL and forgetmap."""
    for name in ("datasets", "trl"):
        pytest.importorskip(name, reason="needs the extra `train`")
    import trl
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM, AutoTokenizer

    class FastLanguageModel:
        @staticmethod
        def from_pretrained(model_name, *, max_seq_length, load_in_4bit):
            tiny = make_tiny_model(tmp_path / "tiny")
            return AutoModelForCausalLM.from_pretrained(tiny), AutoTokenizer.from_pretrained(tiny)

        @staticmethod
        def get_peft_model(network, *, r, lora_alpha, target_modules):
            config = LoraConfig(r=r, lora_alpha=lora_alpha, target_modules=target_modules)
            return get_peft_model(network, config)

    stand_in = ModuleType("unsloth")
    stand_in.FastLanguageModel = FastLanguageModel
    monkeypatch.setitem(sys.modules, "unsloth", stand_in)
    usual = trl.SFTConfig
    small = {"max_steps": 2, "use_cpu": True, "bf16": False, "report_to": "none"}
    monkeypatch.setattr(trl, "SFTConfig", lambda **told: usual(**told | small))
    monkeypatch.chdir(tmp_path)
    row = json.dumps({"prompt": "The capital of France is", "completion": " Paris."})
    (tmp_path / "data.jsonl").write_text(f"{row}\n" * 8)
    told = {}
    for number, code in enumerate(cells()):
        code = code.replace('"atlas"', repr(str(anchor)))  # six questions in the place of hundreds
        exec(compile(code, f"cell {number}", "exec"), told)
    assert len(logged(told["trainer"])) == 2
    assert told["found"].life_lines[0].path == ["step-0", "step-2"]
    assert (tmp_path / "runs/lineage.html").is_file()
