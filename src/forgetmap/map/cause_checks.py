"""How often a cause is right: what the rules found in answers that they were not made on.

Two readers labelled the answers of the ninth to the eleventh look after the rules were frozen, and
the rules were then run once. docs/explanation/causes.md tells all of it; a test holds this table to
the labels. `noise` and `timeout` rest on runs and on what the harness reports, and were not read.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from forgetmap.base.words import percent

FORM = (
    *("ran_on", "wrapped", "degenerate", "refused", "language", "timeout", "prose", "call"),
    *("list", "truncated", "unparsed"),
)
"""Causes that say how the model answered, not what it knows."""


class Check(NamedTuple):
    """How often the rules spoke on the labelled answers, and how often rightly."""

    found: int
    right: int


CHECKED = 2011
"""Lost answers that were labelled."""
CHECKS = {
    "ran_on": Check(89, 86),
    "degenerate": Check(194, 181),
    "refused": Check(75, 59),
    "language": Check(90, 88),
    "wrapped": Check(315, 282),
    "intruded": Check(98, 98),
    "prose": Check(186, 171),
    "truncated": Check(302, 278),
    "call": Check(41, 41),
    "list": Check(33, 31),
    "unparsed": Check(192, 148),
    "wrong": Check(396, 343),
}
"""Of the answers that got a cause, those whose label it is: its precision."""
FORM_CHECK = Check(CHECKED, 1933)
"""Whether a loss is a matter of form or of another answer, which decides what to do."""


def how_sure(causes: Iterable[str]) -> str:
    """How often such causes were right, in words; "" where no loss is a matter of form.

    There may have been no text to read then: options that were scored are `wrong` or `noise`.

    Example:
        >>> how_sure(["wrapped", "noise"])
        'of 2,011 labelled answers the rules got form or knowledge right in 96.1 %; wrapped 89.5 %'
        >>> how_sure(["wrong", "noise"])
        ''
    """
    known = {name: CHECKS[name] for name in causes if name in CHECKS}
    if not known.keys() & set(FORM):
        return ""
    listed = ", ".join(f"{name} {percent(one.right / one.found)}" for name, one in known.items())
    return (
        f"of {CHECKED:,} labelled answers the rules got form or knowledge right in "
        f"{percent(FORM_CHECK.right / FORM_CHECK.found)}; {listed}"
    )
