"""Gates: limits that a checkpoint must keep, decided on the sure side of the interval.

A limit is broken when the 95 % interval lies beyond it, so that noise alone breaks a gate about
one time in forty; docs/explanation/coverage.md has the simulated rates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from forgetmap.errors import InputError, WithheldError
from forgetmap.map import percent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from forgetmap.map import ForgettingMap

FEWEST_ITEMS = 20
"""With fewer, hardly a loss is large enough to be sure of: a pass would mean nothing."""

LIMITS = {
    "max-forgetting": "forgetting in total, by the headline estimator",
    "max-drop": "loss of accuracy in total",
}


class GateResult(NamedTuple):
    """One limit: whether it holds, and why."""

    limit: str
    holds: bool
    reason: str


def check_gate(result: ForgettingMap, limits: Iterable[str]) -> list[GateResult]:
    """Check limits written as `name=value`, such as `max-forgetting=0.03`.

    Example:
        >>> import forgetmap
        >>> [gate.holds for gate in check_gate(forgetmap.demo(), ["max-forgetting=0.5"])]
        [True]
    """
    parsed = [parse_limit(limit) for limit in limits]
    if parsed and result.total.n < FEWEST_ITEMS:
        raise WithheldError(
            f"only {result.total.n} items were compared; a gate on fewer than {FEWEST_ITEMS} would "
            "pass whatever happened (add items)"
        )
    return [_check(result, *limit) for limit in parsed]


def parse_limit(limit: str) -> tuple[str, float]:
    """Read a limit written as `name=value`."""
    name, _, value = limit.partition("=")
    if name not in LIMITS:
        raise InputError(f"--gate {limit}: unknown limit; known are {', '.join(LIMITS)}")
    try:
        share = float(value)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise InputError(f"--gate {limit}: the limit must be a fraction such as {name}=0.03")
    return name, share


def _check(result: ForgettingMap, name: str, limit: float) -> GateResult:
    cell = result.total
    if name == "max-forgetting":
        value, surely, what = cell.forgot.value, cell.forgot.low, f"forgetting ({cell.headline})"
    else:
        value, surely, what = -cell.change.value, -cell.change.high, "loss of accuracy"
    holds = surely <= limit
    reason = (
        f"{what} is {percent(value)}, 95 % interval from {percent(surely)}; "
        f"the limit {percent(limit)} lies {'inside or above' if holds else 'below'} it"
    )
    return GateResult(f"{name}={limit:g}", holds, reason)
