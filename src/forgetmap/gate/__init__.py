"""The gate: limits, policies and baselines that judge a map."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap.base.exports import callable_package, load_on_use

if TYPE_CHECKING:
    from forgetmap.gate.baseline import compare_with_baseline, save_baseline
    from forgetmap.gate.judgement import check_gate, judge
    from forgetmap.gate.policy import Policy

__all__ = ["Policy", "check_gate", "compare_with_baseline", "judge", "save_baseline"]

__getattr__ = load_on_use(
    __name__,
    {
        "baseline": ["compare_with_baseline", "save_baseline"],
        "judgement": ["check_gate", "judge"],
        "policy": ["Policy"],
    },
)

callable_package(__name__, "forgetmap.api:gate")
