"""`forgetmap demo`: the whole story on the bundled example."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from forgetmap.cli.options import (
    clear_errors,
    write_map,
)


def demo(
    out: Annotated[
        Path, typer.Option(readable=False, metavar="FOLDER", help="Where to put the results.")
    ] = Path("forgetmap-demo"),
) -> None:
    """Map forgetting in the bundled example: a small real model, fine-tuned in several ways."""
    from forgetmap.api import demo as run
    from forgetmap.api import lineage as trace
    from forgetmap.base.files import make_folder
    from forgetmap.map.example import example_logs, example_pipeline
    from forgetmap.study.published import published_study
    from forgetmap.views.terminal import maps as terminal
    from forgetmap.views.terminal.console import open_console
    from forgetmap.views.terminal.lineage import print_tree
    from forgetmap.views.terminal.study import print_glimpse

    console = open_console()
    with clear_errors():
        make_folder(out)
        traced = trace(example_pipeline(), report=out / "lineage.html")
        print_tree(traced, console)
        result = run(flips=out / "flips.csv", report=out / "report.html")
        write_map(result, out / "map.json", out / "map.csv", out / "map.tex")
    terminal.print_map(result, console)
    typer.echo("\nMany pairs at once are a study. This one comes with forgetmap:")
    print_glimpse(published_study(), console)
    before, after = example_logs()
    typer.echo(f"\nWritten to {out}/: report.html (the first step, for a browser), lineage.html")
    typer.echo("(all steps), flips.csv (items that changed), map.json, map.csv, map.tex. By hand:")
    tasks = before.parents[1] / "tasks.csv"
    typer.echo(f"  forgetmap compare {before} {after} --task-map {tasks} --new airports")
    typer.echo(f"  forgetmap lineage {example_pipeline()}")
    typer.echo("  forgetmap study published")
