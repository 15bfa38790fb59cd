"""Your own questions: a JSONL file, or a YAML file that names several and says how to ask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from pydantic import Field

from forgetmap.base import yaml
from forgetmap.base.errors import InputError
from forgetmap.base.files import lines
from forgetmap.base.json import parse_json
from forgetmap.base.model import Strict
from forgetmap.base.words import brief, some
from forgetmap.evaluate.answers import SCORERS
from forgetmap.evaluate.questions import Question, Suite, Task
from forgetmap.evaluate.suites.common import digest
from forgetmap.samples.identity import content_hash

_FIELDS = frozenset(
    (
        *("question", "prompt", "choices", "answer", "target", "aliases", "task", "category", "id"),
        *("level", "source"),
    )
)


class _Kind(Strict):
    """How a YAML suite describes a task."""

    name: str = Field(min_length=1)
    file: Path
    category: str = ""
    prompt: str = "{question}"
    """Around each question; {question} stands for it."""
    instruction: str = ""
    cue: str = "Answer:"
    examples: int = Field(default=0, ge=0)
    """So many questions from the top of the file are solved examples and not asked."""
    extraction: str = "exact"
    max_tokens: int = Field(default=64, ge=1)
    stop: tuple[str, ...] = ("\n\n",)
    licence: str = ""


class _Described(Strict):
    """A YAML suite."""

    name: str = ""
    tasks: tuple[_Kind, ...] = Field(min_length=1)


def load(path: Path) -> Suite:
    """Load a suite from a `.jsonl` or `.yaml` file."""
    if path.suffix.lower() == ".jsonl":
        tasks = _from_rows(path)
        return Suite(path.stem, digest(tasks), tasks)
    described = _described(path)
    tasks = tuple(_task(path, kind) for kind in described.tasks)
    return Suite(described.name or path.stem, digest(tasks), tasks)


def _from_rows(path: Path) -> tuple[Task, ...]:
    """One task for each name in the column `task`; without one, the file is the task."""
    rows = list(read_rows(path))
    names = list(dict.fromkeys(row.task for row, _ in rows))
    tasks = []
    for name in names:
        asked = tuple(row for row, _ in rows if row.task == name)
        category = next((category for row, category in rows if row.task == name and category), "")
        tasks.append(Task(name, category, partial(tuple, asked)))
    return tuple(tasks)


def _task(path: Path, kind: _Kind) -> Task:
    if kind.extraction not in SCORERS:
        raise InputError(
            f"{path}: task {kind.name}: unknown extraction {kind.extraction!r:.40}; "
            f"known are {', '.join(SCORERS)}"
        )
    if "{question}" not in kind.prompt:
        raise InputError(f"{path}: task {kind.name}: its prompt lacks {{question}}")
    rows = [row for row, _ in read_rows(path.parent / kind.file, kind.name, kind.prompt)]
    if len(rows) <= kind.examples:
        raise InputError(
            f"{path}: task {kind.name}: {kind.examples} examples leave none of its "
            f"{len(rows)} questions to ask"
        )
    return Task(
        kind.name, kind.category, partial(tuple, rows[kind.examples :]),
        instruction=kind.instruction, cue=kind.cue, examples=tuple(rows[: kind.examples]),
        scorer=kind.extraction, max_tokens=kind.max_tokens, stop=kind.stop, licence=kind.licence,
    )  # fmt: skip


def _described(path: Path) -> _Described:
    document = yaml.read(path, "a suite")
    with document.faults(_Described):
        described = _Described.model_validate(document.content)
    names = [kind.name for kind in described.tasks]
    if len(set(names)) < len(names):
        raise InputError(f"{path}: two tasks have the same name; rename one")
    return described


def read_rows(
    path: Path, task: str | None = None, prompt: str = "{question}"
) -> Iterator[tuple[Question, str]]:
    """Yield (question, category) for each line of a JSONL file.

    The task is by default what each row says, else the name of the file. `prompt` is the text
    around each question, with {question} in its place.
    """
    seen: dict[tuple[str, str], int] = {}
    for number, raw in lines(path):
        if not raw.strip():
            continue
        try:
            row = parse_json(raw)
            question = _question(row, task or str(row.get("task") or path.stem), prompt)
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise InputError(f"{path}:{number}: {brief(error)}") from error
        first = seen.setdefault((question.task, question.ref), number)
        if first != number:
            raise InputError(
                f"{path}:{number}: the same as line {first}; give each item an id of its own"
            )
        yield question, str(row.get("category") or "")
    if not seen:
        raise InputError(f"{path}: holds no questions")


def _question(row: Mapping[str, Any], task: str, prompt: str) -> Question:
    if not isinstance(row, dict):
        raise ValueError("a JSON object was expected, one per line")
    if unknown := row.keys() - _FIELDS:
        raise ValueError(f"unknown field {some(unknown, 3)}; known are {some(_FIELDS, 99)}")
    asked = row.get("question", row.get("prompt"))
    if not isinstance(asked, str) or not asked.strip():
        raise ValueError("lacks its 'question' (or 'prompt'), a text")
    choices = _texts(row, "choices")
    aliases = _texts(row, "aliases")
    if choices and len(set(choices)) < max(2, len(choices)):
        raise ValueError("needs at least two different 'choices', none of them twice")
    target = _target(row.get("answer", row.get("target")), choices)
    ref = str(row.get("id") or f"{content_hash(asked, list(choices), target):016x}")
    return Question(
        task, ref, prompt.replace("{question}", asked), target, choices, aliases,
        str(row.get("level") or ""), str(row.get("source") or ""),
    )  # fmt: skip


def _texts(row: Mapping[str, Any], field: str) -> tuple[str, ...]:
    texts = row.get(field) or ()
    if not isinstance(texts, Sequence) or isinstance(texts, str):
        raise ValueError(f"{field!r} must be a list")
    return tuple(map(str, texts))


def _target(answer: object, choices: Sequence[str]) -> str:
    """The right answer as text; among choices also by its place from 0, or by its letter."""
    if answer is None or isinstance(answer, dict | list) or not str(answer).strip():
        raise ValueError("lacks its 'answer' (or 'target')")
    text = str(answer)
    if not choices or text in choices:
        return text
    by_letter = ascii_uppercase.find(text.strip().upper()) if len(text.strip()) == 1 else -1
    place = answer if isinstance(answer, int) else by_letter
    if 0 <= place < len(choices):
        return choices[place]
    raise ValueError(f"answer {text!r:.60} is none of the choices, nor the place or letter of one")
