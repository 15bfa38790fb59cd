"""The sets of OpenAI evals, read straight from the wheel of the package, which is not unpacked.

Nothing of them is part of forgetmap. Which sets, and what kind of answer each wants, is said in
`data/openai_evals.yaml`; the licence of a set is read from the wheel's own licence file.
"""

from __future__ import annotations

import os
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from string import ascii_uppercase
from typing import Any, NamedTuple

from forgetmap.base import yaml
from forgetmap.base.errors import InputError
from forgetmap.base.json import parse_json
from forgetmap.base.words import brief
from forgetmap.evaluate.questions import Question, Suite, Task
from forgetmap.evaluate.suites.common import warn_left_out
from forgetmap.samples.identity import content_hash

VARIABLE = "FORGETMAP_EVALS_WHEEL"
_DATA = "evals/registry/data/"
_HOW = (
    "fetch the wheel with: pip download --no-deps evals, then name it: "
    f"openai-evals:PATH, or {VARIABLE}=PATH"
)


class Described(NamedTuple):
    """A set: where it lies in the wheel, and what kind of answer it wants."""

    name: str
    category: str
    path: str
    kind: str
    """letter: options in the text; labels: one of a few words; else the scorer of open answers."""
    labels: tuple[str, ...] = ()
    component: str = ""
    """Name of the set in the licence file, where that has several under one heading."""


def described() -> tuple[Described, ...]:
    """The sets of the suite."""
    return tuple(
        Described(name, category, **{**row, "labels": tuple(row.get("labels", ()))})
        for category, rows in _data().content.items()
        for name, row in rows.items()
    )


@cache
def _data() -> yaml.Document:
    return yaml.packaged("forgetmap.evaluate.suites", "data/openai_evals.yaml")


def load(wheel: str | None = None) -> Suite:
    """Load the sets from a wheel; by default that of FORGETMAP_EVALS_WHEEL, else the package."""
    source = _Source.find(wheel)
    tasks = tuple(_task(source, one) for one in described())
    return Suite("openai-evals", f"{source.version}-{content_hash(_data().text):016x}", tasks)


class _Source(NamedTuple):
    """The wheel, or the folder of an installed package."""

    path: Path
    version: str

    @classmethod
    def find(cls, wheel: str | None) -> _Source:
        named = wheel or os.environ.get(VARIABLE)
        if not named:
            spec = find_spec("evals")
            if spec is None or not spec.submodule_search_locations:
                raise InputError(f"suite openai-evals: the package evals is not here; {_HOW}")
            folder = Path(spec.submodule_search_locations[0]).parent
            return cls(folder, _version(path.name for path in folder.glob("evals-*.dist-info")))
        path = Path(named)
        if not path.is_file():
            raise InputError(f"suite openai-evals: {named}: no such wheel; {_HOW}")
        try:
            with zipfile.ZipFile(path) as archive:
                return cls(path, _version(archive.namelist()))
        except (zipfile.BadZipFile, OSError) as error:
            raise InputError(
                f"suite openai-evals: {named}: not a wheel ({brief(error)})"
            ) from error

    def read(self, name: str) -> bytes:
        try:
            if self.path.is_dir():
                return (self.path / name).read_bytes()
            with zipfile.ZipFile(self.path) as archive:
                return archive.read(name)
        except (KeyError, OSError, zipfile.BadZipFile) as error:
            raise InputError(
                f"suite openai-evals: {name} is not in {self.path}; "
                "this suite was written for evals 3.0.1.post1"
            ) from error


def _version(names: Iterator[str] | Sequence[str]) -> str:
    for name in names:
        if version := re.match(r"evals-([^/]+)\.dist-info", name):
            return version[1]
    raise InputError(f"suite openai-evals: this is not the package evals; {_HOW}")


def _task(source: _Source, described: Described) -> Task:
    is_choice = described.kind in ("letter", "labels")
    return Task(
        f"evals_{described.name}", described.category, partial(_questions, source, described),
        scorer="exact" if is_choice else described.kind, stop=("\n",), max_tokens=32,
        licence=_licence(source, described),
    )  # fmt: skip


