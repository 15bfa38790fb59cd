"""Answers to questions people have before a run.

Each function answers one question of `forgetmap theory`. The answer carries its assumption and says
when not to trust it.
"""

from __future__ import annotations

import math
import textwrap
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import orjson

from forgetmap.base.errors import InputError
from forgetmap.base.words import WIDTH, percent
from forgetmap.theory.arguments import positive, share, target_share, whole
from forgetmap.theory.budget import sft_forecast, sft_rate, sft_steps_until
from forgetmap.theory.drift import drift_bound, joint_forward_flow, joint_reverse_flow
from forgetmap.theory.estimate import (
    NEAR_NATS,
    Measured,
    OverlapEstimate,
    Separations,
    estimate_bc,
    estimate_delta,
    estimate_misassignment,
    estimate_old_mass,
    mixture_misfit,
)
from forgetmap.theory.forward import forward_flow, replay_for_stages
from forgetmap.theory.logprobs import LogProbs, read_logprobs
from forgetmap.theory.oapl import kl_temperature, max_syncs, tilt_odds
from forgetmap.theory.overlap import behaviour_mass
from forgetmap.theory.reverse import reverse_flow
from forgetmap.theory.starvation import (
    min_batch,
    min_replay,
    starvation_prob,
    weight_bounds,
    weight_second_moment,
)
from forgetmap.theory.ttt import ttt_penalty

__all__ = [
    "Answer",
    "estimate_answer",
    "finetuning_replay_answer",
    "flow_answer",
    "forecast_answer",
    "replay_answer",
    "temperature_answer",
]

_ESTIMATE_TRUST = (
    "responses are independent draws from each policy, scored whole by the same two frozen "
    "references on the same prompts; separation and drift budget also on two equal Gaussians [D]",
    "lengths differ between the sources (overlap falls with length: look at the value per token), "
    "several responses share a prompt (standard errors are too small), or sampler and scorer are "
    "different engines",
)


class Answer(NamedTuple):
    """What was computed, in numbers and in words."""

    values: dict[str, Any]
    lines: tuple[str, ...]
    assumption: str
    caution: str

    def text(self) -> str:
        """The answer for people.

        Example:
            >>> print(Answer({}, ("two",), "one and one", "rounding").text())
            two
            rests on: one and one
            do not trust it when: rounding
        """
        trust = f"rests on: {self.assumption}", f"do not trust it when: {self.caution}"
        return "\n".join(
            line if len(line) <= WIDTH else textwrap.fill(line, WIDTH, subsequent_indent="  ")
            for line in (*self.lines, *trust)
        )

    def to_json(self) -> str:
        """The answer for programs; what is infinite becomes null.

        Example:
            >>> orjson.loads(Answer({"steps": math.inf}, (), "a", "b").to_json())["values"]
            {'steps': None}
        """
        trust = {"assumption": self.assumption, "do_not_trust_when": self.caution}
        options = orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY
        return orjson.dumps({"values": self.values, **trust}, option=options).decode()


def replay_answer(
    old_mass: float, batch: int, risk: float, batches: int = 1, replay: float = 0.0
) -> Answer:
    """How much replay, or which batch, keeps an old behaviour in sight of on-policy training. [D]

    `old_mass` is the share of the model's own samples that show the old behaviour, `risk` the
    accepted chance that any of the `batches` holds no old sample, `replay` the share of replayed
    old samples already used.

    Example:
        >>> replay_answer(0.05, 32, 0.01).values["smallest_batch"]
        90
    """
    old_mass, risk = float(share("old_mass", old_mass)), float(share("risk", risk))
    starved = float(starvation_prob(old_mass, batch, replay))
    needed_batch = float(min_batch(old_mass, risk, replay, batches))
    needed_replay = float(min_replay(old_mass, batch, risk, batches))
    spared = math.log1p(-starved) if starved < 1 else -math.inf
    any_starved = -math.expm1(int(whole("batches", batches)) * spared)
    used = max(replay, needed_replay)
    low, high = (float(bound) for bound in weight_bounds(old_mass, used))
    effective = 1 / float(weight_second_moment(old_mass, np.inf, used))
    values = {
        "chance_a_batch_has_no_old_sample": starved,
        "chance_any_batch_has_none": any_starved,
        "smallest_batch": int(needed_batch) if needed_batch < 2**53 else needed_batch,
        "smallest_replay_share": needed_replay,
        "weight_range": [low, high],
        "effective_share_of_batch": effective,
    }
    lines = (
        f"no old sample in a batch of {batch}: {_share(starved)}; in any of {batches:,}: "
        f"{_share(any_starved)}",
        f"for a risk of {_share(risk)}: a batch of {needed_batch:,.15g}, or of the same batch "
        f"{_share(needed_replay)} replayed",
        f"with {_share(used)} replayed, importance weights lie between {low:.4g} and {high:.4g}, "
        f"and a batch is worth {_share(effective)} of its size",
        "without risk: put a fixed number of old samples, at least one, into every batch",
    )
    return Answer(
        values,
        lines,
        "samples are independent, the old behaviour is told apart surely, and replayed samples "
        "carry the weight model/behaviour [D]",
        "the old mass falls during the run (use the lowest), the weights are left out (the "
        "objective changes), or sampler and trainer disagree on probabilities (clip and count)",
    )


