"""The command `advise`.

Only typer is imported at the top; the command imports what it needs, so that `--help` is quick.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forgetmap.cli_tools import Json, Quiet, check_outputs, clear_errors, write_json

if TYPE_CHECKING:
    from forgetmap.lineage.result import Lineage
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
    """Say what to try next, with the reason, what to expect and what it rests on.

    Examples:

      forgetmap compare runs/base runs/tuned --causes --json map.json

      forgetmap advise map.json --drift drift.json --lineage lineage.json
    """
    with clear_errors():
        from forgetmap.gate_cli import read_drift, read_map
        from forgetmap.mitigate.advise import Evidence
        from forgetmap.mitigate.advise import advise as run
        from forgetmap.report.saved import MAP

        inputs = [path for path in (saved, drift, lineage) if path]
        check_outputs([json], inputs)
        folder = saved.is_dir()
        evidence = Evidence(
            read_map(saved / MAP if folder else saved),
            read_drift(drift) if drift else None,
            _read_lineage(lineage) if lineage else None,
            str(saved) if folder else "FOLDER",
        )
        result = run(evidence)
        write_json(json, result.to_json())
    if not quiet and str(json) != "-":
        _tell(result)


def _read_lineage(path: Path) -> Lineage:
    from pydantic import ValidationError

    from forgetmap.errors import InputError
    from forgetmap.lineage.result import LINEAGE_SCHEMA_VERSION, Lineage
    from forgetmap.readers.common import read_json

    content = read_json(path)
    version = content.get("schema_version") if isinstance(content, dict) else None
    if isinstance(version, int) and version > LINEAGE_SCHEMA_VERSION:
        raise InputError(
            f"{path}: has lineage schema version {version}, this forgetmap knows up to "
            f"{LINEAGE_SCHEMA_VERSION}; upgrade forgetmap to read it"
        )
    try:
        return Lineage.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the top"
        raise InputError(f"{path}: is not a lineage: at {where}, {first['msg']}") from error


def _tell(result: AdviceList) -> None:
    from rich.padding import Padding
    from rich.text import Text

    from forgetmap import terminal

    console = terminal.console()
    console.print(Text(terminal.clean(result.headline, 400), style="bold"))
    for number, one in enumerate(result.advice, 1):
        console.print()
        console.print(Text(f"{number}. {terminal.clean(one.title)}", style="bold"))
        for name, text in (
            ("why", one.why),
            ("try", one.what_to_do),
            ("expect", one.expected),
            ("rests on", one.rests_on),
        ):
            line = Text.assemble((f"{name}: ", "dim"), terminal.clean(text, 600))
            console.print(Padding(line, (0, 0, 0, 3), expand=False))
    console.print()
    console.print(Text("Rules, not promises: measure again after each change.", style="dim"))
