"""Capabilities: what a model can do, will do, and how it does it; scored from stored answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap.base.exports import load_on_use

if TYPE_CHECKING:
    from forgetmap.capabilities.drift import drift
    from forgetmap.capabilities.drift_result import Drift
    from forgetmap.capabilities.manifest import Manifest
    from forgetmap.capabilities.score import score_responses

__all__ = ["Drift", "Manifest", "drift", "score_responses"]

__getattr__ = load_on_use(
    __name__,
    {
        "drift": ["drift"],
        "drift_result": ["Drift"],
        "manifest": ["Manifest"],
        "score": ["score_responses"],
    },
)
