"""Evaluate: run a model over a suite of questions, fast and resumable, into logs to be mapped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap.base.exports import callable_package, load_on_use

if TYPE_CHECKING:
    from forgetmap.evaluate.fetch import fetch_model
    from forgetmap.evaluate.models import open_model
    from forgetmap.evaluate.run import compare_models, evaluate

__all__ = ["compare_models", "evaluate", "fetch_model", "open_model"]

__getattr__ = load_on_use(
    __name__,
    {
        "fetch": ["fetch_model"],
        "models": ["open_model"],
        "run": ["compare_models", "evaluate"],
    },
)

callable_package(__name__, "forgetmap.evaluate.run:evaluate")
