"""forgetmap: know what your post-training broke, why, and what to do about it.

The public API. Each name is loaded when it is first used, so importing the package is quick.

Example:
    >>> import forgetmap
    >>> result = forgetmap.demo()
    >>> result.total.verdict.forgetting in ("lost", "held", "undecided")
    True
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forgetmap.base.display import show_with
from forgetmap.base.exports import load_on_use
from forgetmap.base.version import __version__

if TYPE_CHECKING:
    from forgetmap.api import compare, demo
    from forgetmap.base.errors import InputError, WithheldError
    from forgetmap.gate.judgement import check_gate
    from forgetmap.map.result import Cell, ForgettingMap
    from forgetmap.map.task_maps import TaskMap
    from forgetmap.pairing.two_logs import Pairs, pair
    from forgetmap.readers.framework import ReadOptions
    from forgetmap.readers.registry import read
    from forgetmap.samples.identity import content_hash
    from forgetmap.samples.table import Samples

__all__ = [
    "Cell",
    "ForgettingMap",
    "InputError",
    "Pairs",
    "ReadOptions",
    "Samples",
    "TaskMap",
    "WithheldError",
    "__version__",
    "check_gate",
    "compare",
    "content_hash",
    "demo",
    "pair",
    "read",
]

__getattr__ = load_on_use(
    __name__,
    {
        "api": ["compare", "demo"],
        "base.errors": ["InputError", "WithheldError"],
        "gate.judgement": ["check_gate"],
        "map.result": ["Cell", "ForgettingMap"],
        "map.task_maps": ["TaskMap"],
        "pairing.two_logs": ["Pairs", "pair"],
        "readers.framework": ["ReadOptions"],
        "readers.registry": ["read"],
        "samples.identity": ["content_hash"],
        "samples.table": ["Samples"],
    },
)


def _show_map(result: Any) -> str:
    from forgetmap.views.notebook import to_html

    return to_html(result)


show_with("ForgettingMap", _show_map)
