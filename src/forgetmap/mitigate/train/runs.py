"""Training runs from a file or a command: train, ask the model before and after, map the loss.

Everything goes into one folder. What is there already is not done again: a run that was stopped
goes on, and a finished one is only read.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any

import yaml as pyyaml
from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError

from forgetmap.base import yaml
from forgetmap.base.errors import InputError
from forgetmap.base.files import make_folder, write_text
from forgetmap.base.model import Frozen, Strict, read_sealed, sealed, sealed_json
from forgetmap.base.version import __version__
from forgetmap.base.words import brief, nearest
from forgetmap.evaluate.models import Running
from forgetmap.evaluate.prompts import Asking
from forgetmap.evaluate.results import MANIFEST, TASKS
from forgetmap.evaluate.run import Progress, check_new, evaluate, load_suite
from forgetmap.map.comparison import Comparison, compare_logs
from forgetmap.mitigate.outcome import Outcome, best_within, mark_pareto, outcome_fields
from forgetmap.mitigate.train.recipes import (
    Anchored,
    Materials,
    Preferred,
    PulledBack,
    Recipe,
    Replayed,
    Retained,
    SelfDistilled,
    provenance,
    train,
)
from forgetmap.readers.framework import ReadOptions, json_lines

METHODS: dict[str, type[Recipe]] = {
    recipe.name: recipe
    for recipe in (Recipe, Replayed, Anchored, Retained, PulledBack, SelfDistilled, Preferred)
}
"""Those that need no code; a reward (GRPO) is a function, so it is for Python."""
MOST_POINTS = 64
_PROBES = 10
"""How often a run is looked at where a budget is set and nothing is said."""
_PLAIN = ("trainer_arguments",)
"""Fields of a recipe that a file sets under a name of their own."""


def _as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_as_tuple)]


class TrainingFile(Strict):
    """What to train, how, and what to ask before and after."""

    model: str
    """The folder of the model before."""
    method: str = "sft"
    data: str
    """The new task as JSON lines, in the form that the method's trainer wants."""
    keep: str | None = None
    """What is to be kept: old examples as JSON lines; for `retention`, a suite of questions."""
    out: str = "forgetmap-train"
    set: dict[str, Any] = Field(default_factory=dict)
    """Numbers of the recipe: steps, learning_rate, weight and others."""
    trainer: dict[str, Any] = Field(default_factory=dict)
    """Further arguments of TRL's configuration."""
    suite: Names = ("atlas",)
    tasks: Names = ()
    limit: int | None = None
    new: Names = ()
    """Tasks of the suite that the training is meant to teach."""
    every: int | None = None
    """Steps between looks while training; by default none, or a tenth where there is a budget."""
    budget: Annotated[float | None, Field(gt=0, le=1)] = None
    """The share of the old items that may be lost."""
    sweep: dict[str, list[Any]] = Field(default_factory=dict)
    """Numbers of the recipe to try, each with its values."""

    @classmethod
    def load(cls, path: str | Path, changes: Mapping[str, Any] | None = None) -> TrainingFile:
        """Load a file; paths in it start at its folder, those in `changes` where you are."""
        document = yaml.read(path, "a training file")
        with document.faults(cls):
            loaded = cls.model_validate(document.content)
        folder = Path(path).parent
        beside = {
            name: str(folder / value)
            for name in ("model", "data", "keep", "out")
            if (value := getattr(loaded, name)) is not None
        }
        suites = tuple(str(folder / one) if (folder / one).is_file() else one
                       for one in loaded.suite)  # fmt: skip
        return cls.of({**loaded.model_dump(), **beside, "suite": suites, **(changes or {})})

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> TrainingFile:
        """Check what a person asked for; the first fault is one line."""
        try:
            return cls.model_validate(dict(content))
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            place = ".".join(map(str, fault["loc"]))
            raise InputError(f"{place}: {fault['msg'].lower()}") from error

    def recipe(self, point: Mapping[str, Any] | None = None) -> Recipe:
        """The recipe with its numbers; `point` holds those of one point of a sweep."""
        if self.method not in METHODS:
            raise InputError(f"--method {self.method}: unknown{nearest(self.method, METHODS)}")
        kind = METHODS[self.method]
        known = [field.name for field in fields(kind) if field.name not in _PLAIN]
        numbers = {**self.set, **(point or {})}
        for name in numbers:
            if name not in known:
                raise InputError(f"{self.method} has no {name!r}{nearest(name, known)}")
        try:
            made = TypeAdapter(kind).validate_python(numbers)
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            raise InputError(f"{fault['loc'][0]}: {fault['msg'].lower()}") from error
        return replace(made, trainer_arguments=dict(self.trainer))

    @property
    def points(self) -> list[dict[str, Any]]:
        """The points of the sweep: every combination of its values."""
        names = list(self.sweep)
        found = [dict(zip(names, values, strict=True))
                 for values in itertools.product(*self.sweep.values())]  # fmt: skip
        if not 1 <= len(found) <= MOST_POINTS:
            raise InputError(f"--sweep: {len(found)} points; name 1 to {MOST_POINTS}")
        return found


