"""Gates: limits that a checkpoint must keep, decided on the sure side of the interval.

Two forms. `--gate max-forgetting=0.03` breaks when the 95 % interval lies beyond the limit, so that
noise alone breaks it about one time in forty; docs/explanation/coverage.md has the simulated rates.
A policy file (`forgetmap.policy`) holds many limits and keeps the chance that noise breaks any of
them at its alpha; benchmarks/gate_simulation.py measures that.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict
from scipy import special

from forgetmap.causes import UNKNOWN, share
from forgetmap.errors import InputError, WithheldError
from forgetmap.map import percent
from forgetmap.policy import EVERY, Action, Limit, Policy, Require, Tier, setting_name
from forgetmap.stats.tests import holm

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from forgetmap.map import Cell, Estimate, ForgettingMap

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


# --- policies -------------------------------------------------------------------------------------

Verdict = Literal["PASS", "WARN", "BLOCK", "WITHHELD"]
State = Literal["held", "broken", "undecided", "missing"]
EXIT_CODES: dict[Verdict, int] = {"PASS": 0, "WARN": 0, "BLOCK": 1, "WITHHELD": 3}
_ACTIONS: dict[Action, Verdict] = {
    "pass": "PASS",
    "warn": "WARN",
    "block": "BLOCK",
    "withhold": "WITHHELD",
}
_SPREAD = float(special.ndtri(0.975))


class Finding(BaseModel):
    """One limit on one cell: on which side of it the value lies, and what follows."""

    model_config = ConfigDict(frozen=True)

    where: str
    measure: str
    limit: float | None
    """As a share of all items, also where it was given relative to what was known."""
    tier: Tier
    state: State
    verdict: Verdict
    reason: str
    p_value: float | None = None
    """Chance of such data if the value were at its limit, corrected."""


class Judgement(BaseModel):
    """The verdict on a checkpoint, with its reasons."""

    model_config = ConfigDict(frozen=True)

    verdict: Verdict
    obstacles: list[str]
    """Why no honest answer is possible, whatever the limits say."""
    findings: list[Finding]

    @property
    def exit_code(self) -> int:
        """0 for PASS and WARN, 1 for BLOCK, 3 for WITHHELD."""
        return EXIT_CODES[self.verdict]

    def reasons(self) -> list[str]:
        """What led to the verdict; for PASS, every limit."""
        deciding = [found.reason for found in self.findings if found.verdict == self.verdict]
        return [*self.obstacles, *deciding]


class _Evidence(NamedTuple):
    """What the map says about one limit."""

    estimate: Estimate
    p_value: float
    name: str


class _Case(NamedTuple):
    """One limit on one cell, before the correction for many."""

    limit: Limit
    where: str
    bound: float | None
    evidence: _Evidence | str
    """A text says why there is none."""


def judge(result: ForgettingMap, policy: Policy) -> Judgement:
    """Judge a map by a policy.

    Example:
        >>> import forgetmap
        >>> policy = Policy(limits=[{"measure": "raw", "max": 0.05}, {"measure": "drop", "max": 0}])
        >>> judgement = judge(forgetmap.demo(), policy)
        >>> judgement.verdict, [found.state for found in judgement.findings]
        ('BLOCK', ['broken', 'held'])
    """
    cases = [
        _case(result, limit, where, policy.require) for limit, where in _places(result, policy)
    ]
    findings = [
        _decided(case, policy, adjusted)
        for case, adjusted in zip(cases, _corrected(cases, policy), strict=True)
    ]
    obstacles = list(_obstacles(result, policy.require))
    found = {finding.verdict for finding in findings}
    order: tuple[Verdict, ...] = ("BLOCK", "WITHHELD", "WARN", "PASS")
    verdict = "WITHHELD" if obstacles else next(name for name in order if name in found)
    return Judgement(verdict=verdict, obstacles=obstacles, findings=findings)


def split_gates(options: Iterable[str]) -> tuple[list[str], Policy | None]:
    """Tell limits (`max-forgetting=0.03`) from the policy file among the values of `--gate`.

    Example:
        >>> split_gates(["max-drop=0.02"])
        (['max-drop=0.02'], None)
    """
    limits, policy = [], None
    for option in options:
        if option.partition("=")[0] in LIMITS or not _is_file(option):
            parse_limit(option)
            limits.append(option)
        elif policy is not None:
            raise InputError(f"--gate {option}: one policy file is enough; join the two")
        else:
            policy = Policy.load(option)
    return limits, policy


def _is_file(option: str) -> bool:
    return option.endswith((".yaml", ".yml")) or ("=" not in option and Path(option).exists())


def _obstacles(result: ForgettingMap, require: Require) -> Iterator[str]:
    """What makes the two runs incomparable; then a limit proves nothing in either direction."""
    covered = result.coverage
    for side, count in (("before", covered.items_before), ("after", covered.items_after)):
        part = covered.matched / max(1, count)
        if part < require.coverage:
            yield (
                f"only {percent(part)} of the items {side} could be compared; "
                f"the policy asks for {percent(require.coverage)}"
            )
    if require.identity == "content" and covered.identity != "content":
        yield "items were paired by their number; the policy asks for pairing by content"
    if require.confounds != "any":
        allowed = set(require.confounds)
        for found in result.confounds:
            if setting_name(found.setting) not in allowed and found.setting not in allowed:
                yield f"the runs differ in {found.setting}, which the policy does not allow"


def _places(result: ForgettingMap, policy: Policy) -> Iterator[tuple[Limit, str]]:
    """Every limit with each of its cells; a cell's own limit takes the place of a general one."""
    named = {(found.where, found.measure, found.tier) for found in policy.limits if not found.every}
    for limit in policy.limits:
        if not limit.every:
            yield limit, limit.where
            continue
        kind = limit.where.removesuffix(EVERY)
        cells = result.categories if kind == "category:" else result.tasks
        for name in cells or [EVERY]:  # no category in the map: the limit is there, the cells not
            if (f"{kind}{name}", limit.measure, limit.tier) not in named:
                yield limit, f"{kind}{name}"


