"""A short probe: a few steps on the new data, and what they already cost. Then it is thrown away.

It says how hard the new data pull and at which items, which no log before can say. The curves that
turn it into risks were fitted to probes of this length.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from forgetmap.evaluate.models import Running
from forgetmap.evaluate.run import Questions, evaluate, load_suite
from forgetmap.mitigate.forecast.build import Forecast, forecast
from forgetmap.mitigate.forecast.items import Log
from forgetmap.mitigate.forecast.model import Probed
from forgetmap.mitigate.forecast.sampling import choose, chosen_suite, weigh
from forgetmap.mitigate.train.recipes import Materials, Recipe, train
from forgetmap.mitigate.train.runs import read_rows

SHORT = Recipe(steps=16, batch=16)
"""The training of a probe, as in those that the bundled curves were fitted to."""


def probe(
    risks: str | Path,
    before: Log,
    model: str | Path,
    data: str | Path,
    suite: Questions,
    *,
    recipe: Recipe = SHORT,
    log: str | Path | None = None,
    running: Running | None = None,
    seed: int = 0,
) -> Probed:
    """Train a model for a few steps on the new data, and ask what it lost already.

    Args:
        risks: A forecast that `forecast --out` wrote; its items are asked.
        before: The log that the forecast was made of.
        model: The model before, a folder of weights.
        data: The new training data as JSON lines, in a form that `forgetmap train` takes.
        suite: The questions of the log.
        recipe: How to train; 16 steps by default. Its learning rate should be that of the training.
        log: Keep the answers in this folder. The weights are thrown away in any case.

    Example:
        >>> probe("nowhere.parquet", "before", "model", "new.jsonl", "atlas")
        Traceback (most recent call last):
        ...
        forgetmap.base.errors.InputError: nowhere.parquet: no such file; make it with ...
    """
    chosen = choose(risks, None, seed)
    asked = chosen_suite(load_suite(suite, seed), chosen)
    rows = read_rows(data)
    with tempfile.TemporaryDirectory(prefix="forgetmap-probe-") as folder:
        made = train(recipe, model, Materials(rows), Path(folder) / "model")
        answers = Path(folder) / "answers" if log is None else Path(log)
        evaluate(str(made), asked, answers, running=running)
        found = weigh(chosen, before, answers)
    return Probed(
        model=str(model), steps=recipe.steps, learning_rate=recipe.learning_rate, found=found
    )


def forecast_by_probe(
    before: Log,
    model: str | Path,
    data: str | Path,
    suite: Questions,
    out: str | Path,
    *,
    learning_rate: float | None = None,
    **how: Any,
) -> Forecast:
    """Forecast what a training will cost from a few steps of it: risks that know a probe.

    Args:
        out: Write a row for each item to this Parquet file.
        learning_rate: That of the training; 5e-5 by default.
        how: Further arguments of `forecast`.

    Example:
        >>> forecast_by_probe("nowhere", "model", "new.jsonl", "atlas", "risks.parquet")
        Traceback (most recent call last):
        ...
        forgetmap.base.errors.InputError: nowhere: ...
    """
    recipe = replace(SHORT, learning_rate=learning_rate) if learning_rate else SHORT
    how |= {"trained_on": data, "out": out}
    forecast(before, **how)
    with tempfile.TemporaryDirectory(prefix="forgetmap-probe-") as folder:
        answers = Path(folder) / "answers"
        found = probe(out, before, model, data, suite, recipe=recipe, log=answers)
        told = forecast(before, probe=answers, **how)
    return told.model_copy(update={"probe": found})
