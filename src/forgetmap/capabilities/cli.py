"""The commands on capabilities: `capabilities`, `score`, `drift`.

Only typer is imported at the top; each command imports what it needs, so that `--help` is quick.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forgetmap.cli_tools import Json, Quiet, Seed, check_outputs, clear_errors, write_json

if TYPE_CHECKING:
    from forgetmap.capabilities.judge import Judge

ManifestOption = Annotated[
    str,
    typer.Option(
        "--manifest",
        metavar="MANIFEST",
        help="Which capabilities by which metrics: captrack, open-suite, or a YAML file.",
    ),
]


def capabilities(
    context: typer.Context, manifest: ManifestOption = "captrack", json: Json = None
) -> None:
    """List capabilities and the metrics by which they are seen.

    Examples:

      forgetmap capabilities

      forgetmap capabilities --manifest mine.yaml --json -
    """
    if context.invoked_subcommand:
        return
    from forgetmap.capabilities.manifest import Manifest

    with clear_errors():
        check_outputs([json], [])
        found = Manifest.load(manifest)
        write_json(json, found.model_dump_json(indent=2))
    if str(json) != "-":
        from forgetmap import terminal
        from forgetmap.capabilities.terminal import print_manifest

        print_manifest(found, terminal.console())


def score(
    responses: Annotated[
        Path,
        typer.Argument(
            readable=False,
            metavar="RESPONSES",
            help="Stored answers: a CapTrack response folder, a table with the same columns and "
            "`task`, or a Samples file with its text.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option("--out", readable=False, metavar="FILE", help="The Parquet file to write."),
    ],
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The model's name, or which one where there are several."
        ),
    ] = None,
    manifest: ManifestOption = "captrack",
    judge: Annotated[
        str | None,
        typer.Option(
            metavar="URL#MODEL",
            help="An OpenAI-compatible endpoint and the model there, for metrics that need a "
            "judge; without it they are left out and listed.",
        ),
    ] = None,
    judge_price: Annotated[
        str | None,
        typer.Option(metavar="IN,OUT", help="Price of a million tokens in and out, for the cost."),
    ] = None,
    judge_failures: Annotated[
        float,
        typer.Option(metavar="SHARE", help="Judgements that may fail before the run stops."),
    ] = 0.01,
    rejudge: Annotated[
        int,
        typer.Option(help="Answers of each judged metric to judge twice, to see how steady it is."),
    ] = 20,
    quiet: Quiet = False,
) -> None:
    """Score stored answers: one row per item and metric, ready for `forgetmap drift`.

    What is finished is kept in OUT.parts/, so that a run that was stopped goes on where it was.

    Examples:

      forgetmap score runs/base --model base --out base.parquet

      forgetmap score runs/base --out base.parquet --judge http://localhost:8000/v1#judge-model
    """
    from forgetmap.capabilities.score import score_responses
    from forgetmap.errors import InputError

    with clear_errors(), _steps(quiet) as step:
        if out.suffix != ".parquet":
            raise InputError(f"--out {out}: the name must end in .parquet")
        check_outputs([out], [responses])
        asked = _judge(judge, out, judge_price, judge_failures) if judge else None
        scored = score_responses(
            responses,
            out,
            model=model,
            manifest=manifest,
            judge=asked,
            rejudge=rejudge,
            step=step,
        )
    if not quiet:
        from forgetmap import terminal
        from forgetmap.capabilities.terminal import print_scored

        print_scored(scored, out, terminal.console(), asked.usage if asked else None)


def drift(
    before: Annotated[
        Path,
        typer.Argument(
            readable=False, metavar="BEFORE", help="Scores of the model before, by forgetmap score."
        ),
    ],
    after: Annotated[
        Path,
        typer.Argument(
            readable=False, metavar="AFTER", help="Scores of the model after post-training."
        ),
    ],
    before_model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Model to take from a file that holds several."),
    ] = None,
    after_model: Annotated[
        str | None, typer.Option(metavar="NAME", help="Likewise, after.")
    ] = None,
    manifest: ManifestOption = "captrack",
    margin: Annotated[
        float,
        typer.Option(
            help="Change that would not matter: a share of a metric's range, or of the base."
        ),
    ] = 0.02,
    compat: Annotated[
        str | None,
        typer.Option(
            metavar="PROTOCOL",
            help="captrack: BEFORE is a CapTrack result CSV, AFTER another or a folder of them; "
            "gives CapTrack's own table. captrack-published: keeps zeros as it does.",
        ),
    ] = None,
    json: Json = None,
    csv: Annotated[
        Path | None,
        typer.Option(readable=False, metavar="FILE", help="Write all cells as a CSV table."),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(
            readable=False, metavar="FILE", help="Write a heat map with the items that changed."
        ),
    ] = None,
    draws: Annotated[int, typer.Option(help="Bootstrap draws.")] = 10_000,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Compare two models by capability: what changed, how sure that is, and whether it matters.

    Exit codes: 0 fine, 2 bad input, 3 no honest answer possible.

    Examples:

      forgetmap drift base.parquet tuned.parquet --html drift.html

      forgetmap drift base.csv tuned.csv --compat captrack
    """
    with clear_errors():
        check_outputs([json, csv, html], [before, after])
        if compat is not None:
            _published(before, after, compat, json, csv, html, quiet)
            return
        from forgetmap.capabilities.drift import compare_scores, open_scores
        from forgetmap.files import write_text

        scores = open_scores(before, after, before_model, after_model)
        result = compare_scores(scores, manifest=manifest, margin=margin, draws=draws, seed=seed)
        write_json(json, result.to_json())
        if csv:
            write_text(csv, result.to_csv())
        if html:
            from forgetmap.capabilities.heatmap import heat_map

            write_text(html, heat_map(result, scores))
    if not quiet and str(json) != "-":
        from forgetmap import terminal
        from forgetmap.capabilities.terminal import print_drift

        print_drift(result, terminal.console())


