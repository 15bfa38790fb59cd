"""What the studies share: pages whose numbers are cells of tables.

A page names a cell in braces, as {table/row/column}; a table is called by the first word above it,
a row by its first cells. `#1` takes the second number of the cell, `~` its interval, `-` turns the
sign around (a loss that was saved). {{table}} stands for a whole table.
"""

import re
import textwrap
from collections.abc import Mapping

NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")
CELL = re.compile(r"\{([-~]*)([^{}/]+)/([^{}/]+)/([^{}#]+)(?:#(\d))?\}")
Tables = dict[str, dict[str, dict[str, str]]]


def fill_page(page: str, results: str) -> str:
    """A page with its tables and the numbers of its cells."""

    def whole(name: str) -> str:
        [section] = [part for part in results.split("\n## ")[1:] if part.lower().startswith(name)]
        return section.split("\n\n", 1)[1].strip()

    text = re.sub(r"\{\{(\w+)\}\}", lambda match: whole(match[1]), page)
    return wrapped(filled(text, read_tables(results)))


def filled(text: str, cells: Tables) -> str:
    """The text with the numbers of its cells."""
    return CELL.sub(lambda match: _number(cells, *match.groups()), text)


def wrapped(text: str) -> str:
    """The text with its paragraphs and points wrapped again: numbers are shorter than cells."""
    parts = []
    for part in text.split("\n\n"):
        if part.startswith(("|", "#", "!", "```")):
            parts.append(part)
            continue
        points = re.split(r"\n(?=- )", part)
        indents = ["  " if point.startswith("- ") else "" for point in points]
        parts.append(
            "\n".join(
                textwrap.fill(" ".join(point.split()), 104, subsequent_indent=indent,
                              break_long_words=False, break_on_hyphens=False)
                for point, indent in zip(points, indents, strict=True)
            )
        )  # fmt: skip
    return "\n\n".join(parts) + "\n"


def read_tables(text: str, keys: Mapping[str, int] | None = None) -> Tables:
    """All cells: by table, row and column. A column whose name occurs again is called `name 2`.

    `keys` says by table how many columns name a row, where it is not one.
    """
    cells: Tables = {}
    for section in text.split("\n## ")[1:]:
        name = section.split(maxsplit=1)[0].rstrip(":").lower()
        rows = [re.split(r" ?\| ?", line)[1:-1] for line in re.findall(r"^\|.*\|$", section, re.M)]
        if rows:
            plain = [[cell.strip("`") for cell in row] for row in rows]
            cells[name] = _by_name(plain, (keys or {}).get(name, 1))
    return cells


def _by_name(rows: list[list[str]], keys: int) -> dict[str, dict[str, str]]:
    header, _, *body = rows
    names = [
        name if (times := header[: place + 1].count(name)) == 1 else f"{name} {times}"
        for place, name in enumerate(header)
    ]
    return {" ".join(row[:keys]): dict(zip(names, row, strict=True)) for row in body}


def _number(cells: Tables, how: str, table: str, row: str, column: str, place: str | None) -> str:
    numbers = NUMBER.findall(cells[table][row][column])
    if "-" in how:
        numbers = [_negated(number) for number in numbers]
    numbers = [number.removeprefix("+") for number in numbers]
    if "~" in how:
        return " to ".join(numbers[2:0:-1] if "-" in how else numbers[1:3])
    return numbers[int(place or 0)]


def _negated(number: str) -> str:
    return number[1:] if number[0] == "-" else f"-{number.removeprefix('+')}"
