"""Packed scoring gives lm-eval's numbers; texts do not depend on their neighbours."""

from __future__ import annotations

import random

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra `eval`")
pytest.importorskip("lm_eval", reason="needs the extra `eval`")

import torch
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
from scipy.stats import chisquare
from transformers import AutoModelForCausalLM, AutoTokenizer

from forgetmap.evaluate import scoring
from forgetmap.evaluate.generation import Opening, Writer, _choose, _Row
from forgetmap.evaluate.local import LocalModel
from forgetmap.evaluate.models import Running
from forgetmap.evaluate.prompts import Request
from forgetmap.evaluate.scoring import Choice, PackedScorer, _pick, plan_batches
from tiny_llama import TEXT, make_tiny_model

pytestmark = [
    pytest.mark.model,
    pytest.mark.filterwarnings("ignore"),  # of lm-eval and transformers, not ours
]
WORDS = TEXT.replace("?", "").replace(".", "").split()
ITEMS = 1000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def lm_eval_model(folder):
    return HFLM(pretrained=str(folder), dtype="float32", device="cpu", batch_size=64)


def phrase(draw, most):
    return " ".join(draw.choices(WORDS, k=draw.randint(1, most)))


def questions(shared, seed):
    """Requests with four options, endings that tempt a tokenizer, and contexts of all lengths."""
    draw = random.Random(seed)
    endings = ["\nAnswer:", "\nAnswer: ", "?", " \n", "\n\nAnswer:\t"]
    return [
        Request(shared + phrase(draw, 25) + draw.choice(endings), tuple(options(draw)))
        for _ in range(ITEMS)
    ]


def options(draw):
    """Four that differ: of two alike either may come first."""
    found = {}
    while len(found) < 4:
        found[f" {phrase(draw, 4)}" if draw.random() < 0.9 else draw.choice("xyz")] = True
    return found


def score(model, requests):
    found = {}
    for group in model.plan(requests):
        replies = model.run([requests[place] for place in group.places], group.hints)
        found.update(zip(group.places, replies, strict=True))
    return [found[place].likelihoods for place in range(len(requests))]


def test_a_large_vocabulary_is_summed_as_lm_eval_sums_it():
    """torch's float32 log-softmax is off by more than the bar in a few tokens: share it."""
    logits = 3 * torch.randn(1, 4, 50_000, generator=torch.Generator().manual_seed(0))
    options = ((7, 8), (9, 10, 11))
    [found] = _pick(logits, [Choice((1, 2), options)])
    table = torch.nn.functional.log_softmax(logits[0], dim=-1)
    expected = [
        float(table[0, 7]) + float(table[1, 8]),
        float(table[0, 9]) + float(table[2, 10]) + float(table[3, 11]),
    ]
    assert [option.log_likelihood for option in found] == expected


@pytest.mark.parametrize(
    "shared", ["", "Question one: the colour of the sky.\nAnswer: Paris\n\n" * 3]
)
def test_log_likelihoods_are_those_of_lm_eval(folder, lm_eval_model, shared):
    requests = questions(shared, seed=1)
    ours = score(LocalModel(str(folder), None, Running()), requests)
    instances = [
        Instance("loglikelihood", {}, (request.prompt, option), number)
        for number, request in enumerate(requests)
        for option in request.options
    ]
    theirs = iter(lm_eval_model.loglikelihood(instances, disable_tqdm=True))
    worst = 0.0
    for likelihoods in ours:
        expected = [next(theirs)[0] for _ in likelihoods]
        worst = max(worst, *(abs(a - b) for a, b in zip(likelihoods, expected, strict=True)))
        assert max(range(4), key=likelihoods.__getitem__) == max(range(4), key=expected.__getitem__)
    assert worst < 1e-4


def test_what_is_shared_is_found_and_computed_once(folder):
    requests = questions("The capital of France is Paris. " * 4, seed=2)[:50]
    model = LocalModel(str(folder), None, Running())
    groups = model.plan(requests)
    assert {group.hints["shared"] for group in groups} == {groups[0].hints["shared"]}
    assert groups[0].hints["shared"] > 20
    calls = []
    network = model._network
    network.register_forward_pre_hook(
        lambda _module, _args, given: calls.append(given["input_ids"].shape), with_kwargs=True
    )
    assert model._scorer.packs
    calls.clear()
    score(model, requests)
    alone = [shape for shape in calls if shape[0] == 1 and shape[1] == groups[0].hints["shared"]]
    assert len(alone) == 1
    assert len(calls) == len(groups) + 1


def test_batches_do_not_depend_on_what_is_finished_and_hold_every_item_once():
    draw = random.Random(3)
    choices = [
        Choice(tuple(range(draw.randint(1, 60))), ((1,) * draw.randint(1, 5),) * 4)
        for _ in range(300)
    ]
    plan = plan_batches(choices, device="cpu", vocabulary=1000)
    assert sorted(place for batch in plan for place in batch.items) == list(range(300))
    assert plan == plan_batches(choices, device="cpu", vocabulary=1000)
    small = plan_batches(choices, device="cpu", vocabulary=1000, rows=7)
    assert {len(batch.items) for batch in small[:-1]} == {7}


