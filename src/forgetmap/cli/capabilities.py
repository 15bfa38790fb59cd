"""`forgetmap capabilities`: which capabilities there are, by which metrics."""

from __future__ import annotations

import typer

from forgetmap.cli.help import Group
from forgetmap.cli.options import Json, ManifestOption, check_outputs, clear_errors, write_json
from forgetmap.cli.suite import suite

capabilities = Group("capabilities", invoke_without_command=True)
capabilities.command()(suite)


@capabilities.callback()
def listed(
    context: typer.Context, manifest: ManifestOption = "captrack", json: Json = None
) -> None:
    """List the capabilities and the metrics that measure them.

    Examples:

      forgetmap capabilities

      forgetmap capabilities --manifest mine.yaml --json -
    """
    if context.invoked_subcommand:
        return
    from forgetmap.capabilities.manifest import Manifest

    with clear_errors():
        check_outputs([json], [])
        chosen = Manifest.load(manifest)
        write_json(json, chosen.model_dump_json(indent=2))
    if str(json) != "-":
        from forgetmap.views.terminal.console import open_console
        from forgetmap.views.terminal.drift import print_manifest

        print_manifest(chosen, open_console())
