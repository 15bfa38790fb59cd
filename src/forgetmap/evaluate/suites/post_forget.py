"""The benchmarks of Harmon et al. (arXiv:2510.17776), with the faults of the published run mended.

Both models are asked alike, to reason and to end with `Answer: X`; HellaSwag comes from the split
that has labels, TruthfulQA's options are shuffled, object counting is answered by a number, and a
response without an answer is a status. `published` and `published-base` bring the faults back, for
the tuned and for the base model. Data come from the hub, or from a folder with the same columns.
"""

from __future__ import annotations

import ast
import os
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from string import ascii_uppercase
from typing import Any, Literal, NamedTuple, cast

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field

from forgetmap.base import yaml
from forgetmap.base.errors import InputError
from forgetmap.base.files import lines
from forgetmap.base.json import parse_json
from forgetmap.base.model import Strict
from forgetmap.base.words import brief
from forgetmap.evaluate.questions import Question, Suite, Task
from forgetmap.evaluate.suites.common import needed, warn_left_out
from forgetmap.evaluate.suites.openai_evals import split_options
from forgetmap.map.task_maps import IGNORED, TaskMap
from forgetmap.samples.identity import content_hash

FOLDER = "FORGETMAP_POST_FORGET"
"""Environment variable: a folder with copies of the data sets."""
Kind = Literal["mended", "published", "published-base"]

_CHOOSE = (
    "Answer the question by choosing one of the options. Think step by step. "
    'End with a line of its own, "Answer: X", where X is the letter of the option.'
)
_COUNT = (
    "Answer the question. Think step by step. "
    'End with a line of its own, "Answer: N", where N is the number.'
)
_TOKENS = 2048
_PUBLISHED_TOKENS = 32_768


class _Examples(Strict):
    split: str
    n: int


class _Published(Strict):
    """What the published run did otherwise."""

    split: str | None = None
    shuffle: bool | None = None


class _Benchmark(Strict):
    """A benchmark as `data/post_forget.yaml` describes it; the fields are explained there."""

    dataset: str
    split: str
    question: str
    answer: dict[str, str] | Literal["first"]
    config: str | None = None
    choices: str | list[str] | None = None
    rename: dict[str, str] = Field(default_factory=dict)
    labels: dict[str, list[str]] = Field(default_factory=dict)
    open: list[str] = Field(default_factory=list)
    shuffle: bool = False
    examples: _Examples | None = None
    published: _Published = _Published()


@cache
def benchmarks() -> dict[str, _Benchmark]:
    """The benchmarks by name."""
    return {name: _Benchmark(**row) for name, row in _data().content.items()}


@cache
def _data() -> yaml.Document:
    return yaml.packaged("forgetmap.evaluate.suites", "data/post_forget.yaml")


def load(argument: str = "", seed: int = 0) -> Suite:
    """Describe the tasks; the data of each are loaded when it is asked for its questions.

    The argument is empty, `published`, `published-base`, a folder, or `published@FOLDER`. The seed
    shuffles options whose right one has a fixed place in the data.
    """
    named, _, folder = argument.partition("@")
    if named not in ("", "published", "published-base"):
        named, folder = "", argument
    folder = folder or os.environ.get(FOLDER, "")
    if folder and not Path(folder).is_dir():
        raise InputError(f"suite post-forget: {folder}: no such folder with data sets")
    kind = cast(Kind, named or "mended")
    categories = TaskMap.load("post-forget" if kind == "mended" else "post-forget-published")
    source = _Source(Path(folder) if folder else None)
    parts = (_Part.find(name) for name, (group, _) in categories.rows.items() if group != IGNORED)
    tasks = tuple(
        _task(part, categories.category(part.name), kind, source, seed)
        for part in parts
        if kind != "published-base" or part.benchmark.examples
    )
    version = content_hash(_data().text, kind, [task.name for task in tasks], seed)
    return Suite(
        "post-forget" if kind == "mended" else f"post-forget:{kind}", f"{version:016x}", tasks
    )


