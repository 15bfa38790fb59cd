"""`forgetmap plan`: what a comparison could show, before anybody pays for it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from forgetmap.cli.options import Json, Quiet, Seed, busy, clear_errors, write_json


def plan(
    log: Annotated[
        Path | None,
        typer.Argument(
            metavar="[LOG]", help="Log of the model before: takes its items, repeats and spread."
        ),
    ] = None,
    items: Annotated[
        int | None, typer.Option(metavar="N", help="Items that both models answer.")
    ] = None,
    repeats: Annotated[
        int | None, typer.Option(metavar="N", help="Runs of each model at a temperature above 0.")
    ] = None,
    loss: Annotated[
        float, typer.Option(metavar="SHARE", help="The loss that you want to see.")
    ] = 0.02,
    gain: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Gained elsewhere; by default as much as is lost."),
    ] = None,
    margin: Annotated[
        float, typer.Option(metavar="SHARE", help="Losses up to this size do not matter.")
    ] = 0.0,
    accuracy: Annotated[
        float, typer.Option(metavar="SHARE", help="Accuracy before, where no log is given.")
    ] = 0.5,
    options: Annotated[
        bool, typer.Option("--options", help="The log has probabilities of options.")
    ] = False,
    json: Json = None,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Say what a comparison can show with so many items and repeats. By simulation.

    Examples:

      forgetmap plan --items 2000 --repeats 3 --loss 0.02

      forgetmap plan --items 500 --options --loss 0.05

      forgetmap plan runs/base --loss 0.02
    """
    from forgetmap.base.errors import InputError
    from forgetmap.map.planning import Evidence, model_of_log, usual_model
    from forgetmap.map.planning import plan as run
    from forgetmap.readers.registry import read

    with clear_errors(), busy(quiet, "simulating"):
        model, known_items, known_repeats = usual_model(accuracy), None, 1
        evidence: Evidence | None = "options" if options else None
        if log is not None:
            model, known_items, known_repeats, found = model_of_log(read(log).only(None))
            evidence = evidence or (found if repeats is None else None)
        size = known_items if items is None else items
        if size is None:
            raise InputError("give --items N, or a log of the model before")
        result = run(
            items=size,
            repeats=known_repeats if repeats is None else repeats,
            loss=loss,
            evidence=evidence,
            model=model,
            gain=gain,
            margin=margin,
            seed=seed,
        )
        write_json(json, result.model_dump_json(indent=2))
    if not quiet and str(json) != "-":
        from forgetmap.views.terminal.console import open_console
        from forgetmap.views.terminal.plan import print_plan

        print_plan(result, open_console())
