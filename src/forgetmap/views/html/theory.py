"""One page to play with the theory: sliders, and charts that the browser computes and draws."""

from __future__ import annotations

from pathlib import Path

from forgetmap.base.files import write_text
from forgetmap.views.html.shell import Page

_PAGE = Page("theory.html", ("theory.css",), ("theory/lab.js", "theory/main.js"))


def render() -> str:
    """The page, with everything in it.

    Example:
        >>> render().startswith("<!DOCTYPE html>")
        True
    """
    return _PAGE.render()


def write_page(path: str | Path) -> None:
    """Write the page to a file, whole or not at all.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "theory.html"
        >>> write_page(file)
        >>> "Theory lab" in file.read_text(encoding="utf-8")
        True
    """
    write_text(path, render())
