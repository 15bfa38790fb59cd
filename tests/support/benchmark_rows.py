"""Made-up rows in the layout of the benchmarks, so that nothing has to be fetched."""

from __future__ import annotations

import json
from pathlib import Path

COLOURS = ("red", "green", "blue", "grey", "black", "white", "brown")


def write_benchmarks(folder: Path, count: int = 80) -> Path:
    """ARC (easy) and SocialIQA with questions about nothing."""
    arc = [
        {"id": f"A{n}", "question": f"Which colour has number {n}?", "answerKey": "ABCD"[n % 4],
         "choices": {"text": list(_options(n, 4)), "label": list("ABCD")}}
        for n in range(count)
    ]  # fmt: skip
    social = [
        {"context": f"Ann saw {n} birds.", "question": "What colour were they?",
         **dict(zip(("answerA", "answerB", "answerC"), _options(n, 3), strict=True)),
         "label": str(n % 3 + 1)}
        for n in range(count)
    ]  # fmt: skip
    _write(folder / "allenai__ai2_arc" / "ARC-Easy" / "test.jsonl", arc)
    _write(folder / "allenai__social_i_qa" / "validation.jsonl", social)
    return folder


def _options(number: int, count: int) -> tuple[str, ...]:
    return tuple(COLOURS[(number + place) % len(COLOURS)] for place in range(count))


def _write(path: Path, rows: list[dict[str, object]]) -> None:
    path.parent.mkdir(parents=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