@cache
def _questions(source: _Source, described: Described) -> tuple[Question, ...]:
    questions: dict[str, Question] = {}
    seen: Counter[str] = Counter()
    contradicted: set[str] = set()
    unclear = 0
    rows = [raw for raw in source.read(_DATA + described.path).splitlines() if raw.strip()]
    for number, raw in enumerate(rows, 1):
        try:
            question = _question(described, parse_json(raw))
        except (ValueError, KeyError, TypeError, IndexError) as error:
            where = f"{described.path}:{number}"
            raise InputError(f"suite openai-evals: {where}: {brief(error)}") from error
        if question is None:
            unclear += 1
            continue
        seen[question.ref] += 1
        if questions.setdefault(question.ref, question).target != question.target:
            contradicted.add(question.ref)
    unclear += sum(seen[ref] for ref in contradicted)
    warn_left_out(f"evals_{described.name}", unclear, len(rows))
    return tuple(question for ref, question in questions.items() if ref not in contradicted)


def _question(described: Described, row: Mapping[str, Any]) -> Question | None:
    """A question; None where the options of the row cannot be told apart."""
    ideal = row["ideal"]
    accepted = [str(one).strip() for one in (ideal if isinstance(ideal, list) else [ideal])]
    turns = row["input"] if isinstance(row["input"], list) else [{"content": row["input"]}]
    text = "\n\n".join(str(turn["content"]).strip() for turn in turns)
    choices: tuple[str, ...] = ()
    if described.kind == "letter":  # what stands before the last turn asks for a letter
        text, choices = split_options(str(turns[-1]["content"]).strip())
        place = ascii_uppercase.find(accepted[0].strip("[]() ")[:1].upper())
        if not 0 <= place < len(choices) or len(set(choices)) < len(choices):
            return None
        accepted = [choices[place]]
    elif described.kind == "labels":
        choices = described.labels
        accepted = [one for one in choices if one.casefold() == accepted[0].strip(".").casefold()]
    ref = f"{content_hash(text, list(choices)):016x}"
    return Question(
        f"evals_{described.name}", ref, text, accepted[0], choices, tuple(accepted[1:]),
        source=f"OpenAI evals: {described.path}",
    )  # fmt: skip


_TAIL = re.compile(
    r"\s{0,9}(?:answer\s?:|for each question,? .{0,300}|reply by .{0,300})\s{0,9}\Z", re.I | re.S
)


def split_options(text: str) -> tuple[str, tuple[str, ...]]:
    """Tell the question from its options, which begin with A, B, C and so on.

    Example:
        >>> split_options("Which is red? A: sky; B: rose; C: snow.")
        ('Which is red?', ('sky', 'rose', 'snow'))
        >>> split_options("Pick one.\\na) a sky\\nb) a rose\\nAnswer:")
        ('Pick one.', ('a sky', 'a rose'))
    """
    text = _TAIL.sub("", text)
    best: list[re.Match[str]] = []
    for mark in (r"{}\.", r"\({}\)", r"{}\)", r"{}:", r"\[{}\]"):
        for letters in (ascii_uppercase, ascii_uppercase.lower()):
            marks = _marks(text, mark, letters)
            if len(marks) > len(best):
                best = marks
    if len(best) < 2:
        return text, ()
    ends = [mark.start() for mark in best[1:]] + [len(text)]
    options = (text[mark.end() : end] for mark, end in zip(best, ends, strict=True))
    plain = (re.sub(r"^[A-Z]\.(?=\S)", "", option.strip(" \n\t;,.")) for option in options)
    return text[: best[0].start()].strip(), tuple(plain)


def _marks(text: str, mark: str, letters: str) -> list[re.Match[str]]:
    """The last row of marks that begins with the first letter and misses none."""
    marks: list[re.Match[str]] = []
    for letter in letters:
        pattern = re.compile(rf"(?:^|(?<=[\s;,])){mark.format(letter)}\s+", re.MULTILINE)
        matches = list(pattern.finditer(text, marks[-1].end() if marks else 0))
        if not matches:
            break
        marks.append(matches[0] if marks else matches[-1])
    return marks


def _licence(source: _Source, described: Described) -> str:
    """The licence of a set, as the package's licence file has it."""
    text = source.read(f"evals-{source.version}.dist-info/LICENSE.md").decode("utf-8", "replace")
    for section in text.split("\n#### ")[1:]:
        located = re.search(r"\*\*Location\*\*:\s*(\S+)", section)
        if located and (_DATA + described.path).startswith(f"{located[1].rstrip('/')}/"):
            for part in re.split(r"\n\s*- \*\*(?!Lic|Sou|Loc|Com)", section)[1:]:
                licence = re.search(r"\*\*License\*\*:?\s*(.+)", part)
                if licence and part.startswith(described.component):
                    return licence[1].strip()
            return "not named; see the licence file of the package"
    return text.partition("\n")[0].strip()
