"""What an argument may be: every function of the lab checks with these, and names what is wrong."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forgetmap.base.errors import InputError

Floats = NDArray[np.float64]

LARGEST_SEPARATION = 100.0
"""Beyond it quadrature would need a finer grid, and the separated limit is exact to every digit."""


def numbers(name: str, value: ArrayLike) -> Floats:
    """Take a number or an array of numbers; no NaN, not empty.

    Example:
        >>> numbers("t", float("nan"))
        Traceback (most recent call last):
        ...
        forgetmap.base.errors.InputError: t: NaN is not a number; ...
    """
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name}: a number or an array of numbers is needed") from error
    if array.size == 0:
        raise InputError(f"{name}: is empty; at least one number is needed")
    if np.isnan(array).any():
        raise InputError(f"{name}: NaN is not a number; leave it out or find where it came from")
    return array


def finite(name: str, value: ArrayLike) -> Floats:
    """Numbers that are not infinite."""
    return _where(name, value, np.isfinite, "must be finite")


def share(name: str, value: ArrayLike) -> Floats:
    """A share strictly between 0 and 1, as an old mass that is neither gone nor everything."""
    return _where(name, value, lambda x: (x > 0) & (x < 1), "must lie strictly between 0 and 1")


def target_share(name: str, value: ArrayLike) -> Floats:
    """A share from 0 to 1; the ends mean a target with one mode only."""
    return _where(name, value, lambda x: (x >= 0) & (x <= 1), "must lie between 0 and 1")


def replay_share(name: str, value: ArrayLike) -> Floats:
    """A share of replay, from 0 (none) to below 1."""
    return _where(name, value, lambda x: (x >= 0) & (x < 1), "must be 0 or more and below 1")


def positive(name: str, value: ArrayLike) -> Floats:
    """Finite numbers above 0."""
    return _where(name, value, lambda x: (x > 0) & np.isfinite(x), "must be positive and finite")


def not_negative(name: str, value: ArrayLike) -> Floats:
    """Finite numbers from 0 on."""
    return _where(name, value, lambda x: (x >= 0) & np.isfinite(x), "must be finite, 0 or more")


def whole(name: str, value: ArrayLike, least: int = 1) -> Floats:
    """Whole numbers from `least` on."""
    return _where(
        name,
        value,
        lambda x: (x >= least) & np.isfinite(x) & (x == np.floor(x)),
        f"must be a whole number, {least} or more",
    )


def separation(name: str, value: ArrayLike) -> Floats:
    """A separation in standard deviations; infinity stands for fully separated modes."""
    return _where(name, value, lambda x: x >= 0, "must not be negative")


def gridded(name: str, value: ArrayLike) -> Floats:
    """A separation for quadrature: within the reach of its grid, or infinite."""
    return _where(
        name,
        separation(name, value),
        lambda x: (x <= LARGEST_SEPARATION) | np.isinf(x),
        f"must be at most {LARGEST_SEPARATION:g}, or inf for fully separated modes",
    )


def overlapping(name: str, value: ArrayLike) -> Floats:
    """A separation for which positions matter, so that it has to be finite."""
    return _where(
        name,
        value,
        lambda x: (x >= 0) & (x <= LARGEST_SEPARATION),
        f"must lie between 0 and {LARGEST_SEPARATION:g}",
    )


def _where(
    name: str, value: ArrayLike, holds: Callable[[Floats], NDArray[np.bool_]], rule: str
) -> Floats:
    array = numbers(name, value)
    good = holds(array)
    if not good.all():
        raise InputError(f"{name}: {rule}; got {array[~good].flat[0]:g}")
    return array
