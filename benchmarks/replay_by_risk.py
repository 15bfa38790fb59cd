"""Replay by forecast, by the map of a finished training, or at random: what is kept?

    python examples/study/prepare.py work/data
    python benchmarks/replay_by_risk.py work    # writes benchmarks/replay_by_risk.md

SmolLM2 learns 80 airports three times in each way, with the same number of old questions beside
them. The old questions come from the half of atlas that is never asked. Each run takes about ten
minutes of two processor cores; runs that are there are not done again.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import numpy as np
import yaml

import forgetmap
from forgetmap.evaluate.fetch import fetch_model
from forgetmap.evaluate.run import evaluate
from forgetmap.mitigate.forecast.build import forecast
from forgetmap.mitigate.replay.build import PROMPTS, build_replay
from forgetmap.mitigate.train.recipes import Materials, Recipe, Replayed, train

SEEDS, BUDGET, ASKED = (0, 1, 2), 120, 25
SIZE = {"steps": 60, "batch": 4, "learning_rate": 2e-4, "save_every": 20, "longest": 64}
PAGE = Path(__file__).with_suffix(".md")


def main(work: Path) -> None:
    base = work / "base"
    if not base.is_dir():
        fetch_model("smollm2", base)
    taught = _rows(work / "data" / "airports.jsonl")[:80]
    before = _log(base, work)
    train(Recipe(**SIZE), base, Materials(taught), work / "plain")
    forgetmap.compare(
        before, _log(work / "plain", work), task_map=before / "tasks.csv", save=work / "map-plain"
    )
    pool = _pool(work)
    forecast(before, task_map=before / "tasks.csv", out=work / "risks.parquet")
    ways = {
        "forecast": {"saved": None, "risks": work / "risks.parquet"},
        "map of a finished training": {"saved": work / "map-plain"},
    }
    lost: dict[str, list[float]] = {}
    for seed in SEEDS:
        for name in (*ways, "random"):
            old = _at_random(pool, seed) if name == "random" else _drawn(work, name, ways, pool)
            out = work / f"{name.split()[0]}-{seed}"
            recipe = Replayed(**SIZE, seed=seed, share=0.25, old_batch=4)
            train(recipe, base, Materials(taught, old), out)
            result = forgetmap.compare(before, _log(out, work))
            lost.setdefault(name, []).append(result.total.lost.value)
            print(name, seed, result.total.lost.value, flush=True)
    PAGE.write_text(_page(lost), encoding="utf-8")


def _log(model: Path, work: Path) -> Path:
    log = work / f"{model.name}-log"
    evaluate(str(model), str(work / "data" / "old.yaml"), log, tasks=["atlas_*"], limit=ASKED)
    return log


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        found = [json.loads(line) for line in file]
    return [{name: row[name] for name in ("prompt", "completion")} for row in found]


def _pool(work: Path) -> Path:
    """The half of atlas that is never asked, as training examples."""
    described = yaml.safe_load((work / "data" / "anchor.yaml").read_text(encoding="utf-8"))
    pool = work / "pool.jsonl"
    with pool.open("w", encoding="utf-8") as file:
        for task in described["tasks"]:
            source = work / "data" / task["file"]
            for line in source.read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                asked = row.get("question") or row["prompt"]
                answer = row.get("answer") or row["target"]
                example = {"prompt": f"{asked}\nAnswer:", "completion": f" {answer}"}
                file.write(json.dumps({**example, "task": task["name"]}) + "\n")
    return pool


def _drawn(work: Path, name: str, ways: dict, pool: Path) -> list[dict[str, str]]:
    out = work / f"replay-{name.split()[0]}"
    build_replay(
        ways[name]["saved"],
        out,
        BUDGET,
        risks=ways[name].get("risks"),
        logs=[work / "base-log"],
        pool=pool,
    )
    return _rows(out / PROMPTS)


def _at_random(pool: Path, seed: int) -> list[dict[str, str]]:
    return random.Random(seed).sample(_rows(pool), BUDGET)


def _page(lost: dict[str, list[float]]) -> str:
    lines = [
        "# Replay by forecast, by map, at random\n",
        f"`python benchmarks/replay_by_risk.py work` writes this page: {len(SEEDS)} seeds, "
        f"{BUDGET} old examples each.\n",
        "| replay by | lost | less than random |",
        "| --- | --- | --- |",
    ]
    for name, values in lost.items():
        less = np.array(lost["random"]) - np.array(values)
        reach = 4.303 * less.std(ddof=1) / np.sqrt(len(less))  # t with two degrees of freedom
        told = f"{100 * less.mean():.1f} ({100 * (less.mean() - reach):.1f} to "
        told += f"{100 * (less.mean() + reach):.1f})"
        lines.append(f"| {name} | {100 * np.mean(values):.1f} % | {told} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
