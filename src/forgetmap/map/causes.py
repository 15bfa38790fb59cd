"""Why an item was lost: rules on the answer after, tried in order, each of them readable.

The order is that of `RULES`; the first rule that speaks decides. A rule never looks at anything
but the texts, the status the harness gave and the item's shares of right answers, so the same
log gives the same causes everywhere. docs/explanation/causes.md says what each can get wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import pyarrow as pa

from forgetmap.answers.endings import just_stops, repeats_itself
from forgetmap.answers.extraction import gives
from forgetmap.answers.language import language_of
from forgetmap.answers.refusals import classify
from forgetmap.answers.text import looked_at
from forgetmap.base.errors import InputError
from forgetmap.map.result import Cell, ForgettingMap
from forgetmap.stats.estimate import share

UNKNOWN = "unknown"
"""Counted where the log holds no text of an item: no rule can speak."""

_NO_ANSWER = ("", "[invalid]", "[no_answer]", "[none]", "none", "null")
"""What harnesses write in the place of an answer that they did not find."""


class Lost(NamedTuple):
    """An item that was right more often before, as the rules see it."""

    before: float = 1.0
    """Share of right answers; between 0 and 1 where runs of one model disagree."""
    after: float = 0.0
    k: int | None = None
    target: str | None = None
    answer_before: str | None = None
    answer_after: str | None = None
    """What the harness extracted; for options scored by likelihood, the option."""
    status_after: str | None = "ok"
    prompt_after: str | None = None
    response_before: str | None = None
    response_after: str | None = None
    """What the model wrote; None where nothing was generated, or not kept."""


def cause_of(item: Lost) -> str | None:
    """The cause by the first rule that speaks; None where the log holds no text to judge by.

    Example:
        >>> cause_of(Lost(target="7", answer_after="[invalid]", response_after="It is seven: 7"))
        'format'
        >>> cause_of(Lost(target="7", answer_after="8", response_after="The answer is 8."))
        'wrong'
    """
    return next((name for name, rule in RULES.items() if rule(item)), None)


# --- the rules, in the order in which they are tried ----------------------------------------------


def is_format(item: Lost) -> bool:
    """No answer was extracted although the text gives the right one.

    Also where the harness compared the whole text with the target, so that nothing was extracted.

    Example:
        >>> is_format(Lost(target="Rome", answer_after="It is Rome.", response_after="It is Rome."))
        True
    """
    if item.response_after is None or not item.target:
        return False
    whole = (item.answer_after or item.response_after).strip() == item.response_after.strip()
    return (whole or _nothing_found(item)) and gives(item.response_after, item.target, item.k)


def is_truncated(item: Lost) -> bool:
    """Empty, or cut off: the harness says so, thinking never ended, or a long text just stops.

    Example:
        >>> is_truncated(Lost(response_after="<think>Let me see, first")), is_truncated(Lost())
        (True, False)
    """
    text = item.response_after
    if item.status_after in ("truncated", "empty"):
        return True
    if text is None:
        return False
    never_ended = text.rfind("<think>") > text.rfind("</think>")
    return not text.strip() or never_ended or (_nothing_found(item) and just_stops(text))


def is_degenerate(item: Lost) -> bool:
    """The text repeats itself.

    Example:
        >>> is_degenerate(Lost(response_after="to be or not " * 9))
        True
    """
    return item.response_after is not None and repeats_itself(item.response_after)


def is_refused(item: Lost) -> bool:
    """The harness says so, or the text declines, strongly or politely.

    Example:
        >>> is_refused(Lost(response_after="I'm sorry, but I can't help with that."))
        True
    """
    if item.status_after == "refused":
        return True
    if item.response_after is None or not (text := looked_at(item.response_after)).strip():
        return False
    try:
        return classify(text) in ("strong_refusal", "weak_refusal")
    except InputError:  # a package of the extra is missing that only unclear cases need
        return False


def is_language(item: Lost) -> bool:
    """The answer after is in another language than the one before, or else than the question.

    Example:
        >>> is_language(Lost(prompt_after="What is the sum of it?", response_after="这是七"))
        True
    """
    language = language_of(item.response_after)
    if language is None:
        return False
    expected = language_of(item.response_before) or language_of(item.prompt_after)
    return expected is not None and language != expected


def is_unparsed(item: Lost) -> bool:
    """No answer was extracted, and the text does not give the right one either.

    Example:
        >>> is_unparsed(Lost(status_after="no_answer", response_after="Between B and C."))
        True
    """
    return _nothing_found(item)


def is_noise(item: Lost) -> bool:
    """Runs of one and the same model disagree on the item.

    Example:
        >>> is_noise(Lost(before=2 / 3)), is_noise(Lost(before=1, after=0))
        (True, False)
    """
    return 0 < item.before < 1 or 0 < item.after < 1


def is_wrong(item: Lost) -> bool:
    """Another answer was given."""
    return item.answer_after is not None or item.response_after is not None


RULES: dict[str, Callable[[Lost], bool]] = {
    "format": is_format,
    "truncated": is_truncated,
    "degenerate": is_degenerate,
    "refused": is_refused,
    "language": is_language,
    "unparsed": is_unparsed,
    "noise": is_noise,
    "wrong": is_wrong,
}
"""Cause -> its rule, in the order in which they are tried."""
CAUSES = tuple(RULES)


def _nothing_found(item: Lost) -> bool:
    """The harness looked for an answer and found none."""
    if item.answer_after is None:
        kept_before = item.answer_before is not None and item.response_after is not None
        return item.status_after == "no_answer" or kept_before
    return item.status_after == "no_answer" or item.answer_after.strip().lower() in _NO_ANSWER


# --- causes in the map ----------------------------------------------------------------------------


class Tally(NamedTuple):
    """The losses of some tasks by cause."""

    items: Counter[str]
    """Cause -> items that are right less often than before."""
    weights: Counter[str]
    """Cause -> their part of raw forgetting: the sum of p (1 - q)."""


def count_causes(
    result: ForgettingMap, changed: Iterable[pa.Table], churned: Mapping[str, int] | None
) -> ForgettingMap:
    """The same map with the causes of the losses in every cell, and the churn.

    Args:
        result: The map.
        changed: The items that changed, with their causes.
        churned: By task, items that are wrong on both sides and got another wrong answer.
    """
    tallies = {task: Tally(Counter(), Counter()) for task in result.tasks}
    for table in changed:
        columns = (table[name].to_pylist() for name in ("task", "transition", "cause"))
        shares = (table[name].to_pylist() for name in ("before", "after"))
        for task, transition, cause, p, q in zip(*columns, *shares, strict=True):
            if transition == "forgotten" and task in tallies:
                tallies[task].items[cause or UNKNOWN] += 1
                tallies[task].weights[cause or UNKNOWN] += p * (1 - q)
    groups: dict[str, list[str]] = {}
    for task in result.tasks:
        groups.setdefault(result.task_categories.get(task, ""), []).append(task)

    def counted(cell: Cell, tasks: Iterable[str]) -> Cell:
        return _with_tallies(cell, [tallies[task] for task in tasks], churned, tasks)

    new = [task for task in tallies if task in result.settings.new]
    old = [task for task in tallies if task not in result.settings.new]
    return result.model_copy(
        update={
            "total": counted(result.total, list(tallies)),
            "old": counted(result.old, old or new),
            "new": result.new and counted(result.new, new),
            "categories": {
                name: counted(cell, groups.get(name, []))
                for name, cell in result.categories.items()
            },
            "tasks": {name: counted(cell, [name]) for name, cell in result.tasks.items()},
        }
    )


def _with_tallies(
    cell: Cell, tallies: list[Tally], churned: Mapping[str, int] | None, tasks: Iterable[str]
) -> Cell:
    items, weights = Counter[str](), Counter[str]()
    for tally in tallies:
        items += tally.items
        weights += tally.weights
    names = [name for name in (*CAUSES, UNKNOWN) if items[name]]
    lost = cell.raw.lost.value * cell.n
    return cell.model_copy(
        update={
            "causes": {name: items[name] for name in names},
            "without": {name: share(lost - weights[name], cell.n) for name in names},
            "churn": None if churned is None else sum(churned.get(task, 0) for task in tasks),
        }
    )
