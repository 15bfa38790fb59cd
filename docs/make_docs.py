"""Make the generated parts of the docs: the command line reference and the README's picture.

python docs/make_docs.py            # write them
python docs/make_docs.py --check    # exit 1 if the reference is out of date
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from typer.main import get_command
from typer.testing import CliRunner

from forgetmap import demo
from forgetmap.api import lineage
from forgetmap.base.words import WIDTH
from forgetmap.cli.app import app
from forgetmap.map.example import example_pipeline
from forgetmap.views.terminal import maps as terminal
from forgetmap.views.terminal.lineage import print_tree

DOCS = Path(__file__).resolve().parent
SVG = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, monospace;
font-size: {char_height}px; line-height: {line_height}px; }} {styles}</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>{lines}</defs>
<rect width="100%" height="100%" rx="8" fill="#16181d"/>
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}<g class="{unique_id}-matrix" xml:space="preserve">{matrix}</g></g></svg>
"""
"""A plain frame; rich's own would fetch a font from the web."""


def reference() -> str:
    """The help of every command, as it is printed."""
    runner = CliRunner()
    parts = [
        "# Command line\n\nMade by `make reference` from `--help`.\n\n"
        "Exit codes: 0 fine, 1 a gate is broken, 2 bad input or a full disk, 3 no honest answer "
        "is possible,\n70 an internal error (the line names a report to send in), 130 interrupted, "
        "141 nobody reads\nthe output.\n"
    ]
    for words in _commands(get_command(app)):
        arguments = [*words, "--help"]
        shown = runner.invoke(app, arguments, prog_name="forgetmap", terminal_width=100).output
        title = " ".join(["forgetmap", *words])
        parts.append(f"\n## {title}\n\n```text\n{shown.strip()}\n```\n")
    return "".join(parts)


def _commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words of every command, groups before what is in them."""
    yield words
    for name, inner in getattr(command, "commands", {}).items():
        yield from _commands(inner, (*words, name))


def picture() -> str:
    """The bundled example as `forgetmap demo` shows it, as SVG."""
    console = Console(
        record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, highlight=False
    )
    console.print("[bold]$ forgetmap demo[/bold]\n")
    print_tree(lineage(example_pipeline()), console)
    terminal.print_map(demo(), console)
    return console.export_svg(code_format=SVG, unique_id="forgetmap")


def main() -> None:
    """Write or check."""
    page = DOCS / "reference" / "cli.md"
    if "--check" in sys.argv:
        sys.exit(0 if page.read_text(encoding="utf-8") == reference() else 1)
    page.write_text(reference(), encoding="utf-8")
    (DOCS / "images" / "demo.svg").write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
