"""Samples: the one table that every reader produces, and what makes items and runs comparable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap.base.exports import load_on_use

if TYPE_CHECKING:
    from forgetmap.samples.comparability import Confound, find_confounds
    from forgetmap.samples.identity import content_hash, wording_hash
    from forgetmap.samples.table import Meta, Samples

__all__ = ["Confound", "Meta", "Samples", "content_hash", "find_confounds", "wording_hash"]

__getattr__ = load_on_use(
    __name__,
    {
        "comparability": ["Confound", "find_confounds"],
        "identity": ["content_hash", "wording_hash"],
        "table": ["Meta", "Samples"],
    },
)
