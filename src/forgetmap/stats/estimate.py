"""A number with its interval."""

from __future__ import annotations

from typing import Literal

from scipy import special

from forgetmap.base.model import Frozen
from forgetmap.base.words import percent


class Estimate(Frozen):
    """A share of items with its 95 % interval."""

    value: float
    low: float
    high: float


Basis = Literal["probabilities", "repeats", "noise_run", "single_run", "deterministic", "mixed"]
"""Where the chances of being right come from."""
BASIS_MEANING: dict[Basis, str] = {
    "probabilities": "from the probabilities of the options",
    "repeats": "from repeated runs of both models",
    "noise_run": "from one run each and a second run that measures the noise",
    "single_run": "from one run each; the noise of the runs was not measured",
    "deterministic": "from one run each, which you said is without noise",
    "mixed": "each task by the best that its log allows",
}


def single_number(low_end: float, high_end: float, basis: str) -> float:
    """The one number of a range to order and draw by; see `Range.value`."""
    return low_end if basis == "repeats" else high_end


class Range(Frozen):
    """A share of items that was lost or gained: between its two ends, with a 95 % interval.

    The low end is what is sure; the high end is what could have been lost at most. Where the log
    has option probabilities the high end is the exact loss, and the low end leaves out what
    reshuffled guessing could explain.
    """

    low_end: float
    high_end: float
    low: float
    high: float
    """The interval, over both ends."""
    of_known: Estimate | None
    """The same as a share of what was known."""
    basis: Basis

    @property
    def exact(self) -> bool:
        """Whether the chances of every item are known, so that the high end is the loss itself."""
        return self.basis in ("probabilities", "deterministic")

    @property
    def value(self) -> float:
        """The one number to order and draw by: the loss where it is exact.

        Of repeats it is what is sure, of other runs the most that it can be: their low end may be
        the drop of accuracy, in which gains hide losses.
        """
        return single_number(self.low_end, self.high_end, self.basis)

    @property
    def estimate(self) -> Estimate:
        """The one number with the whole interval."""
        return Estimate(value=self.value, low=self.low, high=self.high)


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


def range_words(range_: Range) -> str:
    """A range in percent: one number where it is exact, else its two ends, and the interval.

    Example:
        >>> exact = Range(low_end=0.1, high_end=0.1, low=0.08, high=0.12, of_known=None,
        ...               basis="probabilities")
        >>> range_words(exact)
        '10.0 % (8.0 to 12.0)'
        >>> range_words(exact.model_copy(update={"basis": "single_run", "low_end": 0.0}))
        'between 0.0 % and 10.0 % (8.0 to 12.0)'
    """
    if range_.exact or percent(range_.low_end) == percent(range_.high_end):
        return interval(range_.estimate, " %")
    low, high = (percent(limit).removesuffix(" %") for limit in (range_.low, range_.high))
    ends = f"between {percent(range_.low_end)} and {percent(range_.high_end)}"
    return f"{ends} ({low} to {high})"


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
