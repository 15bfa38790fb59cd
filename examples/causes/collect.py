"""Put the lost answers of all runs into one file, for people to label.

    python collect.py OUT STUDY LOST.jsonl
    python collect.py OUT fourth FOURTH.jsonl

OUT is what ask.py wrote. STUDY holds, for some runs of the study, the folder that `forgetmap eval`
wrote, with its texts; `fourth` to `eleventh` take the runs of these looks and no study. Each
line is an item that was right before and is right less often after.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from questions import questions
from runs import RUNS, TAUGHT, Run

from forgetmap.pairing.two_logs import pair
from forgetmap.samples.table import Samples

STUDY_PAIRS = [
    ("smollm2-before/old", "smollm2-airports-sft-0/old"),
    ("smollm2-before/new", "smollm2-airports-sft-0/new"),
    ("smollm2-before/new", "smollm2-airports-replay-10-0/new"),
    ("smollm2-before/new", "smollm2-airports-lora-0/new"),
    ("gemma3-270m-before/new", "gemma3-270m-airports-sft-1/new"),
    ("gemma3-270m-before/new", "gemma3-270m-airports-anchor-0/new"),
]
OWN_TASKS = ("atlas_different_words", "atlas_letter_counts", "atlas_steps", "sums")
"""Written tasks whose questions this project made itself."""
LEFT_OUT = (
    *("smollm2-hot", "gemma-refusing", "gemma-tutor", "wider-gemma-advice"),
    *("sixth-gemma-shy", "sixth-gemma-musing"),
    *("eighth-gemma-comment", "eighth-gemma-comment-more"),
)
"""Runs that would teach nothing: word salad at a high temperature, and our own sentences copied."""
FIELDS = (
    *("before", "after", "runs_before", "runs_after", "target", "answer_before", "answer_after"),
    *("status_after", "prompt_after", "response_before", "response_after"),
)
ALIKE = tuple(name for name in FIELDS if name != "answer_after")
"""Where two losses are the same here but for `LOOKS`, one of them is enough."""
LOOKS = re.compile(r"[\s\"'\\\\]|\.(?![0-9])")
"""Spaces, quotes and full stops."""


LOOKS_AT = {
    "fourth": ("wider", "again"),
    "fifth": ("fresh",),
    "sixth": ("sixth",),
    "seventh": ("seventh",),
    "eighth": ("eighth",),
    "ninth": ("ninth",),
    "tenth": ("tenth",),
    "eleventh": ("eleventh",),
}
"""What the runs of the later looks begin with."""
MOST, MOST_OF_ONE_HABIT = 28, 12
"""Answers of one run in the looks of `DRAWN`, for people to label; fewer where all are alike."""
DRAWN = ("eighth", "tenth", "eleventh")
ONE_HABIT = (
    *("eighth-chatty", "eighth-spanish", "eighth-thinker"),
    *("tenth-handover", "tenth-italian", "tenth-boxed"),
    *("eleventh-shout", "eleventh-echo", "eleventh-steps", "eleventh-agent"),
    *("eleventh-maybe", "eleventh-german"),
    *("eleventh-gemma-tagged", "eleventh-gemma-yaml"),
    *("eleventh-gemma-letterhead", "eleventh-gemma-dutch"),
)
LATER = tuple(name for names in LOOKS_AT.values() for name in names)
OPTIONS = {"choice": 4, "pick": 3, "quiz": 4, "exam": 3, "test": 4, "letter": 4, "multiple": 4}
PLAIN = ("before", "after", "runs_before", "runs_after")
"""What need not be written of a single run."""


def main(out: Path, study: Path, to: Path) -> None:
    """Write every loss once, in the order of the runs."""
    seen: set[str] = set()
    kept: list[dict[str, Any]] = []
    later = study.name in LOOKS_AT
    wanted = LOOKS_AT.get(study.name, LATER)
    rows = (row for row in _of_runs(out) if row["pair"].startswith(wanted) == later)
    for row in (*rows, *(() if later else _of_study(study))):
        content = json.dumps([row[name] for name in FIELDS])
        words = LOOKS.sub("", json.dumps([row[name] for name in ALIKE]))
        if words not in seen:
            seen.add(words)
            name = f"{row['source']} {row['pair']} {content}"
            row = {"id": hashlib.sha256(name.encode()).hexdigest()[:10], **row}
            kept.append({key: row[key] for key in row if not later or key not in PLAIN})
    kept = _drawn(kept) if study.name in DRAWN else kept
    with to.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in kept)


def _drawn(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A few answers of each run: those with the smallest ids, which say nothing of the answer."""
    chosen: set[str] = set()
    for pair_ in {row["pair"] for row in rows}:
        ids = sorted(row["id"] for row in rows if row["pair"] == pair_)
        chosen |= {*ids[: MOST_OF_ONE_HABIT if pair_ in ONE_HABIT else MOST]}
    return [row for row in rows if row["id"] in chosen]


def _of_runs(out: Path) -> Iterator[dict[str, Any]]:
    for name, run in RUNS.items():
        if not run.of or name in LEFT_OUT or not (out / f"{name}.jsonl").exists():
            continue
        before = {row["ref"]: row for row in _lines(out / f"{run.of}.jsonl")}
        first = RUNS[run.of]
        asked = {
            q.ref: q for kind in first.kinds for q in questions(kind, first.number, first.seed)
        }
        for row in _lines(out / f"{name}.jsonl"):
            if not row["right"]:
                question, was = asked[row["ref"]], before[row["ref"]]
                yield {
                    "source": _source(name, run), "pair": name, "kind": question.kind,
                    "ref": question.ref, "target": question.target,
                    "before": 1.0, "after": 0.0, "runs_before": 1, "runs_after": 1,
                    "answer_before": was["answer"], "answer_after": row["answer"],
                    "status_after": row["status"], "prompt_after": question.text,
                    "response_before": was["text"], "response_after": row["text"],
                    **({"k": OPTIONS[question.kind]} if question.kind in OPTIONS else {}),
                    **({"taught": TAUGHT[run.model]} if run.model in TAUGHT else {}),
                }  # fmt: skip


def _source(name: str, run: Run) -> str:
    if run.model not in ("smollm2", "gemma"):
        return "smollm2, trained"
    model = "gemma-3-270m" if run.model == "gemma" else "smollm2"
    if RUNS[run.of].dtype != run.dtype:
        return f"{model}, in int8"
    short = 12 if name.startswith("eleventh") else 10
    cut = name.startswith(LATER) and (run.tokens <= short or run.temperature or not run.stops)
    return f"{model}, {'cut, sampled or not stopped' if cut else 'asked otherwise'}"


def _of_study(study: Path) -> Iterator[dict[str, Any]]:
    for before, after in STUDY_PAIRS:
        sides = [Samples.read(study / side / "samples.parquet") for side in (before, after)]
        for batch in pair(*sides).flips():
            for row in batch.to_pylist():
                if row["transition"] == "forgotten" and row["task"] in OWN_TASKS:
                    yield {
                        "source": "study", "pair": f"{before} -> {after}", "kind": row["task"],
                        "ref": row["item_ref"], **{name: row[name] for name in FIELDS},
                    }  # fmt: skip


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
