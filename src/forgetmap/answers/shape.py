"""The shape of an answer: how many lists, tables, headings and code blocks it has."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, NamedTuple

from forgetmap.answers.text import optional

_MARKUP = re.compile(
    r"^[ \t>]{0,20}(?:[-*+][ \t]|\d{1,9}[.)][ \t]|#{1,6}[ \t]|```|~~~|=|-)|\|[ \t]{0,20}:?-",
    re.MULTILINE,
)
"""Without any of these a text has neither list, table, heading nor fence, and is not parsed."""


_MOST_MARKDOWN = 50_000
"""Characters that are parsed as Markdown."""


class Shape(NamedTuple):
    """How many blocks of each kind a text has, as Markdown."""

    lists: int
    tables: int
    headings: int
    code: int


def shape(text: str) -> Shape:
    """Count the lists, tables, headings and code blocks of a text.

    Example:
        >>> shape("# Title\\n\\n- a\\n- b\\n\\n|a|b|\\n|-|-|\\n|1|2|\\n\\nNo | table - no list.")
        Shape(lists=1, tables=1, headings=1, code=0)
    """
    if not _MARKUP.search(text):
        return Shape(0, 0, 0, 0)
    kinds = [token.type for token in _markdown().parse(text[:_MOST_MARKDOWN])]
    return Shape(
        kinds.count("bullet_list_open") + kinds.count("ordered_list_open"),
        kinds.count("table_open"),
        kinds.count("heading_open"),
        kinds.count("fence"),
    )


@cache
def _markdown() -> Any:
    parser = optional("markdown_it").MarkdownIt("commonmark")
    return parser.enable("table").disable("inline")
