"""Helpers of the makers: a clean environment, folders, and the blanking of machine facts."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

MAKE_DIR = Path(__file__).resolve().parent
DATA_DIR = MAKE_DIR.parent
PATH_PATTERN = re.compile(r"/(root|work|tmp|home)/")


def offline_environment(work: Path) -> dict[str, str]:
    """The caller's environment with every hub switched off and caches inside ``work``."""
    env = dict(os.environ)
    env.update(
        HF_HUB_OFFLINE="1",
        HF_DATASETS_OFFLINE="1",
        TRANSFORMERS_OFFLINE="1",
        HF_HOME=str(work / "hf"),
        HF_DATASETS_CACHE=str(work / "hf" / "datasets"),
        TOKENIZERS_PARALLELISM="false",
        CUDA_VISIBLE_DEVICES="",
        OMP_NUM_THREADS="1",
    )
    return env


def run(command: list[str], work: Path) -> None:
    """Run a harness in ``work``; a failure shows the end of its output."""
    done = subprocess.run(
        command,
        cwd=work,
        env=offline_environment(work),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{command} ended with {done.returncode}\n{done.stdout[-4000:]}")


def assert_no_paths(folder: Path) -> None:
    """Refuse text files that still hold a path of the machine."""
    for path in sorted(folder.rglob("*")):
        if path.suffix in {".json", ".jsonl"}:
            found = PATH_PATTERN.search(path.read_text(encoding="utf-8"))
            if found:
                raise RuntimeError(f"{path}: holds a path ({found.group(0)})")
