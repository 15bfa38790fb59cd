"""Items that the training data hold: they are new skills, and are reported apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pyarrow as pa

from forgetmap.samples.table import Samples

WasTrained = Callable[[str], bool]
"""Whether a prompt asks what the training data ask."""
SUFFIX = " (trained on)"


class Marked(NamedTuple):
    """Two logs in which trained items have tasks of their own."""

    sides: list[Samples]
    new: frozenset[str]
    """The tasks of the trained items."""
    items: int


def mark_trained(sides: list[Samples], was_trained: WasTrained) -> Marked:
    """Give the items that were trained on a task of their own, in both logs.

    An item counts as trained where its prompt does in either log.

    Example:
        >>> log = Samples.from_rows([
        ...     {"task": "capitals", "item": number, "score": 1, "prompt": prompt}
        ...     for number, prompt in enumerate(["Chad?", "Mali?"])])
        >>> marked = mark_trained([log, log], lambda prompt: prompt == "Mali?")
        >>> sorted(marked.new), marked.items
        (['capitals (trained on)'], 1)
    """
    known: dict[str, bool] = {}
    trained: set[tuple[str, int | str]] = set()
    for side in sides:
        for task, item, prompt in _prompts(side):
            if prompt not in known:
                known[prompt] = was_trained(prompt)
            if known[prompt]:
                trained.add((task, item))
    if not trained:
        return Marked(sides, frozenset(), 0)
    new = frozenset(f"{task}{SUFFIX}" for task, _ in trained)
    return Marked([_renamed(side, trained) for side in sides], new, len(trained))


def _prompts(side: Samples) -> Iterator[tuple[str, int | str, str]]:
    for batch in side.to_batches(["task", "item", "item_ref", "prompt"]):
        columns = (batch[name].to_pylist() for name in ("task", "item", "item_ref", "prompt"))
        for task, item, ref, prompt in zip(*columns, strict=True):
            if prompt:
                yield task, ref if item is None else item, prompt


def _renamed(side: Samples, trained: set[tuple[str, int | str]]) -> Samples:
    def batches() -> Iterator[pa.RecordBatch]:
        for batch in side.to_batches():
            columns = (batch[name].to_pylist() for name in ("task", "item", "item_ref"))
            tasks = [
                f"{task}{SUFFIX}" if (task, ref if item is None else item) in trained else task
                for task, item, ref in zip(*columns, strict=True)
            ]
            place = batch.schema.get_field_index("task")
            yield batch.set_column(place, batch.schema.field(place), pa.array(tasks, pa.string()))

    renamed = Samples.collect(batches(), side.meta)
    renamed.model = side.model
    return renamed