def _case(result: ForgettingMap, limit: Limit, where: str, require: Require) -> _Case:
    cell = _cell(result, where)
    if cell is None:
        return _Case(limit, where, None, "it is not in the map")
    relative = limit.max_relative
    bounds = (limit.max, None if relative is None else relative * cell.accuracy_before)
    bound = min(found for found in bounds if found is not None)
    if cell.n < require.items:
        few = f"it has only {cell.n:,} items; the policy asks for {require.items:,}"
        return _Case(limit, where, bound, few)
    pooled = where != "macro"  # a mean over categories is no count of items
    return _Case(limit, where, bound, _evidence(cell, limit, bound, pooled))


def _cell(result: ForgettingMap, where: str) -> Cell | None:
    kind, _, name = where.partition(":")
    if kind in ("total", "macro"):
        cell: Cell = getattr(result, kind)
        return cell
    return (result.categories if kind == "category" else result.tasks).get(name)


def _evidence(cell: Cell, limit: Limit, bound: float, pooled: bool) -> _Evidence | str:
    if limit.cause:
        return _of_cause(cell, limit.cause, bound)
    single = cell.repeats_before == cell.repeats_after == 1
    exact = single and pooled and cell.interval != "cluster bootstrap"
    if limit.measure == "drop":
        change = cell.change
        lost = change.model_copy(
            update={"value": -change.value, "low": -change.high, "high": -change.low}
        )
        p_value = _p_of_drop(cell, bound) if exact else _p_from_interval(lost, bound)
        return _Evidence(lost, p_value, "loss of accuracy")
    name = cell.headline if limit.measure == "forgetting" else limit.measure
    estimate = cell.forgetting.get(name)
    if estimate is None:
        return f"the map has no {name} for it"
    if exact and name == "raw":
        p_value = _p_from_count(round(estimate.value * cell.n), cell.n, bound)
    else:
        p_value = _p_from_interval(estimate, bound)
    return _Evidence(estimate, p_value, f"forgetting ({name})")


