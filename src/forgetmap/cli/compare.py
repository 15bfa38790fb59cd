"""`forgetmap compare`: map what was lost and gained between two logs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forgetmap.cli.options import (
    Column,
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
    name_value_pairs,
    progress,
    write_map,
)

if TYPE_CHECKING:
    from forgetmap.capabilities.judge import Judge
    from forgetmap.map.result import ForgettingMap


def compare(
    before: Annotated[
        str,
        typer.Argument(
            metavar="BEFORE", help="Log of the model before: file, folder, or baseline:NAME."
        ),
    ],
    after: Annotated[
        str, typer.Argument(metavar="AFTER", help="Log of the model after post-training.")
    ],
    before_model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Model to take from a log that holds several."),
    ] = None,
    after_model: Annotated[
        str | None, typer.Option(metavar="NAME", help="The same for the log after.")
    ] = None,
    task_map: Annotated[
        str | None,
        typer.Option(
            metavar="MAP",
            help="Categories of the tasks: CSV or YAML file, or built in: post-forget, "
            "post-forget-published.",
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Metric for all tasks, or TASK=NAME; may be repeated."),
    ] = None,
    threshold: Threshold = None,
    margin: Margin = 0.02,
    identity: Identity = "content",
    engine: Annotated[
        str,
        typer.Option(
            metavar="duckdb|spark",
            help="What pairs the items. spark reads Samples Parquet wherever Spark can.",
        ),
    ] = "duckdb",
    column: Column = None,
    before_column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NEED=NAME",
            help="The same for the log before alone: one table may hold two models.",
        ),
    ] = None,
    after_column: Annotated[
        list[str] | None,
        typer.Option(metavar="NEED=NAME", help="The same for the log after alone."),
    ] = None,
    gate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LIMIT|FILE",
            help="Exit with code 1 if the limit is surely broken: max-forgetting=0.03, "
            "max-drop=0.02, or a policy file (see forgetmap gate).",
        ),
    ] = None,
    compat: Annotated[
        str | None,
        typer.Option(metavar="PROTOCOL", help="post-forget: add the published pipeline's table."),
    ] = None,
    causes: Annotated[
        bool,
        typer.Option("--causes", help="Say why items were lost. Reads the answers."),
    ] = False,
    summarise: Annotated[
        bool,
        typer.Option(
            "--summarise", help="Group the lost items by task, cause and wording, in words."
        ),
    ] = False,
    judge: Annotated[
        str | None,
        typer.Option(
            metavar="URL#MODEL",
            help="With --summarise: a model that says one sentence about each group.",
        ),
    ] = None,
    json: Json = None,
    csv: Annotated[
        Path | None,
        typer.Option(readable=False, metavar="FILE", help="Write all cells as a CSV table."),
    ] = None,
    latex: Annotated[
        Path | None,
        typer.Option(readable=False, metavar="FILE", help="Write the paper's table layout."),
    ] = None,
    flips: Annotated[
        Path | None,
        typer.Option(
            readable=False,
            metavar="FILE",
            help="Write every item that changed: .csv, .jsonl or .parquet.",
        ),
    ] = None,
    report: Report = None,
    save: Annotated[
        Path | None,
        typer.Option(
            readable=False, metavar="FOLDER", help="Save the comparison for forgetmap serve."
        ),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(
            readable=False, metavar="FOLDER", help="Write figures for a paper: SVG, PNG, LaTeX."
        ),
    ] = None,
    log: Annotated[
        list[str] | None,
        typer.Option(
            metavar="wandb|mlflow",
            help="Log numbers, lost items and the report to an experiment tracker.",
        ),
    ] = None,
    new: New = None,
    trained_on: Annotated[
        Path | None,
        typer.Option(
            readable=False,
            metavar="FILE",
            help="Training data as JSON lines; items that they ask count as new.",
        ),
    ] = None,
    noise_before: Annotated[
        str | None,
        typer.Option(metavar="LOG", help="Second run of the model before; measures its noise."),
    ] = None,
    noise_after: Annotated[
        str | None, typer.Option(metavar="LOG", help="The same for the model after.")
    ] = None,
    deterministic: Deterministic = False,
    draws: Annotated[int, typer.Option(help="Draws of the test for clusters.")] = 10_000,
    seed: Seed = 0,
    verbose: Annotated[bool, typer.Option("--verbose", help="List every note.")] = False,
    quiet: Quiet = False,
) -> None:
    """Map what was lost and gained between two logs.

    Reads what the evaluation harness wrote (lm-eval, lighteval, Inspect, HELM, OpenCompass and
    more), forgetmap's own Parquet, and any CSV, JSONL or Parquet table. Exit codes: 0 fine,
    1 a gate is broken, 2 bad input, 3 no honest answer is possible, 70 an internal error.

    Examples:

      forgetmap compare runs/base runs/tuned

      forgetmap compare runs/base runs/tuned --gate max-forgetting=0.03 --json map.json

      forgetmap compare runs/base runs/tuned --new airports --noise-before runs/base-again

      forgetmap compare before.csv after.csv --column score=is_right --flips lost.csv
    """
    from forgetmap.api import compare as run
    from forgetmap.cli.gate import show_judgement
    from forgetmap.gate import judgement as gates_of
    from forgetmap.gate.baseline import log_or_baseline

    with clear_errors(), progress(quiet, Path(before), Path(after)) as tick:
        limits, policy = gates_of.split_gates(gate or [])
        check_outputs([json, csv, latex, flips, report], [Path(before), Path(after)])
        result = run(
            before if engine == "spark" else log_or_baseline(before),
            after,
            before_model=before_model,
            after_model=after_model,
            task_map=task_map,
            metric=_metrics(metric or []),
            threshold=threshold,
            margin=margin,
            identity=identity,  # type: ignore[arg-type]  # checked by the library
            engine=engine,
            columns=name_value_pairs(column or [], "--column"),
            before_columns=name_value_pairs(before_column or [], "--before-column"),
            after_columns=name_value_pairs(after_column or [], "--after-column"),
            compat=compat,
            causes=causes or bool(log) or (policy is not None and policy.needs_causes),
            flips=flips,
            report=report,
            save=save,
            summarise=_summary(summarise, judge),
            new=new or (),
            trained_on=trained_on,
            noise_before=noise_before,
            noise_after=noise_after,
            deterministic=deterministic,
            draws=draws,
            seed=seed,
            tick=tick,
        )
    with clear_errors():
        write_map(result, json, csv, latex, figures)
        _track(result, log or [])
        gates = gates_of.check_gate(result, limits)
        judgement = gates_of.judge(result, policy) if policy else None
    if not quiet and str(json) != "-":
        from forgetmap.views.terminal import maps as terminal
        from forgetmap.views.terminal.console import open_console

        terminal.print_map(result, open_console(), gates, verbose=verbose)
    if judgement:
        show_judgement(judgement, quiet=quiet or str(json) == "-")
    if not all(gate_result.holds for gate_result in gates):
        raise typer.Exit(1)
    if judgement:
        raise typer.Exit(judgement.exit_code)


def _track(result: ForgettingMap, trackers: list[str]) -> None:
    if trackers:
        from forgetmap.views.trackers import log_map

        for tracker in trackers:
            typer.echo(log_map(result, tracker), err=True)


def _metrics(options: list[str]) -> dict[str, str] | str | None:
    if len(options) == 1 and "=" not in options[0]:
        return options[0]
    return name_value_pairs(options, "--metric") or None


def _summary(summarise: bool, endpoint: str | None) -> bool | Judge:
    """Whether to group what was lost, and which judge tells of the groups."""
    if endpoint is None:
        return summarise
    if not summarise:
        from forgetmap.base.errors import InputError

        raise InputError("--judge tells of the groups of --summarise; give both")
    from forgetmap.cli.score import make_judge

    return make_judge(endpoint, Path("forgetmap.judge.sqlite"))
