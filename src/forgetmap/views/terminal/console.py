"""A console for people: as wide as the terminal, of fixed width in files."""

from __future__ import annotations

from rich.console import Console

from forgetmap.base.words import WIDTH


def open_console(stderr: bool = False) -> Console:
    """A console of fixed width where the output is not a terminal, so that files look the same."""
    found = Console(stderr=stderr, highlight=False)
    if not found.is_terminal:
        found.width = WIDTH
    return found
