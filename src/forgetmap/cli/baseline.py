"""`forgetmap baseline`: frozen reference logs, and what was compared with them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from forgetmap.cli.gate import (
    JUnit,
    Markdown,
    PolicyFile,
    _echo,
    show_judgement,
    write_judgement,
)
from forgetmap.cli.help import Group
from forgetmap.cli.options import (
    Json,
    New,
    Quiet,
    check_outputs,
    clear_errors,
    progress,
    write_json,
)

baseline = Group(
    "baseline",
    help="Keep a frozen reference and compare new checkpoints with it.",
    no_args_is_help=True,
)


Store = Annotated[
    Path,
    typer.Option("--store", readable=False, metavar="FOLDER", help="Where baselines are kept."),
]


_STORE = Path(".forgetmap/baselines")


Name = Annotated[str, typer.Argument(metavar="NAME", help="The baseline's name.")]


@baseline.command()
def save(
    name: Name,
    log: Annotated[
        Path, typer.Argument(readable=False, metavar="LOG", help="Log of the reference model.")
    ],
    model: Annotated[str | None, typer.Option(metavar="NAME", help="Only this model.")] = None,
    text: Annotated[
        bool, typer.Option("--text/--no-text", help="Keep prompts and answers, which causes need.")
    ] = True,
    store: Store = _STORE,
    quiet: Quiet = False,
) -> None:
    """Freeze a log as the reference NAME."""
    from forgetmap.gate.baseline import save_baseline

    with clear_errors(), progress(quiet, log) as tick:
        kept = save_baseline(name, log, store=store, model=model, text=text, tick=tick)
    if not quiet:
        _echo(f"{kept.name}: {kept.samples:,} samples of {kept.model}, sha256 {kept.sha256[:12]}")


@baseline.command("list")
def list_(store: Store = _STORE, json: Json = None) -> None:
    """List the baselines, each with its checksum verified."""
    import orjson

    from forgetmap.gate.baseline import list_baselines

    with clear_errors():
        baselines = list_baselines(store)
        facts = [entry.model_dump() for entry in baselines]
        write_json(json, orjson.dumps(facts, option=orjson.OPT_INDENT_2).decode())
    if str(json) == "-":
        return
    for kept in baselines:
        _echo(
            f"{kept.name}: {kept.samples:,} samples of {kept.model} ({kept.harness}), "
            f"{kept.saved}, sha256 {kept.sha256[:12]}"
        )
    if not baselines:
        _echo(f"{store}: no baseline yet; make one with forgetmap baseline save NAME LOG")


@baseline.command("compare")
def compare_(
    name: Name,
    log: Annotated[
        Path, typer.Argument(readable=False, metavar="LOG", help="Log of the new checkpoint.")
    ],
    model: Annotated[str | None, typer.Option(metavar="NAME", help="Only this model.")] = None,
    task_map: Annotated[
        str | None, typer.Option(metavar="MAP", help="Categories of the tasks.")
    ] = None,
    causes: Annotated[bool, typer.Option("--causes", help="Say why items were lost.")] = False,
    new: New = None,
    policy: PolicyFile = None,
    junit: JUnit = None,
    markdown: Markdown = None,
    store: Store = _STORE,
    json: Json = None,
    quiet: Quiet = False,
) -> None:
    """Compare a log with a baseline, store the result, and judge it if you give a policy."""
    from forgetmap.base.errors import InputError
    from forgetmap.gate.baseline import compare_with_baseline
    from forgetmap.gate.policy import Policy
    from forgetmap.views.terminal import maps as terminal
    from forgetmap.views.terminal.console import open_console

    with clear_errors(), progress(quiet, log) as tick:
        if policy is None and (junit or markdown):
            raise InputError("--junit and --markdown show a verdict; give a --policy")
        check_outputs([json, junit, markdown], [log, *([policy] if policy else [])])
        rules = Policy.load(policy) if policy else None
        result, judgement = compare_with_baseline(
            name,
            log,
            store=store,
            policy=rules,
            after_model=model,
            task_map=task_map,
            causes=causes,
            new=new or (),
            tick=tick,
        )
    with clear_errors():
        write_json(json, result.to_json())
        if judgement:
            write_judgement(judgement, result, junit, markdown)
    silent = quiet or str(json) == "-"
    if not silent:
        terminal.print_map(result, open_console())
    if judgement:
        show_judgement(judgement, quiet=silent)
        raise typer.Exit(judgement.exit_code)


@baseline.command()
def trend(
    name: Name,
    report: Annotated[
        Path, typer.Option(readable=False, metavar="FILE", help="The page to write.")
    ] = Path("trend.html"),
    store: Store = _STORE,
) -> None:
    """Write a page that shows every comparison with a baseline over time."""
    from forgetmap.views.html.trend import write_trend

    with clear_errors():
        count = write_trend(name, report, store=store)
    typer.echo(f"{report}: {count:,} comparisons")
