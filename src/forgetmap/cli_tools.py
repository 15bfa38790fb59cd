"""What every command needs: clear errors, progress, outputs checked before the work begins.

Only typer is imported at the top, so that `--help` is quick.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NoReturn

import typer

Json = Annotated[
    Path | None,
    typer.Option(
        "--json",
        readable=False,
        metavar="FILE",
        help="Also write the result as JSON; - for stdout.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Threshold = Annotated[float, typer.Option(help="Score from which an answer counts as correct.")]
Margin = Annotated[float, typer.Option(help="Change that would matter to you, as a fraction.")]
Identity = Annotated[
    str, typer.Option(metavar="content|index", help="Pair items by content, or by their ids.")
]
Report = Annotated[
    Path | None,
    typer.Option(
        readable=False, metavar="FILE", help="Write one HTML file to look at and send around."
    ),
]
Seed = Annotated[int, typer.Option(help="Seed of the draws.")]
Dtype = Annotated[
    str,
    typer.Option(metavar="TYPE", help="float32; bfloat16 or float16 flip some items."),
]
Device = Annotated[
    str | None, typer.Option(metavar="NAME", help="cpu, cuda, cuda:1; by default what is there.")
]
Tasks = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Only this task; may be repeated, may hold * and ?."),
]
Limit = Annotated[
    int | None, typer.Option(metavar="N", help="Only the first N questions of each task.")
]
Shots = Annotated[int, typer.Option(help="Solved examples before each question.")]
Chat = Annotated[
    bool, typer.Option("--chat/--no-chat", help="Ask through the model's chat template.")
]
Batch = Annotated[
    str, typer.Option(metavar="N|auto", help="Items in a batch, or requests at a time.")
]


def check_outputs(outputs: list[Path | None], inputs: list[Path]) -> None:
    """Find what cannot be written, or must not be, before the long part begins."""
    from forgetmap.errors import InputError
    from forgetmap.files import check_writable

    wanted = [path for path in outputs if path is not None and str(path) != "-"]
    taken = {path.absolute() for path in inputs}
    for path in wanted:
        if path.absolute() in taken:
            raise InputError(f"{path}: is read or written already; name another file")
        taken.add(path.absolute())
        check_writable(path)


def write_json(path: Path | None, text: str) -> None:
    """Write JSON where `--json` said: to a file, to stdout for -, nowhere if not asked."""
    from forgetmap.files import write_text

    if str(path) == "-":
        typer.echo(text)
    elif path:
        write_text(path, text + "\n")


@contextmanager
def clear_errors() -> Iterator[None]:
    """Turn bad input into one line on stderr and an exit code; a traceback is for bugs only."""
    from forgetmap.errors import InputError, WithheldError

    try:
        yield
    except InputError as error:
        _fail(str(error), 2)
    except WithheldError as error:
        _fail(str(error), 3)
    except KeyboardInterrupt:
        _fail("interrupted", 130)


def _fail(message: str, code: int) -> NoReturn:
    from forgetmap.terminal import clean

    typer.echo(f"forgetmap: {clean(message, 600)}", err=True)
    raise typer.Exit(code)


@contextmanager
def progress(quiet: bool, *paths: Path) -> Iterator[Callable[[int], None]]:
    """A progress bar on stderr while logs are read, if somebody is there to see it."""
    if quiet or not sys.stderr.isatty():
        yield lambda _bytes: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    from forgetmap.readers import size_of

    total = sum(size_of(path) for path in paths if path.exists())
    columns = ("reading", BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=total)
        yield lambda count: bar.advance(task, count)


def batch_size(text: str) -> int | None:
    """The number that `--batch` names; None for auto."""
    from forgetmap.errors import InputError

    if text == "auto":
        return None
    if not text.isascii() or not text.isdigit():
        raise InputError(f"--batch {text}: must be a number or auto")
    return int(text)


@contextmanager
def answer_bar(quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """A progress bar with rate and time left on stderr, if somebody is there to see it."""
    if quiet or not sys.stderr.isatty():
        yield lambda _done, _all: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(f"{task.speed:,.1f}/s" if task.speed else "")

    columns = ("answers", BarColumn(), MofNCompleteColumn(), Rate(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        shown = bar.add_task("answers", total=None)
        yield lambda done, total: bar.update(shown, completed=done, total=total)
