"""The one exception for input that cannot be used."""

from __future__ import annotations


class InputError(ValueError):
    """Bad input, said in one line: what is wrong, where, and what to do.

    The command line prints the message and exits with code 2; a traceback is for bugs only.

    Example:
        >>> import forgetmap
        >>> try:
        ...     forgetmap.compare("no-such-log", "no-such-log")
        ... except forgetmap.InputError as error:
        ...     print(error)
        no-such-log: no such file or folder
    """


class WithheldError(ValueError):
    """The input is fine but no honest answer can be given (exit code 3).

    Example:
        >>> import forgetmap
        >>> row = {"task": "sums", "metric": "acc", "item": forgetmap.content_hash("1 + 1?")}
        >>> before, after = (forgetmap.Samples.from_rows([{**row, "score": s}]) for s in (1.0, 0.0))
        >>> try:
        ...     forgetmap.check_gate(forgetmap.compare(before, after), ["max-forgetting=0.02"])
        ... except forgetmap.WithheldError as error:
        ...     print(error)
        only 1 items were compared; a gate on fewer than 20 would pass whatever happened (add items)
    """
