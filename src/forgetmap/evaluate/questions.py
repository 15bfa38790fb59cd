"""What is asked: questions, the tasks they belong to, and suites of tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from forgetmap.samples.identity import content_hash

UNSCORED = "unscored"
"""Scorer of a task whose answers are written down for `forgetmap score`, not scored by the run."""


@dataclass(frozen=True, slots=True)
class Question:
    """One item. Each fact is one item: forgetting one does not average out with recalling another.

    Example:
        >>> capital = Question("capitals", "cap-FR", "What is the capital of France?", "Paris",
        ...                    choices=("Lyon", "Paris"))
        >>> capital.gold
        1
    """

    task: str
    ref: str
    """Stable name of the item within its task."""
    prompt: str
    """The question itself, without instruction, examples or cue."""
    target: str
    """The right answer; one of the choices where there are any."""
    choices: tuple[str, ...] = ()
    """Options, scored by their likelihood or shown as lettered lines; none: an open answer."""
    aliases: tuple[str, ...] = ()
    """Other ways to write the right answer."""
    level: str = ""
    """Difficulty, where the task has several."""
    source: str = ""
    """Where the fact comes from, for people to read."""
    earlier: tuple[tuple[str, str], ...] = ()
    """Turns of the conversation before the prompt: what was asked, what was answered."""
    worked: str = ""
    """How the answer is found: written before it where this is a solved example."""
    row: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """What `forgetmap score` wants to see beside the answer, where the run does not score it."""

    @property
    def gold(self) -> int:
        """Place of the right answer among the choices."""
        return self.choices.index(self.target)

    @property
    def item(self) -> int:
        """Identity by content."""
        said = [list(turn) for turn in self.earlier]
        return content_hash(self.prompt, list(self.choices), self.target, *said)


@dataclass(frozen=True)
class Task:
    """Questions of one kind, and how they are asked."""

    name: str
    category: str
    questions: Callable[[], Sequence[Question]]
    """Makes or loads the questions; called when they are needed."""
    instruction: str = ""
    cue: str = "Answer:"
    examples: tuple[Question, ...] = ()
    """Solved before the question is asked, where a run wants few-shot examples."""
    scorer: str = "exact"
    """For open answers: exact, number, letter, contains, UNSCORED, or what the suite explains."""
    max_tokens: int = 64
    stop: tuple[str, ...] = ("\n\n",)
    licence: str = ""


@dataclass(frozen=True)
class Suite:
    """Tasks that are evaluated together; a change of any question changes the version."""

    name: str
    version: str
    tasks: tuple[Task, ...] = field(default_factory=tuple)
    seed: int | None = None
    """With which its items were drawn, where any are."""
    manifest: str = ""
    """Capabilities by which `forgetmap score` scores the answers, where the run does not."""
    chosen: str = ""
    """How many of its items these are, where some were drawn by risk."""

    def made_once(self) -> Suite:
        """The suite with its questions made once, however often they are asked for."""
        tasks = (replace(task, questions=cache(task.questions)) for task in self.tasks)
        return replace(self, tasks=tuple(tasks))
