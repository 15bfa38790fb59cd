"""`forgetmap doctor`: what is installed here, and what each extra would add."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from forgetmap.cli.options import Json, Quiet, check_outputs, clear_errors, write_json

if TYPE_CHECKING:
    from forgetmap.evaluate.machine import Machine


def doctor(json: Json = None, quiet: Quiet = False) -> None:
    """Say what is installed, what each extra would add, and what this machine has.

    Example:

      forgetmap doctor
    """
    with clear_errors():
        from forgetmap.evaluate.machine import look

        check_outputs([json], [])
        machine = look()
        write_json(json, machine.model_dump_json(indent=2))
    if not quiet and str(json) != "-":
        _print(machine)


def _print(machine: Machine) -> None:
    from forgetmap.base.extras import install
    from forgetmap.views.terminal.console import make_table, open_console, say, say_table

    out = open_console()
    say(out, f"forgetmap {machine.forgetmap}, Python {machine.python}, {machine.system}", "bold")
    say(out, f"{machine.cores} cores, {machine.memory_gb:.1f} GB of memory")
    say(out, f"cards: {', '.join(machine.cards) or machine.no_cards}")
    say(out, f"temporary files: {machine.temporary_folder}, {machine.free_gb:.1f} GB free")
    say(out, f"model-written code (--run-code): {machine.walls}")
    out.print()
    rows = [
        (extra.name, "yes" if not extra.missing else "no", extra.adds, ", ".join(extra.missing))
        for extra in machine.extras
    ]
    names = ("extra", "here", "what it adds", "missing packages")
    say_table(out, make_table(names, rows, left=names))
    lacking = [extra.name for extra in machine.extras if extra.missing]
    if lacking:
        typer.echo(f"all of them: {install('all')}")
    else:
        typer.echo("every extra is installed")
