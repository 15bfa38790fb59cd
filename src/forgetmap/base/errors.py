"""The one exception for input that cannot be used."""

from __future__ import annotations


class InputError(ValueError):
    """Bad input, said in one line: what is wrong, where, and what to do.

    The command line prints the message and exits with code 2; a traceback is for bugs only.
    """


class WithheldError(ValueError):
    """The input is fine but no honest answer can be given (exit code 3)."""
