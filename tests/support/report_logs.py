"""Logs for the tests of the report: four tasks, two runs a side, losses, gains and causes."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from forgetmap.map.cells import Plan
from forgetmap.map.comparison import build_map, with_causes
from forgetmap.pairing.two_logs import pair
from forgetmap.samples.identity import content_hash
from forgetmap.samples.table import Meta, Samples

if TYPE_CHECKING:
    from collections.abc import Callable

    from forgetmap.map.comparison import Comparison

CATEGORIES = {
    "capitals": "Geography",
    "rivers": "Geography",
    "sums": "Mathematics",
    "tales": "Prose",
}
HOSTILE = (
    "</script><script>window.pwned = 1</script><img src=x onerror='window.pwned = 1'>"
    "<a href='javascript:window.pwned=1'>x</a>{{7*7}}${7*7}%{x}<b>bold</b>&lt;\u2028\u2029"
    "\u202egnp.exe\u2066 \x1b[31mred\x00 '\"` <!-- ]]> $title"
)


def made_log(side: str, words: Callable[[str], str] = str, items: int = 40) -> Samples:
    """Two runs over four tasks; every text goes through `words`."""
    rng = random.Random(side)
    rows = []
    for task in CATEGORIES:
        for number in range(items):
            for repeat in range(2):
                known = number % 4 != (0 if side == "after" else 1)
                right = rng.random() < (0.9 if known else 0.3) and number % 10 != 9
                status = "truncated" if side == "after" and number % 8 == 0 else "ok"
                rows.append(
                    {
                        "model": words(f"model {side}"),
                        "task": words(task),
                        "item": content_hash(task, str(number)),
                        "item_ref": words(f"{task}-{number}"),
                        "repeat": repeat,
                        "score": float(right),
                        "status": status,
                        "k": None if task == "tales" else 4,
                        "prompt": words(f"Question {number} of {task}?"),
                        "target": words(f"target {number}"),
                        "answer": words(f"answer {number if right else 'none'}"),
                        "response": words(f"I think that {number} is {right} for {side} people"),
                    }
                )
    meta = Meta(harness=words("harness"), settings={words(f"model {side}"): {words("seed"): side}})
    return Samples.from_rows(rows, meta)


def mapped(before: Samples, after: Samples, categories: dict[str, str]) -> Comparison:
    pairs = pair(before, after)
    result = build_map(
        pairs,
        categories,
        Plan(draws=200),
        sides=[before, after],
        threshold=0.5,
        task_map="tasks.csv",
    )
    return with_causes(result, pairs)
