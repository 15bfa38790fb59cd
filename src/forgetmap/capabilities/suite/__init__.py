"""A small open suite: items for every capability, made offline from a seed.

Each item carries a `reference` in its `meta`, an answer that gets full marks from the scorers of
the manifest `open-suite`; the tests score every one of them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import orjson

from forgetmap.answers.items import Item
from forgetmap.base.errors import InputError
from forgetmap.base.files import replacing
from forgetmap.capabilities.suite import (
    defaults,
    instructions,
    knowledge,
    needles,
    passages,
    protocol,
    reasoning,
    shift,
)
from forgetmap.capabilities.suite.common import Maker

_MAKERS: dict[str, tuple[Maker, ...]] = {
    "C1": (
        *(knowledge.facts_choice, knowledge.facts_short),
        *(knowledge.arithmetic, knowledge.programs),
    ),
    "C2": (reasoning.chains, reasoning.orders, reasoning.equations),
    "C3": (passages.reading_short, passages.reading_boolean),
    "C4": (passages.grounded, passages.quotes),
    "C5b": (shift.strange_rules, shift.strange_units),
    "C5c": (shift.numbers_abroad, shift.capitals_abroad),
    "W1a": (defaults.harmful,),
    "W1b": (defaults.underspecified,),
    "W1c": (defaults.harmless,),
    "W2": (passages.selections, passages.summaries),
    "W3a": (defaults.elaboration,),
    "W3b": (defaults.formatting,),
    "H1": (instructions.instructions,),
    "H2": (protocol.schema_choice, protocol.schema_record, protocol.tables),
    "H3": (protocol.tool_calls,),
    "H4": (protocol.promises,),
    "H5": (needles.needles,),
    "H6": (passages.citations,),
}
MAKERS = {
    capability: {f"{make.__name__}.open": make for make in makers}
    for capability, makers in _MAKERS.items()
}
"""Capability -> its tasks and who makes their items. C5a rephrases items of C1."""
REPHRASED = {
    "facts_choice_rephrased.open": ("facts_choice.open", knowledge.rephrase_choice),
    "arithmetic_rephrased.open": ("arithmetic.open", knowledge.rephrase_arithmetic),
}
WAYS = 2
"""Rephrasings of an item."""


def build(seed: int = 0, per_capability: int = 40) -> list[Item]:
    """Make the items of the suite, the same ones for the same seed.

    Another seed gives other items where they are drawn, and another order where they come from a
    list. Each capability gets at least `per_capability` items, shared out among its tasks.

    Example:
        >>> items = build(seed=1, per_capability=4)
        >>> len({item.meta["capability"] for item in items}), items[0].ref
        (19, 'facts_choice-1-0')
    """
    if per_capability < 1:
        raise InputError(f"{per_capability} items per capability: must be at least 1")
    items: list[Item] = []
    for capability, tasks in MAKERS.items():
        each = -(-per_capability // len(tasks))
        for task, make in tasks.items():
            try:
                drafts = make(random.Random(f"{seed} {task}"), each)
            except InputError as error:
                raise InputError(f"task {task}: {error}; ask for fewer") from error
            items += _named(drafts, capability, task, seed)
        if capability == "C1":
            rephrased = _rephrased(items)
    return items + rephrased


def _named(drafts: Sequence[Item], capability: str, task: str, seed: int) -> list[Item]:
    stem = task.removesuffix(".open")
    return [
        replace(item, task=task, ref=f"{stem}-{seed}-{number}",
                meta={"capability": capability, **item.meta})
        for number, item in enumerate(drafts)
    ]  # fmt: skip


def _rephrased(originals: Sequence[Item]) -> list[Item]:
    """Each original in other words, twice; `meta.original` names it."""
    found = []
    for task, (original_task, rephrase) in REPHRASED.items():
        for item in originals:
            if item.task != original_task:
                continue
            for way in range(WAYS):
                meta = {**item.meta, "capability": "C5a", "original": item.ref}
                ref = f"{item.ref}-again-{way + 1}"
                found.append(replace(rephrase(item, way), task=task, ref=ref, meta=meta))
    return found


def write(items: Sequence[Item], path: str | Path) -> None:
    """Write items as JSON lines, in the columns that `forgetmap score` reads.

    Put a model's answer to each `prompt` into the column `outputs`, and the file can be scored.
    """
    with replacing(path) as temporary, temporary.open("wb") as file:
        for item in items:
            file.write(orjson.dumps(as_row(item)) + b"\n")


def as_row(item: Item) -> dict[str, object]:
    """The item in the columns that `forgetmap score` reads."""
    row = {
        "task": item.task,
        "id": item.ref,
        "prompt": item.prompt,
        "gold": item.gold,
        "choices": item.choices,
        "ctx": item.context,
        "schema": item.schema,
        "tool_spec": item.tools,
        "meta": item.meta,
    }
    return {name: value for name, value in row.items() if value or name == "gold"}
