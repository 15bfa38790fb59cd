"""Answers from the further parts of the lab: fits, several modes, drift, geometry, SDFT, OAPL.

As in `answers`, each carries its assumption and says when not to trust it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from forgetmap.base.errors import InputError
from forgetmap.base.words import percent
from forgetmap.theory.answers import Answer
from forgetmap.theory.arguments import Floats, positive, share, whole
from forgetmap.theory.budget import sft_fit, sft_steps_until
from forgetmap.theory.drift import drift_bound, largest_drift, separation_for_drift
from forgetmap.theory.geometry import condition_number, fisher
from forgetmap.theory.modes import Modes, Objective, first_to_go, mode_flow
from forgetmap.theory.oapl import oapl_fixed_point, oapl_gate
from forgetmap.theory.sdft import (
    SdftJointPath,
    sdft_flow,
    sdft_joint_flow,
    sdft_largest_drift,
    sdft_limit,
    sdft_rates,
)

__all__ = [
    "drift_answer",
    "fit_answer",
    "geometry_answer",
    "modes_answer",
    "oapl_answer",
    "sdft_answer",
]

_TOY = (
    "you want a number for a language model: this shows a mechanism; measure with estimate, or "
    "with a map"
)


def modes_answer(
    old: Sequence[str],
    new: str,
    *,
    objective: Objective = "sft",
    replay: float = 0.0,
    until: float = 100.0,
) -> Answer:
    """Which of several old behaviours goes first. [D]

    Each of `old` is written MEAN:SPREAD:WEIGHT, `new` MEAN:SPREAD; the new mode starts with what is
    left of the weights.

    Example:
        >>> answer = modes_answer(["0:1:0.4", "4:1:0.4"], "6:1")
        >>> print(answer.lines[-1])
        old 1 goes first: half of it is lost at time 5.2, of old 2 at 14.3
    """
    parsed = [_numbers("old", text, "MEAN:SPREAD:WEIGHT") for text in old]
    fresh = _numbers("new", new, "MEAN:SPREAD")
    if not parsed:
        raise InputError("old: name one old behaviour at least, as MEAN:SPREAD:WEIGHT")
    weights = [weight for _, _, weight in parsed]
    if sum(weights) >= 1:
        raise InputError(f"old: the weights add up to {sum(weights):g}; leave some to the new mode")
    rows = np.array([*(row[:2] for row in parsed), fresh])
    modes = Modes.of(rows[:, 0], rows[:, 1])
    start = [*weights, 1 - sum(weights)]
    times = _times(until)
    path = mode_flow(times, start, modes, replay=replay, objective=objective)
    names = [*(f"old {place}" for place in range(1, len(old) + 1)), "new"]
    half = first_to_go(start, modes, replay=replay, objective=objective, until=10 * until)
    columns = {"time": times, **dict(zip(names, path, strict=True))}
    lost = dict(zip(names, half.tolist(), strict=False))
    return Answer(
        {"objective": objective, "path": _rows(columns), "half_lost_at": lost},
        (*_table(columns), _order(lost)),
        "Gaussian modes on a line, their weights alone trained, by gradient flow in the log odds "
        "against the new mode (time is learning rate x steps) [D]",
        _TOY,
    )


def _order(half: Mapping[str, float]) -> str:
    """Which old mode goes first, in words."""
    gone = sorted((when, name) for name, when in half.items() if np.isfinite(when))
    if not gone:
        return "none of the old modes loses half of its weight"
    (when, first), *rest = gone
    told = "".join(f", of {name} at {later:.1f}" for later, name in rest)
    kept = "".join(f"; {name} keeps more than half" for name in half if not np.isfinite(half[name]))
    return f"{first} goes first: half of it is lost at time {when:.1f}{told}{kept}"


def fit_answer(checkpoints: Sequence[str], level: float, replay: float = 0.0) -> Answer:
    """When fine-tuning will have pushed the old mass to a level, fitted to checkpoints. [D]

    Each checkpoint is written STEP:SHARE. The misfit is shown for every one, and for the last one
    as if it had not been seen.

    Example:
        >>> answer = fit_answer(["0:0.5", "100:0.3", "200:0.2"], 0.05)
        >>> round(answer.values["largest_misfit"], 3)
        0.001
    """
    rows = np.array([_numbers("at", text, "STEP:SHARE") for text in checkpoints])
    if len(rows) < 2:
        raise InputError("at: name two checkpoints at least, as STEP:SHARE")
    when, found = rows[:, 0], rows[:, 1]
    fit = sft_fit(when, found, replay)
    until = float(sft_steps_until(fit.masses[-1], fit.rate, level, replay))
    misfit = found - fit.masses
    columns = {"step": when, "measured": found, "fitted": fit.masses, "misfit": misfit}
    told = [f"old mass reaches {percent(level)} about {until:,.0f} steps after the last checkpoint"]
    if not np.isfinite(until):
        told = [f"old mass does not reach {percent(level)}: it settles at the replay share"]
    told.append(f"largest misfit: {percent(float(np.abs(misfit).max()))}")
    if np.isfinite(fit.last_unseen):
        told.append(
            f"from the earlier checkpoints the last one would have been forecast at "
            f"{percent(fit.last_unseen)}; it was {percent(found[-1])}"
        )
    return Answer(
        {
            "rate_per_step": fit.rate,
            "steps_from_last": until,
            "largest_misfit": float(np.abs(misfit).max()),
            "last_if_unseen": fit.last_unseen,
            "checkpoints": _rows(columns),
        },
        (*_table(columns), *told),
        "gradient descent in the logit at a steady learning rate, old and new behaviour far apart "
        "[D]",
        "the misfit is larger than the error of your measurements, or goes one way: then the clock "
        "is wrong (the rate changes, or the behaviours overlap), and so is the forecast",
    )


def drift_answer(start: float, target: float, delta: float, budget: float = 0.1) -> Answer:
    """How far the old mode moves while its weight is trained, under reverse KL. [D]

    Example:
        >>> round(drift_answer(0.8, 0.5, 4).values["largest_drift"], 4)
        0.0628
    """
    moved, gate = (float(one) for one in largest_drift(start, target, delta))
    bound = float(drift_bound(share("target", target), share("start", start), delta))
    needed = float(separation_for_drift(positive("budget", budget)))
    return Answer(
        {"largest_drift": moved, "gate": gate, "bound_at_start": bound,
         "separation_for_budget": needed},
        (
            f"the old mode moves by at most {moved:.4f} standard deviations on its way (the gate "
            f"bounds it by {gate:.4f})",
            f"a drift of at most {budget:g} is sure from a separation of {needed:.2f} on",
        ),
        "two Gaussian modes with one spread, weight and means trained by reverse KL from their "
        "right places [P exponential, D constants]",
        _TOY,
    )  # fmt: skip


def geometry_answer(target: float, delta: float, dimensions: int = 1) -> Answer:
    """How well conditioned the end of training is: local rate and condition number. [D]

    Example:
        >>> round(geometry_answer(0.2, 3).values["condition_number"], 3)
        10.498
    """
    many = int(whole("dimensions", dimensions, least=1))
    rate = float(np.linalg.eigvalsh(fisher(target, delta))[0])
    condition = float(condition_number(target, delta, many))
    return Answer(
        {"local_rate": rate, "condition_number": condition},
        (
            f"near the target the slowest direction closes at the rate {rate:.4g} (the loss falls "
            "like exp(-2 rate t))",
            f"the fastest direction is {condition:.3g} times as fast as the slowest",
        ),
        "two Gaussian modes with one spread; the Fisher matrix in weight and means at the target, "
        "which is the Hessian of either KL [D]",
        _TOY,
    )


def sdft_answer(
    start: float,
    teacher: float,
    target: float,
    *,
    speed: float = 0.1,
    anchor: float = 0.05,
    delta: float = np.inf,
    until: float = 100.0,
) -> Answer:
    """Old mass of a student that learns from its own moving teacher. [M method, D path]

    `target` is the old mass of the anchor, the model that was shown the demonstration; `speed` is
    that of the moving average and `anchor` the pull to the anchor.

    Example:
        >>> round(sdft_answer(0.2, 0.6, 0.4, until=400).values["path"][-1]["student"], 4)
        0.4
    """
    times = _times(until)
    path = sdft_flow(times, start, teacher, target, speed, anchor, delta)
    columns = {"time": times, "student": path.student, "teacher": path.teacher}
    values: dict[str, Any] = {"path": _rows(columns)}
    told = []
    if anchor > 0:
        slow = float(-sdft_rates(target, speed, anchor).slow)
        told.append(f"it ends at the anchor's {percent(target)}, at the slow rate {slow:.3g}")
    else:
        limit = float(sdft_limit(start, teacher, speed))
        told.append(f"without an anchor student and teacher meet at {percent(limit)}")
    if np.isfinite(delta):
        joint = sdft_joint_flow(times, start, teacher, target, speed, anchor, delta)
        moved, bound = sdft_largest_drift(start, teacher, target, speed, anchor, delta, until)
        values |= {"joint_path": _rows(_sides(times, joint)), "largest_drift": float(moved)}
        values["drift_bound"] = float(bound) if np.isfinite(bound) else None
        held = f"; the gate bounds it by {bound:.4f}" if np.isfinite(bound) else ""
        end = percent(float(joint.student.weight[-1]))
        told.append(
            f"with its means trained too it has {end} old mass at the end, and its old mode moves "
            f"by {moved:.4f} standard deviations on the way{held}"
        )
    return Answer(
        values,
        (*_table(columns), *told),
        "two Gaussian modes; the student follows its teacher by reverse KL, the teacher is a "
        "moving average that is pulled to the anchor; the table trains the weight alone "
        "[M method, D]",
        _TOY,
    )


def _sides(times: Floats, path: SdftJointPath) -> dict[str, Floats]:
    """The columns of a joint path."""
    sides = {"student": path.student, "teacher": path.teacher}
    return {"time": times} | {
        f"{side}_{name}": values
        for side, joint in sides.items()
        for name, values in joint._asdict().items()
    }


def oapl_answer(
    start: float, gap: float, *, value: float = 1.0, ratio: float = 1.0, rounds: int = 1,
    delta: float = 4.0,
) -> Answer:  # fmt: skip
    """Old mass after rounds of OAPL, and the pull on the old mode. [M loss, D]

    `gap` is the reward of the new behaviour less that of the old one, `value` and `ratio` are the
    two temperatures of the loss.

    Example:
        >>> round(oapl_answer(0.5, 1.0).values["old_mass"][-1], 4)
        0.2689
    """
    masses = [float(share("start", start))]
    for _ in range(int(whole("rounds", rounds, least=1))):
        masses.append(float(oapl_fixed_point(masses[-1], gap, value, ratio)))
    pull, bound = (float(one) for one in oapl_gate(start, gap, delta))
    steps = " -> ".join(percent(mass) for mass in masses[:8])
    return Answer(
        {"old_mass": masses, "pull": pull, "bound": bound},
        (
            f"old mass by round: {steps}{' ...' if len(masses) > 8 else ''}",
            f"a reward that changes smoothly pulls the old mode by {pull:.4f} standard deviations "
            f"at first ({bound:.4f} at most); one that is constant on it, not at all",
        ),
        "every round is trained to its optimum, samples come from the policy before it, and "
        "rewards are one number for each behaviour [M loss, D]",
        _TOY,
    )


# --- small tables ---------------------------------------------------------------------------------


def _times(until: float) -> Floats:
    """Nought, and nine times up to the last."""
    return np.concatenate([[0.0], float(positive("until", until)) * np.geomspace(0.01, 1, 9)])


def _rows(columns: Mapping[str, Floats]) -> list[dict[str, float]]:
    rows = zip(*columns.values(), strict=True)
    return [dict(zip(columns, map(float, row), strict=True)) for row in rows]


def _table(columns: Mapping[str, Floats]) -> list[str]:
    header = "".join(f"{name:>12}" for name in columns)
    return [header, *("".join(f"{value:>12.6g}" for value in row.values())
                      for row in _rows(columns))]  # fmt: skip


def _numbers(name: str, text: str, form: str) -> tuple[float, ...]:
    try:
        found = tuple(float(part) for part in text.split(":"))
    except ValueError:
        found = ()
    if len(found) != form.count(":") + 1:
        raise InputError(f"{name} {text[:60]}: write it as {form}")
    return found
