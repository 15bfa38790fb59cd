"""Which attributes of units explain a number that every unit has on many tasks.

The model is a mixed one: attributes are fixed, units, tasks and families are random. Attributes
differ between units and not within them, so it is fitted in two steps: first each unit's level over
the tasks, then the attributes on the levels. Where every unit has every task, this gives the same
effects as one fit to all cells. That one would take minutes at 100 units x 100 tasks.
"""

from __future__ import annotations

import warnings
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from forgetmap.stats.estimate import Estimate
from forgetmap.stats.slopes import fit_last

Floats = NDArray[np.float64]

FEWEST_FAMILIES = 3
"""With fewer, how much families vary cannot be estimated."""


class Levels(NamedTuple):
    """Every unit's level over the tasks, and how much the cells vary around them."""

    units: Floats
    task_variance: float
    rest_variance: float
    """Of a cell around its unit and its task, the items' sampling error included."""
    error: Floats
    """Variance of each unit's level that comes from its cells."""


def unit_levels(cells: Floats, sampling: Floats | None = None) -> Levels | None:
    """Each unit's level, as if every unit had every task; None where cells do not connect.

    Args:
        cells: (units, tasks); not a number where a unit lacks a task.
        sampling: Variance of each cell over its items. Cells of few items then count less.

    Example:
        >>> found = unit_levels(np.array([[0.1, 0.3], [0.2, 0.4], [0.2, np.nan]]))
        >>> found.units.round(2).tolist()
        [0.2, 0.3, 0.3]
    """
    seen = ~np.isnan(cells)
    weights = seen.astype(float)
    found = _additive(cells, weights)
    if found is None:
        return None
    rest = _rest(cells, seen, found)
    if sampling is not None and rest > 0:
        known = np.where(seen, sampling, 0.0)
        own = max(rest - float(known[seen].mean()), 0.1 * rest)
        weights = np.where(seen, 1 / (own + known), 0.0)
        found = _additive(cells, weights / weights.max()) or found
        rest = _rest(cells, seen, found)
    units, tasks = found
    share = weights.sum(axis=1)
    error = rest * (weights**2).sum(axis=1) / share**2
    spread = float(tasks.var(ddof=1)) if len(tasks) > 1 else 0.0
    task_variance = max(0.0, spread - rest / max(float(seen.sum(axis=0).mean()), 1.0))
    return Levels(units, task_variance, rest, error)


def _additive(cells: Floats, weights: Floats) -> tuple[Floats, Floats] | None:
    """Levels of units and of tasks; those of tasks have the mean 0."""
    units, tasks = cells.shape
    filled = np.where(weights > 0, cells, 0.0)
    normal = np.zeros((units + tasks + 1, units + tasks + 1))
    normal[range(units), range(units)] = weights.sum(axis=1)
    inner = range(units, units + tasks)
    normal[inner, inner] = weights.sum(axis=0)
    normal[:units, units:-1] = weights
    normal[units:-1, :units] = weights.T
    normal[-1, units:-1] = normal[units:-1, -1] = 1.0
    right = np.concatenate([(weights * filled).sum(axis=1), (weights * filled).sum(axis=0), [0.0]])
    try:
        solved = np.linalg.solve(normal, right)
    except np.linalg.LinAlgError:
        return None
    return solved[:units], solved[units:-1]


def _rest(cells: Floats, seen: NDArray[np.bool_], found: tuple[Floats, Floats]) -> float:
    around = (cells - found[0][:, None] - found[1][None, :])[seen]
    freedom = len(around) - sum(map(len, found)) + 1
    return float((around**2).sum() / freedom) if freedom > 0 else 0.0


class Effects(NamedTuple):
    """The effects of the columns of a design, each with its interval and test."""

    estimates: list[Estimate]
    p_values: list[float]
    family_variance: float
    unit_variance: float
    """Of a unit's level around its attributes and its family."""
    explained: float
    """Variance of the levels that the attributes explain, beyond what chance would give."""
    method: Literal["mixed", "plain", "robust"]
    """Families as random effects; without families; families as clusters, without statsmodels."""


