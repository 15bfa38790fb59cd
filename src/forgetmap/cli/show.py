"""`forgetmap show`: what a log holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from forgetmap.cli.options import (
    Column,
    Json,
    Quiet,
    check_outputs,
    clear_errors,
    name_value_pairs,
    progress,
    write_json,
)


def show(
    path: Annotated[
        Path, typer.Argument(readable=False, metavar="PATH", help="A log: file or folder.")
    ],
    model: Annotated[str | None, typer.Option(metavar="NAME", help="Only this model.")] = None,
    column: Column = None,
    above_chance: Annotated[
        bool,
        typer.Option(
            "--above-chance",
            help="Also say on which tasks the model is clearly above chance (5 %, Holm).",
        ),
    ] = False,
    json: Json = None,
    quiet: Quiet = False,
) -> None:
    """Show what a log holds: harness, models, tasks, items, repeats, metrics, problems."""
    from forgetmap.readers.framework import ReadOptions
    from forgetmap.readers.summary import show as run
    from forgetmap.views.terminal import maps as terminal
    from forgetmap.views.terminal.console import open_console

    with clear_errors(), progress(quiet, path) as tick:
        check_outputs([json], [path])
        how = ReadOptions(columns=name_value_pairs(column or [], "--column"), tick=tick)
        summary = run(path, model=model, how=how)
    with clear_errors():
        write_json(json, summary.model_dump_json(indent=2))
    if not quiet and str(json) != "-":
        terminal.print_log(summary, open_console())
        if above_chance:
            terminal.print_above_chance(summary, open_console())
