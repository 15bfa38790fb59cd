"""Overlap, separation, misassignment and old mass from log-probabilities of real models.

All work on log-ratios logp_new - logp_old of whole responses, scored by two frozen policies:
`old`, the model before training, and `new`, one that shows the new behaviour. Responses count as
independent draws.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_expit, logit, logsumexp, ndtri, rel_entr

from forgetmap.base.errors import InputError
from forgetmap.theory.arguments import Floats, finite, share
from forgetmap.theory.numeric import bisect
from forgetmap.theory.overlap import log_sech

__all__ = [
    "Measured",
    "OldMass",
    "OverlapEstimate",
    "Separations",
    "estimate_bc",
    "estimate_delta",
    "estimate_misassignment",
    "estimate_old_mass",
    "mixture_misfit",
]

NEAR_NATS = 4.0
"""A response within so many nats of even odds tells about the overlap."""
_LIKELIHOOD_DROP = 1.920729
"""Half the 95 % point of chi-squared with one degree of freedom."""
_EDGE = 60.0
"""Logit beyond which an old mass is 0 or 1 for every purpose."""


class OverlapEstimate(NamedTuple):
    """Bhattacharyya coefficient of two policies."""

    value: float
    """Balanced estimate; trust it only if `resolved`."""
    se: float
    upper: float
    """One-sided 95 % bound, valid however small the overlap."""
    resolved: bool
    """Whether responses near even odds were seen, and the value is two standard errors above 0."""
    old_side: float
    """From old samples alone: unbiased, but wild when the overlap is small."""
    new_side: float
    near: int
    n_old: int
    n_new: int


class Separations(NamedTuple):
    """Three readings of the separation; they agree if two equal Gaussians are a fair picture."""

    kl: float
    sd: float
    auc: float
    kl_se: float
    sd_se: float
    auc_se: float
    capped: bool
    """Whether no pair overlapped, so that `auc` is only the largest value n pairs can show."""

    @property
    def fit(self) -> bool:
        """Whether the readings agree within a tenth, or within twice their standard errors.

        A capped order can only be too small; then the other two decide.
        """
        values = [self.kl, self.sd, max(self.auc, self.kl) if self.capped else self.auc]
        slack = 2 * max(self.kl_se, self.sd_se, self.auc_se)
        return max(values) - min(values) <= max(0.1 * max(values), slack)


class Measured(NamedTuple):
    """A mean of values between 0 and 1, its standard error, and its 95 % upper bound."""

    value: Floats
    se: Floats
    upper: Floats


class OldMass(NamedTuple):
    """Old mass of a policy, with its 95 % likelihood interval."""

    value: float
    se: float
    low: float
    high: float
    efficiency: float
    """What a response tells about the mass, as a share of what a label would."""
    n: int


def estimate_bc(ratio_old: ArrayLike, ratio_new: ArrayLike) -> OverlapEstimate:
    """Overlap of two policies by the balanced estimator, bounded and unbiased. [D]

    Example:
        >>> z = np.random.default_rng(0).standard_normal(4000)
        >>> overlap = estimate_bc(3 * z - 4.5, 3 * z + 4.5)  # the truth is 0.325
        >>> round(overlap.value, 2), round(overlap.se, 3), overlap.resolved
        (0.33, 0.003, True)
    """
    old, new = _several("ratio_old", ratio_old), _several("ratio_new", ratio_new)
    terms = [np.exp(log_sech(side / 2)) for side in (old, new)]
    value = float(np.mean([side.mean() for side in terms]))
    se = float(np.sqrt(sum(side.var(ddof=1) / side.size for side in terms)) / 2)
    near = sum(int((np.abs(side) < NEAR_NATS).sum()) for side in (old, new))
    return OverlapEstimate(
        value=value,
        se=se,
        upper=float(_mean_bound(np.asarray(value), 2 * min(old.size, new.size))),
        resolved=near > 0 and value > 2 * se,
        old_side=_one_sided(old),
        new_side=_one_sided(-new),
        near=near,
        n_old=old.size,
        n_new=new.size,
    )


def _one_sided(ratios: Floats) -> float:
    log_mean = logsumexp(ratios / 2) - np.log(ratios.size)
    return float(np.exp(min(float(log_mean), 700.0)))


def _mean_bound(value: Floats, n: int) -> Floats:
    """Chernoff's one-sided 95 % bound on the mean of n independent values in [0, 1]."""
    budget = np.log(20) / n

    def spent(mean: Floats) -> Floats:
        nats = rel_entr(value, mean) + rel_entr(1 - value, 1 - mean)
        return np.asarray(nats - budget)

    return bisect(spent, value, 1.0)


def estimate_delta(ratio_old: ArrayLike, ratio_new: ArrayLike) -> Separations:
    """Separation by mean, spread and order of the log-ratios: three answers to compare. [D]

    Example:
        >>> z = np.random.default_rng(0).standard_normal(4000)
        >>> gap = estimate_delta(3 * z - 4.5, 3 * z[::-1] + 4.5)
        >>> round(gap.kl, 1), round(gap.sd, 1), round(gap.auc, 1), gap.fit
        (3.0, 3.0, 3.0, True)
    """
    old, new = _several("ratio_old", ratio_old), _several("ratio_new", ratio_new)
    kl = float(np.sqrt(max(-2 * old.mean(), 0.0)))
    sd = float(old.std(ddof=1))
    kl_se = sd / (np.sqrt(old.size) * kl) if kl > 0 else np.inf
    auc, auc_sd = _auc(old, new)
    most = 1 - 1 / (2 * old.size * new.size)
    delta_auc = np.sqrt(2) * float(ndtri(np.clip(auc, 0.5, most)))
    slope = np.sqrt(2 * np.pi) * np.exp(delta_auc**2 / 4)
    return Separations(
        kl=kl,
        sd=sd,
        auc=float(delta_auc),
        kl_se=float(kl_se),
        sd_se=_spread_se(old),
        auc_se=float(np.sqrt(2) * slope * auc_sd),
        capped=auc > most,
    )


