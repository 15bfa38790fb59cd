"""The command line: all verbs in one application."""

from __future__ import annotations

from typing import Annotated

import typer

from forgetmap.cli.advise import advise
from forgetmap.cli.baseline import baseline
from forgetmap.cli.capabilities import capabilities
from forgetmap.cli.compare import compare
from forgetmap.cli.convert import convert
from forgetmap.cli.crash import Commands
from forgetmap.cli.demo import demo
from forgetmap.cli.drift import drift
from forgetmap.cli.evaluate import evaluate
from forgetmap.cli.fetch_model import fetch_model
from forgetmap.cli.gate import gate as gate_commands
from forgetmap.cli.lineage import lineage
from forgetmap.cli.merge import merge
from forgetmap.cli.options import HELP
from forgetmap.cli.plan import plan
from forgetmap.cli.replay import replay
from forgetmap.cli.score import score
from forgetmap.cli.serve import serve
from forgetmap.cli.show import show
from forgetmap.cli.study import study
from forgetmap.cli.suite import suite
from forgetmap.cli.theory import app as theory

app = typer.Typer(
    name="forgetmap",
    cls=Commands,
    help="Know what your post-training broke, why, and what to do about it.",
    epilog="Start with: forgetmap demo   ·   then: forgetmap compare LOG_BEFORE LOG_AFTER",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    add_completion=False,
    context_settings=HELP,
)


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from forgetmap.base.version import __version__

        typer.echo(f"forgetmap {__version__}")
        raise typer.Exit


app.command()(compare)
app.command()(show)
app.command()(convert)
app.command()(demo)
app.command()(serve)
app.command()(lineage)
app.command()(plan)
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
    context_settings=HELP,
)
_capabilities.callback()(capabilities)
_capabilities.command()(suite)
app.add_typer(_capabilities, name="capabilities")
app.add_typer(theory, name="theory")
app.add_typer(study, name="study")
app.add_typer(gate_commands, name="gate")
app.add_typer(baseline, name="baseline")


def main() -> None:
    """Entry point of the console script."""
    app()
