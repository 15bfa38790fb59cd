"""Citations: are the right sources cited, only those, in the form that the item asks for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from forgetmap.answers.items import Item, Value
from forgetmap.answers.text import fold, words
from forgetmap.capabilities.scorers.scoring import bad_gold, per_answer

METRICS = ("precision", "recall", "f1", "format", "out_of_context")
FIELDS = ("gold",)
VERSION = 1

_LONGEST = 300
_MOST_PARTS = 8
"""A title may hold so many commas and still be found whole."""
_SEPARATOR = re.compile(r"\s{0,5}[,;]\s{0,5}")
_OTHER_FORMS = re.compile(
    r"\[[^\[\]\n]{1,300}\](?!\()|【[^【】\n]{1,300}】|<cite>[^<\n]{1,300}</cite>|"
    r"\((?:source|see|cf\.?)[: ][^()\n]{1,300}\)",
    re.IGNORECASE,
)


@per_answer(METRICS)
def score(item: Item, text: str) -> Value | Sequence[Value]:
    """Compare the sources that each answer cites with the right ones.

    `gold` lists the ids or titles to cite, or is an object with `citations` or, as in HotpotQA,
    `supporting_facts`. What may be cited is in `meta["sources"]`, in `gold["context_titles"]`, or
    the passages of the context, by number. `meta["citation_format"]` gives the form, "[id]" by
    default. `format`: there are markers, all of that form. `out_of_context`: share of what is cited
    that is not a source of the item.

    Example:
        >>> item = Item("qa", "1", gold=["1", "3"], context=["...", "...", "..."])
        >>> values = score([item], ["It rained [1, 2]. It stopped [3][9]."])
        >>> [round(value[0].value, 2) for value in values.values()]
        [0.5, 1.0, 0.67, 1.0, 0.25]
    """
    gold = read_gold(item.gold)
    form = str(item.meta.get("citation_format") or "[id]")
    if gold is None or form.count("id") != 1:
        return bad_gold(item.gold)
    sources = _sources(item) | gold
    cited, in_form = extract(text, form, sources)
    shown = "; ".join(sorted(cited))[:200]
    if not cited:
        status = "ok" if not gold else "no_answer"
        right = Value(float(not gold), status)
        return right, right, right, right, Value(0.0)
    hits = len(cited & gold)
    return (
        Value(hits / len(cited), answer=shown),
        Value(hits / len(gold) if gold else 0.0, answer=shown),
        Value(2 * hits / (len(cited) + len(gold)), answer=shown),
        Value(float(in_form), answer=shown),
        Value(len(cited - sources) / len(cited), answer=shown),
    )


def read_gold(gold: Any) -> set[str] | None:
    """The sources that should be cited, in normal form; None where the item does not say."""
    if isinstance(gold, Mapping):
        facts = gold.get("supporting_facts")
        gold = gold.get("citations", facts.get("title") if isinstance(facts, Mapping) else facts)
    if gold is None or isinstance(gold, bool | float):
        return None
    listed = [gold] if isinstance(gold, str | int) else list(gold)
    return set(filter(None, (_name(str(source)) for source in listed)))


def _name(text: str) -> str:
    """A source in normal form; its articles stay, since `a` may be an id."""
    return " ".join(words(fold(text)))


def _sources(item: Item) -> set[str]:
    listed = item.meta.get("sources")
    if listed is None and isinstance(item.gold, Mapping):
        listed = item.gold.get("context_titles")
    if listed is None and not isinstance(item.context, str):
        listed = range(1, len(item.context) + 1)
    return {_name(str(source)) for source in listed or ()}


def extract(text: str, form: str, sources: set[str]) -> tuple[set[str], bool]:
    """What is cited, and whether all of it in the form that was asked for.

    Example:
        >>> cited, in_form = extract("A [Paris, Texas; Rome].", "[id]", {"paris texas", "rome"})
        >>> sorted(cited), in_form
        (['paris texas', 'rome'], True)
    """
    asked = {found for marker in _marker(form).findall(text) for found in _split(marker, sources)}
    marked = {match.span() for match in _marker(form).finditer(text)}
    others = [
        match.group() for match in _OTHER_FORMS.finditer(text)
        if not any(start <= match.start() and match.end() <= end for start, end in marked)
    ]  # fmt: skip
    elsewhere = {found for other in others for found in _split(other, sources) if found in sources}
    in_form = bool(asked & sources) and not others
    return asked | elsewhere, in_form


@lru_cache(maxsize=256)
def _marker(form: str) -> re.Pattern[str]:
    before, _, after = form.partition("id")
    inner = rf"[^\n{re.escape(before[-1:] + after[:1])}]{{1,{_LONGEST}}}"
    no_link = r"(?!\()" if after == "]" else ""
    return re.compile(rf"{re.escape(before)}({inner}){re.escape(after)}{no_link}")


def _split(marker: str, sources: set[str]) -> list[str]:
    """The sources of one marker; a known title that holds commas stays whole."""
    parts = _SEPARATOR.split(marker)
    names, start = [], 0
    while start < len(parts):
        for end in range(min(len(parts), start + _MOST_PARTS), start, -1):
            name = _name(" ".join(parts[start:end]))
            if name in sources or end == start + 1:
                names.append(name)
                start = end
                break
    return [name for name in names if name]
