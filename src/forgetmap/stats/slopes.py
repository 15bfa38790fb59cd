"""A slope over few units, with an interval that holds where units come in clusters.

Ordinary least squares, with the cluster-robust variance CR2 of Bell and McCaffrey and the degrees
of freedom that they derive for it. With every unit as a cluster of its own it is HC2: it holds
where some units vary more than others. Plain cluster-robust intervals are too narrow with a dozen
clusters; these are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from forgetmap.stats.estimate import Estimate

Floats = NDArray[np.float64]


class Fit(NamedTuple):
    """A slope, its interval and its test against zero."""

    slope: Estimate
    p_value: float
    freedom: float


def fit_slope(
    x: ArrayLike, y: ArrayLike, cluster: ArrayLike, levels: Sequence[ArrayLike] = ()
) -> Fit | None:
    """The slope of y on x; None where nothing can be said.

    Args:
        x: What the slope is on.
        y: What it is of.
        cluster: Units with the same number may vary together.
        levels: Groupings of the units. Every group gets a level of its own, so that the slope is
            the one within groups; the levels of several groupings add up.

    Example:
        >>> fit = fit_slope([0, 1, 2, 3, 4], [1.0, 2.1, 2.9, 4.2, 5.0], range(5))
        >>> round(fit.slope.value, 2), fit.slope.low < 1 < fit.slope.high
        (1.01, True)
    """
    across, up = np.asarray(x, float), np.asarray(y, float)
    columns = [np.ones((len(up), 1)), *(_dummies(groups) for groups in levels)]
    return fit_last(np.column_stack([*columns, across]), up, np.asarray(cluster))


def _dummies(groups: ArrayLike) -> Floats:
    """A column for every group but the first."""
    _, member = np.unique(groups, return_inverse=True)
    return np.eye(int(member.max(initial=-1)) + 1)[member][:, 1:]


def fit_last(design: Floats, up: Floats, cluster: NDArray[np.generic]) -> Fit | None:
    """The coefficient of the last column of a design; None where nothing can be said."""
    units, columns = design.shape
    if units <= columns or np.linalg.matrix_rank(design) < columns:
        return None
    inverse = np.asarray(np.linalg.inv(design.T @ design), float)
    slope = float((inverse @ design.T @ up)[-1])
    residual = up - design @ (inverse @ design.T @ up)
    weights = _leverage(design, inverse, cluster)
    variance = float(((residual @ weights) ** 2).sum())
    hat = design @ inverse @ design.T
    spread = weights - hat @ weights
    products = spread.T @ spread
    total = float(np.trace(products))
    if total <= 1e-15 or variance <= 1e-24:
        return None
    freedom = max(1.0, total**2 / float((products**2).sum()))
    error = np.sqrt(variance)
    reach = float(special.stdtrit(freedom, 0.975)) * error
    return Fit(
        Estimate(value=slope, low=slope - reach, high=slope + reach),
        float(2 * special.stdtr(freedom, -abs(slope) / error)),
        freedom,
    )


def _leverage(design: Floats, inverse: Floats, cluster: NDArray[np.generic]) -> Floats:
    """(units, clusters): what multiplies the residuals of each cluster in the slope's error."""
    names = np.unique(cluster)
    weights = np.zeros((len(design), len(names)))
    for place, name in enumerate(names):
        rows = cluster == name
        part = design[rows]
        values, vectors = np.linalg.eigh(np.eye(len(part)) - part @ inverse @ part.T)
        usable = values > 1e-9
        root = np.where(usable, 1 / np.sqrt(np.where(usable, values, 1.0)), 0.0)
        weights[rows, place] = (vectors * root) @ vectors.T @ part @ inverse[:, -1]
    return weights


class Mean(NamedTuple):
    """A mean over units with its t interval; None where nothing says how it varies."""

    value: float
    interval: Estimate | None
    variance: float
    """Of the mean; infinite where nothing says how it varies."""
    p_value: float
    """That the mean is zero."""


def mean_over(values: ArrayLike, more: float = 0.0, more_freedom: float = np.inf) -> Mean:
    """The mean of some units with its t interval.

    Args:
        values: One number per unit.
        more: Variance of the mean that has another source, such as the items. A single unit has
            no other.
        more_freedom: Degrees of freedom of that variance.

    Example:
        >>> found = mean_over([0.1, 0.2, 0.3]).interval
        >>> round(found.low, 3), round(found.high, 3)
        (-0.048, 0.448)
    """
    units = np.asarray(values, float)
    mean, n = float(units.mean()), len(units)
    if n < 2 and more <= 0:
        return Mean(mean, None, np.inf, 1.0)
    own = float(units.var(ddof=1)) / n if n > 1 else 0.0
    variance = own + more
    freedom = float(n - 1)
    if variance > 0:
        freedom = variance**2 / (own**2 / max(n - 1, 1) + more**2 / more_freedom)
    error = np.sqrt(variance)
    reach = float(special.stdtrit(freedom, 0.975)) * error
    p = float(2 * special.stdtr(freedom, -abs(mean) / error)) if variance > 1e-24 else 1.0
    return Mean(mean, Estimate(value=mean, low=mean - reach, high=mean + reach), variance, p)


def difference(one: ArrayLike, other: ArrayLike) -> tuple[Estimate, float] | None:
    """Welch's test of two means: `other` minus `one`; None where one of them has a single unit.

    Example:
        >>> found, p = difference([0.1, 0.11, 0.12], [0.3, 0.31, 0.32])
        >>> round(found.value, 3), p < 0.001
        (0.2, True)
    """
    first, second = np.asarray(one, float), np.asarray(other, float)
    if min(len(first), len(second)) < 2:
        return None
    parts = [side.var(ddof=1) / len(side) for side in (first, second)]
    variance = float(sum(parts))
    value = float(second.mean() - first.mean())
    if variance <= 1e-24:
        return None
    below = sum(
        part**2 / (len(side) - 1) for part, side in zip(parts, (first, second), strict=True)
    )
    freedom = variance**2 / float(below)
    reach = float(special.stdtrit(freedom, 0.975)) * np.sqrt(variance)
    p = float(2 * special.stdtr(freedom, -abs(value) / np.sqrt(variance)))
    return Estimate(value=value, low=value - reach, high=value + reach), p


def one_sample(differences: ArrayLike) -> tuple[Estimate, float] | None:
    """The t test that differences of matched units are zero; None for fewer than two.

    Example:
        >>> found, p = one_sample([0.1, 0.11, 0.12])
        >>> round(found.value, 3), p < 0.01
        (0.11, True)
    """
    values = np.asarray(differences, float)
    found = mean_over(values) if len(values) > 1 else None
    if found is None or found.interval is None or found.variance <= 1e-24:
        return None
    return found.interval, found.p_value
