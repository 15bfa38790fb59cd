"""Output folders of `forgetmap eval`.

The manifest is written last: a folder without one holds a run that has not finished.
"""

from __future__ import annotations

from pathlib import Path

from forgetmap.base.errors import InputError
from forgetmap.base.files import file_hash
from forgetmap.base.model import read_sealed
from forgetmap.readers import parquet
from forgetmap.readers.framework import ReadOptions
from forgetmap.samples.table import Samples

COMPANIONS = ("*",)
"""All files of the folder are forgetmap's own."""
_ANSWERS, _SAMPLES, _MANIFEST = "answers.jsonl", "samples.parquet", "manifest.json"
_RESPONSES = "responses.jsonl"


def sniff(path: Path) -> bool:
    """Tell the folder by the two files that every run makes."""
    return (path / _ANSWERS).is_file() and (path / ".lock").is_file()


def read(path: Path, how: ReadOptions) -> Samples:
    """Read the results of a finished run, if they are those that the manifest tells of."""
    if not (path / _MANIFEST).is_file():
        raise InputError(
            f"{path}: this evaluation has not finished; run its `forgetmap eval` again to go on"
        )
    _check(path / _SAMPLES, read_sealed(path / _MANIFEST).get("samples_sha256"))
    return parquet.read(path / _SAMPLES, how)


def check_responses(path: Path) -> None:
    """Refuse answers that a run wrote for `forgetmap score`, if they were changed since."""
    manifest = path.parent / _MANIFEST
    if path.name == _RESPONSES and manifest.is_file() and sniff(path.parent):
        _check(path, read_sealed(manifest).get("responses_sha256"))


def _check(path: Path, told: str | None) -> None:
    if told is not None and told != file_hash(path):
        raise InputError(
            f"{path}: is not the file that {_MANIFEST} tells of (its checksum differs); "
            "run its `forgetmap eval` again, which makes it from the stored answers"
        )
