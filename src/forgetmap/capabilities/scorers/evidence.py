"""Evidence: does an answer rest on the passage, by quoting it or by giving what it says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from forgetmap.answers.items import Item, Value
from forgetmap.answers.text import after_cue, normal, optional
from forgetmap.capabilities.scorers.scoring import NO_ANSWER, NOT_ASKED, per_answer, right_or_wrong

METRICS = ("span_found", "quotes_found", "support_recall")
FIELDS = ("context",)
VERSION = 1

_QUOTE = re.compile(r"[\"“«„]([^\"“”«»„\n]{8,600})[\"”»“]|^>[ \t]{0,3}(.{8,600})$", re.MULTILINE)
_MOST_QUOTES = 30
_ALIKE = 95.0
"""Likeness in percent from which a quotation is taken for one with a slip of the pen."""
_LONGEST_SPAN = 300
_COVERED = 0.7
"""Share of a supporting sentence's words that the answer must hold to have given it."""


@per_answer(METRICS)
def score(item: Item, text: str) -> Value | Sequence[Value]:
    """Look for what each answer says in the item's context.

    `span_found`: the answer line, or a short answer as a whole, stands in the context.
    `quotes_found`: share of the quotations that do. `support_recall`: share of the sentences in
    `meta["supporting"]`, those that bear the answer, that it gives.

    Example:
        >>> item = Item("qa", "1", context="Ada was born in London. She loved gin.")
        >>> values = score([item], ['It says: "Ada was born in London". Answer: London'])
        >>> [value[0].value for value in values.values()]
        [1.0, 1.0, None]
    """
    whole = item.context if isinstance(item.context, str) else "\n".join(map(str, item.context))
    context = _context(whole)
    if not context.strip():
        return Value(None, "invalid_gold", "the item has no context")
    return _span(text, context), _quotes(text, context), _support(item, text)


@lru_cache(maxsize=64)
def _context(text: str) -> str:
    """The context in normal form; many items in a row share one."""
    return f" {normal(text)} "


def _span(text: str, context: str) -> Value:
    span = after_cue(text) or text.strip()
    said = normal(span[: _LONGEST_SPAN + 1])
    if not said or len(span) > _LONGEST_SPAN:
        return NO_ANSWER
    return right_or_wrong(f" {said} " in context, span)


def _quotes(text: str, context: str) -> Value:
    quotes = [match[1] or match[2] for match in _QUOTE.finditer(text)][:_MOST_QUOTES]
    said = list(filter(None, map(normal, quotes)))
    if not said:
        return NO_ANSWER
    share = sum(_stands_in(quote, context) for quote in said) / len(said)
    return Value(share, answer=quotes[0][:200])


def _stands_in(quote: str, context: str) -> bool:
    if f" {quote} " in context:
        return True
    likeness = optional("rapidfuzz.fuzz").partial_ratio(quote, context, score_cutoff=_ALIKE)
    return bool(likeness >= _ALIKE)


def _support(item: Item, text: str) -> Value:
    supporting = [normal(str(sentence)).split() for sentence in item.meta.get("supporting") or ()]
    if not any(supporting):
        return NOT_ASKED
    said = set(normal(text).split())
    given = [
        sum(word in said for word in sentence) >= _COVERED * len(sentence)
        for sentence in supporting
        if sentence
    ]
    return Value(sum(given) / len(given))
