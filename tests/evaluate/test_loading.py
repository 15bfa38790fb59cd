"""Where a model goes, in which numbers; and bad weather: one clear line each, and work is kept."""

from __future__ import annotations

import json
import os
import shutil

import pytest

pytest.importorskip("torch", reason="needs the extra `eval`")

import torch
from safetensors.torch import load_file, save_file

from forgetmap.base.errors import InputError
from forgetmap.evaluate import loading
from forgetmap.evaluate.local import LocalModel
from forgetmap.evaluate.models import Running, open_model
from forgetmap.evaluate.prompts import Asking, Request
from forgetmap.evaluate.questions import Question, Suite, Task
from forgetmap.evaluate.results import MANIFEST
from forgetmap.evaluate.run import evaluate
from tiny_llama import make_tiny_model

pytestmark = [pytest.mark.model, pytest.mark.filterwarnings("ignore")]
ASKED = [
    Request("The capital of France is", (" Paris", " Rome and Oslo", " Madrid")),
    Request("The capital of France is the", (" Paris", " right option", " sky")),
]
WRITTEN = [Request("The colour of", max_tokens=5), Request("How much is", max_tokens=9)]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return make_tiny_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def copy(tiny, tmp_path):
    return shutil.copytree(tiny, tmp_path / "copy")


def suite(count=8):
    choices = ("Paris", "Rome", "Oslo")
    asked = [
        Question("t", f"q{n}", f"Question {n}?", choices[n % 3], choices) for n in range(count)
    ]
    return Suite("tiny", "1", (Task("t", "T", lambda: asked),))


def change(path, **fields):
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def refusal(model, how=None, chat=False):
    """The one line that loading a model ends with."""
    with pytest.raises(InputError) as error:
        open_model(str(model), how, chat=chat).run(ASKED, {})
    assert "\n" not in str(error.value)
    return str(error.value)


# --- devices and numbers --------------------------------------------------------------------------


def test_numbers_are_exact_on_a_processor_and_short_on_cards(tiny, monkeypatch):
    plain, named = (
        LocalModel(str(tiny), None, Running()),
        LocalModel(str(tiny), None, Running("float32", "cpu")),
    )
    assert plain.settings["dtype"] == "float32"
    assert plain.fingerprint == named.fingerprint, "old answers stay valid"
    assert plain.run(ASKED, {}) == named.run(ASKED, {})
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    card = LocalModel(str(tiny), None, Running())
    assert card.settings["dtype"] == "bfloat16"
    assert any("scored in bfloat16" in text for text in card.warnings)
    spread = LocalModel(str(tiny), None, Running(device="auto"))
    assert (spread.settings["dtype"], spread._sized_as) == ("bfloat16", "cuda")


def test_a_model_in_two_places_gives_the_same_numbers(tiny):
    """Part in memory, part on the disk until it is needed, as accelerate places it."""
    whole = LocalModel(str(tiny), None, Running(device="cpu"))
    split = LocalModel(str(tiny), None, Running(device="auto", max_memory="cpu=200KB"))
    assert set(split._network.hf_device_map.values()) == {"cpu", "disk"}
    assert split._scorer.packs
    for one, other in zip(whole.run(ASKED, {}), split.run(ASKED, {}), strict=True):
        assert one.likelihoods == pytest.approx(other.likelihoods, abs=1e-5)
    assert whole.run(WRITTEN, {}) == split.run(WRITTEN, {})
    assert whole.fingerprint == split.fingerprint


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"device": "mps"}, "--device mps: torch finds no Apple GPU"),
        ({"device": "cuda:1"}, "no CUDA device is here"),
        ({"device": "tpu"}, "must be auto, cpu, cuda, cuda:N or mps"),
        ({"device": "cpu", "max_memory": "1GiB"}, "it needs --device auto"),
        ({"device": "auto", "max_memory": "much"}, "write a size as 20GiB"),
        ({"device": "auto", "max_memory": "card=1GiB"}, "'card' is no card's number"),
    ],
)
def test_places_that_are_not_there(tiny, how, said):
    assert said in refusal(tiny, Running(**how))


