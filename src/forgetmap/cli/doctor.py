"""`forgetmap doctor`: what is installed here, and whether an engine gives the right numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from forgetmap.cli.options import Chat, Json, Quiet, check_outputs, clear_errors, write_json

if TYPE_CHECKING:
    from forgetmap.evaluate.machine import Machine
    from forgetmap.evaluate.models import Model

_SERVED = {"vllm": "vllm", "sglang": "sglang", "llama.cpp": "llamacpp"}
"""By backend: as whom a server of it signs its model card."""
_ITEMS = 50


def doctor(
    model: Annotated[
        str | None,
        typer.Argument(metavar="[MODEL]", help="With --backend: the model to check it with."),
    ] = None,
    backend: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Check an engine: hf, vllm, sglang or llama.cpp. Scores 50 items and compares "
            "them with the reference.",
        ),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="What it is compared with; by default MODEL, run by transformers in float32. An "
            "endpoint needs one: the folder or GGUF file that it serves.",
        ),
    ] = None,
    chat: Chat = None,
    json: Json = None,
    quiet: Quiet = False,
) -> None:
    """Say what is installed, what each extra would add, and what this machine has.

    With --backend, check whether an engine gives the numbers of transformers: 50 questions with
    options, both ways, and a verdict. Exit code 1 if they differ.

    Examples:

      forgetmap doctor

      forgetmap doctor --backend vllm runs/my-model

      forgetmap doctor --backend sglang http://127.0.0.1:30000/v1#name --reference runs/my-model
    """
    if backend or model or reference:
        _check(backend, model, reference, bool(chat), json, quiet)
        return
    with clear_errors():
        from forgetmap.evaluate.machine import look

        check_outputs([json], [])
        machine = look()
        write_json(json, machine.model_dump_json(indent=2))
    if not quiet and str(json) != "-":
        _print(machine)


def _check(
    backend: str | None,
    name: str | None,
    reference: str | None,
    chat: bool,
    json: Json,
    quiet: Quiet,
) -> None:
    from dataclasses import asdict

    import orjson

    from forgetmap.base.errors import InputError
    from forgetmap.evaluate.models import Running, open_model
    from forgetmap.evaluate.parity import likelihoods, options_of, parity
    from forgetmap.evaluate.prompts import Asking

    with clear_errors():
        check_outputs([json], [])
        if not (backend and name):
            raise InputError("--backend NAME and MODEL go together: doctor --backend vllm MODEL")
        if backend not in ("hf", *_SERVED):
            raise InputError(f"--backend {backend}: must be one of hf, {', '.join(_SERVED)}")
        is_served = name.startswith(("http://", "https://"))
        if not is_served and backend in ("sglang", "llama.cpp"):
            raise InputError(f"--backend {backend}: needs an address: http://host:8000/v1#name")
        if is_served and not reference:
            raise InputError(f"{name}: --reference names the folder or file that it serves")
        how = Running(backend="vllm" if backend == "vllm" and not is_served else "hf")
        # Rows of one item each: the plain way, which no packing of batches can get wrong.
        plain = Running("float32", batch=1)
        models = open_model(name, how, chat=chat), open_model(reference or name, plain, chat=chat)
        _check_engine(backend, models[0], is_served)
        asked = options_of("atlas", _ITEMS, Asking(chat=chat))
        found = parity(likelihoods(models[1], asked), likelihoods(models[0], asked))
        engines = [str(one.settings["engine"]) for one in models]
        told = asdict(found) | {"verdict": found.verdict, "engines": engines}
        write_json(json, orjson.dumps(told).decode())
    if not quiet and str(json) != "-":
        typer.echo(f"{engines[0]} against {engines[1]}, float32")
        typer.echo(str(found))
    if found.verdict == "differs":
        raise typer.Exit(1)


def _check_engine(backend: str, model: Model, is_served: bool) -> None:
    """Refuse to call one engine by the name of another."""
    from forgetmap.base.errors import InputError

    signed = model.settings["engine"]
    if is_served and signed != "endpoint" and signed != _SERVED.get(backend):
        raise InputError(f"--backend {backend}: the server says that it is {signed}")


def _print(machine: Machine) -> None:
    from forgetmap.base.extras import install
    from forgetmap.views.terminal.console import make_table, open_console, say, say_table

    out = open_console()
    say(out, f"forgetmap {machine.forgetmap}, Python {machine.python}, {machine.system}", "bold")
    say(out, f"{machine.cores} cores, {machine.memory_gb:.1f} GB of memory")
    say(out, f"cards: {', '.join(machine.cards) or machine.no_cards}")
    say(out, f"temporary files: {machine.temporary_folder}, {machine.free_gb:.1f} GB free")
    say(out, f"model-written code (--run-code): {machine.walls}")
    out.print()
    rows = [
        (extra.name, "yes" if not extra.missing else "no", extra.adds, ", ".join(extra.missing))
        for extra in machine.extras
    ]
    names = ("extra", "here", "what it adds", "missing packages")
    say_table(out, make_table(names, rows, left=names))
    lacking = [extra.name for extra in machine.extras if extra.missing]
    if lacking:
        typer.echo(f"all of them: {install('all')}")
    else:
        typer.echo("every extra is installed")
