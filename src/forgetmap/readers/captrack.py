"""CapTrack response folders: `<model>/<task with "." as "_">.<jsonl|json|csv|parquet|pq>`.

One row per answer, with the answer in `outputs` and the item beside it (`gold`, `prompt`,
`choices`, `ctx`, ...). Nothing is scored yet: the samples have the status `unscored`, and
`forgetmap score` scores them. Types stay as they are stored: digits in quotes are text, lists are
lists. Folders called `run1`, `seed_2` and the like are runs of one model; a row may also name its
own `task` and `model`, so that one table can hold several.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from forgetmap.answers.items import Item
from forgetmap.base.errors import InputError
from forgetmap.base.files import find_files, head
from forgetmap.base.json import parse_json, read_json
from forgetmap.base.parquet import parquet_schema
from forgetmap.base.values import file_name
from forgetmap.base.words import brief
from forgetmap.readers.framework import ReadOptions, as_object, malformed
from forgetmap.readers.table_columns import NAMES
from forgetmap.readers.table_files import parquet_records, table_records
from forgetmap.samples.identity import content_hash, wording_hash
from forgetmap.samples.table import Meta, Samples

SUFFIXES = (".jsonl", ".json", ".csv", ".parquet", ".pq")
ANSWER = "outputs"
_SNIFFED = 20
"""Files looked at before a folder is taken for something else."""
_RUN = re.compile(r"(?:run|seed|repeat|epoch)?[-_ ]?\d+", re.IGNORECASE)
_NESTED = ("prompt", "gold", "choices", "ctx", "context", "meta", "schema", "tool_spec")
"""Fields that may hold a list or object, which a CSV has as JSON text."""


class File(NamedTuple):
    """One file of answers, and what its place says."""

    path: Path
    model: str
    run: str | None
    stem: str


class Record(NamedTuple):
    """One answer to one item."""

    model: str
    run: str | None
    item: Item
    """Its task is as the file or row spells it."""
    response: str
    repeat: int
    content: int | None
    """Hash of the item's content; None where the file stores neither prompt nor context."""
    source: str


def sniff(path: Path) -> bool:
    """Look for answers beside their gold, without a score."""
    return any(_is_responses(file.path) for file in islice(files(path), _SNIFFED))


def files(path: Path) -> Iterator[File]:
    """The files that may hold answers, with model and run from the folders they lie in."""
    if not path.is_dir():
        if path.suffix.lower() in SUFFIXES:
            yield File(path, path.stem, None, path.stem)
        return
    for file in find_files(path, "*"):
        if file.suffix.lower() not in SUFFIXES or file.name.startswith("."):
            continue
        folders = list(file.relative_to(path).parent.parts)
        run = folders.pop() if folders and _RUN.fullmatch(folders[-1]) else None
        model = "/".join(folders) or path.resolve().name
        yield File(file, model, run, file.stem)


def _is_responses(file: Path) -> bool:
    try:
        names = _columns(file)
    except InputError:
        return False
    return {ANSWER, "gold"} <= names and not names & set(NAMES["score"])


def _columns(file: Path) -> set[str]:
    """The columns of a file's first row; of a JSON file, those of the known ones in its head."""
    if file.suffix.lower() == ".json":
        start = head(file, 2**16)
        known = {ANSWER, "gold", *NAMES["score"]} if start[:1] in (b"[", b"{") else set()
        return {name for name in known if f'"{name}"'.encode() in start}
    if file.suffix.lower() in (".parquet", ".pq"):
        return set(parquet_schema(file).names)
    return set(next((record for _, record in _rows(file, ReadOptions(), [])), {}))


def read(path: Path, how: ReadOptions) -> Samples:
    """Read the answers as samples that are yet to be scored."""
    meta = Meta(harness="captrack")

    def rows() -> Iterator[dict[str, Any]]:
        for record in records(path, how, meta.warnings):
            with malformed(path, f": {record.source}"):
                yield _sample(record, how)

    return Samples.from_rows(rows(), meta)


def _sample(record: Record, how: ReadOptions) -> dict[str, Any]:
    item = record.item
    sample: dict[str, Any] = {
        "model": record.model,
        "run": record.run,
        "task": item.task,
        "item": record.content,
        "item_ref": item.ref,
        "repeat": record.repeat,
        "metric": ANSWER,
        "score": None,
        "k": len(item.choices) if len(item.choices) > 1 else None,
        "source": record.source,
    }
    if how.wording and record.content is not None:
        options = [as_text(choice) for choice in item.choices]
        sample["wording"] = wording_hash(as_text(item.prompt), options, as_text(item.gold))
    if how.text:
        sample |= {
            "prompt": as_text(item.prompt),
            "target": as_text(item.gold),
            "response": record.response,
        }
    return sample


def records(path: Path, how: ReadOptions, warnings: list[str]) -> Iterator[Record]:
    """Stream the answers under a path, ready for scoring.

    Example:
        >>> import tempfile
        >>> from forgetmap.readers.framework import ReadOptions
        >>> folder = Path(tempfile.mkdtemp()) / "tiny"
        >>> folder.mkdir()
        >>> row = '{"id": 7, "prompt": "2+2?", "gold": "4", "outputs": "Answer: 4"}'
        >>> _ = (folder / "gsm8k_subset.jsonl").write_text(row)
        >>> [(r.model, r.item.task, r.item.gold) for r in records(folder, ReadOptions(), [])]
        [('tiny', 'gsm8k_subset', '4')]
    """
    repeats: dict[tuple[object, ...], int] = {}
    for file in files(path):
        without = 0
        for number, row in _rows(file.path, how, warnings):
            if ANSWER not in row or row[ANSWER] == []:
                without += 1
                continue
            how.tally.records += 1
            with malformed(file.path, f" row {number}"):
                yield from _answers(file, number, row, repeats)
        if without:
            how.tally.leave_out(without)
            warnings.append(f"{file_name(file.path)}: rows without {ANSWER!r}, left out: {without}")


