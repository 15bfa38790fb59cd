"""Training examples that the before-model makes up itself: a question, and what it surely answers.

The model is shown a few everyday questions with short answers and the name of a subject, never an
evaluation item, and writes a question. Its likeliest answer is kept only where enough answers that
are drawn at random agree with it. What is made is stored batch by batch, so a stopped run goes on.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from forgetmap.base.errors import InputError
from forgetmap.base.words import clean
from forgetmap.evaluate.models import Model
from forgetmap.evaluate.prompts import Message, Prompt, Request
from forgetmap.evaluate.store import Store
from forgetmap.mitigate.replay.leaks import plain_words
from forgetmap.mitigate.replay.pool import Example, Talk
from forgetmap.samples.identity import content_hash

_QUESTION_TOKENS = 40
_QUESTION_TEMPERATURE = 0.8
_ANSWER_TEMPERATURE = 0.5
_ROUNDS = 5
"""After so many rounds a category that is still short stays short, and that is told."""
_A_ROUND, _FEWEST_A_ROUND = 3, 16
"""Questions asked for each example that is missing: many are empty, known, or of two minds."""
_SHOWN = 2
_IN_A_FEW_WORDS = "Answer each question in a few words."
_DECIDING = frozenset(("yes", "no", "not", "true", "false", "never", "none"))
_FUNCTION_WORDS = frozenset(
    (
        *("a", "an", "the", "is", "are", "was", "were", "be", "it", "its", "this", "that"),
        *("in", "on", "at", "of", "to", "and", "or", "as", "for", "by", "with", "so"),
    )
)
_ASKING_WORDS = frozenset(
    ("what", "which", "who", "where", "when", "why", "how", "do", "does", "did", "can", "s")
)
_LEAST_WORDS = 2
"""With fewer a question asks of nothing in particular: `Where is it located?`"""
_QUESTION_MARKS = ("?", "\uff1f", "\u061f")
_OFFER = re.compile(r",|\bor\b")
_GAP = re.compile(r"[\[\]{}]|__")


class _Solved(NamedTuple):
    """A question that shows the form."""

    subject: str
    question: str
    answer: str = ""
    """None is known for questions of the user's pool."""


_EVERYDAY = (
    _Solved("Animals: sounds", "Which animal barks?", "the dog"),
    _Solved("Nature: colours", "What colour is fresh grass?", "green"),
    _Solved("Home: tools", "What do you open a lock with?", "a key"),
    _Solved("People: body", "How many fingers are on one hand?", "five"),
    _Solved("Clothes: feet", "What do people wear on their feet?", "shoes"),
    _Solved("Weather: clouds", "What falls from dark clouds?", "rain"),
)
"""Of the form that is wanted, and about nothing that a category is likely to be about."""


@dataclass(frozen=True)
class Making:
    """How examples are made up."""

    answers: int = 5
    """Drawn for each question, beside the likeliest; no more than one where that disagrees."""
    agreement: float = 0.6
    """Share of the drawn answers that must agree with the likeliest."""
    max_tokens: int = 32
    """Longest answer; one that is cut off counts as no answer."""
    chat: bool = False
    """Ask for questions and answers through the chat template."""
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
    """Questions of the user's own pool, to show what is wanted."""
    wanted: int = 0


@dataclass
class Made:
    """What came out."""

    examples: list[Example] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    """Why questions were not used -> how many."""


