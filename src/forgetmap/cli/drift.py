"""`forgetmap drift`: how behaviour changed, by capability."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from forgetmap.cli.options import (
    Json,
    ManifestOption,
    Quiet,
    Report,
    Seed,
    busy,
    check_outputs,
    clear_errors,
    write_json,
)


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
        str | None, typer.Option(metavar="NAME", help="The same for the log after.")
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
    report: Report = None,
    draws: Annotated[int, typer.Option(help="Draws of the test of uneven changes.")] = 10_000,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Compare two models by capability: what changed, how sure that is, and whether it matters.

    Exit codes: 0 fine, 2 bad input, 3 no honest answer is possible.

    Examples:

      forgetmap drift base.parquet tuned.parquet --report drift.html

      forgetmap drift base.csv tuned.csv --compat captrack
    """
    with clear_errors():
        check_outputs([json, csv, report], [before, after])
        if compat is not None:
            _published(before, after, compat, json, csv, report, quiet)
            return
        from forgetmap.base.files import write_text
        from forgetmap.capabilities.drift import compare_scores, open_scores

        with busy(quiet, "comparing"):
            scores = open_scores(before, after, before_model, after_model)
            result = compare_scores(
                scores, manifest=manifest, margin=margin, draws=draws, seed=seed
            )
        write_json(json, result.to_json())
        if csv:
            write_text(csv, result.to_csv())
        if report:
            from forgetmap.views.html.drift import heat_map

            write_text(report, heat_map(result, scores))
    if not quiet and str(json) != "-":
        from forgetmap.views.terminal.console import open_console
        from forgetmap.views.terminal.drift import print_drift

        print_drift(result, open_console())


def _published(
    before: Path,
    after: Path,
    protocol: str,
    json: Path | None,
    csv: Path | None,
    report: Path | None,
    quiet: bool,
) -> None:
    """CapTrack's own table from its result files; `--csv` writes its two files."""
    from forgetmap.base.errors import InputError
    from forgetmap.base.files import write_text
    from forgetmap.capabilities.published import captrack_table

    if report:
        raise InputError("--report: result files hold no items; leave it out with --compat")
    table = captrack_table(before, after, protocol)
    write_json(json, table.model_dump_json(indent=2))
    if csv:
        write_text(csv, table.to_csv())
        write_text(csv.with_name(f"{csv.stem}_std{csv.suffix}"), table.to_csv("std"))
    if not quiet and str(json) != "-":
        from forgetmap.views.terminal.console import open_console
        from forgetmap.views.terminal.drift import print_published

        print_published(table, open_console())
