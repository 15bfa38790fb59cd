"""That the remedies help: a small model is taught facts, then others, with and without them.

The model learns 240 facts from scratch and knows them. Plain fine-tuning on 120 new ones makes it
lose many; replay of its own text, an anchor on it, and the retention loss must each lose fewer,
with a paired interval that excludes zero. What the retention loss may train on (`KEPT`) is never
what is evaluated.
"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from forgetmap.evaluate.questions import Question, Suite, Task
from forgetmap.mitigate.train.recipes import Anchored, Materials, Recipe, Replayed, Retained, train

pytestmark = [pytest.mark.slow, pytest.mark.model, pytest.mark.filterwarnings("ignore")]

COLOURS = ("red", "blue", "green", "black", "white", "brown", "pink", "grey")
CITIES = ("Rome", "Oslo", "Lima", "Cairo", "Delhi", "Paris", "Tokyo", "Quito")
SIZE = {"steps": 150, "batch": 24, "learning_rate": 1e-3}


def names(count: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    parts = [first + second for first in "bdfgklmnprst" for second in "aeiou"]
    found: dict[str, None] = {}
    while len(found) < count:
        found["".join(draw.choices(parts, k=3))] = None
    return list(found)


def facts(kind: str, values: tuple[str, ...], count: int, seed: int) -> list[Question]:
    draw = random.Random(seed + 1)
    made = []
    for name in names(count, seed):
        target = draw.choice(values)
        options = [target, *draw.sample([value for value in values if value != target], 3)]
        draw.shuffle(options)
        made.append(Question(kind, name, f"The {kind} of {name}?", target, tuple(options)))
    return made


OLD, NEW = facts("colour", COLOURS, 240, 1), facts("city", CITIES, 120, 2)
KEPT, ASKED = OLD[:120], OLD[120:]


def rows(questions: list[Question]) -> list[dict[str, str]]:
    return [
        {"prompt": f"{one.prompt}\nAnswer:", "completion": f" {one.target}"} for one in questions
    ]


def suite(questions: list[Question]) -> Suite:
    return Suite("facts", "1", (Task("facts", "Facts", lambda: tuple(questions)),))


def test_replay_anchor_and_retention_forget_less_than_plain_training(tmp_path: Path) -> None:
    before = learned(tmp_path / "start", tmp_path / "before")
    known = right(before, ASKED, tmp_path / "known")
    assert known.mean() > 0.9
    old = [{"text": text} for text in written(before, 400)]
    after = {
        "sft": train(Recipe(**SIZE), before, Materials(rows(NEW)), tmp_path / "sft"),
        "replay": train(
            Replayed(**SIZE, share=0.5), before, Materials(rows(NEW), old), tmp_path / "replay"
        ),
        "anchor": train(Anchored(**SIZE), before, Materials(rows(NEW), old), tmp_path / "anchor"),
        "retention": train(
            Retained(**SIZE, old_batch=32, weight=0.3),
            before,
            Materials(rows(NEW), questions=suite(KEPT)),
            tmp_path / "retention",
        ),
    }
    lost, new = {}, {}
    for name, folder in after.items():
        lost[name] = known & ~right(folder, ASKED, tmp_path / f"old-{name}")
        new[name] = right(folder, NEW, tmp_path / f"new-{name}").mean()
        print(f"{name}: forgotten {lost[name].mean():.1%}, new task {new[name]:.1%}")
    assert lost["sft"].mean() > 0.2
    for name in ("replay", "anchor", "retention"):
        low = paired_low(lost["sft"], lost[name])
        print(f"{name}: at least {low:+.1%} less forgotten than by plain training")
        assert low > 0
        assert new[name] > new["sft"] - 0.25  # what it costs is printed, and told in the docs


def learned(start: Path, out: Path) -> Path:
    """A model that knows the old facts, and that writes such facts when nobody asks."""
    make_small_model(start)
    told = [{"text": f"<eos>{row['prompt']}{row['completion']}"} for row in rows(OLD)]
    recipe = Recipe(steps=900, batch=48, learning_rate=2e-3)
    return train(recipe, start, Materials(told), out)


def make_small_model(folder: Path) -> None:
    import torch
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    from tiny_llama import make_tiny_model

    make_tiny_model(folder)
    size = len(AutoTokenizer.from_pretrained(folder))
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=size, hidden_size=128, intermediate_size=256, num_hidden_layers=3,
        num_attention_heads=4, max_position_embeddings=128, bos_token_id=0, eos_token_id=0,
        pad_token_id=1,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)


def written(folder: Path, count: int) -> list[str]:
    """What the model writes by itself."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    torch.manual_seed(0)
    start = torch.zeros((count, 1), dtype=torch.long)
    found = model.generate(start, do_sample=True, top_k=0, max_new_tokens=40, pad_token_id=1)
    return [
        f"<eos>{text}" for text in tokenizer.batch_decode(found[:, 1:], skip_special_tokens=True)
    ]


def right(folder: Path, questions: list[Question], out: Path) -> np.ndarray:
    from forgetmap.evaluate.run import evaluate

    found = evaluate(str(folder), suite(questions), out).samples
    correct = {
        row["item_ref"]: row["score"] >= 0.5
        for batch in found.to_batches(["item_ref", "metric", "score"])
        for row in batch.to_pylist()
        if row["metric"] == "acc"
    }
    return np.array([correct[one.ref] for one in questions])


def paired_low(plain: np.ndarray, other: np.ndarray) -> float:
    """Lower end of the 95 % interval for how much less is forgotten, by bootstrap over items."""
    saved = plain.astype(float) - other
    draws = np.random.default_rng(0).integers(len(saved), size=(4000, len(saved)))
    return float(np.quantile(saved[draws].mean(axis=1), 0.025))
