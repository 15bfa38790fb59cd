"""forgetmap: know what your post-training broke, why, and what to do about it.

The public API; each name is loaded when it is first used, so that importing the package is quick.

Example:
    >>> import forgetmap
    >>> result = forgetmap.demo()
    >>> result.total.verdict.forgetting in ("forgot", "kept", "undecided")
    True
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from forgetmap.comparison import compare, demo
    from forgetmap.errors import InputError, WithheldError
    from forgetmap.gate import check_gate
    from forgetmap.map import Cell, ForgettingMap
    from forgetmap.pairing import Pairs, pair
    from forgetmap.readers import ReadOptions, read
    from forgetmap.samples import Samples, content_hash
    from forgetmap.taskmap import TaskMap

_HOME = {
    "Cell": "map",
    "ForgettingMap": "map",
    "InputError": "errors",
    "Pairs": "pairing",
    "ReadOptions": "readers",
    "Samples": "samples",
    "TaskMap": "taskmap",
    "WithheldError": "errors",
    "check_gate": "gate",
    "compare": "comparison",
    "content_hash": "samples",
    "demo": "comparison",
    "pair": "pairing",
    "read": "readers",
}

__all__ = [
    "Cell",
    "ForgettingMap",
    "InputError",
    "Pairs",
    "ReadOptions",
    "Samples",
    "TaskMap",
    "WithheldError",
    "check_gate",
    "compare",
    "content_hash",
    "demo",
    "pair",
    "read",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'forgetmap' has no attribute {name!r}")
    return getattr(import_module(f"forgetmap.{_HOME[name]}"), name)
