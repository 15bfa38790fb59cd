"""Readers: one file per log format, each turning what a harness wrote into Samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap.base.exports import load_on_use

if TYPE_CHECKING:
    from forgetmap.readers.framework import Reader, ReadOptions
    from forgetmap.readers.registry import find_reader, read, read_all

__all__ = ["ReadOptions", "Reader", "find_reader", "read", "read_all"]

__getattr__ = load_on_use(
    __name__,
    {
        "framework": ["ReadOptions", "Reader"],
        "registry": ["find_reader", "read", "read_all"],
    },
)
