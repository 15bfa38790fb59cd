"""The benchmarks of Harmon et al. (arXiv:2510.17776), with the faults of the published run mended.

Both models are asked alike, to reason and to end with `Answer: X`; HellaSwag comes from the split
that has labels, TruthfulQA's options are shuffled, object counting is answered by a number, and a
response without an answer is a status. `published` and `published-base` bring the faults back, for
the tuned and for the base model. `base` is for base models: it shows solved examples with their
reasoning, and asks the same items. `likelihood` asks for no letter and no reasoning: it scores the
text of each option. Data come from the hub, or from folders and wheels with the same columns.
"""

from __future__ import annotations

import ast
import logging
import os
import random
import re
from collections.abc import Mapping, Sequence
from functools import cache, partial
from string import ascii_uppercase
from typing import Any, Literal, NamedTuple, cast, get_args

from pydantic import Field

from forgetmap.base import yaml
from forgetmap.base.errors import InputError
from forgetmap.base.model import Strict
from forgetmap.base.words import brief, some
from forgetmap.evaluate.questions import Question, Suite, Task
from forgetmap.evaluate.suites.common import warn_left_out, warn_repeated
from forgetmap.evaluate.suites.openai_evals import split_options
from forgetmap.evaluate.suites.post_forget_data import Source, Wanted
from forgetmap.map.task_maps import IGNORED, TaskMap
from forgetmap.samples.identity import content_hash

NAME = "post-forget"
FOLDER = "FORGETMAP_POST_FORGET"
"""Environment variable: folders and wheels with copies of the data sets."""
Kind = Literal["mended", "base", "published", "published-base", "likelihood"]

_CHOOSE = (
    "Answer the question by choosing one of the options. Think step by step. "
    'End with a line of its own, "Answer: X", where X is the letter of the option.'
)
_COUNT = (
    "Answer the question. Think step by step. "
    'End with a line of its own, "Answer: N", where N is the number.'
)
_REASONED = "Each question is answered after some reasoning."
_TOKENS = 2048
_REASONED_TOKENS = 512
_PUBLISHED_TOKENS = 32_768
_CLOZE_EXAMPLES = 5


class _Examples(Strict):
    split: str
    n: int


class _Published(Strict):
    """What the published run did otherwise."""

    split: str | None = None
    shuffle: bool | None = None


class _Cloze(Strict):
    """How a question is put where the text of each option is scored; as lm-eval does."""

    frame: str = "Question: {question}"
    cue: str = "Answer:"
    instruction: str = ""
    story: bool = False


class _Benchmark(Strict):
    """A benchmark as `data/post_forget.yaml` describes it; the fields are explained there."""

    dataset: str
    licence: str
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
    cloze: _Cloze = _Cloze()
    also: list[str] = Field(default_factory=list)
    requests: str = ""


@cache
def benchmarks() -> dict[str, _Benchmark]:
    """The benchmarks by name."""
    return {name: _Benchmark(**row) for name, row in _data().content.items()}


@cache
def _data() -> yaml.Document:
    return yaml.packaged("forgetmap.evaluate.suites", "data/post_forget.yaml")


@cache
def worked_examples(category: str) -> tuple[Question, ...]:
    """Solved examples of a category with their reasoning, for models that follow no instruction.

    Example:
        >>> print(worked_examples("Math")[2].worked)
        Take 1 from both sides: 2x = 8. Divide by 2: x = 4.
    """
    written = yaml.packaged("forgetmap.evaluate.suites", "data/post_forget_worked.yaml").content
    return tuple(
        Question(
            "worked", f"{category}-{place}", row["question"], row["answer"],
            tuple(row.get("options", ())), worked=row["reasoning"],
        )
        for place, row in enumerate(written[category])
    )  # fmt: skip


