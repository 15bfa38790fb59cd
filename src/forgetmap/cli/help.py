"""Help that people can read: commands by what they are for, options in groups, plain usage lines.

This is written by hand, because typer's own panels need rich, which would make `--help` slow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup

HELP = {"help_option_names": ["-h", "--help"]}
"""Settings of every group of commands."""

PANELS = ("Compare", "Decide", "Behaviour", "Repair", "Plan", "Ask models", "Help")
"""Headings of the list of all commands, in order."""
GROUPS = {
    "What to compare": (
        *("before_model", "after_model", "model", "task_map", "metric", "threshold", "identity"),
        *("engine", "column", "before_column", "after_column", "new", "trained_on"),
    ),
    "How sure": ("margin", "noise_before", "noise_after", "deterministic", "draws", "seed"),
    "Why, and what follows": ("causes", "summarise", "judge", "gate", "compat"),
    "What to write": (
        *("json", "csv", "latex", "flips", "lives", "report", "save", "figures", "site", "pages"),
    ),
}
"""Options of the same kind, by their names in Python."""
_MANY = 12
"""Options from which they are grouped."""
_OTHER = "Options"


class Verb(TyperCommand):
    """A command whose help can be read."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The arguments first, then that there are options."""
        return [*_arguments(self, ctx), "[OPTIONS]"]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options, these in groups where they are many."""
        write_options(self, ctx, formatter)


class Verbs(TyperGroup):
    """Commands, listed by what they are for."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options, then the commands."""
        write_options(self, ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each command with its first sentence, whole."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                title = getattr(command, "rich_help_panel", None)
                section = sections.setdefault(title if isinstance(title, str) else "Commands", [])
                section.append((name, command.get_short_help_str(200)))
        order = [*PANELS, *(title for title in sections if title not in PANELS)]
        for title, rows in sorted(sections.items(), key=lambda section: order.index(section[0])):
            with formatter.section(title):
                formatter.write_dl(rows)

    default: ClassVar[str | None] = None
    """The command that is meant where none is named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the name of the command where it was left out."""
        if self.default and args and args[0] not in (*self.commands, *ctx.help_option_names):
            args = [self.default, *args]
        return super().parse_args(ctx, args)


class Group(typer.Typer):
    """A group of commands, all with the same look."""

    def __init__(self, name: str, default: str | None = None, **more: Any) -> None:
        """Make a group; `default` is the command that is meant where none is named."""
        kind = type("VerbsOfGroup", (Verbs,), {"default": default})
        settings = {"rich_markup_mode": None, "add_completion": False, "context_settings": HELP}
        super().__init__(name=name, cls=kind, **(settings | more))

    def command(  # type: ignore[override]  # typer's other settings stay as they are
        self, name: str | None = None, **more: Any
    ) -> Callable[[Callable[..., None]], Callable[..., None]]:
        """Add a command."""
        return super().command(name, **({"cls": Verb} | more))


def _name(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper()).strip("[]")


def _arguments(command: Any, ctx: Any) -> list[str]:
    pieces = []
    for param in command.get_params(ctx):
        if param.param_type_name == "argument" and not getattr(param, "hidden", False):
            name = _name(param)
            pieces.append(name if param.required else f"[{name}]")
    return pieces


def write_options(command: Any, ctx: Any, formatter: Any) -> None:
    """Write arguments and options, these in groups where they are many."""
    params = command.get_params(ctx)
    arguments = [
        (_name(param), param.help or "") for param in params if param.param_type_name == "argument"
    ]
    options = {
        param.name: record
        for param in params
        if param.param_type_name == "option" and (record := param.get_help_record(ctx))
    }
    if arguments:
        with formatter.section("Arguments"):
            formatter.write_dl(arguments)
    for title, names in _grouped(options).items():
        with formatter.section(title):
            formatter.write_dl([options[name] for name in names])


def _grouped(options: dict[str, Any]) -> dict[str, list[str]]:
    """The names of the options of each group; all in one where they are few."""
    homes = {
        name: title
        for title, names in GROUPS.items()
        for name in names
        if len(options.keys() & set(names)) > 1  # a group of one is none
    }
    if len(options) < _MANY:
        homes = {}
    groups: dict[str, list[str]] = {title: [] for title in (*GROUPS, _OTHER)}
    for name in options:
        groups[homes.get(name, _OTHER)].append(name)
    return {title: names for title, names in groups.items() if names}