def fit_effects(design: Floats, levels: Floats, family: NDArray[Any] | None) -> Effects | None:
    """Fit the levels of units by columns that hold no intercept; None where nothing can be said.

    Families are random where there are three or more. The degrees of freedom are those of the
    stratum in which a column varies: within families, or between them.
    """
    wanted = np.column_stack([np.ones(len(levels)), design])
    if len(levels) <= wanted.shape[1] or np.linalg.matrix_rank(wanted) < wanted.shape[1]:
        return None
    names = None if family is None else np.unique(family, return_inverse=True)[1]
    if names is not None and names.max() + 1 >= FEWEST_FAMILIES:
        fit = _with_families(wanted, levels, names)
    else:
        fit = _alone(wanted, levels)
    coefficients, covariance, freedom, between, rest, method = fit
    if rest <= 0 or min(freedom[1:]) < 1:
        return None
    if not (np.diag(covariance) > 0).all():  # too few units for so many columns: a fit at its edge
        return None
    if method == "robust" and names is not None:
        return _by_cluster(wanted, levels, names, fit)
    estimates, p_values = [], []
    for column in range(1, wanted.shape[1]):
        value, error = float(coefficients[column]), float(np.sqrt(covariance[column, column]))
        reach = float(special.stdtrit(freedom[column], 0.975)) * error
        estimates.append(Estimate(value=value, low=value - reach, high=value + reach))
        p_values.append(float(2 * special.stdtr(freedom[column], -abs(value) / error)))
    explained = _explained(wanted, coefficients, covariance)
    return Effects(estimates, p_values, between, rest, explained, method)


def _explained(design: Floats, coefficients: Floats, covariance: Floats) -> float:
    """The variance that the columns explain, less what chance alone would give them."""
    centred = design - design.mean(axis=0)
    by_chance = float(np.trace(centred @ covariance @ centred.T)) / len(design)
    return max(0.0, float((centred @ coefficients).var()) - by_chance)


def _by_cluster(
    design: Floats, levels: Floats, family: NDArray[np.intp], plain: _Fit
) -> Effects | None:
    """Least squares with families as clusters (CR2)."""
    found = []
    for column in range(1, design.shape[1]):
        last = np.column_stack([np.delete(design, column, axis=1), design[:, column]])
        fit = fit_last(last, levels, family)
        if fit is None:
            return None
        found.append(fit)
    coefficients, covariance, _, between, rest, _ = plain
    return Effects(
        [fit.slope for fit in found],
        [fit.p_value for fit in found],
        between,
        rest,
        _explained(design, coefficients, covariance),
        "robust",
    )


class _Fit(NamedTuple):
    coefficients: Floats
    covariance: Floats
    freedom: list[float]
    family_variance: float
    unit_variance: float
    method: Literal["mixed", "plain", "robust"]


def _alone(design: Floats, levels: Floats) -> _Fit:
    inverse = np.asarray(np.linalg.inv(design.T @ design), float)
    coefficients = inverse @ design.T @ levels
    left = len(levels) - design.shape[1]
    rest = float(((levels - design @ coefficients) ** 2).sum() / left)
    return _Fit(coefficients, inverse * rest, [float(left)] * len(inverse), 0.0, rest, "plain")


def _with_families(design: Floats, levels: Floats, family: NDArray[np.intp]) -> _Fit:
    try:
        from statsmodels.regression.mixed_linear_model import MixedLM
    except ImportError:
        return _alone(design, levels)._replace(method="robust")
    scale = float(levels.std()) or 1.0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a variance of zero is an answer, not a fault
            # Powell's way needs no gradient, which fails on the way to a variance of zero.
            found = MixedLM(levels / scale, design, groups=family).fit(reml=True, method=["powell"])
    except np.linalg.LinAlgError:
        return _alone(design, levels)._replace(freedom=freedom_of(design, family), method="mixed")
    between = float(np.asarray(found.cov_re)[0, 0]) * scale**2
    rest = float(found.scale) * scale**2
    columns = design.shape[1]
    covariance = np.asarray(found.cov_params())[:columns, :columns] * scale**2
    coefficients = np.asarray(found.fe_params) * scale
    return _Fit(coefficients, covariance, freedom_of(design, family), between, rest, "mixed")


def freedom_of(design: Floats, family: NDArray[np.intp]) -> list[float]:
    """Of each column: of the units within families where it varies there, else of the families."""
    families = int(family.max()) + 1
    means = np.array([design[family == number].mean(axis=0) for number in range(families)])
    inner = np.abs(design - means[family]).max(axis=0) > 1e-9
    within = len(design) - families - int(inner.sum())
    between = families - int((~inner).sum())
    return [float(within if column else between) for column in inner]
