"""For test suites: a fixture that compares two logs, and an assertion on the map.

Loaded by pytest wherever forgetmap is installed; nothing heavy is imported before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from forgetmap.capabilities.drift_result import Drift
    from forgetmap.gate.policy import Policy
    from forgetmap.map.result import ForgettingMap


@pytest.fixture(scope="session")
def forgetting_map() -> Callable[..., ForgettingMap]:
    """Compare two logs: `forgetting_map(before, after, **options)`, as `forgetmap.compare`.

    The same comparison is made once per session, however many tests look at it.
    """
    from forgetmap.api import compare

    made: dict[str, ForgettingMap] = {}

    def compared(before: str | Path, after: str | Path, **options: Any) -> ForgettingMap:
        key = repr((str(before), str(after), sorted(options.items())))
        if key not in made:
            made[key] = compare(before, after, **options)
        return made[key]

    return compared


def assert_keeps(
    result: ForgettingMap,
    policy: Policy | str | Path | dict[str, Any],
    drift: Drift | None = None,
) -> None:
    """Fail the test unless the map passes a policy, with or without warnings.

    Args:
        result: The map.
        policy: A policy, its file, or its content.
        drift: The drift by capability, where the policy limits capabilities.

    Example:
        >>> import forgetmap
        >>> assert_keeps(forgetmap.demo(), {"limits": [{"measure": "drop", "max": 0.02}]})
        >>> assert_keeps(forgetmap.demo(), {"limits": [{"measure": "raw", "max": 0.05}]})
        Traceback (most recent call last):
        AssertionError: BLOCK: old: flips 1->0 12.4 % (11.4 to 13.6 %), limit 5.0 %: broken
    """
    __tracebackhide__ = True
    from forgetmap.base.words import clean
    from forgetmap.gate.judgement import judge
    from forgetmap.gate.policy import Policy

    if isinstance(policy, dict):
        rules = Policy.model_validate(policy)
    else:
        rules = policy if isinstance(policy, Policy) else Policy.load(policy)
    judgement = judge(result, rules, drift)
    if judgement.exit_code:
        reasons = "\n".join(clean(reason) for reason in judgement.reasons())
        raise AssertionError(f"{judgement.verdict}: {reasons}")
