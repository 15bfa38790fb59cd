"""Forecasts for real runs: old mass ahead of fine-tuning, from two measured checkpoints or more.

Steps are counted by the clock of the separated flow (`sft_clock`, with replay `replay_clock`).
The two checkpoints measure its speed: learning rate, batch and model need not be known.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from forgetmap.base.errors import InputError
from forgetmap.theory.arguments import Floats, not_negative, positive, share
from forgetmap.theory.forward import (
    replay_clock,
    replay_clock_inverse,
    sft_clock,
    sft_clock_inverse,
)

__all__ = ["Fitted", "sft_fit", "sft_forecast", "sft_rate", "sft_steps_until"]


def sft_rate(first: ArrayLike, second: ArrayLike, steps: ArrayLike, replay: float = 0.0) -> Floats:
    """Speed of the clock per step, from the old mass at two checkpoints `steps` apart. [D]"""
    start, end = share("first", first), share("second", second)
    _check_course(start, end, replay)
    return (_clock(end, replay) - _clock(start, replay)) / positive("steps", steps)


def _check_course(start: Floats, end: Floats, replay: float) -> None:
    limit = float(not_negative("replay", replay))
    if limit >= 1:
        raise InputError(f"replay: must be 0 or more and below 1; got {limit:g}")
    falling, rising = (start > end) & (end > limit), (start < end) & (end < limit)
    if np.any(~(falling | rising)):
        raise InputError(
            "second: the old mass must have moved from first towards "
            f"the replay share {limit:g}, or nothing can be forecast"
        )


def _clock(beta: Floats, replay: float) -> Floats:
    return sft_clock(beta) if replay == 0 else -replay_clock(beta, replay)


class Fitted(NamedTuple):
    """The clock through several checkpoints."""

    rate: float
    masses: Floats
    """What the fit says at each checkpoint."""
    last_unseen: float
    """What a fit without the last checkpoint says of it; NaN of two alone."""


def sft_fit(steps: ArrayLike, masses: ArrayLike, replay: float = 0.0) -> Fitted:
    """Fit the speed of the clock to the old mass at several steps, by least squares. [D]

    Example:
        >>> exact = sft_forecast(0.5, 0.1, [0, 10, 50])
        >>> round(sft_fit([0, 10, 50], exact).rate, 6)
        0.1
    """
    when, found = (
        np.atleast_1d(not_negative("steps", steps)),
        np.atleast_1d(share("masses", masses)),
    )
    if len(when) != len(found) or len(when) < 2 or np.any(np.diff(when) <= 0):
        raise InputError("steps: two checkpoints at least were expected, in the order of training")
    _check_course(found[0], found[-1], replay)
    times = _clock(found, replay)
    rate, start = np.polyfit(when, times, 1)
    if rate <= 0:
        raise InputError("masses: they do not move towards the replay share, taken together")
    begin = _mass_at(float(start + rate * when[0]), found[0], replay)
    fitted = sft_forecast(begin, rate, when - when[0], replay)
    unseen = np.nan
    if len(when) > 2:
        earlier, first = np.polyfit(when[:-1], times[:-1], 1)
        unseen = float(_mass_at(float(first + earlier * when[-1]), found[0], replay))
    return Fitted(float(rate), np.atleast_1d(fitted), unseen)


def _mass_at(time: float, beta0: Floats, replay: float) -> Floats:
    return sft_clock_inverse(time) if replay == 0 else replay_clock_inverse(-time, beta0, replay)


def sft_forecast(
    second: ArrayLike, rate: ArrayLike, ahead: ArrayLike, replay: float = 0.0
) -> Floats:
    """Old mass `ahead` steps after the second checkpoint. [D]

    Example:
        >>> round(float(sft_forecast(0.2, sft_rate(0.4, 0.2, 100), 400)), 7)
        0.0571236
    """
    now = share("second", second)
    moved = positive("rate", rate) * not_negative("ahead", ahead)
    if replay == 0:
        return sft_clock_inverse(sft_clock(now) + moved)
    return replay_clock_inverse(replay_clock(now, replay) - moved, now, replay)


def sft_steps_until(
    second: ArrayLike, rate: ArrayLike, level: ArrayLike, replay: float = 0.0
) -> Floats:
    """Steps after the second checkpoint until the old mass reaches `level`. [D]

    Infinite where it never does: replay keeps it on this side. 0 where it is there already.

    Example:
        >>> round(float(sft_steps_until(0.2, sft_rate(0.4, 0.2, 100), 0.01)), 1)
        2821.4
        >>> float(sft_steps_until(0.2, 0.03, 0.01, replay=0.05))
        inf
    """
    now, goal, speed = share("second", second), share("level", level), positive("rate", rate)
    if np.any(now == replay):
        raise InputError("second: equals the replay share, so it moves no more")
    part = (goal - replay) / (now - replay)  # of the way from the limit to where it is now
    ahead = np.where((part > 0) & (part < 1), goal, now)
    steps = (_clock(ahead, replay) - _clock(now, replay)) / speed
    return np.where(part > 0, steps, np.inf)[()]
