"""How large a log may become when it is read: one home for all limits, and how to raise them.

A small file can unpack to more than any memory holds. So there are limits, far beyond what a real
log needs. Each can be raised by an environment variable, and each message names it.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from forgetmap.base.errors import InputError


class Limit(NamedTuple):
    """A limit and the environment variable that sets it."""

    variable: str
    default: int

    @property
    def value(self) -> int:
        """What holds now."""
        text = os.environ.get(self.variable)
        if text is None:
            return self.default
        if not text.isdecimal() or not int(text[:18]):
            raise InputError(f"{self.variable}={text!r:.40}: must be a whole number from 1 on")
        return int(text[:18])

    @property
    def advice(self) -> str:
        """How to raise it, to put behind a message."""
        return f"if the file can be trusted, raise {self.variable} (now {self.value})"


MIB = 2**20
LINE_MIB = Limit("FORGETMAP_MAX_LINE_MIB", 64)
"""Of one line or row: a longer one is not a record, and reading on would fill the memory."""
JSON_MIB = Limit("FORGETMAP_MAX_JSON_MIB", 512)
"""Of one JSON file, which is parsed as a whole."""
MEMBER_MIB = Limit("FORGETMAP_MAX_MEMBER_MIB", 256)
"""Of one member of an archive, unpacked."""
MEMBERS = Limit("FORGETMAP_MAX_MEMBERS", 2_000_000)
"""Members of one archive."""
RATIO = Limit("FORGETMAP_MAX_RATIO", 1000)
"""How many times its size a file may unpack to, once it is beyond `_UNPACKED`."""
ROWS = Limit("FORGETMAP_MAX_ROWS", 10_000_000)
"""Rows of a file that may be packed as tightly as they like."""

_UNPACKED = 256 * MIB
_ROWS_PER_BYTE = 10


def check_unpacked(file: object, unpacked: int, packed: int) -> None:
    """Refuse a file that unpacks to both a lot and many times its size.

    Example:
        >>> check_unpacked("run.eval", unpacked=5_600_000_000, packed=779_000)
        Traceback (most recent call last):
        ...
        forgetmap.base.errors.InputError: run.eval: 779,000 bytes unpack to 5,600,000,000 or more, \
over 1000 times as many; if the file can be trusted, raise FORGETMAP_MAX_RATIO (now 1000)
    """
    if unpacked > _UNPACKED and unpacked > RATIO.value * packed:
        raise InputError(
            f"{file}: {packed:,} bytes unpack to {unpacked:,} or more, "
            f"over {RATIO.value} times as many; {RATIO.advice}"
        )


def check_rows(file: object, rows: int, packed: int) -> None:
    """Refuse a file with both very many rows and next to no bytes for each.

    Example:
        >>> check_rows("run.parquet", rows=3_000_000, packed=20_000)
        >>> check_rows("run.parquet", rows=200_000_000, packed=1_400_000)
        Traceback (most recent call last):
        ...
        forgetmap.base.errors.InputError: run.parquet: has 200,000,000 rows in 1,400,000 bytes; \
if the file can be trusted, raise FORGETMAP_MAX_ROWS (now 10000000)
    """
    if rows > ROWS.value and rows > _ROWS_PER_BYTE * packed:
        raise InputError(f"{file}: has {rows:,} rows in {packed:,} bytes; {ROWS.advice}")