def finetuning_replay_answer(keep: float, stages: int = 1) -> Answer:
    """Replay share that keeps an old mass under supervised fine-tuning to the end. [P, D]

    `stages` counts fine-tunings in a row, each replaying from the model before.

    Example:
        >>> round(finetuning_replay_answer(0.1, 5).values["replay_share"], 4)
        0.631
    """
    needed = float(replay_for_stages(share("keep", keep), stages))
    where = "" if stages == 1 else f" in each of {stages} stages"
    return Answer(
        {"replay_share": needed, "loss_weight": needed / (1 - needed)},
        (
            f"to keep {_share(keep)}: replay {_share(needed)} of the data{where}, or weigh "
            f"the loss on old data by {needed / (1 - needed):.4g}",
        ),
        "fine-tuning converges; then the old mass is the replay share, whatever the start [P, D]",
        "training stops early (it keeps more), or the replayed data are not like the old behaviour "
        "(it drifts to them)",
    )


def forecast_answer(
    first: float, second: float, steps: float, level: float, replay: float = 0.0
) -> Answer:
    """When fine-tuning will have pushed the old mass to a level, from two checkpoints. [D]

    `first` and `second` are the old mass at two checkpoints `steps` apart; `replay` is the share of
    old data in the training set.

    Example:
        >>> round(forecast_answer(0.4, 0.2, 100, 0.01).values["steps_from_second"])
        2821
    """
    rate = float(sft_rate(first, second, steps, replay))
    until = float(sft_steps_until(second, rate, level, replay))
    ahead = np.array([1, 2, 5, 10, 20]) * float(steps)
    masses = sft_forecast(second, rate, ahead, replay)
    path = list(zip(ahead.tolist(), masses.tolist(), strict=True))
    table = (f"  +{step:>9,.0f} steps  {_share(mass):>8}" for step, mass in path)
    course = "goes like 1/steps, not exponentially" if replay == 0 else "ends at the replay share"
    return Answer(
        {
            "rate_per_step": rate,
            "steps_from_second": until,
            "path": [{"steps_from_second": step, "old_mass": mass} for step, mass in path],
        },
        (_reached(level, until), *table),
        "gradient descent in the logit at a steady learning rate, old and new behaviour far apart: "
        f"the old mass then {course} [D]",
        "the learning rate changes, the checkpoints lie within their measurement error of each "
        "other, the old mass has hardly begun to fall (from nine tenths our study's forecast was "
        "four times too high), or the behaviours overlap (then forgetting is slower than this)",
    )


def _reached(level: float, until: float) -> str:
    if until == 0:
        return f"old mass has passed {_share(level)} already"
    if math.isfinite(until):
        about = f"about {until:,.0f} steps after the second checkpoint"
        return f"old mass reaches {_share(level)} {about}"
    return f"old mass does not reach {_share(level)}: it settles at the replay share"