def _spread_se(values: Floats) -> float:
    """Standard error of a standard deviation, from the fourth moment."""
    centred = values - values.mean()
    variance = float((centred**2).mean())
    if variance == 0:
        return 0.0
    fourth = float((centred**4).mean())
    return float(np.sqrt(max(fourth - variance**2, 0.0) / (4 * variance * values.size)))


def _auc(old: Floats, new: Floats) -> tuple[float, float]:
    """Chance that a new sample has the larger ratio, and its standard error (DeLong)."""
    beats_old = _ranks(np.sort(old), new)
    beats_new = _ranks(np.sort(new), old)
    spread = beats_old.var(ddof=1) / new.size + beats_new.var(ddof=1) / old.size
    return float(beats_old.mean()), float(np.sqrt(spread))


def _ranks(ordered: Floats, values: Floats) -> Floats:
    """Share of `ordered` below each value, ties counted half."""
    below = np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")
    return below / (2 * ordered.size)


def estimate_misassignment(ratio_old: ArrayLike, beta: ArrayLike) -> Measured:
    """Chance that an old response is attributed to the new policy; no Gaussian needed. [D]

    For the other direction give the negated ratios of new responses and 1 - beta.

    Example:
        >>> z = np.random.default_rng(0).standard_normal(100_000)
        >>> round(float(estimate_misassignment(3 * z - 4.5, 0.2).value), 3)
        0.185
    """
    old, weight = _several("ratio_old", ratio_old), share("beta", beta)
    chance = expit(old - logit(weight)[..., None])
    value = chance.mean(axis=-1)
    se = chance.std(axis=-1, ddof=1) / np.sqrt(old.size)
    return Measured(value, se, _mean_bound(value, old.size))


def estimate_old_mass(ratios: ArrayLike) -> OldMass:
    """Old mass of a trained policy from its responses, scored by both references. [D]

    The maximum-likelihood weight, to which EM (beta <- mean of the responsibilities) converges.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> ratios = 3 * rng.standard_normal(4000) + np.where(rng.random(4000) < 0.35, -4.5, 4.5)
        >>> mass = estimate_old_mass(ratios)
        >>> round(mass.value, 2), round(mass.se, 3), mass.low < 0.35 < mass.high
        (0.36, 0.008, True)
    """
    log_ratios = _several("ratios", ratios)

    def log_likelihood(log_odds: Floats) -> Floats:
        likelihoods = np.logaddexp(log_expit(log_odds), log_expit(-log_odds) + log_ratios)
        return np.asarray(likelihoods.sum())

    def surplus(log_odds: Floats) -> Floats:
        return np.asarray(expit(log_odds) - expit(log_odds - log_ratios).mean())

    best = float(bisect(surplus, -_EDGE, _EDGE))
    enough = log_likelihood(np.asarray(best)) - _LIKELIHOOD_DROP
    low = float(bisect(lambda x: log_likelihood(x) - enough, -_EDGE, best))
    high = float(bisect(lambda x: enough - log_likelihood(x), best, _EDGE))
    share_old, responsibilities = float(expit(best)), expit(best - log_ratios)
    spread, width = float(responsibilities.var()), share_old * (1 - share_old)
    return OldMass(
        value=_to_the_edge(best),
        se=float(width / np.sqrt(log_ratios.size * spread)) if spread > 0 else np.inf,
        low=_to_the_edge(low),
        high=_to_the_edge(high),
        efficiency=spread / width,
        n=log_ratios.size,
    )


def _to_the_edge(log_odds: float) -> float:
    if abs(log_odds) > _EDGE - 1:
        return 0.0 if log_odds < 0 else 1.0
    return float(expit(log_odds))


def mixture_misfit(
    ratios: ArrayLike, ratio_old: ArrayLike, ratio_new: ArrayLike, beta: float
) -> tuple[float, float]:
    """How far a trained policy is from a mix of the two references, and what chance explains. [D]

    Largest gap between the distribution of its log-ratios and that of the mix, and the gap that is
    exceeded once in twenty times if the mix is right. Beyond it the old mass means little.

    Example:
        >>> rng = np.random.default_rng(1)
        >>> old, new = (3 * rng.standard_normal(500) + shift for shift in (-4.5, 4.5))
        >>> gap, chance = mixture_misfit(3 * rng.standard_normal(500), old, new, 0.5)
        >>> gap > chance
        True
    """
    trained = np.sort(_several("ratios", ratios))
    old = np.sort(_several("ratio_old", ratio_old))
    new = np.sort(_several("ratio_new", ratio_new))
    if not 0 <= beta <= 1:
        raise InputError(f"beta: must lie between 0 and 1; got {beta:g}")
    points = np.concatenate([trained, old, new])
    mix = beta * _below(old, points) + (1 - beta) * _below(new, points)
    gap = float(np.abs(_below(trained, points) - mix).max())
    variance = 1 / trained.size + beta**2 / old.size + (1 - beta) ** 2 / new.size
    return gap, float(1.358 * np.sqrt(variance))


def _below(ordered: Floats, points: Floats) -> Floats:
    return np.searchsorted(ordered, points, "right") / ordered.size


def _several(name: str, value: ArrayLike) -> Floats:
    values = finite(name, value).ravel()
    if values.size < 2:
        raise InputError(f"{name}: at least two responses are needed; got {values.size}")
    return values
