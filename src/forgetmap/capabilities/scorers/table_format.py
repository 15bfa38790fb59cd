"""Tables in Markdown: nothing but a table, a table to be found, its columns, what it holds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from forgetmap.answers.items import Item, Value
from forgetmap.answers.text import normal
from forgetmap.capabilities.scorers.json_format import same
from forgetmap.capabilities.scorers.scoring import NO_ANSWER, NOT_ASKED, per_answer, right_or_wrong

METRICS = ("strict", "recoverable", "schema", "content")
FIELDS = ("meta.columns",)
VERSION = 1

_DELIMITER = re.compile(
    r"\s{0,3}\|?\s{0,20}:?-{1,200}:?\s{0,20}(?:\|\s{0,20}:?-{1,200}:?\s{0,20}){0,100}\|?\s{0,20}"
)
_CELL_END = re.compile(r"(?<!\\)\|")


class Table(NamedTuple):
    """A table as found in an answer."""

    columns: list[str]
    rows: list[list[str]]
    alone: bool
    """Nothing stands around it, and every row has all cells."""


@per_answer(METRICS)
def score(item: Item, text: str) -> Sequence[Value]:
    """Judge the form of the table, then what it holds.

    `schema`: the columns are those of `meta["columns"]`, and the rows as many as `meta["rows"]`
    says, where it does. `content`: the rows are those of `gold`, a list of lists or of objects, in
    any order; of a plain value, that some cell holds it.

    Example:
        >>> item = Item("t", "1", gold=[["1", "x"]], meta={"columns": ["No", "Name"]})
        >>> values = score([item], ["Here:\\n| No | Name |\\n| --- | --- |\\n| 1 | x |"])
        >>> {name: value[0].value for name, value in values.items()}
        {'strict': 0.0, 'recoverable': 1.0, 'schema': 1.0, 'content': 1.0}
    """
    table = find_table(text)
    if table is None:
        return Value(0.0), Value(0.0), NO_ANSWER, NOT_ASKED if item.gold is None else NO_ANSWER
    shown = " | ".join(table.columns)
    columns = [normal(str(name)) for name in item.meta.get("columns", ())]
    rows = item.meta.get("rows")
    fits = [normal(name) for name in table.columns] == columns and rows in (None, len(table.rows))
    return (
        right_or_wrong(table.alone, shown),
        right_or_wrong(True, shown),
        right_or_wrong(fits, shown),
        NOT_ASKED if item.gold is None else right_or_wrong(_holds(table, item.gold), shown),
    )


def find_table(text: str) -> Table | None:
    """The first Markdown table of a text: a header, a line of dashes, rows.

    Example:
        >>> find_table("|a|b|\\n|-|-|\\n|1|2|")
        Table(columns=['a', 'b'], rows=[['1', '2']], alone=True)
    """
    lines = text.strip("\n").splitlines()
    for number, line in enumerate(lines[1:], 1):
        if "|" not in lines[number - 1] or "-" not in line or not _DELIMITER.fullmatch(line):
            continue
        columns = _cells(lines[number - 1])
        if len(_cells(line)) != len(columns):
            continue
        end = number + 1
        while end < len(lines) and "|" in lines[end]:
            end += 1
        rows = [_cells(row) for row in lines[number + 1 : end]]
        around = [*lines[: number - 1], *lines[end:]]
        whole = all(len(row) == len(columns) for row in rows) and not any(map(str.strip, around))
        return Table(columns, rows, whole)
    return None


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|")
    inner = inner[:-1] if inner.endswith("|") and not inner.endswith("\\|") else inner
    return [cell.strip().replace("\\|", "|") for cell in _CELL_END.split(inner)]


def _holds(table: Table, gold: Any) -> bool:
    if not isinstance(gold, list):
        return any(same(cell, gold) for row in table.rows for cell in row)
    wanted = [_row(row, table.columns) for row in gold]
    left = list(wanted)
    for row in table.rows:
        match = next((one for one in left if same(row, one)), None)
        if match is None:
            return False
        left.remove(match)
    return not left


def _row(row: Any, columns: Sequence[str]) -> list[Any]:
    if isinstance(row, Mapping):
        by_name = {normal(str(name)): cell for name, cell in row.items()}
        return [by_name.get(normal(name), "") for name in columns]
    return list(row)
