"""Gates: limits that a checkpoint must keep, decided on the sure side of the interval.

Two forms. `--gate max-forgetting=0.03` breaks when the 95 % interval lies beyond the limit, so that
noise alone breaks it about one time in forty; docs/explanation/coverage.md has the simulated rates.
A policy file (`forgetmap.gate.policy`) holds many limits and keeps the chance that noise breaks
any of them at its alpha; benchmarks/gate_simulation.py measures that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

from pydantic import Field

from forgetmap.base.errors import InputError, WithheldError
from forgetmap.base.model import Frozen
from forgetmap.base.words import percent, some
from forgetmap.capabilities.drift_result import Drift
from forgetmap.gate.evidence import Measurement, drifting, in_drift, in_map
from forgetmap.gate.policy import (
    EVERY,
    Action,
    AnyLimit,
    CapabilityLimit,
    Limit,
    Policy,
    Require,
    Tier,
    setting_name,
)
from forgetmap.map.result import ForgettingMap
from forgetmap.samples.comparability import Confound
from forgetmap.stats.estimate import range_words
from forgetmap.stats.tests import holm

OneLimit = TypeVar("OneLimit", Limit, CapabilityLimit)

FEWEST_ITEMS = 20
"""With fewer, hardly a loss is large enough to be sure of: a pass would mean nothing."""

LIMITS = {
    "max-forgetting": "what was lost of the old skills",
    "max-drop": "loss of accuracy on the old skills",
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
    if parsed and result.old.n < FEWEST_ITEMS:
        raise WithheldError(
            f"only {result.old.n} items were compared; a gate on fewer than {FEWEST_ITEMS} would "
            "pass whatever happened (add items)"
        )
    if parsed and (obstacle := next(_uncovered(result, Require().coverage), None)):
        raise WithheldError(f"{obstacle}. A gate would pass on what is missing: compare whole logs")
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
    cell = result.old
    if name == "max-forgetting":
        surely, told = cell.lost.low, f"lost {range_words(cell.lost)}"
    else:
        surely = -cell.change.high
        told = f"loss of accuracy {percent(-cell.change.value)} (from {percent(surely)})"
    holds = surely <= limit
    place = "inside or above" if holds else "below"
    reason = f"{told}; the limit {percent(limit)} lies {place} the 95 % interval"
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


class Finding(Frozen):
    """One limit on one cell: on which side of it the value lies, and what follows."""

    where: str
    measure: str
    limit: float | None
    """On the map a share of all items, also where it was given relative to what was known."""
    tier: Tier
    state: State
    verdict: Verdict
    reason: str
    p_value: float | None = None
    """Chance of such data if the value were at its limit, corrected."""


class Judgement(Frozen):
    """The verdict on a checkpoint, with its reasons."""

    verdict: Verdict
    obstacles: list[str]
    """Why no honest answer is possible, whatever the limits say."""
    findings: list[Finding]
    notes: list[str] = Field(default_factory=list)
    """What to know beside the verdict."""

    @property
    def exit_code(self) -> int:
        """0 for PASS and WARN, 1 for BLOCK, 3 for WITHHELD."""
        return EXIT_CODES[self.verdict]

    def reasons(self) -> list[str]:
        """What led to the verdict; for PASS, every limit."""
        deciding = [finding.reason for finding in self.findings if finding.verdict == self.verdict]
        return [*self.obstacles, *deciding]


class _Case(NamedTuple):
    """One limit on one cell, before the correction for many."""

    limit: AnyLimit
    where: str
    bound: float | None
    evidence: Measurement | str
    """A text says why there is none."""


def judge(result: ForgettingMap, policy: Policy, drift: Drift | None = None) -> Judgement:
    """Judge a map by a policy.

    Args:
        result: The map.
        policy: The policy.
        drift: The drift by capability of the same two models, for limits on capabilities.

    Example:
        >>> import forgetmap
        >>> policy = Policy(limits=[{"measure": "raw", "max": 0.05}, {"measure": "drop", "max": 0}])
        >>> judgement = judge(forgetmap.demo(), policy)
        >>> judgement.verdict, [finding.state for finding in judgement.findings]
        ('BLOCK', ['broken', 'undecided'])
    """
    cases = list(_cases(result, policy, drift))
    findings = [
        _decided(case, policy, adjusted)
        for case, adjusted in zip(cases, _corrected(cases, policy), strict=True)
    ]
    obstacles = list(_obstacles(result, policy.require, drift))
    verdicts = {finding.verdict for finding in findings}
    order: tuple[Verdict, ...] = ("BLOCK", "WITHHELD", "WARN", "PASS")
    verdict = "WITHHELD" if obstacles else next(name for name in order if name in verdicts)
    return Judgement(
        verdict=verdict,
        obstacles=obstacles,
        findings=findings,
        notes=_notes(result, drift) if drift else [],
    )


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


def _notes(result: ForgettingMap, drift: Drift) -> list[str]:
    """A drift of other models is easily given by mistake; harnesses name models freely, though."""
    mapped, drifted = (result.before.name, result.after.name), (drift.before, drift.after)
    if mapped == drifted:
        return []
    return [
        f"the map is of {' -> '.join(mapped)}, the drift of {' -> '.join(drifted)}; "
        "make sure that these are the same models"
    ]


def _obstacles(result: ForgettingMap, require: Require, drift: Drift | None) -> Iterator[str]:
    """What makes the two runs incomparable; then a limit proves nothing in either direction."""
    yield from _uncovered(result, require.coverage)
    if require.identity == "content" and result.coverage.identity != "content":
        yield "items were paired by their number; the policy asks for pairing by content"
    for runs, confounds in (
        ("the runs", result.confounds),
        ("the scored runs", drift.confounds if drift else []),
    ):
        for setting in _not_allowed(confounds, require):
            yield f"{runs} differ in {setting}, which the policy does not allow"


def _uncovered(result: ForgettingMap, least: float) -> Iterator[str]:
    """The sides of which too few items could be compared."""
    covered = result.coverage
    for side, tasks in (("before", covered.missing_after), ("after", covered.missing_before)):
        part = covered.share(side)
        if part < least:
            missing = f"; {len(tasks)} of its tasks are missing: {some(tasks)}" if tasks else ""
            yield (
                f"only {percent(part)} of the items {side} could be compared; "
                f"{percent(least)} are asked for{missing}"
            )


def _not_allowed(confounds: Iterable[Confound], require: Require) -> Iterator[str]:
    if require.confounds == "any":
        return
    for confound in confounds:
        if not {setting_name(confound.setting), confound.setting} & set(require.confounds):
            yield confound.setting


def _cases(result: ForgettingMap, policy: Policy, drift: Drift | None) -> Iterator[_Case]:
    """Every limit with each of its cells, and what is known about it."""
    fewest = policy.require.items
    new = set(result.settings.new)  # a limit on every task means every old one
    cells = {
        "category": list(result.categories),
        "task": [task for task in result.tasks if task not in new],
    }
    for limit, where in _places(policy.limits, lambda kind: cells[kind]):
        yield _Case(limit, where, *in_map(result, limit, where, fewest))
    for bound, where in _places(policy.capabilities, lambda kind: drifting(drift, kind)):
        yield _Case(bound, where, *in_drift(drift, bound, where, fewest))


def _places(
    limits: Sequence[OneLimit], names: Callable[[str], list[str]]
) -> Iterator[tuple[OneLimit, str]]:
    """Every limit with each of its cells; a cell's own limit takes the place of a general one."""
    named = {(limit.where, limit.measure, limit.tier) for limit in limits if not limit.every}
    for limit in limits:
        if not limit.every:
            yield limit, limit.where
            continue
        kind = limit.where.partition(":")[0]
        for name in names(kind) or [EVERY]:  # no such cell: the limit is there, the cells are not
            if (f"{kind}:{name}", limit.measure, limit.tier) not in named:
                yield limit, f"{kind}:{name}"


def _corrected(cases: list[_Case], policy: Policy) -> list[float]:
    """P-values after Holm within each tier; limits with an alpha of their own stand apart."""
    adjusted = [
        case.evidence.p_value if isinstance(case.evidence, Measurement) else math.nan
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
            and isinstance(case.evidence, Measurement)
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
    if adjusted <= (limit.alpha or policy.alpha) and case.evidence.sure > case.bound:
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
    assert isinstance(case.evidence, Measurement)
    estimate, _, name, is_share, _ = case.evidence
    value, low, high, limit = (
        percent(number) if is_share else f"{number:.4g}"
        for number in (estimate.value, estimate.low, estimate.high, bound)
    )
    says = {
        "held": "kept",
        "broken": "broken",
        "undecided": "can't tell",
    }
    return (
        f"{case.where}: {name} {value} ({low.removesuffix(' %')} to {high}), "
        f"limit {limit}: {says[state]}"
    )
