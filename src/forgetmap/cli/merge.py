"""`forgetmap merge`: merge two checkpoints, or find the merge that keeps the most."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forgetmap.cli.options import (
    Attention,
    Chat,
    Device,
    Dtype,
    Json,
    Limit,
    MaxMemory,
    Quantize,
    Quiet,
    Seed,
    Shots,
    SuiteNames,
    Tasks,
    TrustCode,
    check_outputs,
    clear_errors,
    write_json,
)
from forgetmap.cli.options import progress as reading

if TYPE_CHECKING:
    from forgetmap.evaluate.models import Running
    from forgetmap.mitigate.merge.merging import How
    from forgetmap.mitigate.merge.sweep import Sweep, SweepQuestions
    from forgetmap.mitigate.merge.weight_drift import WeightDrift


def merge(
    before: Annotated[
        str,
        typer.Argument(metavar="BEFORE", help="Folder of the model before, or BASE+ADAPTER."),
    ],
    after: Annotated[
        str,
        typer.Argument(
            metavar="AFTER", help="Folder of the model after, BASE+ADAPTER, or a LoRA adapter."
        ),
    ],
    method: Annotated[
        str,
        typer.Option(
            metavar="METHOD",
            help="linear, slerp, task-arithmetic, ties, dare or dare-ties; with --emit-yaml also "
            "nuslerp, della, della-linear, breadcrumbs or breadcrumbs-ties.",
        ),
    ] = "linear",
    weight: Annotated[
        float, typer.Option(help="Share of AFTER: 0 gives BEFORE, 1 gives AFTER.")
    ] = 0.5,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            readable=False,
            metavar="FOLDER",
            help="The merged model; with --sweep the results.",
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="The model that both were tuned from (task vectors). By default BEFORE.",
        ),
    ] = None,
    density: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Share of each task vector that stays (ties, dare)."),
    ] = None,
    scale: Annotated[
        float, typer.Option(help="Factor of what is added to the base (task vectors).")
    ] = 1.0,
    sweep: Annotated[
        str | None,
        typer.Option(
            metavar="START:STOP:STEP",
            help="Merge at each weight, evaluate, and map against both. Stopped sweeps resume.",
        ),
    ] = None,
    suite: SuiteNames = ["atlas"],  # noqa: B006 - typer copies it
    new: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TASK", help="A task that is the new skill; may be repeated, may hold * and ?."
        ),
    ] = None,
    choose: Annotated[
        float | None,
        typer.Option(
            metavar="BUDGET",
            help="Pick the point that learns most (gains most, without --new) and loses at most "
            "this share of the old items; it says if that is not sure.",
        ),
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the weights of every point of a sweep.")
    ] = False,
    tasks: Tasks = None,
    limit: Limit = None,
    shots: Shots = 0,
    chat: Chat = None,
    dtype: Dtype = "auto",
    device: Device = None,
    quantize: Quantize = None,
    max_memory: MaxMemory = None,
    attention: Attention = None,
    trust_code: TrustCode = False,
    drift: Annotated[
        bool, typer.Option("--drift", help="Say how far the weights moved, layer by layer.")
    ] = False,
    emit_yaml: Annotated[
        Path | None,
        typer.Option(
            readable=False, metavar="FILE", help="Write the same merge as mergekit's YAML."
        ),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(
            readable=False, metavar="FOLDER", help="Draw the sweep and the drift: SVG and PNG."
        ),
    ] = None,
    seed: Seed = 0,
    json: Json = None,
    quiet: Quiet = False,
) -> None:
    """Merge two checkpoints, or find the merge that keeps the old and the new.

    Examples:

      forgetmap merge runs/base runs/tuned --weight 0.3 --out runs/merged

      forgetmap merge runs/base runs/tuned --sweep 0:1:0.1 --suite atlas --new 'airports*'
      --choose 0.03 --out runs/sweep

      forgetmap merge runs/base runs/tuned --drift
    """
    with clear_errors():
        from forgetmap.base.errors import InputError
        from forgetmap.evaluate.models import Running
        from forgetmap.mitigate.merge.merging import How

        check_outputs([json, emit_yaml], [])
        how = How(method, weight, density, scale, seed)
        if not (out or drift or emit_yaml):
            raise InputError("say what to do: --out FOLDER, --drift or --emit-yaml FILE")
        if sweep is None and (new or choose is not None or keep):
            raise InputError("--new, --choose and --keep belong to --sweep")
        if choose is not None and not 0 < choose <= 1:
            raise InputError(f"--choose {choose}: must be a share above 0 and at most 1")
        if emit_yaml:
            _emit(emit_yaml, before, after, how, base)
        moved = _drift(before, after, quiet) if drift else None
        swept = merged = None
        if sweep is not None:
            running = Running(
                dtype, device, None, None, quantize, max_memory, attention, trust_code
            )
            asked = _asked(suite, tasks, limit, shots, bool(chat), running)
            options = {"base": base, "new": new or (), "budget": choose, "keep": keep}
            swept = _sweep(before, after, out, sweep, asked, how, quiet, options)
        elif out:
            merged = _merge(before, after, out, how, base, quiet)
        _draw(figures, swept, moved)
        write_json(json, _as_json(how, merged, swept, moved))
    if not quiet and str(json) != "-":
        _show(merged, swept, moved)


def _emit(path: Path, before: str, after: str, how: How, base: str | None) -> None:
    from forgetmap.base.files import write_text
    from forgetmap.mitigate.merge.merging import mergekit_yaml, open_weights

    open_weights(after)
    dtype = open_weights(before).dtype
    write_text(path, mergekit_yaml(before, after, how, base=base, dtype=dtype))


def _drift(before: str, after: str, quiet: bool) -> WeightDrift:
    from forgetmap.mitigate.merge.adapters import is_adapter
    from forgetmap.mitigate.merge.weight_drift import weight_drift

    tuned = f"{before}+{after}" if is_adapter(after) else after
    with _bytes(before, quiet) as progress:
        return weight_drift(before, tuned, progress)


def _merge(before: str, after: str, out: Path, how: How, base: str | None, quiet: bool) -> Path:
    from dataclasses import asdict

    from forgetmap.mitigate.merge.merging import merge as run

    with _bytes(before, quiet) as progress:
        return run(before, after, out, base=base, progress=progress, **asdict(how))


@contextmanager
def _bytes(model: str, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """A progress bar over a model's bytes, told how many are done."""
    with reading(quiet, Path(model)) as tick:
        done = 0

        def advance(now: int, _all: int) -> None:
            nonlocal done
            tick(now - done)
            done = now

        yield advance