def named(suite: str, data: Sequence[str], likelihood: bool) -> str:
    """The name of a suite with its data and its protocol; that of another suite stays.

    Example:
        >>> named("post-forget", ["copies"], True), named("atlas", ["copies"], True)
        ('post-forget:likelihood@copies', 'atlas')
    """
    name, _, argument = suite.partition(":")
    if name != NAME or not (data or likelihood):
        return suite
    kind, places = _parse(argument)
    if likelihood and kind.startswith("published"):
        raise InputError(f"--likelihood: {suite} is about written answers; name {NAME} alone")
    if data and places:
        raise InputError(f"--data: {suite} names its data already; leave one of them out")
    kind = "likelihood" if likelihood else kind
    where = os.pathsep.join(data) or places
    return f"{NAME}:{'' if kind == 'mended' else kind}@{where}" if where else f"{NAME}:{kind}"


def _parse(argument: str) -> tuple[Kind, str]:
    """(protocol, places) of what stands behind the name of the suite."""
    kind, _, places = argument.partition("@")
    if kind in get_args(Kind):
        return cast(Kind, kind), places
    return "mended", places if not kind else argument


def load(argument: str = "", seed: int = 0) -> Suite:
    """Describe the tasks; the data of each are loaded when it is asked for its questions.

    The argument is empty, `base`, `likelihood`, `published` or `published-base`, places with copies
    of the data, or both: `likelihood@PLACES`. Tasks whose data are in none of the places are left
    out, and one line names them. The seed shuffles options whose right one has a fixed place in the
    data.
    """
    kind, places = _parse(argument)
    source = Source.open(places or os.environ.get(FOLDER, ""))
    categories = TaskMap.load(NAME if not _is_published(kind) else f"{NAME}-published")
    parts = [_Part.find(name) for name, (group, _) in categories.rows.items() if group != IGNORED]
    held = _held([part for part in parts if _is_asked(part, kind)], kind, source)
    tasks = tuple(_task(part, categories.category(part.name), kind, source, seed) for part in held)
    version = content_hash(_data().text, kind, [task.name for task in tasks], seed)
    return Suite(NAME if kind == "mended" else f"{NAME}:{kind}", f"{version:016x}", tasks)


def _is_published(kind: Kind) -> bool:
    return kind.startswith("published")


def _is_asked(part: _Part, kind: Kind) -> bool:
    return kind != "published-base" or part.benchmark.examples is not None


def _held(parts: Sequence[_Part], kind: Kind, source: Source) -> list[_Part]:
    """The parts whose data are there; the others are named, in one line."""
    held = [part for part in parts if source.holds(part.wanted(_split(part, kind)))]
    missing = [part.name for part in parts if part not in held]
    if not held:
        raise InputError(
            f"suite {NAME}: none of its data sets is in {some(source.places)}; the page Suites "
            "says what a folder may look like"
        )
    if missing:
        logging.getLogger("forgetmap").warning(
            "%s: %d of %d tasks are asked; no data for %s",
            *(NAME, len(held), len(parts), ", ".join(missing)),
        )
    return held


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

    def wanted(self, split: str) -> Wanted:
        """Where the rows of a split are."""
        one = self.benchmark
        is_bbh = isinstance(one.answer, dict) and "bbh" in one.answer
        return Wanted(
            one.dataset, (one.config or "").format(subtask=self.subtask), split, tuple(one.also),
            task_file=self.subtask if is_bbh else "",
            requests=one.requests.format(task=self.name, split=split),
        )  # fmt: skip


