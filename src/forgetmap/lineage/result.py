"""Lineage: the result, and its public JSON contract (docs/reference/pipeline.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from forgetmap.base.display import Result
from forgetmap.base.files import write_text
from forgetmap.base.model import Frozen, parse_result, sealed_json
from forgetmap.base.version import __version__
from forgetmap.lineage.lives import Kind
from forgetmap.map.old_maps import NOTE, upgrade
from forgetmap.map.result import ForgettingMap
from forgetmap.stats.estimate import Estimate, Range, range_words

LINEAGE_SCHEMA_VERSION = 2


class Node(Frozen):
    """One checkpoint."""

    name: str
    parents: list[str]
    log: str
    model: str
    harness: str
    numbers: dict[str, float]
    items: int
    """Items with a score."""
    missing: int
    """Items that other checkpoints have and this one lacks, or has without a score."""
    known: int
    """Items known by the majority rule."""


class StageMap(Frozen):
    """Two checkpoints and the map between them."""

    before: str
    after: str
    edge: bool
    """`before` is a parent of `after`."""
    against_root: bool
    """`before` is the root."""
    map: ForgettingMap


class LineageItem(Frozen):
    """One item, to find it again."""

    number: int
    """Its place in this result; life-lines.csv has the same."""
    task: str
    item: str
    item_ref: str | None


class TracedItem(LineageItem):
    """An item and its life along a path."""

    states: str
    """One sign per stage: 1 known, 0 not known, ? missing."""
    first_learned: str | None
    first_lost: str | None
    times_forgotten: int
    times_flipped: int


class Fate(Frozen):
    """A life line: items of one kind that were lost and learned at the same stages."""

    kind: Kind
    lost_at: str | None
    """Stage at which the items were first lost."""
    learned_at: str | None
    """Stage at which they were last learned, or recovered."""
    count: int


class LifeLines(Frozen):
    """What became of the items on one path."""

    path: list[str]
    items: int
    counts: dict[Kind, int]
    fates: list[Fate]
    groups: dict[str, dict[Kind, int]]
    """Counts by category (by task, without a task map)."""
    listed: dict[Kind, list[TracedItem]]
    """Items of the kinds that changed, at most `LineageSettings.listed` of each."""

    def stages(self, kind: Kind, most: int = 4) -> str:
        """At which stages the items of a kind were lost and learned, the commonest first."""
        fates = sorted((f for f in self.fates if f.kind == kind), key=lambda fate: -fate.count)
        again = "recovered" if kind == "recovered" else "learned"
        told = []
        for fate in fates[:most]:
            lost = [f"lost at {fate.lost_at}"] if fate.lost_at else []
            learned = [f"{again} at {fate.learned_at}"] if fate.learned_at else []
            if where := ", ".join(lost + learned):
                told.append(f"{where}: {fate.count:,}")
        rest = sum(fate.count for fate in fates[most:])
        return "; ".join(told) + (f"; otherwise: {rest:,}" if rest else "")


class WorstStage(Frozen):
    """Where on a path a group lost most."""

    group: str
    before: str
    after: str
    lost: Range
    flipped: float
    """Items of the group that flipped 1->0 at this stage (mean over pairings of repeats)."""
    flipped_on_path: float
    """The same, over all stages of the path."""
    clear: bool
    """The interval lies above those of all other stages."""


class MergePart(Frozen):
    """Items that the same parents knew."""

    known_to: list[str]
    items: int
    kept: int
    """Known after merging too; for items that no parent knew, known only by merging."""
    share: Estimate
    """kept / items."""


class MergedItem(LineageItem):
    """An item that was lost by merging."""

    known_to: list[str]


class Merge(Frozen):
    """What a merge kept of its parents."""

    name: str
    parents: list[str]
    items: int
    """Items with a score in the merge and in all its parents."""
    incomplete: int
    parts: list[MergePart]
    lost: int
    """Known to a parent, not known after merging."""
    new: int
    """Known to no parent, known after merging."""
    groups: dict[str, int]
    """Items lost by merging, by category (by task, without a task map)."""
    listed: list[MergedItem]


class DosePoint(Frozen):
    """One checkpoint on a dose curve."""

    checkpoint: str
    dose: float
    kept: Estimate | None
    """Of what the origin knew."""
    gained: Estimate | None
    """Of what the origin did not know."""


class DoseCurve(Frozen):
    """Old knowledge kept and new knowledge gained against a number."""

    number: str
    origin: str
    form: Literal["run", "sweep"]
    """`run`: checkpoints that follow each other; `sweep`: alternatives side by side."""
    points: list[DosePoint]


class Moment(Frozen):
    """One checkpoint of a run."""

    checkpoint: str
    dose: float | None
    accuracy: float
    lost: Range
    """Of the old skills, against the run's first checkpoint."""
    gained: Range
    lost_before: int
    """Items that were lost at some earlier stage of the run."""
    recovered: Estimate | None
    """Share of these that are known here."""


