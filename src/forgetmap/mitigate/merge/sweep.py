"""Merge at many weights, evaluate each, and see what each loses of the old and learns anew."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from forgetmap.base.errors import InputError
from forgetmap.base.files import make_folder, write_text
from forgetmap.base.json import read_json
from forgetmap.base.model import Frozen, parse_result, sealed_json
from forgetmap.base.values import fitting
from forgetmap.base.version import __version__
from forgetmap.base.words import some
from forgetmap.evaluate.models import Model, Running, open_model
from forgetmap.evaluate.prompts import Asking
from forgetmap.evaluate.results import MANIFEST, SAMPLES, TASKS
from forgetmap.evaluate.run import Progress, Questions, check_new, evaluate, load_suite
from forgetmap.map.comparison import compare_logs
from forgetmap.map.result import ForgettingMap, Verdict
from forgetmap.map.task_maps import TaskMap
from forgetmap.mitigate.merge.adapters import is_adapter
from forgetmap.mitigate.merge.merging import LOW_RANK, How, check_mergeable, merge
from forgetmap.mitigate.outcome import Outcome, best_within, mark_pareto, outcome_fields
from forgetmap.samples.identity import content_hash
from forgetmap.samples.table import Samples
from forgetmap.stats.estimate import Range

SWEEP_SCHEMA_VERSION = 2
_POINT = "point.json"
_MOST_POINTS = 101


class Point(Outcome):
    """One weight: what the merged model loses and gains against the model before."""

    weight: float
    parent: str | None
    """`before` or `after` where the merge would be that model; None for a real merge."""
    lost_of_after: Range
    """Against the model after, on all tasks."""
    verdict_after: Verdict


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
    points: list[Point]
    budget: float | None = None
    """The share of the old items that may be lost."""
    chosen: float | None = None
    """Weight of the chosen point; None where none was asked for or none fits."""
    sure: bool | None = None
    """Whether the chosen point is within the budget at the high end of its interval too."""
    folder: str | None = None
    """Where the chosen model lies."""

    def to_json(self) -> str:
        """The `sweep` part of `merge --json`."""
        return sealed_json(self)

    @classmethod
    def from_json(cls, text: str | bytes) -> Sweep:
        """Read the `sweep` part of `merge --json` back; a newer contract than known is refused."""
        return parse_result(cls, "sweep", SWEEP_SCHEMA_VERSION, text, _upgrade)


@dataclass(frozen=True)
class SweepQuestions:
    """What the models are evaluated on."""

    suite: Questions
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
        budget: Choose a point that loses at most this share of the old items; see `choose`.
        keep: Keep the weights of every merge.
        say: Called with a few words on what is being done.
    """
    run = _Run(before, after, Path(out), asked, how or How(), base, say, progress, keep)
    check_new(run.suite, new, asked.tasks)
    sides = run.parents()
    split = Split.of(sides[0], run.out / "before" / TASKS, new)
    points = []
    for weight in weights:
        parent = run.how_at(weight).parent(base is not None)
        samples = run.samples(weight, sides)
        point, made = measure(samples, sides, split, weight, parent, draws)
        run.write_maps(weight, made)
        points.append(point)
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
        points=mark_pareto(points),
        budget=budget,
        chosen=chosen.weight if chosen else None,
        sure=None if budget is None or not chosen else chosen.is_sure(budget),
        folder=run.folder_of(chosen) if chosen else None,
    )


@dataclass(frozen=True)
class Split:
    """Which tasks are old knowledge and which the new skill."""

    task_map: TaskMap
    old_tasks: list[str]
    new_tasks: list[str]

    @classmethod
    def of(cls, samples: Samples, tasks: Path, new: Sequence[str]) -> Split:
        """Split the tasks of a run; a name that fits none is refused."""
        names = sorted({task for part in samples.to_batches(["task"])
                        for task in part["task"].to_pylist()})  # fmt: skip
        fresh, unknown = fitting(names, new)
        if unknown:
            raise InputError(f"--new {unknown[0]}: not among the tasks ({some(names)})")
        old = [name for name in names if name not in fresh]
        if not old:
            raise InputError("--new: every task is new; leave some to see what is lost")
        return cls(TaskMap.load(tasks), old, fresh)


def measure(
    samples: Samples,
    sides: tuple[Samples, Samples],
    split: Split,
    weight: float,
    parent: str | None,
    draws: int = 10_000,
) -> tuple[Point, dict[str, ForgettingMap]]:
    """One point from its answers and those of both parents; also its maps against them."""
    maps = {
        name: compare_logs(
            side, samples, task_map=split.task_map, new=split.new_tasks, draws=draws
        ).map
        for name, side in zip(("before", "after"), sides, strict=True)
    }
    against = maps["after"].total
    point = Point(
        weight=weight,
        parent=parent,
        lost_of_after=against.lost,
        verdict_after=against.verdict,
        **outcome_fields(maps["before"], same=parent == "before"),
    )
    return point, maps


def choose(points: Sequence[Point], budget: float) -> Point | None:
    """The best merge within a budget; see `best_within`. The model before itself is no answer."""
    return best_within([point for point in points if point.parent != "before"], budget)


def _upgrade(content: dict[str, Any]) -> dict[str, Any]:
    """Turn the content of a version 1 sweep into that of version 2."""
    flips = content["headline"] == "raw"
    points = [_upgrade_point(point, flips) for point in content["points"]]
    sure = None if content.get("chosen") is None else flips
    return {**content, "schema_version": 2, "points": points, "sure": sure}


def _upgrade_point(point: dict[str, Any], flips: bool) -> dict[str, Any]:
    gain, after = point["gain"], point["new_accuracy"]
    is_new = after is not None
    skill = {"before": after - gain["value"], "after": after, "change": gain} if is_new else None
    return {
        **point,
        "lost": _old_loss(point["forgetting"], flips),
        "gained": None if is_new else _old_loss(gain, flips),
        "new": skill,
        "verdict": _old_verdict(point["verdict"], flips),
        "lost_of_after": _old_loss(point["lost_of_after"], flips),
        "verdict_after": _old_verdict(point["verdict_after"], flips),
    }


def _old_loss(estimate: dict[str, float], flips: bool) -> dict[str, Any]:
    """Flips are the most that can be lost, noise and all; the other estimators the least."""
    value, low, high = (max(0.0, estimate[name]) for name in ("value", "low", "high"))
    if flips:
        ends = {"low_end": 0.0, "high_end": value, "low": 0.0, "high": high, "basis": "single_run"}
    else:
        ends = {"low_end": value, "high_end": high, "low": low, "high": high, "basis": "mixed"}
    return {**ends, "of_known": None}


def _old_verdict(verdict: dict[str, str], flips: bool) -> dict[str, str]:
    """Few flips show that things were held, and a large sure loss that they were lost."""
    known = {"kept": "held"} if flips else {"forgot": "lost"}
    net = {"equivalent": "equal"}.get(verdict["net"], verdict["net"])
    return {"net": net, "forgetting": known.get(verdict["forgetting"], "undecided")}


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
