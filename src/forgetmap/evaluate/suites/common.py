"""What the suites share: facts made into questions, versions, packages that may be missing."""

from __future__ import annotations

import hashlib
import logging
import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from typing import Any

from forgetmap.base.extras import need
from forgetmap.evaluate.questions import Question, Task
from forgetmap.samples.identity import content_hash

OPTIONS = 4
EXAMPLES = 5
"""Facts of a task that are kept for few-shot examples and never asked."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact before it becomes a question: what is asked, what is right, what is surely wrong."""

    ref: str
    prompt: str
    answer: str
    wrong: Collection[str] = ()
    """Candidates for the other options, each of them false; none: an open question."""
    level: str = ""
    source: str = ""
    aliases: tuple[str, ...] = ()


def make_questions(task: str, facts: Sequence[Fact], seed: int) -> tuple[Question, ...]:
    """Turn facts into questions, the right answer at each place equally often.

    An item's options depend on the seed and its own ref alone, so one fact more does not change
    those of the others.

    Example:
        >>> facts = [Fact(name, f"Who is {name}?", name, ("x", "y", "z")) for name in "abcdefgh"]
        >>> questions = make_questions("names", facts, seed=0)
        >>> sorted(question.gold for question in questions)
        [0, 0, 1, 1, 2, 2, 3, 3]
    """
    chosen = sorted((fact for fact in facts if fact.wrong), key=lambda fact: _rank(seed, fact.ref))
    places = {fact.ref: number % OPTIONS for number, fact in enumerate(chosen)}
    return tuple(
        Question(
            task, fact.ref, fact.prompt, fact.answer,
            choices=_options(fact, places[fact.ref], f"{seed} {task}") if fact.wrong else (),
            aliases=fact.aliases, level=fact.level, source=fact.source,
        )
        for fact in facts
    )  # fmt: skip


def _options(fact: Fact, place: int, salt: str) -> tuple[str, ...]:
    candidates = sorted(set(fact.wrong) - {fact.answer})
    if len(candidates) < OPTIONS - 1:
        raise ValueError(f"{fact.ref}: only {len(candidates)} wrong options for {fact.answer!r}")
    options = random.Random(f"{salt} {fact.ref}").sample(candidates, OPTIONS - 1)
    options.insert(place, fact.answer)
    return tuple(options)


def _rank(*salt: object) -> int:
    return content_hash(*map(str, salt))


def sample(facts: Sequence[Fact], n: int) -> list[Fact]:
    """At most `n` of the facts, the same ones for every seed and whatever their order.

    Example:
        >>> facts = [Fact(str(number), "", "") for number in range(9)]
        >>> len(sample(facts, 3)), sample(facts, 3) == sample(facts[::-1], 3)
        (3, True)
    """
    kept = sorted(facts, key=lambda fact: _rank("sample", fact.ref))[:n]
    return sorted(kept, key=lambda fact: fact.ref)


def drawn(
    n: int,
) -> Callable[[Callable[[random.Random, int], Fact]], Callable[[random.Random], list[Fact]]]:
    """Make a function that makes one fact draw until there are `n` different ones.

    The function gets the number of the fact, for its level.

    Example:
        >>> digits = drawn(3)(lambda rng, _: Fact(str(rng.randrange(9)), "", ""))
        >>> len({fact.ref for fact in digits(random.Random(0))})
        3
    """

    def decorate(make: Callable[[random.Random, int], Fact]) -> Callable[..., list[Fact]]:
        @wraps(make)
        def draw(rng: random.Random) -> list[Fact]:
            facts: dict[str, Fact] = {}
            for _ in range(200 * n):
                fact = make(rng, len(facts))
                facts.setdefault(fact.ref, fact)
                if len(facts) == n:
                    return list(facts.values())
            raise ValueError(f"only {len(facts)} different facts of {n} could be drawn")

        return draw

    return decorate


def split_examples(facts: Sequence[Fact]) -> tuple[list[Fact], list[Fact]]:
    """Split facts into examples, the same for every seed, and those that are asked."""
    kept = sorted(facts, key=lambda fact: _rank("example", fact.ref))[:EXAMPLES]
    refs = {fact.ref for fact in kept}
    return kept, [fact for fact in facts if fact.ref not in refs]


def digest(tasks: Sequence[Task]) -> str:
    """A short name for the content of tasks: it changes with any question, option or prompt.

    Example:
        >>> from dataclasses import replace
        >>> task = Task("sums", "Math", lambda: [Question("sums", "1", "1 + 1 =", "2")])
        >>> digest([task]) == digest([replace(task, instruction="Add.")])
        False
    """
    content = hashlib.blake2b(digest_size=6)
    for task in tasks:
        how = (task.name, task.category, task.instruction, task.cue, task.scorer, str(task.stop))
        content.update(content_hash(*how, task.max_tokens).to_bytes(8, "big"))
        for question in (*task.examples, *task.questions()):
            content.update(content_hash(question.ref, list(question.aliases)).to_bytes(8, "big"))
            content.update(question.item.to_bytes(8, "big"))
    return content.hexdigest()


def warn_left_out(task: str, n: int, rows: int) -> None:
    """Say how many rows of a data set do not tell which option is right; silent if none."""
    if n:
        logging.getLogger("forgetmap").warning(
            "%s: %d of %d rows have no clear right option and are left out", task, n, rows
        )


def warn_repeated(task: str, n: int, rows: int) -> None:
    """Say how many rows of a data set repeat an earlier one; silent if none."""
    if n:
        logging.getLogger("forgetmap").warning(
            "%s: %d of %d rows repeat an earlier one, which is asked once", task, n, rows
        )


def needed(module: str, what: str, extra: str = "suites") -> Any:
    """Import a package that only one suite needs. Suites are for models, so `eval` is told too."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise need(what, *dict.fromkeys((extra, "eval")), package=package) from error