class TrainingRun(Frozen):
    """A path as a training run: curves, and forgetting events."""

    path: list[str]
    number: str | None
    """What the doses are; None where the checkpoints carry none in common."""
    moments: list[Moment]
    times_forgotten: dict[int, int]
    """How often forgotten -> number of items; complete items only."""
    most_forgotten: list[TracedItem]


class LineageSettings(Frozen):
    """How it was computed."""

    task_map: str | None
    threshold: float
    margin: float
    draws: int
    seed: int
    listed: int
    majority: str = "an item is known where more than half of its scored runs are right"


class Lineage(Result):
    """Forgetting across a pipeline.

    Example:
        >>> Lineage.model_fields["schema_version"].default
        2
    """

    schema_version: int = LINEAGE_SCHEMA_VERSION
    forgetmap_version: str = __version__
    root: str
    nodes: list[Node]
    comparisons: list[StageMap]
    life_lines: list[LifeLines]
    worst_stages: dict[str, list[WorstStage]]
    """By the last checkpoint of a path."""
    merges: list[Merge]
    dose_curves: list[DoseCurve]
    runs: list[TrainingRun]
    settings: LineageSettings
    warnings: list[str] = Field(default_factory=list)

    def comparison(self, before: str, after: str) -> ForgettingMap:
        """The map between two checkpoints; KeyError where it was not made."""
        for stage in self.comparisons:
            if (stage.before, stage.after) == (before, after):
                return stage.map
        raise KeyError((before, after))

    def node(self, name: str) -> Node:
        """A checkpoint by name."""
        return next(node for node in self.nodes if node.name == name)

    def to_json(self) -> str:
        """The lineage in the public JSON contract."""
        return sealed_json(self, indent=1)

    @classmethod
    def from_json(cls, text: str | bytes) -> Lineage:
        """Read a lineage back; a newer contract than known is refused."""
        return parse_result(cls, "lineage", LINEAGE_SCHEMA_VERSION, text, _upgrade)

    def write(self, path: str | Path) -> None:
        """Write the JSON, atomically."""
        write_text(path, self.to_json() + "\n")

    def headline(self) -> str:
        """The answer in one sentence: the end that lost most, and the stage that lost most."""
        against = [stage for stage in self.comparisons if stage.against_root]
        worst = max(against, key=lambda stage: stage.map.old.lost.value)
        edges = [stage for stage in self.comparisons if stage.edge]
        stage = max(edges, key=lambda one: one.map.old.lost.value)
        most, here = (range_words(stage_map.map.old.lost) for stage_map in (worst, stage))
        told = f"of all checkpoints {worst.after} lost most, against {self.root}: {most}"
        if stage == worst:
            return told
        return f"{told}; the stage that lost most is {stage.before} -> {stage.after}: {here}"


def _upgrade(content: dict[str, Any]) -> dict[str, Any]:
    """Turn the content of a version 1 lineage into that of version 2; its maps hold the ranges."""
    stages = [{**stage, "map": upgrade(stage["map"])} for stage in content["comparisons"]]
    maps = {(stage["before"], stage["after"]): stage["map"] for stage in stages}

    def worst_stage(worst: dict[str, Any]) -> dict[str, Any]:
        found = maps[worst["before"], worst["after"]]
        cell = (found["categories"] or found["tasks"])[worst["group"]]
        counts = {"flipped": worst["lost"], "flipped_on_path": worst["lost_on_path"]}
        return {**worst, "lost": cell["lost"], **counts}

    def moment_of(path: list[str], moment: dict[str, Any]) -> dict[str, Any]:
        cell = maps[path[0], moment["checkpoint"]]["old"]
        return {**moment, "lost": cell["lost"], "gained": cell["gained"]}

    return {
        **content,
        "schema_version": 2,
        "comparisons": stages,
        "worst_stages": {
            end: [worst_stage(worst) for worst in found]
            for end, found in content["worst_stages"].items()
        },
        "runs": [
            {**run, "moments": [moment_of(run["path"], moment) for moment in run["moments"]]}
            for run in content["runs"]
        ],
        "warnings": [*content.get("warnings", []), NOTE],
    }