def test_words_that_no_option_has():
    for how, said in (({"quantize": "3bit"}, "8bit, 4bit"), ({"attention": "none"}, "eager, sdpa")):
        with pytest.raises(InputError, match=said):
            Running(**how)


def test_a_served_model_is_not_loaded_here():
    with pytest.raises(InputError, match=r"--quantize: is for models that are loaded here"):
        open_model("http://127.0.0.1:9/v1#m", Running(quantize="8bit"))


def test_attention_is_passed_on_and_told(tiny):
    model = LocalModel(str(tiny), None, Running(attention="eager"))
    assert model._network.config._attn_implementation == "eager"
    assert model.settings["attention"] == "eager"


# --- quantised weights ----------------------------------------------------------------------------


def test_bits_need_a_package_and_name_it(tiny, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert refusal(tiny, Running(quantize="4bit")).endswith("install with: pip install accelerate")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name != "bitsandbytes" or None)
    said = refusal(tiny, Running(quantize="4bit"))
    assert said == "--quantize 4bit: needs bitsandbytes; install with: pip install bitsandbytes"


def test_other_bits_are_another_model(tiny):
    plain, short = (LocalModel(str(tiny), None, Running(quantize=bits)) for bits in (None, "8bit"))
    assert plain.fingerprint != short.fingerprint
    assert short.settings["quantized"] == "bitsandbytes, 8bit"
    assert any("items near a tie may flip" in text for text in short.warnings)


@pytest.mark.parametrize(
    ("told", "named"),
    [
        ({"quant_method": "gptq", "bits": 4}, "gptq, 4 bits"),
        ({"quant_method": "awq", "w_bit": 4}, "awq, 4 bits"),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "bitsandbytes, 8 bits"),
    ],
)
def test_a_folder_that_is_quantised_already_is_named(copy, told, named):
    change(copy / "config.json", quantization_config=told)
    model = LocalModel(str(copy), None, Running())
    assert model.settings["quantized"] == named
    assert f"is quantised already ({named})" in refusal(copy, Running(quantize="8bit"))


def test_eight_bits_on_a_processor(tiny):
    pytest.importorskip("bitsandbytes", reason="bitsandbytes is not installed")
    plain, short = (
        LocalModel(str(tiny), None, Running(device="cpu", quantize=bits)) for bits in (None, "8bit")
    )
    for one, other in zip(plain.run(ASKED, {}), short.run(ASKED, {}), strict=True):
        assert one.likelihoods == pytest.approx(other.likelihoods, abs=1.0)
        assert one.likelihoods != other.likelihoods


# --- code that a model brings ---------------------------------------------------------------------


def test_code_of_the_models_own_runs_only_when_asked(copy):
    (copy / "mine.py").write_text(
        "from pathlib import Path\n"
        "from transformers import LlamaConfig, LlamaForCausalLM\n"
        "Path(__file__).with_name('ran').write_text('yes')\n"
        "class MineConfig(LlamaConfig):\n    model_type = 'mine'\n"
        "class Mine(LlamaForCausalLM):\n    config_class = MineConfig\n"
    )
    names = {"AutoConfig": "mine.MineConfig", "AutoModelForCausalLM": "mine.Mine"}
    change(copy / "config.json", model_type="mine", auto_map=names, architectures=["Mine"])
    said = refusal(copy)
    assert said.endswith(
        "brings code of its own, which was not run; read it, then --trust-code runs it"
    )
    trusted = LocalModel(str(copy), None, Running(trust_code=True))
    assert trusted.run(ASKED, {})[0].likelihoods
    assert trusted.settings["own code"] in trusted.fingerprint


# --- bad weather ----------------------------------------------------------------------------------


