"""Suites of capabilities: the model answers, and `forgetmap score` says what the answers show.

`open-suite` is made here from a seed; `captrack` comes from the hub or from a local copy. Nothing
is scored while the model runs: an answer goes beside its item, with all that its scorers want.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from forgetmap.answers.items import Item
from forgetmap.capabilities import hub, suite
from forgetmap.capabilities.manifest import Manifest
from forgetmap.evaluate.questions import UNSCORED, Question, Suite, Task
from forgetmap.evaluate.suites.common import digest
from forgetmap.readers.captrack import as_text

MOST_TOKENS = 512
"""Longest answer: how long a model talks when nobody stops it is part of what is measured."""
_LICENCES = {"open-suite": "made by forgetmap (Apache-2.0)", "captrack": "as the data set says"}


def load(name: str, source: str = "", seed: int = 0) -> Suite:
    """Load `open-suite`, drawn by the seed, or `captrack`, from the hub or a folder.

    Example:
        >>> loaded = load("open-suite")
        >>> loaded.manifest, loaded.tasks[0].name, loaded.tasks[0].category
        ('open-suite', 'facts_choice.open', 'C1 Parametric knowledge and skills')
    """
    items = suite.build(seed) if name == "open-suite" else hub.load(source or hub.DATASET)
    return make_suite(name, items)


def make_suite(name: str, items: Sequence[Item]) -> Suite:
    """Put items of a manifest's tasks into a suite; what cannot be asked in one go is told.

    Example:
        >>> talk = Item("promises.open", "1", ["Use few words.", "Why?"],
        ...             meta={"turn1_response": "Yes."})
        >>> [question] = make_suite("open-suite", [talk]).tasks[0].questions()
        >>> question.prompt, question.earlier
        ('Why?', (('Use few words.', 'Yes.'),))
    """
    by_task: dict[str, list[Question]] = {}
    left_out: dict[str, int] = {}
    for item in items:
        if len(_turns(item)) <= 1 + len(_said(item)):
            by_task.setdefault(item.task, []).append(_question(item))
        else:
            left_out[item.task] = left_out.get(item.task, 0) + 1
    for task, n in left_out.items():
        logging.getLogger("forgetmap").warning(
            "%s: %d items lack `turn1_response`, the answer to their first turn; left out", task, n
        )
    categories = _categories(name)
    tasks = tuple(
        Task(
            task, categories.get(task, ""), questions.copy, cue="", scorer=UNSCORED,
            max_tokens=MOST_TOKENS, stop=(), licence=_LICENCES[name],
        )
        for task, questions in by_task.items()
    )  # fmt: skip
    return Suite(name, digest(tasks), tasks, manifest=name)


def _categories(manifest: str) -> dict[str, str]:
    """Task -> the first capability that it shows."""
    categories: dict[str, str] = {}
    for capability in Manifest.load(manifest).capabilities:
        for metric in capability.metrics:
            categories.setdefault(metric.task, f"{capability.code} {capability.name}".strip())
    return categories


def _question(item: Item) -> Question:
    *earlier, last = _turns(item)
    return Question(
        item.task, item.ref, last, as_text(item.gold),
        earlier=tuple(zip(earlier, _said(item), strict=False)), row=suite.as_row(item),
    )  # fmt: skip


def _turns(item: Item) -> list[str]:
    """What the user says, turn by turn; CapTrack keeps the whole prompt beside the question."""
    if isinstance(item.prompt, str):
        return [str(item.meta.get("formatted_prompt") or item.prompt)]
    return [
        as_text(turn.get("user prompt", turn) if isinstance(turn, dict) else turn)
        for turn in item.prompt
    ]


def _said(item: Item) -> list[str]:
    first = item.meta.get("turn1_response")
    return [] if first is None else [as_text(first)]