def _of_cause(cell: Cell, cause: str, bound: float) -> _Evidence | str:
    """Items lost by a cause; those without text may have it or not, which widens the interval."""
    if cell.causes is None:
        return "the map has no causes for it (compare with --causes)"
    count = cell.causes.get(cause, 0)
    least, most = share(count, cell.n), share(count + cell.causes.get(UNKNOWN, 0), cell.n)
    estimate = least.model_copy(update={"high": most.high})
    return _Evidence(estimate, _p_from_count(count, cell.n, bound), f"forgetting by {cause}")


def _p_from_count(count: int, n: int, bound: float) -> float:
    """Exact chance of so many items or more if each had the chance `bound`."""
    if count == 0 or bound >= 1:
        return 1.0
    return float(special.betainc(count, n - count + 1, bound))


def _p_of_drop(cell: Cell, bound: float) -> float:
    """Chance of such a net loss in single runs at the limit: the score test for paired shares.

    By Tango (1998), with a correction for counts moving in steps; at the limit 0 it is McNemar's.
    The map's interval is right on the average of both its ends; a gate must keep to alpha at one.
    """
    n, lost, gained = cell.n, cell.counts.n10, cell.counts.n01
    linear = (2 * n - lost + gained) * bound - lost - gained
    constant = -gained * bound * (1 - bound)
    least = (math.sqrt(linear**2 - 8 * n * constant) - linear) / (4 * n)
    variance = n * (2 * least + bound * (1 - bound))
    if variance <= 0:
        return 1.0
    return float(special.ndtr((n * bound + 1 - (lost - gained)) / math.sqrt(variance)))


def _p_from_interval(estimate: Estimate, bound: float) -> float:
    """Chance of such a value at the limit, by the normal curve that has the interval's lower half.

    At alpha = 0.025 and without correction this says broken exactly where the interval lies beyond
    the limit.
    """
    spread = (estimate.value - estimate.low) / _SPREAD
    if spread <= 0:
        return 0.0 if estimate.value > bound else 1.0
    return float(special.ndtr((bound - estimate.value) / spread))


def _corrected(cases: list[_Case], policy: Policy) -> list[float]:
    """P-values after Holm within each tier; limits with an alpha of their own stand apart."""
    adjusted = [
        case.evidence.p_value if isinstance(case.evidence, _Evidence) else math.nan
        for case in cases
    ]
    if policy.correction == "none":
        return adjusted
    for tier in ("block", "warn"):
        family = [
            index
            for index, case in enumerate(cases)
            if case.limit.tier == tier
            and case.limit.alpha is None
            and isinstance(case.evidence, _Evidence)
        ]
        for index, p_value in zip(family, holm([adjusted[i] for i in family]), strict=True):
            adjusted[index] = float(p_value)
    return adjusted


def _decided(case: _Case, policy: Policy, adjusted: float) -> Finding:
    limit = case.limit
    if isinstance(case.evidence, str) or case.bound is None:
        return Finding(
            where=case.where,
            measure=limit.measure,
            limit=case.bound,
            tier=limit.tier,
            state="missing",
            verdict=_ACTIONS[limit.missing or policy.missing],
            reason=f"{case.where}, {limit.measure}: {case.evidence}",
        )
    estimate = case.evidence.estimate
    state: State = "undecided"
    if adjusted <= (limit.alpha or policy.alpha) and estimate.value > case.bound:
        state = "broken"
    elif estimate.high <= case.bound:
        state = "held"
    verdict: dict[State, Verdict] = {
        "held": "PASS",
        "broken": _ACTIONS[limit.tier],
        "undecided": _ACTIONS[limit.undecided or policy.undecided],
    }
    return Finding(
        where=case.where,
        measure=limit.measure,
        limit=case.bound,
        tier=limit.tier,
        state=state,
        verdict=verdict[state],
        reason=_reason(case, case.bound, state),
        p_value=adjusted,
    )


def _reason(case: _Case, bound: float, state: State) -> str:
    assert isinstance(case.evidence, _Evidence)
    estimate, _, name = case.evidence
    low = percent(estimate.low).removesuffix(" %")
    says = {
        "held": "kept",
        "broken": "broken",
        "undecided": "undecided, the data cannot tell",
    }
    return (
        f"{case.where}: {name} {percent(estimate.value)} ({low} to {percent(estimate.high)}), "
        f"limit {percent(bound)}: {says[state]}"
    )
