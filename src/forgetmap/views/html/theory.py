"""One page to play with the theory: sliders, and charts that the browser computes and draws."""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path
from string import Template

from forgetmap.base.files import write_text
from forgetmap.base.version import __version__
from forgetmap.views.html import report

_SCRIPTS = ("lab.js", "charts.js", "main.js")


def render() -> str:
    """The page, with everything in it.

    Example:
        >>> render().startswith("<!DOCTYPE html>")
        True
    """
    style = report.read("page.css") + _read("page.css")
    parts = "\n".join(_read(name) for name in _SCRIPTS)
    script = f'"use strict";\n(() => {{\n{parts}}})();\n'
    return Template(_read("page.html")).substitute(
        policy=_policy(script, style), style=style, script=script, version=__version__
    )


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


def _policy(script: str, style: str) -> str:
    """Nothing from anywhere; only our script runs, only our style sheet applies."""
    return (
        f"default-src 'none'; script-src 'sha256-{report.digest(script)}'; "
        f"style-src 'sha256-{report.digest(style)}'; base-uri 'none'; form-action 'none'"
    )


@cache
def _read(name: str) -> str:
    return (resources.files("forgetmap.views.html") / "assets/theory" / name).read_text(
        encoding="utf-8"
    )
