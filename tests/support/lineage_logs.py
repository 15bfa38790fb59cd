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


def _mixed(count: int) -> dict[str, list[str]]:
    luck = random.Random(1)
    parents: dict[str, list[str]] = {"base": []}
    for number in range(1, count):
        names = list(parents)
        chosen = [names[luck.randrange(max(0, number - 9), number)]]
        if number % 9 == 0:
            chosen = list(dict.fromkeys([*chosen, names[luck.randrange(number)]]))
        parents[f"{'merged' if len(chosen) > 1 else 'sft'}-{number}"] = chosen
    return parents


SHAPES: dict[str, dict[str, list[str]]] = {
    "two": {"base": [], "sft": ["base"]},
    "chain": {f"step-{n}": [f"step-{n - 1}"] if n else [] for n in range(100)},
    "fork": {"base": []} | {f"sweep-of-learning-rates-{n}": ["base"] for n in range(99)},
    "diamonds": {"base": []}
    | {
        name: parents
        for n in range(8)
        for top in ["base" if n == 0 else f"merged-{n - 1}"]
        for name, parents in {
            f"a-{n}": [top],
            f"b-{n}": [top],
            f"merged-{n}": [f"a-{n}", f"b-{n}", "base"],
        }.items()
    },
    "mixed": _mixed(100),
}
"""Graphs of checkpoints: name -> parents."""


def write_shape(folder: Path, shape: str, tasks: int = 3, per_task: int = 8) -> Path:
    """Write logs in which every checkpoint keeps most of what a parent knew."""
    luck = random.Random(shape)
    right: dict[str, list[bool]] = {}
    lines = ["checkpoints:"]
    for name, parents in SHAPES[shape].items():
        knew = right[luck.choice(parents)] if parents else [True] * (tasks * per_task)
        right[name] = [luck.random() < (0.92 if known else 0.15) for known in knew]
        found = [
            {"question": f"question {n}", "correct": int(known), "task": f"task_{n // per_task}"}
            for n, known in enumerate(right[name])
        ]
        write_jsonl(folder / f"{name}.jsonl", found)
        lines.append(f"  {name}: {{log: {name}.jsonl, parents: [{', '.join(parents)}]}}")
    path = folder / "pipeline.yaml"
    path.write_text("\n".join(lines) + "\n")
    return path
