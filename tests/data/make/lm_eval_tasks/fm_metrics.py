"""Scores of the golden lm-eval tasks that are no plain 0 or 1."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any


def process_instructions(doc: dict[str, Any], results: list[str]) -> dict[str, Any]:
    """A bool for the whole prompt and a list of bools for its checks, as IFEval has them."""
    text = results[0].strip()
    outcome = {
        "has_word": doc["answer"] in text,
        "no_comma": "," not in text,
        "ends_with_stop": text.endswith("."),
    }
    followed = [outcome[check] for check in doc["checks"]]
    return {"prompt_level_strict_acc": all(followed), "inst_level_strict_acc": followed}


def mean_of_lists(items: list[list[bool]]) -> float:
    """Share of true values over all lists."""
    flat = [value for item in items for value in item]
    return sum(flat) / len(flat)


def process_kinds(doc: dict[str, Any], results: list[tuple[float, bool]]) -> dict[str, float]:
    """Probability of the right options among all, as truthfulqa_mc2 has it."""
    weights = [math.exp(result[0]) for result in results]
    right = sum(weight for weight, label in zip(weights, doc["answer"], strict=True) if label)
    return {"acc": right / sum(weights)}


def process_words(doc: dict[str, Any], results: list[str]) -> dict[str, float]:
    """F1 over the letters of the text and of the right option."""
    wanted = Counter(doc["choices"][doc["answer"]].lower())
    given = Counter(results[0].strip().lower())
    common = sum((wanted & given).values())
    if common == 0:
        return {"char_f1": 0.0}
    precision, recall = common / sum(given.values()), common / sum(wanted.values())
    return {"char_f1": 2 * precision * recall / (precision + recall)}


def share_equal(items: list[tuple[int, int]]) -> float:
    """Aggregate the (gold, predicted) pairs of ``mcc`` without 100,000 bootstrap rounds."""
    return sum(gold == given for gold, given in items) / len(items)