class TrainedPoint(Outcome):
    """One trained model of a sweep."""

    settings: dict[str, Any]
    folder: str
    kept: bool
    """Whether its weights are still there."""


class TrainSweep(Frozen):
    """Trainings over rates, weights and the like, and the one that was chosen."""

    schema_version: int = 1
    forgetmap_version: str = __version__
    before: str
    method: str
    new_tasks: list[str]
    points: list[TrainedPoint]
    budget: float | None
    chosen: dict[str, Any] | None
    """Settings of the chosen point; None where none was asked for or none fits."""
    sure: bool | None
    """Whether the chosen point is within the budget at the high end of its interval too."""

    def to_json(self) -> str:
        """What `train --sweep --json` writes."""
        return sealed_json(self)


Say = Callable[[str], None]


@dataclass
class Run:
    """One folder of trainings: the model before, asked once, and all that is trained from it."""

    plan: TrainingFile
    running: Running
    say: Say = lambda _text: None
    progress: Progress = lambda _done, _all: None

    def __post_init__(self) -> None:
        self.out = Path(self.plan.out)
        self.suite = load_suite(list(self.plan.suite)).made_once()
        check_new(self.suite, self.plan.new, self.plan.tasks)
        self.materials = read_materials(self.plan)
        make_folder(self.out)

    def train(self, point: Mapping[str, Any] | None = None, name: str = "") -> Comparison | None:
        """Train, ask and compare; None in the processes of a distributed run but the first."""
        recipe, folder = self.plan.recipe(point), self.out / name
        make_folder(folder)
        self.say(f"{name or self.plan.method}: training, {recipe.steps} steps")
        train(recipe, self.plan.model, self.materials, folder / "model",
              callbacks=self._probes(recipe, folder))  # fmt: skip
        if int(os.environ.get("RANK", "0")):
            return None
        self._ask(self.plan.model, self.out / "before")
        self._ask(self._trained(recipe, folder), folder / "after")
        return self.compare(folder)

    def compare(self, folder: Path) -> Comparison:
        """Map the trained model against the one before, and write map and lineage."""
        after = folder / "after"
        found = compare_logs(self.out / "before", after, task_map=after / TASKS,
                             new=self.plan.new, causes=True)  # fmt: skip
        write_text(folder / "map.json", found.map.to_json() + "\n")
        log = os.path.relpath(self.out / "before", folder)
        steps = {"log": "after", "parents": "before"}
        lineage = {"task_map": f"after/{TASKS}", "new": list(self.plan.new),
                   "checkpoints": {"before": {"log": log}, "after": steps}}  # fmt: skip
        write_text(folder / "pipeline.yaml", pyyaml.safe_dump(lineage, sort_keys=False))
        return found

    def _trained(self, recipe: Recipe, folder: Path) -> str:
        model = folder / "model"
        return f"{self.plan.model}+{model}" if recipe.lora else str(model)

    def _ask(self, model: str, folder: Path) -> None:
        self.say(f"{folder.name}: asking")
        evaluate(model, self.suite, folder, asking=Asking(), running=self.running,
                 tasks=self.plan.tasks, limit=self.plan.limit, progress=self.progress)  # fmt: skip

    def _probes(self, recipe: Recipe, folder: Path) -> list[Any]:
        """A callback that looks at the run, and rolls back what is surely over the budget."""
        plan, probes = self.plan, folder / "probes"
        budget = None if plan.sweep else plan.budget
        every = plan.every or (max(1, recipe.steps // _PROBES) if budget else 0)
        if not every or (folder / "model" / "recipe.json").is_file():
            return []
        from forgetmap.mitigate.train.callback import ForgettingCallback

        if not any((folder / "model").glob("checkpoint-*")):
            shutil.rmtree(probes, ignore_errors=True)  # of a run that begins anew
        return [
            ForgettingCallback(
                self.suite,
                probes,
                every=every,
                tasks=plan.tasks,
                limit=plan.limit,
                new_tasks=plan.new,
                budget=budget,
                when_exceeded="roll_back" if budget else "report",
            )
        ]

    # --- sweeps ---

    def sweep(self) -> TrainSweep | None:
        """Train every point; keep the weights of those that no other beats, or of the chosen."""
        points: list[TrainedPoint] = []
        for settings in self.plan.points:
            found = self._point(settings)
            if found is None:
                continue
            points = mark_pareto([*points, found])
            points = [self._thinned(point, points) for point in points]
        if not points:
            return None
        chosen = self._chosen(points)
        result = TrainSweep(
            before=self.plan.model,
            method=self.plan.method,
            new_tasks=list(self.plan.new),
            points=points,
            budget=self.plan.budget,
            chosen=chosen.settings if chosen else None,
            sure=chosen.is_sure(self.plan.budget) if chosen and self.plan.budget else None,
        )
        write_text(self.out / "sweep.json", result.to_json() + "\n")
        return result

    def _point(self, settings: dict[str, Any]) -> TrainedPoint | None:
        name = point_name(settings)
        folder = self.out / name
        told = provenance(self.plan.recipe(settings), Path(self.plan.model), self.materials)
        note = folder / "point.json"
        if note.is_file() and (folder / "after" / MANIFEST).is_file():
            if {**read_sealed(note)} != told:
                raise InputError(f"{folder}: holds another training; name another folder")
            self.say(f"{name}: finished already")
            found: Comparison | None = self.compare(folder)
        else:
            found = self.train(settings, name)
        if found is None:
            return None
        write_text(note, json.dumps(sealed(told), indent=2))
        kept = (folder / "model").is_dir()
        return TrainedPoint(
            settings=settings, folder=str(folder), kept=kept, **outcome_fields(found.map)
        )

    def _chosen(self, points: Sequence[TrainedPoint]) -> TrainedPoint | None:
        return None if self.plan.budget is None else best_within(points, self.plan.budget)

    def _thinned(self, point: TrainedPoint, points: Sequence[TrainedPoint]) -> TrainedPoint:
        """Drop the weights of a point that can no longer be the answer."""
        chosen = self._chosen(points)
        wanted = point.is_pareto if chosen is None else point.settings == chosen.settings
        if wanted or not point.kept:
            return point
        shutil.rmtree(Path(point.folder) / "model")
        return point.model_copy(update={"kept": False})


def read_materials(plan: TrainingFile) -> Materials:
    """The data of a run; a file that does not fit its method is refused."""
    new = read_rows(plan.data)
    if plan.keep is None:
        return Materials(new)
    if plan.method == Retained.name:
        return Materials(new, questions=load_suite(plan.keep))
    return Materials(new, read_rows(plan.keep))


def read_rows(path: str | Path) -> list[dict[str, Any]]:
    r"""Training examples as JSON lines: `prompt` and `completion`, `messages`, `text`, and so on.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "new.jsonl"
        >>> _ = file.write_text('{"text": "Rain falls."}\n')
        >>> read_rows(file)
        [{'text': 'Rain falls.'}]
    """
    warnings: list[str] = []
    rows = [row for _, row in json_lines(Path(path), ReadOptions(), warnings)]
    if warnings:
        raise InputError(warnings[0])
    known = {"prompt", "messages", "text", "chosen"}
    for place, row in enumerate(rows, 1):
        if not known & row.keys():
            raise InputError(f"{path}:{place}: needs one of {', '.join(sorted(known))}")
    return rows


def point_name(settings: Mapping[str, Any]) -> str:
    """The folder of a point of a sweep.

    Example:
        >>> point_name({"learning_rate": 1e-5, "weight": 0.5})
        'learning_rate=1e-05,weight=0.5'
    """
    name = ",".join(f"{key}={value}" for key, value in settings.items())
    if "/" in name or len(name) > 200:
        raise InputError(f"--sweep {brief(ValueError(name))}: cannot be the name of a folder")
    return name
