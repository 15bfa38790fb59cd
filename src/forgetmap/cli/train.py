"""`forgetmap train`: train by a recipe that forgets less, and map what was lost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forgetmap.cli.options import (
    Device,
    Dtype,
    Json,
    Limit,
    New,
    Quiet,
    Tasks,
    answer_bar,
    check_outputs,
    clear_errors,
    name_value_pairs,
    write_json,
)

if TYPE_CHECKING:
    from forgetmap.mitigate.train.runs import TrainingFile


def train(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL|FILE", help="The folder of the model before, or a training file (.yaml)."
        ),
    ],
    method: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="sft, replay, anchor, retention, pull-back, sdft or dpo. By default sft.",
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(readable=False, metavar="FILE", help="The new task, as JSON lines."),
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="What is to be kept: old examples as JSON lines; for retention, a suite.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", readable=False, metavar="FOLDER", help="Where all goes and is resumed from."
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A number of the recipe: steps, batch, learning_rate, lora, accumulate, weight, "
            "share, save_every, seed and others; may be repeated.",
        ),
    ] = None,
    trainer: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Another argument of TRL's configuration, e.g. weight_decay=0.01.",
        ),
    ] = None,
    sweep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=A,B,C",
            help="Train once with each value, and show what each loses and learns; may be "
            "repeated.",
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="lost=SHARE",
            help="Share of the old items that may be lost: a run is rolled back that surely loses "
            "more, a sweep picks a point within it.",
        ),
    ] = None,
    every: Annotated[
        int | None, typer.Option(metavar="STEPS", help="Look at what is lost while training.")
    ] = None,
    suite: Annotated[
        list[str] | None,
        typer.Option(metavar="SUITE", help="What to ask before and after. By default atlas."),
    ] = None,
    tasks: Tasks = None,
    limit: Limit = None,
    new: New = None,
    dtype: Dtype = "auto",
    device: Device = None,
    json: Json = None,
    quiet: Quiet = False,
) -> None:
    """Train by a recipe that forgets less, ask the model before and after, and map the loss.

    OUT gets the trained model, the answers before and after, the map, a report and a lineage. The
    same command again goes on where the last one was stopped, and repeats nothing. Options win
    over what a file says. On several cards: accelerate launch -m forgetmap train ...

    Examples:

      forgetmap train runs/base --data new.jsonl --method anchor --keep old.jsonl
      --set learning_rate=1e-4 --set steps=300 --new 'airports*' --budget lost=0.02

      forgetmap train runs/base --data new.jsonl --method anchor --keep old.jsonl
      --sweep learning_rate=2e-5,1e-4 --sweep weight=0.5,1 --budget lost=0.02

      forgetmap train train.yaml
    """
    with clear_errors(), answer_bar(quiet) as progress:
        from forgetmap.evaluate.models import Running
        from forgetmap.mitigate.train.runs import Run, TrainingFile

        check_outputs([json], [])
        changes = {
            "method": method,
            "data": str(data) if data else None,
            "keep": keep,
            "out": str(out) if out else None,
            "set": name_value_pairs(set_ or [], "--set"),
            "trainer": _values(name_value_pairs(trainer or [], "--trainer")),
            "sweep": _lists(name_value_pairs(sweep or [], "--sweep")),
            "budget": _share(budget),
            "every": every,
            "suite": suite,
            "tasks": tasks,
            "limit": limit,
            "new": new,
        }
        given = {name: value for name, value in changes.items() if value}
        if Path(model).suffix in (".yaml", ".yml"):
            plan = TrainingFile.load(model, given)
        else:
            plan = TrainingFile.of({"model": model, **given})
        run = Run(plan, Running(dtype, device), _teller(quiet), progress)
        shown = quiet or str(json) == "-"
        _sweep(run, json, shown) if plan.sweep else _single(run, plan, json, shown)


def _single(run: Any, plan: TrainingFile, json: Path | None, quiet: bool) -> None:
    from forgetmap.views.html.report import write_report
    from forgetmap.views.terminal import maps as terminal
    from forgetmap.views.terminal.console import open_console

    found = run.train()
    if found is None:
        return
    report = run.out / "report.html"
    write_report(found, report)
    write_json(json, found.map.to_json())
    if quiet:
        return
    terminal.print_map(found.map, open_console())
    typer.echo(f"\nThe model: {run.out / 'model'}\nThe report: {report}")
    lineage = run.out / "probes" if (run.out / "probes").is_dir() else run.out / "pipeline.yaml"
    typer.echo(f"Its steps: forgetmap lineage {lineage}")
    if plan.budget and found.map.old.lost.low > plan.budget:
        typer.echo(f"forgetmap: more than {plan.budget:.1%} of the old items is lost", err=True)


def _sweep(run: Any, json: Path | None, quiet: bool) -> None:
    from forgetmap.views.terminal.console import open_console
    from forgetmap.views.terminal.train_sweep import print_train_sweep

    result = run.sweep()
    if result is None:
        return
    write_json(json, result.to_json())
    if not quiet:
        print_train_sweep(result, open_console())


def _teller(quiet: bool) -> Any:
    return (lambda _text: None) if quiet else (lambda text: typer.echo(text, err=True))


def _share(text: str | None) -> float | None:
    """The share of `lost=0.02`, or of the number alone."""
    from forgetmap.base.errors import InputError

    if text is None:
        return None
    try:
        share = float(text.removeprefix("lost="))
    except ValueError:
        share = -1.0
    if not 0 < share <= 1:
        raise InputError(f"--budget {text}: write lost=SHARE, e.g. lost=0.02")
    return share


def _values(pairs: dict[str, str]) -> dict[str, Any]:
    """Values as YAML reads them, and numbers such as 1e-4, which it takes for text."""
    return {name: _value(text) for name, text in pairs.items()}


def _lists(pairs: dict[str, str]) -> dict[str, list[Any]]:
    return {name: [_value(part) for part in text.split(",")] for name, text in pairs.items()}


def _value(text: str) -> Any:
    import yaml

    try:
        return float(text) if "e" in text.lower() else yaml.safe_load(text)
    except (ValueError, yaml.YAMLError):
        return text
