"""Make the lm-eval golden logs with the lm-eval of the environment this runs in.

Usage: ``python make_lm_eval.py --work BUILD_FOLDER``
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from common import DATA_DIR, MAKE_DIR, assert_no_paths, run
from items import write_task_files
from tiny_model import build_models

BASE_TASKS = ("fm_capitals", "fm_elements", "fm_reordered", "fm_sums")
MORE_TASKS = ("fm_repeats", "fm_instructions", "fm_kinds", "fm_words")
NEWEST = "0.4.13"
BLANKED = ("pretty_env_info",)


@dataclass(frozen=True)
class Run:
    """One call of the harness and the folder under the version that takes its output."""

    folder: str
    side: str
    tasks: tuple[str, ...]
    options: tuple[str, ...] = ()


def plan(version: str) -> list[Run]:
    """Runs of a version: two in each, further ones in the newest."""
    newest = version == NEWEST
    tasks = BASE_TASKS + MORE_TASKS if newest else BASE_TASKS
    runs = [Run("before", "before", tasks), Run("after", "after", tasks)]
    if newest:
        for side in ("before", "after"):
            greedy = ("fm_sums",)
            runs.append(Run(f"{side}_seed7", side, greedy, ("--seed", "7")))
            runs.append(Run(f"{side}_chat", side, greedy, ("--apply_chat_template",)))
        runs.append(Run("after_limit", "after", ("fm_capitals",), ("--limit", "6")))
    return runs


def blank_machine(folder: Path) -> None:
    """Blank the dump of the machine that lm-eval writes into its results files."""
    for path in folder.rglob("results_*.json"):
        data = json.loads(path.read_text(encoding="utf-8"))
        for key in BLANKED:
            if key in data:
                data[key] = ""
        text = json.dumps(data, indent=2, ensure_ascii=False)
        path.write_text(text, encoding="utf-8")


def execute(one: Run, work: Path, version: str) -> None:
    """Run lm-eval once and copy what it wrote."""
    write_task_files(work / "data", one.side)
    out = work / "out" / one.folder
    shutil.rmtree(out, ignore_errors=True)
    command = [
        sys.executable,
        "-m",
        "lm_eval",
        "--model",
        "hf",
        "--model_args",
        f"pretrained=tiny-{one.side},dtype=float32",
        "--tasks",
        ",".join(one.tasks),
        "--include_path",
        "lm_eval_tasks",
        "--device",
        "cpu",
        "--batch_size",
        "8",
        "--log_samples",
        "--output_path",
        f"out/{one.folder}",
        *one.options,
    ]
    run(command, work)
    blank_machine(out)
    target = DATA_DIR / "lm_eval" / version / one.folder
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(out, target)
    assert_no_paths(target)


def main() -> None:
    """Build the models, run the plan of the installed version."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="build folder, outside git")
    parser.add_argument("--only", nargs="*", default=[], help="folders to make, all when empty")
    args = parser.parse_args()
    work: Path = args.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    build_models(work)
    shutil.copytree(MAKE_DIR / "lm_eval_tasks", work / "lm_eval_tasks", dirs_exist_ok=True)
    version = importlib.metadata.version("lm_eval")
    for one in plan(version):
        if args.only and one.folder not in args.only:
            continue
        execute(one, work, version)
        print(f"lm-eval {version}: {one.folder} done")


if __name__ == "__main__":
    main()
