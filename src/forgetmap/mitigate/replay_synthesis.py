"""Training examples that the before-model makes up itself: a question, and what it surely answers.

The model continues a short heading that names a category and its tasks, never an evaluation item.
Each question it writes is answered several times; only where the answers agree is one of them
kept. What is made is stored batch by batch, so a stopped run goes on.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from forgetmap.errors import InputError
from forgetmap.evaluate.prompts import Message, Request
from forgetmap.mitigate.overlap import plain_words
from forgetmap.mitigate.replay_pool import Example, Talk
from forgetmap.samples import content_hash
from forgetmap.terminal import clean

if TYPE_CHECKING:
    from forgetmap.evaluate.models import Model
    from forgetmap.evaluate.store import Store

_QUESTION_TOKENS = 64
_QUESTION_TEMPERATURE = 0.8
_ANSWER_TEMPERATURE = 0.7
_ROUNDS = 8
"""After so many rounds a category that is still short stays short, and that is told."""
_A_ROUND, _FEWEST_A_ROUND = 3, 16
"""Questions asked for each example that is missing: many are empty, known, or of two minds."""
_SHOWN = 3
_DECIDING = frozenset(("yes", "no", "not", "true", "false", "never", "none"))
_FUNCTION_WORDS = frozenset(
    (
        *("a", "an", "the", "is", "are", "was", "were", "be", "it", "its", "this", "that"),
        *("in", "on", "at", "of", "to", "and", "or", "as", "for", "by", "with", "so"),
    )
)


@dataclass(frozen=True)
class Making:
    """How examples are made up."""

    answers: int = 5
    """Drawn for each question."""
    agreement: float = 0.6
    """Share of the answers that must agree."""
    max_tokens: int = 96
    """Longest answer; one that is cut off counts as no answer."""
    chat: bool = False
    """Ask for the answers through the chat template."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.answers < 2:
            raise InputError(f"--answers {self.answers}: one answer agrees with itself; 2 or more")
        if not 0 < self.agreement <= 1:
            raise InputError(f"--agreement {self.agreement}: must lie above 0, at most 1")
        if self.max_tokens < 1:
            raise InputError(f"--max-tokens {self.max_tokens}: must be at least 1")


class Topic(NamedTuple):
    """What examples are wanted for."""

    category: str
    tasks: tuple[str, ...]
    shown: tuple[str, ...] = ()
    """Questions of the user's own pool, to show the form."""
    wanted: int = 0


@dataclass
class Made:
    """What came out."""

    examples: list[Example] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    """Why questions were not used -> how many."""


def agreement(answers: Sequence[str]) -> tuple[str, float]:
    """The answer that most agree with, and the share that do, itself among them.

    Two answers agree if one says nothing but what the other says too, function words aside, and
    both have the same numbers and the same yes or no. Long answers seldom do: what is kept is
    short and sure.

    Example:
        >>> agreement(["It is Oslo.", "Oslo", "Bergen", "Oslo it is, in Norway"])
        ('Oslo', 0.75)
        >>> agreement(["Chad has more people", "Mali has more people"])[1]
        0.5
    """
    words = [set(plain_words(answer)) for answer in answers]
    votes = [sum(_agree(one, other) for other in words) for one in words]
    best = max(range(len(answers)), key=lambda place: (votes[place], -len(answers[place])))
    return answers[best], votes[best] / len(answers)


def _agree(one: set[str], two: set[str]) -> bool:
    if not one or not two:
        return False
    differing = one ^ two
    if any(word in _DECIDING or any(map(str.isdigit, word)) for word in differing):
        return False
    said = one - _FUNCTION_WORDS or one, two - _FUNCTION_WORDS or two
    return said[0] <= said[1] or said[1] <= said[0]


def is_echo(question: str, answer: str) -> bool:
    """Whether an answer only says again what the question said; naming one of its options is fine.

    Example:
        >>> is_echo("What is the world?", "The world"), is_echo("Is Rome or Bari larger?", "Rome")
        (True, False)
    """
    asked, said = (set(plain_words(text)) - _FUNCTION_WORDS for text in (question, answer))
    return said <= asked and 2 * len(said) >= len(asked)