class _Part(NamedTuple):
    """A task: a benchmark, and which part of it."""

    name: str
    benchmark: _Benchmark
    subtask: str

    @classmethod
    def find(cls, task: str) -> _Part:
        for name, benchmark in benchmarks().items():
            if task == name or task.startswith(f"{name}_"):
                subtask = task.removeprefix(name).removeprefix("_")
                return cls(task, benchmark, benchmark.rename.get(subtask, subtask))
        raise InputError(f"suite post-forget: no benchmark is described for the task {task}")

    @property
    def is_open(self) -> bool:
        return self.subtask in self.benchmark.open


def _task(part: _Part, category: str, kind: Kind, source: _Source, seed: int) -> Task:
    asked = partial(_questions, part, kind, source, seed)
    licence = f"see the data set {part.benchmark.dataset}"
    if kind == "mended":
        return Task(
            part.name, category, asked, instruction=_COUNT if part.is_open else _CHOOSE, cue="",
            scorer="number" if part.is_open else "letter", max_tokens=_TOKENS, stop=(),
            licence=licence,
        )  # fmt: skip
    is_base = kind == "published-base"
    return Task(
        part.name, category, asked, instruction="" if is_base else _CHOOSE,
        cue="Answer:" if is_base else "",
        examples=_examples(part, kind, source, seed) if is_base else (),
        scorer="letter-published", max_tokens=_PUBLISHED_TOKENS, stop=("Question: ",),
        licence=licence,
    )  # fmt: skip


def _split(part: _Part, kind: Kind) -> str:
    published = part.benchmark.published.split if kind != "mended" else None
    return (published or part.benchmark.split).format(subtask=part.subtask)


def _questions(part: _Part, kind: Kind, source: _Source, seed: int) -> tuple[Question, ...]:
    questions = _read(part, kind, source, seed, _split(part, kind))
    shared = part.benchmark.examples if kind == "published-base" else None
    if shared and shared.split.format(subtask=part.subtask) == _split(part, kind):
        return questions[: -shared.n]  # examples from the only split there is are not asked
    return questions


def _examples(part: _Part, kind: Kind, source: _Source, seed: int) -> tuple[Question, ...]:
    described = part.benchmark.examples
    if described is None:
        return ()
    split = described.split.format(subtask=part.subtask)
    rows = _read(part, "mended" if split != _split(part, kind) else kind, source, seed, split)
    return rows[-described.n :]


def _read(part: _Part, kind: Kind, source: _Source, seed: int, split: str) -> tuple[Question, ...]:
    config = (part.benchmark.config or "").format(subtask=part.subtask)
    questions: dict[int, Question] = {}
    unclear = rows = 0
    for row in source.rows(part.benchmark.dataset, config, split):
        try:
            question = _question(part, row, kind, seed, f"{split}-{rows}")
        except (KeyError, ValueError, TypeError, IndexError, SyntaxError) as error:
            raise InputError(
                f"suite post-forget: {part.name}: row {rows} of {part.benchmark.dataset} does not "
                f"have the expected form ({brief(error)})"
            ) from error
        rows += 1
        if question is None:
            unclear += 1
        else:
            questions.setdefault(question.item, question)
    warn_left_out(part.name, unclear, rows)
    return tuple(questions.values())


def _question(
    part: _Part, row: Mapping[str, Any], kind: Kind, seed: int, ref: str
) -> Question | None:
    """A question; None where its options do not tell which one is right."""
    text = part.benchmark.question.format_map(row)
    source = f"{part.benchmark.dataset}, {ref}"
    if part.is_open:
        number = int(row["target"])
        # The published run wanted a letter instead of a number, A for one.
        target = str(number) if kind == "mended" else ascii_uppercase[number - 1]
        return Question(part.name, ref, text, target, source=source)
    text, choices, right = _options(part, row, text, kind)
    if not right or len(set(choices)) < len(choices) or max(right) >= len(choices):
        return None
    golds = [choices[place] for place in right]
    shuffle = part.benchmark.published.shuffle if kind != "mended" else None
    if part.benchmark.shuffle if shuffle is None else shuffle:
        random.Random(f"{seed} {part.name} {ref}").shuffle(choices)
    return Question(part.name, ref, text, golds[0], tuple(choices), tuple(golds[1:]), source=source)


