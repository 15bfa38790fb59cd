"""Ask 500 items in place of all: are totals unbiased, and how wide are their intervals?

    python benchmarks/chosen_items.py    # writes benchmarks/chosen_items.md

Items are drawn by forecasts of trainings that the forecast never saw (their new task taught in
their way was left out), many times for each training of the study. What all items really lost is
known.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from forgetmap.mitigate.forecast.items import Floats, read_history
from forgetmap.mitigate.forecast.sampling import (
    draw,
    estimate,
    expected,
    inclusion_chances,
    sizes,
)
from forgetmap.mitigate.forecast.validate import Told, forecast_unseen

ROOT = Path(__file__).resolve().parents[1]
STUDY = ROOT / "examples" / "study" / "study.yaml"
PAGE = Path(__file__).with_suffix(".md")
DRAWS = 100
BUDGETS = (250, 500, 900, 1000, 2000)
WAYS = {
    "by risk, with the past": ("regime", True),
    "by risk, without": ("regime", False),
    "by risk, other seeds of it known": ("training", True),
}
HEAD = """# Asking chosen items in place of all

`python benchmarks/chosen_items.py` writes this page: {trainings} trainings of [the study](../examples/study)
with {items:,} items each, {draws} draws for each training. *Width* is that of the interval beside
the interval of all items; both speak of items like these. *Within* says how often the interval
held what all items lost. *Limit* is the width that would be left if mean and spread of the loss
were known beforehand for every cell of forecast and chance: about the best that any draw and any
line can do with this forecast. *Other seeds of it known* draws by forecasts that left out the one
training alone, where the others had left out its new task taught in its way.

| drawn | items asked | bias | within | width | widest | limit |
| --- | --- | --- | --- | --- | --- | --- |
"""  # noqa: E501


def main() -> None:
    history = read_history(STUDY)
    rows = []
    for name, (never_saw, past) in WAYS.items():
        kept = list(forecast_unseen(history, never_saw, str, with_past=past, every=3))
        rows += [_row(name, kept, budget) for budget in BUDGETS]
    rows += [_row("at random", kept, budget, at_random=True) for budget in BUDGETS]
    items = len(kept[0].chance)
    head = HEAD.format(trainings=len(kept), items=items, draws=DRAWS)
    PAGE.write_text(head + "\n".join(rows) + "\n", encoding="utf-8")
    print("\n".join(rows))


def _row(name: str, told: list[Told], budget: int, at_random: bool = False) -> str:
    rng = np.random.default_rng(0)
    off, held, widths, best = list[float](), list[bool](), list[float](), list[float]()
    for each in told:
        loss, risk, many = each.training.loss, each.forecast.loss, len(each.chance)
        size = np.ones(many) if at_random else sizes(risk, each.chance)
        chances = inclusion_chances(size, budget)
        whole = loss.var(ddof=1) / many
        mine = []
        for _ in range(DRAWS):
            drawn = draw(chances, rng)
            asked = loss[drawn]
            line = expected(asked, drawn, chances, risk, each.chance)
            found = estimate(asked, drawn, chances, line)
            off.append(found.value - loss.mean())
            held.append(found.low <= loss.mean() <= found.high)
            mine.append((found.high - found.low) / (2 * 1.96 * np.sqrt(whole)))
        widths.append(float(np.mean(mine)))
        best.append(float(np.sqrt(1 + _least(loss, risk, each.chance, budget) / whole)))
    cells = (
        name,
        f"{budget:,}",
        f"{100 * np.mean(off):+.2f} points",
        f"{100 * np.mean(held):.1f} %",
        f"{np.mean(widths):.2f} x",
        f"{max(widths):.2f} x",
        "" if at_random else f"{np.mean(best):.2f} x",
    )
    return f"| {' | '.join(cells)} |"


def _least(loss: Floats, risk: Floats, chance: Floats, budget: int) -> float:
    """The variance that is left if everything but the single item is known.

    Items are put into cells by forecast and chance. Mean and spread of the loss in each cell are
    taken from all items, which nobody knows when the items are drawn, and items are drawn in
    proportion to the spread.
    """
    parts = (_tenths(risk / np.maximum(chance, 1e-6)), _tenths(chance))
    _, cell = np.unique(np.stack(parts), axis=1, return_inverse=True)
    count = np.bincount(cell)
    mean = np.bincount(cell, loss) / count
    spread = np.sqrt(np.bincount(cell, (loss - mean[cell]) ** 2) / count)[cell]
    chances = inclusion_chances(np.maximum(spread, 1e-6), budget)
    return float((spread**2 * (1 / chances - 1)).sum() / len(loss) ** 2)


def _tenths(values: Floats) -> NDArray[np.intp]:
    ranks: NDArray[np.intp] = np.argsort(np.argsort(values, kind="stable"), kind="stable")
    return ranks * 10 // len(values)


if __name__ == "__main__":
    main()
