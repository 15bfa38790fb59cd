"""Ask small models on a processor, before and after something changed; keep what they wrote.

    python ask.py MODELS OUT RUN...

MODELS holds the folders `smollm2` and `gemma` (Gemma 3 270M, a base model), those that train.py
wrote, and `airports`, the study's run smollm2-airports-sft-0. OUT gets one JSONL file per run. A
run that says `of` asks only what that run got right: nothing else can be lost. `RUNS` in runs.py
says what each run changes.
"""

from __future__ import annotations

import copy
import json
import sys
import time
from collections.abc import Iterator
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any

import torch
from questions import EXAMPLES, Question, questions, read_answers
from runs import RUNS, Run
from transformers import AutoModelForCausalLM, AutoTokenizer

BATCH = 32


def main(models: Path, out: Path, names: list[str]) -> None:
    """Do the runs in this order."""
    torch.set_num_threads(1)
    out.mkdir(exist_ok=True)
    for name in names:
        run, began = RUNS[name], time.time()
        rows = _answers(run, _asked(run, out), models)
        with (out / f"{name}.jsonl").open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        counts = {
            kind: f"{sum(r['right'] for r in rows if r['ref'].startswith(kind))}/"
            f"{sum(r['ref'].startswith(kind) for r in rows)}"
            for kind in run.kinds
        }
        print(name, counts, f"{time.time() - began:.0f} s", flush=True)


def _asked(run: Run, out: Path) -> list[Question]:
    if not run.of:
        return [q for kind in run.kinds for q in questions(kind, run.number, run.seed)]
    lines = [json.loads(line) for line in (out / f"{run.of}.jsonl").open(encoding="utf-8")]
    right = {row["ref"] for row in lines if row["right"]}
    asked, before = [], RUNS[run.of]
    for kind in run.kinds:
        known = [q for q in questions(kind, before.number, before.seed) if q.ref in right]
        first = run.start % len(known) if known else 0
        asked += [*known[first:], *known[:first]][: run.most]
    return asked


def _answers(run: Run, asked: list[Question], models: Path) -> list[dict[str, Any]]:
    small = bool(run.of) and not run.model.startswith("gemma") and run.dtype == "float32"
    model, tokenizer = _loaded(models / run.model, small, run.dtype)
    torch.manual_seed(0)
    texts: list[str] = []
    cut: list[bool] = []
    # solved examples are the same for a kind; without them all kinds go together
    for kinds in [(kind,) for kind in run.kinds] if run.shots else [run.kinds]:
        prompts = [
            _prompt(run, question, tokenizer) for question in asked if question.kind in kinds
        ]
        for text, was_cut in _written(run, prompts, model, tokenizer):
            texts.append(text)
            cut.append(was_cut)
    if run.model == "gemma" and run.stops:  # a model without turns is stopped at the next one
        texts = [text.partition("\n\n")[0] for text in texts]
    readings = read_answers(asked, texts, cut)
    return [
        {"ref": q.ref, "text": text, "cut": was_cut, "right": reading.right,
         "answer": reading.answer, "status": reading.status}
        for q, text, was_cut, reading in zip(asked, texts, cut, readings, strict=True)
    ]  # fmt: skip


@cache
def _loaded(folder: Path, small: bool, dtype: str) -> tuple[Any, Any]:
    """A model and its tokenizer. In int8 it is three times as fast; Gemma cannot bear that."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype)).eval()
    if small:
        how = {torch.nn.Linear: torch.ao.quantization.per_channel_dynamic_qconfig}
        model = torch.ao.quantization.quantize_dynamic(model, how)
    return model, AutoTokenizer.from_pretrained(folder)


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
    head = torch.tensor([ids[0][:common]])
    cache = model(head, use_cache=True, logits_to_keep=1).past_key_values
    ends = {tokenizer.eos_token_id}
    if run.model == "gemma" and run.stops:
        ends.add(tokenizer.convert_tokens_to_ids("\n\n"))
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
            max_new_tokens=run.tokens, pad_token_id=pad, eos_token_id=list(ends),
            do_sample=run.temperature > 0,
            **({"temperature": run.temperature, "top_k": 0} if run.temperature else {}),
            **({} if run.stops else {"suppress_tokens": [tokenizer.eos_token_id]}),
        )[:, longest:]  # fmt: skip
        for row in written.tolist():
            yield tokenizer.decode(row, skip_special_tokens=True), row[-1] not in ends


def _prompt(run: Run, question: Question, tokenizer: Any) -> str:
    solved = [
        (asked, run.style[place % len(run.style)].format(answer))
        for place, (asked, answer) in enumerate(EXAMPLES[question.kind][: run.shots])
    ]
    if not run.chat:
        return "".join(f"{asked}\n{answer}\n\n" for asked, answer in solved) + f"{question.text}\n"
    turns = [{"role": "system", "content": run.system}] if run.system else []
    for asked, answer in solved:
        turns += [{"role": "user", "content": asked}, {"role": "assistant", "content": answer}]
    turns += [{"role": "user", "content": question.text}]
    text: str = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    return text


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
