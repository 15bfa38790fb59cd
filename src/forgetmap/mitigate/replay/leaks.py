"""Is a text an evaluation item, or does it hold one? Content hashes and runs of words.

Both sides are brought to plain words first, so that case, white space, punctuation, accents and
forms of Unicode make no difference. An item is then found in three ways: its words in any order
(options shuffled), the whole of a short item, or eight of its words in a row. Another wording of
the same question is not found: no rule on words could.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

RUN = 8
"""So many words of an item in a row are no chance."""
_FEWEST = 4
"""An item of fewer words is found only where it stands alone: `Paris` is in many texts."""
_COMMON_SHARE, _COMMON_ITEMS = 0.2, 5
"""Words that stand in so many items of a task are its form (an instruction, fixed examples)."""
_PRIME = np.uint64(0x9E3779B97F4A7C15)

Hashes = NDArray[np.uint64]
How = Literal["the same words", "the whole item", "8 words in a row"]


class EvaluationItem(NamedTuple):
    """A question that must not be trained on."""

    task: str
    ref: str
    text: str
    """As the model was asked, with whatever the harness put around it."""


class Leak(NamedTuple):
    """Where a text and an evaluation item meet."""

    task: str
    ref: str
    how: How


# --- plain words ----------------------------------------------------------------------------------

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
"""Scripts that set no spaces between words: there each sign counts as a word."""
_WORD = re.compile(f"[{_UNSPACED}]|[^\\W_{_UNSPACED}]+")
_JOINED = re.compile(r"(?<=[^\W\d_])['’ʼ‘](?=[^\W\d_])|(?<=\d),(?=\d{3})")
"""What may be left out inside a word or a number: can't, 1,234."""
_MARKUP = re.compile(r"<\|[^|<>]{1,40}\|>|</?[a-z_]{1,30}>|\[/?INST\]", re.IGNORECASE)
_OPTION = re.compile(r"\s*\(?[A-Z][.):]\s+\S")
_ASKS = re.compile(r"^\W*(?:question|q|user|human|problem|task)\b\s*\d{0,4}\s*:", re.IGNORECASE)
_CUE = re.compile(r"\b(?:answer|a|assistant|response|solution)\s*:\W*$", re.IGNORECASE)
_SENTENCES = re.compile(r"(?<=[.?!。？！])\s+")


def plain_words(text: str) -> list[str]:
    r"""The words of a text without case, accents, punctuation and tricks of Unicode.

    Example:
        >>> plain_words("Où est le CAFÉ?") == plain_words("ou  est\nle cafe")
        True
        >>> plain_words("1,234 can’t 你好")
        ['1234', 'cant', '你', '好']
    """
    if not text.isascii():
        spread = unicodedata.normalize("NFKD", text)
        text = "".join(c for c in spread if unicodedata.category(c) not in ("Mn", "Me", "Cf"))
    return _WORD.findall(_JOINED.sub("", text).casefold())


def question_words(text: str) -> list[str]:
    r"""The plain words of a question, without the cue before and after it.

    A text of signs alone counts as one word, so that it can be found too.

    Example:
        >>> question_words("Question: Why?\nAnswer:")
        ['why']
        >>> question_words("? ? !")
        ['??!']
    """
    bare = _CUE.sub("", _ASKS.sub("", text))
    return plain_words(bare) or "".join(bare.split()).split()


class _Piece(NamedTuple):
    """A part of a text that may be a question of its own."""

    words: list[str]
    whole: bool = False
    option: bool = False


def _pieces(text: str) -> Iterator[_Piece]:
    """The whole text, its lines and the questions in them, each without the cue around it."""
    bare = _MARKUP.sub("\n", text).strip()
    yield _Piece(question_words(bare), whole=True)
    for line in bare.splitlines():
        option = bool(_OPTION.match(line))
        if line != bare:
            yield _Piece(question_words(line), option=option)
        for sentence in _SENTENCES.split(line) if "?" in line else ():
            if sentence != line and sentence.rstrip().endswith(("?", "？")):
                yield _Piece(question_words(sentence), option=option)


