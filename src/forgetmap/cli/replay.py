"""`forgetmap replay`: build a replay set for what was lost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forgetmap.cli.options import (
    Batch,
    Chat,
    Device,
    Dtype,
    Json,
    Quiet,
    Seed,
    answer_bar,
    batch_size,
    check_outputs,
    clear_errors,
    write_json,
)

if TYPE_CHECKING:
    from forgetmap.mitigate.replay.build import ReplaySet

_SHOWN = 10


def replay(
    budget: Annotated[int, typer.Option(metavar="N", help="Examples wanted.")],
    saved: Annotated[
        Path | None,
        typer.Argument(
            readable=False, metavar="[MAP]", help="A comparison that compare --save wrote."
        ),
    ] = None,
    risks: Annotated[
        Path | None,
        typer.Option(
            readable=False,
            metavar="FILE",
            help="In place of a map: a forecast (forgetmap forecast --out), before any training.",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="BEFORE",
            help="The model before makes up examples: a folder, BASE+ADAPTER, an endpoint.",
        ),
    ] = None,
    pool: Annotated[
        Path | None,
        typer.Option(
            readable=False,
            metavar="FILE",
            help="Draw examples from your own JSON lines: messages, prompt + completion, or text.",
        ),
    ] = None,
    log: Annotated[
        list[Path] | None,
        typer.Option(
            readable=False,
            metavar="LOG",
            help="The evaluation log of the map, whose items are kept out; may be repeated.",
        ),
    ] = None,
    category: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Repair this category (a task, without a task map) alone; may be repeated.",
        ),
    ] = None,
    out: Annotated[
        Path,
        typer.Option("--out", readable=False, metavar="FOLDER", help="Where the files go."),
    ] = Path("forgetmap-replay"),
    keep: Annotated[
        float, typer.Option(help="Old behaviour to be left after training; sets the mixing ratio.")
    ] = 0.2,
    train: Annotated[
        Path | None,
        typer.Option(
            readable=False, metavar="FILE", help="Your new training data, for the mixture file."
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop if the pool holds evaluation items.")
    ] = False,
    answers: Annotated[
        int, typer.Option(help="Answers drawn beside the likeliest, for each made-up question.")
    ] = 5,
    agreement: Annotated[
        float, typer.Option(help="Share of these that must agree with the likeliest.")
    ] = 0.6,
    max_tokens: Annotated[int, typer.Option(metavar="N", help="Longest answer.")] = 32,
    chat: Chat = None,
    seed: Seed = 0,
    dtype: Dtype = "auto",
    device: Device = None,
    batch: Batch = "auto",
    json: Json = None,
    quiet: Quiet = False,
) -> None:
    """Build a replay set for what was lost. It never holds evaluation items.

    Examples:

      forgetmap compare runs/base runs/tuned --save maps/tuned

      forgetmap replay maps/tuned --model models/base --log runs/base --budget 500

      forgetmap replay maps/tuned --pool mine.jsonl --log runs/base --budget 500 --strict

      forgetmap replay maps/tuned --pool mine.jsonl --log runs/base --budget 500 --category Maths

      forgetmap replay --risks risks.parquet --pool mine.jsonl --log runs/base --budget 500
    """
    with clear_errors(), answer_bar(quiet) as progress:
        from forgetmap.evaluate.models import Running
        from forgetmap.mitigate.replay.build import build_replay
        from forgetmap.mitigate.replay.synthesis import Making

        check_outputs([json], [path for path in (pool, train) if path])
        result = build_replay(
            saved,
            out,
            budget,
            risks=risks,
            logs=log or [],
            categories=category or [],
            model=model,
            running=Running(dtype, device, batch_size(batch)),
            making=Making(answers, agreement, max_tokens, bool(chat), seed),
            pool=pool,
            keep=keep,
            train=train,
            strict=strict,
            progress=progress,
        )
        write_json(json, result.to_json())
    if not quiet and str(json) != "-":
        _tell(result, out)


def _tell(result: ReplaySet, out: Path) -> None:
    from rich.text import Text

    from forgetmap.base.words import clean
    from forgetmap.views.terminal.console import open_console

    console = open_console()
    console.print(Text(f"{clean(out)}: {result.examples:,} of {result.budget:,} examples"))
    console.print(_table(result))
    console.print(
        Text(
            f"held against {result.checked_items:,} evaluation texts: {result.refused:,} refused; "
            "another wording of an item is not found"
        )
    )
    for line in _refusals(result):
        console.print(Text(clean(line, 400), style="bold red"))
    if result.dropped:
        listed = ", ".join(f"{name} {count:,}" for name, count in result.dropped.items())
        console.print(Text(f"not used: {listed}"))
    for mix in result.mixing:
        console.print(Text(f"{mix.training} training: {mix.meaning}", style="bold"))
        console.print(Text(f"  rests on: {mix.rests_on}"))
        console.print(Text(f"  do not trust it when: {mix.do_not_trust_when}"))
    console.print(Text(f"at that share the set goes with {result.new_examples:,} new examples"))
    for text in result.warnings:
        console.print(Text(f"note: {clean(text)}", style="yellow"))


def _table(result: ReplaySet) -> object:
    from rich.table import Table
    from rich.text import Text

    from forgetmap.base.words import clean

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("category")
    for name in ("lost", "wanted", "made up", "drawn"):
        table.add_column(name, justify="right")
    for name, share in result.categories.items():
        counts = (share.forgotten, share.wanted, share.synthesised, share.drawn)
        table.add_row(Text(clean(name, 60)), *(f"{count:,}" for count in counts))
    return table


def _refusals(result: ReplaySet) -> list[str]:
    """Rows of the pool that hold an evaluation item, by their lines."""
    of_pool = [refusal for refusal in result.refusals if refusal.source != "model"]
    lines = [
        f"REFUSED {refusal.source}: {refusal.how} of {refusal.task} {refusal.item}"
        for refusal in of_pool[:_SHOWN]
    ]
    if result.refused_of_pool > _SHOWN:
        rest = result.refused_of_pool - _SHOWN
        lines.append(f"REFUSED {rest:,} more rows of the pool; manifest.json lists them")
    return lines
