"""The items of a lineage as its page lists them: every checkpoint's outcome and answer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forgetmap.lineage.build import Builder
from forgetmap.lineage.result import Lineage
from forgetmap.pairing.many_logs import ItemText

MOST_ANSWERS = 60_000
"""Answers that a page holds, of all checkpoints together; it must stay quick to open."""
_LONGEST = 1_500
"""Characters of a prompt, a target or a response."""


def listed_items(result: Lineage, builder: Builder) -> dict[str, Any]:
    """Items that changed somewhere, as many as there is room for, as the page reads them."""
    outcomes = builder.outcomes
    changed = _changed(builder)
    numbers = _drawn(changed, MOST_ANSWERS // len(outcomes.names))
    names = outcomes.logs.item_names(numbers)
    texts = outcomes.logs.item_texts(numbers) if len(numbers) else {}
    return {
        "changed": len(changed),
        "checkpoints": outcomes.names,
        "pairs": [
            {
                "before": outcomes.index(step.before),
                "after": outcomes.index(step.after),
                "isStep": step.edge,
                "lost": step.map.old.lost.model_dump(exclude={"of_known"}),
                "gained": step.map.old.gained.model_dump(exclude={"of_known"}),
            }
            for step in result.comparisons
        ],
        "paths": [[outcomes.index(name) for name in path] for path in builder.lives],
        "tasks": outcomes.tasks,
        "groups": builder.groups,
        "kind": "category" if builder.task_map else "task",
        "items": [
            {
                "number": item,
                "task": int(outcomes.task[item]),
                "group": int(builder.group[item]),
                "id": names[item].item_ref or names[item].item,
                "states": [int(state) for state in builder.states[:, item]],
                "lives": [int(lives.kinds[item]) for lives in builder.lives.values()],
                **_texts(texts.get(item, {}), len(outcomes.names)),
            }
            for item in numbers.tolist()
        ],
    }


def _changed(builder: Builder) -> NDArray[np.int64]:
    """Items that some step lost or gained; the most often lost first."""
    index = builder.outcomes.index
    lost = np.zeros(builder.states.shape[1], np.int64)
    gained = np.zeros_like(lost)
    for before, after in builder.pipeline.edges:
        was, now = builder.states[index(before)], builder.states[index(after)]
        lost += (was == 1) & (now == 0)
        gained += (was == 0) & (now == 1)
    items = np.flatnonzero((lost + gained > 0) & (builder.group >= 0))
    return items[np.lexsort((items, -gained[items], -lost[items]))]


def _drawn(items: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """So many of the items, drawn at random where there are more; the same ones every time."""
    if len(items) <= most:
        return items
    kept = np.random.default_rng(0).choice(len(items), most, replace=False)
    return items[np.sort(kept)]


def _texts(said: dict[int, ItemText], checkpoints: int) -> dict[str, Any]:
    """What was asked, and every checkpoint's answer; a text that all share is kept once."""
    every = [said.get(number) for number in range(checkpoints)]
    return {
        "prompt": _cut(next((text.prompt for text in every if text and text.prompt), None)),
        "target": _cut(next((text.target for text in every if text and text.target), None)),
        "answers": [_cut(text.answer) if text else None for text in every],
        "responses": [_cut(text.response) if text else None for text in every],
        "statuses": [text.status if text else None for text in every],
        "chances": [text.probability if text else None for text in every],
    }


def _cut(text: str | None) -> str | None:
    """A text that is not endless, and says so where something is missing."""
    if text is None or len(text) <= _LONGEST:
        return text
    half = _LONGEST // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters …]\n{text[-half:]}"
