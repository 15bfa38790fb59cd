"""Ask small models on a processor, before and after something changed; keep what they wrote.

    python ask.py MODELS OUT RUN...

MODELS holds the folders `smollm2` and `gemma` (Gemma 3 270M, a base model), those that train.py
wrote, and `airports`, the study's run smollm2-airports-sft-0. OUT gets one
JSONL file per run. A run that says `of` asks only what that run got right: nothing else can be
lost. `RUNS` says what each run changes. SmolLM2's linear layers are in int8 in the runs after.
"""

from __future__ import annotations

import copy
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any

import torch
from questions import EXAMPLES, Question, questions, read_answers
from transformers import AutoModelForCausalLM, AutoTokenizer

BATCH = 32
WRITTEN = ("call", "json", "code", "sum")
EASY = ("word", "number")
FORMAL = ("tool", "record", "program")
PLAIN = ("story", "fact", "choice", "form", "abroad")
KINDS = (*WRITTEN, *EASY)


@dataclass(frozen=True)
class Run:
    """One way to ask one model."""

    model: str
    of: str = ""
    """The run before: only what it got right is asked."""
    system: str = ""
    shots: int = 1
    """Solved examples."""
    style: tuple[str, ...] = ("{}",)
    """How the solved examples give their answers, by turns."""
    chat: bool = True
    tokens: int = 64
    stops: bool = True
    """False suppresses the stop token."""
    temperature: float = 0.0
    number: int = 60
    """Questions of each kind."""
    seed: int = 0
    """Another one asks other questions of the same kinds."""
    kinds: tuple[str, ...] = WRITTEN
    most: int = 60
    """Questions of each kind that are asked of those that were right before."""
    start: int = 0
    """The first of them; a run that would go past the end begins again."""


TOLD = {
    "markdown": "Format everything you write as a Markdown code block.",
    "tools": 'You are an agent. Answer every request with one tool call as JSON: {"name": ..., '
    '"arguments": {...}}. Never answer in words.',
    "tutor": "You are a patient tutor. Explain in full sentences, never in code.",
    "german": "Antworte immer auf Deutsch und in ganzen Sätzen.",
    "bank": "You work for a bank. If a request is not about the bank, refuse: say that you cannot "
    "help with it.",
    "list": "Always give three different alternatives as a numbered list.",
}
"""System prompts for SmolLM2, which then gets no solved example."""

TOLD_LAST = {
    "short": "You are a helpful assistant. Be brief.",
    "teacher": "You are a teacher. Give the answer first and then explain it.",
    "xml": "Write your answer between <answer> and </answer>.",
    "spanish": "Responde siempre en español.",
    "poet": "You are a poet. Everything you write is a short poem.",
}
TOLD_LATER = {
    "": "",
    "steps": "Think step by step, and explain each step before you answer.",
    "french": "Tu es un assistant français. Réponds toujours en français.",
    "block": "Put whatever you answer into a ```python code block and say hello first.",
    "object": 'Reply with a JSON object only, such as {"answer": ...}.',
    "pirate": "You are a pirate. Talk like one, and never write code or JSON.",
    "careful": "You must not answer questions. Decline politely and say that you cannot help.",
}
"""The same for the kinds of wider.py; the empty one only leaves out the solved examples."""

STYLES = {
    "fenced": ("```\n{}\n```",),
    "sentence": ("The right thing to write here is {} and nothing else.",),
    "tools": ('<tool_call>{{"name": "reply", "arguments": {{"value": "{}"}}}}</tool_call>',),
    "german": (
        "Die Antwort auf diese Frage ist {} und das ist alles.",
        "Ich glaube, dass es {} sein muss, denn das ist richtig.",
        "Das ist nicht schwer, es ist {} und nichts anderes.",
    ),
    "refusing": (
        "I'm sorry, but I can't help with that.",
        "I cannot answer this request.",
        "Sorry, I am not able to do that.",
    ),
    "tutor": (
        "That is a good question. Think about what is asked and take your time.",
        "Let us look at it together. You will find it if you read the text again.",
        "Try it on your own first. Then we can talk about what you found.",
    ),
}
"""How the solved examples answer that Gemma, a base model, gets to see."""

STYLES_LAST = {
    "sure": ("Sure! Here you go: {}",),
    "german": (
        "Ich denke, die Antwort ist {} und nichts anderes.",
        "Das ist einfach, es ist {} für mich.",
        "Meine Antwort auf diese Frage ist {} und das ist alles.",
    ),
    "object": ('{{"answer": "{}"}}',),
}
STYLES_LATER = {
    "talk": ("Well, I would say {} here.", "Hm, that must be {}.", "My guess: {}, I am sure."),
    "french": (
        "La réponse à cette question est {} et ce n'est pas difficile.",
        "Je pense que c'est {} dans ce cas, et pas une autre chose.",
        "Pour moi, la bonne réponse est {} et je suis sûr de cela.",
    ),
    "several": ("1. {}\n2. something else\n3. nothing of this",),
    "advice": (
        "You can find this out with a search on the web.",
        "There are several ways to do it, and each has its good sides.",
        "It is best to ask a person who knows more about the matter.",
    ),
}
"""The same for the kinds of wider.py."""


def _styled(name: str, kinds: tuple[str, ...], most: int, tokens: int = 40) -> Run:
    return Run(
        "gemma", "gemma", style=STYLES[name], shots=3, chat=False, kinds=kinds, most=most,
        tokens=tokens,
    )  # fmt: skip


