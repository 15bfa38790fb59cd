"""Stage 5: the study's page of the docs, from page.md and the tables.

    python page.py > ../../docs/explanation/study.md

Every number of the page is a cell of results.md. page.md names it in braces, as
{table/row/column}. `#1` takes the second number of the cell, `~` its interval, `-` turns the sign
around (a loss that was saved), `+` keeps a plus sign.
"""

import re
import textwrap
from pathlib import Path

import pyarrow.parquet as pq
import yaml

HERE = Path(__file__).resolve().parent
KEYS = {"equal": 2, "behaviour": 4}
"""How many columns name a row; elsewhere one does."""
KINDS = re.compile(r"method.*: (\S+) loses .* than (\S+) \(.*(smollm2|gemma3-270m).*\)")
"""A statement about two methods, for which page.md has a shorter name."""
NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")
CELL = re.compile(r"\{([-+~]*)([^{}/]+)/([^{}/]+)/([^{}#]+)(?:#(\d))?\}")
Tables = dict[str, dict[str, dict[str, str]]]


def main() -> None:
    print(page(), end="")


def page() -> str:
    """The page with the numbers of its cells."""
    return _wrapped(filled((HERE / "page.md").read_text(), read_tables()))


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
    cells: Tables = {}
    text = (HERE / "results.md").read_text()
    names = re.findall(r"^\[\[(.+)\]\]$", (HERE / "results.in.md").read_text(), re.MULTILINE)
    blocks = re.findall(r"(?:^\|.*\n?)+", text, re.MULTILINE)
    for name, block in zip(names, blocks, strict=True):
        rows = [line.strip("| ").split(" |") for line in block.splitlines()]
        cells[name] = _by_name([[cell.strip() for cell in row] for row in rows], KEYS.get(name, 1))
    for text_of, row in list(cells["claims"].items()):
        if match := KINDS.fullmatch(text_of):
            cells["claims"][f"{match[3]} {match[1]} and {match[2]}"] = row
    ranks = re.findall(r"(-0\.\d\d) on", text)
    cells["ranks"] = {"lost and words": {"both": " ".join(ranks)}}
    cells["count"] = {"of": {name: f"{n:,}" for name, n in _counts().items()}}
    return cells


def _by_name(rows: list[list[str]], keys: int) -> dict[str, dict[str, str]]:
    header, _, *body = rows
    names = [
        name if (times := header[: place + 1].count(name)) == 1 else f"{name} {times}"
        for place, name in enumerate(header)
    ]
    return {" ".join(row[:keys]): dict(zip(names, row, strict=False)) for row in body}


def _counts() -> dict[str, int]:
    """What can be counted without a table."""
    logs = HERE / "logs"
    asked = pq.read_table(logs / "smollm2-before.parquet", columns=["task", "item", "k"])
    questions = asked.group_by(["task", "item", "k"]).aggregate([]).to_pylist()
    entries = yaml.safe_load((HERE / "study.yaml").read_text())["pairs"]
    named = (entry["new"] for entry in entries)
    new = {task for one in named for task in ([one] if isinstance(one, str) else one)}
    old = [row for row in questions if row["task"] not in new]
    runs = [path.stem for path in logs.glob("*.parquet") if not path.stem.endswith("-before")]
    return {
        "old questions": len(old),
        "with options": sum(row["k"] is not None for row in old),
        "airports asked": sum(row["task"] == "airports" for row in questions),
        "trainings and merges": len(runs),
        "methods on Gemma": len({name[:-2] for name in runs if "gemma3-270m-airports" in name}),
    }


def _number(cells: Tables, how: str, table: str, row: str, column: str, place: str | None) -> str:
    numbers = NUMBER.findall(cells[table][row][column])
    if "-" in how:
        numbers = [_negated(number) for number in numbers]
    if "+" not in how:
        numbers = [number.removeprefix("+") for number in numbers]
    if "~" in how:
        return " to ".join(numbers[2:0:-1] if "-" in how else numbers[1:3])
    return numbers[int(place or 0)]


def _negated(number: str) -> str:
    return number[1:] if number[0] == "-" else f"-{number.removeprefix('+')}"


if __name__ == "__main__":
    main()
