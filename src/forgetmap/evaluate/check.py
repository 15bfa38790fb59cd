"""Check a tuned model against its base in the time there is: ask ever more, and stop in time."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from forgetmap.base.errors import InputError
from forgetmap.evaluate.models import Model, Running, open_after, open_model
from forgetmap.evaluate.prompts import Asking
from forgetmap.evaluate.questions import Suite
from forgetmap.evaluate.run import Evaluation, Progress, Questions, evaluate, load_suite

_FIRST = 4
"""Questions of each task in the first round; every round asks twice as many."""


@dataclass(frozen=True)
class Checked:
    """Two models that were asked the same."""

    before: Evaluation
    after: Evaluation
    limit: int | None
    """Questions of each task; None where there was time for all of them."""


def check_models(
    before: str,
    after: str,
    out: str | Path,
    *,
    suite: Questions = "atlas",
    minutes: float = 10,
    asking: Asking | None = None,
    running: Running | None = None,
    progress: Progress = lambda _done, _all: None,
    clock: Callable[[], float] = time.monotonic,
) -> Checked:
    """Ask two models as many questions as fit into the time, into `OUT/before` and `OUT/after`.

    The model before is asked in rounds, each with twice as many questions of every task, until the
    next round would take it beyond half of the time. Then the model after is asked the same. The
    same call again goes on where this one stopped: finished answers cost no time.

    Args:
        before: A name that `open_model` understands.
        after: The same; or the folder of an adapter of the model before.
        suite: What to ask.
        minutes: For both models together. The model after may take longer than the one before.
        asking: How to ask; by default each model in its own form.
        running: Numbers, device and batch size.
        clock: Seconds that pass.
    """
    if not 0 < minutes < 60 * 24 * 7:
        raise InputError(f"--minutes {minutes:g}: must be above 0, and less than a week")
    asking, out = asking or Asking(chat=None), Path(out)
    loaded = load_suite(suite, asking.seed).made_once()
    if (Path(after) / "adapter_config.json").is_file():
        after = f"{before}+{after}"
    opened = open_model(before, running, chat=asking.chat)
    tuned = open_after(opened, after, running, chat=asking.chat)
    first, limit = _ask_in_rounds(
        opened, loaded, out / "before", asking, progress, clock, 60 * minutes / 2
    )
    del opened  # its weights are free, or lent
    seconds = dataclasses.replace(asking, seed=asking.seed + 1)  # other draws, as in two runs
    second = evaluate(tuned, loaded, out / "after", asking=seconds, limit=limit, progress=progress)
    return Checked(first, second, limit)


def _ask_in_rounds(
    model: Model,
    suite: Suite,
    out: Path,
    asking: Asking,
    progress: Progress,
    clock: Callable[[], float],
    seconds: float,
) -> tuple[Evaluation, int | None]:
    """Ask as much of each task as there is time for; the first round is asked in any case."""
    began = clock()
    most = max(len(task.questions()) for task in suite.tasks)
    limit = _FIRST
    while True:
        start = clock()
        whole = limit >= most
        done = evaluate(
            model, suite, out, asking=asking, limit=None if whole else limit, progress=progress
        )
        if whole:
            return done, None
        # What was found finished took no time, so a round of such answers tells nothing.
        more = _asked(suite, 2 * limit, asking) - _asked(suite, limit, asking)
        next_round = (clock() - start) * more / done.evaluated if done.evaluated else 0.0
        if clock() - began + next_round > seconds:
            return done, limit
        limit *= 2


def ask_in_time(
    model: str,
    suite: Questions,
    out: Path,
    *,
    seconds: float,
    asking: Asking,
    running: Running | None = None,
) -> int | None:
    """Ask a model as much as it answers in the time; how many of each task, None for all."""
    loaded = load_suite(suite, asking.seed).made_once()
    opened = open_model(model, running, chat=asking.chat)
    return _ask_in_rounds(
        opened, loaded, out, asking, lambda _done, _all: None, time.monotonic, seconds
    )[1]


def _asked(suite: Suite, limit: int, asking: Asking) -> int:
    return asking.repeats * sum(min(limit, len(task.questions())) for task in suite.tasks)
