"""What does a short probe say about the training that follows? Writes benchmarks/probe.md.

    python benchmarks/replay_by_risk.py work    # makes the model, the forecast and the training
    python benchmarks/probe.py work

Two steps with another seed than the plain training of replay_by_risk.py stand beside the forecast:
which of them ranks the items better that the whole training then lost? One training of
one small model, on a processor: a demonstration.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from forgetmap.mitigate.forecast.build import read_risks
from forgetmap.mitigate.forecast.items import Floats
from forgetmap.mitigate.forecast.model import auc
from forgetmap.mitigate.forecast.probe import probe
from forgetmap.mitigate.train.recipes import Recipe
from forgetmap.pairing.two_logs import pair
from forgetmap.readers.framework import ReadOptions
from forgetmap.readers.registry import read_all
from forgetmap.stats.estimate import Estimate, interval
from replay_by_risk import SIZE, TAUGHT

PAGE = Path(__file__).with_suffix(".md")
DRAWS = 1000


def main(work: Path) -> None:
    taught = work / "taught.jsonl"
    lines = (work / "data" / "airports.jsonl").read_text(encoding="utf-8").splitlines()
    taught.write_text("\n".join(lines[:TAUGHT]) + "\n", encoding="utf-8")
    before, risks = work / "base-log", work / "risks.parquet"
    few = Recipe(**{**SIZE, "steps": 2}, seed=1)  # other batches than the training that follows
    suite = str(work / "data" / "old.yaml")
    found = probe(
        risks, before, work / "base", taught, suite, recipe=few, log=work / "probe-log"
    ).found
    told = read_risks(risks)
    table = told.table.to_pydict()
    keys = list(zip(table["task"], table["item"], strict=True))
    full, short = (_outcomes(before, work / f"{name}-log") for name in ("plain", "probe"))
    known = [at for at, key in enumerate(keys) if key in full and key in short and full[key][1]]
    lost = np.array([not full[keys[at]][2] for at in known])
    fall = np.array([short[keys[at]][0] for at in known])
    flip = np.array(table["flip"])[known]
    every = [full[key][0] for key in keys if key in full]
    happened = float(np.maximum(every, 0).mean())
    lines = [
        "# A short probe beside the forecast\n",
        f"`python benchmarks/probe.py work` writes this page: SmolLM2, {SIZE['steps']} steps on "
        f"{TAUGHT} airports, and a probe of {few.steps} steps with another seed. "
        f"{len(every):,} items, {len(known):,} known before, {int(lost.sum()):,} of them lost. "
        "Intervals of AUC are over items (bootstrap). One training.\n",
        "| | expected or found | AUC, known items |",
        "| --- | --- | --- |",
        f"| forecast | {interval(told.forecast.total.expected, ' %')} | {_ranked(flip, lost)} |",
        f"| probe | {interval(found.total.lost, ' %')} | {_ranked(fall, lost)} |",
        f"| both, by the mean of their ranks | | {_ranked(_ranks(flip) + _ranks(fall), lost)} |",
        f"| the training | {100 * happened:.1f} % | |",
    ]
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


def _outcomes(before: Path, after: Path) -> dict[tuple[str, int], tuple[float, bool, bool]]:
    """How far each item fell, and whether it was known before and after."""
    rows = pair(*read_all([before, after], ReadOptions())).outcomes().to_pylist()
    return {(r["task"], r["key"]): (r["fall"], bool(r["knew"]), bool(r["knows"])) for r in rows}


def _ranks(values: Floats) -> Floats:
    return np.argsort(np.argsort(values, kind="stable"), kind="stable").astype(float)


def _ranked(score: Floats, lost: NDArray[np.bool_]) -> str:
    """The AUC with its 95 % interval over items."""
    rng = np.random.default_rng(0)
    draws = [auc(score[at], lost[at]) for at in rng.integers(0, len(lost), (DRAWS, len(lost)))]
    low, high = np.quantile([value for value in draws if value is not None], [0.025, 0.975])
    whole = Estimate(value=auc(score, lost) or 0.0, low=float(low), high=float(high))
    return f"{whole.value:.2f} ({whole.low:.2f} to {whole.high:.2f})"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
