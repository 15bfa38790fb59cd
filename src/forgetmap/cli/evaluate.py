"""`forgetmap eval`: run a model over a suite of questions, or two and map them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forgetmap.cli.options import (
    Attention,
    Backend,
    Batch,
    Chat,
    Dtype,
    Json,
    Limit,
    MaxMemory,
    New,
    Quantize,
    Quiet,
    RunCode,
    Seed,
    Shots,
    SuiteNames,
    Tasks,
    TrustCode,
    answer_bar,
    batch_size,
    check_outputs,
    clear_errors,
    write_json,
)

if TYPE_CHECKING:
    from forgetmap.evaluate.models import Running
    from forgetmap.evaluate.questions import Suite
    from forgetmap.evaluate.run import Evaluation
    from forgetmap.study.missing import Made


def evaluate(
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="[MODEL]",
            help="A Hugging Face folder or id, BASE+ADAPTER, a GGUF file, an endpoint "
            "(http://host:8000/v1#name), or lm-eval:CLASS:ARGUMENTS.",
        ),
    ] = None,
    before: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Map two models: the one before.")
    ] = None,
    after: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Map two models: the one after.")
    ] = None,
    study: Annotated[
        Path | None,
        typer.Option(
            readable=False,
            metavar="FILE",
            help="Make the logs that a study file names and that are missing.",
        ),
    ] = None,
    suite: SuiteNames = ["atlas"],  # noqa: B006 - typer copies it
    data: Annotated[
        list[Path] | None,
        typer.Option(
            readable=False,
            metavar="FOLDER",
            help="Where post-forget finds its data sets: a folder or a wheel; may be repeated.",
        ),
    ] = None,
    out: Annotated[
        Path,
        typer.Option(
            "--out", readable=False, metavar="FOLDER", help="Where results go and are resumed from."
        ),
    ] = Path("forgetmap-eval"),
    tasks: Tasks = None,
    limit: Limit = None,
    shots: Shots = 0,
    chat: Chat = None,
    own_form: Annotated[
        bool,
        typer.Option(
            "--own-form",
            help="Ask each model in its own form: through its chat template where it has one.",
        ),
    ] = False,
    system: Annotated[str, typer.Option(metavar="TEXT", help="System prompt.")] = "",
    letters: Annotated[
        bool | None,
        typer.Option(
            "--letters/--likelihood",
            help="Let the model write the letter of an option, or score each option's likelihood. "
            "By default each suite decides.",
        ),
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(metavar="N", help="Longest answer. By default each task decides.")
    ] = None,
    temperature: Annotated[
        float,
        typer.Option(help="0 takes the likeliest token; above 0, answers are drawn."),
    ] = 0.0,
    repeats: Annotated[
        int, typer.Option(help="How often to draw each written answer, for the noise floor.")
    ] = 1,
    seed: Seed = 0,
    dtype: Dtype = "auto",
    device: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="cpu, cuda, cuda:1, mps; auto spreads a model over all cards; parallel, under "
            "torchrun, splits each layer over them. By default, the best one here. Twice: of "
            "before and after, asked at once on two cards.",
        ),
    ] = None,
    batch: Batch = "auto",
    revision: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            help="Branch, tag or commit of a hub id; for a served model, a name of its weights. "
            "Twice: of before and after.",
        ),
    ] = None,
    quantize: Quantize = None,
    max_memory: MaxMemory = None,
    attention: Attention = None,
    trust_code: TrustCode = False,
    backend: Backend = "hf",
    allow_failed: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="Share of an endpoint's requests that may fail; they are counted, not scored.",
        ),
    ] = 0.0,
    executor: Annotated[
        str, typer.Option(metavar="local|ray", help="This process, or a Ray cluster.")
    ] = "local",
    address: Annotated[
        str,
        typer.Option(metavar="ADDRESS", help="The Ray cluster's address; local starts one here."),
    ] = "local",
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Processes on the Ray cluster.")
    ] = None,
    new: New = None,
    risks: Annotated[
        Path | None,
        typer.Option(
            readable=False,
            metavar="FILE",
            help="Ask only items drawn by risk (forgetmap forecast --out); totals stay unbiased.",
        ),
    ] = None,
    budget: Annotated[
        int | None, typer.Option(metavar="N", help="How many items to draw by risk.")
    ] = None,
    run_code: RunCode = False,
    json: Json = None,
    quiet: Quiet = False,
) -> None:
    """Run one model over a suite of questions, or run two and map them. Stopped runs resume.

    Answers to a suite of capabilities (open-suite, captrack) are kept for `forgetmap score`. For
    two models you then see the drift instead of the map.

    With --study, every log that the study names and that is missing is made where the study looks
    for it. The study file says which model to ask (eval_before, eval_after) and which suite.

    Examples:

      forgetmap eval runs/my-model --suite atlas --out runs/my-model-atlas

      forgetmap eval --before runs/base --after runs/tuned --suite atlas --out runs/map

      forgetmap eval runs/my-model --suite post-forget --data copies --likelihood --out runs/pf

      forgetmap eval --study study.yaml --executor ray

      forgetmap eval runs/tuned --suite atlas --risks risks.parquet --budget 500 --out runs/check
    """
    from forgetmap.base.errors import InputError
    from forgetmap.base.files import make_folder
    from forgetmap.evaluate.models import Running
    from forgetmap.evaluate.prompts import Asking
    from forgetmap.evaluate.suites import with_data

    with (
        clear_errors(),
        _joined(device or [], executor, study) as leads,
        answer_bar(quiet or not leads) as progress,
    ):
        if not leads:
            return
        check_outputs([json], [])
        _check_named(model, before, after, study)
        if study and (json or new or run_code):
            raise InputError("--study makes logs; --json, --new and --run-code are for other verbs")
        if run_code and model:
            raise InputError(
                "--run-code: one model is asked, not scored; use it with `forgetmap score`"
            )
        if own_form and chat is not None:
            raise InputError("--own-form decides for each model; leave --chat and --no-chat out")
        _check_risks(risks, budget, bool(model) and not (limit or tasks))
        form = None if own_form else bool(chat)
        asking = Asking(shots, form, system, bool(letters), max_tokens, temperature, repeats, seed)
        if data or letters is False:
            suite = with_data(suite, data or (), likelihood=letters is False)
        sides = 2 if before else 1
        if study and revision:
            raise InputError("--revision: a study names many models; put revisions into its file")
        devices, revisions = _each("device", device, sides), _each("revision", revision, sides)
        how = tuple(
            Running(
                *(dtype, one, batch_size(batch), other, quantize, max_memory, attention),
                *(trust_code, backend),
            )
            for one, other in zip(devices, revisions, strict=True)
        )
        if not study:
            make_folder(out)
        options: dict[str, Any] = {
            "asking": asking,
            "running": how if before else how[0],
            "tasks": tasks or (),
            "limit": limit,
            "allow_failed": allow_failed,
            "progress": progress,
        }
        spread = _spread(executor, form, workers, address)
        if study:
            _missing(study, suite, options, spread, quiet)
        elif model:
            _one(
                model, _by_risk(suite, risks, budget, out, seed), out, options, spread, json, quiet
            )
        else:
            models = str(before), str(after)
            _two(*models, suite, out, options, spread, new or [], run_code, json, quiet)


def _check_named(
    model: str | None, before: str | None, after: str | None, study: Path | None
) -> None:
    from forgetmap.base.errors import InputError

    ways = bool(model) + bool(before or after) + bool(study)
    if ways != 1 or bool(before) != bool(after):
        raise InputError("give one MODEL, or --before and --after, or --study")


@contextmanager
def _joined(devices: list[str], executor: str, study: Path | None) -> Iterator[bool]:
    """Join the processes of --device parallel; whether this one runs the command."""
    from forgetmap.evaluate.models import PARALLEL
    from forgetmap.evaluate.parallel import together

    with together(PARALLEL if PARALLEL in devices else None) as leads:
        if leads and PARALLEL in devices:
            _check_parallel(devices, executor, study)
        yield leads


def _check_parallel(devices: list[str], executor: str, study: Path | None) -> None:
    """Refuse what would need processes of its own beside those that torchrun started."""
    from forgetmap.base.errors import InputError

    if len(set(devices)) > 1:
        raise InputError("--device parallel: is for both models; give no other device beside it")
    if executor != "local":
        raise InputError(
            f"--device parallel: does not go with --executor {executor}; leave one out"
        )
    if study:
        raise InputError("--device parallel: does not go with --study; evaluate each model by name")


def _each(option: str, values: list[str] | None, sides: int) -> list[str | None]:
    """The value of an option for each side: one for all, or one for each."""
    from forgetmap.base.errors import InputError

    if values and len(values) not in (1, sides):
        raise InputError(f"--{option}: given {len(values)} times; once, or once for each model")
    if option == "revision" and sides == 2 and len(values or ()) == 1:
        raise InputError("--revision names the weights of one model; give it twice, for each one")
    return list(values * sides if len(values) < sides else values) if values else [None] * sides


Spread = Callable[[str, "Running"], Any]
"""What puts the jobs of a model to it, by the model's name and how it is run."""


