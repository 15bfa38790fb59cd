"""What a comparison could show, before anybody pays for it: power by simulation.

Models are made up with known chances: the model before as the log, or a usual spread, says; the
model after loses so much and gains as much elsewhere. Hundreds of such pairs are mapped at once,
each as a task of its own, with the estimators that maps use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forgetmap.base.errors import InputError
from forgetmap.base.model import Frozen
from forgetmap.base.version import __version__
from forgetmap.base.words import percent
from forgetmap.map.estimates import TaskEstimates
from forgetmap.pairing.metrics import choose_metric
from forgetmap.samples.table import THRESHOLD, Samples
from forgetmap.stats.patterns import MOMENTS, Patterns, item_moments
from forgetmap.stats.spread import high_limit, low_limit

Floats = NDArray[np.float64]
Chances = Callable[[np.random.Generator, int], Floats]
"""Draws the chances of being right of so many items, before."""
Evidence = Literal["options", "repeats", "one run", "deterministic"]
POWER = 0.8
_RUNS = 200
_KEPT = 0.2
"""An item that falls keeps this share of its chance."""
_MOST_ITEMS = 20_000_000
"""Simulated items at one time: runs times items."""


class Design(Frozen):
    """One way to measure, and what it can show."""

    items: int
    repeats: int
    evidence: Evidence
    seen: float
    """How often the loss is seen: what is surely lost is above the margin."""
    ruled_out: float
    """How often the loss is ruled out where nothing was lost."""
    answers: int
    """Answers to pay for, of both models together."""


class PowerPlan(Frozen):
    """What comparisons of some sizes can show."""

    schema_version: int = 1
    forgetmap_version: str = __version__
    loss: float
    margin: float
    gain: float
    accuracy: float
    spread: str
    """Where the chances of the model before come from."""
    simulated: int
    """Pairs a design; a share has a standard error of at most 0.5 / sqrt of it."""
    asked: Design
    smallest_seen: float | None
    """The smallest loss that the design sees four times out of five; None: not even a fifth, or
    all that the model can lose."""
    others: list[Design]


class Model(NamedTuple):
    """A model before training: how its chances of being right are spread."""

    chances: Chances
    accuracy: float
    words: str


def usual_model(accuracy: float = 0.5) -> Model:
    """Most items are nearly always right or nearly always wrong, some are in between.

    Example:
        >>> model = usual_model(0.6)
        >>> round(float(model.chances(np.random.default_rng(0), 100_000).mean()), 2)
        0.6
    """
    if not 0 < accuracy < 1:
        raise InputError(f"--accuracy {accuracy}: must be a fraction between 0 and 1")
    weight = 0.8
    words = f"a usual spread around {percent(accuracy, 0)} (beta distribution of weight {weight})"
    return Model(
        lambda rng, n: rng.beta(accuracy * weight, (1 - accuracy) * weight, n), accuracy, words
    )


def model_of_log(samples: Samples) -> tuple[Model, int, int, Evidence]:
    """The model that wrote a log, the items and repeats of the log, and what it can tell.

    Probabilities of options are taken as they are. From repeats the spread of the chances is
    fitted by its first two moments; from single runs only the accuracy is known.
    """
    right, golds = _scores(samples)
    if not right:
        raise InputError("the log holds no scores; nothing can be planned from it")
    repeats = int(np.median([len(scores) for scores in right.values()]))
    if len(golds) >= sum(map(len, right.values())):
        values = np.array(golds)
        model = Model(
            lambda rng, n: rng.choice(values, n), float(values.mean()), "the log's probabilities"
        )
        return model, len(right), repeats, "options"
    shares = np.array([np.mean(scores) for scores in right.values()])
    accuracy = float(np.clip(shares.mean(), 0.01, 0.99))
    if repeats < 2:
        return usual_model(accuracy), len(right), 1, "one run"
    runs = np.array([len(scores) for scores in right.values()], float)
    both = (shares * (shares * runs - 1) / np.maximum(runs - 1, 1))[runs > 1].mean()
    within = accuracy - both
    weight = float(np.clip(within / max(accuracy * (1 - accuracy) - within, 1e-9), 0.02, 50))
    words = f"the log's repeats (beta distribution of weight {weight:.2g})"
    fitted = Model(
        lambda rng, n: rng.beta(accuracy * weight, (1 - accuracy) * weight, n), accuracy, words
    )
    return fitted, len(right), repeats, "repeats"


def _scores(samples: Samples) -> tuple[dict[tuple[str, int | str], list[float]], list[float]]:
    """Right answers by item, and gold probabilities, in the metric that would be compared."""
    metrics: dict[str, set[str]] = {}
    for batch in samples.to_batches(["task", "metric"]):
        for task, metric in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            metrics.setdefault(task, set()).add(metric)
    chosen = {task: choose_metric(task, names) for task, names in metrics.items()}
    right: dict[tuple[str, int | str], list[float]] = {}
    golds: list[float] = []
    names = ["task", "metric", "item", "item_ref", "score", "gold_probability"]
    for batch in samples.to_batches(names):
        columns = (batch[name].to_pylist() for name in names)
        for task, metric, item, ref, score, gold in zip(*columns, strict=True):
            if metric != chosen[task] or score is None:
                continue
            right.setdefault((task, ref if item is None else item), []).append(
                float(score >= THRESHOLD)
            )
            if gold is not None:
                golds.append(gold)
    return right, golds


def plan(
    *,
    items: int,
    repeats: int = 1,
    loss: float = 0.02,
    evidence: Evidence | None = None,
    model: Model | None = None,
    gain: float | None = None,
    margin: float = 0.0,
    seed: int = 0,
) -> PowerPlan:
    """Say what a comparison can show, and what others could.

    Args:
        items: Items that both models answer.
        repeats: Runs of each model.
        loss: The loss to be seen, as a share of the items.
        evidence: `options`, `repeats`, `one run` or `deterministic`; by default from the repeats.
        model: The model before; by default a usual spread around one half.
        gain: What is gained elsewhere at the same time; by default as much as is lost.
        margin: Losses up to this size do not matter.
        seed: Seed of the simulation.

    Example:
        >>> result = plan(items=500, loss=0.05, evidence="options")
        >>> result.asked.seen > 0.9, result.asked.answers
        (True, 1000)
    """
    before = model or usual_model()
    rose = loss if gain is None else gain
    _check(items, repeats, loss, margin, rose, seed)
    kind: Evidence = evidence or ("repeats" if repeats > 1 else "one run")

    def design(items: int, repeats: int, kind: Evidence, fell: float) -> Design:
        lost, _ = _simulated(before, items, repeats, kind, fell, rose, seed)
        _, none = _simulated(before, items, repeats, kind, 0.0, rose, seed)
        return Design(
            items=items,
            repeats=repeats,
            evidence=kind,
            seen=float((lost > margin).mean()),
            ruled_out=float((none < loss).mean()),
            answers=2 * items * repeats,
        )

    others = [
        *((size, repeats, kind) for size in _sizes(items)),
        *(
            (items, runs, "repeats")
            for runs in (2, 3, 5, 8)
            if (runs, "repeats") != (repeats, kind)
        ),
        (items, 1, "options"),
    ]
    asked = (items, repeats, kind)
    return PowerPlan(
        loss=loss,
        margin=margin,
        gain=rose,
        accuracy=before.accuracy,
        spread=before.words,
        simulated=_runs(items),
        asked=design(*asked, loss),
        smallest_seen=_smallest(
            lambda fell: design(*asked, fell).seen, min(0.2, _most_lost(before.accuracy, rose))
        ),
        others=[design(*other, loss) for other in dict.fromkeys(others) if other != asked],
    )


def _check(items: int, repeats: int, loss: float, margin: float, gain: float, seed: int) -> None:
    if not 2 <= items <= 1_000_000:
        raise InputError(f"--items {items}: must be between 2 and 1,000,000")
    if not 1 <= repeats <= 20:
        raise InputError(f"--repeats {repeats}: must be between 1 and 20")
    if not 0 < loss < 1:
        raise InputError(f"--loss {loss}: must be a fraction between 0 and 1, such as 0.02")
    if not 0 <= margin < loss:
        raise InputError(f"--margin {margin}: must be smaller than the loss, {loss}")
    if not 0 <= gain < 1:
        raise InputError(f"--gain {gain}: must be a fraction between 0 and 1, such as 0.02")
    if seed < 0:
        raise InputError(f"--seed {seed}: must not be negative")


def _sizes(items: int) -> list[int]:
    return [
        size for size in (items // 4, items // 2, items * 2, items * 4) if 20 <= size <= 200_000
    ]


def _runs(items: int) -> int:
    return int(min(_RUNS, max(20, _MOST_ITEMS // items)))


def _most_lost(accuracy: float, gained: float) -> float:
    """Nearly the most that a model can lose while it gains so much elsewhere; see `_changed`."""
    fall = 1 - _KEPT
    return 0.9 * fall * accuracy * max(1 - gained / (fall * max(1 - accuracy, 1e-9)), 0.0)


def _smallest(seen: Callable[[float], float], most: float) -> float | None:
    """The smallest loss up to `most` that is seen with `POWER`, to a twentieth of itself."""
    low, high = 0.0, most
    if seen(high) < POWER:
        return None
    while high - low > max(high / 20, 0.0005):
        middle = (low + high) / 2
        low, high = (low, middle) if seen(middle) >= POWER else (middle, high)
    return high


def _simulated(
    model: Model, items: int, repeats: int, kind: Evidence, lost: float, gained: float, seed: int
) -> tuple[Floats, Floats]:
    """Lower limits of what is surely lost and upper limits of what can be, pair by pair."""
    rng = np.random.default_rng(seed)
    runs = _runs(items)
    p = model.chances(rng, runs * items)
    q = _changed(p, lost, gained, rng)
    pair = np.repeat(np.arange(runs), items)
    if kind == "options":
        patterns = _probable(pair, p, q, runs)
    else:
        if kind == "deterministic":
            p = (rng.random(len(p)) < p).astype(float)
            q = _flipped(p, lost, gained, rng)
        patterns = _counted(pair, rng.binomial(repeats, p), rng.binomial(repeats, q), repeats)
    table = TaskEstimates(patterns, deterministic=kind == "deterministic")
    ends = table.estimate(np.arange(runs), runs).lost
    low = np.max([low_limit(bound) for bound in ends.sure], axis=0)
    return low, high_limit(ends.most)


def _changed(p: Floats, lost: float, gained: float, rng: np.random.Generator) -> Floats:
    """Some items fall to a fifth of their chance, others rise to a fifth of what is missing."""
    place, fall = rng.random(len(p)), 1 - _KEPT
    falls = lost / (fall * max(float(p.mean()), 1e-9))
    rises = gained / (fall * max(float(1 - p.mean()), 1e-9))
    if falls + rises > 1:
        raise InputError(
            f"a loss of {percent(lost)} and a gain of {percent(gained)} are more than this model "
            "could show"
        )
    return np.where(place < falls, p * _KEPT, np.where(place > 1 - rises, 1 - (1 - p) * _KEPT, p))


def _flipped(p: Floats, lost: float, gained: float, rng: np.random.Generator) -> Floats:
    """Models without noise: some known items are lost, some others gained."""
    known = max(float(p.mean()), 1e-9)
    place = rng.random(len(p))
    falls, rises = place < lost / known, place < gained / max(1 - known, 1e-9)
    return np.where(p > 0, np.where(falls, 0.0, 1.0), np.where(rises, 1.0, 0.0))


def _counted(
    pair: NDArray[np.intp], before: NDArray[np.int64], after: NDArray[np.int64], runs: int
) -> Patterns:
    shape = (int(pair[-1]) + 1, runs + 1, runs + 1)
    counts = np.bincount(
        np.ravel_multi_index((pair, before, after), shape), minlength=np.prod(shape)
    )
    seen = np.flatnonzero(counts)
    which, right_before, right_after = np.unravel_index(seen, shape)
    one = np.ones(len(seen))
    return Patterns(
        _names(which), one * np.inf, -one, one * runs, one * right_before, one * runs,
        one * right_after, one * counts[seen], np.zeros((len(seen), MOMENTS)),
    )  # fmt: skip


def _probable(pair: NDArray[np.intp], p: Floats, q: Floats, runs: int) -> Patterns:
    sums = np.zeros((runs, MOMENTS))
    np.add.at(sums, pair, item_moments(p, q))
    one = np.ones(runs)
    n = np.bincount(pair, minlength=runs).astype(float)
    right = [np.bincount(pair, side, minlength=runs) / n > 0.5 for side in (p, q)]
    return Patterns(
        _names(np.arange(runs)), 4 * one, -one, one, right[0] * one, one, right[1] * one, n, sums
    )


def _names(numbers: NDArray[np.intp]) -> NDArray[np.str_]:
    """Names that sort as their numbers do."""
    return np.char.zfill(numbers.astype(int).astype(str), 9)
