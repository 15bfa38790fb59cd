"""Ask 500 items in place of all: are totals unbiased, and how wide are their intervals?

    python benchmarks/chosen_items.py    # writes benchmarks/chosen_items.md

Items are drawn by forecasts of trainings that the forecast never saw (their new task taught in
their way was left out), many times for each training of the study. What all items really lost is
known.

While a model is trained, totals can lean on the last check that asked all items. Eight trainings of
the study were looked at every 50 or 200 steps with 336 old items. 5,000 items are drawn from these
with replacement, each with all it went through, and 500 of the 5,000 are asked.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forgetmap.mitigate.forecast.items import (
    Floats,
    History,
    Items,
    find,
    read_history,
    read_items,
)
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
PROBES = ROOT / "examples" / "study" / "logs" / "probes"
LOGS = ROOT / "examples" / "study" / "logs"
COURSES = (
    (250, 300), (250, 350), (250, 450), (500, 550), (500, 600),
    (50, 600), (150, 600), (200, 600), (300, 600), (350, 600), (400, 600), (450, 600),
)  # fmt: skip
"""Steps of a check of all items, and of the one that leans on it: as `full_every=5` makes them
with a check every 50 steps, and then ever closer to the end."""
POPULATION, ASKED = 5_000, 500
MENDED = {
    "smollm2": ("airports-sft-0", "airports-repair-domain-0"),
    "gemma3-270m": ("airports-sft-1", "airports-repair-domain-1"),
}
"""A finished training whose items were all asked, and 150 more steps on old data after it."""
LEANING = """
## While a model is trained: leaning on the last check of all items

{trainings} trainings that were looked at with {items} old items: seven of SmolLM2 every 50 of
their 600 steps, one of Gemma every 200. {population:,} items are drawn from these with
replacement, each with all it went through, and {asked} are asked, {draws} draws for each training.
*Without it* has the forecast alone. *150 more steps* are two trainings with all of their items:
plain training was checked at its end, and then repaired on old data.

| last check of all items | now | trainings | items | bias | within | width | widest | without it |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""
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
    leaning = _leaning(history)
    PAGE.write_text(head + "\n".join(rows) + "\n" + leaning, encoding="utf-8")
    print("\n".join(rows) + leaning)


class Course(NamedTuple):
    """What items went through in one training: their chances by step, and their forecast."""

    risk: Floats
    chance: dict[int, Floats]

    def drawn(self, many: int) -> Course:
        """So many items, drawn with replacement."""
        place = np.random.default_rng(1).integers(0, len(self.risk), many)
        return Course(self.risk[place], {at: one[place] for at, one in self.chance.items()})


def _leaning(history: History) -> str:
    """The table of draws that lean on a check of all items."""
    told = {
        one.training.name: (history.models[one.training.model], one)
        for one in forecast_unseen(history, "regime", str)
    }
    courses = [
        _course(*told[folder.name], {int(log.stem[5:]): log for log in folder.glob("step-*")})
        for folder in sorted(PROBES.iterdir())
    ]
    wide = [course.drawn(POPULATION) for course in courses]
    rows = [_leaning_row(f"step {a}", f"step {b}", wide, a, b) for a, b in COURSES]
    mended = []
    for family, (plain, repaired) in MENDED.items():
        names = (f"{family}-before", f"{family}-{plain}", f"{family}-{repaired}")
        logs = {at: LOGS / f"{name}.parquet" for at, name in enumerate(names)}
        mended.append(_course(*told[names[2]], logs))
    rows.append(_leaning_row("the end", "150 more steps", mended, 1, 2))
    head = LEANING.format(
        trainings=len(courses), items=len(courses[0].risk),
        population=POPULATION, asked=ASKED, draws=DRAWS,
    )  # fmt: skip
    return head + "\n".join(rows) + "\n"


def _course(items: Items, told: Told, logs: dict[int, Path]) -> Course:
    """The items that all logs of a training and its forecast have."""
    mine = items.only(told.training.place)
    found = {at: read_items(log) for at, log in logs.items()}
    there = np.all([find(one, mine)[1] for one in found.values()], axis=0)
    chances = {at: one.chance[find(one, mine)[0]][there] for at, one in found.items()}
    return Course(told.forecast.loss[there], chances)


def _leaning_row(seen: str, now: str, courses: list[Course], then: int, at: int) -> str:
    rng = np.random.default_rng(0)
    off, held, widths, plain = list[float](), list[bool](), list[float](), list[float]()
    courses = [course for course in courses if {then, at} <= course.chance.keys()]
    for course in courses:
        before = course.chance[0]
        loss = np.maximum(before - course.chance[at], 0)
        lost = np.maximum(before - course.chance[then], 0)
        chances = inclusion_chances(sizes(course.risk, before), ASKED)
        for kept, known in ((widths, [lost]), (plain, [])):
            mine = []
            for _ in range(DRAWS):
                drawn = draw(chances, rng)
                line = expected(loss[drawn], drawn, chances, course.risk, before, *known)
                found = estimate(loss[drawn], drawn, chances, line)
                mine.append((found.high - found.low) / _width(loss))
                if known:
                    off.append(found.value - loss.mean())
                    held.append(found.low <= loss.mean() <= found.high)
            kept.append(float(np.mean(mine)))
    cells = (
        seen, now, str(len(courses)), f"{len(loss):,}",
        f"{100 * np.mean(off):+.2f} points", f"{100 * np.mean(held):.1f} %",
        f"{np.mean(widths):.2f} x", f"{max(widths):.2f} x", f"{np.mean(plain):.2f} x",
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _width(loss: Floats) -> float:
    """The interval of all items."""
    return float(2 * 1.96 * np.sqrt(loss.var(ddof=1) / len(loss)))


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