def temperature_answer(
    old_mass: float,
    floor: float,
    gap: float,
    syncs: int = 1,
    temperature: float | None = None,
) -> Answer:
    """Which KL temperature, or how many refreshes of the reference, keep a floor of old mass. [D]

    `gap` is the mean reward of the new behaviour less that of the old one. `syncs` counts how often
    the trained policy replaces the reference, the last time included.

    Example:
        >>> round(temperature_answer(0.5, 0.05, 1.0, syncs=20).values["lowest_temperature"], 3)
        6.792
    """
    old_mass = float(share("old_mass", old_mass))
    lowest = float(kl_temperature(gap, old_mass, floor, syncs))
    penalty = float(ttt_penalty(floor, old_mass, gap))
    values: dict[str, Any] = {"lowest_temperature": lowest, "ttt_penalty": penalty}
    lines = [
        f"to keep {_share(floor)} of {_share(old_mass)} over {syncs} round(s): temperature "
        f"{lowest:.4g} or more (KL-regularised RL, OAPL)",
        f"with an entropic utility (TTT-Discover) whose eta x gap is {gap:g}: KL penalty "
        f"{penalty:.4g} or more",
    ]
    if temperature is not None:
        strength = gap / float(positive("temperature", temperature))
        most = float(max_syncs(old_mass, floor, strength)) if strength > 0 else math.inf
        left = float(tilt_odds(old_mass, syncs * strength))
        values |= {"most_syncs": most, "old_mass_after": left}
        often = f"{most:,.0f}" if math.isfinite(most) else "any number of"
        lines.append(
            f"at temperature {temperature:g}: {often} round(s) keep the floor; after {syncs} "
            f"the old mass is {_share(left)}"
        )
    return Answer(
        values,
        tuple(lines),
        "every round is trained to its optimum, and rewards are one number per behaviour: each "
        "round multiplies the odds of the old behaviour by exp(-gap/temperature) [M methods, D]",
        "rounds stop early (they keep more), old responses of one prompt differ much in reward, or "
        "old responses are no longer sampled (see `forgetmap theory replay`)",
    )


def flow_answer(
    objective: Literal["sft", "reverse"],
    start: float,
    delta: float,
    *,
    replay: float = 0.0,
    target: float = 0.5,
    until: float = 100.0,
    means: bool = False,
) -> Answer:
    """Old mass against time for an objective, as a small table. [P limits, D paths]

    "sft" is forward KL to data with a share `replay` of old data; "reverse" is reverse KL to a
    target with old mass `target`. `until` is the last time, in learning rate x steps. With `means`
    the means are trained too, from their right places.

    Example:
        >>> rows = flow_answer("sft", 0.5, 4, until=100).values["path"]
        >>> round(rows[-1]["old_weight"], 4)
        0.0122
    """
    if objective not in ("sft", "reverse"):
        raise InputError(f"objective: {objective!r} is unknown; known are sft, reverse")
    times = np.concatenate([[0.0], float(positive("until", until)) * np.geomspace(0.01, 1, 9)])
    start, forward = float(share("start", start)), objective == "sft"
    columns = {"time": times}
    if means:
        path = (
            joint_forward_flow(times, start, delta, replay=replay)
            if forward
            else joint_reverse_flow(times, start, share("target", target), delta)
        )
        columns["old_weight"] = path.weight
        columns["old_behaviour"] = behaviour_mass(*path, delta)
        columns["old_mean"], columns["new_mean"] = path.old_mean, path.new_mean
    elif forward:
        columns["old_weight"] = forward_flow(times, start, delta, replay)
    else:
        columns["old_weight"] = reverse_flow(times, start, target_share("target", target), delta)
    rows = [
        dict(zip(columns, map(float, row), strict=True))
        for row in zip(*columns.values(), strict=True)
    ]
    header = "".join(f"{name.replace('_', ' '):>15}" for name in columns)
    table = ["".join(f"{value:>15.6g}" for value in row.values()) for row in rows]
    return Answer(
        {"objective": objective, "path": rows},
        (header, *table),
        "two Gaussian modes with a shared covariance, gradient flow in the logit of the old weight "
        "(time is learning rate x steps) [D]",
        "you want a number for a language model: this shows a mechanism; use estimate and forecast "
        "for measured runs",
    )