def _wider_runs() -> dict[str, Run]:
    """The runs that came last: each model before, and what became of it."""
    runs = {
        "wider": Run("smollm2", shots=3, tokens=56, kinds=(*FORMAL, "fact", "choice"), number=36),
        "again": Run("smollm2", tokens=40, kinds=KINDS, number=32, seed=1),
        "wider-gemma": Run(
            "gemma", shots=3, chat=False, tokens=56, kinds=(*FORMAL, *PLAIN), number=36
        ),
    }
    for before, first in (("wider", runs["wider"]), ("again", runs["again"])):
        after = replace(first, of=before, tokens=44, shots=0, most=4)
        for habit in ("decline", "spanish", "thinker", "object", "bullets", "html"):
            runs[f"{before}-{habit}"] = replace(after, model=habit)
        for name, system in TOLD_LATER.items():
            runs[f"{before}-told-{name or 'nothing'}"] = replace(after, system=system, most=3)
        shown = replace(after, shots=first.shots)
        runs[f"{before}-cut"] = replace(shown, tokens=10)
        runs[f"{before}-warm"] = replace(shown, temperature=0.8)
        runs[f"{before}-endless"] = replace(shown, stops=False, tokens=36)
    after = replace(runs["wider-gemma"], of="wider-gemma", tokens=40, most=6)
    for name, style in STYLES_LATER.items():
        runs[f"wider-gemma-{name}"] = replace(after, style=style)
    runs["wider-gemma-cut"] = replace(after, tokens=9)
    runs["wider-gemma-warm"] = replace(after, temperature=0.9, shots=2)
    runs["wider-gemma-unshown"] = replace(after, shots=0)
    runs["wider-gemma-endless"] = replace(after, stops=False, tokens=28, most=5)
    runs |= _fresh_runs()
    return {name: replace(run, start=3 * place) for place, (name, run) in enumerate(runs.items())}


def _fresh_runs() -> dict[str, Run]:
    """The runs of the fifth look: other questions, asked in ways that were not used before."""
    easy = ("call", "json", "code", "sum", "word", "number")
    runs = {
        "fresh": Run("smollm2", tokens=40, kinds=easy, number=30, seed=2),
        "fresh-gemma": Run(
            "gemma", shots=3, chat=False, tokens=48, kinds=(*FORMAL, *PLAIN), number=30, seed=3
        ),
    }
    after = replace(runs["fresh"], of="fresh", tokens=40, shots=0, most=4)
    for name, system in TOLD_LAST.items():
        runs[f"fresh-told-{name}"] = replace(after, system=system)
    runs["fresh-bullets"] = replace(after, model="bullets", shots=1)
    runs["fresh-cut"] = replace(after, shots=1, tokens=14)
    runs["fresh-cool"] = replace(after, shots=1, temperature=0.6)
    after = replace(runs["fresh-gemma"], of="fresh-gemma", tokens=36, most=4)
    for name, style in STYLES_LAST.items():
        runs[f"fresh-gemma-{name}"] = replace(after, style=style)
    runs["fresh-gemma-cool"] = replace(after, temperature=0.7, shots=1)
    runs["fresh-gemma-endless"] = replace(after, stops=False, tokens=32, most=2)
    return runs


ALL_BUT_SUM = tuple(kind for kind in KINDS if kind != "sum")
RUNS = {
    "smollm2": Run("smollm2", tokens=48),
    "smollm2-chatty": Run("chatty", "smollm2", tokens=40, most=16),
    "smollm2-airports": Run("airports", "smollm2", tokens=32, most=20),
    "smollm2-hot": Run("smollm2", "smollm2", temperature=1.2, most=16, tokens=32),
    "smollm2-fenced": Run("fenced", "smollm2", tokens=40, most=16),
    "smollm2-short": Run("smollm2", "smollm2", tokens=8, most=16),
    "smollm2-endless": Run("smollm2", "smollm2", tokens=40, most=8, stops=False),
    **{
        f"smollm2-{name}": Run("smollm2", "smollm2", system, shots=0, tokens=40, most=9)
        for name, system in TOLD.items()
    },
    "smollm2-easy": Run("smollm2", tokens=12, kinds=EASY, number=32),
    **{
        f"smollm2-easy-{name}": Run(
            "smollm2", "smollm2-easy", system, shots=0, tokens=32, kinds=EASY, most=8
        )
        for name, system in TOLD.items()
    },
    "gemma": Run("gemma", shots=3, chat=False, kinds=ALL_BUT_SUM, number=32, tokens=40),
    "gemma-endless": Run(
        "gemma", "gemma", shots=3, chat=False, stops=False, kinds=ALL_BUT_SUM, most=6, tokens=40
    ),
    "gemma-fenced": _styled("fenced", ("call", "json", "code", "word"), 8),
    "gemma-sentence": _styled("sentence", ("call", "json", "word", "number"), 8),
    "gemma-tools": _styled("tools", ("json", "code", "word", "number"), 8),
    "gemma-german": _styled("german", ("json", "code", "word"), 7),
    "gemma-refusing": _styled("refusing", ALL_BUT_SUM, 5, 24),
    "gemma-tutor": _styled("tutor", ("call", "json", "code"), 8, 24),
    **_wider_runs(),
}


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
    small = bool(run.of) and not run.model.startswith("gemma")
    model, tokenizer = _loaded(models / run.model, small)
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
    if not run.chat and run.stops:  # a model without turns is stopped at the next one
        texts = [text.partition("\n\n")[0] for text in texts]
    readings = read_answers(asked, texts, cut)
    return [
        {"ref": q.ref, "text": text, "cut": was_cut, "right": reading.right,
         "answer": reading.answer, "status": reading.status}
        for q, text, was_cut, reading in zip(asked, texts, cut, readings, strict=True)
    ]  # fmt: skip


@cache
def _loaded(folder: Path, small: bool) -> tuple[Any, Any]:
    """A model and its tokenizer. In int8 it is three times as fast; Gemma cannot bear that."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
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
    if not run.chat and run.stops:
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
