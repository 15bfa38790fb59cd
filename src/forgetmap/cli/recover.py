"""`forgetmap recover`: is what was lost gone, or only hidden?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from forgetmap.cli.options import (
    Batch,
    Device,
    Dtype,
    Json,
    Quiet,
    Seed,
    batch_size,
    check_outputs,
    clear_errors,
    name_value_pairs,
    write_json,
)


def recover(
    saved: Annotated[
        Path,
        typer.Argument(
            readable=False, metavar="MAP", help="A comparison that compare --save wrote."
        ),
    ],
    model: Annotated[
        str | None,
        typer.Option(metavar="AFTER", help="The model after: a folder of weights."),
    ] = None,
    before: Annotated[
        Path | None,
        typer.Option(
            readable=False,
            metavar="BASE",
            help="The model before, for merges that have a tenth, a quarter, a half of it.",
        ),
    ] = None,
    suite: Annotated[
        list[str] | None,
        typer.Option(metavar="SUITE", help="The questions of the map; may be repeated."),
    ] = None,
    road: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=LOG",
            help="A log of the lost items that you made on a road of your own; may be repeated.",
        ),
    ] = None,
    most: Annotated[
        int, typer.Option(metavar="N", help="Lost items to ask again at most, and as many others.")
    ] = 500,
    out: Annotated[
        Path,
        typer.Option("--out", readable=False, metavar="FOLDER", help="Where the logs go."),
    ] = Path("forgetmap-recover"),
    seed: Seed = 0,
    dtype: Dtype = "auto",
    device: Device = None,
    batch: Batch = "auto",
    json: Json = None,
    quiet: Quiet = False,
) -> None:
    """Ask lost items again by three cheap roads, and say which losses were hidden.

    The roads: a few worked examples in the prompt; a tenth, a quarter and a half of the old weights
    merged in; ten training steps on other old items. Each also turns some items right that were
    never known. That is luck, and stands beside.

    Examples:

      forgetmap compare runs/base runs/tuned --save maps/tuned

      forgetmap recover maps/tuned --model models/tuned --before models/base --suite atlas

      forgetmap recover maps/tuned --road examples=runs/five-shot --road half=runs/merged
    """
    with clear_errors():
        from forgetmap.evaluate.models import Running
        from forgetmap.mitigate.recover import recover as run

        check_outputs([json], [])
        result = run(
            saved,
            roads=name_value_pairs(road or [], "--road"),
            model=model,
            before=before,
            suite=suite,
            out=out if model else None,
            most=most,
            running=Running(dtype, device, batch_size(batch)),
            seed=seed,
            tell=(lambda _text: None) if quiet else (lambda text: typer.echo(text, err=True)),
        )
        write_json(json, result.to_json())
    if not quiet and str(json) != "-":
        from forgetmap.views.terminal.console import open_console
        from forgetmap.views.terminal.recover import print_recovery

        print_recovery(result, open_console())
