"""Measure `forgetmap lineage`: time and memory against the number of checkpoints.

Usage: ``python benchmarks/lineage_job.py [--checkpoints 3 6 12 24] [--tasks 100] [--items 1000]``

Each size runs in a process of its own, reading Samples Parquet. Prints a table with seconds,
processor seconds and peak memory; exits with 1 if 12 checkpoints take more than 10 s or 1.5 GB.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

MOST_SECONDS = 10.0
MOST_GIGABYTES = 1.5
BARRED = 12
"""Checkpoints of the size that the bars are for."""
LOST, GAINED = 0.04, 0.06
"""Shares of items that flip at every stage."""

CHILD = """
import json, resource, sys, time
start, used = time.perf_counter(), time.process_time()
from forgetmap.api import lineage
found = lineage(sys.argv[1])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
print(json.dumps({"seconds": time.perf_counter() - start, "cpu": time.process_time() - used,
                  "peak": peak, "maps": len(found.comparisons),
                  "items": found.life_lines[0].items}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure forgetmap lineage.")
    parser.add_argument("--checkpoints", type=int, nargs="+", default=[3, 6, 12, 24])
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--items", type=int, default=1000, help="items of each task")
    arguments = parser.parse_args()
    print(f"Load average at the start: {os.getloadavg()[0]:.1f}\n")
    print("| checkpoints | maps | items | seconds | processor seconds | peak memory GB |")
    print("| --- | --- | --- | --- | --- | --- |")
    held = True
    with tempfile.TemporaryDirectory(prefix="forgetmap-bench-") as folder:
        pipelines = make_logs(
            Path(folder), sorted(arguments.checkpoints), arguments.tasks, arguments.items
        )
        for number, pipeline in pipelines.items():
            done = subprocess.run(
                [sys.executable, "-c", CHILD, str(pipeline)],
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            found = json.loads(done.stdout)
            print(
                f"| {number} | {found['maps']} | {found['items']:,} | {found['seconds']:.1f} | "
                f"{found['cpu']:.1f} | {found['peak']:.2f} |",
                flush=True,
            )
            if number == BARRED:
                held = found["seconds"] <= MOST_SECONDS and found["peak"] <= MOST_GIGABYTES
    sys.exit(not held)


def make_logs(folder: Path, sizes: list[int], tasks: int, items: int) -> dict[int, Path]:
    """Write one log per checkpoint, and a linear pipeline for every size."""
    from forgetmap.samples.table import SCHEMA, Meta, Samples

    rng = np.random.default_rng(0)
    count = tasks * items
    fixed = {
        "run": pa.nulls(count, pa.string()),
        "task": pa.array(np.repeat([f"task_{n:03d}" for n in range(tasks)], items)),
        "item": pa.array(rng.integers(0, 2**63, count, dtype=np.uint64)),
        "item_ref": pa.array(np.tile(np.arange(items), tasks)).cast(pa.string()),
        "repeat": pa.array(np.zeros(count, np.int32)),
        "metric": pa.array(np.full(count, "acc")),
        "status": pa.array(np.full(count, "ok")),
        "k": pa.array(np.full(count, 4, np.int32)),
    }
    known = rng.random(count) < 0.6
    for number in range(max(sizes)):
        values = fixed | {
            "model": pa.array(np.full(count, f"c{number:02d}")),
            "score": pa.array(known.astype(np.float64)),
            "correct": pa.array(known),
        }
        columns = [values.get(name, pa.nulls(count, SCHEMA.field(name).type)) for name in
                   SCHEMA.names]  # fmt: skip
        table = pa.Table.from_arrays(columns, schema=SCHEMA)
        table = table.take(pa.array(rng.permutation(count)))  # every log in an order of its own
        Samples(table, Meta(harness="benchmark")).write(folder / f"c{number:02d}.parquet")
        chance = rng.random(count)
        known = np.where(known, chance >= LOST, chance < GAINED)
    categories = "\n".join(f"task_{n:03d},category {n % 8}" for n in range(tasks))
    (folder / "tasks.csv").write_text(f"task,category\n{categories}\n")
    return {size: _pipeline(folder, size) for size in sizes}


def _pipeline(folder: Path, size: int) -> Path:
    lines = ["task_map: tasks.csv", "checkpoints:"]
    for number in range(size):
        lines += [f"  c{number:02d}:", f"    log: c{number:02d}.parquet", f"    steps: {number}"]
        lines += [f"    parents: c{number - 1:02d}"] if number else []
    path = folder / f"pipeline-{size}.yaml"
    path.write_text("\n".join(lines) + "\n")
    return path


if __name__ == "__main__":
    main()
