"""The map: what was forgotten and gained between two logs, with intervals and verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap.base.exports import load_on_use

if TYPE_CHECKING:
    from forgetmap.map.comparison import Comparison, compare_logs
    from forgetmap.map.example import example_logs, example_pipeline
    from forgetmap.map.result import Cell, ForgettingMap
    from forgetmap.map.saved import open_saved, save_comparison
    from forgetmap.map.task_maps import TaskMap

__all__ = [
    "Cell",
    "Comparison",
    "ForgettingMap",
    "TaskMap",
    "compare_logs",
    "example_logs",
    "example_pipeline",
    "open_saved",
    "save_comparison",
]

__getattr__ = load_on_use(
    __name__,
    {
        "comparison": ["Comparison", "compare_logs"],
        "example": ["example_logs", "example_pipeline"],
        "result": ["Cell", "ForgettingMap"],
        "saved": ["open_saved", "save_comparison"],
        "task_maps": ["TaskMap"],
    },
)
