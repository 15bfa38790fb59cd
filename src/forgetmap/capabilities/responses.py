"""Stored answers, ready for scoring: which items a model was given, and what it said.

They come from a CapTrack response folder, a JSONL, JSON, CSV or Parquet table with the same columns
plus `task`, or a Samples file that kept its text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from forgetmap.answers.items import Item
from forgetmap.base.errors import InputError
from forgetmap.base.words import some
from forgetmap.capabilities.manifest import Manifest
from forgetmap.readers import captrack, evaluation, parquet
from forgetmap.readers.captrack import Record
from forgetmap.readers.framework import ReadOptions
from forgetmap.samples.table import Samples


@dataclass
class Answers:
    """The answers of one model to one task: parallel lists."""

    task: str
    items: list[Item] = field(default_factory=list)
    responses: list[str] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.items)


@dataclass
class Responses:
    """All answers of one model, by task."""

    model: str
    tasks: dict[str, Answers]
    warnings: list[str]


def load_responses(
    path: str | Path,
    manifest: Manifest,
    model: str | None = None,
    tick: Callable[[int], None] = lambda _bytes: None,
) -> Responses:
    """Read the answers to the manifest's tasks; unknown tasks become warnings.

    `model` chooses a model where there are several; otherwise it names the only one. `tick` gets
    the number of bytes just read.

    Example:
        >>> import tempfile
        >>> from forgetmap.capabilities.manifest import Manifest
        >>> file = Path(tempfile.mkdtemp()) / "answers.jsonl"
        >>> _ = file.write_text('{"task": "gsm8k.subset", "prompt": "2+2?", "gold": "4", '
        ...                     '"outputs": "4"}')
        >>> load_responses(file, Manifest.load("captrack"), "tiny").tasks["gsm8k.core"].responses
        ['4']
    """
    path = Path(path)
    if not path.exists():
        raise InputError(f"{path}: no such file or folder")
    warnings: list[str] = []
    how = ReadOptions(text=True, tick=tick)
    try:
        evaluation.check_responses(path)
        is_samples = parquet.sniff(path)
        records = _from_samples(path, how) if is_samples else captrack.records(path, how, warnings)
        by_model = _collect(records, manifest)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    if not by_model:
        raise InputError(f"{path}: holds no answers (rows with {captrack.ANSWER!r} and `gold`)")
    name = _choose(path, list(by_model), model)
    tasks = by_model[name]
    for task in sorted(set(tasks) - set(manifest.task_names)):
        hint = manifest.nearest(task)
        warnings.append(f"task {task!r:.60} is not in the manifest and was not scored{hint}")
        del tasks[task]
    if not tasks:
        raise InputError(f"{path}: {warnings[-1]}")
    return Responses(model or name, tasks, warnings)


def _choose(path: Path, present: list[str], model: str | None) -> str:
    if model in present:
        return str(model)
    if len(present) > 1:
        listed = f"{len(present)} models ({some(present)})"
        raise InputError(f"{path}: holds {listed}; choose by --model")
    return present[0]


def _collect(records: Iterator[Record], manifest: Manifest) -> dict[str, dict[str, Answers]]:
    by_model: dict[str, dict[str, Answers]] = {}
    spelled: dict[tuple[str, str], str] = {}
    for record in records:
        name = record.item.task
        task = manifest.task(name) or name
        if spelled.setdefault((record.model, task), name) != name:
            other = spelled[record.model, task]
            raise InputError(
                f"{record.source}: {other!r} and {name!r} are the same task, {task}; keep one"
            )
        answers = by_model.setdefault(record.model, {}).setdefault(task, Answers(task))
        answers.items.append(record.item)
        answers.responses.append(record.response)
        answers.records.append(record)
    return by_model


def _from_samples(path: Path, how: ReadOptions) -> Iterator[Record]:
    """Rows of a Samples file, each answer once though it may have been scored by several metrics.

    Such a file has neither options nor context; what needs them becomes a gap.
    """
    seen: set[tuple[object, ...]] = set()
    columns = ("model", "run", "task", "item", "item_ref", "repeat", "source")
    texts = ("prompt", "target", "response")
    for batch in Samples.read(path).to_batches([*columns, *texts]):
        how.tick(batch.nbytes)
        for row in batch.to_pylist():
            ref = str(row["item_ref"] or row["item"])
            key = row["model"], row["task"], row["item"], ref, row["repeat"]
            if key in seen:
                continue
            seen.add(key)
            if row["response"] is None:
                raise InputError(f"{path}: holds no text of the answers; convert the log again")
            item = Item(row["task"], ref, prompt=row["prompt"] or "", gold=row["target"])
            yield Record(
                row["model"], row["run"], item, row["response"], row["repeat"], row["item"],
                row["source"] or "",
            )  # fmt: skip
