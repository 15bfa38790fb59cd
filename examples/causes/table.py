"""How often the rules of causes are right: precision and recall against labels written by hand.

    python table.py

Half of the answers, by their id, were there to develop the rules on. The other half was read last,
when the rules were done, and then the rules were mended once more. The answers of the later looks
came after that. Their files of labels keep what the rules found then.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from forgetmap.map.causes import CAUSES, UNKNOWN, Lost, cause_of
from forgetmap.stats.estimate import share

LABELLED = Path(__file__).parents[2] / "tests" / "map" / "causes"
Rows = list[dict[str, Any]]
BAR, ENOUGH = 0.9, 20
"""Precision and recall that are asked for, of every cause with so many cases."""


def labelled(look: str = "") -> Rows:
    """Every lost answer with its `label` and what the rules `found`: the rules of now, or then."""
    labels = {row["id"]: row for row in _lines(LABELLED / f"{look}labels.jsonl")}
    rows = _lines(LABELLED / f"{look}lost_answers.jsonl")
    for row in rows:
        item = Lost(**{name: row[name] for name in Lost._fields if name in row})
        row |= {"found": cause_of(item) or UNKNOWN} | labels[row["id"]]
    return rows


def developed_on(row: dict[str, Any]) -> bool:
    """Whether an answer is in the half that the rules were developed on."""
    return int(row["id"], 16) % 2 == 0


def scores(rows: Rows, cause: str) -> tuple[int, float | None, float | None]:
    """How many answers have a label, and the precision and recall of the rules on it."""
    table = Counter((row["label"], row["found"]) for row in rows)
    meant = sum(count for (label, _), count in table.items() if label == cause)
    named = sum(count for (_, found), count in table.items() if found == cause)
    hits = table[cause, cause]
    return meant, hits / named if named else None, hits / meant if meant else None


def tables() -> str:
    """The tables of docs/explanation/causes.md."""
    rows = labelled()
    parts = {
        "all": rows,
        "developed on": [row for row in rows if developed_on(row)],
        "read last": [row for row in rows if not developed_on(row)],
    }
    causes = [name for name in (*CAUSES, UNKNOWN) if any(name == row["label"] for row in rows)]
    lines = [
        "| cause | " + " | ".join(f"{part}: n, precision, recall" for part in parts) + " |",
        "| --- |" + " --- |" * len(parts),
        *(f"| `{name}` | " + " | ".join(_cell(part, name) for part in parts.values()) + " |"
          for name in causes),
        "",
        *_shares("source", rows, lambda row: str(row["source"])),
        "",
        *_shares("kind", rows, lambda row: str(row["kind"])),
    ]  # fmt: skip
    return "\n".join(lines)


def later_looks() -> str:
    """The table of the looks that came later: each time the rules were run once and found this."""
    fourth, fifth = labelled("fourth_"), labelled("fifth_")
    unread = [row | {"found": row.get("mended", row["found"])}
              for row in fourth if not developed_on(row)]  # fmt: skip
    return _looks({"fourth look": fourth, "its unread half, mended": unread, "fifth look": fifth})


def last_looks() -> str:
    """The same for the last two looks."""
    return _looks({"sixth look": labelled("sixth_"), "seventh look": labelled("seventh_")})


def verdict(look: str = "seventh_") -> str:
    """Which causes keep the bar in a look, in words."""
    rows = labelled(look)
    known = {name: scores(rows, name) for name in CAUSES}
    many = [name for name, (meant, _, _) in known.items() if meant >= ENOUGH]
    kept = [name for name in many if all((part or 0) >= BAR for part in known[name][1:])]
    missed = [name for name in many if name not in kept]
    agree = _percent(sum(row["label"] == row["found"] for row in rows) / len(rows))
    return (
        f"On {len(rows)} fresh answers the rules agree with the labels on {agree}. Of the "
        f"{len(many)} causes with {ENOUGH} cases there, {len(kept)} keep the bar: {_listed(kept)}. "
        f"{len(missed)} miss it: {_listed(missed)}."
    )


def _listed(names: list[str]) -> str:
    quoted = [f"`{name}`" for name in names]
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)


def _looks(parts: dict[str, Rows]) -> str:
    heads = [f"{name}, {len(rows)}: n, precision, recall" for name, rows in parts.items()]
    lines = ["| cause | " + " | ".join(heads) + " |", "| --- |" + " --- |" * len(parts)]
    for name in (*CAUSES, UNKNOWN):
        if any(name == row["label"] for rows in parts.values() for row in rows):
            cells = " | ".join(_cell_with_intervals(rows, name) for rows in parts.values())
            lines.append(f"| `{name}` | {cells} |")
    agree = [_interval([row["label"] == row["found"] for row in rows]) for rows in parts.values()]
    lines.append("| rules and label agree | " + " | ".join(agree) + " |")
    return "\n".join(lines)


def _cell_with_intervals(rows: Rows, cause: str) -> str:
    meant = [row["found"] == cause for row in rows if row["label"] == cause]
    named = [row["label"] == cause for row in rows if row["found"] == cause]
    return f"{len(meant)}, {_interval(named)}, {_interval(meant)}"


def _interval(hits: list[bool]) -> str:
    if not hits:
        return "-"
    part = share(sum(hits), len(hits))
    return f"{_percent(part.value)} ({100 * part.low:.0f} to {100 * part.high:.0f})"


def _cell(rows: Rows, cause: str) -> str:
    meant, precision, recall = scores(rows, cause)
    return f"{meant}, {_percent(precision)}, {_percent(recall)}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def _shares(title: str, rows: Rows, of: Callable[[dict[str, Any]], str]) -> Iterator[str]:
    yield f"| {title} | n | rules and label agree |"
    yield "| --- | --- | --- |"
    for name, count in Counter(map(of, rows)).most_common():
        agree = sum(row["label"] == row["found"] for row in rows if of(row) == name)
        yield f"| {name} | {count} | {_percent(agree / count)} |"


def _lines(file: Path) -> Rows:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    print(verdict(), last_looks(), later_looks(), tables(), sep="\n\n")
