"""`forgetmap convert`: any log to one Parquet file, or to Every Eval Ever."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from forgetmap.cli.options import (
    Column,
    Quiet,
    check_outputs,
    clear_errors,
    name_value_pairs,
    progress,
)


def convert(
    path: Annotated[
        Path, typer.Argument(readable=False, metavar="PATH", help="A log: file or folder.")
    ],
    out: Annotated[
        Path,
        typer.Argument(
            readable=False,
            metavar="OUT",
            help="A Samples file (NAME.parquet), or with --to every-eval-ever a folder.",
        ),
    ],
    model: Annotated[str | None, typer.Option(metavar="NAME", help="Only this model.")] = None,
    text: Annotated[
        bool, typer.Option("--text/--no-text", help="Keep prompts, answers and responses.")
    ] = True,
    to: Annotated[
        str, typer.Option(metavar="FORMAT", help="samples, or every-eval-ever (schema 0.3).")
    ] = "samples",
    column: Column = None,
    quiet: Quiet = False,
) -> None:
    """Convert any log to one compact Parquet file, quick to compare, or to Every Eval Ever."""
    from forgetmap.base.errors import InputError
    from forgetmap.readers import every_eval_ever
    from forgetmap.readers.framework import ReadOptions
    from forgetmap.readers.registry import read

    with clear_errors(), progress(quiet, path) as tick:
        if to not in ("samples", "every-eval-ever"):
            raise InputError(f"--to {to}: known are samples, every-eval-ever")
        if to == "samples":
            if out.suffix != ".parquet":
                raise InputError(f"{out}: the name must end in .parquet")
            check_outputs([out], [path])
        columns = name_value_pairs(column or [], "--column")
        samples = read(path, ReadOptions(text=text, wording=True, columns=columns, tick=tick))
        if model is not None:
            samples = samples.only(model)
        if to == "samples":
            samples.write(out)
        else:
            every_eval_ever.write(samples, out)
    if not quiet:
        from forgetmap.base.words import clean

        typer.echo(clean(f"{out}: {len(samples):,} samples of {', '.join(samples.models)}"))
