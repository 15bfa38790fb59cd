"""What the studies share: questions as files, training rows, texts that a model writes itself."""

import json
import random
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml

from forgetmap.evaluate.prompts import Asking, make_request
from forgetmap.evaluate.questions import Question, Task

SELF_TOKENS = 48
"""Length of a text that a model writes to be replayed."""


def prompts_of(task: Task, questions: Iterable[Question]) -> list[str]:
    return [str(make_request(task, question, Asking()).prompt) for question in questions]


def part_of(task: Task, questions: Sequence[Question]) -> Task:
    chosen = tuple(questions)
    return Task(
        task.name, task.category, lambda: chosen, instruction=task.instruction, cue=task.cue,
        scorer=task.scorer, max_tokens=task.max_tokens, stop=task.stop, licence=task.licence,
    )  # fmt: skip


def examples_of(task: Task, questions: Iterable[Question]) -> list[dict[str, str]]:
    """Training rows in the words of the evaluation's prompt."""
    asked = list(questions)
    return [
        {"prompt": prompt, "completion": f" {one.target}", "rejected": f" {wrong_answer(one)}"}
        for one, prompt in zip(asked, prompts_of(task, asked), strict=True)
    ]


def wrong_answer(question: Question) -> str:
    """A wrong answer, for preferences: another option, or a number nearby."""
    if question.choices:
        return next(choice for choice in question.choices if choice != question.target)
    number = question.target.lstrip("-").isdigit()
    return str(int(question.target) + 1 + question.item % 9) if number else "unknown"


def write_suite(out: Path, name: str, tasks: Sequence[Task]) -> None:
    described = []
    for task in tasks:
        questions = task.questions()
        if not questions:
            continue
        file = Path(name) / f"{task.name}.jsonl"
        (out / file).parent.mkdir(exist_ok=True)
        write_rows(out / file, [_row(question) for question in questions])
        kind: dict[str, Any] = {"name": task.name, "file": str(file), "category": task.category}
        kind |= {"instruction": task.instruction, "cue": task.cue, "extraction": task.scorer}
        kind |= {"max_tokens": task.max_tokens, "stop": list(task.stop), "licence": task.licence}
        described.append(kind)
    text = yaml.safe_dump({"name": name, "tasks": described}, sort_keys=False, allow_unicode=True)
    (out / f"{name}.yaml").write_text(text)
    total = sum(len(task.questions()) for task in tasks)
    print(f"{name}: {len(described)} tasks, {total:,} questions", file=sys.stderr)


def _row(question: Question) -> dict[str, Any]:
    row: dict[str, Any] = {"id": question.ref, "question": question.prompt}
    if question.choices:
        row["choices"] = question.choices
    if question.aliases:
        row["aliases"] = question.aliases
    return row | {"answer": question.target}


def write_rows(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def write_texts(folder: Path, count: int) -> list[str]:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).to(device)
    return sample_texts(model, AutoTokenizer.from_pretrained(folder), count, SELF_TOKENS)


def sample_texts(model: Any, tokenizer: Any, count: int, tokens: int) -> list[str]:
    """Texts that the model begins itself, at temperature 1."""
    import torch

    torch.manual_seed(random.Random(count).randrange(2**31))
    start = torch.full((count, 1), tokenizer.convert_tokens_to_ids(_first(tokenizer)))
    with torch.no_grad():
        out = model.generate(
            start.to(model.device), attention_mask=torch.ones_like(start).to(model.device),
            do_sample=True, temperature=1.0, top_k=0, top_p=1.0, max_new_tokens=tokens,
            pad_token_id=tokenizer.pad_token_id or tokenizer.eos_token_id,
        )  # fmt: skip
    texts = tokenizer.batch_decode(out[:, 1:], skip_special_tokens=False)
    ends = [tokenizer.eos_token, tokenizer.pad_token]
    whole = [_until(text, ends) for text in texts]
    return [f"{beginning(tokenizer)}{text}" for text in whole if text.strip()]


def beginning(tokenizer: Any) -> str:
    """What a text has to begin with, so that a model learns to begin with it.

    A model begins a text after a first token; training must have shown it. Most tokenizers add it
    by themselves.
    """
    first = _first(tokenizer)
    adds = tokenizer("a")["input_ids"][0] == tokenizer.convert_tokens_to_ids(first)
    return "" if adds else first


def _first(tokenizer: Any) -> str:
    return str(tokenizer.bos_token or tokenizer.eos_token)  # some have no token for a beginning


def _until(text: str, ends: list[str | None]) -> str:
    return min((text.partition(end)[0] for end in ends if end), key=len, default=text)


def read_rows(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def exact_number(completions: list[str], answer: list[str], **_: Any) -> list[float]:
    """1 where the first number that was written is the right one."""
    numbers = [re.search(r"-?\d+", text) for text in completions]
    return [
        float(found is not None and found.group() == right.strip())
        for found, right in zip(numbers, answer, strict=True)
    ]


def right_answer(completions: list[str], answer: list[str], **_: Any) -> list[float]:
    """1 where the right answer was written first: a number as a number, else its words."""
    pairs = zip(completions, answer, strict=True)
    return [
        exact_number([text], [right])[0]
        if right.strip().lstrip("-").isdigit()
        else float(text.strip().startswith(right.strip()))
        for text, right in pairs
    ]
