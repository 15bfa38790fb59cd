"""The manifest: a YAML file that says which capabilities there are, and which metrics show them.

CapTrack's taxonomy ships as `captrack`. A manifest of your own may extend it, and may name scorers
of your own (`module:function`).
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Literal

from pydantic import Field

from forgetmap.answers.items import Item
from forgetmap.base import yaml
from forgetmap.base.errors import InputError
from forgetmap.base.model import Strict
from forgetmap.base.words import brief, nearest
from forgetmap.capabilities import robustness, scorers
from forgetmap.capabilities.judge_prompts import JUDGEMENTS
from forgetmap.capabilities.scorers.scoring import Scorer

BUILT_IN = ("captrack", "open-suite")
ROBUSTNESS = "robustness"
"""The scorer that pairs an item with its rephrasings; it works on what others scored."""
_FIELDS = tuple(Item.__slots__)

Direction = Literal["up", "down", "two-sided"]


class Metric(Strict):
    """One metric of one task, and what it takes."""

    task: str
    scorer: str
    metric: str
    needs: tuple[str, ...] = ()
    """Fields of the item without which nothing can be scored; `meta.language` is a key of meta."""
    range: tuple[float | None, float | None] = (0.0, 1.0)
    """Smallest and largest value; null for no bound."""
    direction: Direction = "up"
    """`up`: more is better; `two-sided`: drift as such is the finding."""
    role: Literal["primary", "deep-dive"] = "primary"
    by: Literal["rule", "judge"] = "rule"
    margin: float | None = Field(None, gt=0, lt=1)
    """Change that would not matter, as a share of the range, or of the base where there is none."""

    @property
    def width(self) -> float | None:
        """Width of the range; None where it is open."""
        low, high = self.range
        return None if low is None or high is None else high - low


class Capability(Strict):
    """Something a model can do, will do, or how it does it."""

    code: str
    name: str = ""
    group: str = ""
    metrics: tuple[Metric, ...] = ()

    @property
    def primary(self) -> list[Metric]:
        """The metrics that the capability's aggregate is made of."""
        return [metric for metric in self.metrics if metric.role == "primary"]

    @property
    def two_sided(self) -> bool:
        """Whether its drift is neither better nor worse."""
        return any(metric.direction == "two-sided" for metric in self.primary)


class Task(Strict):
    """What else is known about a task."""

    aliases: tuple[str, ...] = ()
    original: str | None = None
    """The task whose items this one rephrases; an item's `meta.original` names the item."""
    compares: str = "accuracy"
    """The metric of both tasks by which an answer and its rephrasing are compared."""


class Manifest(Strict):
    """Groups, capabilities and their metrics.

    Example:
        >>> manifest = Manifest.load("captrack")
        >>> sorted(manifest.groups), manifest.task("gsm8k_subset")
        (['CAN', 'HOW', 'WILL'], 'gsm8k.core')
    """

    name: str
    extends: str | None = None
    groups: dict[str, str] = Field(default_factory=dict)
    tasks: dict[str, Task] = Field(default_factory=dict)
    capabilities: tuple[Capability, ...] = ()

    @classmethod
    def load(cls, source: str | Path) -> Manifest:
        """Load a built-in manifest by name, or a YAML file of your own."""
        if str(source) in BUILT_IN:
            return _built_in(str(source))
        path = Path(source)
        if not path.is_file():
            raise InputError(
                f"--manifest {source}: no such file, and not built in ({', '.join(BUILT_IN)})"
            )
        return _checked(yaml.read(path, "a manifest"))

    @cached_property
    def metrics(self) -> dict[tuple[str, str], Metric]:
        """Every metric once, by (task, metric)."""
        return {
            (metric.task, metric.metric): metric
            for capability in self.capabilities
            for metric in capability.metrics
        }

    @cached_property
    def _spellings(self) -> dict[str, str]:
        names = {task: task for task, _ in self.metrics}
        for task, known in self.tasks.items():
            names |= dict.fromkeys(known.aliases, task)
        return names | {name.replace(".", "_"): task for name, task in names.items()}

    def task(self, name: str) -> str | None:
        """The task that a name or file stem means, None where the manifest has none such.

        A name without its part after the dot (`gsm8k`) counts where only one task begins so.
        """
        if task := self._spellings.get(name):
            return task
        begun = {task for task in self.task_names if task.partition(".")[0] == name}
        return begun.pop() if len(begun) == 1 else None

    def compared(self, task: str) -> tuple[Metric, Metric]:
        """What robustness compares for a task: the metric of its original, and its own."""
        known = self.tasks.get(task, Task())
        return (
            self.metrics[known.original or task, known.compares],
            self.metrics[task, known.compares],
        )

    @cached_property
    def task_names(self) -> list[str]:
        """All tasks, in the manifest's order."""
        return list(dict.fromkeys(task for task, _ in self.metrics))

    def nearest(self, name: str) -> str:
        """A hint at the task that an unknown name may mean."""
        return nearest(name, self._spellings)


@cache
def _built_in(name: str) -> Manifest:
    return _checked(yaml.packaged("forgetmap.capabilities", f"data/{name}.yaml"))


