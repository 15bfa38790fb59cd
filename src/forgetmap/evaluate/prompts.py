"""From questions to requests: what the model is told, and what it is asked for."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from string import ascii_uppercase
from typing import Any, NamedTuple

from forgetmap.base.errors import InputError
from forgetmap.evaluate.questions import UNSCORED, Question, Task
from forgetmap.samples.identity import content_hash


class Message(NamedTuple):
    """One turn of a chat."""

    role: str
    text: str


Prompt = str | tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Asking:
    """How questions are asked; each field must agree between two runs that are compared."""

    shots: int = 0
    """Solved examples before the question."""
    chat: bool | None = False
    """Through the model's chat template; None for the model's own form: where it has a template."""
    system: str = ""
    """System prompt; without a chat it stands before everything else."""
    letters: bool = False
    """Show options as lettered lines and have the letter written, rather than score the options."""
    max_tokens: int | None = None
    """Longest answer; by default what each task says."""
    temperature: float = 0.0
    repeats: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        if self.shots < 0:
            raise InputError(f"--shots {self.shots}: must not be negative")
        if self.max_tokens is not None and self.max_tokens < 1:
            raise InputError(f"--max-tokens {self.max_tokens}: must be at least 1")
        if not 0 <= self.temperature <= 10:
            raise InputError(f"--temperature {self.temperature}: must lie between 0 and 10")
        if self.repeats < 1:
            raise InputError(f"--repeats {self.repeats}: must be at least 1")
        if self.repeats > 1 and self.temperature == 0:
            raise InputError("--repeats: greedy answers do not vary; add --temperature, say 0.7")


@dataclass(frozen=True, slots=True)
class Request:
    """One thing asked of a model: the likelihood of options, or a text."""

    prompt: Prompt
    options: tuple[str, ...] = ()
    """Continuations to score; none: a text is wanted."""
    max_tokens: int = 0
    stop: tuple[str, ...] = ()
    temperature: float = 0.0
    seed: int = 0
    is_complete: Callable[[str], bool] | None = None
    """Says that a text holds its answer; `form` names the rule."""
    form: str = ""

    @property
    def identity(self) -> int:
        """Hash of all that the reply depends on, but for the model."""
        fields = [self.prompt, list(self.options), self.max_tokens, list(self.stop), self.form]
        sampled = [self.temperature, self.seed] if self.temperature else []
        return content_hash(*fields, *sampled)


def is_scored(task: Task, question: Question, how: Asking) -> bool:
    """Whether the options are scored by their likelihood; otherwise the model writes an answer."""
    return bool(question.choices) and not how.letters and not task.scorer.startswith("letter")


def make_request(task: Task, question: Question, how: Asking, seed: int = 0) -> Request:
    """Build the request for one question; the seed is for a sampled answer.

    Example:
        >>> from forgetmap.evaluate.questions import Question, Task
        >>> sums = Task("sums", "maths", tuple, examples=(Question("sums", "0", "1 + 1 =", "2"),))
        >>> asked = Question("sums", "1", "2 + 2 =", "4", choices=("3", "4"))
        >>> request = make_request(sums, asked, Asking(shots=1))
        >>> print(request.prompt)
        1 + 1 =
        Answer: 2
        <BLANKLINE>
        2 + 2 =
        Answer:
        >>> request.options
        (' 3', ' 4')
    """
    if how.shots > len(task.examples):
        raise InputError(
            f"--shots {how.shots}: the task {task.name} has {len(task.examples)} solved examples"
        )
    scored = is_scored(task, question, how)
    lettered = bool(question.choices) and not scored
    prompt = _prompt(task, question, how, lettered)
    if scored:
        # A chat's turn begins with the answer itself; plain text needs a space before it.
        space = "" if how.chat else " "
        return Request(prompt, tuple(space + choice for choice in question.choices))
    from forgetmap.evaluate.answers import is_complete

    written = as_written(task, lettered)
    return Request(
        prompt,
        max_tokens=how.max_tokens or task.max_tokens,
        stop=task.stop,
        temperature=how.temperature,
        seed=seed if how.temperature else 0,
        is_complete=None
        if task.scorer == UNSCORED
        else partial(is_complete, written, choices=question.choices),
        form=written.scorer,
    )


def as_written(task: Task, lettered: bool) -> Task:
    """The task as the answers see it: without its questions, which need not travel.

    Lettered options are read as letters; the published rule for letters stays the published one.
    """
    scorer = "letter" if lettered and not task.scorer.startswith("letter") else task.scorer
    return dataclasses.replace(task, questions=tuple, scorer=scorer)


def _prompt(task: Task, question: Question, how: Asking, lettered: bool) -> Prompt:
    turns: list[tuple[str, str]] = [
        (_ask(task, example, lettered), _solved(example, lettered))
        for example in task.examples[: how.shots]
    ]
    turns += question.earlier
    last = _ask(task, question, lettered)
    if not how.chat:
        solved = [f"{asked} {answer}" for asked, answer in turns]
        return "\n\n".join(part for part in (how.system, task.instruction, *solved, last) if part)
    asked = [*(text for text, _ in turns), last]
    if task.instruction:
        asked[0] = f"{task.instruction}\n\n{asked[0]}"
    messages = [Message("system", how.system)] if how.system else []
    for text, (_, answer) in zip(asked, turns, strict=False):
        messages += [Message("user", text), Message("assistant", answer)]
    return (*messages, Message("user", asked[-1]))


def _solved(example: Question, lettered: bool) -> str:
    """The answer of a solved example, after its reasoning where it has one."""
    answer = ascii_uppercase[example.gold] if lettered else example.target
    return f"{example.worked}\nAnswer: {answer}" if example.worked else answer


def _ask(task: Task, question: Question, lettered: bool) -> str:
    options = (
        f"{letter}. {choice}"
        for letter, choice in zip(ascii_uppercase, question.choices, strict=False)
    )
    lines = [question.prompt, *(options if lettered else ()), task.cue]
    return "\n".join(line for line in lines if line)


def describe(how: Asking) -> dict[str, Any]:
    """The settings of asking, by the names that the comparability panel knows."""
    sampling = {"temperature": how.temperature, "repeats": how.repeats} if how.temperature else {}
    return {
        "few-shot examples": how.shots,
        "generation": {"max_tokens": how.max_tokens or "as the task says", **sampling},
        "options": "letters" if how.letters else "likelihood",
        "chat template": "applied" if how.chat else None,
        "system prompt": how.system or None,
    }
