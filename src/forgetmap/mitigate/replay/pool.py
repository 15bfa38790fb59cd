"""Training examples from a user's own file, by what was forgotten, the nearest first.

A row that names its category is taken at its word. For the others the words decide: rare ones and
pairs of them, weighed by how few rows hold them (TF-IDF), against the forgotten items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from forgetmap.answers.text import sentences
from forgetmap.base.errors import InputError
from forgetmap.base.values import file_name
from forgetmap.base.words import some
from forgetmap.evaluate.prompts import Message
from forgetmap.mitigate.replay.leaks import (
    EvaluationItem,
    LeakCheck,
    plain_words,
    question_words,
)
from forgetmap.readers.framework import ReadOptions, json_lines

_FEATURES = 2**20
_AT_A_TIME = 512
"""Rows compared with all forgotten items in one go, so that memory stays bounded."""
_FORMS = "`messages`, `prompt` and `completion`, or `text`"


class Talk(NamedTuple):
    """What is trained on, in both forms."""

    turns: tuple[Message, ...]
    """The last one is the assistant's."""
    prompt: str
    """The same as running text; the completion follows it without a gap."""
    completion: str


class Example(NamedTuple):
    """A training example for a category."""

    talk: Talk
    category: str
    source: str
    """`model`, or file and line of the pool."""


class Row(NamedTuple):
    """A usable row of the pool."""

    line: int
    talk: Talk
    names: tuple[str, ...]
    """What the row says of its category or task."""

    @property
    def asked(self) -> str:
        """All but the answer."""
        return "\n".join(turn.text for turn in self.talk.turns[:-1])

    @property
    def answer(self) -> str:
        """The last turn."""
        return self.talk.turns[-1].text


class Pool(NamedTuple):
    """The rows of a file."""

    name: str
    rows: list[Row]
    unusable: int
    """Rows without a question or an answer in text."""
    warnings: list[str]


def read_pool(path: str | Path) -> Pool:
    r"""Read JSON lines of `messages`, of `prompt` and `completion`, or of `text`.

    A plain text is split after its first sentence, which becomes the prompt. `category` or `task`
    in a row says where it belongs.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "pool.jsonl"
        >>> _ = file.write_text('{"text": "Rain falls. It is wet."}\n{"prompt": "Hi", '
        ...                     '"completion": "Hello.", "category": "Talk"}\n')
        >>> [(row.line, row.answer, row.names) for row in read_pool(file).rows]
        [(1, 'It is wet.', ()), (2, 'Hello.', ('Talk',))]
    """
    path, warnings, rows, unusable = Path(path), list[str](), list[Row](), 0
    for line, record in json_lines(path, ReadOptions(), warnings):
        talk = _talk(record, f"{path}:{line}")
        whole = len(talk.turns) > 1 and all(turn.text.strip() for turn in talk.turns)
        if not whole or talk.turns[-1].role != "assistant":
            unusable += 1
            continue
        named = (record.get(name) for name in ("category", "task"))
        rows.append(Row(line, talk, tuple(str(name) for name in named if name is not None)))
    if not rows:
        raise InputError(f"{path}: holds no example; give JSON lines with {_FORMS}")
    return Pool(file_name(path), rows, unusable, warnings)


def asks_the_same(rows: Iterable[Row]) -> Callable[[str], bool]:
    r"""Say of a prompt whether some training data ask it, by the words of the question.

    Example:
        >>> turns = Message("user", "What is the capital of Chad?"), Message("assistant", "?")
        >>> known = asks_the_same([Row(1, Talk(turns, turns[0].text, "?"), ())])
        >>> known("Question: What is the capital of Chad?\nAnswer:"), known("Who am I?")
        (True, False)
    """
    check = LeakCheck(EvaluationItem("training", str(row.line), row.asked) for row in rows)
    return lambda prompt: check.find(prompt) is not None


