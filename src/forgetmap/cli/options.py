"""What every command needs: clear errors, progress, outputs checked before the work begins.

Only typer is imported at the top, so that `--help` is quick.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from forgetmap.map.result import ForgettingMap


from typing import TYPE_CHECKING

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
Threshold = Annotated[
    float | None,
    typer.Option(help="Score from which an answer counts as correct; else the scale's middle."),
]
Margin = Annotated[float, typer.Option(help="Change that would matter to you, as a fraction.")]
Identity = Annotated[
    str,
    typer.Option(
        metavar="content|index|row",
        help="Pair items by content, by their ids, or rows of tables by their number.",
    ),
]
Report = Annotated[
    Path | None,
    typer.Option(
        readable=False, metavar="FILE", help="Write one HTML file to look at and send around."
    ),
]
New = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TASK",
        help="Task that the training was meant to teach, reported apart; may be repeated, may hold "
        "* and ?.",
    ),
]
Deterministic = Annotated[
    bool,
    typer.Option(
        "--deterministic", help="You vouch for it: the same model would answer the same again."
    ),
]
Seed = Annotated[int, typer.Option(help="Seed of the draws.")]
Dtype = Annotated[
    str,
    typer.Option(
        metavar="TYPE",
        help="auto: float32 on a processor, bfloat16 on cards. bfloat16 and float16 flip some "
        "items.",
    ),
]
Device = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="cpu, cuda, cuda:1, mps; auto spreads a model over all cards. By default, the best "
        "one here.",
    ),
]
Quantize = Annotated[
    str | None,
    typer.Option(
        metavar="8bit|4bit", help="Load the weights quantised, by bitsandbytes; flips some items."
    ),
]
MaxMemory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZES",
        help="For --device auto: 20GiB of each card, or one for each: 0=20GiB,cpu=60GiB.",
    ),
]
Attention = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="eager, sdpa, flash_attention_2: as transformers has it."),
]
TrustCode = Annotated[
    bool,
    typer.Option("--trust-code", help="Run the code that a model brings. Read it first."),
]
Backend = Annotated[
    str,
    typer.Option(
        metavar="hf|vllm",
        help="What runs a local model: transformers, or vLLM where it is installed.",
    ),
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
    bool | None, typer.Option("--chat/--no-chat", help="Ask through the model's chat template.")
]
SuiteNames = Annotated[
    list[str],
    typer.Option(
        "--suite",
        metavar="SUITE",
        help="The questions: a suite's name, .jsonl or .yaml; may be repeated.",
    ),
]
Batch = Annotated[
    str, typer.Option(metavar="N|auto", help="Items in a batch, or requests at a time.")
]

RunCode = Annotated[
    bool,
    typer.Option(
        "--run-code",
        help="Run the programs that the model wrote against their tests, in a sandbox. Without it "
        "they are left out and listed.",
    ),
]


def check_outputs(outputs: list[Path | None], inputs: list[Path]) -> None:
    """Find what cannot be written, or must not be, before the long part begins."""
    from forgetmap.base.errors import InputError
    from forgetmap.base.files import check_writable

    wanted = [path for path in outputs if path is not None and str(path) != "-"]
    taken = {path.absolute() for path in inputs}
    for path in wanted:
        if path.absolute() in taken:
            raise InputError(f"{path}: is read or written already; name another file")
        taken.add(path.absolute())
        check_writable(path)


def write_json(path: Path | None, text: str) -> None:
    """Write JSON where `--json` said: to a file, to stdout for -, nowhere if not asked."""
    from forgetmap.base.files import write_text

    if str(path) == "-":
        typer.echo(text)
    elif path:
        write_text(path, text + "\n")


@contextmanager
def clear_errors() -> Iterator[None]:
    """Turn bad input into one line on stderr and an exit code; a traceback is for bugs only."""
    from forgetmap.base.errors import InputError, WithheldError

    try:
        yield
    except InputError as error:
        _fail(str(error), 2)
    except WithheldError as error:
        _fail(str(error), 3)
    except KeyboardInterrupt:
        _fail("interrupted", 130)


def _fail(message: str, code: int) -> NoReturn:
    from forgetmap.base.words import clean

    typer.echo(f"forgetmap: {clean(message, 600)}", err=True)
    raise typer.Exit(code)


@contextmanager
def progress(quiet: bool, *paths: Path) -> Iterator[Callable[[int], None]]:
    """A progress bar on stderr while logs are read and compared, if somebody is there to see it."""
    if quiet or not sys.stderr.isatty():
        yield lambda _bytes: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeElapsedColumn

    from forgetmap.base.files import size_of

    total = sum(size_of(path) for path in paths if path.exists())
    columns = ("{task.description}", BarColumn(), DownloadColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=total)

        def tick(count: int) -> None:
            bar.advance(task, count)
            if bar.tasks[0].completed >= total:  # what is left has no known length
                bar.update(task, description="comparing", total=None)

        yield tick


@contextmanager
def busy(quiet: bool, what: str) -> Iterator[None]:
    """A sign on stderr that work goes on, where nobody can say how long it takes."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


def batch_size(text: str) -> int | None:
    """The number that `--batch` names; None for auto."""
    from forgetmap.base.errors import InputError

    if text == "auto":
        return None
    if not text.isascii() or not text.isdigit():
        raise InputError(f"--batch {text}: must be a number or auto")
    return int(text)


@contextmanager
def answer_bar(quiet: bool, what: str = "answers") -> Iterator[Callable[[int, int], None]]:
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

    columns = (what, BarColumn(), MofNCompleteColumn(), Rate(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        shown = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(shown, completed=done, total=total)


Column = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="NEED=NAME",
        help="For CSV, JSONL and Parquet tables: which column holds what, e.g. score=is_right, "
        "question=prompt, id=uid, repeat=seed. forgetmap guesses the rest.",
    ),
]


def write_map(
    result: ForgettingMap,
    json: Path | None,
    csv: Path | None,
    latex: Path | None,
    figures: Path | None = None,
) -> None:
    """Write a map in the forms that were asked for."""
    from forgetmap.base.files import write_text
    from forgetmap.views.tables import maps as tables

    write_json(json, result.to_json())
    if csv:
        write_text(csv, tables.to_csv(result))
    if latex:
        write_text(latex, tables.to_latex(result))
    if figures:
        from forgetmap.views.figures.maps import write_figures

        write_figures(result, figures)


def name_value_pairs(options: list[str], flag: str) -> dict[str, str]:
    """Read options of the form NAME=VALUE."""
    from forgetmap.base.errors import InputError

    pairs: dict[str, str] = {}
    for option in options:
        name, equals, value = option.partition("=")
        if not (name and equals and value):
            raise InputError(f"{flag} {option}: write it as NAME=VALUE")
        if name in pairs:
            raise InputError(f"{flag} {option}: {name} was given already, as {pairs[name]}")
        pairs[name] = value
    return pairs


ManifestOption = Annotated[
    str,
    typer.Option(
        "--manifest",
        metavar="MANIFEST",
        help="Which capabilities by which metrics: captrack, open-suite, or a YAML file.",
    ),
]