# --- hashes ---------------------------------------------------------------------------------------


def _hash(words: Sequence[str]) -> Hashes:
    return np.array([_word_hash(word) for word in words], dtype=np.uint64)


@lru_cache(maxsize=2**18)
def _word_hash(word: str) -> int:
    digest = blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big")


def _runs(hashes: Hashes, length: int) -> Hashes:
    """One hash for every run of so many words."""
    count = len(hashes) - length + 1
    if count < 1:
        return hashes[:0]
    combined = np.zeros(count, dtype=np.uint64)
    for start in range(length):
        combined = combined * _PRIME + hashes[start : start + count]
    return combined


def _bag(hashes: Hashes) -> Hashes:
    """One hash for the words in whatever order."""
    mixed = (hashes ^ (hashes >> np.uint64(29))) * _PRIME
    combined: Hashes = mixed.sum(dtype=np.uint64, keepdims=True)
    return combined


class _Index(NamedTuple):
    """Hashes in order, and for each the number of an item that has it."""

    hashes: Hashes
    items: NDArray[np.int64]

    def find(self, wanted: Hashes) -> int | None:
        if not len(wanted) or not len(self.hashes):
            return None
        places = np.searchsorted(self.hashes, wanted).clip(max=len(self.hashes) - 1)
        hits = np.flatnonzero(self.hashes[places] == wanted)
        return int(self.items[places[hits[0]]]) if len(hits) else None


class _Gathered:
    """Hashes of one kind, of all items."""

    def __init__(self) -> None:
        self._hashes: list[Hashes] = []
        self._items: list[int] = []

    def add(self, item: int, hashes: Hashes) -> None:
        self._hashes.append(np.unique(hashes))
        self._items.append(item)

    def table(self) -> tuple[Hashes, NDArray[np.int64]]:
        if not self._hashes:
            return np.zeros(0, np.uint64), np.zeros(0, np.int64)
        sizes = [len(part) for part in self._hashes]
        return np.concatenate(self._hashes), np.repeat(np.array(self._items), sizes)


def _without_form(
    hashes: Hashes, items: NDArray[np.int64], tasks: NDArray[np.int64]
) -> tuple[Hashes, NDArray[np.int64]]:
    """Leave out what stands in so many items of its task that it is the task's form."""
    task = tasks[items]
    _, inverse, counts = np.unique(
        hashes ^ (task.astype(np.uint64) * _PRIME), return_inverse=True, return_counts=True
    )
    most = np.maximum(_COMMON_ITEMS, _COMMON_SHARE * np.bincount(tasks))
    kept = counts[inverse] < most[task]
    return hashes[kept], items[kept]


def _index(*tables: tuple[Hashes, NDArray[np.int64]]) -> _Index:
    hashes, items = (np.concatenate(column) for column in zip(*tables, strict=True))
    first, places = np.unique(hashes, return_index=True)
    return _Index(first, items[places])


# --- the check ------------------------------------------------------------------------------------

_ALONE, _LINE, _BAG = 0, -1, -2
"""Kinds of hash beside runs of a length: a short item that stands alone, a short line of an item
(only questions are held against these: it may be a solved example's answer), words in any order."""


