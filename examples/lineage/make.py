"""Write the example's logs: made-up answers of a pipeline and of a training run.

Usage: ``python examples/lineage/make.py``

No model gave these answers. They show the form of a pipeline file and of its results.
"""

from __future__ import annotations

import csv
import random
from pathlib import Path

HERE = Path(__file__).parent
ITEMS = 60
STAGES = ("base", "sft", "code", "rl", "merged")
LEARNS = {
    "sft": {"chat": 0.5, "sums": 0.1, "code": 0.05, "facts": 0.02},
    "code": {"chat": 0.05, "sums": 0.1, "code": 0.6, "facts": 0.02},
    "rl": {"chat": 0.2, "sums": 0.3, "code": 0.1, "facts": 0.1},
}
LOSES = {
    "sft": {"chat": 0.02, "sums": 0.05, "code": 0.1, "facts": 0.2},
    "code": {"chat": 0.3, "sums": 0.05, "code": 0.02, "facts": 0.1},
    "rl": {"chat": 0.05, "sums": 0.02, "code": 0.05, "facts": 0.05},
}
START = {"chat": 0.3, "sums": 0.6, "code": 0.2, "facts": 0.85}
PARENT = {"sft": "base", "code": "base", "rl": "sft"}
RUN_STEPS = (0, 200, 400, 600, 800, 1000)

Known = dict[tuple[str, int], bool]


def main() -> None:
    rng = random.Random(7)
    items = [(task, number) for task in START for number in range(ITEMS)]
    known: dict[str, Known] = {"base": {item: rng.random() < START[item[0]] for item in items}}
    for stage, parent in PARENT.items():
        known[stage] = {
            item: rng.random() >= LOSES[stage][item[0]]
            if known[parent][item]
            else rng.random() < LEARNS[stage][item[0]]
            for item in items
        }
    known["merged"] = {item: merged(known["rl"][item], known["code"][item], rng) for item in items}
    for stage in STAGES:
        write(HERE / "logs" / f"{stage}.csv", known[stage])
    now = known["base"]
    for step in RUN_STEPS:
        write(HERE / "run" / f"step-{step}.csv", now)
        now = {
            item: rng.random() >= (0.12 if item[0] == "facts" else 0.04)
            if right
            else rng.random() < 0.15
            for item, right in now.items()
        }


def merged(rl: bool, code: bool, rng: random.Random) -> bool:
    return rng.random() < {0: 0.03, 1: 0.7, 2: 0.97}[rl + code]


def write(path: Path, known: Known) -> None:
    path.parent.mkdir(exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["task", "question", "correct", "answer"])
        for (task, number), right in known.items():
            answer = f"made-up {'right' if right else 'wrong'} answer"
            writer.writerow([task, f"made-up {task} question {number}", int(right), answer])


if __name__ == "__main__":
    main()