def test_a_checkpoint_that_is_deleted_while_it_is_asked_keeps_the_answers(copy, tmp_path):
    first = evaluate(str(copy), suite(4), tmp_path / "out")
    assert first.evaluated == 4
    model = LocalModel(str(copy), None, Running())
    shutil.rmtree(copy)
    with pytest.raises(InputError, match="was deleted or moved while it was read; finished answ"):
        evaluate(model, suite(8), tmp_path / "out")
    make_tiny_model(copy)
    assert evaluate(str(copy), suite(8), tmp_path / "out").evaluated == 4


def test_a_file_that_vanishes_while_it_is_hashed(copy, monkeypatch):
    def gone(folder):
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr("forgetmap.evaluate.local.weights_hash", gone)
    assert "copy: cannot be read ([Errno 2] No such file" in refusal(copy)


def test_weights_that_are_cut_off(copy):
    whole = (copy / "model.safetensors").read_bytes()
    (copy / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    assert "the model cannot be loaded" in refusal(copy)


def test_memory_that_runs_out_in_words_halves_too(tiny):
    model = LocalModel(str(tiny), None, Running(device="cpu"))
    expected = [reply.likelihoods for reply in model.run(ASKED, {})]
    real = model._scorer.score

    def small(choices, shared):
        if len(choices) > 1:
            raise RuntimeError("MPS backend out of memory (MPS allocated: 9 GB)")
        return real(choices, shared)

    model._scorer.score = small
    for reply, before in zip(model.run(ASKED, {}), expected, strict=True):
        assert reply.likelihoods == pytest.approx(before, abs=1e-5)
    model._scorer.score = lambda *_: (_ for _ in ()).throw(RuntimeError("a bug"))
    with pytest.raises(RuntimeError, match="a bug"):
        model.run(ASKED, {})


def test_a_tokenizer_that_leaves_much_of_the_model_idle_is_doubted(copy):
    weights = load_file(copy / "model.safetensors")
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        weights[name] = torch.cat([weights[name], torch.zeros(200, 48)])
    rows = len(weights["lm_head.weight"])
    save_file(weights, copy / "model.safetensors", {"format": "pt"})
    change(copy / "config.json", vocab_size=rows)
    model = LocalModel(str(copy), None, Running())
    model.run(ASKED, {})
    assert any("does it belong to another model?" in text for text in model.warnings)


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{% for m in messages %}hello{% endfor %}", "its chat template leaves out the question"),
        ("{{ raise_exception('no') }}", "its chat template refuses the prompt (no)"),
        ("{% for m in messages %}", "its chat template refuses the prompt"),
        (None, "has no chat template; run with --no-chat"),
    ],
)
def test_a_chat_template_that_is_broken_or_missing(copy, template, said):
    (copy / "chat_template.jinja").unlink(missing_ok=True)
    config = json.loads((copy / "tokenizer_config.json").read_text())
    config["chat_template"] = template
    (copy / "tokenizer_config.json").write_text(json.dumps(config))
    line = refusal(copy, chat=True)
    assert said in line
    assert "--no-chat" in line


def test_a_vocabulary_that_training_resized(copy):
    weights = load_file(copy / "model.safetensors")
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        weights[name] = torch.cat([weights[name], torch.zeros(3, 48)])
    rows = len(weights["lm_head.weight"])
    save_file(weights, copy / "model.safetensors", {"format": "pt"})
    said = refusal(copy)
    assert f"is {rows:,} x 48, and config.json says {rows - 3:,} x 48" in said
    assert "was the vocabulary resized by training" in said
    change(copy / "config.json", vocab_size=rows)
    assert open_model(str(copy)).run(ASKED, {})[0].likelihoods


def test_weights_that_are_missing_are_not_made_up(copy):
    """transformers fills them with random numbers and logs it: another answer at every load."""
    weights = load_file(copy / "model.safetensors")
    del weights["lm_head.weight"]
    save_file(weights, copy / "model.safetensors", {"format": "pt"})
    assert "weights are missing (lm_head.weight); are they tied in config.json?" in refusal(copy)
    change(copy / "config.json", tie_word_embeddings=True)
    tied = open_model(str(copy))
    network = tied._network
    assert network.lm_head.weight is network.model.embed_tokens.weight
    assert tied.run(ASKED, {})[0].likelihoods


