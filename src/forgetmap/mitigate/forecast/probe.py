"""A short probe: a few steps on the new data, and what they already cost. Then it is thrown away.

It says how hard the new data pull, which no log before can say. It changes no risk of a forecast:
a few steps are not the training, so what it found is told beside.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from forgetmap.evaluate.models import Running
from forgetmap.evaluate.run import Questions, evaluate, load_suite
from forgetmap.mitigate.forecast.build import read_risks
from forgetmap.mitigate.forecast.items import Log
from forgetmap.mitigate.forecast.model import Probed
from forgetmap.mitigate.forecast.sampling import choose, chosen_suite, weigh, write_chosen
from forgetmap.mitigate.train.recipes import Materials, Recipe, train
from forgetmap.mitigate.train.runs import read_rows

SHORT = Recipe(steps=10, batch=8, longest=256)
"""The training of a probe."""
ASKED = 500
"""Items that are asked at most, drawn by risk."""


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
        risks: A forecast that `forecast --out` wrote; its risky items are asked more often.
        before: The log that the forecast was made of.
        model: The model before, a folder of weights.
        data: The new training data as JSON lines, in a form that `forgetmap train` takes.
        suite: The questions of the log.
        recipe: How to train; ten steps by default.
        log: Keep the answers in this folder. The weights are thrown away in any case.

    Example:
        >>> probe("nowhere.parquet", "before", "model", "new.jsonl", "atlas")
        Traceback (most recent call last):
        ...
        forgetmap.base.errors.InputError: nowhere.parquet: no such file; make it with ...
    """
    chosen = choose(risks, min(ASKED, len(read_risks(risks).table)), seed)
    asked = chosen_suite(load_suite(suite, seed), chosen)
    rows = read_rows(data)
    with tempfile.TemporaryDirectory(prefix="forgetmap-probe-") as folder:
        made = train(recipe, model, Materials(rows), Path(folder) / "model")
        answers = Path(folder) / "answers" if log is None else Path(log)
        evaluate(str(made), asked, answers, running=running)
        write_chosen(answers, chosen)
        found = weigh(chosen, before, answers)
    return Probed(
        model=str(model), steps=recipe.steps, learning_rate=recipe.learning_rate, found=found
    )
