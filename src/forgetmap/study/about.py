"""What a JSON file beside a log tells about its training: attributes that need no writing down."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from forgetmap.base.errors import InputError
from forgetmap.base.json import read_json
from forgetmap.base.words import clean


def read_about(path: Path, take: Sequence[str]) -> dict[str, str | int | float]:
    """The attributes in a JSON file: those named by `take`, or all where nothing is named.

    Values in an object are named `object.name`. What is null or empty is not known. A list, or an
    object in an object, is refused unless `take` passes it over.
    """
    content = read_json(path)
    if not isinstance(content, dict):
        raise InputError(f"{path}: must hold one JSON object with the attributes")
    found = {}
    for name, value in _flat(content):
        if take and name not in take:
            continue
        if isinstance(value, list | dict):
            raise InputError(
                f"{path}: {clean(name, 60)!r} is not a number or a text; list with 'take' what "
                "to take from it"
            )
        if value is not None and str(value).strip():
            found[name] = value
    return found


def _flat(content: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in content.items():
        if isinstance(value, dict):
            yield from ((f"{key}.{name}", inner) for name, inner in value.items())
        else:
            yield key, value
