"""Divergence: exact against a plain computation, on servers too, and honest about what it lacks."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forgetmap.evaluate.divergence import AFTER, BEFORE, Text, diverge, ratio

TEXTS = {
    "old": [Text("What is the capital", " of France?"), Text("The colour", " of the sky.")] * 3,
    "new": [Text("How much is two", " plus three?")] * 2,
}


@given(st.lists(st.tuples(st.floats(-5, 5), st.integers(1, 20)), min_size=2, max_size=30))
def test_a_ratio_weighs_texts_by_their_tokens(rows: list[tuple[float, int]]) -> None:
    sums, counts = (np.array(side, float) for side in zip(*rows, strict=True))
    found = ratio(sums, counts)
    assert found is not None
    assert found.value == pytest.approx(sums.sum() / counts.sum())
    assert found.low <= found.value <= found.high


def test_intervals_hold_the_truth() -> None:
    rng, held = np.random.default_rng(0), 0
    for _ in range(400):
        counts = rng.integers(5, 50, 40).astype(float)
        found = ratio(rng.normal(0.3 * counts, np.sqrt(counts)), counts)
        assert found is not None
        held += found.low <= 0.3 <= found.high
    assert 0.92 <= held / 400 <= 0.98


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    from tiny_llama import make_tiny_model

    folder = tmp_path_factory.mktemp("models")
    return [make_tiny_model(folder / f"model{seed}", seed) for seed in (0, 1)]


@pytest.mark.model
@pytest.mark.filterwarnings("ignore")
class TestModels:
    def test_kl_equals_a_plain_computation(self, models: list[Path]) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(models[0])
        networks = [AutoModelForCausalLM.from_pretrained(model).eval() for model in models]
        forward = reverse = tokens = 0.0
        for prompt, completion in TEXTS["old"]:
            start = len(tokenizer(prompt)["input_ids"])
            whole = torch.tensor([tokenizer(prompt + completion)["input_ids"]])
            with torch.inference_mode():
                p, q = (
                    network(whole).logits[0, start - 1 : -1].double().log_softmax(-1)
                    for network in networks
                )
            forward += float((p.exp() * (p - q)).sum())
            reverse += float((q.exp() * (q - p)).sum())
            tokens += len(p)
        found = diverge(*map(str, models), TEXTS)
        assert found.full
        assert found.on["old"].tokens == tokens
        assert found.on["old"].kl_forward.value == pytest.approx(forward / tokens, rel=1e-4)
        assert found.on["old"].kl_reverse.value == pytest.approx(reverse / tokens, rel=1e-4)

    def test_a_model_is_at_no_distance_from_itself(self, models: list[Path]) -> None:
        moved = diverge(str(models[0]), str(models[0]), TEXTS).on["old"]
        assert moved.kl_forward.value == moved.kl_reverse.value == 0
        assert moved.perplexity_before == moved.perplexity_after

    def test_samples_feed_theory_and_study(self, models: list[Path], tmp_path: Path) -> None:
        from forgetmap.study.about import read_about
        from forgetmap.theory.logprobs import read_logprobs

        file = tmp_path / "samples.jsonl"
        found = diverge(*map(str, models), TEXTS, samples=12, logprobs=file)
        assert found.on[BEFORE].kl_forward.value > 0
        assert found.on[AFTER].kl_reverse.value > 0
        assert len(read_logprobs(file).old) >= 2
        (tmp_path / "moved.json").write_text(found.to_json(), encoding="utf-8")
        taken = read_about(tmp_path / "moved.json", ["kl_forward_old"])
        assert taken == {"kl_forward_old": json.loads(found.to_json())["kl_forward_old"]}

    def test_servers_tell_log_ratios_as_local_models_do(self, models: list[Path]) -> None:
        from served_llama import ServedModel

        local = diverge(*map(str, models), TEXTS)
        with (
            ServedModel(models[0], tells_ids=True) as one,
            ServedModel(models[1], tells_ids=True) as other,
        ):
            served = diverge(one.name, other.name, TEXTS)
        assert not served.full
        assert served.on["old"].kl_forward is None
        assert served.on["old"].log_ratio.value == pytest.approx(
            local.on["old"].log_ratio.value, abs=1e-4
        )
        assert "own samples" in served.notes[0]
