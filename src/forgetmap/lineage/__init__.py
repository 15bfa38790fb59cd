"""Lineage: forgetting across a whole pipeline of checkpoints, and along one training run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap.base.exports import callable_package, load_on_use

if TYPE_CHECKING:
    from forgetmap.lineage.build import trace
    from forgetmap.lineage.pipeline import Checkpoint, Pipeline
    from forgetmap.lineage.result import Lineage

__all__ = ["Checkpoint", "Lineage", "Pipeline", "trace"]

__getattr__ = load_on_use(
    __name__,
    {
        "build": ["trace"],
        "pipeline": ["Checkpoint", "Pipeline"],
        "result": ["Lineage"],
    },
)

callable_package(__name__, "forgetmap.api:lineage")
