"""What a study has read and computed before, kept by content beside the study file.

A key is a hash of everything that a result depends on, so nothing here ever goes out of date: what
changed has another key. A stored file that is damaged is made again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from forgetmap.base.errors import InputError
from forgetmap.base.files import (
    file_hash,
    find_files,
    make_folder,
    read_small,
    replacing,
    write_text,
)
from forgetmap.base.limits import JSON_MIB, MIB
from forgetmap.base.sealed import EMPTY, SEAL, check_sealed, seal
from forgetmap.base.version import __version__
from forgetmap.capabilities.drift_result import Drift
from forgetmap.samples.table import SCHEMA_VERSION, Samples
from forgetmap.study.result import StudiedPair

_Stored = TypeVar("_Stored")
_VERSION = 4
"""Of what is stored, and how."""


def key_of(*parts: Any) -> str:
    """The key of what follows from these parts, by this forgetmap.

    Example:
        >>> len(key_of("a", 1)), key_of("a", 1) == key_of("a", 2)
        (64, False)
    """
    told = [_VERSION, __version__, SCHEMA_VERSION, *parts]
    return sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def content_of(log: Path) -> list[tuple[str, str]]:
    """Names and hashes of all files of a log."""
    if not log.exists():
        raise InputError(f"{log}: no such file or folder")
    if not log.is_dir():
        if not log.is_file():  # a pipe or device would keep us waiting
            raise InputError(f"{log}: is not a plain file")
        return [("", file_hash(log))]
    return [(str(path.relative_to(log)), file_hash(path)) for path in find_files(log, "*")]


class Store:
    """A folder of stored logs, pairs, items and drifts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def _ready(self) -> Path:
        make_folder(self.folder)
        ignore = self.folder / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
        return self.folder

    def samples(self, key: str) -> Samples | None:
        """A log that was read before."""
        path = self.folder / f"{key}.samples.parquet"
        return _unless_damaged(lambda: Samples.read(path) if path.is_file() else None)

    def keep_samples(self, key: str, samples: Samples) -> Samples:
        """Store a log that was read; what comes back is read from there."""
        path = self._ready / f"{key}.samples.parquet"
        samples.write(path)
        return Samples.read(path)

    def pair(self, key: str) -> StudiedPair | None:
        """A pair that was compared before, if its items are there too."""
        path = self.folder / f"{key}.pair.json"
        if not (path.is_file() and self.items_path(key).is_file()):
            return None
        most = JSON_MIB.value * MIB

        def load() -> StudiedPair:
            check_sealed(self.items_path(key))
            digest, _, text = read_small(path, most, "a stored pair").partition(b"\n")
            if sha256(text).hexdigest().encode() != digest:
                raise InputError(f"{path}: is damaged")
            return StudiedPair.model_validate_json(text)

        return _unless_damaged(load)

    def keep_pair(self, key: str, pair: StudiedPair, items: pa.Table) -> None:
        """Store a pair that was compared, and the outcomes of its items."""
        text = pair.model_dump_json()
        digest = sha256(text.encode()).hexdigest()  # of the text itself, which is quick to check
        write_text(self._ready / f"{key}.pair.json", f"{digest}\n{text}")
        with replacing(self.items_path(key)) as temporary:
            with pq.ParquetWriter(temporary, items.schema, compression="zstd") as writer:
                writer.write_table(items)
                writer.add_key_value_metadata({SEAL: EMPTY})
            seal(temporary)

    def drift(self, key: str) -> Drift | None:
        """A drift by capability that was computed before."""
        path = self.folder / f"{key}.drift.json"
        if not path.is_file():
            return None
        most = JSON_MIB.value * MIB
        return _unless_damaged(lambda: Drift.from_json(read_small(path, most, "a stored drift")))

    def keep_drift(self, key: str, result: Drift) -> None:
        """Store a drift."""
        write_text(self._ready / f"{key}.drift.json", result.to_json())

    def items_path(self, key: str) -> Path:
        """Where the outcomes of the items of a pair are."""
        return self.folder / f"{key}.items.parquet"

    def items(self, key: str, columns: Iterable[str]) -> pa.Table:
        """The outcomes of the items of a pair; tasks as a dictionary and numbers into it."""
        names = list(columns)
        return pq.read_table(self.items_path(key), columns=names, read_dictionary=["task"])


def _unless_damaged(load: Callable[[], _Stored | None]) -> _Stored | None:
    """What is stored; None where it is damaged, so that it is made again."""
    try:
        return load()
    except ValueError:  # an InputError, or a text that does not fit
        return None
