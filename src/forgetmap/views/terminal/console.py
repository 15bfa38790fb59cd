"""A console for people, and the tables and lines that are printed to it."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Collection, Iterable, Sequence

from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from forgetmap.base.words import WIDTH, clean, cut_in_the_middle
from forgetmap.views.words import verdict_mark

Row = tuple[str | Text, ...]

LOST, GAINED = "dark_orange", "dodger_blue1"
"""One colour for each, here and on every page."""
_COLOURS = {
    "lost": LOST, "worse": LOST, "forgot": LOST, "lower": "magenta", "higher": "cyan",
    "better": GAINED, "held": "green", "equal": "green", "kept": "green", "equivalent": "green",
    "undecided": "yellow",
}  # fmt: skip
_NARROWEST = 12
"""Columns that the first column of a table keeps."""
_COMFORTABLE = 16
"""Columns that it should have before a table gets narrower."""


def open_console(stderr: bool = False) -> Console:
    """A console of fixed width where the output is not a terminal, so that files look the same."""
    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console.width = WIDTH
    return console


def say(out: Console, text: str, style: str = "") -> None:
    """Print a line as it is: no markup in it is obeyed. A number stays beside its %."""
    for line in text.split("\n"):
        wrapped = textwrap.wrap(
            line.replace(" %", _KEPT + "%"),
            out.width,
            break_on_hyphens=False,
            subsequent_indent=" " * (len(line) - len(line.lstrip(" "))),
        )
        for part in wrapped or [""]:
            out.print(Text(part.replace(_KEPT, " "), style=style), soft_wrap=True)


_KEPT = "\N{NO-BREAK SPACE}"


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


Step = tuple[str, Callable[[str], str] | None]
"""What to do where a table is too wide: the column, and its shorter form; None takes it out."""


def make_table(
    names: Sequence[str],
    rows: Iterable[Row],
    *,
    left: Collection[str] = (),
    width: int | None = None,
    gap: int = 2,
    narrower: Sequence[Step] = (),
) -> Table:
    """A table without lines. Text in cells is shown as it is.

    Args:
        names: Of the columns.
        rows: May be shorter than the names.
        left: Columns of text; the others hold numbers, but the first is always text.
        width: Of the terminal: names in the first column are cut in the middle where it is
            narrow. Without it long text goes on in the next line.
        gap: Between two columns.
        narrower: Steps to take, in this order, as long as the first column lacks room.
    """
    columns = _columns(names, rows)
    if width is not None:
        columns = _fitted(columns, width - gap * (len(columns) - 1), narrower, gap)
    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="bold")
    for place, (name, cells) in enumerate(columns.items()):
        side: JustifyMethod = "left" if place == 0 or name in left else "right"
        if width is None:
            table.add_column(name, justify=side, overflow="fold")
        else:
            wide = max(map(len, (name, *cells)))
            table.add_column(name, justify=side, no_wrap=True, overflow="ellipsis", width=wide)
    for row in zip(*columns.values(), strict=True):
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    return table


Columns = dict[str, list[str | Text]]


def _columns(names: Sequence[str], rows: Iterable[Row]) -> Columns:
    filled = [(*row, *[""] * (len(names) - len(row))) for row in rows]
    return {name: [row[place] for row in filled] for place, name in enumerate(names)}


def _fitted(columns: Columns, room: int, steps: Sequence[Step], gap: int) -> Columns:
    """The columns that fit: steps are taken until the first one has room, then its names give."""
    columns = dict(columns)
    first = next(iter(columns))

    def left_for_first() -> int:
        return room - sum(_width(name, columns[name]) for name in columns if name != first)

    wanted = min(_COMFORTABLE, _width(first, columns[first]))
    for name, shorten in steps:
        if left_for_first() >= wanted or name not in columns:
            continue
        if shorten is None:
            del columns[name]
            room += gap
        else:
            columns[name] = [shorten(str(cell)) for cell in columns[name]]
    most = max(_NARROWEST, left_for_first())
    columns[first] = [_cut(cell, most) for cell in columns[first]]
    return columns


def _width(name: str, cells: Sequence[str | Text]) -> int:
    return max(map(len, (name, *cells)))


def _cut(cell: str | Text, most: int) -> str | Text:
    if len(cell) <= most:
        return cell
    if isinstance(cell, str):
        return cut_in_the_middle(cell, most)
    return Text(cut_in_the_middle(cell.plain, most), style=cell.style)


def without_interval(cell: str) -> str:
    """A number without the interval in brackets behind it.

    Example:
        >>> without_interval("5.3–12.3 (4.5, 13.1)")
        '5.3–12.3'
    """
    return cell.partition(" (")[0]


_BAR = 6
BARS = "lost│gained".rjust(2 * _BAR + 1)
"""The head of a column of `two_bars`."""


def two_bars(lost: float, gained: float, most: float) -> Text:
    """What was lost to the left and what was gained to the right, on one scale.

    The scale is that of the losses: a bar that would be longer than `most` ends in an arrow, so
    that a large gain makes no loss look small.

    Example:
        >>> two_bars(0.1, 0.4, 0.2).plain
        '   ■■■│■■■■■▶'
    """

    def bar(share: float) -> str:
        if most and share > most:
            return "■" * (_BAR - 1) + "▶"
        return "■" * max(1, round(_BAR * share / most)) if share > 0 else ""

    return Text.assemble((bar(lost).rjust(_BAR), LOST), "│", (bar(gained).ljust(_BAR), GAINED))


def verdict_style(word: str) -> str:
    """The colour of a verdict."""
    return _COLOURS[word]


def verdict_text(*words: str) -> Text:
    """Verdicts in their colours."""
    parts = [Text(verdict_mark(word), style=_COLOURS[word]) for word in words]
    return Text(", ").join(parts)
