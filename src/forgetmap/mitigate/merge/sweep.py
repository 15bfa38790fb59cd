"""Merge at many weights, evaluate each, and see what each keeps of the old and of the new."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from forgetmap.base.errors import InputError
from forgetmap.base.files import make_folder, write_text
from forgetmap.base.json import read_json
from forgetmap.base.model import Frozen
from forgetmap.base.version import __version__
from forgetmap.base.words import some
from forgetmap.evaluate.models import Model, Running, open_model
from forgetmap.evaluate.prompts import Asking
from forgetmap.evaluate.questions import Suite
from forgetmap.evaluate.results import MANIFEST, SAMPLES, TASKS
from forgetmap.evaluate.run import Progress, evaluate, load_suite
from forgetmap.map.comparison import compare_logs
from forgetmap.map.result import ForgettingMap, Headline, Verdict
from forgetmap.map.task_maps import IGNORED, TaskMap, canonical
from forgetmap.mitigate.merge.adapters import is_adapter
from forgetmap.mitigate.merge.merging import LOW_RANK, How, check_mergeable, merge
from forgetmap.samples.identity import content_hash
from forgetmap.samples.table import Samples
from forgetmap.stats.estimate import Estimate, share

SWEEP_SCHEMA_VERSION = 1
_POINT = "point.json"
_MOST_POINTS = 101


class Point(Frozen):
    """One weight: what the merged model keeps of the model before, and what it gains."""

    weight: float
    parent: str | None
    """`before` or `after` where the merge would be that model; None for a real merge."""
    forgetting: Estimate
    """Against the model before, on the old tasks, by the headline estimator."""
    retained: Estimate | None
    """Share of the items that the model before got right and this one still does (old tasks)."""
    gain: Estimate
    """Accuracy on the new tasks minus that of the model before; without new tasks, 0 -> 1 flips."""
    new_accuracy: float | None
    """On the new tasks; None where none was named."""
    verdict: Verdict
    """Against the model before, on the old tasks."""
    lost_of_after: Estimate
    """Forgetting against the model after, on all tasks."""
    verdict_after: Verdict
    is_pareto: bool = False
    """No other point retains more and gains more."""


class Sweep(Frozen):
    """All points of a sweep, and the one that was chosen."""

    schema_version: int = SWEEP_SCHEMA_VERSION
    forgetmap_version: str = __version__
    before: str
    after: str
    method: str
    density: float | None
    scale: float
    seed: int
    suite: str
    old_tasks: list[str]
    new_tasks: list[str]
    headline: Headline
    points: list[Point]
    budget: float | None = None
    chosen: float | None = None
    """Weight of the chosen point; None where none was asked for or none fits."""
    folder: str | None = None
    """Where the chosen model lies."""


@dataclass(frozen=True)
class SweepQuestions:
    """What the models are evaluated on."""

    suite: str | Path | Suite
    asking: Asking = field(default_factory=Asking)
    running: Running = field(default_factory=Running)
    tasks: Sequence[str] = ()
    limit: int | None = None


def parse_weights(text: str) -> list[float]:
    """Read weights: START:STOP:STEP, both ends included, or a list with commas.

    Example:
        >>> parse_weights("0:1:0.25"), parse_weights("0.3,0.1")
        ([0.0, 0.25, 0.5, 0.75, 1.0], [0.1, 0.3])
    """
    try:
        if ":" in text:
            start, stop, step = (Decimal(part) for part in text.split(":"))
            if step <= 0 or stop < start or (stop - start) / step >= _MOST_POINTS:
                raise ValueError
            count = int((stop - start) / step) + 1
            weights = [float(start + step * place) for place in range(count)]
        else:
            weights = sorted({float(part) for part in text.split(",")})
        if not all(0 <= weight <= 1 for weight in weights):
            raise ValueError
    except (ValueError, InvalidOperation, OverflowError) as error:
        raise InputError(
            f"--sweep {text}: write START:STOP:STEP or a list, with weights from 0 to 1 and at "
            f"most {_MOST_POINTS} of them, e.g. 0:1:0.1"
        ) from error
    return weights


def sweep(
    before: str,
    after: str,
    out: str | Path,
    weights: Sequence[float],
    asked: SweepQuestions,
    *,
    how: How | None = None,
    base: str | None = None,
    new: Sequence[str] = (),
    budget: float | None = None,
    keep: bool = False,
    draws: int = 10_000,
    say: Callable[[str], None] = lambda _text: None,
    progress: Progress = lambda _done, _all: None,
) -> Sweep:
    """Merge two models at several weights, evaluate every merge, and map it against both parents.

    The same call again goes on where the last one was stopped: finished points are read, not made
    again. Merged weights are removed once evaluated; those of the chosen point stay.

    Args:
        before: The model before: a folder, or BASE+ADAPTER.
        after: The model after: a folder, BASE+ADAPTER, or an adapter for the model before.
        weights: Shares of the model after.
        how: Method, density, scale and seed; its weight is not used.
        base: What task vectors are measured from; by default the model before.
        new: Names of the tasks that are the new skill; `*` and `?` stand for any characters. All
            others are old knowledge.
        budget: Choose the point with the largest gain among those whose forgetting, at the high end
            of its interval, is within this share.
        keep: Keep the weights of every merge.
        say: Called with a few words on what is being done.
    """
    run = _Run(before, after, Path(out), asked, how or How(), base, say, progress, keep)
    sides = run.parents()
    split = Split.of(sides[0], run.out / "before" / TASKS, new)
    points, maps = [], []
    for weight in weights:
        parent = run.how_at(weight).parent(base is not None)
        samples = run.samples(weight, sides)
        point, made = measure(samples, sides, split, weight, parent, draws)
        run.write_maps(weight, made)
        points.append(point)
        maps.append(made)
    chosen = None if budget is None else choose(points, budget)
    return Sweep(
        before=sides[0].models[0],
        after=sides[1].models[0],
        method=run.how.method,
        density=run.how.kept if run.how.kept < 1 else None,
        scale=run.how.scale,
        seed=run.how.seed,
        suite=str(sides[0].settings.get("suite", "")),
        old_tasks=split.old_tasks,
        new_tasks=split.new_tasks,
        headline=maps[0]["before"].settings.headline,
        points=mark_pareto(points),
        budget=budget,
        chosen=chosen.weight if chosen else None,
        folder=run.folder_of(chosen) if chosen else None,
    )


@dataclass(frozen=True)
class Split:
    """Which tasks are old knowledge and which the new skill."""

    old: TaskMap
    new: TaskMap | None
    everything: TaskMap
    old_tasks: list[str]
    new_tasks: list[str]

    @classmethod
    def of(cls, samples: Samples, tasks: Path, new: Sequence[str]) -> Split:
        """Split the tasks of a run; a name that fits none is refused."""
        names = sorted({task for part in samples.to_batches(["task"])
                        for task in part["task"].to_pylist()})  # fmt: skip
        for pattern in new:
            if not any(fnmatchcase(name, pattern) for name in names):
                raise InputError(f"--new {pattern}: not among the tasks ({some(names)})")
        fresh = [name for name in names if any(fnmatchcase(name, pattern) for pattern in new)]
        old = [name for name in names if name not in fresh]
        if not old:
            raise InputError("--new: every task is new; leave some to see what is forgotten")
        whole = TaskMap.load(tasks)
        return cls(
            _without(whole, fresh), _without(whole, old) if fresh else None, whole, old, fresh
        )


def _without(whole: TaskMap, ignored: Sequence[str]) -> TaskMap:
    gone = {canonical(task) for task in ignored}
    rows = {
        key: (IGNORED, k) if key in gone else (category, k)
        for key, (category, k) in whole.rows.items()
    }
    return TaskMap(whole.name, rows)


def measure(
    samples: Samples,
    sides: tuple[Samples, Samples],
    split: Split,
    weight: float,
    parent: str | None,
    draws: int = 10_000,
) -> tuple[Point, dict[str, ForgettingMap]]:
    """One point from its answers and those of both parents; also its maps against them."""
    old = compare_logs(sides[0], samples, task_map=split.old, draws=draws).map
    against = compare_logs(sides[1], samples, task_map=split.everything, draws=draws).map
    fresh = (
        compare_logs(sides[0], samples, task_map=split.new, draws=draws).map if split.new else None
    )
    nothing = Estimate(value=0.0, low=0.0, high=0.0)
    is_before = parent == "before"  # the same answers: nothing to estimate
    gain = fresh.total.change if fresh else old.total.gained
    counts = old.total.counts
    known = counts.n11 + counts.n10
    items = max(1, round(known))
    point = Point(
        weight=weight,
        parent=parent,
        forgetting=nothing if is_before else old.total.forgot,
        retained=share(items * counts.n11 / known, items) if known else None,
        gain=nothing if is_before else gain,
        new_accuracy=fresh.total.accuracy_after if fresh else None,
        verdict=old.total.verdict,
        lost_of_after=nothing if parent == "after" else against.total.forgot,
        verdict_after=against.total.verdict,
    )
    return point, {"before": old, "after": against, **({"new": fresh} if fresh else {})}


def choose(points: Sequence[Point], budget: float) -> Point | None:
    """The point with the largest gain whose forgetting is surely within the budget.

    Surely: the high end of its 95 % interval is. The model before itself is not an answer. Of equal
    gains the one that forgets less is taken.
    """
    fitting = [
        point for point in points if point.parent != "before" and point.forgetting.high <= budget
    ]
    return max(fitting, key=lambda point: (point.gain.value, -point.forgetting.value), default=None)


def mark_pareto(points: Sequence[Point]) -> list[Point]:
    """Mark the points that no other beats, keeping and gaining as much, and one of them more."""
    places = [(point.retained.value if point.retained else 0.0, point.gain.value)
              for point in points]  # fmt: skip
    return [
        point.model_copy(
            update={
                "is_pareto": not any(
                    other != place and other[0] >= place[0] and other[1] >= place[1]
                    for other in places
                )
            }
        )
        for point, place in zip(points, places, strict=True)
    ]


@dataclass
class _Run:
    """The folder of a sweep: both parents' answers, and one folder per point."""

    before: str
    after: str
    out: Path
    asked: SweepQuestions
    how: How
    base: str | None
    say: Callable[[str], None]
    progress: Progress
    keep: bool
    _key: int = 0

    def __post_init__(self) -> None:
        if is_adapter(self.before):
            raise InputError(f"{self.before}: is an adapter; write it as BASE+ADAPTER")
        self._after_model = self.after
        if is_adapter(self.after):
            self._after_model = f"{self.before}+{self.after}"
            if self.how.method not in LOW_RANK:
                self.after = self._after_model
        check_mergeable(self.before, self.after, self.how, self.base)
        self.suite = load_suite(self.asked.suite)

    def how_at(self, weight: float) -> How:
        return dataclasses.replace(self.how, weight=weight)

    def parents(self) -> tuple[Samples, Samples]:
        """Evaluate both parents; what they are is part of every point's identity."""
        make_folder(self.out)
        models = [self._open(name) for name in (self.before, self._after_model)]
        third = self._open(self.base).fingerprint if self.base else None
        self._key = content_hash(
            *(model.fingerprint for model in models),
            third,
            [self.suite.name, self.suite.version, list(self.asked.tasks), self.asked.limit],
            dataclasses.asdict(self.asked.asking),
        )
        self.say(f"before: {models[0].name}")
        before = self._evaluate(models[0], self.out / "before")
        self.say(f"after: {models[1].name}")
        return before, self._evaluate(models[1], self.out / "after")

    def samples(self, weight: float, sides: tuple[Samples, Samples]) -> Samples:
        """The answers of a point: a parent's, those found finished, or new ones."""
        how = self.how_at(weight)
        parent = how.parent(self.base is not None)
        if parent:
            return sides[parent == "after"]
        folder = self._point(weight)
        if self._is_finished(folder, how):
            self.say(f"weight {weight:g}: finished already")
            return Samples.read(folder / SAMPLES)
        merged = self._merge(weight)
        self.say(f"weight {weight:g}: evaluating")
        name = f"{self.before}+{merged}" if is_adapter(merged) else str(merged)
        samples = self._evaluate(self._open(name), folder)
        if not self.keep:
            shutil.rmtree(merged)
        return samples

    def write_maps(self, weight: float, maps: dict[str, ForgettingMap]) -> None:
        """Keep the maps of a point beside its answers."""
        make_folder(self._point(weight))
        for side, made in maps.items():
            made.write(self._point(weight) / f"map-{side}.json")

    def folder_of(self, point: Point) -> str:
        """Where the chosen model lies; it is merged again if its weights were removed."""
        if point.parent:
            return self.after if point.parent == "after" else self.before
        return str(self._merge(point.weight))

    def _merge(self, weight: float) -> Path:
        folder = self._point(weight)
        merged = folder / f"{self.how.method}-{weight:g}"
        if merged.exists():  # whole, since it appears only then
            return merged
        self.say(f"weight {weight:g}: merging")
        make_folder(folder)
        how = self.how_at(weight)
        write_text(folder / _POINT, json.dumps(self._identity(how), indent=2) + "\n")
        return merge(self.before, self.after, merged, base=self.base, **dataclasses.asdict(how))

    def _identity(self, how: How) -> dict[str, Any]:
        return {"parents": f"{self._key:016x}", **dataclasses.asdict(how)}

    def _is_finished(self, folder: Path, how: How) -> bool:
        """Whether a point's answers are there; those of another sweep are refused."""
        if not (folder / _POINT).is_file():
            return False
        if read_json(folder / _POINT) != self._identity(how):
            raise InputError(
                f"{folder}: belongs to a sweep of other models, questions or settings; "
                "name another folder"
            )
        return (folder / MANIFEST).is_file()

    def _point(self, weight: float) -> Path:
        return self.out / f"weight-{weight:g}"

    def _open(self, name: str) -> Model:
        return open_model(name, self.asked.running, chat=self.asked.asking.chat)

    def _evaluate(self, model: Model, folder: Path) -> Samples:
        asked = self.asked
        return evaluate(
            model,
            self.suite,
            folder,
            asking=asked.asking,
            tasks=asked.tasks,
            limit=asked.limit,
            progress=self.progress,
        ).samples
