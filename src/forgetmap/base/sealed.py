"""Parquet files that notice damage: each holds its size and a checksum of all its bytes.

Parquet has checksums of pages, which few readers look at, and none of its footer. So a file is
written with a place for a seal in the footer, zeros at first; the checksum is taken over the whole
file as it is then, and put into the place. It is the SHA-256 of those of the file's parts, so that
all cores can work on a large file. Older files have that of the whole.

Another program that writes the table again carries the seal along with the other metadata. It no
longer fits then, which the size tells: such a file is taken as one without a seal.
"""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from forgetmap.base.errors import InputError
from forgetmap.base.files import open_binary

SEAL = "forgetmap:sealed by parts"
_OF_WHOLE = "forgetmap:sealed"
_SIZE, _SUM = 16, 64
EMPTY = "0" * (_SIZE + _SUM)
_PLACE = re.compile(rb"(%s|%s)\x18\x50(.{80})" % (SEAL.encode(), _OF_WHOLE.encode()), re.DOTALL)
"""In a footer a text of 80 letters follows its name and these two bytes."""
_PART = 16 * 2**20
_BLOCK = 2**20
"""Read at a time."""
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
    by_parts: bool


def seal(path: Path) -> None:
    """Seal a file that was written with `SEAL: EMPTY` among its metadata."""
    found = _find(path)
    if found is None:
        raise ValueError(f"{path} has no place for a seal")
    text = f"{found.size:0{_SIZE}d}{_checksum(path, found)}"
    with path.open("r+b") as file:
        file.seek(found.place)
        file.write(text.encode())


def check_sealed(path: Path) -> None:
    """Refuse a file whose bytes are not those that were written; one without a seal is taken."""
    found = _find(path)
    if found is None or found.text[:_SIZE] != f"{found.size:0{_SIZE}d}":
        return
    if found.text[_SIZE:] != _checksum(path, found):
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
    place, name = start + places[-1].start(2), places[-1].group(1).decode()
    return _Seal(place, places[-1].group(2).decode("latin-1"), size, name == SEAL)


def _checksum(path: Path, found: _Seal) -> str:
    """The checksum of a file as it was before its own place was filled."""
    digest = partial(_digest, path, found.place)
    if not found.by_parts:
        return digest(0, found.size).hex()
    starts = range(0, found.size, _PART)
    stops = (min(start + _PART, found.size) for start in starts)
    if len(starts) == 1:  # a thread would cost more than it saves
        return sha256(digest(0, found.size)).hexdigest()
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        return sha256(b"".join(threads.map(digest, starts, stops))).hexdigest()


def _digest(path: Path, place: int, start: int, stop: int) -> bytes:
    """SHA-256 of a part of a file, with zeros in the place of the seal."""
    digest = sha256()
    with open_binary(path) as file:
        file.seek(start)
        while start < stop and (block := file.read(min(_BLOCK, stop - start))):
            first = max(place - start, 0)
            last = max(min(place + len(EMPTY) - start, len(block)), 0)
            start += len(block)
            digest.update(
                block if first >= last else block[:first] + b"0" * (last - first) + block[last:]
            )
    return digest.digest()
