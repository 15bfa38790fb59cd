"""`forgetmap check`: did the tuned model lose anything? One command, in the time there is."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from forgetmap.cli.options import (
    Attention,
    Backend,
    Batch,
    Chat,
    Device,
    Dtype,
    Json,
    MaxMemory,
    New,
    Quantize,
    Quiet,
    Seed,
    SuiteNames,
    TrustCode,
    answer_bar,
    batch_size,
    check_outputs,
    clear_errors,
    write_json,
)


def check(
    base: Annotated[
        str,
        typer.Argument(
            metavar="BASE",
            help="The model before: a Hugging Face folder or id, BASE+ADAPTER, a GGUF file, or an "
            "endpoint (http://host:8000/v1#name).",
        ),
    ],
    tuned: Annotated[
        str, typer.Argument(metavar="TUNED", help="The model after, or an adapter of BASE.")
    ],
    minutes: Annotated[
        float,
        typer.Option(metavar="N", help="Time for both models; with more of it, more is asked."),
    ] = 10,
    suite: SuiteNames = ["atlas"],  # noqa: B006 - typer copies it
    new: New = None,
    out: Annotated[
        Path,
        typer.Option(
            "--out", readable=False, metavar="FOLDER", help="Where results go and are resumed from."
        ),
    ] = Path("forgetmap-check"),
    chat: Chat = None,
    dtype: Dtype = "auto",
    device: Device = None,
    batch: Batch = "auto",
    quantize: Quantize = None,
    max_memory: MaxMemory = None,
    attention: Attention = None,
    trust_code: TrustCode = False,
    backend: Backend = "hf",
    seed: Seed = 0,
    show: Annotated[
        bool,
        typer.Option("--open/--no-open", help="Open the report in the browser when it is there."),
    ] = True,
    json: Json = None,
    quiet: Quiet = False,
) -> None:
    """Ask a model and its tuned copy the same questions, and open the report of what was lost.

    Asks as many questions as fit into the time. The same command again, with more minutes, asks
    more and keeps what is there. Each model is asked in its own form: through its chat template
    where it has one. --chat and --no-chat decide for both.

    Examples:

      forgetmap check runs/base runs/tuned

      forgetmap check runs/base runs/lora --minutes 30 --suite atlas --suite mine.jsonl --new mine
    """
    from forgetmap.api import compare
    from forgetmap.base.files import make_folder
    from forgetmap.evaluate.check import check_models
    from forgetmap.evaluate.models import Running
    from forgetmap.evaluate.prompts import Asking
    from forgetmap.evaluate.run import check_new, load_suite
    from forgetmap.views.terminal import maps as terminal
    from forgetmap.views.terminal.console import open_console

    report = out / "report.html"
    with clear_errors(), answer_bar(quiet) as progress:
        check_outputs([json], [])
        loaded = load_suite(suite, seed)
        check_new(loaded, new or [])
        make_folder(out)
        checked = check_models(
            base, tuned, out,
            suite=loaded, minutes=minutes, asking=Asking(chat=chat, seed=seed),
            running=Running(
                *(dtype, device, batch_size(batch), None, quantize, max_memory, attention),
                *(trust_code, backend),
            ),
            progress=progress,
        )  # fmt: skip
        result = compare(
            checked.before.folder, checked.after.folder,
            task_map=checked.after.folder / "tasks.csv", new=new or (), causes=True, report=report,
        )  # fmt: skip
        write_json(json, result.to_json())
    if quiet or str(json) == "-":
        return
    terminal.print_map(result, open_console())
    if checked.limit:
        typer.echo(
            f"\nAsked: the first {checked.limit} questions of each task, in {minutes:g} minutes; "
            "the same command with more --minutes asks more"
        )
    typer.echo(f"\nThe report: {report}")
    if show and sys.stdout.isatty():
        import webbrowser

        webbrowser.open(report.absolute().as_uri())
