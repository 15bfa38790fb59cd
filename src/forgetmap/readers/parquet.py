"""forgetmap's own Parquet: Samples written by `forgetmap convert` or `Samples.write`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap.errors import InputError
from forgetmap.samples import Samples, parquet_schema

if TYPE_CHECKING:
    from pathlib import Path

    from forgetmap.readers import ReadOptions


def sniff(path: Path) -> bool:
    """Tell a Samples file from other Parquet by its metadata."""
    if not path.is_file() or path.suffix != ".parquet":
        return False
    try:
        return b"forgetmap" in (parquet_schema(path).metadata or {})
    except InputError:
        return False


def read(path: Path, how: ReadOptions) -> Samples:  # noqa: ARG001 - every reader takes it
    """Open the file; rows are read when they are needed, and only the columns asked for."""
    return Samples.read(path)
