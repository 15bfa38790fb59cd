"""Make the lighteval golden logs with the lighteval of the environment this runs in.

Usage: ``python make_lighteval.py --work BUILD_FOLDER``
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from common import DATA_DIR, MAKE_DIR, PATH_PATTERN, assert_no_paths, run
from items import task_rows
from tiny_model import build_models

TASK_FILES = {"0.10": "lighteval_tasks_0_10.py", "0.13": "lighteval_tasks_0_13.py"}
TASK_PREFIX = {"0.10": "custom|", "0.13": ""}
TASK_SUFFIX = {"0.10": "|0", "0.13": ""}
LAUNCHER = "lighteval_launch.py"
SEEDS = (0, 1, 2)


@dataclass(frozen=True)
class Run:
    """One call of the harness and the folder under the version that takes its output."""

    folder: str
    side: str
    tasks: tuple[str, ...]
    generation: str


def plan() -> list[Run]:
    """A greedy run of both tasks for each side, then three sampled runs of the letter task."""
    runs: list[Run] = []
    for side in ("before", "after"):
        tasks = ("fm_capitals|0", "fm_letters|0")
        runs.append(Run(f"{side}/greedy", side, tasks, "{temperature:0.0,seed:0}"))
        for seed in SEEDS:
            generation = f"{{temperature:0.6,top_p:0.95,seed:{seed}}}"
            runs.append(Run(f"{side}/seed{seed}", side, ("fm_letters|0",), generation))
    return runs


def empty_tiny_benchmarks() -> None:
    """Put an empty table where lighteval would fetch one from the web while it loads tasks."""
    spec = importlib.util.find_spec("lighteval")
    if spec is None or spec.origin is None:
        raise RuntimeError("lighteval is not installed here")
    root = Path(spec.origin).parent / "tasks"
    for folder in (root / "extended" / "tiny_benchmarks", root / "tasks"):
        if folder.is_dir():
            (folder / "tinyBenchmarks.pkl").touch()


def write_data(work: Path, side: str) -> None:
    """Write the folder that takes the place of a hub data set."""
    folder = work / "data" / "capitals"
    folder.mkdir(parents=True, exist_ok=True)
    rows = task_rows(side)["capitals"]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "test.jsonl").write_text(text, encoding="utf-8")


def assert_clean_parquet(folder: Path) -> None:
    """Refuse parquet files with a path of the machine in their data or metadata."""
    import pyarrow.parquet as pq

    for path in folder.rglob("*.parquet"):
        table = pq.read_table(path)
        text = json.dumps(table.to_pylist(), default=str) + str(table.schema.metadata)
        found = PATH_PATTERN.search(text)
        if found:
            raise RuntimeError(f"{path.name}: holds a path ({found.group(0)})")


def arguments_of(one: Run, series: str) -> list[str]:
    """Command line of lighteval for a run."""
    model = [f"model_name=tiny-{one.side}", "dtype=float32", "device=cpu", "batch_size=8"]
    if series == "0.13":
        model += ["override_chat_template=False", f"cache_dir=cache/{one.folder}"]
    model.append(f"generation_parameters={one.generation}")
    tasks = [f"{TASK_PREFIX[series]}{task}{TASK_SUFFIX[series]}" for task in one.tasks]
    return [
        "accelerate",
        ",".join(model),
        ",".join(tasks),
        "--custom-tasks",
        TASK_FILES[series],
        "--output-dir",
        f"out/{one.folder}",
        "--save-details",
    ]


def execute(runs: list[Run], work: Path, version: str) -> None:
    """Run lighteval for all of ``runs`` and copy what it wrote."""
    series = ".".join(version.split(".")[:2])
    write_data(work, "before")
    shutil.rmtree(work / "out", ignore_errors=True)
    shutil.rmtree(work / "cache", ignore_errors=True)
    calls = [arguments_of(one, series) for one in runs]
    (work / "runs.json").write_text(json.dumps(calls), encoding="utf-8")
    run([sys.executable, LAUNCHER, "runs.json"], work)
    for one in runs:
        target = DATA_DIR / "lighteval" / version / one.folder
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(work / "out" / one.folder, target)
        assert_no_paths(target)
        assert_clean_parquet(target)
        print(f"lighteval {version}: {one.folder} done")


def main() -> None:
    """Build the models, run the plan of the installed version."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="build folder, outside git")
    parser.add_argument("--only", nargs="*", default=[], help="folders to make, all when empty")
    args = parser.parse_args()
    work: Path = args.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    build_models(work)
    empty_tiny_benchmarks()
    version = importlib.metadata.version("lighteval")
    for name in (*TASK_FILES.values(), LAUNCHER):
        shutil.copy(MAKE_DIR / name, work / name)
    chosen = [one for one in plan() if not args.only or one.folder in args.only]
    execute(chosen, work, version)


if __name__ == "__main__":
    main()
