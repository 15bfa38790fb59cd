"""The command line: one file per verb; arguments in, one library call, one view out."""

from forgetmap.cli.app import main

__all__ = ["main"]
