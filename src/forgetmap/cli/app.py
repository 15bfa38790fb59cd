"""The command line: all verbs in one application."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from forgetmap.cli.advise import advise
from forgetmap.cli.baseline import baseline
from forgetmap.cli.capabilities import capabilities
from forgetmap.cli.check import check
from forgetmap.cli.compare import compare
from forgetmap.cli.convert import convert
from forgetmap.cli.crash import Commands
from forgetmap.cli.demo import demo
from forgetmap.cli.divergence import divergence
from forgetmap.cli.doctor import doctor
from forgetmap.cli.drift import drift
from forgetmap.cli.evaluate import evaluate
from forgetmap.cli.fetch_model import fetch_model
from forgetmap.cli.forecast import forecast
from forgetmap.cli.gate import gate
from forgetmap.cli.help import HELP, Verb
from forgetmap.cli.lineage import lineage
from forgetmap.cli.mcp import mcp
from forgetmap.cli.merge import merge
from forgetmap.cli.plan import plan
from forgetmap.cli.recover import recover
from forgetmap.cli.replay import replay
from forgetmap.cli.score import score
from forgetmap.cli.serve import serve
from forgetmap.cli.show import show
from forgetmap.cli.study import study
from forgetmap.cli.theory import app as theory
from forgetmap.cli.train import train
from forgetmap.cli.watch import watch

app = typer.Typer(
    name="forgetmap",
    cls=Commands,
    help="Know what your post-training broke, why, and what to do about it.",
    epilog="Start with: forgetmap demo   ·   then: forgetmap compare LOG_BEFORE LOG_AFTER",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
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


def _add(panel: str, **commands: Callable[..., None] | typer.Typer) -> None:
    """Add commands under a heading of the help; _ in a name stands for a hyphen."""
    for name, command in commands.items():
        named = name.rstrip("_").replace("_", "-")
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=named, rich_help_panel=panel)
        else:
            app.command(named, cls=Verb, rich_help_panel=panel)(command)


_add(
    "Compare",
    demo=demo, compare=compare, show=show, convert=convert, lineage=lineage, study=study,
    serve=serve, mcp=mcp,
)  # fmt: skip
_add("Decide", gate=gate, baseline=baseline)
_add("Behaviour", score=score, drift=drift, divergence=divergence, capabilities=capabilities)
_add("Repair", advise=advise, merge=merge, replay=replay, train=train, recover=recover)
_add("Plan", forecast=forecast, plan=plan, theory=theory)
_add("Ask models", check=check, watch=watch, eval=evaluate, fetch_model=fetch_model)
_add("Help", doctor=doctor)


def main() -> None:
    """Entry point of the console script."""
    app()
