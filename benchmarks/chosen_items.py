"""Ask 500 items in place of all: are totals unbiased, and how wide are their intervals?

    python benchmarks/chosen_items.py    # writes benchmarks/chosen_items.md

Items are drawn by forecasts of trainings that the forecast never saw (their new task taught in
their way was left out), many times for each training of the study. What all items really lost is
known.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from forgetmap.mitigate.forecast.items import read_history
from forgetmap.mitigate.forecast.sampling import draw, estimate, inclusion_chances, sizes
from forgetmap.mitigate.forecast.validate import Told, forecast_unseen

ROOT = Path(__file__).resolve().parents[1]
STUDY = ROOT / "examples" / "study" / "study.yaml"
PAGE = Path(__file__).with_suffix(".md")
DRAWS = 100
BUDGETS = (250, 500, 1000, 2000)
HEAD = """# Asking chosen items in place of all

`python benchmarks/chosen_items.py` writes this page: {trainings} trainings of [the study](../examples/study)
with {items:,} items each, {draws} draws for each training. *Width* is that of the interval beside
the interval of all items. *Within* says how often the interval held what all items lost.

| drawn | items asked | bias | within | width | widest |
| --- | --- | --- | --- | --- | --- |
"""  # noqa: E501


def main() -> None:
    history = read_history(STUDY)
    kept = list(forecast_unseen(history, "regime", str))[::3]
    plain = list(forecast_unseen(history, "regime", str, with_past=False))[::3]
    rows = []
    for name, told in (("by risk, with the past", kept), ("by risk, without", plain)):
        rows += [_row(name, told, budget) for budget in BUDGETS]
    rows += [_row("at random", kept, budget, at_random=True) for budget in BUDGETS]
    items = len(kept[0].chance)
    head = HEAD.format(trainings=len(kept), items=items, draws=DRAWS)
    PAGE.write_text(head + "\n".join(rows) + "\n", encoding="utf-8")
    print("\n".join(rows))


def _row(name: str, told: list[Told], budget: int, at_random: bool = False) -> str:
    rng = np.random.default_rng(0)
    off, held, widths = list[float](), list[bool](), list[float]()
    for each in told:
        loss, many = each.training.loss, len(each.chance)
        size = np.ones(many) if at_random else sizes(each.forecast.loss, each.chance)
        order = np.argsort(-each.forecast.loss, kind="stable")
        chances = inclusion_chances(size[order], budget)
        whole = 2 * 1.96 * loss.std(ddof=1) / np.sqrt(many)
        mine = []
        for _ in range(DRAWS):
            drawn = draw(chances, rng)
            found = estimate(loss[order][drawn], chances[drawn], many)
            off.append(found.value - loss.mean())
            held.append(found.low <= loss.mean() <= found.high)
            mine.append((found.high - found.low) / whole)
        widths.append(float(np.mean(mine)))
    cells = (
        name,
        f"{budget:,}",
        f"{100 * np.mean(off):+.2f} points",
        f"{100 * np.mean(held):.1f} %",
        f"{np.mean(widths):.2f} x",
        f"{max(widths):.2f} x",
    )
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
