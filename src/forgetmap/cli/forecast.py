"""`forgetmap forecast`: what a training will cost, before it is paid for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from forgetmap.cli.options import (
    Json,
    New,
    Quiet,
    answer_bar,
    check_outputs,
    clear_errors,
    write_json,
)


def forecast(
    before: Annotated[
        Path,
        typer.Argument(
            readable=False, metavar="BEFORE_LOG", help="Log of the model that will be trained."
        ),
    ],
    history: Annotated[
        Path | None,
        typer.Option(
            readable=False,
            metavar="STUDY",
            help="A study of earlier trainings to learn from. Without it, curves that were fitted "
            "to forgetmap's own study are used.",
        ),
    ] = None,
    trained_on: Annotated[
        Path | None,
        typer.Option(
            readable=False,
            metavar="DATA",
            help="The new training data as JSON lines: items that they ask are left out, and each "
            "other item gets its likeness to them.",
        ),
    ] = None,
    task_map: Annotated[
        str | None,
        typer.Option(metavar="MAP", help="Categories of the tasks; else the study's, else tasks."),
    ] = None,
    new: New = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            readable=False,
            metavar="FILE",
            help="Write a risk for each item: risks.parquet.",
        ),
    ] = None,
    probe: Annotated[
        Path | None,
        typer.Option(
            readable=False,
            metavar="MODEL",
            help="Train this model, the one before, for 16 steps on --trained-on, ask it, "
            "and throw it away. The risks then know what it lost. Needs --suite and --out.",
        ),
    ] = None,
    learning_rate: Annotated[
        float | None,
        typer.Option(metavar="RATE", help="Of your training, for --probe; 5e-5 by default."),
    ] = None,
    probed: Annotated[
        Path | None,
        typer.Option(
            readable=False,
            metavar="LOG",
            help="The log of a probe that you ran yourself: 16 steps of your own recipe.",
        ),
    ] = None,
    suite: Annotated[
        list[str] | None,
        typer.Option(metavar="SUITE", help="The questions of the log, for --probe."),
    ] = None,
    check: Annotated[
        Path | None,
        typer.Option(
            readable=False,
            metavar="AFTER_LOG",
            help="Compare an earlier forecast (--risks) with what then happened.",
        ),
    ] = None,
    risks: Annotated[
        Path | None,
        typer.Option(readable=False, metavar="FILE", help="The forecast to check."),
    ] = None,
    seen: Annotated[
        Path | None,
        typer.Option(
            readable=False,
            metavar="LOG",
            help="Where --check asked chosen items while a model is trained: the last log that "
            "asked all. Totals are sharper the less changed since.",
        ),
    ] = None,
    json: Json = None,
    quiet: Quiet = False,
) -> None:
    """Forecast which items a training will cost, and check the forecast afterwards.

    Examples:

      forgetmap forecast runs/base --history study.yaml --out risks.parquet

      forgetmap forecast runs/base --trained-on new.jsonl --out risks.parquet --probe models/base \
        --suite atlas --learning-rate 2e-5

      forgetmap forecast runs/base --probed runs/after-16-steps --out risks.parquet

      forgetmap replay --risks risks.parquet --log runs/base --pool mine.jsonl --budget 500

      forgetmap forecast runs/base --risks risks.parquet --check runs/tuned

      forgetmap forecast runs/base --risks risks.parquet --check runs/step-900 --seen runs/step-800
    """
    with clear_errors(), answer_bar(quiet, "trainings") as progress:
        from forgetmap.base.errors import InputError

        check_outputs([out, json], [path for path in (risks, trained_on) if path])
        if (check is None) != (risks is None):
            raise InputError("--check AFTER_LOG and --risks FILE go together")
        if seen is not None and check is None:
            raise InputError("--seen LOG: says what a check leans on; it needs --check and --risks")
        if (probe is None) != (suite is None) or (probe and not (trained_on and out)):
            raise InputError("--probe MODEL needs --suite, --trained-on and --out, and --suite it")
        if (learning_rate is not None and not probe) or (probe and probed):
            raise InputError("--learning-rate is for --probe MODEL, which --probed LOG stands for")
        if learning_rate is not None and not learning_rate > 0:
            raise InputError(f"--learning-rate {learning_rate:g}: must be above 0")
        told: object
        if check is not None and risks is not None:
            if history or trained_on or task_map or new or out or probe or probed:
                raise InputError("--check looks at a forecast that was made; leave the rest out")
            told = _checked(risks, before, check, seen)
        else:
            how: dict[str, Any] = {"history": history, "task_map": task_map, "new": new or ()}
            how["tick"] = progress
            if probe and suite and trained_on and out:
                from forgetmap.mitigate.forecast.probe import forecast_by_probe

                about = before, probe, trained_on, suite, out
                told = forecast_by_probe(*about, learning_rate=learning_rate, **how)
            else:
                from forgetmap.mitigate.forecast.build import forecast as run

                told = run(before, trained_on=trained_on, probe=probed, out=out, **how)
        write_json(json, told.to_json())  # type: ignore[attr-defined]
    if not quiet and str(json) != "-":
        from forgetmap.views.terminal.console import open_console
        from forgetmap.views.terminal.forecast import print_forecast

        print_forecast(told, open_console())  # type: ignore[arg-type]


def _checked(risks: Path, before: Path, after: Path, seen: Path | None) -> object:
    """A check item by item, or by weights where only chosen items were asked."""
    from forgetmap.base.errors import InputError
    from forgetmap.mitigate.forecast.build import check_forecast
    from forgetmap.mitigate.forecast.sampling import CHOSEN_FILE, read_chosen, weigh

    if after.is_dir() and (after / CHOSEN_FILE).is_file():
        return weigh(read_chosen(after), before, after, seen)
    if seen is not None:
        raise InputError(f"--seen: {after} asked all items, so it leans on nothing; leave it out")
    return check_forecast(risks, before, after)
