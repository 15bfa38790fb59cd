"""Parquet files that notice damage: each holds its size and a checksum of all its bytes.

Parquet has checksums of pages, which few readers look at, and none of its footer. So a file is
written with a place for a seal in the footer, zeros at first; the checksum is taken over the whole
file as it is then, and put into the place.

Another program that writes the table again carries the seal along with the other metadata. It no
longer fits then, which the size tells: such a file is taken as one without a seal.
"""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from forgetmap.base.errors import InputError
from forgetmap.base.files import open_binary

SEAL = "forgetmap:sealed"
_SIZE, _SUM = 16, 64
EMPTY = "0" * (_SIZE + _SUM)
_PLACE = re.compile(SEAL.encode() + rb"\x18\x50(.{80})", re.DOTALL)
"""In a footer a text of 80 letters follows its name and these two bytes."""
_PART = 2**20
_TAIL = 8
"""A Parquet file ends with the length of its footer and four letters."""
_MOST_FOOTER = 2**20
"""The metadata stand at the end of a footer, so no more of it is searched."""


class _Seal(NamedTuple):
    place: int
    """Where it begins in the file."""
    text: str
    size: int
    """Of the file as it is."""


def seal(path: Path) -> None:
    """Seal a file that was written with `SEAL: EMPTY` among its metadata."""
    found = _find(path)
    if found is None:
        raise ValueError(f"{path} has no place for a seal")
    text = f"{found.size:0{_SIZE}d}{_digest(path, found.place)}"
    with path.open("r+b") as file:
        file.seek(found.place)
        file.write(text.encode())


def check_sealed(path: Path) -> None:
    """Refuse a file whose bytes are not those that were written; one without a seal is taken."""
    found = _find(path)
    if found is None or found.text[:_SIZE] != f"{found.size:0{_SIZE}d}":
        return
    if found.text[_SIZE:] != _digest(path, found.place):
        raise InputError(f"{path}: is damaged (its checksum differs); restore it, or make it again")


def _find(path: Path) -> _Seal | None:
    with open_binary(path) as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _TAIL))
        length = int.from_bytes(file.read(4), "little")
        start = max(0, size - _TAIL - min(length, _MOST_FOOTER))
        file.seek(start)
        places = list(_PLACE.finditer(file.read(size - start)))
    if not places:
        return None
    return _Seal(start + places[-1].start(1), places[-1].group(1).decode("latin-1"), size)


def _digest(path: Path, place: int) -> str:
    """The checksum of a file as it was before its own place was filled."""
    digest = sha256()
    with open_binary(path) as file:
        done = 0
        while part := file.read(_PART):
            first, last = max(place - done, 0), max(min(place + len(EMPTY) - done, len(part)), 0)
            done += len(part)
            digest.update(
                part if first >= last else part[:first] + b"0" * (last - first) + part[last:]
            )
    return digest.hexdigest()
