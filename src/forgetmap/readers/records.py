"""Formats of plain records: what their readers share, so that each is a short description.

A format says which files are its own, where their records are, and what one record answers. The
rest is done here: bad records, repeats, texts, and whether the harness counted the same.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from forgetmap.base.errors import InputError
from forgetmap.base.files import find_files, head
from forgetmap.base.json import first_record
from forgetmap.base.values import file_name, number, optional_text, storable
from forgetmap.base.words import some
from forgetmap.readers.framework import (
    ReadOptions,
    Run,
    json_lines,
    json_list,
    malformed,
    note_count,
    note_mean,
    note_settings,
    number_repeats,
)
from forgetmap.samples.identity import content_hash, wording_hash
from forgetmap.samples.table import Meta, Samples

Records = Iterator[tuple[str, dict[str, Any]]]
"""Each record with its place in the file, such as `:3` for a line."""


class Answer(NamedTuple):
    """One answer, as a record tells it."""

    reference: Any
    """The harness's own id of the item; None where the question alone tells it."""
    scores: Mapping[str, Any]
    """By metric, as they are stored."""
    question: Any = None
    """What was asked; None where the log does not hold it, then items are known by their id."""
    target: Any = None
    more: tuple[Any, ...] = ()
    """What else tells the item from others with the same question and target."""
    k: int | None = None
    """How many options were shown."""
    status: str | None = None
    prompt: Any = None
    """What the model was shown, where the question does not say it."""
    answer: Any = None
    response: Any = None
    task: str | None = None
    """The task, where a file holds several."""


@dataclass
class Log:
    """What is known of one file, and what is found out while it is read."""

    model: str
    task: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    stamp: str = ""
    """When it was run, if a later run of the task replaces it; otherwise runs are repeats."""
    count: Any = None
    """How many answers the harness counted."""
    means: Mapping[str, Any] = field(default_factory=dict)
    """The mean of a metric, as the harness says it."""
    over: int | None = None
    """How many answers these means are over; all of them, where the harness counts errors as 0."""
    extra: Any = None
    """Whatever the format needs to read the records."""
    unread: set[str] = field(default_factory=set)
    """Values that are not scores of single items."""
    doubts: Counter[str] = field(default_factory=Counter)
    """What is odd about how many records."""


@dataclass(frozen=True)
class Format:
    """A format of records; its methods are a reader."""

    harness: str
    what: str
    """What a bad record is not: `an IFEval result`."""
    pattern: str
    fits: Callable[[Path], bool]
    """Whether a file with a fitting name is in this format, by a cheap look."""
    records: Callable[[Path, ReadOptions, list[str]], Records]
    answers: Callable[[dict[str, Any], Log], Iterator[Answer]]
    describe: Callable[[Path, ReadOptions, list[str]], Log]
    choose: Callable[[list[Path]], list[Path]] = list
    """Which of the files to read, where some repeat what others say."""

    def sniff(self, path: Path) -> bool:
        """Look for files by their names and first keys."""
        return any(self.fits(file) for file in find_files(path, self.pattern))

    def read(self, path: Path, how: ReadOptions) -> Samples:
        """Read all files under the path."""
        meta = Meta(harness=self.harness)
        repeats: Counter[tuple[Any, ...]] = Counter()
        logs = [(self._describe(file, how, meta), file) for file in self.choose(self._files(path))]
        logs = _newest(logs, meta.warnings)
        _refuse_other_settings(logs)
        rows = (row for log in logs for row in self._rows(*log, path, repeats, how, meta))
        return Samples.from_rows(rows, meta)

    def _files(self, path: Path) -> list[Path]:
        return [file for file in find_files(path, self.pattern) if self.fits(file)]

    def _describe(self, file: Path, how: ReadOptions, meta: Meta) -> Log:
        with malformed(file, what=f"not {self.what}"):
            log = self.describe(file, how, meta.warnings)
        note_settings(meta, log.model, log.settings, log.task)
        return log

    def _rows(
        self,
        log: Log,
        file: Path,
        root: Path,
        repeats: Counter[tuple[Any, ...]],
        how: ReadOptions,
        meta: Meta,
    ) -> Iterator[dict[str, Any]]:
        run = storable(str(file.relative_to(root) if root.is_dir() else file.name))
        sums: defaultdict[str, float] = defaultdict(float)
        items: dict[str, int] = {}  # an answer that failed may lack its question
        found = empty = 0
        for place, record in self._records(file, how, meta.warnings):
            with malformed(file, place, f"not {self.what}"):
                answers = list(self.answers(record, log))
                parts = [_columns(answer, items, how) for answer in answers]
            found += len(answers)
            empty += not answers
            for index, (answer, columns) in enumerate(zip(answers, parts, strict=True)):
                source = f"{file_name(file)}{place}" + (f"[{index}]" if len(answers) > 1 else "")
                task = answer.task or log.task
                common = {"model": log.model, "run": run, "task": task, "source": source}
                item = columns["item_ref"] if columns["item"] is None else columns["item"]
                for metric, value in answer.scores.items():
                    with malformed(file, place, f"not {self.what}"):
                        scored = _scored(value, metric, answer.status)
                    sums[metric] += scored["score"] or 0.0
                    key = log.model, task, item, metric
                    yield common | columns | scored | {"metric": metric, "repeat": repeats[key]}
                    repeats[key] += 1
        how.tally.records += found
        how.tally.leave_out(empty)
        _note(file, log, found, empty, sums, meta.warnings)

    def _records(self, file: Path, how: ReadOptions, warnings: list[str]) -> Records:
        with malformed(file, what=f"not {self.what}"):
            yield from self.records(file, how, warnings)


