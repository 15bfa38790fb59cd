"""The command line: arguments in, one library call, rendering out.

Only typer is imported at the top; each command imports what it needs, so that `--help` is quick.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forgetmap.capabilities.cli import capabilities, drift, score
from forgetmap.capabilities.suite_cli import suite
from forgetmap.cli_tools import (
    Identity,
    Json,
    Margin,
    Quiet,
    Report,
    Seed,
    Threshold,
    check_outputs,
    clear_errors,
    progress,
    write_json,
)
from forgetmap.evaluate.cli import evaluate, fetch_model
from forgetmap.gate_cli import baseline
from forgetmap.gate_cli import gate as gate_commands
from forgetmap.lineage.cli import lineage
from forgetmap.mitigate.advise_cli import advise
from forgetmap.mitigate.merge_cli import merge
from forgetmap.mitigate.replay_cli import replay
from forgetmap.theory.cli import app as theory

if TYPE_CHECKING:
    from forgetmap.map import ForgettingMap

app = typer.Typer(
    name="forgetmap",
    help="Know what your post-training broke, why, and what to do about it.",
    epilog="Start with: forgetmap demo   ·   then: forgetmap compare LOG_BEFORE LOG_AFTER",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Column = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="NEED=NAME",
        help="For CSV, JSONL and Parquet tables: which column holds what, e.g. score=is_right, "
        "question=prompt, id=uid, repeat=seed. Guessed where not given.",
    ),
]


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from forgetmap import __version__

        typer.echo(f"forgetmap {__version__}")
        raise typer.Exit


@app.command()
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
        str | None, typer.Option(metavar="NAME", help="Likewise, after.")
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
    threshold: Threshold = 0.5,
    margin: Margin = 0.02,
    identity: Identity = "content",
    engine: Annotated[
        str,
        typer.Option(
            metavar="duckdb|spark",
            help="What pairs the items; spark reads Samples Parquet from wherever Spark can.",
        ),
    ] = "duckdb",
    column: Column = None,
    gate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LIMIT|FILE",
            help="Exit with code 1 if surely broken: max-forgetting=0.03, max-drop=0.02, or a "
            "policy file (see forgetmap gate).",
        ),
    ] = None,
    compat: Annotated[
        str | None,
        typer.Option(metavar="PROTOCOL", help="post-forget: add the published pipeline's table."),
    ] = None,
    causes: Annotated[
        bool, typer.Option("--causes", help="Say why items were lost; reads the answers' text.")
    ] = False,
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
            readable=False, metavar="FOLDER", help="Keep the comparison for forgetmap serve."
        ),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(
            readable=False, metavar="FOLDER", help="Write figures for a paper: SVG, PNG, LaTeX."
        ),
    ] = None,
    draws: Annotated[int, typer.Option(help="Bootstrap draws.")] = 10_000,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Map what was forgotten and gained between two logs.

    Reads what the evaluation harness wrote (lm-eval, lighteval, Inspect, HELM, OpenCompass and
    more), forgetmap's own Parquet, and any CSV, JSONL or Parquet table. Exit codes: 0 fine,
    1 a gate is broken, 2 bad input, 3 no honest answer possible.

    Examples:

      forgetmap compare runs/base runs/tuned

      forgetmap compare runs/base runs/tuned --gate max-forgetting=0.03 --json map.json

      forgetmap compare before.csv after.csv --column score=is_right --flips lost.csv
    """
    from forgetmap.baseline import log_or_baseline
    from forgetmap.comparison import compare as run
    from forgetmap.gate import check_gate, judge, split_gates
    from forgetmap.gate_cli import show_judgement

    with clear_errors(), progress(quiet, Path(before), Path(after)) as tick:
        limits, policy = split_gates(gate or [])
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
            columns=_pairs(column or [], "--column"),
            compat=compat,
            causes=causes or (policy is not None and policy.needs_causes),
            flips=flips,
            report=report,
            save=save,
            draws=draws,
            seed=seed,
            tick=tick,
        )
    with clear_errors():
        _write_outputs(result, json, csv, latex, figures)
        gates = check_gate(result, limits)
        judgement = judge(result, policy) if policy else None
    if not quiet and str(json) != "-":
        from forgetmap import terminal

        terminal.print_map(result, terminal.console(), gates)
    if judgement:
        show_judgement(judgement, quiet=quiet or str(json) == "-")
    if not all(found.holds for found in gates):
        raise typer.Exit(1)
    if judgement:
        raise typer.Exit(judgement.exit_code)


@app.command()
def show(
    path: Annotated[
        Path, typer.Argument(readable=False, metavar="PATH", help="A log: file or folder.")
    ],
    model: Annotated[str | None, typer.Option(metavar="NAME", help="Only this model.")] = None,
    column: Column = None,
    json: Json = None,
    quiet: Quiet = False,
) -> None:
    """Show what a log holds: harness, models, tasks, items, repeats, metrics, problems."""
    from forgetmap import terminal
    from forgetmap.readers import ReadOptions
    from forgetmap.show import show as run

    with clear_errors(), progress(quiet, path) as tick:
        check_outputs([json], [path])
        how = ReadOptions(columns=_pairs(column or [], "--column"), tick=tick)
        summary = run(path, model=model, how=how)
    with clear_errors():
        write_json(json, summary.model_dump_json(indent=2))
    if not quiet and str(json) != "-":
        terminal.print_log(summary, terminal.console())


