"""A hand-made pipeline with a known history, for the tests of the lineage."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from logs import write_csv, write_jsonl

if TYPE_CHECKING:
    from pathlib import Path

STAGES = ("base", "sft", "rl", "code", "merged")
HISTORY = {
    # item: base, sft, rl, code, merged; None is missing
    "kept": (1, 1, 1, 1, 1),
    "lost at sft": (1, 0, 0, 1, 0),
    "lost at merged": (1, 1, 1, 0, 0),
    "recovered at rl": (1, 0, 1, 1, 1),
    "recovered at merged": (1, 0, 0, 1, 1),
    "oscillating": (1, 0, 1, 0, 0),
    "oscillating from nothing": (0, 1, 0, 1, 1),
    "learned at sft": (0, 1, 1, 0, 1),
    "learned by merging": (0, 0, 0, 0, 1),
    "learned and lost": (0, 1, 0, 0, 0),
    "never": (0, 0, 0, 0, 0),
    "missing at rl": (1, 1, None, 1, 1),
}
PIPELINE = """\
checkpoints:
  base: {log: base.jsonl}
  sft: {log: sft.jsonl, parents: base, steps: 100}
  rl: {log: rl.jsonl, parents: [sft], steps: 300}
  code: {log: code.jsonl, parents: base}
  merged: {log: merged.jsonl, parents: [rl, code]}
"""


def rows(stage: str) -> list[dict[str, object]]:
    place = STAGES.index(stage)
    return [
        {"question": item, "correct": states[place], "task": item.split()[0]}
        for item, states in HISTORY.items()
        if states[place] is not None
    ]


def write_history(folder: Path, suffix: str = ".jsonl", seed: int | None = None) -> Path:
    """Write the logs and the pipeline; with a seed, every log's rows in another order."""
    for stage in STAGES:
        found = rows(stage)
        if seed is not None:
            random.Random(f"{seed} {stage}").shuffle(found)
        write = write_csv if suffix == ".csv" else write_jsonl
        write(folder / f"{stage}{suffix}", found)
    path = folder / "pipeline.yaml"
    path.write_text(PIPELINE.replace(".jsonl", suffix))
    return path