def _newest(logs: list[tuple[Log, Path]], warnings: list[str]) -> list[tuple[Log, Path]]:
    """Set older runs aside, where a run that comes later replaces them."""
    runs = [(Run(log.model, log.task, None, log.stamp), file) for log, file in logs if log.stamp]
    kept = {file for _, file, _ in number_repeats(runs, warnings)}
    return [(log, file) for log, file in logs if not log.stamp or file in kept]


def _refuse_other_settings(logs: list[tuple[Log, Path]]) -> None:
    """Runs of one task are repeats, but not if they differ in more than chance."""
    known: dict[tuple[str, str], tuple[Mapping[str, Any], Path]] = {}
    for log, file in logs:
        settings, other = known.setdefault((log.model, log.task), (log.settings, file))
        if settings != log.settings:
            raise InputError(
                f"{file}: {log.task} was run with other settings than in {file_name(other)}; "
                "pass one of the two files, or keep them in different folders"
            )


def _columns(answer: Answer, items: dict[str, int], how: ReadOptions) -> dict[str, Any]:
    """The Samples columns that an answer has whatever its metric."""
    reference, question, target = answer.reference, answer.question, answer.target
    if not answer.scores:
        raise ValueError("no score")
    item = None
    if question not in (None, ""):
        item = content_hash(question, "" if target is None else target, *answer.more)
        reference = f"{item:016x}" if reference is None else reference
    if not isinstance(reference, int | str) or reference == "":
        raise ValueError(f"the id {reference!r:.40} is neither text nor a whole number")
    name = str(reference)
    if item is None:
        item = items.get(name)
    else:
        items[name] = item
    columns: dict[str, Any] = {"item": item, "item_ref": name, "k": answer.k}
    if how.wording and isinstance(question, str):
        columns["wording"] = wording_hash(question, [], "" if target is None else str(target))
    if how.text:
        prompt = question if answer.prompt is None else answer.prompt
        texts = {"prompt": prompt, "target": target}
        texts |= {"answer": answer.answer, "response": answer.response}
        columns |= {name: optional_text(text) for name, text in texts.items()}
    return columns


def _scored(value: Any, metric: str, status: str | None) -> dict[str, Any]:
    """Score and status; a failed call has no score, whatever the log says."""
    score = None if status == "error" else number(value, metric)
    return {"score": score, "status": status if (score is None) == (status == "error") else None}


def _note(
    file: Path, log: Log, found: int, empty: int, sums: Mapping[str, float], warnings: list[str]
) -> None:
    """Say what was left out, what is odd, and where the harness says other than was read."""
    name = file_name(file)
    if empty:
        warnings.append(f"{name}: {empty} records hold no answer and were left out")
    if log.unread:
        warnings.append(f"{log.task}: {some(log.unread)} not read: no score of single items")
    warnings += [f"{name}: {text} ({count} records)" for text, count in log.doubts.items() if count]
    note_count(name, log.count, found, warnings)
    for metric, mean in log.means.items():
        if metric in sums:
            note_mean(f"{name}: {metric}", mean, sums[metric] / (log.over or found), warnings)


# --- where the records are ------------------------------------------------------------------------


def lines(file: Path, how: ReadOptions, warnings: list[str]) -> Records:
    """The lines of a JSONL file."""
    for line, record in json_lines(file, how, warnings):
        yield f":{line}", record


def entries(file: Path, how: ReadOptions, _warnings: list[str]) -> Records:
    """The entries of a JSON list."""
    for index, record in json_list(file, how):
        yield f"[{index}]", record


# --- which files a format takes -------------------------------------------------------------------


def has_keys(*names: str) -> Callable[[Path], bool]:
    """Whether the first line of a JSONL file has all these names."""
    return lambda file: first_record(file).keys() >= set(names)


def begins(pattern: bytes) -> Callable[[Path], bool]:
    """Whether a file begins as the regular expression says."""
    compiled = re.compile(pattern, re.DOTALL)
    return lambda file: bool(compiled.match(head(file)))