class TestAdapters:
    @pytest.fixture
    def adapter(self, tiny, tmp_path):
        return self.make(tiny, tmp_path / "adapter")

    def make(self, base, folder, rows=0, **changed):
        """An adapter with random weights, of the model in a folder or of one like it."""
        from peft import LoraConfig, get_peft_model
        from transformers import AutoConfig, AutoModelForCausalLM

        torch.manual_seed(0)
        config = AutoConfig.from_pretrained(base)
        for name, value in changed.items():
            setattr(config, name, value)
        model = AutoModelForCausalLM.from_config(config)
        if rows:
            model.resize_token_embeddings(config.vocab_size + rows)
        saved = ["embed_tokens", "lm_head"] if rows else None
        how = LoraConfig(
            r=2, target_modules=["q_proj"], modules_to_save=saved, init_lora_weights=False
        )
        tuned = get_peft_model(model, how)
        tuned.save_pretrained(folder)
        change(folder / "adapter_config.json", base_model_name_or_path=str(base))
        return folder

    def test_it_fits_its_base(self, tiny, adapter):
        model = open_model(f"{tiny}+{adapter}")
        assert model.run(ASKED, {}) != open_model(str(tiny)).run(ASKED, {})
        assert not any("was trained on" in text for text in model.warnings)

    @pytest.mark.parametrize("changed", [{"num_attention_heads": 6}, {"num_hidden_layers": 5}])
    def test_of_another_base_it_is_refused(self, tiny, tmp_path, changed):
        """One with more layers than the base would be put on in parts, without a word."""
        adapter = self.make(tiny, tmp_path / "other", **changed)
        assert "does not fit the base model" in refusal(f"{tiny}+{adapter}")

    def test_that_names_another_base_is_told(self, tiny, adapter):
        change(adapter / "adapter_config.json", base_model_name_or_path="somebody/else")
        told = open_model(f"{tiny}+{adapter}").warnings
        assert any("says it was trained on somebody/else" in text for text in told)

    def test_with_a_vocabulary_that_grew(self, tiny, tmp_path):
        adapter = self.make(tiny, tmp_path / "grown", rows=3)
        assert "was trained with a vocabulary of" in refusal(f"{tiny}+{adapter}")

    def test_on_weights_that_are_split(self, tiny, adapter):
        name = f"{tiny}+{adapter}"
        whole = open_model(name, Running(device="auto"))
        assert whole.run(ASKED, {}) == open_model(name).run(ASKED, {})
        said = refusal(name, Running(device="auto", max_memory="cpu=200KB"))
        assert "give it more --max-memory" in said


def test_no_results_are_written_for_a_model_that_cannot_be_loaded(copy, tmp_path):
    (copy / "model.safetensors").unlink()
    with pytest.raises(InputError, match="the model cannot be loaded"):
        evaluate(str(copy), suite(), tmp_path / "out", asking=Asking())
    assert not (tmp_path / "out" / MANIFEST).exists()


def test_sizes_by_device():
    assert loading.max_memory("0=20GiB,cpu=60GiB") == {0: "20GiB", "cpu": "60GiB"}


def test_a_file_that_changed_is_hashed_again(tmp_path):
    from forgetmap.evaluate.describe import weights_hash

    file = tmp_path / "model.safetensors"
    file.write_bytes(b"one")
    first = weights_hash(tmp_path)
    assert weights_hash(tmp_path) == first
    file.write_bytes(b"two")  # as long, in the same place
    os.utime(file, ns=(1, 1))
    second = weights_hash(tmp_path)
    assert second != first
    file.write_bytes(b"one")
    assert weights_hash(tmp_path) == first
