"""Scorers: one module each, a pure function from items and responses to values.

A scorer is a module with::

    METRICS: tuple[str, ...]     # the names it yields
    FIELDS: tuple[str, ...]      # what it needs of an Item; "meta.language" is a key of meta
    VERSION: int                 # raised whenever a value may change
    def score(items, responses) -> dict[str, list[Value]]: ...   # one value per item, in order

Scorers are deterministic and need no network. Only those of `RUN_CODE` run what a model wrote, in a
sandbox, and only where that is asked for. At most `text.LONGEST` characters of a response are
looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Protocol, cast

from forgetmap.answers.items import Item, Value
from forgetmap.base.errors import InputError
from forgetmap.base.words import nearest

SCORERS: dict[str, str] = {
    name: f"{__name__}.{name}"
    for name in (
        *("multiple_choice", "mathematics", "numbers", "short_answer", "boolean", "code"),
        *("ifeval", "json_format", "table_format", "tool_calls", "refusals", "style"),
        *("citations", "evidence", "long_context", "commitments"),
    )
}
"""Name of a scorer -> its module, imported when it is first asked for."""
RUN_CODE = ("code",)
"""Scorers that run what a model wrote."""


class Scorer(Protocol):
    """What a scorer's module offers."""

    METRICS: tuple[str, ...]
    FIELDS: tuple[str, ...]
    VERSION: int

    def score(self, items: Sequence[Item], responses: Sequence[str]) -> dict[str, list[Value]]:
        """Give one value per item for each metric."""


def load(name: str) -> Scorer:
    """Import a scorer by its name.

    Example:
        >>> load("boolean").METRICS
        ('accuracy',)
    """
    if name not in SCORERS:
        raise InputError(f"no scorer is called {name!r:.60}{nearest(name, SCORERS)}")
    return cast(Scorer, import_module(SCORERS[name]))
