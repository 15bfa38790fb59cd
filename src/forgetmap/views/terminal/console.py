"""A console for people, and the tables and lines that are printed to it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from forgetmap.base.words import WIDTH, clean, squeeze
from forgetmap.views.words import verdict_mark

Row = tuple[str | Text, ...]

_COLOURS = {
    "lost": "red", "worse": "red", "lower": "magenta", "higher": "cyan",
    "held": "green", "better": "green", "equal": "green", "undecided": "yellow",
    "kept": "green", "equivalent": "green", "forgot": "red",
}  # fmt: skip
_NARROWEST = 12
"""Columns that the first column of a table keeps."""


def open_console(stderr: bool = False) -> Console:
    """A console of fixed width where the output is not a terminal, so that files look the same."""
    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console.width = WIDTH
    return console


def say(out: Console, text: str, style: str = "") -> None:
    """Print a line as it is: no markup in it is obeyed."""
    out.print(Text(text, style=style))


def say_notes(
    out: Console, notes: Iterable[str], style: str = "dim", *, verbose: bool = False
) -> None:
    """Print the notes under a result; those that say the same of many things in one line."""
    listed = list(notes)
    for note in listed if verbose else in_short(listed):
        say(out, f"note: {clean(note)}", style)


_ALIKE = 3
"""As many notes of one kind are told in one line."""


def in_short(notes: Iterable[str]) -> list[str]:
    """Notes, of which those that differ only in what they speak of are counted.

    Example:
        >>> in_short([f"before: {task}: 2 lines hold no score" for task in ("a", "b", "c", "d")])
        ['before: a: 2 lines hold no score (and 3 more notes like it: --verbose lists them)']
    """
    kinds: dict[str, list[str]] = {}
    for note in notes:
        kinds.setdefault(_kind(note), []).append(note)
    return [
        f"{alike[0]} (and {len(alike) - 1} more notes like it: --verbose lists them)"
        if len(alike) >= _ALIKE
        else note
        for alike in kinds.values()
        for note in (alike[:1] if len(alike) >= _ALIKE else alike)
    ]


def _kind(note: str) -> str:
    """A note without what it speaks of: names before colons, names of tasks, numbers."""
    side, _, rest = note.partition(": ") if note.startswith(("before: ", "after: ")) else ("",) * 3
    text = rest if side else note
    text = re.sub(r"^[^:]{1,200}: ", "", text)
    text = re.sub(r"\btask \S+", "task", text)
    return f"{side} {re.sub(r'[0-9]+', '0', text)}"


def say_table(out: Console, table: Table) -> None:
    """Print a table and an empty line."""
    out.print(table)
    out.print()


def make_table(
    names: Sequence[str],
    rows: Iterable[Row],
    *,
    left: Collection[str] = (),
    width: int | None = None,
    gap: int = 2,
    middle: bool = False,
) -> Table:
    """A table without lines. Text in cells is shown as it is.

    Args:
        names: Of the columns.
        rows: May be shorter than the names.
        left: Columns of text; the others hold numbers, but the first is always text.
        width: Of the terminal: only the first column gives way where it is narrow. Without it
            long text goes on in the next line.
        gap: Between two columns.
        middle: Cut the first column in its middle, where it gives way.
    """
    rows = list(rows)
    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="bold")
    widths: list[int | None] = [None] * len(names)
    if width is not None:
        widths = list(_widths(names, rows, width, gap))
    for place, (name, wide) in enumerate(zip(names, widths, strict=True)):
        side: JustifyMethod = "left" if place == 0 or name in left else "right"
        if wide is None:
            table.add_column(name, justify=side, overflow="fold")
        else:
            table.add_column(name, justify=side, no_wrap=True, overflow="ellipsis", width=wide)
    for first, *others in rows:
        if middle and widths[0] is not None and isinstance(first, str):
            first = squeeze(first, widths[0])
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in (first, *others)))
    return table


def _widths(names: Sequence[str], rows: Sequence[Row], width: int, gap: int) -> list[int]:
    columns = [[row[place] for row in rows if place < len(row)] for place in range(len(names))]
    widths = [max(map(len, [name, *cells])) for name, cells in zip(names, columns, strict=True)]
    room = width - sum(widths[1:]) - gap * len(widths)
    widths[0] = max(_NARROWEST, min(widths[0], room))
    return widths


def verdict_style(word: str) -> str:
    """The colour of a verdict."""
    return _COLOURS[word]


def verdict_text(*words: str) -> Text:
    """Verdicts in their colours."""
    parts = [Text(verdict_mark(word), style=_COLOURS[word]) for word in words]
    return Text(", ").join(parts)
