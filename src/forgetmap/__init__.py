"""forgetmap: know what your post-training broke, why, and what to do about it.

The public API. Each name is loaded when it is first used, so importing the package is quick.

Example:
    >>> import forgetmap
    >>> result = forgetmap.demo()
    >>> result.total.verdict.forgetting in ("lost", "held", "undecided")
    True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap.base.exports import load_on_use
from forgetmap.base.version import __version__

if TYPE_CHECKING:
    from forgetmap.api import compare, demo, drift, gate, lineage, study
    from forgetmap.base.errors import InputError, WithheldError
    from forgetmap.capabilities.drift_result import Drift
    from forgetmap.evaluate.divergence import diverge
    from forgetmap.evaluate.run import evaluate
    from forgetmap.gate.judgement import check_gate
    from forgetmap.lineage.result import Lineage
    from forgetmap.map.result import Cell, ForgettingMap
    from forgetmap.map.task_maps import TaskMap
    from forgetmap.mitigate.forecast.build import check_forecast, forecast
    from forgetmap.mitigate.merge.merging import merge
    from forgetmap.mitigate.recover import recover
    from forgetmap.pairing.pairs import Pairs
    from forgetmap.pairing.two_logs import pair
    from forgetmap.readers.framework import ReadOptions
    from forgetmap.readers.registry import read
    from forgetmap.samples.identity import content_hash
    from forgetmap.samples.table import Samples
    from forgetmap.study.result import StudyResult

__all__ = [
    "Cell",
    "Drift",
    "ForgettingMap",
    "InputError",
    "Lineage",
    "Pairs",
    "ReadOptions",
    "Samples",
    "StudyResult",
    "TaskMap",
    "WithheldError",
    "__version__",
    "check_forecast",
    "check_gate",
    "compare",
    "content_hash",
    "demo",
    "diverge",
    "drift",
    "evaluate",
    "forecast",
    "gate",
    "lineage",
    "merge",
    "pair",
    "read",
    "recover",
    "study",
]

__getattr__ = load_on_use(
    __name__,
    {
        "api": ["compare", "demo", "drift", "gate", "lineage", "study"],
        "base.errors": ["InputError", "WithheldError"],
        "capabilities.drift_result": ["Drift"],
        "evaluate.divergence": ["diverge"],
        "evaluate.run": ["evaluate"],
        "gate.judgement": ["check_gate"],
        "lineage.result": ["Lineage"],
        "map.result": ["Cell", "ForgettingMap"],
        "map.task_maps": ["TaskMap"],
        "mitigate.forecast.build": ["check_forecast", "forecast"],
        "mitigate.merge.merging": ["merge"],
        "mitigate.recover": ["recover"],
        "pairing.pairs": ["Pairs"],
        "pairing.two_logs": ["pair"],
        "readers.framework": ["ReadOptions"],
        "readers.registry": ["read"],
        "samples.identity": ["content_hash"],
        "samples.table": ["Samples"],
        "study.result": ["StudyResult"],
    },
)


def __dir__() -> list[str]:
    return sorted(__all__)
