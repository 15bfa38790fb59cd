"""`forgetmap watch`: map every checkpoint that a training run saves, while it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from forgetmap.cli.options import (
    Attention,
    Batch,
    Chat,
    Device,
    Dtype,
    MaxMemory,
    New,
    Quantize,
    Quiet,
    Seed,
    SuiteNames,
    TrustCode,
    batch_size,
    clear_errors,
)


def watch(
    folder: Annotated[
        Path,
        typer.Argument(
            readable=False, metavar="CHECKPOINTS", help="The folder that the trainer saves into."
        ),
    ],
    before: Annotated[
        str, typer.Option(metavar="MODEL", help="The model that training began with.")
    ],
    suite: SuiteNames = ["atlas"],  # noqa: B006 - typer copies it
    budget: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="For each checkpoint, as 60, 60s or 2m: as much is asked as the model before "
            "answers in it.",
        ),
    ] = "60",
    new: New = None,
    gate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LIMIT",
            help="End with exit code 1 once a limit is surely broken: max-forgetting=0.03.",
        ),
    ] = None,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Tell a broken limit, and watch on.")
    ] = False,
    webhook: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Post a line of JSON there when a limit is broken."),
    ] = None,
    out: Annotated[
        Path,
        typer.Option(
            "--out", readable=False, metavar="FOLDER", help="Answers, and the page lineage.html."
        ),
    ] = Path("forgetmap-watch"),
    every: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="Between two looks at the folder, as 10, 10s or 2m; save is the same as 10. Every "
            "checkpoint is asked in any case.",
        ),
    ] = "10",
    idle: Annotated[
        float | None,
        typer.Option(
            metavar="MINUTES", help="End when no checkpoint came for so long. By default, never."
        ),
    ] = None,
    chat: Chat = None,
    dtype: Dtype = "auto",
    device: Device = None,
    batch: Batch = "auto",
    quantize: Quantize = None,
    max_memory: MaxMemory = None,
    attention: Attention = None,
    trust_code: TrustCode = False,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Map every checkpoint that a trainer saves, while it trains, and stop at a limit.

    Needs nothing from the trainer but folders that transformers can load, full models or adapters.
    Each checkpoint is asked in a process of its own. The page lineage.html grows with them and
    reloads itself. A watch that was stopped goes on where it was.

    Examples:

      forgetmap watch runs/sft --before runs/base --budget 60s --gate max-forgetting=0.03

      forgetmap watch runs/sft --before runs/base --idle 0
    """
    from forgetmap.base.files import make_folder
    from forgetmap.base.http import check_address
    from forgetmap.evaluate.models import Running
    from forgetmap.evaluate.prompts import Asking
    from forgetmap.evaluate.run import check_new, load_suite
    from forgetmap.evaluate.watch import Watch, find_checkpoints
    from forgetmap.gate.judgement import parse_limit

    def say(text: str) -> None:
        if not quiet:
            typer.echo(text)

    with clear_errors():
        for limit in gate or []:
            parse_limit(limit)
        seconds = seconds_of(budget, "--budget", least=0.001)
        pause = seconds_of("10" if every == "save" else every, "--every", "save")
        if webhook:
            check_address(webhook, "--webhook", "the service behind it")
        find_checkpoints(folder)
        check_new(load_suite(suite, seed), new or [])
        make_folder(out)
        watched = Watch(
            folder, before, out, suite, seconds, Asking(chat=chat, seed=seed),
            Running(
                dtype, device, batch_size(batch), None, quantize, max_memory, attention, trust_code
            ),
            pause, idle, say,
        )  # fmt: skip
        watched.start()
        names: list[str] = []
        for name in watched.checkpoints():
            names.append(name)
            broken = _tell(out, names, new or [], gate or [], say)
            if broken and webhook:
                _post(webhook, name, broken)
            if broken and not keep_going:
                raise typer.Exit(1)
        say(f"{len(names)} checkpoints; {out / PAGE if names else 'no page'}")


def seconds_of(text: str, option: str, other: str = "", least: float = 0) -> float:
    """The seconds of a time as people write it; `other` is what the option takes besides.

    Example:
        >>> [seconds_of(text, "--budget") for text in ("60", "60s", "1.5 m")]
        [60.0, 60.0, 90.0]
    """
    import re

    from forgetmap.base.errors import InputError

    found = re.fullmatch(r"(\d{1,9}|\d{0,9}\.\d{1,9})\s*([sm]?)", text, re.ASCII)
    seconds = float(found[1]) * (60 if found[2] == "m" else 1) if found else -1
    if seconds < least:
        forms = ", ".join(["60", "60s", "2m", *filter(None, [other])])
        above = " above 0" if least else ""
        raise InputError(f"{option} {text}: must be a time{above}, written as one of {forms}")
    return seconds


PAGE = "lineage.html"
_RELOAD = '<head><meta http-equiv="refresh" content="30">'


def _tell(
    out: Path, names: Sequence[str], new: list[str], limits: list[str], say: Callable[[str], None]
) -> list[str]:
    """Map the last checkpoint against the model before, and draw all; the limits it breaks."""
    from forgetmap.api import compare
    from forgetmap.base.errors import WithheldError
    from forgetmap.gate.judgement import check_gate

    tasks = out / names[-1] / "tasks.csv"
    result = compare(out / "before", out / names[-1], task_map=tasks, new=new)
    result.write(out / names[-1] / "map.json")
    say(f"{names[-1]}: {result.headline()}")
    _draw(out, names, tasks, new)
    try:
        gates = check_gate(result, limits)
    except WithheldError as error:
        say(f"{names[-1]}: {error}")
        return []
    broken = [one.limit for one in gates if not one.holds]
    for limit in broken:
        say(f"{names[-1]}: breaks {limit}")
    return broken


def _draw(out: Path, names: Sequence[str], tasks: Path, new: list[str]) -> None:
    """The page of all checkpoints so far, whole or not at all; it reloads itself."""
    from forgetmap.api import lineage
    from forgetmap.base.files import write_text
    from forgetmap.lineage.pipeline import Checkpoint, Pipeline

    line = ["before", *names]
    stages = {
        name: Checkpoint(log=str(out / name), parents=(line[place - 1],) if place else ())
        for place, name in enumerate(line)
    }
    fresh = out / f".{PAGE}"
    lineage(Pipeline.of(stages), task_map=tasks, new=new, report=fresh)
    write_text(out / PAGE, fresh.read_text(encoding="utf-8").replace("<head>", _RELOAD, 1))
    fresh.unlink()


def _post(url: str, name: str, broken: list[str]) -> None:
    """Tell a webhook; a server that does not answer must not end the watch."""
    import json
    import urllib.request

    body = json.dumps({"checkpoint": name, "breaks": broken}).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    try:
        urllib.request.urlopen(request, timeout=10).close()
    except (OSError, ValueError) as error:
        typer.echo(f"--webhook {url}: {error}", err=True)
