"""`forgetmap divergence`: how far did a model move?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forgetmap.cli.options import (
    Batch,
    Device,
    Dtype,
    Json,
    Limit,
    Quiet,
    Seed,
    answer_bar,
    batch_size,
    check_outputs,
    clear_errors,
    write_json,
)

if TYPE_CHECKING:
    from forgetmap.evaluate.divergence import Divergence


def divergence(
    before: Annotated[
        str, typer.Argument(metavar="BEFORE", help="A folder, BASE+ADAPTER, or an endpoint.")
    ],
    after: Annotated[str, typer.Argument(metavar="AFTER", help="The same for the model after.")],
    text: Annotated[
        list[Path],
        typer.Option(
            readable=False,
            metavar="FILE",
            help="JSON lines of text, prompt + completion, or messages: old data, new data; may "
            "be repeated. The second part of each is scored.",
        ),
    ],
    samples: Annotated[
        int,
        typer.Option(metavar="N", help="Let each model write so many texts to the same prompts."),
    ] = 0,
    logprobs: Annotated[
        Path | None,
        typer.Option(
            readable=False,
            metavar="FILE",
            help="Write the log-probabilities of the samples (.jsonl), for theory estimate.",
        ),
    ] = None,
    limit: Limit = None,
    seed: Seed = 0,
    dtype: Dtype = "auto",
    device: Device = None,
    batch: Batch = "auto",
    json: Json = None,
    quiet: Quiet = False,
) -> None:
    """Say how far a model moved: KL both ways per token and per text, and perplexity.

    Two models whose weights are here are compared over all tokens at each place. Servers must tell
    log-probabilities; there KL comes from what the models write (--samples). The JSON can be named
    as `about` in a study file, which takes the numbers as attributes.

    Examples:

      forgetmap divergence runs/base runs/tuned --text old.jsonl --text new.jsonl --samples 50

      forgetmap divergence http://host:8000/v1#base http://host:8001/v1#tuned --text old.jsonl
    """
    with clear_errors(), answer_bar(quiet, "texts") as progress:
        from forgetmap.base.errors import InputError
        from forgetmap.evaluate.divergence import Text, diverge
        from forgetmap.evaluate.models import Running
        from forgetmap.mitigate.replay.pool import read_pool

        check_outputs([json, logprobs], text)
        if samples < 0:
            raise InputError(f"--samples {samples}: must not be negative")
        names = [path.stem for path in text]
        if len(set(names)) < len(names):
            raise InputError("--text: two files have the same name; rename one")
        texts = {
            path.stem: [
                Text(row.talk.prompt, row.talk.completion) for row in read_pool(path).rows[:limit]
            ]
            for path in text
        }
        result = diverge(
            before,
            after,
            texts,
            samples=samples,
            running=Running(dtype, device, batch_size(batch)),
            logprobs=logprobs,
            seed=seed,
            progress=progress,
        )
        write_json(json, result.to_json())
    if not quiet and str(json) != "-":
        _tell(result)


def _tell(result: Divergence) -> None:
    from forgetmap.stats.estimate import Estimate
    from forgetmap.views.terminal.console import open_console, say, say_notes
    from forgetmap.views.terminal.forecast import print_table

    def told(found: Estimate | None, digits: int = 3) -> str:
        if found is None:
            return "-"
        low, high = f"{found.low:.{digits}f}", f"{found.high:.{digits}f}"
        return f"{found.value:.{digits}f} ({low} to {high})"

    out = open_console()
    say(out, "How far it moved, in nats per token:", "bold")
    rows = [
        (
            name,
            f"{moved.texts:,}",
            told(moved.kl_forward),
            told(moved.kl_reverse),
            f"{moved.perplexity_before.value:.1f} -> {moved.perplexity_after.value:.1f}",
        )
        for name, moved in result.on.items()
    ]
    names = ("on", "texts", "KL(before, after)", "KL(after, before)", "perplexity")
    print_table(out, names, rows)
    if result.left_out:
        say(out, f"note: {result.left_out:,} texts were left out: a model could not take them")
    say_notes(out, result.notes)
