"""Which of the metrics that a log holds for a task is compared."""

from __future__ import annotations

import re
from collections.abc import Mapping

from forgetmap.base.errors import InputError
from forgetmap.base.words import some

_LENIENT_METRICS = (
    *("primary_score", "acc", "extractive_match", "exact_match", "prompt_level_loose_acc"),
    *("prompt_level_strict_acc", "pass@1", "em", "correct", "score", "acc_norm"),
    *("quasi_prefix_exact_match", "quasi_exact_match", "prefix_exact_match"),
    *("final_number_exact_match", "math_equiv_chain_of_thought", "math_equiv", "f1_score"),
    *("plus", "base"),
)
_LENIENT_FILTERS = (
    *("flexible-extract", "flexible", "custom-extract", "none", "score-first"),
    *("maj@", "strict-match"),
)


def asked_metric(asked: Mapping[str, str] | str | None, task: str) -> str | None:
    """The metric that was asked for: one for all tasks, or by task.

    Example:
        >>> asked_metric("acc", "arc"), asked_metric({"gsm8k": "em"}, "arc")
        ('acc', None)
    """
    return asked if isinstance(asked, str) else (asked or {}).get(task)


def choose_metric(task: str, metrics: set[str]) -> str:
    """Choose among the metrics of a task the one most lenient to format.

    Example:
        >>> choose_metric("gsm8k", {"exact_match,strict-match", "exact_match,flexible-extract"})
        'exact_match,flexible-extract'
        >>> choose_metric("arc", {"acc", "acc_norm"})
        'acc'
    """
    if len(metrics) == 1:
        return next(iter(metrics))
    first, second, *_ = sorted(metrics, key=lambda metric: (_rank(metric), metric))
    if _rank(first) == _rank(second):
        raise InputError(
            f"task {task} has the metrics {some(metrics)}; choose one with --metric {task}=NAME"
        )
    return first


def _rank(metric: str) -> tuple[int, int]:
    """How strict a metric is; those that are not known come last, side by side."""
    name, _, filtered = metric.partition(",")
    filtered = re.sub(r"(?<=@)\d+$", "", filtered) or "none"
    metrics, filters = (*_LENIENT_METRICS, name), (*_LENIENT_FILTERS, filtered)
    return metrics.index(name), filters.index(filtered)
