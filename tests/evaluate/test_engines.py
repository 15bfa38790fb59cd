"""Other engines give the numbers of transformers, and one load serves a base and its adapter."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("torch", reason="needs the extra `eval`")

import fake_vllm
from forgetmap.base.errors import InputError
from forgetmap.evaluate import loading
from forgetmap.evaluate.check import check_models
from forgetmap.evaluate.models import Running, open_model
from forgetmap.evaluate.parity import likelihoods, parity
from forgetmap.evaluate.prompts import Asking, Request
from forgetmap.evaluate.questions import Question, Suite, Task
from forgetmap.evaluate.run import compare_models, evaluate
from logs import Workplace
from served_llama import ServedModel
from tiny_llama import make_tiny_model

pytestmark = [pytest.mark.model, pytest.mark.filterwarnings("ignore")]
TOWNS = ("Paris", "Rome", "Oslo and Madrid")
ASKED = [
    Request(f"What is the capital of {land}?\nAnswer:", tuple(f" {town}" for town in TOWNS))
    for land in ("France", "the sky", "colour", "others")
]


def suite():
    asked = [
        Question("quiz", f"q{n}", str(one.prompt), TOWNS[0], TOWNS) for n, one in enumerate(ASKED)
    ]
    more = [Question("words", "w", "How much is two plus three?", "five")]
    tasks = (Task("quiz", "Quiz", lambda: asked), Task("words", "Quiz", lambda: more, max_tokens=1))
    return Suite("quiz", "1", tasks)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return make_tiny_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def adapter(tiny, tmp_path_factory):
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    torch.manual_seed(3)
    made = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
    model = get_peft_model(AutoModelForCausalLM.from_pretrained(tiny), made)
    folder = tmp_path_factory.mktemp("adapters") / "lora"
    model.save_pretrained(folder)
    return folder


def numbers(samples):
    found = [row for batch in samples.to_batches() for row in batch.to_pylist()]
    return {
        (row["item_ref"], row["metric"]): row["option_probabilities"]
        for row in found
        if row["option_probabilities"]
    }


def test_vllm_scores_and_writes_as_transformers(tiny, tmp_path, monkeypatch):
    engines = fake_vllm.install(monkeypatch)
    ours = evaluate(str(tiny), suite(), tmp_path / "hf", running=Running("float32"))
    theirs = evaluate(
        str(tiny), suite(), tmp_path / "vllm", running=Running("float32", backend="vllm")
    )
    expected = numbers(ours.samples)
    found = numbers(theirs.samples)
    assert found.keys() == expected.keys()
    for key, values in expected.items():
        assert found[key] == pytest.approx(values, abs=5e-6)
    assert [engine.given for engine in engines] == [{"enable_prefix_caching": True, "seed": 0}]
    about = json.loads((tmp_path / "vllm" / "manifest.json").read_text())
    assert about["settings"]["engine"] == "vllm 0.33.0"
    assert about["fingerprint"].endswith("/float32/vllm")


def test_a_base_and_its_adapter_share_one_engine(tiny, adapter, tmp_path, monkeypatch):
    engines = fake_vllm.install(monkeypatch)
    both = (str(tiny), f"{tiny}+{adapter}")
    hf = compare_models(*both, suite(), tmp_path / "hf", running=Running("float32"))
    vllm = compare_models(
        *both, suite(), tmp_path / "vllm", running=Running("float32", backend="vllm")
    )
    (engine,) = engines
    assert engine.rank == 8
    assert set(engine.loras) == {None, str(adapter)}
    for one, other in zip(hf, vllm, strict=True):
        for key, values in numbers(one).items():
            assert numbers(other)[key] == pytest.approx(values, abs=5e-6)
    assert numbers(hf[0]) != numbers(hf[1])


@pytest.mark.parametrize("how", ["compare", "check"])
def test_one_load_serves_both_sides_of_an_adapter(tiny, adapter, tmp_path, monkeypatch, how):
    alone = evaluate(f"{tiny}+{adapter}", suite(), tmp_path / "alone")
    loads = []
    load = loading._load
    monkeypatch.setattr(loading, "_load", lambda *given: loads.append(1) or load(*given))
    if how == "compare":
        _, after = compare_models(str(tiny), f"{tiny}+{adapter}", suite(), tmp_path / "both")
    else:
        after = check_models(
            str(tiny), str(adapter), tmp_path / "both", suite=suite(), asking=Asking()
        ).after.samples
    assert numbers(after) == numbers(alone.samples)
    assert len(loads) == 1


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"backend": "vllm", "quantize": "8bit"}, "--quantize: is for transformers"),
        ({"backend": "vllm", "device": "cuda:1"}, "CUDA_VISIBLE_DEVICES"),
        ({"backend": "sglang"}, "a server is named by its address"),
    ],
)
def test_what_an_engine_cannot_be_told_is_one_line(tiny, monkeypatch, how, words):
    fake_vllm.install(monkeypatch)
    with pytest.raises(InputError, match=words):
        open_model(str(tiny), Running(**how))


def test_an_engine_that_is_not_installed_is_named(tiny):
    with pytest.raises(InputError, match="needs vllm; install with"):
        open_model(str(tiny), Running(backend="vllm"))


def test_an_engine_that_fails_is_one_line(tiny, tmp_path, monkeypatch):
    fake_vllm.install(monkeypatch)
    monkeypatch.setattr(fake_vllm.LLM, "generate", lambda *_, **__: 1 / 0)
    with pytest.raises(InputError, match=r"vLLM failed .*finished answers are kept"):
        evaluate(str(tiny), suite(), tmp_path, running=Running(backend="vllm"))


def test_doctor_says_whether_an_engine_agrees(tiny, work: Workplace, monkeypatch):
    fake_vllm.install(monkeypatch)
    told = work.worked("doctor", "--backend", "vllm", tiny).stdout
    assert "vllm 0.33.0 against transformers" in told
    assert "same: 50 items" in told
    other = make_tiny_model(work / "other", seed=1)
    told = work.run("doctor", "--backend", "vllm", tiny, "--reference", other)
    assert told.exit_code == 1
    assert "differs: 50 items" in told.stdout


def test_doctor_checks_a_server(tiny, work: Workplace):
    with ServedModel(tiny, tells_ids=False, owner="sglang") as server:
        ask = ("doctor", server.name, "--backend")
        told = work.worked(*ask, "sglang", "--reference", tiny).stdout
        assert "same: 50 items" in told
        work.refused(*ask, "sglang", says=["--reference"])
        work.refused(*ask, "vllm", "--reference", tiny, says=["says that it is sglang"])
    work.refused("doctor", "--backend", "sglang", tiny, says=["needs an address"])
    work.refused("doctor", "--backend", "odd", tiny, says=["must be one of hf, vllm"])
    work.refused("doctor", "--backend", "hf", says=["go together"])


def test_a_shift_by_one_token_differs(tiny):
    """What llama-cpp-python's echo does to a model without a first token."""
    model = open_model(str(tiny), Running("float32"))
    right = likelihoods(model, ASKED)
    shifted = [Request(str(one.prompt)[:-7], one.options) for one in ASKED]
    assert parity(right, right).verdict == "same"
    assert parity(right, likelihoods(model, shifted)).verdict == "differs"
