"""The numerical ground: expectations under a normal, roots, and flows, all over arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from forgetmap.theory.arguments import Floats, not_negative

_CELLS = 2**20
"""Values held at once; more arguments than that are worked through in pieces."""
_REACH = 12.0
"""Standard deviations on each side; what lies beyond is below 1e-32 of the whole."""


def grid(reach: float, steepness: float) -> tuple[Floats, float]:
    """Evenly spaced points on [-reach, reach] and their spacing.

    By the trapezoid rule an analytic integrand errs by exp(-2 pi a / h), where a is the distance
    of its nearest pole from the real line: pi / steepness for a logistic of that slope. With
    h = 1 / (2 steepness) that is exp(-4 pi^2), beyond double precision.
    """
    step = min(0.25, 0.5 / max(steepness, 1.0))
    half = int(np.ceil(reach / step))
    return np.arange(-half, half + 1, dtype=np.float64) * step, step


def normal_mean(f: Callable[..., Floats], *arguments: ArrayLike, steepness: ArrayLike) -> Floats:
    """E f(z, *arguments) for z ~ N(0, 1), for every element of the arguments.

    `f` gets the points on the last axis and may put further axes in front.

    Example:
        >>> normal_mean(lambda z, a: (z + a) ** 2, [0.0, 3.0], steepness=1).round(12).tolist()
        [1.0, 10.0]
    """
    points, _ = grid(_REACH, float(np.max(steepness)))
    weights = np.exp(-(points**2) / 2)
    weights /= weights.sum()
    return _in_pieces(lambda *columns: f(points, *columns) @ weights, len(points), arguments)


def log_normal_mean(
    log_f: Callable[..., Floats],
    *arguments: ArrayLike,
    steepness: ArrayLike,
    centre: ArrayLike = 0.0,
    reach: float = 0.0,
) -> Floats:
    """ln E exp(log_f(z, *arguments)), exact far below the smallest float.

    `steepness` is the largest slope of a logistic inside, `centre` where the integrand is largest,
    for every element, and `reach` how far from there it matters, beyond the width of the normal.

    Example:
        >>> log_normal_mean(lambda z, a: a * z, 40.0, steepness=1, centre=40.0).round(9)
        np.float64(800.0)
    """
    offsets, step = grid(_REACH + reach, float(np.max(steepness)))

    def piece(middle: Floats, *columns: Floats) -> Floats:
        points = middle + offsets
        logs = log_f(points, *columns) - points**2 / 2
        top = np.maximum(logs.max(axis=-1), -1e300)  # a function that is zero everywhere
        with np.errstate(divide="ignore"):
            return np.asarray(top + np.log(np.exp(logs - top[..., None]).sum(axis=-1)))

    logs = _in_pieces(piece, len(offsets), (centre, *arguments))
    return np.asarray(logs + np.log(step) - np.log(2 * np.pi) / 2)[()]


def _in_pieces(f: Callable[..., Floats], points: int, arguments: tuple[ArrayLike, ...]) -> Floats:
    arrays = np.broadcast_arrays(*(np.asarray(value, dtype=np.float64) for value in arguments))
    columns = [array.reshape(-1, 1) for array in arrays]
    size = max(1, _CELLS // points)
    pieces = [
        f(*(column[start : start + size] for column in columns))
        for start in range(0, len(columns[0]), size)
    ]
    whole = np.concatenate(pieces, axis=-1)
    return np.asarray(whole.reshape(whole.shape[:-1] + arrays[0].shape))[()]


def bisect(f: Callable[[Floats], Floats], low: ArrayLike, high: ArrayLike) -> Floats:
    """Root of an increasing function between `low` and `high`, for every element.

    Example:
        >>> bisect(lambda x: x**3 - np.array([8.0, 27.0]), 0.0, [10.0, 10.0]).round(12).tolist()
        [2.0, 3.0]
    """
    low, high = np.broadcast_arrays(np.asarray(low, np.float64), np.asarray(high, np.float64))
    for _ in range(200):
        middle = (low + high) / 2
        if np.all((middle == low) | (middle == high)):
            break
        below = f(middle) < 0
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray((low + high) / 2)[()]


def integrate(
    field: Callable[..., tuple[Floats, ...]],
    start: tuple[Floats, ...],
    t: ArrayLike,
    method: Literal["LSODA", "DOP853"] = "LSODA",
) -> tuple[Floats, ...]:
    """Follow dx/dt = field(x) from `start`, and read the path off at the times `t`.

    The arrays of `start` are broadcast; each element is its own system, integrated beside the
    others. Paths come back with the axes of `t` last. LSODA copes with long times; DOP853, which
    looks at no Jacobian, with a field that breaks off.

    Example:
        >>> (path,) = integrate(lambda x: (-x,), (np.array([1.0, 2.0]),), [0.0, 1.0])
        >>> path.round(6).tolist()
        [[1.0, 0.367879], [2.0, 0.735759]]
    """
    times = not_negative("t", t)
    parts = np.broadcast_arrays(*start)
    shape, width = parts[0].shape, len(parts)
    first = np.stack([part.ravel() for part in parts], axis=-1)
    end = float(times.max())
    if end == 0:
        values = np.repeat(first[..., None], times.size, axis=-1)
    else:

        def slope(_: float, flat: Floats) -> Floats:
            state = flat.reshape(-1, width)
            return np.stack(field(*state.T), axis=-1).ravel()

        # Elements do not touch each other: a narrow band of the Jacobian holds everything.
        band: dict[str, Any] = {"lband": width - 1, "uband": width - 1} if method == "LSODA" else {}
        solver = {"method": method, "dense_output": True, "rtol": 1e-10, "atol": 1e-12, **band}
        solved = solve_ivp(slope, (0.0, end), first.ravel(), **solver)
        if not solved.success:
            raise ArithmeticError(f"the flow could not be followed: {solved.message}")
        path: Callable[[Floats], Floats] = solved.sol  # type: ignore[assignment]
        values = path(times.ravel()).reshape(-1, width, times.size)
    return tuple(
        np.asarray(values[:, part].reshape(shape + times.shape))[()] for part in range(width)
    )
