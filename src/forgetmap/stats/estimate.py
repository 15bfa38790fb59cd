"""A number with its interval."""

from __future__ import annotations

from scipy import special

from forgetmap.base.model import Frozen
from forgetmap.base.words import percent


class Estimate(Frozen):
    """A share of items with its 95 % interval."""

    value: float
    low: float
    high: float


def interval(estimate: Estimate, unit: str = "") -> str:
    """A share in percent, with its interval.

    Example:
        >>> interval(Estimate(value=0.5, low=0.25, high=0.75), " %")
        '50.0 % (25.0 to 75.0)'
    """
    value, low, high = (
        percent(share).removesuffix(" %") for share in (estimate.value, estimate.low, estimate.high)
    )
    return f"{value}{unit} ({low} to {high})"


def share(count: float, n: int) -> Estimate:
    """A share of n items with its 95 % interval (Jeffreys).

    A count over repeats is a mean of fractions, which vary less than ones and zeros do; the
    interval is then wider than it need be.

    Example:
        >>> share(5, 100).value, round(share(5, 100).low, 4), round(share(0, 100).high, 4)
        (0.05, 0.0193, 0.0247)
    """
    inside = min(max(count, 0.0), float(n))
    low = special.betaincinv(inside + 0.5, n - inside + 0.5, 0.025) if inside > 0 else 0.0
    high = special.betaincinv(inside + 0.5, n - inside + 0.5, 0.975) if inside < n else 1.0
    return Estimate(value=inside / n, low=float(low), high=float(high))
