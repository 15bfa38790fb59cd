"""Results that commands read back from files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from forgetmap.capabilities.drift_result import Drift
    from forgetmap.lineage.result import Lineage
    from forgetmap.map.result import ForgettingMap


Result = TypeVar("Result")


def read_map(path: Path) -> ForgettingMap:
    """Read a map from a file; one clear line if it is none."""
    from forgetmap.map.result import ForgettingMap

    return _parsed(path, ForgettingMap.from_json)


def read_drift(path: Path) -> Drift:
    """Read a drift by capability from a file; one clear line if it is none."""
    from forgetmap.capabilities.drift_result import Drift

    return _parsed(path, Drift.from_json)


def read_lineage(path: Path) -> Lineage:
    """Read a lineage from a file; one clear line if it is none."""
    from forgetmap.lineage.result import Lineage

    return _parsed(path, Lineage.from_json)


def _parsed(path: Path, parse: Callable[[bytes], Result]) -> Result:
    from forgetmap.base.errors import InputError
    from forgetmap.base.files import open_binary

    with open_binary(path) as file:
        raw = file.read()
    try:
        return parse(raw)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
