"""`forgetmap study`: many pairs of checkpoints at once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forgetmap.cli.help import Group
from forgetmap.cli.options import (
    Deterministic,
    Identity,
    Json,
    Margin,
    New,
    Quiet,
    Seed,
    Threshold,
    answer_bar,
    check_outputs,
    clear_errors,
    write_json,
)

if TYPE_CHECKING:
    from forgetmap.study.file import Study
    from forgetmap.study.result import StudyResult


study = Group(
    "study",
    default="run",
    help="Compare many pairs of checkpoints at once. `study FILE` is `study run FILE`.",
    no_args_is_help=True,
)


@study.command()
def run(
    file: Annotated[
        Path,
        typer.Argument(
            readable=False,
            metavar="FILE",
            help="A study file, a CSV with one row per pair, or: published.",
        ),
    ],
    sort: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Order of the leaderboard: lost, gained, net, name, an attribute."
        ),
    ] = "lost",
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
    engine: Annotated[
        str,
        typer.Option(
            metavar="duckdb|spark",
            help="What pairs the items. spark reads Samples Parquet wherever Spark can.",
        ),
    ] = "duckdb",
    new: New = None,
    deterministic: Deterministic = False,
    json: Json = None,
    csv: Annotated[
        Path | None,
        typer.Option(
            readable=False, metavar="FILE", help="Write every cell of every pair as a CSV table."
        ),
    ] = None,
    latex: Annotated[
        Path | None,
        typer.Option(readable=False, metavar="FILE", help="Write the leaderboard as LaTeX."),
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option(readable=False, metavar="FILE", help="Write all tables as Markdown."),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(
            readable=False, metavar="FOLDER", help="Write figures for a paper: SVG, PNG, LaTeX."
        ),
    ] = None,
    site: Annotated[
        Path | None,
        typer.Option(
            readable=False,
            metavar="FOLDER",
            help="Write a page to look at and send around, with a page for each pair.",
        ),
    ] = None,
    pages: Annotated[
        bool, typer.Option(help="For --site: the pages of the pairs; each takes some seconds.")
    ] = True,
    cache: Annotated[
        Path | None,
        typer.Option(
            readable=False,
            metavar="FOLDER",
            help="Where to keep what was computed; else .forgetmap/study beside FILE.",
        ),
    ] = None,
    draws: Annotated[int, typer.Option(help="Draws of the test for clusters.")] = 1000,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Compare many pairs: a leaderboard, and what they say together.

    `published` in place of a file is the study of Harmon et al. (arXiv:2510.17776) as data.

    Logs that are missing or broken are told, and the other pairs go on. What was computed before is
    not computed again, unless its logs or the settings changed.

    Examples:

      forgetmap study study.yaml

      forgetmap study pairs.csv --sort size --json study.json --csv cells.csv

      forgetmap study study.yaml --site site --figures figures

      forgetmap study published
    """
    with clear_errors():
        from forgetmap.base.words import clean
        from forgetmap.map.comparison import check_identity
        from forgetmap.study.build import run_study
        from forgetmap.study.file import Study
        from forgetmap.views.terminal.study import check_sort

        check_identity(identity)
        known = _published(
            file,
            {
                "--task-map": task_map,
                "--metric": metric,
                "--threshold": threshold,
                "--new": new,
                "--deterministic": deterministic,
            },
        )
        plan = known or Study.load(file)
        check_sort(sort, {name for pair in plan.pairs for name in pair.attributes})
        if site:
            from forgetmap.views.html.study import check_site

            check_site(site)  # before the long part
        if figures:
            from forgetmap.views.figures.style import check_figures

            check_figures(figures)
        check_outputs([json, csv, latex, markdown], [file, *sorted(_inputs(plan))])
        with answer_bar(quiet, "pairs") as tick:
            result = known or run_study(
                file,
                task_map=task_map,
                metric=metric,
                threshold=threshold,
                margin=margin,
                identity=identity,  # type: ignore[arg-type]  # checked above
                engine=engine,
                new=new or (),
                deterministic=deterministic,
                draws=draws,
                seed=seed,
                cache=cache,
                tick=tick,
            )
        _write(result, json, csv, latex, markdown, figures)
        if site:
            from forgetmap.views.html.study import write_site

            with answer_bar(quiet, "pages") as tick:
                logs = plan if isinstance(plan, Study) else None
                notes = write_site(result, site, logs, task_map=task_map, pages=pages, tick=tick)
            if not quiet:
                for note in notes:
                    typer.echo(f"note: {clean(note, 300)}", err=True)
    if not quiet and str(json) != "-":
        from forgetmap.views.terminal.console import open_console
        from forgetmap.views.terminal.study import print_study

        print_study(result, open_console(), sort)


def _write(
    result: StudyResult,
    json: Path | None,
    csv: Path | None,
    latex: Path | None,
    markdown: Path | None,
    figures: Path | None,
) -> None:
    """Write a study in the forms that were asked for."""
    from forgetmap.base.files import write_text
    from forgetmap.views.tables.study import to_csv, to_latex

    write_json(json, result.to_json())
    if csv:
        write_text(csv, to_csv(result))
    if latex:
        write_text(latex, to_latex(result))
    if markdown:
        from forgetmap.views.tables.study_markdown import to_markdown

        write_text(markdown, to_markdown(result))
    if figures:
        from forgetmap.views.figures.study import write_study_figures

        write_study_figures(result, figures)


def _inputs(plan: Study | StudyResult) -> set[Path]:
    """All files that a study reads; the published one reads none."""
    names = ("before", "after", "drift", "drift_before", "drift_after")
    named = {getattr(pair, name, None) for pair in plan.pairs for name in names}
    return {Path(name) for name in named if isinstance(name, str)}


def _published(file: Path, given: dict[str, Any]) -> StudyResult | None:
    """The published study where its name is given in place of a file."""
    from forgetmap.base.errors import InputError
    from forgetmap.study.published import NAME, published_study

    if str(file) != NAME or file.exists():
        return None
    for option, value in given.items():
        if value:
            raise InputError(f"{option}: published numbers have no logs to compare; leave it out")
    return published_study()


@study.command()
def init(
    folder: Annotated[
        Path, typer.Argument(readable=False, metavar="FOLDER", help="A folder of logs.")
    ],
    before: Annotated[
        str | None,
        typer.Option(metavar="WORD", help="A word in the names of the logs before; else base."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(readable=False, metavar="FILE", help="Else study.yaml in the folder."),
    ] = None,
) -> None:
    """Write a study file from a folder of logs; read it before you use it."""
    from forgetmap.base.errors import InputError
    from forgetmap.base.files import write_text
    from forgetmap.study.init import write_study

    with clear_errors():
        file = folder / "study.yaml" if out is None else out
        if file.exists():
            raise InputError(f"{file}: is there already; name another file or remove it")
        write_text(file, write_study(folder, before, file.parent))
    typer.echo(f"{file}: written; read it, add what you know, then: forgetmap study {file}")
