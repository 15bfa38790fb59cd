"""Small samples for tests."""

from __future__ import annotations

import random
from typing import Any

from forgetmap.samples.identity import content_hash
from forgetmap.samples.table import Meta, Samples


def samples(
    scores: dict[str, list[Any]], *, k: int | None = 4, model: str = "m", **columns: Any
) -> Samples:
    """Samples from task -> list of scores (or lists of scores, one per repeat)."""
    return Samples.from_rows(
        {
            "model": model,
            "task": task,
            "item": content_hash(f"{task} {index}"),
            "item_ref": str(index),
            "repeat": repeat,
            "score": score,
            "k": k,
            **columns,
        }
        for task, items in scores.items()
        for index, repeats in enumerate(items)
        for repeat, score in enumerate(repeats if isinstance(repeats, list) else [repeats])
    )


def random_scores(
    seed: int, tasks: int = 3, items: int = 120, right: float = 0.6
) -> dict[str, Any]:
    """Random 0/1 scores of single runs."""
    rng = random.Random(seed)
    return {
        f"task{task}": [float(rng.random() < right) for _ in range(items)] for task in range(tasks)
    }


def shuffled(log: Samples, seed: int = 0) -> Samples:
    """The same rows in another order."""
    order = list(range(log.data.num_rows))
    random.Random(seed).shuffle(order)
    return Samples(log.data.take(order), Meta(harness=log.meta.harness))
