"""JSON as harnesses write it: read quickly, with clear errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson

from forgetmap.base.errors import InputError
from forgetmap.base.files import lines, read_small
from forgetmap.base.limits import JSON_MIB, MIB
from forgetmap.base.words import brief


def parse_json(text: bytes) -> Any:
    """Parse JSON fast; accept what Python harnesses write beyond it: NaN, halves of characters.

    What cannot be parsed is a ValueError.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass
    try:
        value = json.loads(text)
        if b"\\ud" in text.lower():  # a lone surrogate can be neither stored nor printed
            value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return value


def read_json(path: Path) -> Any:
    """Read one JSON file."""
    content = read_small(path, JSON_MIB.value * MIB, "a results file", f"; {JSON_MIB.advice}")
    try:
        return parse_json(content)
    except ValueError as error:
        raise InputError(f"{path}: is not valid JSON ({brief(error)})") from error


def first_record(path: Path) -> dict[str, Any]:
    """The object on the first line of a JSONL file; empty where there is none.

    Example:
        >>> import tempfile
        >>> log = Path(tempfile.mkdtemp()) / "run.jsonl"
        >>> _ = log.write_text('{"id": 1}\\n{"id": 2}')
        >>> first_record(log)
        {'id': 1}
    """
    try:
        record = parse_json(next(iter(lines(path)), (0, b"{}"))[1])
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}