class LeakCheck:
    """Finds evaluation items in texts; give it every item, not only those that changed.

    Example:
        >>> check = LeakCheck([EvaluationItem("capitals", "7", "Q: What is the capital of Chad?")])
        >>> check.find("Tell me, what is   the CAPITAL of Chad")
        Leak(task='capitals', ref='7', how='the whole item')
        >>> check.find("What is the capital of Mali?") is None
        True
    """

    def __init__(self, items: Iterable[EvaluationItem]) -> None:
        self._items: list[EvaluationItem] = []
        seen: set[tuple[str, str]] = set()
        whole = defaultdict[int, _Gathered](_Gathered)
        parts = defaultdict[int, _Gathered](_Gathered)
        for item in items:
            if (key := (item.task, item.text)) not in seen:  # repeats, and both sides of a map
                seen.add(key)
                _gather(len(self._items), item.text, whole, parts)
                self._items.append(item)
        self._indexes = self._join(whole, parts)

    def __len__(self) -> int:
        return len(self._items)

    def find(self, prompt: str, completion: str = "") -> Leak | None:
        """Find the first evaluation item that a prompt, or the completion after it, holds."""
        words = _hash(plain_words(_MARKUP.sub(" ", f"{prompt}\n{completion}")))
        for kind, index in self._indexes.items():
            if kind > 0 and (item := index.find(_runs(words, kind))) is not None:
                return self._leak(item, "8 words in a row" if kind == RUN else "the whole item")
        return self._find_alone(prompt, (_ALONE, _LINE)) or self._find_alone(completion, (_ALONE,))

    def _find_alone(self, text: str, kinds: Sequence[int]) -> Leak | None:
        for piece in _pieces(text):
            if not (hashes := _hash(piece.words)).size:
                continue
            for kind in kinds if len(hashes) < _FEWEST else ():
                if (item := self._indexes[kind].find(_runs(hashes, len(hashes)))) is not None:
                    return self._leak(item, "the whole item")
            if (item := self._indexes[_BAG].find(_bag(hashes))) is not None:
                return self._leak(item, "the same words")
        return None

    def _leak(self, number: int, how: How) -> Leak:
        return Leak(self._items[number].task, self._items[number].ref, how)

    def _join(
        self, whole: Mapping[int, _Gathered], parts: Mapping[int, _Gathered]
    ) -> dict[int, _Index]:
        names: dict[str, int] = {}
        tasks = np.array([names.setdefault(item.task, len(names)) for item in self._items], int)
        nothing = _Gathered()
        tables = {
            kind: [
                whole.get(kind, nothing).table(),
                _without_form(*parts.get(kind, nothing).table(), tasks),
            ]
            for kind in sorted({*whole, *parts, RUN, _ALONE, _LINE, _BAG}, reverse=True)
        }
        long_items = parts.get(RUN, nothing).table()[1]
        lost = np.setdiff1d(long_items, tables[RUN][1][1])
        for length, gathered in self._whole(lost).items():
            tables.setdefault(length, []).append(gathered.table())
        return {kind: _index(*kept) for kind, kept in tables.items()}

    def _whole(self, items: NDArray[np.int64]) -> dict[int, _Gathered]:
        """Long items of which every run is common in their task: they are looked for whole."""
        by_length = defaultdict[int, _Gathered](_Gathered)
        for item in items.tolist():
            hashes = _hash(next(_pieces(self._items[item].text)).words)
            by_length[len(hashes)].add(item, _runs(hashes, len(hashes)))
        return by_length


def _gather(
    item: int, text: str, whole: Mapping[int, _Gathered], parts: Mapping[int, _Gathered]
) -> None:
    """Put the hashes of an item where they belong: by length, and as the whole or a part of it."""
    lines: dict[int, list[Hashes]] = {}
    for piece in _pieces(text):
        hashes = _hash(piece.words)
        length = len(hashes)
        if piece.whole and length:
            whole[_BAG].add(item, _bag(hashes))
            if length >= RUN:
                parts[RUN].add(item, _runs(hashes, RUN))
            else:
                whole[length if length >= _FEWEST else _ALONE].add(item, _runs(hashes, length))
        elif 1 < length < RUN and not piece.option:
            kind = length if length >= _FEWEST else _LINE
            lines.setdefault(kind, []).append(_runs(hashes, length))
    for kind, runs in lines.items():
        parts[kind].add(item, np.concatenate(runs))
