"""Where the two-mode picture comes from: the toy simulation of Chen et al. 2025 (arXiv:2510.18874).

Spreads are unequal and trained, old parameters and weight are slowed, and the policy gradient
samples from the model's new component only [M]. So do not compare its numbers with the flows of
`forward` and `reverse`.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from scipy.stats import norm

from forgetmap.base.errors import InputError
from forgetmap.theory.arguments import Floats, positive, whole

__all__ = ["ChenRun", "chen_simulation"]

OLD_TARGET = (0.75, -3.0, 1.0)
NEW_TARGET = (0.25, 3.5, 0.7)
START = (0.75, -3.5, 1.0, 0.5, 0.7)
"""Weight, mean and spread of the old component, mean and spread of the new one."""
SLOWED = np.array([0.005, 0.005, 0.005, 1.0, 1.0])
KL_STRENGTH = 0.1
_LEAST = np.array([1e-3, -np.inf, 1e-3, -np.inf, 1e-3])
_MOST = np.array([1 - 1e-3, np.inf, np.inf, np.inf, np.inf])


class ChenRun(NamedTuple):
    """Overlap with each target mode after every step, shape (steps + 1, runs)."""

    old: Floats
    new: Floats
    parameters: Floats
    """Weight, old mean, old spread, new mean, new spread; shape (steps + 1, 5, runs)."""

    @property
    def drop(self) -> Floats:
        """Loss of overlap with the old mode since the start."""
        return np.asarray(self.old[0] - self.old)

    @property
    def gain(self) -> Floats:
        """Gain of overlap with the new mode since the start."""
        return np.asarray(self.new - self.new[0])


def chen_simulation(
    method: Literal["forward", "policy"],
    rate: float,
    *,
    steps: int = 200,
    samples: int = 1000,
    runs: int = 1,
    seed: int = 0,
) -> ChenRun:
    """Run the toy simulation: fine-tuning on the new mode, or policy gradient. [M]

    "forward" fits samples of the new target mode (published rates 0.15 and 0.01); "policy" improves
    samples of the model's new component (published rate 0.01). Each step draws `samples`; the
    independent `runs` are simulated side by side.

    Example:
        >>> run = chen_simulation("forward", 0.15)
        >>> bool(run.gain[-1, 0] > 0.5), run.old.shape
        (True, (201, 1))
    """
    if method not in ("forward", "policy"):
        raise InputError(f"method: {method!r} is unknown; known are forward, policy")
    speed = float(positive("rate", rate)) * SLOWED[:, None]
    count, width = int(whole("steps", steps)), int(whole("runs", runs))
    size = int(whole("samples", samples))
    generator = np.random.default_rng(seed)
    ascent = _fit_new_mode if method == "forward" else _improve_own_samples
    path = np.empty((count + 1, 5, width))
    path[0] = np.array(START)[:, None]
    for step in range(count):
        draws = generator.standard_normal((width, size))
        moved = path[step] + speed * ascent(path[step], draws)
        path[step + 1] = np.clip(moved, _LEAST[:, None], _MOST[:, None])
    old = _overlap(path[:, 0], path[:, 1], path[:, 2], OLD_TARGET)
    new = _overlap(1 - path[:, 0], path[:, 3], path[:, 4], NEW_TARGET)
    return ChenRun(old, new, path)


def _fit_new_mode(state: Floats, draws: Floats) -> Floats:
    _, mean, spread = NEW_TARGET
    return np.asarray(_scores(state, mean + spread * draws).mean(axis=-1))


def _improve_own_samples(state: Floats, draws: Floats) -> Floats:
    weight, old_mean, old_spread, mean, spread = (part[:, None] for part in state)
    x = mean + spread * draws
    log_own = np.log1p(-weight) + norm.logpdf(x, mean, spread)
    log_model = np.logaddexp(np.log(weight) + norm.logpdf(x, old_mean, old_spread), log_own)
    reward = norm.logpdf(x, *NEW_TARGET[1:]) - log_own - np.log(KL_STRENGTH)
    # Samples come from one component of the model, so the score is weighted back to the whole.
    weighted = reward * np.exp(log_model - log_own) * _scores(state, x)
    return np.asarray(weighted.mean(axis=-1))


def _scores(state: Floats, x: Floats) -> Floats:
    """Derivatives of the model's log density in its five parameters, shape (5, runs, samples)."""
    weight, old_mean, old_spread, new_mean, new_spread = (part[:, None] for part in state)
    log_old = norm.logpdf(x, old_mean, old_spread)
    log_new = norm.logpdf(x, new_mean, new_spread)
    log_model = np.logaddexp(np.log(weight) + log_old, np.log1p(-weight) + log_new)
    old, new = np.exp(log_old - log_model), np.exp(log_new - log_model)
    z_old, z_new = (x - old_mean) / old_spread, (x - new_mean) / new_spread
    return np.stack(
        [
            old - new,
            weight * old * z_old / old_spread,
            weight * old * (z_old**2 - 1) / old_spread,
            (1 - weight) * new * z_new / new_spread,
            (1 - weight) * new * (z_new**2 - 1) / new_spread,
        ]
    )


def _overlap(
    weight: Floats, mean: Floats, spread: Floats, target: tuple[float, float, float]
) -> Floats:
    """Share of a target mode that the model's component covers, on the published window."""
    x = np.linspace(-8, 8, 500)
    wanted = target[0] * norm.pdf(x, *target[1:])
    have = weight[..., None] * norm.pdf(x, mean[..., None], spread[..., None])
    shared = np.trapezoid(np.minimum(wanted, have), x, axis=-1)
    return np.asarray(shared / np.trapezoid(wanted, x))
