"""`forgetmap score`: score stored answers by capability."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forgetmap.cli.options import ManifestOption, Quiet, RunCode, check_outputs, clear_errors

if TYPE_CHECKING:
    from forgetmap.capabilities.judge import Judge


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
        typer.Option(metavar="SHARE", help="Share of judgements that may fail."),
    ] = 0.01,
    rejudge: Annotated[
        int,
        typer.Option(help="Answers of each judged metric to judge twice, to see how steady it is."),
    ] = 20,
    run_code: RunCode = False,
    quiet: Quiet = False,
) -> None:
    """Score stored answers: one row per item and metric, ready for `forgetmap drift`.

    What is finished is kept in OUT.parts/, so that a run that was stopped goes on where it was.

    Examples:

      forgetmap score runs/base --model base --out base.parquet

      forgetmap score runs/base --out base.parquet --judge http://localhost:8000/v1#judge-model
    """
    from forgetmap.base.errors import InputError
    from forgetmap.capabilities.score import score_responses

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
            run_code=run_code,
            step=step,
        )
    if not quiet:
        from forgetmap.views.terminal.console import open_console
        from forgetmap.views.terminal.drift import print_scored

        print_scored(scored, out, open_console(), asked.usage if asked else None)


def _judge(endpoint: str, out: Path, price: str | None, failures: float) -> Judge:
    from forgetmap.base.errors import InputError

    try:
        prices = tuple(float(part) for part in price.split(",")) if price else None
    except ValueError:
        prices = ()
    if prices is not None and len(prices) != 2:
        raise InputError(f"--judge-price {price}: write it as IN,OUT, two numbers")
    cache = out.with_name(out.name + ".judge.sqlite")
    return make_judge(endpoint, cache, failure_budget=failures, price=prices)


def make_judge(endpoint: str, cache: Path, **options: Any) -> Judge:
    """The judge at `URL#MODEL`."""
    from forgetmap.base.errors import InputError
    from forgetmap.capabilities.judge import Judge

    url, _, model = endpoint.rpartition("#")
    if not url or not model:
        raise InputError(f"--judge {endpoint}: write it as URL#MODEL")
    return Judge(url, model, cache, **options)


@contextmanager
def _steps(quiet: bool) -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar on stderr, one step per task and scorer, if somebody is there to see it."""
    if quiet or not sys.stderr.isatty():
        yield lambda _what, _done, _all: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from forgetmap.base.words import clean

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        shown = bar.add_task("reading", total=None)
        yield lambda what, done, steps: bar.update(
            shown, description=clean(what, 50), completed=done, total=steps
        )
