"""`forgetmap theory`: calculators that predict forgetting before you train."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forgetmap.cli.help import Group
from forgetmap.cli.options import Json, check_outputs, clear_errors, write_json
from forgetmap.cli.theory_pictures import figures, page

if TYPE_CHECKING:
    from forgetmap.theory.answers import Answer

app = Group(
    "theory",
    help="Predict forgetting before you train: replay, forecasts, temperatures, overlap.",
    epilog="Each answer says what it rests on and when not to trust it.",
    no_args_is_help=True,
)

OldMass = Annotated[
    float,
    typer.Option(
        "--old-mass",
        metavar="SHARE",
        help="Share of the model's samples that show the old behaviour, between 0 and 1.",
    ),
]
Replay = Annotated[
    float, typer.Option("--replay", metavar="SHARE", help="Share of old data replayed.")
]


@app.command()
def replay(
    old_mass: OldMass,
    batch: Annotated[int, typer.Option(help="Samples in each batch.")],
    risk: Annotated[
        float, typer.Option(metavar="SHARE", help="Accepted chance that any batch starves.")
    ] = 0.01,
    batches: Annotated[int, typer.Option(help="Batches in the run.")] = 1,
    replay: Replay = 0.0,
    json: Json = None,
) -> None:
    """How much replay, or which batch, keeps an old behaviour.

    On-policy training with a batch that holds no old sample cannot keep the old behaviour in place.
    This command says how likely that is, and which batch size or replay share makes it as rare as
    you ask, with the range of the importance weights that keep the objective unchanged. Replay
    works differently in supervised fine-tuning: see `forgetmap theory mix`.

    Examples:

      forgetmap theory replay --old-mass 0.05 --batch 32

      forgetmap theory replay --old-mass 0.05 --batch 32 --risk 0.05 --batches 1000 --replay 0.1
    """
    with clear_errors():
        from forgetmap.theory.answers import replay_answer

        check_outputs([json], [])
        _tell(replay_answer(old_mass, batch, risk, batches, replay), json)


@app.command()
def mix(
    keep: Annotated[float, typer.Option(metavar="SHARE", help="Old mass to be left at the end.")],
    stages: Annotated[int, typer.Option(help="Fine-tunings in a row.")] = 1,
    json: Json = None,
) -> None:
    """How much old data to mix into supervised fine-tuning.

    Fine-tuning to the end leaves exactly the replay share as old mass, whatever the start. Over
    several stages, each replaying from the model before, the shares multiply.

    Examples:

      forgetmap theory mix --keep 0.2

      forgetmap theory mix --keep 0.1 --stages 5
    """
    with clear_errors():
        from forgetmap.theory.answers import finetuning_replay_answer

        check_outputs([json], [])
        _tell(finetuning_replay_answer(keep, stages), json)


@app.command()
def forecast(
    first: Annotated[
        float | None, typer.Option(metavar="SHARE", help="Old mass at a checkpoint.")
    ] = None,
    second: Annotated[
        float | None, typer.Option(metavar="SHARE", help="Old mass at a later one.")
    ] = None,
    steps: Annotated[float | None, typer.Option(help="Steps between the two.")] = None,
    at: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STEP:SHARE",
            help="Old mass at a step; may be repeated, and shows how well the forecast fits.",
        ),
    ] = None,
    below: Annotated[float, typer.Option(metavar="SHARE", help="Old mass to be forecast.")] = 0.01,
    replay: Replay = 0.0,
    json: Json = None,
) -> None:
    """Forecast when fine-tuning will lose an old behaviour.

    Computes the steps until the old mass falls below a level, from two measured checkpoints, or
    from several with the misfit of each. They set the speed of the clock, so you need not know the
    learning rate or the model. Measure
    the old mass as the share of responses that show the old behaviour, or with
    `forgetmap theory estimate`.

    Examples:

      forgetmap theory forecast --first 0.4 --second 0.2 --steps 100

      forgetmap theory forecast --first 0.4 --second 0.2 --steps 100 --below 0.15 --replay 0.1

      forgetmap theory forecast --at 0:0.5 --at 100:0.3 --at 200:0.2 --below 0.05
    """
    with clear_errors():
        from forgetmap.base.errors import InputError
        from forgetmap.theory.answers import forecast_answer
        from forgetmap.theory.calculators import fit_answer

        check_outputs([json], [])
        two = (first, second, steps)
        if at and any(part is not None for part in two):
            raise InputError("--at: leave --first, --second and --steps out")
        if at:
            _tell(fit_answer(at, below, replay), json)
        elif first is None or second is None or steps is None:
            raise InputError("give --first, --second and --steps, or --at several times")
        else:
            _tell(forecast_answer(first, second, steps, below, replay), json)


@app.command()
def temperature(
    old_mass: OldMass,
    floor: Annotated[float, typer.Option(metavar="SHARE", help="Old mass to be kept.")],
    gap: Annotated[
        float, typer.Option(help="Mean reward of the new behaviour less that of the old one.")
    ],
    syncs: Annotated[
        int, typer.Option(help="Times the reference is replaced by the trained policy.")
    ] = 1,
    temperature: Annotated[
        float | None, typer.Option(help="Also say how many syncs this temperature allows.")
    ] = None,
    json: Json = None,
) -> None:
    """Which KL temperature, sync count or penalty RL needs.

    Keeps a floor of old mass. For KL-regularised RL and OAPL each round multiplies the odds of the
    old behaviour by exp(-gap/temperature): loss is geometric in the number of syncs, not of steps.
    For TTT-Discover, read --gap as eta x reward gap; the answer is the KL penalty.

    Examples:

      forgetmap theory temperature --old-mass 0.5 --floor 0.05 --gap 1

      forgetmap theory temperature --old-mass 0.5 --floor 0.05 --gap 1 --syncs 20 --temperature 5
    """
    with clear_errors():
        from forgetmap.theory.answers import temperature_answer

        check_outputs([json], [])
        _tell(temperature_answer(old_mass, floor, gap, syncs, temperature), json)


@app.command()
def estimate(
    file: Annotated[
        Path,
        typer.Argument(readable=False, metavar="FILE", help="Log-probabilities: .jsonl, .parquet."),
    ],
    old_mass: OldMass = 0.5,
    json: Json = None,
) -> None:
    """Overlap and old mass of real models by log-probabilities.

    FILE has one row per response: logp_old and logp_new, its log-probability (summed over tokens)
    under the model before training and under a policy with the new behaviour; source, the policy
    that wrote it (old, new, or trained for the checkpoint in question); and, if known, length in
    tokens. Old and new responses give the overlap, trained ones the old mass that is left.

    Examples:

      forgetmap theory estimate scores.jsonl

      forgetmap theory estimate scores.parquet --old-mass 0.2 --json overlap.json
    """
    with clear_errors():
        from forgetmap.theory.answers import estimate_answer

        check_outputs([json], [file])
        _tell(estimate_answer(file, old_mass), json)


@app.command()
def flow(
    objective: Annotated[
        str, typer.Argument(metavar="sft|reverse", help="Forward KL to data, or reverse KL.")
    ],
    start: Annotated[float, typer.Option(metavar="SHARE", help="Old weight at the start.")] = 0.5,
    delta: Annotated[
        float, typer.Option(help="Separation of the modes in standard deviations; inf works.")
    ] = 4.0,
    replay: Replay = 0.0,
    target: Annotated[
        float,
        typer.Option(metavar="SHARE", help="For reverse: old mass of the target; 0 is new only."),
    ] = 0.5,
    until: Annotated[float, typer.Option(help="Last time, learning rate x steps.")] = 100.0,
    means: Annotated[bool, typer.Option("--means", help="Train the means too.")] = False,
    json: Json = None,
) -> None:
    """Old mass against time in the two-mode picture.

    The target decides, not the direction of the KL: compare the last two examples.

    Examples:

      forgetmap theory flow sft --delta 4

      forgetmap theory flow sft --delta 2 --until 200 --means

      forgetmap theory flow reverse --target 0.3 --delta 3

      forgetmap theory flow reverse --target 0 --delta 3
    """
    with clear_errors():
        from forgetmap.theory.answers import flow_answer

        check_outputs([json], [])
        answer = flow_answer(
            objective,  # type: ignore[arg-type]  # checked by the library
            start,
            delta,
            replay=replay,
            target=target,
            until=until,
            means=means,
        )
        _tell(answer, json)


@app.command()
def modes(
    objective: Annotated[
        str, typer.Argument(metavar="sft|reverse", help="Forward KL to data, or reverse KL.")
    ],
    old: Annotated[
        list[str],
        typer.Option(metavar="MEAN:SPREAD:WEIGHT", help="An old behaviour; may be repeated."),
    ],
    new: Annotated[str, typer.Option(metavar="MEAN:SPREAD", help="The new behaviour.")],
    replay: Replay = 0.0,
    until: Annotated[float, typer.Option(help="Last time, learning rate x steps.")] = 100.0,
    json: Json = None,
) -> None:
    """Which of several old behaviours goes first.

    Behaviours are Gaussian modes on a line, each with its own spread. The new one begins with what
    the old ones leave of the weights. For reverse KL, --replay is the old mass of the target.

    Example:

      forgetmap theory modes sft --old 0:1:0.4 --old 4:1:0.4 --new 6:1
    """
    with clear_errors():
        from forgetmap.theory.calculators import modes_answer

        check_outputs([json], [])
        answer = modes_answer(
            old,
            new,
            objective=objective,  # type: ignore[arg-type]  # checked by the library
            replay=replay,
            until=until,
        )
        _tell(answer, json)


Delta = Annotated[float, typer.Option(help="Separation of the modes in standard deviations.")]
Start = Annotated[float, typer.Option(metavar="SHARE", help="Old weight at the start.")]
Target = Annotated[float, typer.Option(metavar="SHARE", help="Old mass of the target.")]


@app.command()
def drift(
    start: Start = 0.8,
    target: Target = 0.5,
    delta: Delta = 4.0,
    budget: Annotated[
        float, typer.Option(help="Drift that you accept, in standard deviations.")
    ] = 0.1,
    json: Json = None,
) -> None:
    """How far the old behaviour moves under reverse KL, and from which separation on it is safe.

    Example:

      forgetmap theory drift --start 0.8 --target 0.5 --delta 4
    """
    with clear_errors():
        from forgetmap.theory.calculators import drift_answer

        check_outputs([json], [])
        _tell(drift_answer(start, target, delta, budget), json)


@app.command()
def geometry(
    target: Target = 0.5,
    delta: Delta = 4.0,
    dimensions: Annotated[int, typer.Option(help="Of the space that the modes lie in.")] = 1,
    json: Json = None,
) -> None:
    """How well conditioned the end of training is.

    Example:

      forgetmap theory geometry --target 0.2 --delta 3
    """
    with clear_errors():
        from forgetmap.theory.calculators import geometry_answer

        check_outputs([json], [])
        _tell(geometry_answer(target, delta, dimensions), json)


@app.command()
def sdft(
    start: Start = 0.2,
    teacher: Annotated[
        float, typer.Option(metavar="SHARE", help="Old mass of the teacher at the start.")
    ] = 0.6,
    target: Annotated[
        float, typer.Option(metavar="SHARE", help="Old mass of the anchor: shown the answer.")
    ] = 0.4,
    speed: Annotated[float, typer.Option(help="Speed of the moving average.")] = 0.1,
    anchor: Annotated[float, typer.Option(help="Pull to the anchor; 0 for none.")] = 0.05,
    delta: Annotated[float, typer.Option(help="Separation of the modes; inf works.")] = 4.0,
    until: Annotated[float, typer.Option(help="Last time, learning rate x steps.")] = 100.0,
    json: Json = None,
) -> None:
    """Old mass of a student that learns from its own moving teacher (SDFT).

    Examples:

      forgetmap theory sdft --start 0.2 --teacher 0.6 --target 0.4

      forgetmap theory sdft --anchor 0 --until 400
    """
    with clear_errors():
        from forgetmap.theory.calculators import sdft_answer

        check_outputs([json], [])
        how = {"speed": speed, "anchor": anchor, "delta": delta, "until": until}
        _tell(sdft_answer(start, teacher, target, **how), json)


@app.command()
def oapl(
    gap: Annotated[float, typer.Option(help="Reward of the new behaviour less that of the old.")],
    start: Start = 0.5,
    value: Annotated[float, typer.Option(help="Temperature of the value.")] = 1.0,
    ratio: Annotated[float, typer.Option(help="Temperature of the log-ratio.")] = 1.0,
    rounds: Annotated[int, typer.Option(help="Rounds, each from the policy before it.")] = 1,
    delta: Delta = 4.0,
    json: Json = None,
) -> None:
    """Old mass after rounds of off-policy RL with lagged samples (OAPL).

    Example:

      forgetmap theory oapl --gap 1 --rounds 3
    """
    with clear_errors():
        from forgetmap.theory.calculators import oapl_answer

        check_outputs([json], [])
        answer = oapl_answer(start, gap, value=value, ratio=ratio, rounds=rounds, delta=delta)
        _tell(answer, json)


def _tell(answer: Answer, json: Path | None) -> None:
    from forgetmap.base.words import clean

    write_json(json, answer.to_json())
    if str(json) != "-":
        for line in answer.text().splitlines():
            typer.echo(clean(line, 600))


app.command()(figures)
app.command()(page)
