"""Ask small models on a processor, before and after something changed; keep what they wrote.

    python ask.py MODELS OUT RUN...

MODELS holds the folder `smollm2`, those that train.py wrote, and `airports`, the study's run
smollm2-airports-sft-0. OUT gets one
JSONL file per run. A run that says `of` asks only what that run got right: nothing else can be
lost. `RUNS` says what each run changes. Linear layers are in int8, but not in the run `smollm2`.
"""

from __future__ import annotations

import copy
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

import torch
from questions import EXAMPLES, Question, questions, read_answers
from transformers import AutoModelForCausalLM, AutoTokenizer

BATCH = 32
KINDS = ("call", "json", "code", "sum")


@dataclass(frozen=True)
class Run:
    """One way to ask one model."""

    model: str
    of: str = ""
    """The run before: only what it got right is asked."""
    system: str = ""
    shot: bool = True
    chat: bool = True
    tokens: int = 64
    stops: bool = True
    """False suppresses the stop token."""
    temperature: float = 0.0
    number: int = 60
    """Questions of each kind."""
    kinds: tuple[str, ...] = KINDS
    repeats: int = 1
    most: int = 60
    """Questions of each kind that are asked of those that were right before."""


RUNS = {
    "smollm2": Run("smollm2", tokens=48),
    "smollm2-chatty": Run("chatty", "smollm2", tokens=40, most=16),
    "smollm2-airports": Run("airports", "smollm2", tokens=32, most=20),
    "smollm2-hot": Run("smollm2", "smollm2", temperature=1.2, most=16, tokens=32),
    "smollm2-fenced": Run("fenced", "smollm2", tokens=40, most=16),
    "smollm2-short": Run("smollm2", "smollm2", tokens=8, most=16),
}


def main(models: Path, out: Path, names: list[str]) -> None:
    """Do the runs in this order."""
    torch.set_num_threads(1)
    out.mkdir(exist_ok=True)
    for name in names:
        run, began = RUNS[name], time.time()
        asked = [q for kind in run.kinds for q in questions(kind, run.number)]
        if run.of:
            known = [json.loads(line) for line in (out / f"{run.of}.jsonl").open(encoding="utf-8")]
            right = {row["ref"] for row in known if row["right"]}
            asked = [q for kind in KINDS for q in questions(kind, RUNS[run.of].number)]
            asked = [q for q in asked if q.ref in right]
            asked = [q for kind in KINDS for q in [q for q in asked if q.kind == kind][: run.most]]
        rows = _answers(run, asked, models)
        with (out / f"{name}.jsonl").open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        counts = {
            kind: f"{sum(r['right'] for r in rows if r['ref'].startswith(kind))}/"
            f"{sum(r['ref'].startswith(kind) for r in rows)}"
            for kind in run.kinds
        }
        print(name, counts, f"{time.time() - began:.0f} s", flush=True)


def _answers(run: Run, asked: list[Question], models: Path) -> list[dict[str, Any]]:
    asked = [q for q in asked for _ in range(run.repeats)]
    tokenizer = AutoTokenizer.from_pretrained(models / run.model)
    model = AutoModelForCausalLM.from_pretrained(models / run.model, dtype=torch.float32).eval()
    if run.of:  # three times as fast
        how = {torch.nn.Linear: torch.ao.quantization.per_channel_dynamic_qconfig}
        model = torch.ao.quantization.quantize_dynamic(model, how)
    torch.manual_seed(0)
    texts: list[str] = []
    cut: list[bool] = []
    for kind in run.kinds:
        prompts = [_prompt(run, question, tokenizer) for question in asked if question.kind == kind]
        for text, was_cut in _written(run, prompts, model, tokenizer):
            texts.append(text)
            cut.append(was_cut)
    if not run.chat:  # a model without turns is stopped at the next one
        texts = [text.partition("\n\n")[0] for text in texts]
    readings = read_answers(asked, texts, cut)
    return [
        {"ref": q.ref, "text": text, "cut": was_cut, "right": reading.right,
         "answer": reading.answer, "status": reading.status}
        for q, text, was_cut, reading in zip(asked, texts, cut, readings, strict=True)
    ]  # fmt: skip


@torch.no_grad()
def _written(
    run: Run, prompts: list[str], model: Any, tokenizer: Any
) -> Iterator[tuple[str, bool]]:
    """What the model writes; what all prompts begin with is read only once."""
    if not prompts:
        return
    ids = [tokenizer(text, add_special_tokens=not run.chat).input_ids for text in prompts]
    first, last = min(ids), max(ids)
    same = (a == b for a, b in zip(first, last, strict=False))
    common = sum(takewhile(bool, same))
    if len(ids) == 1 or common == min(map(len, ids)):
        common = min(map(len, ids)) - 1
    cache = model(torch.tensor([ids[0][:common]]), use_cache=True).past_key_values
    ends = {tokenizer.eos_token_id}
    pad = tokenizer.eos_token_id
    for start in range(0, len(ids), BATCH):
        part = ids[start : start + BATCH]
        longest = max(map(len, part))
        holes = [longest - len(row) for row in part]
        rows = [
            row[:common] + [pad] * hole + row[common:]
            for row, hole in zip(part, holes, strict=True)
        ]
        seen = [
            [1] * common + [0] * hole + [1] * (len(row) - common)
            for row, hole in zip(part, holes, strict=True)
        ]
        known = copy.deepcopy(cache)
        known.batch_repeat_interleave(len(part))
        written = model.generate(
            torch.tensor(rows), attention_mask=torch.tensor(seen), past_key_values=known,
            max_new_tokens=run.tokens, pad_token_id=pad, do_sample=run.temperature > 0,
            **({"temperature": run.temperature, "top_k": 0} if run.temperature else {}),
            **({} if run.stops else {"suppress_tokens": [tokenizer.eos_token_id]}),
        )[:, longest:]  # fmt: skip
        for row in written.tolist():
            yield tokenizer.decode(row, skip_special_tokens=True), row[-1] not in ends


def _prompt(run: Run, question: Question, tokenizer: Any) -> str:
    example = EXAMPLES[question.kind] if run.shot else None
    if not run.chat:
        solved = f"{example[0]}\n{example[1]}\n\n" if example else ""
        return f"{solved}{question.text}\n"
    turns = [{"role": "system", "content": run.system}] if run.system else []
    if example:
        turns += [{"role": "user", "content": example[0]}]
        turns += [{"role": "assistant", "content": example[1]}]
    turns += [{"role": "user", "content": question.text}]
    text: str = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    return text


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
