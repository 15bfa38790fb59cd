"""`forgetmap advise`: what to try next, with the reason."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forgetmap.cli.options import Json, Quiet, check_outputs, clear_errors, write_json

if TYPE_CHECKING:
    from forgetmap.mitigate.advise import AdviceList


def advise(
    saved: Annotated[
        Path,
        typer.Argument(
            readable=False, metavar="MAP", help="A map: compare --json, or a compare --save folder."
        ),
    ],
    drift: Annotated[
        Path | None,
        typer.Option(readable=False, metavar="FILE", help="What drift --json wrote."),
    ] = None,
    lineage: Annotated[
        Path | None,
        typer.Option(readable=False, metavar="FILE", help="What lineage --json wrote."),
    ] = None,
    json: Json = None,
    quiet: Quiet = False,
) -> None:
    """Say what to try next: why, what to expect, and what the advice rests on.

    Examples:

      forgetmap compare runs/base runs/tuned --causes --json map.json

      forgetmap advise map.json --drift drift.json --lineage lineage.json
    """
    with clear_errors():
        from forgetmap.cli.results import read_drift, read_lineage, read_map
        from forgetmap.map.saved import MAP
        from forgetmap.mitigate.advise import Evidence
        from forgetmap.mitigate.advise import advise as run

        inputs = [path for path in (saved, drift, lineage) if path]
        check_outputs([json], inputs)
        folder = saved.is_dir()
        evidence = Evidence(
            read_map(saved / MAP if folder else saved),
            read_drift(drift) if drift else None,
            read_lineage(lineage) if lineage else None,
            str(saved) if folder else "FOLDER",
        )
        result = run(evidence)
        write_json(json, result.to_json())
    if not quiet and str(json) != "-":
        _tell(result)


def _tell(result: AdviceList) -> None:
    from rich.padding import Padding
    from rich.text import Text

    from forgetmap.base.words import clean
    from forgetmap.views.terminal.console import open_console

    console = open_console()
    console.print(Text(clean(result.headline, 400), style="bold"))
    for number, one in enumerate(result.advice, 1):
        console.print()
        console.print(Text(f"{number}. {clean(one.title)}", style="bold"))
        for name, text in (
            ("why", one.why),
            ("try", one.what_to_do),
            ("expect", one.expected),
            ("rests on", one.rests_on),
        ):
            line = Text.assemble((f"{name}: ", "dim"), clean(text, 600))
            console.print(Padding(line, (0, 0, 0, 3), expand=False))
    console.print()
    console.print(Text("Rules, not promises: measure again after each change.", style="dim"))
