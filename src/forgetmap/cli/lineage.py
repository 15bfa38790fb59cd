"""`forgetmap lineage`: trace forgetting across a pipeline of checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forgetmap.cli.options import (
    Deterministic,
    Identity,
    Json,
    Margin,
    New,
    Quiet,
    Report,
    Seed,
    Threshold,
    check_outputs,
    clear_errors,
    progress,
    write_json,
)

if TYPE_CHECKING:
    from forgetmap.lineage.pipeline import Pipeline


def lineage(
    pipeline: Annotated[
        Path,
        typer.Argument(
            readable=False,
            metavar="PIPELINE",
            help="A pipeline file, or a folder with one log per checkpoint of a training run.",
        ),
    ],
    task_map: Annotated[
        str | None,
        typer.Option(metavar="MAP", help="Categories of the tasks, as for compare."),
    ] = None,
    metric: Annotated[
        str | None, typer.Option(metavar="NAME", help="Metric to take, for all tasks.")
    ] = None,
    threshold: Threshold = None,
    margin: Margin = 0.02,
    identity: Identity = "content",
    json: Json = None,
    csv: Annotated[
        Path | None,
        typer.Option(readable=False, metavar="FILE", help="Write all cells as a CSV table."),
    ] = None,
    flips: Annotated[
        Path | None,
        typer.Option(
            readable=False, metavar="FILE", help="Write every item that changed at a step, as CSV."
        ),
    ] = None,
    lives: Annotated[
        Path | None,
        typer.Option(
            readable=False, metavar="FILE", help="Write the life line of every item, as CSV."
        ),
    ] = None,
    report: Report = None,
    new: New = None,
    deterministic: Deterministic = False,
    draws: Annotated[int, typer.Option(help="Draws of the test for clusters.")] = 1000,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Trace forgetting across a pipeline of checkpoints, or along one training run.

    Gives a map for every step and for every checkpoint against the root, the life line of every
    item, where on the way each category lost most, what merges kept of their parents, and curves
    over steps, tokens, merge weight or learning rate.

    Examples:

      forgetmap lineage pipeline.yaml --report lineage.html

      forgetmap lineage runs/sft/checkpoints --csv cells.csv --flips flips.csv
    """
    with clear_errors():
        from forgetmap.api import lineage as trace
        from forgetmap.lineage.pipeline import open_pipeline
        from forgetmap.map.comparison import check_identity

        check_identity(identity)
        stages = open_pipeline(pipeline)
        logs = _logs(stages)
        check_outputs([json, csv, flips, lives, report], [pipeline, *logs])
        with progress(quiet, *logs) as tick:
            result = trace(
                stages,
                task_map=task_map,
                metric=metric,
                threshold=threshold,
                margin=margin,
                identity=identity,
                csv=csv,
                flips=flips,
                lives=lives,
                report=report,
                new=new or (),
                deterministic=deterministic,
                draws=draws,
                seed=seed,
                tick=tick,
            )
        write_json(json, result.to_json())
    if not quiet and str(json) != "-":
        from forgetmap.views.terminal.console import open_console
        from forgetmap.views.terminal.lineage import print_lineage

        print_lineage(result, open_console())


def _logs(pipeline: Pipeline) -> list[Path]:
    """Every log once, for the progress bar and the check of the outputs."""
    return list(dict.fromkeys(Path(checkpoint.log) for checkpoint in pipeline.checkpoints.values()))