def load_scorer(name: str) -> tuple[Scorer, int]:
    """Find a scorer by name, or by `module:function` for one of your own; returns its version too.

    Importing a module runs it: name only modules that you trust.
    """
    module_name, colon, function = name.partition(":")
    if not colon:
        known = scorers.load(name)
        return known.score, known.VERSION
    try:
        module = importlib.import_module(module_name)
        scorer: Scorer = getattr(module, function)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f"scorer {name}: cannot be imported ({brief(error)})") from error
    return scorer, int(getattr(module, "VERSION", 0))


def _checked(document: yaml.Document) -> Manifest:
    with document.faults(Manifest):
        manifest = Manifest.model_validate(document.content)
        extended = _extended(manifest)
        _check(extended, manifest)
        return extended


def _extended(manifest: Manifest) -> Manifest:
    """Put a manifest on top of the one it extends: capabilities of the same code grow."""
    if manifest.extends is None:
        return manifest
    if manifest.extends not in BUILT_IN:
        text = f"extends: unknown manifest {manifest.extends!r}"
        raise yaml.MisplacedError(("extends",), text + nearest(manifest.extends, BUILT_IN))
    base = Manifest.load(manifest.extends)
    capabilities = {capability.code: capability for capability in base.capabilities}
    for added in manifest.capabilities:
        known = capabilities.get(added.code)
        if known is not None:
            name = added.name or known.name
            grown = known.metrics + added.metrics
            added = known.model_copy(update={"name": name, "metrics": grown})
        capabilities[added.code] = added
    return manifest.model_copy(
        update={
            "groups": base.groups | manifest.groups,
            "tasks": base.tasks | manifest.tasks,
            "capabilities": tuple(capabilities.values()),
        }
    )


def _check(whole: Manifest, own: Manifest) -> None:
    """Refuse names that mean nothing; `own` tells where in the file they stand."""
    groups = {capability.code: capability.group for capability in whole.capabilities}
    codes = [capability.code for capability in own.capabilities]
    for index, capability in enumerate(own.capabilities):
        place = ("capabilities", index)
        if codes.index(capability.code) < index:
            text = f"capability {capability.code!r} occurs twice"
            raise yaml.MisplacedError((*place, "code"), text)
        group = capability.group or groups[capability.code]
        if group not in whole.groups:
            text = f"capability {capability.code}: unknown group {group!r}"
            raise yaml.MisplacedError((*place, "group"), text + nearest(group, whole.groups))
        for number, metric in enumerate(capability.metrics):
            _check_metric(metric, (*place, "metrics", number), whole)
    for capability in whole.capabilities:
        directions = {metric.direction == "two-sided" for metric in capability.primary}
        if len(directions) > 1:
            raise yaml.MisplacedError(
                ("capabilities", codes.index(capability.code), "metrics"),
                f"capability {capability.code} mixes two-sided primary metrics with others; their "
                "mean would mean nothing, split it",
            )
    for name, task in own.tasks.items():
        for where, wanted in (
            (("tasks", name), name),
            (("tasks", name, "original"), task.original),
        ):
            if wanted is not None and wanted not in whole.task_names:
                text = f"no metric uses the task {wanted!r}"
                raise yaml.MisplacedError(where, text + nearest(wanted, whole.task_names))


def _check_metric(metric: Metric, place: tuple[str | int, ...], whole: Manifest) -> None:
    for field in metric.needs:
        if field.partition(".")[0] not in _FIELDS:
            text = f"an item has no field {field!r}"
            raise yaml.MisplacedError((*place, "needs"), text + nearest(field, _FIELDS))
    key = metric.task, metric.metric
    listed = [(m.task, m.metric) for entry in whole.capabilities for m in entry.metrics]
    if listed.count(key) > 1:
        text = f"{metric.task} {metric.metric} occurs twice; a metric belongs to one capability"
        raise yaml.MisplacedError((*place, "metric"), text)
    low, high = metric.range
    if low is not None and high is not None and not low < high:
        raise yaml.MisplacedError((*place, "range"), f"the range [{low:g}, {high:g}] is empty")
    if ":" in metric.scorer:
        return
    names = list(JUDGEMENTS) if metric.by == "judge" else [*scorers.SCORERS, ROBUSTNESS]
    if metric.scorer not in names:
        text = f"unknown scorer {metric.scorer!r}"
        raise yaml.MisplacedError((*place, "scorer"), text + nearest(metric.scorer, names))
    if metric.scorer == ROBUSTNESS:
        _check_compared(metric, place, whole)
    offered = _offered(metric)
    if metric.metric not in offered:
        text = f"the scorer {metric.scorer} has no metric {metric.metric!r}"
        raise yaml.MisplacedError((*place, "metric"), text + nearest(metric.metric, offered))


def _check_compared(metric: Metric, place: tuple[str | int, ...], whole: Manifest) -> None:
    try:
        whole.compared(metric.task)
    except KeyError as error:
        task, name = error.args[0]
        text = f"robustness compares {task} {name}, which is not in the manifest"
        raise yaml.MisplacedError((*place, "task"), text) from error


def _offered(metric: Metric) -> Sequence[str]:
    """The metrics that a scorer or a kind of judgement gives."""
    if metric.by == "judge":
        return JUDGEMENTS[metric.scorer].metrics
    if metric.scorer == ROBUSTNESS:
        return robustness.METRICS
    return scorers.load(metric.scorer).METRICS
