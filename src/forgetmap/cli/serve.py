"""`forgetmap serve`: comparisons of any size in the browser."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from forgetmap.cli.options import busy, clear_errors


def serve(
    paths: Annotated[
        list[Path],
        typer.Argument(
            readable=False,
            metavar="PATH...",
            help="Folders written by compare --save, or one written by study --site, or two logs: "
            "BEFORE AFTER.",
        ),
    ],
    task_map: Annotated[
        str | None, typer.Option(metavar="MAP", help="For two logs: categories of the tasks.")
    ] = None,
    host: Annotated[
        str, typer.Option(help="Where to listen; 0.0.0.0 lets other machines in.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes a free port.")] = 0,
    open_: Annotated[bool, typer.Option("--open", help="Open the browser.")] = False,
) -> None:
    """Look at comparisons of any size in the browser. By default only this machine can open it.

    Examples:

      forgetmap compare runs/base runs/tuned --save maps/tuned

      forgetmap serve maps/tuned --open
    """
    with clear_errors(), ExitStack() as working:
        from forgetmap.views.serve import serve as run

        working.enter_context(busy(False, "opening"))

        def say(line: str) -> None:
            working.close()  # the page is there
            typer.echo(line)

        run(paths, host=host, port=port, open_browser=open_, say=say, task_map=task_map)