def estimate_answer(path: str | Path, old_mass: float = 0.5) -> Answer:
    """Overlap, separation, misassignment and old mass from a file of log-probabilities. [D]

    `read_logprobs` describes the file. Misassignment and drift budget are for the old weight
    `old_mass`.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "scores.jsonl"
        >>> _ = file.write_text(
        ...     '{"logp_old": -3, "logp_new": -4, "source": "old"}\\n' * 2
        ...     + '{"logp_old": -5, "logp_new": -4, "source": "new"}\\n' * 2
        ... )
        >>> round(estimate_answer(file).values["overlap"]["value"], 4)  # 1 / cosh(1/2)
        0.8868
    """
    weight = float(share("old_mass", old_mass))
    scores = read_logprobs(path)
    _check_sides(path, scores)
    overlap = estimate_bc(scores.old, scores.new)
    separations = estimate_delta(scores.old, scores.new)
    per_token = None
    if scores.mean_length is not None:
        least = overlap.value if overlap.resolved else overlap.upper
        per_token = -math.log(least) / scores.mean_length
    misassigned = {
        "old_to_new": estimate_misassignment(scores.old, weight),
        "new_to_old": estimate_misassignment(-scores.new, 1 - weight),
    }
    budget = float(drift_bound(weight, weight, separations.kl)) if separations.fit else None
    drift = "none without a separation" if budget is None else f"{budget:.2g} standard deviations"
    mass, mass_lines = _trained(scores)
    return Answer(
        {
            "overlap": overlap._asdict(),
            "separation": {**separations._asdict(), "fit": separations.fit},
            "misassignment": {
                name: {key: float(value) for key, value in chance._asdict().items()}
                for name, chance in misassigned.items()
            },
            "drift_budget": budget,
            "mean_length": scores.mean_length,
            "minus_ln_overlap_per_token": per_token,
            "old_mass": mass,
            "warnings": scores.warnings,
        },
        (
            *_overlap_lines(overlap, per_token, scores.mean_length),
            *_separation_lines(separations),
            f"misassignment at old weight {weight:g}: "
            f"old taken for new {_measured(misassigned['old_to_new'])}, "
            f"new taken for old {_measured(misassigned['new_to_old'])}",
            f"drift budget of the old behaviour: {drift}",
            *mass_lines,
            *(f"note: {text}" for text in scores.warnings),
        ),
        *_ESTIMATE_TRUST,
    )


def _check_sides(path: str | Path, scores: LogProbs) -> None:
    """On its own samples a policy is the likelier one, on average: that is KL >= 0."""
    for name, own in (("old", -scores.old), ("new", scores.new)):
        if own.mean() < -3 * own.std() / math.sqrt(own.size):
            raise InputError(
                f"{path}: {name} responses are likelier under the other reference, which cannot "
                "be; are logp_old and logp_new swapped?"
            )


def _measured(chance: Measured) -> str:
    value, se, upper = (float(part) for part in chance)
    if value > 2 * se:
        return f"{_share(value)} (se {_share(se)})"
    return f"at most {_share(upper)} (95 %)"


def _overlap_lines(
    overlap: OverlapEstimate, per_token: float | None, length: float | None
) -> list[str]:
    counts = f"{overlap.n_old:,} old and {overlap.n_new:,} new responses"
    if overlap.resolved:
        lines = [f"overlap (Bhattacharyya): {overlap.value:.4f} (se {overlap.se:.4f}), {counts}"]
        least = ""
    else:
        lines = [
            f"overlap (Bhattacharyya): at most {overlap.upper:.2g} (95 %); too small to tell from "
            f"{counts}, {overlap.near} of them within {NEAR_NATS:g} nats of even odds"
        ]
        least = "at least "
    if per_token is not None:
        lines.append(f"per token: -ln overlap is {least}{per_token:.4g} (mean length {length:.4g})")
    return lines


def _separation_lines(gap: Separations) -> list[str]:
    at_least = "at least " if gap.capped else ""
    verdict = (
        "they agree: two equal Gaussians are a fair picture"
        if gap.fit
        else "they disagree: do not use formulas that need a separation"
    )
    return [
        f"separation: {gap.kl:.3g} by KL (se {gap.kl_se:.2g}), {gap.sd:.3g} by spread "
        f"(se {gap.sd_se:.2g}), {at_least}{gap.auc:.3g} by order (se {gap.auc_se:.2g})",
        f"  {verdict}",
    ]


def _trained(scores: LogProbs) -> tuple[dict[str, float] | None, list[str]]:
    """Old mass of the trained policy, if any of its responses are there."""
    if scores.trained.size < 2:
        return None, []
    mass = estimate_old_mass(scores.trained)
    gap, chance = mixture_misfit(scores.trained, scores.old, scores.new, mass.value)
    lines = [
        f"old mass of the trained policy: {_share(mass.value)} "
        f"(95 % {_share(mass.low)} to {_share(mass.high)}), {mass.n:,} responses, "
        f"each worth {_share(mass.efficiency)} of a label"
    ]
    if gap > chance:
        lines.append(
            f"  its responses are no mix of the two references (gap {gap:.2f}, by chance below "
            f"{chance:.2f}): it does something else, and the old mass means little"
        )
    return {**mass._asdict(), "misfit": gap, "misfit_by_chance": chance}, lines


def _share(value: float) -> str:
    """Percent with as many digits as a small share needs."""
    return percent(value) if value >= 0.001 or value == 0 else f"{100 * value:.2g} %"
