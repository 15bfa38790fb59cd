"""Plain data between the program and its tests: written as JSON, so that nothing in it can act.

What the program sends is only ever taken apart here. It becomes built-in values of the checker's
own, so that no object of the program can have a say in a comparison.
"""

from __future__ import annotations

import json
import os
import struct
from itertools import islice

TYPE_CHECKING = False  # the module typing takes as long to load as all the rest
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MOST_BYTES = 2**22
"""Longest message; a program that sends more is taken not to send plain data."""
_MOST_ITEMS = 100_000
_DEEPEST = 100
_JSON_INT = 2**63
_SEQUENCES: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "iterator": iter,
}


class NotPlainError(Exception):
    """A value that cannot be sent."""


class EndedError(Exception):
    """The other side is gone."""


def send(pipe: int, message: list[Any]) -> None:
    """Write one message."""
    text = json.dumps(message).encode()
    if len(text) > MOST_BYTES:
        raise NotPlainError
    left = struct.pack("<I", len(text)) + text
    while left:
        try:
            left = left[os.write(pipe, left) :]
        except OSError as error:
            raise EndedError from error


def receive(pipe: int) -> list[Any]:
    """Read one message."""
    (length,) = struct.unpack("<I", _read(pipe, 4))
    if length > MOST_BYTES:
        raise EndedError
    try:
        message = json.loads(_read(pipe, length))
    except (ValueError, RecursionError) as error:
        raise EndedError from error
    if not isinstance(message, list) or not message:
        raise EndedError
    return message


def _read(pipe: int, length: int) -> bytes:
    parts = bytearray()
    while len(parts) < length:
        part = os.read(pipe, length - len(parts))
        if not part:
            raise EndedError
        parts += part
    return bytes(parts)


def encode(value: Any, depth: int = 0) -> Any:
    """A value as JSON: scalars as they are, the rest as a list that begins with the kind.

    Example:
        >>> encode([1, (2.5, None)])
        ['list', [1, ['tuple', [2.5, None]]]]
    """
    if depth > _DEEPEST:
        raise NotPlainError
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        whole = int(value)
        return whole if abs(whole) < _JSON_INT else ["int", hex(whole)]
    if isinstance(value, float):
        return float(value)
    if isinstance(value, str):
        return str.__str__(value)
    return _encode_compound(value, depth + 1)


def _encode_compound(value: Any, depth: int) -> list[Any]:
    if isinstance(value, (bytes, bytearray)):
        return ["bytearray" if isinstance(value, bytearray) else "bytes", bytes(value).hex()]
    if isinstance(value, complex):
        return ["complex", value.real, value.imag]
    if isinstance(value, range):
        return ["range", *(encode(part) for part in (value.start, value.stop, value.step))]
    if isinstance(value, dict):
        return ["dict", [[encode(one, depth) for one in pair] for pair in dict.items(value)]]
    for kind in (list, tuple, set, frozenset):
        if isinstance(value, kind):
            return [kind.__name__, [encode(one, depth) for one in value]]
    if hasattr(type(value), "__next__"):
        items = list(islice(value, _MOST_ITEMS + 1))
        if len(items) <= _MOST_ITEMS:
            return ["iterator", [encode(one, depth) for one in items]]
    raise NotPlainError


def decode(sent: Any) -> Any:
    """The value that was sent, made anew; `NotPlainError` for anything `encode` does not write.

    Example:
        >>> decode(encode({"a": {1, 2}, (3,): b"x"}))
        {'a': {1, 2}, (3,): b'x'}
    """
    if sent is None or isinstance(sent, (bool, int, float, str)):
        return sent
    try:
        return _decode_compound(*sent)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise NotPlainError from error


def _decode_compound(kind: str, *parts: Any) -> Any:
    if kind in _SEQUENCES:
        (items,) = parts
        return _SEQUENCES[kind]([decode(item) for item in items])
    if kind == "dict":
        (items,) = parts
        return {decode(key): decode(value) for key, value in items}
    if kind == "int":
        (digits,) = parts
        return int(digits, 16)
    if kind in ("bytes", "bytearray"):
        (digits,) = parts
        return bytes.fromhex(digits) if kind == "bytes" else bytearray.fromhex(digits)
    if kind == "complex":
        return complex(*(float(part) for part in parts))
    if kind == "range":
        return range(*(decode(part) for part in parts))
    raise NotPlainError
