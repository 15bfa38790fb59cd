"""Put the labels of two readers together, and run the rules once.

    python two_readers.py A.jsonl B.jsonl [DECIDED.jsonl]

A and B hold a line `{"id": ..., "label": ...}` for every answer of the last look. Where the two
differ, DECIDED holds the final label. While one is missing, this lists what is left to decide and
stops, and the rules are not run. Then it writes the file of labels, and never writes it again.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from table import FRESH, LABELLED, found_now

from forgetmap.map.causes import CAUSES, UNKNOWN

ANSWERS, LABELS = LABELLED / f"{FRESH}lost_answers.jsonl", LABELLED / f"{FRESH}labels.jsonl"
Rows = list[dict[str, Any]]


def main(files: list[Path], answers: Path = ANSWERS, to: Path = LABELS) -> None:
    """Write the labels of both, the final one, and what the rules find."""
    if to.exists():
        sys.exit(f"{to}: is there already; the rules are run only once")
    rows = read(answers)
    a, b = (labels(file, rows, whole=True) for file in files[:2])
    decided = labels(files[2], rows, whole=False) if len(files) > 2 else {}
    final = {name: a[name] if a[name] == b[name] else decided.get(name) for name in a}
    if left := [name for name, label in final.items() if label is None]:
        for name in left:
            print(json.dumps({"id": name, "label_a": a[name], "label_b": b[name]}))
        sys.exit(f"{len(left)} of {len(final)} labels differ and are not decided yet")
    with to.open("x", encoding="utf-8") as file:
        for row in rows:
            name = row["id"]
            told = {"id": name, "label": final[name], "label_a": a[name], "label_b": b[name]}
            file.write(json.dumps(told | {"found": found_now(row)}) + "\n")


def labels(file: Path, rows: Rows, *, whole: bool) -> dict[str, str]:
    """Id -> label; every id once, known, and with a label of the guide."""
    listed, asked = read(file), {row["id"] for row in rows}
    told = {row["id"]: row["label"] for row in listed}
    wrong = {
        "ids twice": len(listed) - len(told),
        "ids not asked for": len(told.keys() - asked),
        "ids missing": len(asked - told.keys()) if whole else 0,
        "unknown labels": len({*told.values()} - {*CAUSES, UNKNOWN}),
    }
    if any(wrong.values()):
        told_wrong = ", ".join(f"{count} {what}" for what, count in wrong.items() if count)
        sys.exit(f"{file}: {told_wrong}")
    return told


def read(file: Path) -> Rows:
    """The rows of a JSONL file."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    main([Path(name) for name in sys.argv[1:]])
