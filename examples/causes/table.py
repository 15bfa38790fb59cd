"""How often the rules of causes are right: precision and recall against labels written by hand.

    python table.py

Half of the answers, by their id, were there to develop the rules on. The other half was read last,
when the rules were done, and then the rules were mended once more. The answers of the later looks
came after that. Their files of labels keep what the rules found then.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from forgetmap.map.causes import CAUSES, UNKNOWN, Lost, cause_of
from forgetmap.stats.estimate import share

LABELLED = Path(__file__).parents[2] / "tests" / "map" / "causes"
Rows = list[dict[str, Any]]
BAR, ENOUGH = 0.9, 20
"""Precision and recall that are asked for, of every cause with so many cases."""
OLD_LOOKS = ("", "fourth_", "fifth_", "sixth_", "seventh_")
_MANY_MOVES = 10


def labelled(look: str = "", *, now: bool = False) -> Rows:
    """Every lost answer with its `label` and what the rules `found` when they were first run on it.

    The label is the one of that time, too. With `now`, both are those of today: what the guide
    says now, and what the rules find now.
    """
    labels = {row["id"]: row for row in _lines(LABELLED / f"{look}labels.jsonl")}
    rows = _lines(LABELLED / f"{look}lost_answers.jsonl")
    for row in rows:
        known = labels[row["id"]]
        row |= known | {"moved": "first" in known}
        if now or "found" not in known:
            row["found"] = found_now(row)
        if not now:
            row["label"] = known.get("first", known["label"])
    return rows


def found_now(row: dict[str, Any]) -> str:
    """What the rules of today find."""
    return cause_of(Lost(**{name: row[name] for name in Lost._fields if name in row})) or UNKNOWN


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


def in_sample() -> str:
    """How the rules of today do on all old answers: no measure, they were read for the rules."""
    lines = [
        "| look | n | labels moved | agree with the first label | agree with the label of today |",
        "| --- | --- | --- | --- | --- |",
    ]
    for look in OLD_LOOKS:
        today = labelled(look, now=True)
        first = [row["label"] for row in labelled(look)]
        same = sum(row["found"] == label for row, label in zip(today, first, strict=True))
        right = sum(row["found"] == row["label"] for row in today)
        lines.append(
            f"| {look.strip('_') or 'first to third'} | {len(today)} | "
            f"{sum(row['moved'] for row in today)} | {_percent(same / len(today))} | "
            f"{_percent(right / len(today))} |"
        )
    return "\n".join(lines)


def moves() -> str:
    """Which labels moved when the guide was written, the most frequent moves first."""
    moved = Counter(
        (row["first"], row["label"])
        for look in OLD_LOOKS
        for row in labelled(look, now=True)
        if row["moved"]
    )
    lines = ["| first label | label of today | n |", "| --- | --- | --- |"]
    shown = [(pair, count) for pair, count in moved.most_common() if count >= _MANY_MOVES]
    lines += [f"| `{first}` | `{last}` | {count} |" for (first, last), count in shown]
    rest = moved.total() - sum(count for _, count in shown)
    return "\n".join([*lines, f"| {len(moved) - len(shown)} other moves | | {rest} |"])


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


def eighth_look(rows: Rows | None = None) -> str:
    """Two people against each other, and the rules against both: final labels, and agreed ones."""
    rows = labelled("eighth_") if rows is None else rows
    agreed = [row for row in rows if row["label_a"] == row["label_b"]]
    same = _interval([row["label_a"] == row["label_b"] for row in rows])
    pairs = [(row["label_a"], row["label_b"]) for row in rows]
    return (
        f"Two people labelled {len(rows)} answers. They agree on {same}, Cohen's kappa is "
        f"{kappa(pairs):.2f}.\n\n" + _looks({"final label": rows, "both people agree": agreed})
    )


def kappa(pairs: list[tuple[str, str]]) -> float:
    """Cohen's kappa: how far two people agree beyond chance.

    Example:
        >>> kappa([("a", "a"), ("a", "a"), ("b", "b"), ("a", "b")])
        0.5
    """
    n = len(pairs)
    same = sum(a == b for a, b in pairs) / n
    ours, theirs = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    chance = sum(count * theirs[name] for name, count in ours.items()) / n**2
    return (same - chance) / (1 - chance) if chance < 1 else 1.0


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


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def _lines(file: Path) -> Rows:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    print(verdict(), last_looks(), later_looks(), in_sample(), moves(), sep="\n\n")
    if (LABELLED / "eighth_labels.jsonl").exists():
        print(eighth_look(), verdict("eighth_"), sep="\n\n")
