"""Measure `forgetmap study`: time and memory against the number of pairs.

Usage: ``python benchmarks/study_job.py [--pairs 25 50 100] [--tasks 100] [--items 1000]``

Each size runs in a process of its own, from Samples Parquet in random order, with a log before for
every pair. Then one log is changed and the study runs again. Prints the table of
benchmarks/study.md; exits with 1 if a bar is missed. Bars are in processor seconds over all cores,
as other work on the machine does not change those much. Products of matrices run on one core here:
on a busy machine their threads wait for each other at full speed, and that would be counted.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

MOST_SECONDS = 60.0
MOST_AGAIN = 5.0
MOST_GIGABYTES = 3.0
MOST_GROWTH = 2.4
"""Times the processor seconds, each time the pairs double."""
BARRED = 100
"""Pairs of the size that the bars are for."""
LOST, GAINED = 0.06, 0.05

CHILD = """
import json, resource, sys, time
from forgetmap.study.build import run_study
start, used = time.perf_counter(), time.process_time()
found = run_study(sys.argv[1])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
print(json.dumps({"seconds": time.perf_counter() - start, "cpu": time.process_time() - used,
                  "peak": peak, "pairs": len(found.pairs), "items": found.pairs[0].old.n}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure forgetmap study.")
    parser.add_argument("--pairs", type=int, nargs="+", default=[25, 50, 100])
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--items", type=int, default=1000, help="items of each task")
    asked = parser.parse_args()
    print("# Study\n")
    print(
        f"Made by `python benchmarks/study_job.py`: {asked.tasks} tasks x {asked.items:,} items, a "
        f"log before for every pair, on a machine with {os.cpu_count()} cores. `again` is a second "
        "run after one log changed.\n"
    )
    print(f"Load average at the start: {os.getloadavg()[0]:.1f}\n")
    names = ("pairs", "rows a side", "seconds", "processor seconds", "peak memory GB")
    names = (*names, "seconds again", "processor seconds again")
    print(f"| {' | '.join(names)} |\n|{' --- |' * len(names)}")
    rows: dict[int, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory(prefix="forgetmap-bench-") as folder:
        make = Maker(Path(folder), asked.tasks, asked.items)
        for pairs in sorted(asked.pairs):
            rows[pairs] = turns = measured(make, pairs)
            first, again = turns
            assert first["pairs"] == again["pairs"] == pairs
            cells = [f"{pairs * first['items']:,}", *_numbers(first), f"{first['peak']:.2f}"]
            print(f"| {pairs} | {' | '.join([*cells, *_numbers(again)])} |", flush=True)
    sys.exit(0 if held(rows) else 1)


def _numbers(found: dict[str, Any]) -> list[str]:
    return [f"{found[name]:.1f}" for name in ("seconds", "cpu")]


def measured(make: Maker, pairs: int) -> list[dict[str, Any]]:
    """A first run, and one after a log changed."""
    turns = []
    study = make.study(pairs)
    for again in (False, True):
        if again:
            make.log(f"after-{pairs - 1}.parquet", seed=12345)
        done = subprocess.run(
            [sys.executable, "-c", CHILD, str(study)],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        )
        turns.append(json.loads(done.stdout))
    return turns


def held(rows: dict[int, list[dict[str, Any]]]) -> bool:
    """Whether all bars hold, each of which is printed."""
    bars = []
    if BARRED in rows:
        first, again = rows[BARRED]
        bars += [
            (f"{BARRED} pairs: under {MOST_SECONDS:.0f} processor seconds", first["cpu"],
             MOST_SECONDS),
            (f"{BARRED} pairs: under {MOST_GIGABYTES:.0f} GB", first["peak"], MOST_GIGABYTES),
            (f"{BARRED} pairs, one log changed: under {MOST_AGAIN:.0f} processor seconds",
             again["cpu"], MOST_AGAIN),
        ]  # fmt: skip
    bars += [
        (f"{half} to {pairs} pairs: at most {MOST_GROWTH} x the work",
         rows[pairs][0]["cpu"] / rows[half][0]["cpu"], MOST_GROWTH)
        for half, pairs in zip(list(rows), list(rows)[1:], strict=False)
        if pairs == 2 * half
    ]  # fmt: skip
    print("\n| bar | measured | verdict |\n| --- | --- | --- |")
    for what, number, most in bars:
        print(f"| {what} | {number:.2f} | {'PASS' if number <= most else 'MISS'} |")
    return all(number <= most for _, number, most in bars)


class Maker:
    """Writes logs of which pairs are made; all ask the same items."""

    def __init__(self, folder: Path, tasks: int, items: int) -> None:
        from forgetmap.samples.identity import content_hash

        self.folder = folder
        self.known = np.random.default_rng(0).random(tasks * items) < 0.7
        keys = [content_hash(f"{task}-{item}") for task in range(tasks) for item in range(items)]
        self.keys = pa.array(np.array(keys, np.uint64))
        number = np.repeat(np.arange(tasks), items)
        self.tasks = pa.array([f"subject_{n:03d}" for n in range(tasks)]).take(pa.array(number))
        self.references = pa.array([f"{n}" for n in range(tasks * items)])

    def study(self, pairs: int) -> Path:
        """A study of so many pairs; logs that are there are not written again."""
        lines = ["task_map: categories.csv", "pairs:"]
        (self.folder / "categories.csv").write_text(
            "\n".join(
                ["task,category", *(f"{name},group {n % 8}" for n, name in enumerate(self.names()))]
            )
        )
        for pair in range(pairs):
            for side in ("before", "after"):
                name = f"{side}-{pair}.parquet"
                if not (self.folder / name).exists():
                    self.log(name, seed=2 * pair + (side == "after"))
            attributes = f"family: f{pair % 5}, size: {2 ** (pair // 5 % 4)}B, seed: {pair % 2}"
            kinds = f"method: m{pair // 20 % 3}, stage: {'instruct' if pair % 3 else 'domain'}"
            lines.append(
                f"- {{before: before-{pair}.parquet, after: after-{pair}.parquet, {attributes}, "
                f"{kinds}, name: pair-{pair}}}"
            )
        file = self.folder / str(pairs) / "study.yaml"
        file.parent.mkdir(exist_ok=True)
        text = "\n".join(lines).replace("before: ", "before: ../").replace("after: ", "after: ../")
        file.write_text(text.replace("task_map: ", "task_map: ../"), encoding="utf-8")
        return file

    def names(self) -> list[str]:
        """All tasks."""
        return list(dict.fromkeys(self.tasks.to_pylist()))

    def log(self, name: str, seed: int) -> None:
        """A log of one model: most of what the first one knew, and a little more."""
        from forgetmap.samples.table import Meta, Samples, complete

        rng = np.random.default_rng(seed)
        luck = rng.random(len(self.known))
        right = np.where(self.known, luck >= LOST, luck < GAINED)
        batch = complete(
            {
                "model": pa.array([name] * len(right)),
                "task": self.tasks,
                "item": self.keys,
                "item_ref": self.references,
                "score": pa.array(right.astype(float)),
            }
        )
        shuffled = batch.take(pa.array(rng.permutation(len(right))))
        Samples.collect([shuffled], Meta(harness="made")).write(self.folder / name)


if __name__ == "__main__":
    main()
