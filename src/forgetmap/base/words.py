"""Words for people: short lists, safe text, percentages, and the name that was meant."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable
from typing import Any

WIDTH = 100
"""Columns of printed output where there is no terminal to ask."""


def brief(error: BaseException) -> str:
    """The gist of an error, for one line."""
    text = next(iter(str(error).splitlines()), "") or type(error).__name__
    return text[:120]


def some(names: Iterable[object], most: int = 6) -> str:
    """A list for one line: not endless, on one line, whatever it holds.

    Example:
        >>> some(["b", "a\\nname", "c"], most=2)
        'a name, b and 1 more'
    """
    listed = sorted(" ".join(str(name).split()) for name in names)
    shown = ", ".join(name if len(name) <= 60 else f"{name[:59]}…" for name in listed[:most])
    return shown + (f" and {len(listed) - most} more" if len(listed) > most else "")


def nearest(name: str, known: Iterable[str]) -> str:
    """What was probably meant, to put behind a message.

    Example:
        >>> nearest("forgeting", ["forgetting", "drop"])
        "; did you mean 'forgetting'?"
    """
    names = list(known)
    if matches := difflib.get_close_matches(name, names, n=1, cutoff=0.4):
        return f"; did you mean {matches[0]!r}?"
    return f"; known are {', '.join(names[:12])}{', ...' * (len(names) > 12)}"


def clean(text: object, most: int = 200) -> str:
    r"""Text from a log, safe for a terminal: no control codes, no direction marks, not endless.

    Example:
        >>> clean("\x1b[31mred\x1b[0m")
        '[31mred[0m'
    """
    shown = re.sub(r"\s", " ", str(text)[: 4 * most])
    shown = "".join(c for c in shown if unicodedata.category(c) not in _UNPRINTABLE)
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def code_span(text: object, most: int = 80) -> str:
    """Untrusted text as a code span of Markdown, in which no markup, link or mention works.

    Example:
        >>> code_span("a`b|c")
        "`a'b\\\\|c`"
    """
    shown = clean(text, most).replace("`", "'").replace("|", "\\|")
    return f"`{shown}`" if shown.strip() else "` `"


def cut_in_the_middle(text: str, most: int) -> str:
    """A name that is no longer than that: its beginning and its end tell it from others.

    Example:
        >>> cut_in_the_middle("atlas_currency_codes", 13)
        'atlas_…_codes'
    """
    if len(text) <= most:
        return text
    end = (most - 1) // 2
    return f"{text[: most - 1 - end]}…{text[len(text) - end :]}"


_UNPRINTABLE = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Unicode categories: control, format (direction marks), lone surrogates, line ends."""


def percent(share: float, digits: int = 1) -> str:
    """A share as text, in percent.

    Example:
        >>> percent(0.0625)
        '6.2 %'
    """
    rounded = f"{100 * share:.{digits}f}"
    return f"{rounded.removeprefix('-') if float(rounded) == 0 else rounded} %"


def spreadsheet_safe(value: Any) -> Any:
    """Keep a spreadsheet from running text as a formula: model output is untrusted.

    Example:
        >>> spreadsheet_safe("=cmd()"), spreadsheet_safe("-1"), spreadsheet_safe(0.5)
        ("'=cmd()", "'-1", 0.5)
        >>> spreadsheet_safe("＝cmd()")
        "'＝cmd()"
    """
    if not isinstance(value, str):
        return value
    text = value.replace("\x00", "")
    risky = text.startswith(("\t", "\r")) or text.lstrip().startswith(_FORMULA_STARTS)
    text = text.replace("\r\n", "\n").replace("\r", "\n")  # csv leaves a lone \r without quotes
    return f"'{text}" if risky else text


_FORMULA_STARTS = tuple("=+-@＝＋－＠﹢﹣﹦﹫−")
"""Also as wide, small and typographic characters, which some spreadsheets take for the plain."""
