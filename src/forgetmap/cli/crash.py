"""When forgetmap itself fails: one line, a report to send in, and an exit code of its own.

Exit code 1 says that a gate is broken, so an error of ours must never give it. The report holds
what is needed to find the error and nothing of the user's data: messages of errors are left out, as
they may quote a log.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import sys
import tempfile
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn

import typer

from forgetmap.cli.help import Verbs
from forgetmap.cli.options import clear_errors

INTERNAL_ERROR = 70
"""As `sysexits.h` has it."""
_BROKEN_PIPE = 141
"""As a shell has it for a program that nobody listens to any more."""
_PACKAGES = ("duckdb", "numpy", "orjson", "pyarrow", "pydantic", "rich", "scipy", "typer")
_SECRET_NAME = re.compile(r"key|token|secret|passw|credential|auth", re.IGNORECASE)
_SECRET_VALUE = re.compile(
    r"(?<=://)[^/\s@]+@"  # a user's name and password in an address
    r"|(?<=\?)[^#\s]+"  # what an address asks for
    r"|\b(?:sk|pk|hf|gh[a-z]|xox[a-z])[-_][\w-]{6,}"  # as keys of well-known services look
    r"|(?i:(?<=bearer )\S+)"
    r"|(?i:(?<=key=)|(?<=token=)|(?<=secret=)|(?<=password=))[^,\s]+"
)
_HIDDEN = "[hidden]"


class Commands(Verbs):
    """All commands; whatever goes wrong in one, the exit code says what kind of failure it was."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command; typer would end with code 1 for these failures."""
        try:
            with clear_errors():
                return super().invoke(ctx)
        except BrokenPipeError:
            with suppress(OSError):  # else Python would complain when it flushes the output
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(_BROKEN_PIPE) from None
        except SystemExit:  # so rich ends a program whose output nobody reads, with code 1
            raise typer.Exit(_BROKEN_PIPE) from None
        except EOFError as error:
            raise RuntimeError("a file ended too early") from error

    def main(self, *args: Any, **named: Any) -> Any:
        """Run the command line; as part of another program, errors are the program's to handle."""
        try:
            return super().main(*args, **named)
        except Exception as error:
            if not named.get("standalone_mode", True):
                raise
            end(error)


def end(error: Exception) -> NoReturn:
    """Tell of an error that no command expected, and end."""
    from forgetmap.base.files import file_named_in, full_disk

    if words := full_disk(error):
        path = getattr(error, "filename", None) or file_named_in(error) or "temporary files"
        _say(
            f"{path}: writing failed ({words}); make room there, or set TMPDIR to a folder with "
            "room, and run the same command again"
        )
        sys.exit(2)
    *_, last = traceback.extract_tb(error.__traceback__)
    where = f"{type(error).__name__} in {os.path.basename(last.filename)}:{last.lineno}"
    try:
        _say(f"internal error ({where}); please send in the report {_write(report(error))}")
    except OSError as full:
        _say(f"internal error ({where}); no report could be written ({full.strerror})")
    sys.exit(INTERNAL_ERROR)


def report(error: BaseException) -> str:
    """What is needed to find an error, and nothing of the user's data."""
    from forgetmap.base.version import __version__

    words = without_secrets(sys.argv[1:], os.environ)
    packages = (f"{name} {_version(name)}" for name in _PACKAGES)
    parts = [
        f"forgetmap {__version__}: internal error",
        f"command: forgetmap {' '.join(words)}",
        f"python {platform.python_version()}, {platform.platform()}",
        f"packages: {', '.join(packages)}",
        "",
        "Messages of errors are left out: they may quote a log.",
        "",
        *_traceback(error),
    ]
    return "\n".join(parts) + "\n"


def without_secrets(words: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """A command line without keys: what looks like one, and what a variable for one holds.

    Example:
        >>> without_secrets(["eval", "lm-eval:openai:api_key=abc,model=m"], {})
        ['eval', 'lm-eval:openai:api_key=[hidden],model=m']
        >>> without_secrets(["--judge", "https://me:pw@host/v1#m", "a123456"], {"KEY": "123456"})
        ['--judge', 'https://[hidden]host/v1#m', 'a[hidden]']
    """
    known = [
        value
        for name, value in environment.items()
        if _SECRET_NAME.search(name) and len(value) >= 6
    ]
    hidden = []
    for word in words:
        for value in known:
            word = word.replace(value, _HIDDEN)
        hidden.append(_SECRET_VALUE.sub(_HIDDEN, word))
    return hidden


def _traceback(error: BaseException) -> Iterator[str]:
    """Where an error and those behind it came from, oldest first, without their messages."""
    behind = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if behind is not None:
        yield from _traceback(behind)
        yield "which led to:"
    for part in traceback.format_tb(error.__traceback__):
        yield part.rstrip("\n")
    yield f"{type(error).__module__}.{type(error).__qualname__}"
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield "in the group:"
            yield from _traceback(inner)


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _write(text: str) -> str:
    handle, path = tempfile.mkstemp(prefix="forgetmap-error-", suffix=".txt")
    try:
        with open(handle, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except OSError:
        os.unlink(path)
        raise
    return path


def _say(message: str) -> None:
    from forgetmap.base.words import clean

    typer.echo(f"forgetmap: {clean(message, 600)}", err=True)
