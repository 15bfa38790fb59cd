"""Readers: one file per log format, each turning what a harness wrote into Samples.

A reader is a module (or any object) with two functions::

    def sniff(path: Path) -> bool: ...          # cheap: is this mine?
    def read(path: Path, how: ReadOptions) -> Samples: ...

Third parties add theirs through the entry point group ``forgetmap.readers``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from forgetmap.errors import InputError

if TYPE_CHECKING:
    from forgetmap.samples import Samples


@dataclass(frozen=True)
class ReadOptions:
    """How to read a log."""

    text: bool = False
    """Also keep prompts, targets, answers and responses; without it they are never loaded."""
    wording: bool = False
    """Also hash the items by their words alone, to pair logs of different harnesses."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """For plain tables: Samples column -> the table's own column name."""
    tick: Callable[[int], None] = lambda _bytes: None
    """Called with the number of bytes just read, for a progress bar."""


class Reader(Protocol):
    """What a reader offers."""

    __name__: str

    def sniff(self, path: Path) -> bool:
        """Say whether the file or folder is in this reader's format, by a cheap look."""

    def read(self, path: Path, how: ReadOptions) -> Samples:
        """Read it all."""


def read(path: str | Path, how: ReadOptions | None = None) -> Samples:
    """Read the log at `path`, a file or a folder, whatever harness wrote it.

    Example:
        >>> import tempfile
        >>> log = Path(tempfile.mkdtemp()) / "results.csv"
        >>> _ = log.write_text("question,correct\\n2+2?,1\\n2+3?,0\\n")
        >>> len(read(log))
        2
    """
    path = Path(path)
    try:
        if not path.exists():
            raise InputError(f"{path}: no such file or folder")
        if path.is_dir() and not any(path.iterdir()):
            raise InputError(f"{path}: the folder is empty")
        samples = find_reader(path).read(path, how or ReadOptions())
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    if not len(samples):
        raise InputError(f"{path}: holds no samples")
    return samples


def find_reader(path: Path) -> Reader:
    """Find the reader whose format the path is in."""
    tried = []
    for reader in _readers():
        if reader.sniff(path):
            return reader
        tried.append(reader.__name__.rpartition(".")[2])
    raise InputError(f"{path}: not a log that forgetmap knows (tried: {', '.join(tried)})")


def _readers() -> Iterator[Reader]:
    """Own formats first: looking for the readers of other packages takes time."""
    from forgetmap.readers import evaluation, parquet

    yield from (parquet, evaluation)
    yield from (point.load() for point in sorted(entry_points(group="forgetmap.readers")))
    from forgetmap.readers import (
        bfcl,
        captrack,
        evalplus,
        every_eval_ever,
        helm,
        inspect,
        lighteval,
        lm_eval,
        nemo,
        openai_evals,
        opencompass,
        promptfoo,
        table,
        verifiers,
    )

    yield from (lm_eval, lighteval, inspect, helm, opencompass, every_eval_ever)
    yield from (promptfoo, evalplus, openai_evals, bfcl, verifiers, nemo, captrack, table)


def size_of(path: str | Path) -> int:
    """Bytes under a path, for a progress bar."""
    path = Path(path)
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())
