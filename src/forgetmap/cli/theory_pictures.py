"""`forgetmap theory figures` and `forgetmap theory page`: the theory in pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from forgetmap.cli.options import Quiet, check_outputs, clear_errors


def figures(
    out: Annotated[
        Path, typer.Option(readable=False, metavar="FOLDER", help="Where to put the figures.")
    ],
    quiet: Quiet = False,
) -> None:
    """Draw every plot of the theory, as SVG and PNG.

    The figures show exact values and bounds. Every panel says where its result comes from.

    Example:

      forgetmap theory figures --out theory-figures
    """
    with clear_errors():
        from forgetmap.base.files import make_folder
        from forgetmap.views.figures.theory import FIGURES, write_figures

        drawn = 0

        def tick(name: str) -> None:
            nonlocal drawn
            drawn += 1
            if not quiet:
                typer.echo(f"figure {drawn} of {len(FIGURES)}: {name}", err=True)

        make_folder(out)
        written = write_figures(out, tick)
    if not quiet:
        typer.echo(f"{out}: {len(written)} files")


def page(
    report: Annotated[
        Path, typer.Option(readable=False, metavar="FILE", help="The HTML file to write.")
    ] = Path("theory.html"),
    quiet: Quiet = False,
) -> None:
    """Write one interactive page: sliders, flows, fixed points, drift.

    The file needs nothing else, not even a network. Open it in any current browser.

    Example:

      forgetmap theory page --report theory.html
    """
    with clear_errors():
        from forgetmap.views.html.theory import write_page

        check_outputs([report], [])
        write_page(report)
    if not quiet:
        typer.echo(f"{report}: open it in a browser")