def _check_risks(risks: Path | None, budget: int | None, whole: bool) -> None:
    from forgetmap.base.errors import InputError

    if (risks is None) != (budget is None):
        raise InputError("--risks FILE and --budget N go together")
    if risks and not whole:
        raise InputError("--risks: give one MODEL, without --limit and --tasks")


def _by_risk(
    suite: Sequence[str], risks: Path | None, budget: int | None, out: Path, seed: int
) -> Sequence[str] | Suite:
    """The items that say most about forgetting; their chances are kept beside the answers."""
    if risks is None or budget is None:
        return suite
    from forgetmap.evaluate.run import load_suite
    from forgetmap.mitigate.forecast.sampling import choose, chosen_suite, write_chosen

    chosen = choose(risks, budget, seed)
    asked = chosen_suite(load_suite(suite, seed), chosen)
    write_chosen(out, chosen)
    return asked


def _one(
    model: str,
    suite: Sequence[str] | Suite,
    out: Path,
    options: dict[str, Any],
    spread: Spread,
    json: Path | None,
    quiet: bool,
) -> None:
    from forgetmap.evaluate.run import evaluate as run
    from forgetmap.readers.summary import show
    from forgetmap.views.terminal import maps as terminal
    from forgetmap.views.terminal.console import open_console

    done = run(model, suite, out, work=spread(model, options["running"]), **options)
    summary = show(done.folder / "samples.parquet")
    write_json(json, summary.model_dump_json(indent=2))
    if not quiet and str(json) != "-":
        typer.echo(_kept(done))
        terminal.print_log(summary, open_console())
        if done.manifest:
            typer.echo(
                f"\nNot scored yet: forgetmap score {out}/responses.jsonl "
                f"--manifest {done.manifest} --out {out}/scores.parquet"
            )


