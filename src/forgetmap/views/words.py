"""Numbers and verdicts as short text, the same in every view."""

from __future__ import annotations

from forgetmap.base.words import percent
from forgetmap.stats.estimate import Estimate, interval


def points(share: float, digits: int = 1) -> str:
    """A share in percent, without the sign.

    Example:
        >>> points(0.0625)
        '6.2'
    """
    return percent(share, digits).removesuffix(" %")


def short_interval(estimate: Estimate | None) -> str:
    """A share in percent with its interval, as short as can be; a dash where there is none.

    Example:
        >>> from forgetmap.stats.estimate import Estimate
        >>> short_interval(Estimate(value=0.5, low=0.25, high=0.75))
        '50.0 (25.0, 75.0)'
    """
    return "-" if estimate is None else interval(estimate).replace(" to ", ", ")


def interval_or_dash(estimate: Estimate | None) -> str:
    """A share in percent with its interval; a dash where there is none."""
    return "-" if estimate is None else interval(estimate)


def p_value(p: float) -> str:
    """A p-value with three digits.

    Example:
        >>> p_value(0.0421), p_value(0.0001)
        ('.042', '<.001')
    """
    return f"{p:.3f}".lstrip("0") if p >= 0.001 else "<.001"


def verdict_mark(word: str) -> str:
    """A verdict in a table, where undecided is a question mark."""
    return "?" if word == "undecided" else word