def synthesise(
    model: Model,
    topics: Sequence[Topic],
    store: Store,
    refused: Callable[[str, str], str | None],
    how: Making,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Made:
    """Have the model make up examples, as many per category as are wanted, where it can.

    Args:
        model: The model before; what it surely says is what replay should keep.
        topics: The categories.
        store: Keeps what was made, for a run that is stopped.
        refused: Says why a question and answer must not be used; None where they may.
        how: How examples are made up.
        progress: Called with the examples that are there, and how many there will be.
    """
    made, total = Made(), sum(topic.wanted for topic in topics)
    missing = {topic.category: topic.wanted for topic in topics}
    for turn in range(_ROUNDS):
        for topic in topics:
            if (lacking := missing[topic.category]) > 0:
                count = max(_A_ROUND * lacking, _FEWEST_A_ROUND)
                questions = _questions(model, topic, turn, count, store, how)
                kept = [one for one in questions if _may_be_asked(one, refused, made)]
                found = _answered(model, topic, kept, store, refused, how, made)
                made.examples += found[:lacking]
                made.dropped["beyond the budget"] += len(found[lacking:])
                missing[topic.category] -= len(found[:lacking])
                progress(len(made.examples), total)
    return made


def _heading(topic: Topic, seed: int) -> str:
    """What the model continues: the category, its tasks, and the form of a question."""
    tasks = ", ".join(clean(re.sub(r"[\W_]+", " ", task).strip(), 40) for task in topic.tasks[:8])
    about = clean(topic.category, 60)
    listed = f"{about} ({tasks})" if tasks and tasks != about else about
    first = seed % max(len(topic.shown), 1)
    shown = (*topic.shown[first:], *topic.shown[:first])[:_SHOWN]
    asked = "".join(f"Question: {' '.join(one.split())}\n\n" for one in shown)
    return f"A list of short questions about {listed}.\n\n{asked}Question:"


def _questions(
    model: Model, topic: Topic, turn: int, count: int, store: Store, how: Making
) -> list[str]:
    requests = []
    for number in range(count):
        seed = content_hash(model.fingerprint, how.seed, topic.category, turn, number)
        requests.append(
            Request(
                _heading(topic, seed),
                max_tokens=_QUESTION_TOKENS,
                temperature=_QUESTION_TEMPERATURE,
                seed=seed,
                is_complete=_has_line,
                form="line",
            )
        )
    return [_line(reply) for reply in _ask(model, requests, store)]


def _may_be_asked(question: str, refused: Callable[[str, str], str | None], made: Made) -> bool:
    why = refused(question, "") if len(plain_words(question)) > 2 else "no question"
    if why:
        made.dropped[why] += 1
    return not why


def _answered(
    model: Model,
    topic: Topic,
    questions: Sequence[str],
    store: Store,
    refused: Callable[[str, str], str | None],
    how: Making,
    made: Made,
) -> list[Example]:
    """The questions on which the model agrees with itself, each with its answer."""
    requests = [
        Request(
            (Message("user", question),) if how.chat else _ask_for_answer(question),
            max_tokens=how.max_tokens,
            temperature=_ANSWER_TEMPERATURE,
            seed=content_hash(model.fingerprint, how.seed, question, draw),
            is_complete=None if how.chat else _has_line,
            form="" if how.chat else "line",
        )
        for question in questions
        for draw in range(how.answers)
    ]
    replies = _ask(model, requests, store)
    found = []
    for place, question in enumerate(questions):
        drawn = replies[place * how.answers : (place + 1) * how.answers]
        answer, share = agreement([_whole(one) if how.chat else _line(one) for one in drawn])
        if share < how.agreement:
            why: str | None = "answers disagree"
        elif is_echo(question, answer):
            why = "answer repeats the question"
        else:
            why = refused(question, answer)
        if why:
            made.dropped[why] += 1
            continue
        turns = Message("user", question), Message("assistant", answer)
        talk = Talk(turns, _ask_for_answer(question), f" {answer}")
        found.append(Example(talk, topic.category, "model"))
    return found


def _has_line(text: str) -> bool:
    """Whether a line was written and ended; models like to begin with an empty one."""
    return "\n" in text.lstrip()


def _line(reply: Mapping[str, Any]) -> str:
    """The first line of a reply; nothing where it was cut off."""
    line, ended, _ = str(reply["text"] or "").lstrip().partition("\n")
    return line.strip() if ended or reply["finished"] else ""


def _whole(reply: Mapping[str, Any]) -> str:
    return str(reply["text"] or "").strip() if reply["finished"] else ""


def _ask_for_answer(question: str) -> str:
    return f"Question: {question}\nAnswer:"


def _ask(model: Model, requests: Sequence[Request], store: Store) -> list[Mapping[str, Any]]:
    """Replies in the order of the requests; what is in the store is not asked again."""
    keys = [f"{content_hash(model.fingerprint, one.identity):016x}" for one in requests]
    for group in model.plan(requests):
        open_places = [place for place in group.places if keys[place] not in store]
        if open_places:
            replies = model.run([requests[place] for place in open_places], group.hints)
            store.append(
                {
                    keys[place]: dataclasses.asdict(reply)
                    for place, reply in zip(open_places, replies, strict=True)
                }
            )
    return [store[key] for key in keys]