def _answers(
    file: File, number: int, row: Mapping[str, Any], repeats: dict[tuple[object, ...], int]
) -> Iterator[Record]:
    """The answers of one row: one, or a list of samples; each is one more repeat of the item."""
    model = str(row.get("model") or file.model)
    item = to_item(str(row.get("task") or file.stem), row, str(number))
    has_content = bool(item.prompt) or bool(item.context)
    content = content_hash(item.prompt, item.choices, item.gold) if item.prompt else None
    if content is None and has_content:
        content = content_hash(item.context, item.choices, item.gold)
    key = model, item.task, content if has_content else item.ref
    outputs = row[ANSWER] if isinstance(row[ANSWER], list) else [row[ANSWER]]
    for output in outputs:
        repeat = repeats[key] = repeats.get(key, -1) + 1
        source = f"{file_name(file.path)}:{number}"
        yield Record(model, file.run, item, _response(output), repeat, content, source)


def to_item(task: str, row: Mapping[str, Any], ref: str) -> Item:
    """Make an item of a row with CapTrack's columns; `ref` names it where it has no `id`.

    Example:
        >>> to_item("boolq.core", {"id": 3, "gold": "yes", "ctx": "It rains."}, "0").context
        'It rains.'
    """
    meta = _object(row.get("meta"), "meta")
    if (first := row.get("turn1_response")) is not None:
        meta = {**meta, "turn1_response": first}
    context = row.get("ctx") if row.get("ctx") is not None else row.get("context")
    schema = _object(row.get("schema"), "schema")
    tools = row.get("tool_spec")
    if isinstance(tools, str):
        tools = _json(tools, "tool_spec") if tools.strip() else []
    return Item(
        task=task,
        ref=ref if row.get("id") in (None, "") else str(row["id"]),
        prompt=_listed(row.get("prompt")),
        gold=None if _is_nan(row.get("gold")) else row.get("gold"),
        choices=_choices(row.get("choices")),
        context=_listed(context),
        schema=schema or None,
        tools=tools if isinstance(tools, list) else [tools] if tools else [],
        meta=meta,
    )


def as_text(value: object) -> str:
    """A prompt or gold answer as text to read: text as it is, anything else as JSON."""
    if isinstance(value, str) or value is None:
        return value or ""
    return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()


def _response(output: Any) -> str:
    return "" if output is None or _is_nan(output) else as_text(output)


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _listed(value: Any) -> Any:
    """A text or a list of parts; nothing becomes the empty text."""
    if value is None or _is_nan(value):
        return ""
    return value if isinstance(value, str | list) else as_text(value)


def _choices(value: Any) -> list[str]:
    """Options as a list; a data set may have them as one text with a line for each, or lettered."""
    if isinstance(value, dict):  # ARC's way: {"label": [...], "text": [...]}
        value = value.get("text")
    if isinstance(value, str):
        value = [line.strip() for line in value.splitlines() if line.strip()]
    return [as_text(choice) for choice in value] if isinstance(value, list) else []


def _object(value: Any, name: str) -> dict[str, Any]:
    """An object, or the JSON text of one; Parquet fills what a row does not have with nulls."""
    if isinstance(value, str) and value.strip():
        value = _json(value, name)
    if value in (None, "") or _is_nan(value):
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"{name} must be an object, not {type(value).__name__}")
    return value


def _json(text: str, name: str) -> Any:
    try:
        return parse_json(text.encode("utf-8", "replace"))
    except ValueError as error:
        raise ValueError(f"{name} is not valid JSON ({brief(error)})") from error


def _rows(
    file: Path, how: ReadOptions, warnings: list[str]
) -> Iterator[tuple[int, dict[str, Any]]]:
    suffix = file.suffix.lower()
    if suffix == ".json":
        how.tick(file.stat().st_size)
        how.tally.files.add(file)
        yield from enumerate(_json_records(file), start=1)
    elif suffix == ".pq":
        yield from parquet_records(file, how)
    elif suffix == ".csv":
        for number, record in table_records(file, how, warnings):
            yield number, {name: _cell(name, cell) for name, cell in record.items()}
    else:
        yield from table_records(file, how, warnings)


def _cell(name: str, cell: str) -> Any:
    """A CSV cell: text, but for the nested fields, whose lists and objects come as JSON text."""
    if name in _NESTED and cell[:1] in ("[", "{"):
        try:
            return parse_json(cell.encode())
        except ValueError:
            return cell
    return cell


def _json_records(file: Path) -> list[dict[str, Any]]:
    """A list of rows, or pandas' default layout: {column: {row: value}}."""
    content = read_json(file)
    if isinstance(content, dict) and isinstance(content.get(ANSWER), dict):
        columns = {name: cells for name, cells in content.items() if isinstance(cells, dict)}
        return [
            {name: cells.get(row) for name, cells in columns.items()} for row in content[ANSWER]
        ]
    if isinstance(content, dict):  # something else; without answers it is left out
        return [content]
    if not isinstance(content, list):
        raise InputError(f"{file}: a JSON list of rows was expected")
    for number, record in enumerate(content, start=1):
        with malformed(file, f" row {number}"):
            as_object(record)
    return content
