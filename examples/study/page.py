"""Stage 6: the study's pages of the docs, from page.md, claims.md and the tables.

    python page.py > ../../docs/explanation/study.md
    python page.py claims.md > ../../docs/explanation/claims.md

Every number of a page is a cell of results.md or more.md. page.md names it in braces, as
{table/row/column}; a table is called by the first word above it, a row by its first cells. `#1`
takes the second number of the cell, `~` its interval, `-` turns the sign around (a loss that was
saved). {published} stands for the findings of Harmon et al. in their own numbers.
"""

import re
import sys
import textwrap
from pathlib import Path

from forgetmap.study.published import published_study

HERE = Path(__file__).resolve().parent
KEYS = {"kinds": 3, "lost": 3}
"""How many columns name a row; elsewhere one does."""
NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")
CELL = re.compile(r"\{([-~]*)([^{}/]+)/([^{}/]+)/([^{}#]+)(?:#(\d))?\}")
Tables = dict[str, dict[str, dict[str, str]]]


def page(name: str = "page.md") -> str:
    """A page with the numbers of its cells."""
    text = (HERE / name).read_text()
    if "{published}" in text:
        text = text.replace("{published}", published())
    return _wrapped(filled(text, read_tables()))


def published() -> str:
    """What Harmon et al. write, tested in the numbers that they publish."""
    stages = published_study().answers.stages
    rows = [
        f"| {found.text} | {found.why} | {100 * found.estimate.value:+.1f} "
        f"({100 * found.estimate.low:+.1f} to {100 * found.estimate.high:+.1f}) | {found.verdict} |"
        for found in (stages.findings if stages else [])
        if found.estimate
    ]
    return "\n".join(
        ["| claim | measured | points | verdict |", "| --- | --- | --- | --- |", *rows]
    )


def filled(text: str, cells: Tables) -> str:
    """The text with the numbers of its cells."""
    return CELL.sub(lambda match: _number(cells, *match.groups()), text)


def _wrapped(text: str) -> str:
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


def read_tables() -> Tables:
    """All cells: by table, row and column. A column whose name occurs again is called `name 2`."""
    text = "\n".join((HERE / name).read_text() for name in ("results.md", "more.md"))
    cells: Tables = {}
    for section in text.split("\n## ")[1:]:
        name = section.split(maxsplit=1)[0].rstrip(":").lower()
        rows = [re.split(r" ?\| ?", line)[1:-1] for line in re.findall(r"^\|.*\|$", section, re.M)]
        if rows:
            plain = [[cell.strip("`") for cell in row] for row in rows]
            cells[name] = _by_name(plain, KEYS.get(name, 1))
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


if __name__ == "__main__":
    print(page(*sys.argv[1:]), end="")