def _published(
    before: Path,
    after: Path,
    protocol: str,
    json: Path | None,
    csv: Path | None,
    html: Path | None,
    quiet: bool,
) -> None:
    """CapTrack's own table from its result files; `--csv` writes its two files."""
    from forgetmap.capabilities.compat import captrack_table
    from forgetmap.errors import InputError
    from forgetmap.files import write_text

    if html:
        raise InputError("--html: result files hold no items; leave it out with --compat")
    table = captrack_table(before, after, protocol)
    write_json(json, table.model_dump_json(indent=2))
    if csv:
        write_text(csv, table.to_csv())
        write_text(csv.with_name(f"{csv.stem}_std{csv.suffix}"), table.to_csv("std"))
    if not quiet and str(json) != "-":
        from forgetmap import terminal
        from forgetmap.capabilities.terminal import print_published

        print_published(table, terminal.console())


def _judge(endpoint: str, out: Path, price: str | None, failures: float) -> Judge:
    from forgetmap.capabilities.judge import Judge
    from forgetmap.errors import InputError

    url, _, model = endpoint.rpartition("#")
    if not url or not model:
        raise InputError(f"--judge {endpoint}: write it as URL#MODEL")
    try:
        prices = tuple(float(part) for part in price.split(",")) if price else None
    except ValueError:
        prices = ()
    if prices is not None and len(prices) != 2:
        raise InputError(f"--judge-price {price}: write it as IN,OUT, two numbers")
    cache = out.with_name(out.name + ".judge.sqlite")
    return Judge(url, model, cache, failure_budget=failures, price=prices)


@contextmanager
def _steps(quiet: bool) -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar on stderr, one step per task and scorer, if somebody is there to see it."""
    if quiet or not sys.stderr.isatty():
        yield lambda _what, _done, _all: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from forgetmap.terminal import clean

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        shown = bar.add_task("reading", total=None)
        yield lambda what, done, steps: bar.update(
            shown, description=clean(what, 50), completed=done, total=steps
        )