@app.command()
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
    from forgetmap.errors import InputError
    from forgetmap.readers import ReadOptions, every_eval_ever, read

    with clear_errors(), progress(quiet, path) as tick:
        if to not in ("samples", "every-eval-ever"):
            raise InputError(f"--to {to}: known are samples, every-eval-ever")
        if to == "samples":
            if out.suffix != ".parquet":
                raise InputError(f"{out}: the name must end in .parquet")
            check_outputs([out], [path])
        columns = _pairs(column or [], "--column")
        samples = read(path, ReadOptions(text=text, wording=True, columns=columns, tick=tick))
        if model is not None:
            samples = samples.only(model)
        if to == "samples":
            samples.write(out)
        else:
            every_eval_ever.write(samples, out)
    if not quiet:
        from forgetmap.terminal import clean

        typer.echo(clean(f"{out}: {len(samples):,} samples of {', '.join(samples.models)}"))


@app.command()
def demo(
    out: Annotated[
        Path, typer.Option(readable=False, metavar="FOLDER", help="Where to put the results.")
    ] = Path("forgetmap-demo"),
) -> None:
    """Map forgetting in the bundled example: a real small model, fine-tuned and mended."""
    from forgetmap import terminal
    from forgetmap.comparison import demo as run
    from forgetmap.comparison import example_logs, example_pipeline
    from forgetmap.files import make_folder
    from forgetmap.lineage.build import lineage as trace
    from forgetmap.lineage.terminal import print_tree

    console = terminal.console()
    with clear_errors():
        make_folder(out)
        traced = trace(example_pipeline(), report=out / "lineage.html")
        print_tree(traced, console)
        result = run(flips=out / "flips.csv", report=out / "report.html")
        _write_outputs(result, out / "map.json", out / "map.csv", out / "map.tex")
    terminal.print_map(result, console)
    before, after = example_logs()
    typer.echo(f"\nWritten to {out}/: report.html (the first step, for a browser), lineage.html")
    typer.echo("(all steps), flips.csv (items that changed), map.json, map.csv, map.tex. By hand:")
    typer.echo(f"  forgetmap compare {before} {after} --task-map {before.parents[1] / 'tasks.csv'}")
    typer.echo(f"  forgetmap lineage {example_pipeline()}")


@app.command()
def serve(
    paths: Annotated[
        list[Path],
        typer.Argument(
            readable=False,
            metavar="PATH...",
            help="Folders written by compare --save, or two logs: BEFORE AFTER.",
        ),
    ],
    task_map: Annotated[
        str | None, typer.Option(metavar="MAP", help="For two logs: categories of the tasks.")
    ] = None,
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes a free port.")] = 0,
    open_: Annotated[bool, typer.Option("--open", help="Open the browser.")] = False,
) -> None:
    """Look at comparisons of any size in the browser, on this machine only.

    Examples:

      forgetmap compare runs/base runs/tuned --save maps/tuned

      forgetmap serve maps/tuned --open
    """
    with clear_errors():
        from forgetmap.report.server import serve as run

        run(paths, host=host, port=port, open_browser=open_, say=typer.echo, task_map=task_map)


app.command()(lineage)
app.command("eval")(evaluate)
app.command("fetch-model")(fetch_model)
app.command()(merge)
app.command()(replay)
app.command()(advise)
app.command()(score)
app.command()(drift)

_capabilities = typer.Typer(
    invoke_without_command=True,
    rich_markup_mode=None,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_capabilities.callback()(capabilities)
_capabilities.command()(suite)
app.add_typer(_capabilities, name="capabilities")
app.add_typer(theory, name="theory")
app.add_typer(gate_commands, name="gate")
app.add_typer(baseline, name="baseline")


def main() -> None:
    """Entry point of the console script."""
    app()


def _write_outputs(
    result: ForgettingMap,
    json: Path | None,
    csv: Path | None,
    latex: Path | None,
    figures: Path | None = None,
) -> None:
    from forgetmap import tables
    from forgetmap.files import write_text

    write_json(json, result.to_json())
    if csv:
        write_text(csv, tables.to_csv(result))
    if latex:
        write_text(latex, tables.to_latex(result))
    if figures:
        from forgetmap.figures import write_figures

        write_figures(result, figures)


def _pairs(options: list[str], flag: str) -> dict[str, str]:
    from forgetmap.errors import InputError

    pairs = {}
    for option in options:
        name, equals, value = option.partition("=")
        if not (name and equals and value):
            raise InputError(f"{flag} {option}: write it as NAME=VALUE")
        pairs[name] = value
    return pairs


def _metrics(options: list[str]) -> dict[str, str] | str | None:
    if len(options) == 1 and "=" not in options[0]:
        return options[0]
    return _pairs(options, "--metric") or None