def _talk(record: Mapping[str, Any], where: str) -> Talk:
    prompt, completion = record.get("prompt"), record.get("completion")
    if "messages" in record:
        turns = _messages(record["messages"])
    elif isinstance(prompt, str) and isinstance(completion, str):
        turns = [Message("user", prompt), Message("assistant", completion)]
        return Talk(tuple(turns), prompt, completion)
    elif "prompt" in record and "completion" in record:
        turns = [*_messages(prompt), *_messages(completion)]
    elif "text" in record:
        first, *rest = sentences(str(record["text"])) or [""]
        turns = [Message("user", first), Message("assistant", " ".join(rest))]
        return Talk(tuple(turns), first, f" {turns[-1].text}")
    else:
        raise InputError(f"{where}: has none of {_FORMS}; it has {some(record) or 'nothing'}")
    asked = "".join(f"{turn.text}\n\n" for turn in turns[:-1])
    return Talk(tuple(turns), asked, turns[-1].text if turns else "")


def _messages(value: Any) -> list[Message]:
    """Turns of a conversation; one whose content is no text comes out empty."""
    turns = value if isinstance(value, list) else []
    return [
        Message(
            str(turn.get("role", "")), said if isinstance(said := turn.get("content"), str) else ""
        )
        for turn in turns
        if isinstance(turn, dict)
    ]


def nearest(
    rows: Sequence[Row], forgotten: Mapping[str, Sequence[str]], tasks: Mapping[str, str]
) -> dict[str, list[int]]:
    """Per category the rows to draw, by number, the nearest to its forgotten items first.

    `forgotten` holds the texts of each category's items; `tasks` the category of each task, for
    rows that name a task.

    Example:
        >>> def row(line, text, *names):
        ...     turns = Message("user", text), Message("assistant", "ok")
        ...     return Row(line, Talk(turns, text, "ok"), names)
        >>> rows = [row(1, "Rivers of Chad"), row(2, "Add 3 and 4"), row(3, "Hm", "Sums")]
        >>> nearest(rows, {"Sums": ["Add 5 and 6"], "World": ["Capital of Chad"]}, {})
        {'Sums': [1, 2], 'World': [0]}
    """
    names = list(forgotten)
    likeness = how_alike(
        [f"{row.asked}\n{row.answer}" for row in rows], [forgotten[name] for name in names]
    )
    known = {name.casefold(): name for name in (*names, *tasks.values())} | {
        task.casefold(): category for task, category in tasks.items()
    }
    places: dict[str, list[int]] = {name: [] for name in names}
    for number, row in enumerate(rows):
        told = [known[name.casefold()] for name in row.names if name.casefold() in known]
        best = int(likeness[number].argmax())
        if told and told[0] in places:
            places[told[0]].append(number)
        elif not told and likeness[number, best] > 0:
            places[names[best]].append(number)
    return {
        name: sorted(numbers, key=lambda number: (-likeness[number, column], number))
        for column, (name, numbers) in enumerate(places.items())
    }


def how_alike(texts: list[str], groups: list[Sequence[str]]) -> NDArray[np.float64]:
    """Cosine between each text and the nearest of each group."""
    counts = _counts(
        [
            *(plain_words(text) for text in texts),
            *(question_words(text) for group in groups for text in group),
        ]
    )
    held = np.asarray((counts > 0).sum(axis=0)).ravel()
    vectors = _unit(counts @ sparse.diags(np.log((1 + counts.shape[0]) / (1 + held))))
    rows, items = vectors[: len(texts)], vectors[len(texts) :].T.tocsc()
    ends = np.cumsum([len(group) for group in groups])
    likeness = np.zeros((len(texts), len(groups)))
    for start in range(0, len(texts), _AT_A_TIME):
        chosen = slice(start, start + _AT_A_TIME)
        part = (rows[chosen] @ items).toarray()
        for column, (end, group) in enumerate(zip(ends, groups, strict=True)):
            likeness[chosen, column] = part[:, end - len(group) : end].max(axis=1)
    return likeness


def _counts(texts: list[list[str]]) -> sparse.csr_matrix:
    """Words and pairs of words by text, each in a column that its hash names."""
    columns, starts = list[int](), [0]
    for words in texts:
        pairs = (f"{one} {two}" for one, two in pairwise(words))
        columns += [crc32(word.encode("utf-8", "replace")) % _FEATURES for word in (*words, *pairs)]
        starts.append(len(columns))
    counts = sparse.csr_matrix(
        (np.ones(len(columns)), columns, starts), shape=(len(texts), _FEATURES)
    )
    counts.sum_duplicates()
    return counts


def _unit(rows: sparse.csr_matrix) -> sparse.csr_matrix:
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    scaled: sparse.csr_matrix = sparse.diags(scale) @ rows
    return scaled
