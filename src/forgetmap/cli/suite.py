"""`forgetmap capabilities suite`: write the open suite."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from forgetmap.cli.options import Quiet, check_outputs, clear_errors


def suite(
    out: Annotated[
        Path, typer.Option(readable=False, metavar="FILE", help="JSON lines to write.")
    ] = Path("items.jsonl"),
    seed: Annotated[int, typer.Option(help="Each seed draws other items.")] = 0,
    per_capability: Annotated[int, typer.Option(help="Items of each capability, at least.")] = 40,
    quiet: Quiet = False,
) -> None:
    """Write the items of the open capability suite, for a model to answer.

    Put the answer to each prompt into the column `outputs`, then score the file with --manifest
    open-suite.
    """
    from forgetmap.capabilities.suite import build, write

    with clear_errors():
        check_outputs([out], [])
        items = build(seed, per_capability)
        write(items, out)
    if not quiet:
        typer.echo(f"{out}: {len(items):,} items of {len({item.task for item in items})} tasks")
