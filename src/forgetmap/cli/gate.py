"""`forgetmap gate`: judge a map by a policy."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forgetmap.cli.help import Group
from forgetmap.cli.options import Json, Quiet, check_outputs, clear_errors, write_json
from forgetmap.cli.results import read_drift, read_map

if TYPE_CHECKING:
    from forgetmap.capabilities.drift_result import Drift
    from forgetmap.gate.judgement import Judgement
    from forgetmap.map.result import ForgettingMap


gate = Group(
    "gate",
    default="check",
    help="Judge a map by a policy: PASS, WARN, BLOCK or WITHHELD. `gate MAP` is `gate check MAP`.",
    no_args_is_help=True,
)

MapFile = Annotated[
    Path,
    typer.Argument(
        readable=False, metavar="MAP", help="A map that forgetmap compare --json wrote."
    ),
]
PolicyFile = Annotated[
    Path | None,
    typer.Option("--policy", readable=False, metavar="FILE", help="The policy: gate.yaml."),
]
JUnit = Annotated[
    Path | None,
    typer.Option("--junit", readable=False, metavar="FILE", help="Write JUnit XML for CI."),
]
Markdown = Annotated[
    Path | None,
    typer.Option(
        "--markdown", readable=False, metavar="FILE", help="Write a summary for a pull request."
    ),
]


@gate.command()
def check(
    map: MapFile,
    policy: PolicyFile = None,
    drift: Annotated[
        Path | None,
        typer.Option(
            "--drift",
            readable=False,
            metavar="FILE",
            help="What forgetmap drift --json wrote, for limits on capabilities.",
        ),
    ] = None,
    junit: JUnit = None,
    markdown: Markdown = None,
    json: Json = None,
    quiet: Quiet = False,
) -> None:
    """Judge a map by a policy file; exit codes: 0 PASS or WARN, 1 BLOCK, 3 WITHHELD.

    Examples:

      forgetmap gate map.json --policy gate.yaml

      forgetmap gate map.json --policy gate.yaml --drift drift.json

      forgetmap gate map.json --policy gate.yaml --junit gate.xml --markdown summary.md
    """
    from forgetmap.base.errors import InputError
    from forgetmap.gate.judgement import judge
    from forgetmap.gate.policy import Policy

    file = Path("gate.yaml") if policy is None else policy
    with clear_errors():
        check_outputs([junit, markdown, json], [map, file, *([drift] if drift else [])])
        result, rules = read_map(map), Policy.load(file)
        if drift and not rules.capabilities:
            raise InputError(f"--drift {drift}: {file} has no limits under capabilities")
        drifted = read_drift(drift) if drift else None
        judgement = judge(result, rules, drifted)
        write_json(json, judgement.model_dump_json(indent=2))
        write_judgement(judgement, result, junit, markdown, drifted)
    show_judgement(judgement, quiet=quiet or str(json) == "-")
    raise typer.Exit(judgement.exit_code)


@gate.command()
def init(
    map: MapFile,
    out: Annotated[
        Path, typer.Option(readable=False, metavar="FILE", help="The policy to write.")
    ] = Path("gate.yaml"),
) -> None:
    """Write a sensible policy from the map of a comparison you accept."""
    from forgetmap.base.errors import InputError
    from forgetmap.base.files import write_text
    from forgetmap.gate.policy import write_policy

    with clear_errors():
        if out.exists():
            raise InputError(f"{out}: is there already; name another file or remove it")
        write_text(out, write_policy(read_map(map)))
    typer.echo(f"{out}: written; read it, set your limits, then: forgetmap gate {map} "
               f"--policy {out}")  # fmt: skip


def write_judgement(
    judgement: Judgement,
    result: ForgettingMap,
    junit: Path | None,
    markdown: Path | None,
    drift: Drift | None = None,
) -> None:
    """Write the files that were asked for."""
    from forgetmap.base.files import write_text
    from forgetmap.gate import output as gate_output

    if junit:
        write_text(junit, gate_output.to_junit(judgement))
    if markdown:
        write_text(markdown, gate_output.to_markdown(judgement, result, drift))


def show_judgement(judgement: Judgement, *, quiet: bool = False) -> None:
    """Print the verdict, and on GitHub the annotations, which are commands to its runner."""
    from forgetmap.gate import output as gate_output
    from forgetmap.views.terminal.console import open_console

    if not quiet:
        gate_output.print_judgement(judgement, open_console())
    if os.environ.get("GITHUB_ACTIONS") == "true":
        for line in gate_output.to_annotations(judgement):
            typer.echo(line, err=quiet)


def _echo(text: str) -> None:
    from forgetmap.base.words import clean

    typer.echo(clean(text))