def _asked(
    suite: list[str],
    tasks: list[str] | None,
    limit: int | None,
    shots: int,
    chat: bool,
    running: Running,
) -> SweepQuestions:
    from forgetmap.evaluate.prompts import Asking
    from forgetmap.mitigate.merge.sweep import SweepQuestions

    return SweepQuestions(suite, Asking(shots, chat), running, tasks or (), limit)


def _sweep(
    before: str,
    after: str,
    out: Path | None,
    weights: str,
    asked: SweepQuestions,
    how: How,
    quiet: bool,
    options: dict[str, Any],
) -> Sweep:
    from forgetmap.base.errors import InputError
    from forgetmap.mitigate.merge.sweep import parse_weights
    from forgetmap.mitigate.merge.sweep import sweep as run

    if out is None:
        raise InputError("--sweep: name a folder for the results with --out")

    def say(text: str) -> None:
        if not quiet:
            typer.echo(text, err=True)

    return run(before, after, out, parse_weights(weights), asked, how=how, say=say, **options)


def _draw(folder: Path | None, swept: Sweep | None, moved: WeightDrift | None) -> None:
    if folder is None:
        return
    from forgetmap.base.files import make_folder
    from forgetmap.views.figures.merge import draw_drift, draw_sweep
    from forgetmap.views.figures.style import save, style

    make_folder(folder)
    with style():
        if swept:
            save(draw_sweep(swept), folder, "sweep")
        if moved:
            save(draw_drift(moved), folder, "drift")


def _as_json(how: How, merged: Path | None, swept: Sweep | None, moved: WeightDrift | None) -> str:
    import json
    from dataclasses import asdict

    parts: dict[str, Any] = {}
    if merged:
        parts["merged"] = {"folder": str(merged), **asdict(how)}
    if swept:
        parts["sweep"] = json.loads(swept.to_json())
    if moved:
        parts["drift"] = moved.model_dump(mode="json")
    return json.dumps(parts, indent=2)


def _show(merged: Path | None, swept: Sweep | None, moved: WeightDrift | None) -> None:
    from forgetmap.views.terminal.console import open_console

    if merged:
        typer.echo(f"{merged}: written")
    if moved:
        from forgetmap.views.terminal.weight_drift import print_drift

        print_drift(moved, open_console())
    if swept:
        from forgetmap.views.terminal.sweep import print_sweep

        print_sweep(swept, open_console())
