"""Commitments across turns: what the first turn laid down, checked in the second.

`meta["commitments"]` is a list of objects, each with one key that names the kind::

    [{"language": "de"}, {"max_words": 50}, {"include": "Regards"}, {"format": "json"}]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from forgetmap.answers.items import Item, Value
from forgetmap.answers.shape import shape
from forgetmap.answers.text import fold, normal
from forgetmap.capabilities.scorers.constraints import Check, bind, detect_language, json_only
from forgetmap.capabilities.scorers.scoring import bad_gold, per_answer
from forgetmap.capabilities.scorers.table_format import find_table

METRICS = ("all_kept", "kept")
FIELDS = ("meta.commitments",)
VERSION = 1

_FORMATS: dict[str, Check] = {
    "json": json_only,
    "table": lambda text: find_table(text) is not None,
    "list": lambda text: shape(text).lists > 0,
    "no_list": lambda text: shape(text).lists == 0,
    "plain": lambda text: not any(shape(text)),
    "capitals": str.isupper,
    "lowercase": str.islower,
}


@per_answer(METRICS)
def score(item: Item, text: str) -> Value | Sequence[Value]:
    """Check the commitments of each item in its (last) response.

    Example:
        >>> item = Item("turns", "1", meta={"commitments": [{"max_words": 3}, {"persona": "Ada"}]})
        >>> values = score([item], ["Ada says a good deal more."])
        >>> values["all_kept"][0].value, values["kept"][0].value, values["kept"][0].answer
        (0.0, 0.5, 'broken: max_words')
    """
    try:
        checks = [_bind(commitment) for commitment in item.meta.get("commitments") or ()]
        if not checks:
            raise ValueError("the item has no commitments")
    except (ValueError, TypeError) as error:
        return bad_gold(error, 200)
    kept = [check(text) for _, check in checks]
    broken = ", ".join(kind for (kind, _), ok in zip(checks, kept, strict=True) if not ok)
    said = f"broken: {broken}"[:200] if broken else "all kept"
    return Value(float(all(kept)), answer=said), Value(sum(kept) / len(kept), answer=said)


def _bind(commitment: Any) -> tuple[str, Check]:
    if not isinstance(commitment, dict) or len(commitment) != 1:
        raise ValueError(f"a commitment is an object with one key, not {commitment!r:.60}")
    ((kind, value),) = commitment.items()
    if kind not in _KINDS:
        raise ValueError(f"no commitment is called {kind!r:.40}; known are {', '.join(_KINDS)}")
    return kind, _KINDS[kind](value)


def _language(value: Any) -> Check:
    wanted = str(value).lower().partition("-")[0]
    return lambda text: detect_language(text) == wanted


def _words(value: Any, relation: str) -> Check:
    return bind("length_constraints:number_words", {"num_words": value, "relation": relation})


def _include(value: Any) -> Check:
    wanted = f" {normal(str(value))} "
    return lambda text: wanted in f" {normal(text)} "


def _starts_with(value: Any) -> Check:
    wanted = fold(str(value))
    return lambda text: fold(text).lstrip(" \n\t*_#>\"'").startswith(wanted)


def _format(value: Any) -> Check:
    if value not in _FORMATS:
        raise ValueError(f"no format is called {value!r:.40}; known are {', '.join(_FORMATS)}")
    return _FORMATS[value]


_KINDS: dict[str, Callable[[Any], Check]] = {
    "language": _language,
    "max_words": lambda value: _words(int(value) + 1, "less than"),
    "min_words": lambda value: _words(int(value), "at least"),
    "include": _include,
    "exclude": lambda value: bind("keywords:forbidden_words", {"forbidden_words": [str(value)]}),
    "persona": _include,
    "starts_with": _starts_with,
    "ends_with": lambda value: bind("startend:end_checker", {"end_phrase": str(value)}),
    "format": _format,
}
