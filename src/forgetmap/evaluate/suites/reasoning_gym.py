"""Reasoning Gym: its seeded generators, and its own scorers for the answers."""

from __future__ import annotations

import warnings
from functools import cache, partial
from typing import Any

from forgetmap.base import yaml
from forgetmap.base.errors import InputError
from forgetmap.base.words import brief
from forgetmap.evaluate.questions import Question, Suite, Task
from forgetmap.evaluate.suites.common import digest, needed

PREFIX = "gym_"
_INSTRUCTION = "Solve the problem. Give the final answer between <answer> and </answer>."

_FAR = 1_000_003
"""Between two seeds: the package adds an item's number to the seed, so neighbours share items."""


@cache
def _described() -> dict[str, Any]:
    content: dict[str, Any] = yaml.packaged(
        "forgetmap.evaluate.suites", "data/reasoning_gym.yaml"
    ).content
    return content


def load(seed: int = 0) -> Suite:
    """Generate the default tasks with a seed; another seed gives other items."""
    described = _described()
    tasks = tuple(
        Task(
            f"{PREFIX}{name}", category, partial(_questions, name, seed),
            instruction=_INSTRUCTION, cue="", scorer="reasoning-gym",
            max_tokens=described["max_tokens"], stop=(), licence="Apache-2.0",
        )
        for category, names in described["categories"].items()
        for name in names
    )  # fmt: skip
    return Suite("reasoning-gym", digest(tasks), tasks)


def _levels(name: str) -> dict[str, dict[str, Any]]:
    """Level -> settings of the generator; one level with its defaults where none are described."""
    for names in _described()["categories"].values():
        if name in names:
            return names[name] or {"default": {}}
    raise InputError(f"reasoning-gym: no task {name!r:.60} in the suite")


@cache
def _generator(name: str, level: str, seed: int) -> Any:
    gym = needed("reasoning_gym", "suite reasoning-gym")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its own dependencies, nothing the user can mend
            return gym.create_dataset(
                name, size=_described()["items"], seed=_FAR * seed, **_levels(name)[level]
            )
    except (ValueError, TypeError, AssertionError) as error:
        raise InputError(
            f"reasoning-gym: {name} cannot be made ({brief(error)}); "
            "is the package of a version this suite was not written for?"
        ) from error


def _questions(name: str, seed: int) -> tuple[Question, ...]:
    questions: dict[str, Question] = {}
    for level in _levels(name):
        for number, entry in enumerate(_generator(name, level, seed)):
            question = str(entry["question"])
            questions.setdefault(  # a generator may draw the same problem twice
                question,
                Question(
                    f"{PREFIX}{name}", f"{level}-{seed}-{number}", question, str(entry["answer"]),
                    level=level, source=f"reasoning-gym: {name}, seed {seed}, number {number}",
                ),
            )  # fmt: skip
    return tuple(questions.values())


def score(question: Question, answer: str) -> float:
    """Score an answer from 0 to 1 by the package's own scorer.

    The question's ref says how to generate it again.
    """
    level, seed, number = question.ref.rsplit("-", 2)
    generator = _generator(question.task.removeprefix(PREFIX), level, int(seed))
    try:
        return float(generator.score_answer(answer, generator[int(number)]))
    except Exception:  # the scorers parse what a model wrote; what breaks them is no right answer
        return 0.0
