"""`forgetmap mcp`: tools for coding agents over one folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from forgetmap.cli.options import clear_errors


def mcp(
    folder: Annotated[
        Path,
        typer.Argument(
            readable=False, metavar="[FOLDER]", help="What the tools may read; nothing else."
        ),
    ] = Path(),
) -> None:
    """Let a coding agent ask: compare, show, flips, lineage, study and advise as MCP tools.

    The server speaks the Model Context Protocol over standard input and output. It only reads, and
    only in FOLDER. Your agent starts it; its settings take the command and its arguments.

    Example:

      forgetmap mcp runs/
    """
    with clear_errors():
        from forgetmap.views.mcp import make_server

        make_server(folder).run("stdio")
