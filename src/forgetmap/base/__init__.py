"""Base: errors, files, words and the database. It knows nothing of the rooms above it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap.base.exports import load_on_use

if TYPE_CHECKING:
    from forgetmap.base.errors import InputError, WithheldError

__all__ = ["InputError", "WithheldError"]

__getattr__ = load_on_use(
    __name__,
    {
        "errors": ["InputError", "WithheldError"],
    },
)