def _missing(
    file: Path, suite: Sequence[str], options: dict[str, Any], spread: Spread, quiet: bool
) -> None:
    """Make what a study lacks; models that fail are told, and the others go on."""
    from forgetmap.base.errors import InputError
    from forgetmap.study.file import Study
    from forgetmap.study.missing import make_missing

    made = list(_told(make_missing(Study.load(file), suite, spread=spread, **options), quiet))
    failed = [one for one in made if one.failure]
    if failed:
        first = failed[0]
        raise InputError(
            f"{len(failed)} of {len(made)} missing logs could not be made; {first.missing.log}: "
            f"{first.failure}"
        )
    if not quiet:
        typer.echo(f"nothing is missing; now: forgetmap study {file}")


def _told(made: Iterator[Made], quiet: bool) -> Iterator[Made]:
    """Say of every log what became of it, as soon as it is known."""
    for one in made:
        if not quiet:
            text = _kept(one.done) if one.done else f"{one.missing.log}: could not be made"
            typer.echo(text)
        yield one


def _two(
    before: str,
    after: str,
    suite: Sequence[str],
    out: Path,
    options: dict[str, Any],
    spread: Spread,
    new: list[str],
    run_code: bool,
    json: Path | None,
    quiet: bool,
) -> None:
    from forgetmap.api import compare
    from forgetmap.base.errors import InputError
    from forgetmap.capabilities.drift import MIN_ITEMS
    from forgetmap.evaluate.run import check_new, compare_models, load_suite
    from forgetmap.views.terminal import maps as terminal
    from forgetmap.views.terminal.console import open_console

    loaded = load_suite(suite, options["asking"].seed)
    if run_code and not loaded.manifest:
        raise InputError(f"--run-code: the suite {suite} has no programs to run; leave it out")
    if loaded.manifest and (options["limit"] or MIN_ITEMS) < MIN_ITEMS:
        raise InputError(
            f"--limit {options['limit']}: a drift needs {MIN_ITEMS} questions of a task at least"
        )
    check_new(loaded, new, options["tasks"])
    sides = compare_models(before, after, loaded, out, spread=spread, **options)
    if loaded.manifest:
        _drift(loaded.manifest, out, run_code, json, quiet)
        return
    result = compare(*sides, task_map=out / "after" / "tasks.csv", new=new)
    write_json(json, result.to_json())
    if not quiet and str(json) != "-":
        terminal.print_map(result, open_console())
        typer.echo(f"\nThe same again: {again(out, new)}")