def agreement(answer: str, others: Sequence[str]) -> float:
    """The share of other answers that agree with an answer.

    Two answers agree if one says nothing but what the other says too, function words aside, and
    both have the same numbers and the same yes or no. Long answers seldom do: what is kept is
    short and sure.

    Example:
        >>> agreement("Oslo", ["It is Oslo.", "Bergen", "Oslo it is, in Norway", ""])
        0.5
        >>> agreement("Chad has more people", ["Mali has more people"])
        0.0
    """
    words = set(plain_words(answer))
    return sum(_agree(words, set(plain_words(other))) for other in others) / len(others)


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
        >>> is_echo("What is the capital of Mali?", "Mali")
        True
        >>> is_echo("Is Rome or Bari larger?", "Rome")
        False
    """
    asked, said = (set(plain_words(text)) - _FUNCTION_WORDS for text in (question, answer))
    return said <= asked and (not _OFFER.search(question) or 2 * len(said) >= len(asked))


def is_garbled(text: str) -> bool:
    """Whether a text goes round in circles, or has a gap that was to be filled in.

    Example:
        >>> is_garbled("The law of the land is the law of the land")
        True
        >>> is_garbled("What is the capital of [country]?"), is_garbled("What is 2 + 2?")
        (True, False)
    """
    words = plain_words(text)
    runs = list(zip(words, words[1:], words[2:], strict=False))
    doubled = (one == two and len(one) > 1 and one.isalpha() for one, two in pairwise(words))
    return len(set(runs)) < len(runs) or any(doubled) or bool(_GAP.search(text))


def _gist(question: str) -> frozenset[str]:
    """What a question is about: its words without those that any question may have."""
    return frozenset(plain_words(question)) - _FUNCTION_WORDS - _ASKING_WORDS


def _alike(one: frozenset[str], two: frozenset[str]) -> bool:
    """Whether two questions ask nearly the same: two thirds of their words, the same numbers."""
    if any(any(map(str.isdigit, word)) for word in one ^ two):
        return False
    return 3 * len(one & two) >= 2 * len(one | two)


def synthesise(
    model: Model,
    topics: Sequence[Topic],
    store: Store,
    refused: Callable[[str, str], str | None],
    how: Making,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Made:
    """Have the model make up examples, as many per category as are wanted, where it can.

    What the model surely says is what replay should keep. The store keeps what was made, for a run
    that is stopped. `refused` says why a question and answer must not be used; None where they may.
    """
    author = _Author(model, store, refused, how)
    made, total = author.made, sum(topic.wanted for topic in topics)
    missing = {topic.category: topic.wanted for topic in topics}
    for turn in range(_ROUNDS):
        for topic in topics:
            if (lacking := missing[topic.category]) > 0:
                count = max(_A_ROUND * lacking, _FEWEST_A_ROUND)
                examples = author.write(topic, turn, count)
                made.examples += examples[:lacking]
                made.dropped["beyond the budget"] += len(examples[lacking:])
                missing[topic.category] -= len(examples[:lacking])
                progress(len(made.examples), total)
    return made


class _Author:
    """The model at work: what it has asked and kept so far."""

    def __init__(
        self,
        model: Model,
        store: Store,
        refused: Callable[[str, str], str | None],
        how: Making,
    ) -> None:
        self.made = Made()
        self._model, self._store, self._refused, self._how = model, store, refused, how
        self._asked: set[frozenset[str]] = set()
        self._kept: list[frozenset[str]] = []
        # They stand in the examples, so they must be no evaluation items either; and a model that
        # only copies one has written nothing new.
        self._solved = [
            one for one in _EVERYDAY if not self._drop(refused(one.question, one.answer))
        ]
        self._asked.update(_gist(one.question) for one in self._solved)

    def write(self, topic: Topic, turn: int, count: int) -> list[Example]:
        """Ask for some questions, and make examples of those that the model is sure about."""
        questions = [
            one for one in self._questions(topic, turn, count) if not self._drop(self._bad(one))
        ]
        examples = []
        for question, answer in self._sure(questions):
            gist = _gist(question)
            like = any(_alike(gist, other) for other in self._kept)
            if not self._drop("like another" if like else self._refused(question, answer)):
                self._kept.append(gist)
                examples.append(Example(self._talk(question, answer), topic.category, "model"))
        return examples

    def _drop(self, why: str | None) -> bool:
        if why:
            self.made.dropped[why] += 1
        return bool(why)

    def _questions(self, topic: Topic, turn: int, count: int) -> list[str]:
        requests = []
        for number in range(count):
            seed = content_hash(
                self._model.fingerprint, self._how.seed, topic.category, turn, number
            )
            requests.append(
                Request(
                    self._ask_for_question(topic, seed),
                    max_tokens=_QUESTION_TOKENS,
                    temperature=_QUESTION_TEMPERATURE,
                    seed=seed,
                    is_complete=_has_line,
                    form="line",
                )
            )
        replies = _ask(self._model, requests, self._store)
        return [_line(reply).strip(' "*\u201c\u201d') for reply in replies]

    def _bad(self, question: str) -> str | None:
        """Why a question is not worth an answer."""
        gist = _gist(question)
        if len(gist) < _LEAST_WORDS or not question.endswith(_QUESTION_MARKS):
            return "no question"
        if is_garbled(question):
            return "garbled"
        if gist in self._asked:
            return "duplicate"
        self._asked.add(gist)
        if any(_alike(gist, other) for other in self._kept):
            return "like another"
        return self._refused(question, "")

    def _sure(self, questions: Sequence[str]) -> list[tuple[str, str]]:
        """The questions on which the model agrees with itself, each with its likeliest answer."""
        drawn: dict[str, list[str]] = {question: [] for question in questions}
        # Most questions fall after an answer or two, so the others are drawn for the rest alone.
        for draws in (range(1), range(1, 2), range(2, self._how.answers + 1)):
            for question, answers in self._answers(list(drawn), draws).items():
                drawn[question] += answers
                if self._drop(self._unsure(question, *drawn[question])):
                    del drawn[question]
        return [(question, answers[0]) for question, answers in drawn.items()]

    def _unsure(self, question: str, answer: str, *others: str) -> str | None:
        """Why an answer is not to be kept, as far as the answers drawn so far tell."""
        if not answer:
            return "no answer"
        if is_echo(question, answer):
            return "answer repeats the question"
        if is_garbled(answer):
            return "garbled"
        if any(
            agreement(answer, [one.answer]) for one in self._some_solved(content_hash(question))
        ):
            return "answer copied from an example"
        # Of two possible answers, one always has the majority.
        offered = _OFFER.search(question) or not _DECIDING.isdisjoint(plain_words(answer))
        least = 1.0 if offered or len(others) == 1 else self._how.agreement
        return "answers disagree" if others and agreement(answer, others) < least else None

    def _answers(self, questions: Sequence[str], draws: range) -> dict[str, list[str]]:
        """Question -> answers; the first draw is no draw, but the likeliest answer."""
        talks = {question: self._talk(question, "") for question in questions}
        requests = [
            Request(
                talk.turns[:-1] if self._how.chat else talk.prompt,
                max_tokens=self._how.max_tokens,
                temperature=_ANSWER_TEMPERATURE if draw else 0.0,
                seed=content_hash(self._model.fingerprint, self._how.seed, question, draw),
                is_complete=_has_line,
                form="line",
            )
            for question, talk in talks.items()
            for draw in draws
        ]
        read = _only_line if self._how.chat else _line
        replies = [read(reply) for reply in _ask(self._model, requests, self._store)]
        return {
            question: replies[place * len(draws) : (place + 1) * len(draws)]
            for place, question in enumerate(questions)
        }

    def _some_solved(self, seed: int) -> list[_Solved]:
        """A few of the everyday questions, now these and now those."""
        first = seed % max(len(self._solved), 1)
        return [*self._solved[first:], *self._solved[:first]][:_SHOWN]

    def _ask_for_question(self, topic: Topic, seed: int) -> Prompt:
        subject = _subject(topic, seed)
        first = seed % max(len(topic.shown), 1)
        own = (*topic.shown[first:], *topic.shown[:first])[:_SHOWN]
        shown = [*self._some_solved(seed), *(_Solved(subject, clean(one, 200)) for one in own)]
        if self._how.chat:
            turns = ((f"Write one easy question about {one[0]}.", one[1]) for one in shown)
            return _chat(turns, f"Write one easy question about {subject}.")
        texts = (
            f"Subject: {one.subject}\nQuestion: {one.question}\n"
            + (f"Answer: {one.answer}\n\n" if one.answer else "\n")
            for one in shown
        )
        start = "Easy questions on many subjects, each with its short answer.\n\n"
        return f"{start}{''.join(texts)}Subject: {subject}\nQuestion:"

    def _talk(self, question: str, answer: str) -> Talk:
        """The example in both forms; the answer was drawn behind exactly this."""
        solved = self._some_solved(content_hash(question))
        turns = _chat(((one.question, one.answer) for one in solved), question)
        turns = (turns[0]._replace(text=f"{_IN_A_FEW_WORDS}\n\n{turns[0].text}"), *turns[1:])
        texts = (f"Question: {one.question}\nAnswer: {one.answer}\n\n" for one in solved)
        prompt = f"{''.join(texts)}Question: {question}\nAnswer:"
        return Talk((*turns, Message("assistant", answer)), prompt, f" {answer}")


def _chat(solved: Iterable[tuple[str, str]], last: str) -> tuple[Message, ...]:
    turns = [
        Message(role, text)
        for pair in solved
        for role, text in zip(("user", "assistant"), pair, strict=True)
    ]
    return (*turns, Message("user", last))


def _subject(topic: Topic, seed: int) -> str:
    """The category and one of its tasks; a first word that tasks share names their suite."""
    names = [re.sub(r"[\W_]+", " ", task).strip() for task in topic.tasks]
    first = Counter(name.partition(" ")[0] for name in names)
    name = names[seed % len(names)] if names else ""
    suite, _, rest = name.partition(" ")
    task = clean(rest if rest and first[suite] > 1 else name, 40)
    if topic.category in topic.tasks:  # no task map: the task is the category
        return task
    return f"{clean(topic.category, 60)}: {task}" if task else clean(topic.category, 60)


def _has_line(text: str) -> bool:
    """Whether a line was written and ended; models like to begin with an empty one."""
    return "\n" in text.lstrip()


def _line(reply: Mapping[str, Any]) -> str:
    """The first line of a reply; nothing where it was cut off."""
    line, ended, _ = str(reply["text"] or "").lstrip().partition("\n")
    return line.strip() if ended or reply["finished"] else ""


def _only_line(reply: Mapping[str, Any]) -> str:
    """A reply of a single line; nothing where it goes on, since a part is not what was said."""
    return "" if _has_line(str(reply["text"] or "")) else _line(reply)


def _ask(model: Model, requests: Sequence[Request], store: Store) -> list[Mapping[str, Any]]:
    """Replies in the order of the requests; what is in the store is not asked again."""
    keys = [f"{content_hash(model.fingerprint, one.identity):016x}" for one in requests]
    for group in model.plan(requests):
        open_places = [place for place in group.places if keys[place] not in store]
        if open_places:
            replies = model.run([requests[place] for place in open_places], group.hints)
            answered = dict(zip(open_places, replies, strict=True))
            store.append(
                {
                    keys[place]: dataclasses.asdict(reply)
                    for place, reply in answered.items()
                    if not reply.has_failed
                }
            )
            for reply in replies:
                if reply.has_failed:
                    raise InputError(
                        f"{model.name}: {reply.note}; what was made is kept, run the same command "
                        "again"
                    )
    return [store[key] for key in keys]