def _task(part: _Part, category: str, kind: Kind, source: Source, seed: int) -> Task:
    asked = partial(_questions, part, kind, source, seed)
    licence = f"{part.benchmark.licence} ({part.benchmark.dataset})"
    if kind == "likelihood":
        cloze = part.benchmark.cloze
        return Task(
            part.name, category, asked, cue=cloze.cue,
            instruction=cloze.instruction.format(subject=part.subtask.replace("_", " ")),
            examples=_examples(part, kind, source, seed) if source.places else (),
            scorer="number" if part.is_open else "exact", licence=licence,
        )  # fmt: skip
    if kind == "mended":
        return Task(
            part.name, category, asked, instruction=_COUNT if part.is_open else _CHOOSE, cue="",
            scorer="number" if part.is_open else "letter", max_tokens=_TOKENS, stop=(),
            licence=licence,
        )  # fmt: skip
    if kind == "base":
        return Task(
            part.name, category, asked, instruction=_REASONED, cue="Reasoning:",
            examples=worked_examples("numbers" if part.is_open else category),
            scorer="number" if part.is_open else "letter", max_tokens=_REASONED_TOKENS,
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
    published = part.benchmark.published.split if _is_published(kind) else None
    return (published or part.benchmark.split).format(subtask=part.subtask)


def _example_split(part: _Part, kind: Kind, source: Source) -> str:
    """Where examples come from; a place without that split gives them from the one it asks."""
    described = part.benchmark.examples
    if described is None:
        return ""
    splits = (described.split.format(subtask=part.subtask), "validation")
    held = (split for split in splits if source.holds(part.wanted(split)))
    return next(held, _split(part, kind))


def _questions(part: _Part, kind: Kind, source: Source, seed: int) -> tuple[Question, ...]:
    asked = _split(part, kind)
    questions = _read(part, kind, source, seed, asked)
    shared = part.benchmark.examples if kind == "published-base" else None
    if shared and _example_split(part, kind, source) == asked:
        return questions[: -shared.n]  # examples from the only split there is are not asked
    return questions


def _examples(part: _Part, kind: Kind, source: Source, seed: int) -> tuple[Question, ...]:
    described, split = part.benchmark.examples, _example_split(part, kind, source)
    if described is None:
        return ()
    if kind == "likelihood":  # all items are asked, so examples come from another split or not
        is_apart = split != _split(part, kind)
        return _read(part, kind, source, seed, split)[:_CLOZE_EXAMPLES] if is_apart else ()
    rows = _read(part, "mended" if split != _split(part, kind) else kind, source, seed, split)
    return rows[-described.n :]


def _read(part: _Part, kind: Kind, source: Source, seed: int, split: str) -> tuple[Question, ...]:
    questions: dict[int, Question] = {}
    unclear = rows = 0
    for row in source.rows(part.wanted(split)):
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
    warn_repeated(part.name, rows - unclear - len(questions), rows)
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
        target = ascii_uppercase[number - 1] if _is_published(kind) else str(number)
        text = _framed(part, text) if kind == "likelihood" else text
        return Question(part.name, ref, text, target, source=source)
    text, choices, right = _options(part, row, text, kind)
    if kind == "likelihood":
        text, choices = _cloze(part, row, text, choices)
    if not right or len(choices) < 2 or max(right) >= len(choices):
        return None
    golds = [choices[place] for place in right]
    if any(choices.count(gold) > 1 for gold in golds):
        return None  # wrong options may be alike, as in some published rows
    shuffle = part.benchmark.published.shuffle if _is_published(kind) else None
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
    if _is_published(kind) and value in ("", None):
        return text, choices, [len(choices) - 1]  # no label: index -1, so the last one was right
    if how == "letter":
        letter = str(value).strip()
        place = int(letter) - 1 if letter.isdigit() else ascii_uppercase.index(letter)
        return text, choices, [place]
    return text, choices, [int(value) - (how == "number")]


def _cloze(
    part: _Part, row: Mapping[str, Any], text: str, choices: list[str]
) -> tuple[str, list[str]]:
    """Question and options as a text that each option continues."""
    if part.benchmark.cloze.story:
        text = f"{row['activity_label']}: {row['ctx_a']} {row['ctx_b'].capitalize()}"
        return _plain(text), [_plain(choice) for choice in choices]
    return _framed(part, text), choices


def _framed(part: _Part, text: str) -> str:
    return part.benchmark.cloze.frame.format(question=text.strip())


def _plain(text: str) -> str:
    """HellaSwag's text without the marks that its how-to pages left in it, as lm-eval has it."""
    unmarked = re.sub(r"\[.*?\]", "", text.strip().replace(" [title]", ". "))
    return unmarked.replace("  ", " ")


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
