"""A pipeline in, its lineage out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forgetmap.base.errors import InputError
from forgetmap.lineage.lives import KINDS, NEVER, Kind, Lives, share
from forgetmap.lineage.pipeline import NUMBERS, Pipeline, open_pipeline
from forgetmap.lineage.result import (
    DoseCurve,
    DosePoint,
    Fate,
    LifeLines,
    Lineage,
    LineageSettings,
    Merge,
    MergedItem,
    MergePart,
    Moment,
    Node,
    StageMap,
    TracedItem,
    TrainingRun,
    WorstStage,
)
from forgetmap.map.cells import Plan
from forgetmap.map.comparison import build_map, check_threshold, with_task_map
from forgetmap.map.result import ForgettingMap
from forgetmap.map.task_maps import IGNORED, TaskMap
from forgetmap.pairing.many_logs import ItemName, ManyLogs, Outcomes
from forgetmap.readers.framework import ReadOptions
from forgetmap.readers.registry import for_pairing, read
from forgetmap.samples.comparability import Identity
from forgetmap.samples.table import THRESHOLD, Samples

Ints = NDArray[np.int64]

LISTED = 500
"""Items listed per kind of life line; --csv lists all."""
MOST_FORGOTTEN = 50
DRAWS = 1000
_MOST_DRAWS = 100_000
_UNLISTED: tuple[Kind, ...] = ("kept", "never known")
"""Kinds whose items did not change; they are counted, and listed by --csv."""


class Traced(NamedTuple):
    """A lineage, and what made it: the pages and tables of single items come from there."""

    lineage: Lineage
    builder: Builder


def trace(
    pipeline: str | Path | Pipeline,
    *,
    text: bool = False,
    task_map: str | Path | TaskMap | None = None,
    metric: Mapping[str, str] | str | None = None,
    threshold: float | None = None,
    margin: float = 0.02,
    identity: Identity = "content",
    columns: Mapping[str, str] | None = None,
    new: Iterable[str] = (),
    deterministic: bool = False,
    draws: int = DRAWS,
    seed: int = 0,
    tick: Callable[[int], None] | None = None,
) -> Traced:
    """Trace what was forgotten and gained across a pipeline of checkpoints.

    Args:
        pipeline: A pipeline file, or a Pipeline.
        text: Also read prompts and answers, for pages that show single items.
        task_map: Categories of the tasks; by default the one that the pipeline names.
        metric: Metric for all tasks, or per task; by default the most lenient to format.
        threshold: Score from which an answer counts as correct; by default the middle of each
            task's scale.
        margin: Change of accuracy, and share forgotten, that would matter to you.
        identity: `content`, or `index` to pair by the harness's own ids.
        columns: For plain tables, what forgetmap needs -> the column's name.
        new: Tasks that the training was meant to teach, beside those that the pipeline names.
        deterministic: You vouch that a run has no noise.
        draws: Draws of the test for clusters.
        seed: Seed of the draws.
        tick: Called with the number of bytes just read.

    Example:
        >>> import tempfile
        >>> from forgetmap.lineage.pipeline import Checkpoint
        >>> folder = Path(tempfile.mkdtemp())
        >>> def log(name, *right):
        ...     rows = [f"q{i},{r}" for i, r in enumerate(right)]
        ...     _ = (folder / name).write_text("\\n".join(["question,correct", *rows]))
        ...     return str(folder / name)
        >>> traced = trace(Pipeline.of({
        ...     "base": Checkpoint(log=log("base.csv", 1, 1, 1, 0)),
        ...     "sft": Checkpoint(log=log("sft.csv", 1, 0, 0, 0), parents="base"),
        ...     "rl": Checkpoint(log=log("rl.csv", 1, 0, 1, 0), parents="sft")}))
        >>> {kind: n for kind, n in traced.lineage.life_lines[0].counts.items() if n}
        {'kept': 1, 'lost for good': 1, 'recovered': 1, 'never known': 1}
    """
    if not isinstance(pipeline, Pipeline):
        pipeline = open_pipeline(pipeline)
    check_threshold(threshold)
    taught = frozenset((*pipeline.new, *new))
    plan = Plan(margin=margin, draws=draws, seed=seed, new=taught, deterministic=deterministic)
    plan.check(_MOST_DRAWS)
    asked = task_map if task_map is not None else pipeline.task_map
    categories = asked if isinstance(asked, TaskMap | None) else TaskMap.load(asked)
    how = ReadOptions(text=text, columns=columns or {}, tick=tick or (lambda _bytes: None))
    samples = _read_all(pipeline, how)
    logs = ManyLogs(samples, metric, threshold, identity)
    outcomes = logs.outcomes()
    if categories:
        applied = categories.apply(outcomes.tasks)
        outcomes.leave_out(applied.ignored)
        logs.warnings += applied.warnings
    builder = Builder(
        pipeline, samples, outcomes, categories, plan.for_tasks(outcomes.tasks), threshold
    )
    return Traced(builder.build(), builder)


def _read_all(pipeline: Pipeline, how: ReadOptions) -> dict[str, Samples]:
    """Read every log; each file once, however many checkpoints it holds."""
    how = for_pairing([pipeline.checkpoints[name].log for name in pipeline.order], how)
    logs: dict[str, Samples] = {}
    samples = {}
    for name in pipeline.order:
        checkpoint = pipeline.checkpoints[name]
        try:
            if checkpoint.log not in logs:
                logs[checkpoint.log] = read(checkpoint.log, how)
            samples[name] = logs[checkpoint.log].only(checkpoint.model)
        except InputError as error:
            raise InputError(f"checkpoint {name}: {error}") from error
    return samples


class Builder:
    """Computes the parts of a lineage from the outcomes."""

    def __init__(
        self,
        pipeline: Pipeline,
        samples: Mapping[str, Samples],
        outcomes: Outcomes,
        task_map: TaskMap | None,
        plan: Plan,
        threshold: float | None,
    ) -> None:
        self.pipeline = pipeline
        self.samples = samples
        self.outcomes = outcomes
        self.task_map = task_map
        self.plan = plan
        self.threshold = threshold
        self.states = outcomes.states
        groups = [task_map.category(t) if task_map else t for t in outcomes.tasks]
        self.groups = sorted(set(groups) - {IGNORED} if task_map else set(groups))
        place = {group: number for number, group in enumerate(self.groups)}
        self.group = np.array([place.get(group, -1) for group in groups])[outcomes.task]
        self.lives = {path: Lives(self._states(path)) for path in pipeline.paths}
        self._names: dict[int, ItemName] = {}

    def build(self) -> Lineage:
        """Compute everything."""
        self.maps = self._maps()
        self._names = self.outcomes.logs.item_names(self._listed())
        return Lineage(
            root=self.pipeline.root,
            nodes=[self._node(name) for name in self.pipeline.order],
            comparisons=[
                StageMap(
                    before=before,
                    after=after,
                    edge=(before, after) in self.pipeline.edges,
                    against_root=before == self.pipeline.root,
                    map=stage_map,
                )
                for (before, after), stage_map in self.maps.items()
            ],
            life_lines=[self._life_lines(path) for path in self.lives],
            worst_stages={path[-1]: self._worst_stages(path) for path in self.lives},
            merges=[
                self._merge(name)
                for name in self.pipeline.order
                if len(self.pipeline.checkpoints[name].parents) > 1
            ],
            dose_curves=self._dose_curves(),
            runs=[self._run(path) for path in self.lives if len(path) > 2],
            settings=LineageSettings(
                task_map=self.task_map.name if self.task_map else None,
                threshold=THRESHOLD if self.threshold is None else self.threshold,
                margin=self.plan.margin,
                draws=self.plan.draws,
                seed=self.plan.seed,
                listed=LISTED,
            ),
            warnings=self.outcomes.logs.warnings,
        )

    # --- maps -----------------------------------------------------------------------------------

    def _maps(self) -> dict[tuple[str, str], ForgettingMap]:
        """A map for every edge, and for every checkpoint against the root."""
        root = self.pipeline.root
        wanted = [*self.pipeline.edges, *((root, n) for n in self.pipeline.order if n != root)]
        return {pair: self._map(*pair) for pair in dict.fromkeys(wanted)}

    def _map(self, before: str, after: str) -> ForgettingMap:
        pairs = self.outcomes.logs.pairs(before, after)
        if self.task_map:
            pairs = with_task_map(pairs, self.task_map)
        tasks = pairs.patterns.tasks
        result = build_map(
            pairs,
            {task: self.task_map.category(task) for task in tasks} if self.task_map else {},
            replace(self.plan, new=self.plan.new & set(tasks)),
            sides=[self.samples[before], self.samples[after]],
            threshold=self.threshold,
            task_map=self.task_map.name if self.task_map else None,
        )
        named = {
            "before": result.before.model_copy(update={"name": before}),
            "after": result.after.model_copy(update={"name": after}),
        }
        return result.model_copy(update=named)

    def _node(self, name: str) -> Node:
        checkpoint, samples = self.pipeline.checkpoints[name], self.samples[name]
        states = self.states[self.outcomes.index(name)]
        everywhere = int(self.outcomes.seen.any(axis=0).sum())
        return Node(
            name=name,
            parents=list(checkpoint.parents),
            log=checkpoint.log,
            model=samples.model or ", ".join(samples.models),
            harness=samples.meta.harness,
            numbers=checkpoint.numbers,
            items=int((states >= 0).sum()),
            missing=everywhere - int((states >= 0).sum()),
            known=int((states == 1).sum()),
        )

    # --- life lines -----------------------------------------------------------------------------

    def _states(self, names: Sequence[str]) -> NDArray[np.int8]:
        return self.states[[self.outcomes.index(name) for name in names]]

    def _listed(self) -> Ints:
        """Every item that some list of the result names."""
        parts = [
            *(
                lives.of_kind(kind)[:LISTED]
                for lives in self.lives.values()
                for kind in KINDS
                if kind not in _UNLISTED
            ),
            *(_most_forgotten(lives) for lives in self.lives.values()),
            *(
                self._lost_by_merging(name)[:LISTED]
                for name, checkpoint in self.pipeline.checkpoints.items()
                if len(checkpoint.parents) > 1
            ),
        ]
        return np.unique(np.concatenate(parts))

    def _life_lines(self, path: tuple[str, ...]) -> LifeLines:
        lives = self.lives[path]
        kinds = np.where(lives.present, lives.kinds, -1)
        return LifeLines(
            path=list(path),
            items=int(lives.present.sum()),
            counts={kind: int((kinds == place).sum()) for place, kind in enumerate(KINDS)},
            fates=[
                Fate(
                    kind=kind,
                    lost_at=_stage(path, lost),
                    learned_at=_stage(path, learned),
                    count=count,
                )
                for kind, lost, learned, count in lives.fates()
            ],
            groups={
                group: {
                    kind: int(((kinds == place) & (self.group == number)).sum())
                    for place, kind in enumerate(KINDS)
                }
                for number, group in enumerate(self.groups)
            },
            listed={
                kind: [self.traced(path, item) for item in lives.of_kind(kind)[:LISTED].tolist()]
                for kind in KINDS
                if kind not in _UNLISTED
            },
        )

    def name_all(self) -> None:
        """Look up the names of all items, not only of those that the result lists."""
        self._names = self.outcomes.logs.item_names(np.arange(len(self.outcomes.task)))

    def item_name(self, item: int) -> ItemName:
        """Task, hash and id of an item."""
        return self._names[item]

    def group_name(self, item: int) -> str:
        """An item's category; its task, without a task map."""
        return self.groups[int(self.group[item])]

    def traced(self, path: tuple[str, ...], item: int) -> TracedItem:
        """One item's life along a path."""
        lives, name = self.lives[path], self._names[item]
        return TracedItem(
            number=item,
            task=name.task,
            item=name.item,
            item_ref=name.item_ref,
            states="".join("?" if s < 0 else str(s) for s in lives.states[:, item].tolist()),
            first_learned=_stage(path, lives.first_learned[item]),
            first_lost=_stage(path, lives.first_lost[item]),
            times_forgotten=int(lives.times_forgotten[item]),
            times_flipped=int(lives.times_flipped[item]),
        )

    def _worst_stages(self, path: tuple[str, ...]) -> list[WorstStage]:
        edges = list(pairwise(path))
        worst = []
        for group in self.groups:
            cells = {}
            for edge in edges:
                stage_map = self.maps[edge]
                cell = (stage_map.categories if self.task_map else stage_map.tasks).get(group)
                if cell is not None:
                    cells[edge] = cell
            if not cells:
                continue
            edge = max(cells, key=lambda pair: cells[pair].lost.value)
            cell = cells.pop(edge)
            flipped = cell.counts.n10
            worst.append(
                WorstStage(
                    group=group,
                    before=edge[0],
                    after=edge[1],
                    lost=cell.lost,
                    flipped=flipped,
                    flipped_on_path=flipped + sum(other.counts.n10 for other in cells.values()),
                    clear=all(cell.lost.low > other.lost.high for other in cells.values()),
                )
            )
        return worst

    # --- merges ---------------------------------------------------------------------------------

    def _merged(self, name: str) -> tuple[NDArray[np.int8], NDArray[np.int8], NDArray[np.bool_]]:
        """States of the parents, of the merge, and which items all of them have."""
        parents = self._states(self.pipeline.checkpoints[name].parents)
        merged = self._states([name])[0]
        return parents, merged, (parents >= 0).all(axis=0) & (merged >= 0)

    def _lost_by_merging(self, name: str) -> Ints:
        parents, merged, complete = self._merged(name)
        return np.flatnonzero(complete & (merged == 0) & (parents == 1).any(axis=0))

    def _merge(self, name: str) -> Merge:
        names = self.pipeline.checkpoints[name].parents
        parents, merged, complete = self._merged(name)
        present = (parents >= 0).any(axis=0) | (merged >= 0)
        lost = self._lost_by_merging(name)
        knowing = (1 << np.arange(len(names))) @ np.maximum(parents, 0)
        parts = []
        for code in sorted(np.unique(knowing[complete]).tolist(), reverse=True):
            chosen = np.flatnonzero(complete & (knowing == code))
            hits = merged[chosen] == 1
            part = share(hits, self._clusters(chosen))
            assert part is not None  # the code occurs
            parts.append(
                MergePart(
                    known_to=_known_to(names, code),
                    items=len(chosen),
                    kept=int(hits.sum()),
                    share=part,
                )
            )
        groups = Counter(self.group[lost].tolist())
        return Merge(
            name=name,
            parents=list(names),
            items=int(complete.sum()),
            incomplete=int((present & ~complete).sum()),
            parts=parts,
            lost=len(lost),
            new=int((complete & (knowing == 0) & (merged == 1)).sum()),
            groups={self.groups[group]: count for group, count in sorted(groups.items())},
            listed=[
                MergedItem(
                    number=item,
                    **self._names[item]._asdict(),
                    known_to=_known_to(names, int(knowing[item])),
                )
                for item in lost[:LISTED].tolist()
            ],
        )

    def _clusters(self, items: Ints) -> Ints | None:
        """What stands or falls together, of some items."""
        if not self.outcomes.clustered:
            return None
        span = int(self.outcomes.bucket.max()) + 2
        return self.outcomes.task[items] * span + self.outcomes.bucket[items]

    # --- curves ---------------------------------------------------------------------------------

    def _dose_curves(self) -> list[DoseCurve]:
        curves = []
        for number in NUMBERS:
            sweeps: dict[str, list[str]] = {}
            for chain in self._chains(number):
                origin = self._origin(chain[0], number)
                if len(chain) > 1:
                    curves.append(self._dose_curve(number, origin, chain, "run"))
                else:
                    sweeps.setdefault(origin, []).extend(chain)
            curves += [
                self._dose_curve(number, origin, names, "sweep")
                for origin, names in sweeps.items()
                if len(names) > 1
            ]
        return curves

    def _chains(self, number: str) -> list[list[str]]:
        """Checkpoints with the number, those that follow each other without a branch together."""
        carriers = [
            name
            for name in self.pipeline.order
            if number in self.pipeline.checkpoints[name].numbers and name != self.pipeline.root
        ]
        chains: dict[str, list[str]] = {}
        for name in carriers:
            parent = self.pipeline.checkpoints[name].parents[0]
            siblings = [n for n in self.pipeline.main_children(parent) if n in carriers]
            chain = chains[parent] if parent in chains and len(siblings) == 1 else []
            chain.append(name)
            chains[name] = chain
        return list({id(chain): chain for chain in chains.values()}.values())

    def _origin(self, name: str, number: str) -> str:
        """The nearest main-line ancestor without the number, or else the root."""
        for ancestor in reversed(self.pipeline.main_line(name)[:-1]):
            if number not in self.pipeline.checkpoints[ancestor].numbers:
                return ancestor
        return self.pipeline.root

    def _dose_curve(self, number: str, origin: str, names: list[str], form: str) -> DoseCurve:
        start = self._states([origin])[0]
        points = []
        for name in names:
            now = self._states([name])[0]
            kept, gained = (
                share(now[items] == 1, self._clusters(items))
                for items in (np.flatnonzero((start == state) & (now >= 0)) for state in (1, 0))
            )
            dose = self.pipeline.checkpoints[name].numbers[number]
            points.append(DosePoint(checkpoint=name, dose=dose, kept=kept, gained=gained))
        return DoseCurve(
            number=number,
            origin=origin,
            form=form,  # type: ignore[arg-type]
            points=sorted(points, key=lambda point: point.dose),
        )

    def _run(self, path: tuple[str, ...]) -> TrainingRun:
        lives = self.lives[path]
        doses = [self.pipeline.checkpoints[name].numbers for name in path[1:]]
        number = next((n for n in NUMBERS if all(n in dose for dose in doses)), None)
        moments = []
        for stage, name in enumerate(path[1:], 1):
            cell = self.maps[path[0], name].old
            lost = np.flatnonzero(lives.lost_before(stage))
            moments.append(
                Moment(
                    checkpoint=name,
                    dose=doses[stage - 1][number] if number else None,
                    accuracy=cell.accuracy_after,
                    lost=cell.lost,
                    gained=cell.gained,
                    lost_before=len(lost),
                    recovered=share(lives.states[stage, lost] == 1, self._clusters(lost)),
                )
            )
        counted = Counter(lives.times_forgotten[lives.complete].tolist())
        return TrainingRun(
            path=list(path),
            number=number,
            moments=moments,
            times_forgotten=dict(sorted(counted.items())),
            most_forgotten=[self.traced(path, item) for item in _most_forgotten(lives).tolist()],
        )


def _most_forgotten(lives: Lives) -> Ints:
    """The items lost most often, those that changed most among them first."""
    items = np.flatnonzero(lives.times_forgotten)
    order = np.lexsort((items, -lives.times_flipped[items], -lives.times_forgotten[items]))
    return items[order][:MOST_FORGOTTEN]


def _known_to(names: Sequence[str], code: int) -> list[str]:
    return [name for bit, name in enumerate(names) if code >> bit & 1]


def _stage(path: Sequence[str], stage: int) -> str | None:
    return None if stage == NEVER else path[stage]
