"""Run lm_eval on one model and take the machine's description out of the result files.

Runs inside the working folder and names everything relative to it, so that no path of the machine
gets into the logs. With several seeds the tasks are run once per seed, into the same log folder.

    python evaluate.py MODEL_FOLDER LOG_FOLDER --tasks a,b,c [--seeds 1,2,3]
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

# Only these fields of the result file are changed: what they hold describes the machine.
MACHINE_FIELDS = ("pretty_env_info", "git_hash", "upper_git_hash")
ABSOLUTE_PATH = re.compile(r"/(root|work|tmp|home|Users|private|var|mnt)/")
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": "hf-home"}


def run_lm_eval(model: str, logs: str, tasks: str, seed: int | None) -> None:
    command = [sys.executable, "-m", "lm_eval", "run", "--model", "hf"]
    command += ["--model_args", f"pretrained={model},dtype=float32"]
    command += ["--device", "cpu", "--batch_size", "32", "--num_fewshot", "0"]
    command += ["--include_path", "tasks", "--tasks", *tasks.split(",")]
    command += ["--log_samples", "--output_path", logs]
    if seed is not None:
        command += ["--seed", str(seed)]
    subprocess.run(command, check=True, env={**os.environ, **OFFLINE})


def blank_machine_fields(path: Path) -> None:
    """Blank them in place, leaving the rest of the file byte for byte as lm_eval wrote it."""
    text = path.read_text(encoding="utf-8")
    for field in MACHINE_FIELDS:
        text = re.sub(rf'("{field}": )("(?:[^"\\]|\\.)*"|null)', r'\1""', text)
    json.loads(text)
    path.write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("logs")
    parser.add_argument("--tasks", required=True)
    parser.add_argument("--seeds", help="comma-separated; lm_eval's own seeds if not given")
    args = parser.parse_args()
    started = time.monotonic()
    seeds = [int(s) for s in args.seeds.split(",")] if args.seeds else [None]
    for seed in seeds:
        run_lm_eval(args.model, args.logs, args.tasks, seed)
    for path in sorted(Path(args.logs).rglob("*.json*")):
        if path.name.startswith("results_"):
            blank_machine_fields(path)
        if ABSOLUTE_PATH.search(path.read_text(encoding="utf-8")):
            raise SystemExit(f"{path} holds an absolute path")
    print(f"{args.model}: {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