def _options(
    part: _Part, row: Mapping[str, Any], text: str, kind: Kind
) -> tuple[str, list[str], list[int]]:
    """(question, options, places of the right ones) of a row."""
    answer = part.benchmark.answer
    if answer == "first":
        return text, _choices(part.benchmark, row), [0]
    [(how, column)] = answer.items()
    value = _at(row, column)
    if how == "bbh":
        text, choices = _split_bbh(text, part.benchmark.labels.get(part.subtask, []))
        return text, choices, _named(str(value).strip(), choices)
    if how == "letters":
        text, split = split_options(text)
        letters = sorted(set(re.findall(r"\b[A-Z]\b", str(value))))
        return text, list(split), [ascii_uppercase.index(letter) for letter in letters]
    choices = _choices(part.benchmark, row)
    if how == "flags":
        return text, choices, [place for place, flag in enumerate(value) if flag]
    if kind != "mended" and value in ("", None):
        return text, choices, [len(choices) - 1]  # no label: index -1, so the last one was right
    if how == "letter":
        letter = str(value).strip()
        place = int(letter) - 1 if letter.isdigit() else ascii_uppercase.index(letter)
        return text, choices, [place]
    return text, choices, [int(value) - (how == "number")]


def _choices(benchmark: _Benchmark, row: Mapping[str, Any]) -> list[str]:
    if isinstance(benchmark.choices, list):
        return [str(_at(row, column)).strip() for column in benchmark.choices]
    listed = _at(row, benchmark.choices or "")
    if isinstance(listed, str):
        listed = ast.literal_eval(listed)
    return [str(choice).strip() for choice in listed]


def _at(row: Any, path: str) -> Any:
    for name in path.split("."):
        row = row[name]
    return row


_BBH_OPTION = re.compile(r"^(?:\(([A-Z])\)|-) ?(.+)$", re.MULTILINE)


def _split_bbh(text: str, labels: Sequence[str]) -> tuple[str, list[str]]:
    """The question without its list of options, and the options."""
    stem, mark, listed = text.rpartition("Options:")
    options = [match[2].strip() for match in _BBH_OPTION.finditer(listed)] if mark else []
    return (stem.strip(), options) if options else (text.strip(), list(labels))


def _named(target: str, choices: Sequence[str]) -> list[int]:
    """The place of an answer that is given as `(B)` or by its words."""
    if re.fullmatch(r"\([A-Z]\)", target):
        return [ascii_uppercase.index(target[1])]
    return [place for place, choice in enumerate(choices) if choice == target]


class _Source(NamedTuple):
    """The hub, or a folder: DATASET/[CONFIG/]SPLIT.parquet or .jsonl, a / in names written __."""

    folder: Path | None

    def rows(self, dataset: str, config: str, split: str) -> Iterator[Mapping[str, Any]]:
        if self.folder is None:
            yield from _from_hub(dataset, config, split)
            return
        stem = self.folder / dataset.replace("/", "__") / config / split
        if (path := stem.with_name(f"{split}.parquet")).is_file():
            yield from _from_parquet(path)
        elif (path := stem.with_name(f"{split}.jsonl")).is_file():
            yield from _from_jsonl(path)
        else:
            raise InputError(f"suite post-forget: {stem}.parquet (or .jsonl) is not there")


def _from_parquet(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        yield from pq.read_table(path).to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path}: cannot be read ({brief(error)})") from error


def _from_jsonl(path: Path) -> Iterator[Mapping[str, Any]]:
    for number, raw in lines(path):
        try:
            yield parse_json(raw)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}:{number}: not JSON ({brief(error)})") from error


def _from_hub(dataset: str, config: str, split: str) -> Iterator[Mapping[str, Any]]:
    datasets = needed("datasets", "suite post-forget")
    try:
        yield from datasets.load_dataset(dataset, config or None, split=split)
    except Exception as error:  # a hub that cannot be reached fails in many ways
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"suite post-forget: {dataset} cannot be loaded ({brief(error)}); "
            f"without the hub, name a folder with copies: post-forget:FOLDER"
        ) from error
