"""Lets mkdocstrings show what stands under `Example:` as code, as it does under `Examples:`."""

from __future__ import annotations

from typing import Any

from griffe import Extension


class ExamplesAsCode(Extension):
    """Reads a docstring's `Example:` as the section that Google's style calls `Examples:`."""

    def on_object(self, *, obj: Any, **_more: Any) -> None:
        """Rename the section."""
        if obj.docstring:
            obj.docstring.value = obj.docstring.value.replace("\nExample:\n", "\nExamples:\n")
