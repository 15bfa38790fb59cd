"""Output folders of `forgetmap eval`.

The manifest is written last: a folder without one holds a run that has not finished.
"""

from __future__ import annotations

from pathlib import Path

from forgetmap.base.errors import InputError
from forgetmap.base.files import file_hash
from forgetmap.base.json import read_json
from forgetmap.readers import parquet
from forgetmap.readers.framework import ReadOptions
from forgetmap.samples.table import Samples

COMPANIONS = ("*",)
"""All files of the folder are forgetmap's own."""
_ANSWERS, _SAMPLES, _MANIFEST = "answers.jsonl", "samples.parquet", "manifest.json"


def sniff(path: Path) -> bool:
    """Tell the folder by the two files that every run makes."""
    return (path / _ANSWERS).is_file() and (path / ".lock").is_file()


def read(path: Path, how: ReadOptions) -> Samples:
    """Read the results of a finished run, if they are those that the manifest tells of."""
    if not (path / _MANIFEST).is_file():
        raise InputError(
            f"{path}: this evaluation has not finished; run its `forgetmap eval` again to go on"
        )
    manifest = read_json(path / _MANIFEST)
    told = manifest.get("samples_sha256") if isinstance(manifest, dict) else None
    if told is not None and told != file_hash(path / _SAMPLES):
        raise InputError(
            f"{path / _SAMPLES}: is not the file that {_MANIFEST} tells of (its checksum differs); "
            "run its `forgetmap eval` again, which makes it from the stored answers"
        )
    return parquet.read(path / _SAMPLES, how)