@pytest.mark.parametrize("kind", ["sliding", "mixed"])
def test_layers_that_look_back_a_little_way_only(kind, monkeypatch):
    from transformers import Gemma3ForCausalLM, Gemma3TextConfig, MistralConfig, MistralForCausalLM

    torch.manual_seed(0)
    sizes = {
        "vocab_size": 200,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "sliding_window": 6,
        "initializer_range": 0.3,
    }
    if kind == "sliding":
        model = MistralForCausalLM(MistralConfig(**sizes)).eval()
    else:
        kinds = ["sliding_attention", "full_attention", "sliding_attention"]
        model = Gemma3ForCausalLM(Gemma3TextConfig(**sizes, layer_types=kinds, head_dim=8)).eval()
    scorer = PackedScorer(model)
    assert scorer.packs
    draw = random.Random(4)
    start = tuple(draw.choices(range(200), k=9))
    choices = [
        Choice(
            start + tuple(draw.choices(range(200), k=draw.randint(1, 12))),
            tuple(tuple(draw.choices(range(200), k=draw.randint(1, 4))) for _ in range(3)),
        )
        for _ in range(20)
    ]
    packed = scorer.score(choices, shared=9)
    plain = scorer._score_plainly(choices)
    monkeypatch.setattr(scoring, "_without_odd_key", lambda keys, _device: keys + 1)
    for other_road in (plain, scorer.score(choices, shared=9), scorer._score_plainly(choices)):
        for ours, theirs in zip(packed, other_road, strict=True):
            for one, other in zip(ours, theirs, strict=True):
                assert one.log_likelihood == pytest.approx(other.log_likelihood, abs=1e-4)
                assert one.greedy == other.greedy


def test_a_model_that_cannot_be_packed_is_scored_plainly():
    from transformers import MambaConfig, MambaForCausalLM

    torch.manual_seed(0)
    config = MambaConfig(vocab_size=200, hidden_size=32, num_hidden_layers=2, state_size=4)
    scorer = PackedScorer(MambaForCausalLM(config).eval())
    assert not scorer.packs
    choices = [Choice((5, 6, 7), ((8, 9), (10,))), Choice((5, 6), ((8,), (10, 3, 4)))]
    alone = [scorer.score([choice])[0] for choice in choices]
    for one, other in zip(scorer.score(choices), alone, strict=True):
        assert [s.log_likelihood for s in one] == pytest.approx(
            [s.log_likelihood for s in other], abs=1e-4
        )


@pytest.fixture(scope="module")
def writer(folder):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    return Writer(model, AutoTokenizer.from_pretrained(folder))


def openings(writer, **how):
    draw = random.Random(5)
    texts = [phrase(draw, 20) for _ in range(12)]
    return [Opening(tuple(writer._tokenizer.encode(text)), 20, **how) for text in texts]


def test_a_greedy_text_does_not_depend_on_its_batch(writer):
    asked = openings(writer)
    together = writer.write(asked)
    assert [writer.write([one])[0].text for one in asked] == [one.text for one in together]
    generated = writer._model.generate(
        torch.tensor([asked[0].tokens]), max_new_tokens=20, do_sample=False
    )
    expected = writer._tokenizer.decode(
        generated[0, len(asked[0].tokens) :], skip_special_tokens=True
    )
    assert together[0].text == expected


def test_a_sampled_text_depends_on_its_seed_alone(writer):
    asked = openings(writer, temperature=1.0, seed=7)
    together = [one.text for one in writer.write(asked)]
    assert [writer.write([one])[0].text for one in asked] == together
    other = [one.text for one in writer.write(openings(writer, temperature=1.0, seed=8))]
    assert other != together


def test_tokens_are_drawn_by_their_chances():
    logits = torch.tensor([2.0, -1.0, 0.5, -torch.inf, 0.0])
    rows = [
        _Row(Opening((1,), 1, temperature=0.7), torch.Generator().manual_seed(seed))
        for seed in range(4_000)
    ]
    drawn = _choose(logits.repeat(len(rows), 1), rows)
    expected = (logits.double() / 0.7).softmax(0).numpy() * len(rows)
    counts = np.bincount(drawn, minlength=5)
    assert counts[3] == 0  # it has no chance at all
    assert chisquare(np.delete(counts, 3), np.delete(expected, 3)).pvalue > 0.001
    greedy = _Row(Opening((1,), 1), torch.Generator())
    assert _choose(logits[None], [greedy]) == [0]


def test_texts_end_at_stop_strings_and_answers(writer):
    free = writer.write(openings(writer))[0].text
    assert len(free) > 4
    stop = free[3:5]
    stopped = writer.write([*openings(writer, stop=(stop,))[:1]])[0]
    assert stopped.text == free[: free.find(stop)]
    assert stopped.finished
    early = writer.write(openings(writer, is_complete=lambda text: len(text) >= 3)[:1])[0]
    assert early.finished
    assert early.tokens < 20
    assert free.startswith(early.text)
    cut = writer.write([Opening(openings(writer)[0].tokens, 2)])[0]
    assert (cut.tokens, cut.finished) == (2, False)
