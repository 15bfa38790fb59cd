"""Answers: what a text says, by rules that need no model.

Causes, capabilities and evaluation use them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap.base.exports import load_on_use

if TYPE_CHECKING:
    from forgetmap.answers.extraction import gives
    from forgetmap.answers.items import Item, Value
    from forgetmap.answers.language import language_of
    from forgetmap.answers.refusals import classify

__all__ = ["Item", "Value", "classify", "gives", "language_of"]

__getattr__ = load_on_use(
    __name__,
    {
        "extraction": ["gives"],
        "items": ["Item", "Value"],
        "language": ["language_of"],
        "refusals": ["classify"],
    },
)