def again(out: Path, new: Sequence[str]) -> str:
    """The command that maps two finished evaluations once more.

    Example:
        >>> again(Path("map"), ["air*"])
        "forgetmap compare map/before map/after --task-map map/after/tasks.csv --new 'air*'"
    """
    words = ["forgetmap", "compare", f"{out}/before", f"{out}/after"]
    words += ["--task-map", f"{out}/after/tasks.csv"]
    for name in new:
        words += ["--new", name]
    return shlex.join(words)


def _drift(manifest: str, out: Path, run_code: bool, json: Path | None, quiet: bool) -> None:
    """Score the answers of both sides by what needs no judge, and compare them by capability."""
    from forgetmap.base.words import some
    from forgetmap.capabilities.drift import drift
    from forgetmap.capabilities.score import score_responses
    from forgetmap.views.terminal.console import open_console
    from forgetmap.views.terminal.drift import print_drift

    scores = [out / side / "scores.parquet" for side in ("before", "after")]
    scored = [
        score_responses(
            path.with_name("responses.jsonl"), path, manifest=manifest, run_code=run_code
        )
        for path in scores
    ]
    result = drift(*scores, manifest=manifest)
    write_json(json, result.to_json())
    if not quiet and str(json) != "-":
        print_drift(result, open_console())
        if left_out := {
            gap.task for one in scored for gap in one.gaps if "--run-code" in gap.reason
        }:
            typer.echo(f"\nNot run: the programs of {some(sorted(left_out))}; --run-code runs them")
        words = ("forgetmap", "drift", *map(str, scores), "--manifest", manifest)
        typer.echo(f"\nThe same again: {shlex.join(words)}")


def _kept(done: Evaluation) -> str:
    finished = done.asked - done.evaluated
    kept = f", {finished:,} were finished already" if finished else ""
    failed = f", {done.failed:,} of them failed: no score" if done.failed else ""
    return f"{done.folder}: {done.evaluated:,} answers{kept}{failed}"


def _spread(executor: str, chat: bool | None, workers: int | None, address: str) -> Spread:
    from forgetmap.base.errors import InputError

    if executor == "local":
        return lambda _model, _how: None
    if executor != "ray":
        raise InputError(f"--executor {executor}: must be local or ray")
    from forgetmap.evaluate.executor import OnRay

    return lambda model, how: OnRay(model, how, chat, workers, address)
