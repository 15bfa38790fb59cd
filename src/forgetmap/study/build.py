"""A study file in, its result out: every log read once, every pair compared once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from forgetmap.base.errors import InputError, WithheldError
from forgetmap.base.words import clean, some
from forgetmap.map.cells import Plan
from forgetmap.map.comparison import (
    build_map,
    check_engine,
    check_threshold,
    with_task_map,
    without_tasks,
)
from forgetmap.map.result import ForgettingMap
from forgetmap.map.task_maps import TaskMap
from forgetmap.samples.comparability import Identity
from forgetmap.samples.table import Samples
from forgetmap.study.answers import answer
from forgetmap.study.drifts import Behaviour, corrected_drifts
from forgetmap.study.file import Study, StudyPair
from forgetmap.study.items import MOST_CELLS, PairItems
from forgetmap.study.logs import LakeLogs, LocalLogs, Logs
from forgetmap.study.result import (
    FailedPair,
    StudiedPair,
    StudyCell,
    StudyResult,
    StudySettings,
)
from forgetmap.study.store import Store, key_of
from forgetmap.study.verdicts import corrected

DRAWS = 1000
CACHE = Path(".forgetmap") / "study"
"""Where results are kept, beside the study file."""


@dataclass(frozen=True)
class How:
    """How every pair of a study is compared."""

    categories: TaskMap | None = None
    metric: Mapping[str, str] | str | None = None
    threshold: float | None = None
    margin: float = 0.02
    identity: Identity = "content"
    deterministic: bool = False
    draws: int = DRAWS
    seed: int = 0
    ignore: tuple[str, ...] = ()
    """Tasks that do not count, as names or patterns, unless a pair has them as new."""

    def key(self, new: Iterable[str]) -> list[object]:
        """All that a map depends on beside its logs, as plain values."""
        rows = None
        if self.categories is not None:
            rows = [self.categories.name, self.categories.rows, self.categories.fallback]
        metric = dict(self.metric) if isinstance(self.metric, Mapping) else self.metric
        numbers = [self.threshold, self.margin, self.draws, self.seed]
        settings = [self.identity, self.deterministic, sorted(new)]
        return [rows, metric, *numbers, *settings, sorted(self.ignore)]

    def ignored(self, tasks: Iterable[str], new: Collection[str]) -> list[str]:
        """The tasks that do not count in a pair."""
        return [
            task
            for task in tasks
            if task not in new and any(fnmatchcase(task, pattern) for pattern in self.ignore)
        ]


def run_study(
    study: str | Path | Study,
    *,
    task_map: str | Path | TaskMap | None = None,
    metric: Mapping[str, str] | str | None = None,
    threshold: float | None = None,
    margin: float = 0.02,
    identity: Identity = "content",
    engine: str = "duckdb",
    new: Iterable[str] = (),
    deterministic: bool = False,
    draws: int = DRAWS,
    seed: int = 0,
    cache: str | Path | None = None,
    tick: Callable[[int, int], None] | None = None,
) -> StudyResult:
    """Compare many pairs of checkpoints, and say what they tell together.

    Args:
        study: A study file, or a `Study`.
        task_map: Categories of the tasks; by default the one that the study names.
        metric: Metric for all tasks, or per task; by default the most lenient to format.
        threshold: Score from which an answer counts as correct; by default the middle of each
            task's scale.
        margin: Change of accuracy, and share forgotten, that would matter to you.
        identity: `content`; `index` to pair by the harness's own ids; `row` to pair rows of tables.
        engine: `duckdb`, or `spark` for Samples Parquet in a lake that outgrew one machine.
        new: Tasks that the trainings were meant to teach, beside those that the study names.
        deterministic: You vouch that a run has no noise.
        draws: Draws of the test for clusters.
        seed: Seed of the draws.
        cache: Where to keep what was read and computed; by default `.forgetmap/study` beside the
            study file.
        tick: Called with the number of pairs that are done, and of all pairs.
    """
    if not isinstance(study, Study):
        study = Study.load(study)
    check_threshold(threshold)
    check_engine(engine)
    Plan(margin=margin, draws=draws, seed=seed).check()
    asked = task_map if task_map is not None else study.task_map
    how = How(
        categories=asked if isinstance(asked, TaskMap | None) else TaskMap.load(asked),
        metric=metric,
        threshold=threshold,
        margin=margin,
        identity=identity,
        deterministic=deterministic or study.deterministic,
        draws=draws,
        seed=seed,
        ignore=study.ignore,
    )
    folder = study.path.parent
    store = Store(folder / CACHE if cache is None else Path(cache))
    logs = LocalLogs(study, store) if engine == "duckdb" else LakeLogs()
    builder = _Builder(logs, store, how, frozenset(new), MOST_CELLS // max(1, len(study.pairs)))
    behaviour = Behaviour(study.manifest, margin, seed, store)
    pairs: list[StudiedPair] = []
    items: list[PairItems | None] = []
    failures: list[FailedPair] = []
    for number, pair in enumerate(study.pairs, 1):
        try:
            compared = builder.compare(pair)
            pairs.append(compared.pair.model_copy(update={"drift": behaviour.of(pair)}))
            items.append(compared.items)
        except (InputError, WithheldError) as error:
            failures.append(_failed(pair, str(error)))
        if tick:
            tick(number, len(study.pairs))
    if not pairs:
        raise InputError(
            f"{study.path}: none of its {len(failures)} pairs could be compared; "
            f"{failures[0].name}: {failures[0].reason}"
        )
    pairs = corrected_drifts(corrected(pairs))
    return StudyResult(
        pairs=pairs,
        failures=failures,
        answers=answer(pairs, _all_or_none(items), study.curve, study.against),
        settings=StudySettings(
            task_map=how.categories.name if how.categories else None,
            threshold=threshold,
            margin=margin,
            identity=identity,
            deterministic=how.deterministic,
            draws=draws,
            seed=seed,
        ),
        warnings=[
            *study.notes,
            *([f"left out, as the study says: {some(study.ignore)}"] if study.ignore else []),
            *_unlike(pairs),
            *builder.unknown_tasks(pairs),
        ],
    )


def _all_or_none(items: list[PairItems | None]) -> list[PairItems] | None:
    """Single items are compared over all pairs, or not at all."""
    found = [each for each in items if each is not None]
    return found if len(found) == len(items) else None


class _Compared(NamedTuple):
    pair: StudiedPair
    items: PairItems | None
    """None where they were too many to be brought here."""


class _Builder:
    """Compares one pair after the other."""

    def __init__(
        self, logs: Logs, store: Store, how: How, new: frozenset[str], most_items: int
    ) -> None:
        self.logs, self.store, self.how, self.new = logs, store, how, new
        self.most_items = most_items
        self._wanted: set[str] = set()

    def compare(self, pair: StudyPair) -> _Compared:
        """What became of a pair: stored before, or compared now."""
        new = self.new | set(pair.new)
        self._wanted |= new
        keys = self._key(pair, "before"), self._key(pair, "after")
        key = key_of("pair", keys, [pair.before_model, pair.after_model], self.how.key(new))
        found = self.store.pair(key)
        if found is None:
            found = self._make(pair, key, new, same=keys[0] == keys[1])
        items = None
        if self._fits(found):
            items = PairItems(pair.before, frozenset(found.new_tasks), key, self.store)
        own: dict[str, object] = {"name": pair.name, "attributes": pair.attributes}
        own |= {"before_log": pair.before, "after_log": pair.after}
        own |= {"outcomes": self.store.items_path(key) if items else None}
        return _Compared(found.model_copy(update=own), items)

    def unknown_tasks(self, pairs: list[StudiedPair]) -> list[str]:
        """What to say of new tasks that no pair has."""
        unknown = self._wanted - {task for pair in pairs for task in pair.tasks}
        return [f"new: no pair has the task {some(unknown)}"] if unknown else []

    def _key(self, pair: StudyPair, side: str) -> str:
        try:
            return self.logs.key(getattr(pair, side))
        except InputError as error:
            raise InputError(f"{side}: {error}") from error

    def _side(self, pair: StudyPair, side: str) -> Samples:
        try:
            return self.logs.samples(getattr(pair, side)).only(getattr(pair, f"{side}_model"))
        except InputError as error:
            hint = f" ({side}_model)" if "choose one by name" in str(error) else ""
            raise InputError(f"{side}: {error}{hint}") from error

    def _make(self, pair: StudyPair, key: str, new: frozenset[str], same: bool) -> StudiedPair:
        how, categories = self.how, self.how.categories
        sides = [self._side(pair, side) for side in ("before", "after")]
        paired = self.logs.pair(
            *sides, metric=how.metric, threshold=how.threshold, identity=how.identity
        )
        if ignored := how.ignored(paired.patterns.tasks, new):
            paired = without_tasks(paired, ignored)
            if not paired.patterns.tasks:
                raise InputError("the study says to ignore every task of this pair")
            paired.warnings.append(f"left out, as the study says: {some(ignored)}")
        if categories:
            paired = with_task_map(paired, categories)
        tasks = paired.patterns.tasks
        plan = Plan(
            margin=how.margin,
            draws=how.draws,
            seed=how.seed,
            new=new & set(tasks),
            deterministic=how.deterministic,
            same=same and pair.before_model == pair.after_model,
        )
        result = build_map(
            paired,
            {task: categories.category(task) for task in tasks} if categories else {},
            plan,
            sides=sides,
            threshold=how.threshold,
            task_map=categories.name if categories else None,
        )
        found = _studied(pair, result, categories)
        kept = pa.table({})
        if self._fits(found):
            items = paired.outcomes()
            kept = items.filter(pc.is_in(items["task"], pa.array(sorted(tasks), pa.string())))
        self.store.keep_pair(key, found, kept)
        return found

    def _fits(self, pair: StudiedPair) -> bool:
        """Whether the items of all pairs fit into the memory of this machine."""
        return pair.coverage is None or pair.coverage.matched <= self.most_items


def _studied(pair: StudyPair, result: ForgettingMap, categories: TaskMap | None) -> StudiedPair:
    new = [task for task in result.tasks if task in result.settings.new]
    return StudiedPair(
        name=pair.name,
        attributes=pair.attributes,
        before=result.before.name,
        after=result.after.name,
        before_log=pair.before,
        after_log=pair.after,
        old=StudyCell.of(result.old),
        new=StudyCell.of(result.new) if result.new else None,
        categories={name: StudyCell.of(cell) for name, cell in result.categories.items()},
        tasks={name: StudyCell.of(cell) for name, cell in result.tasks.items()},
        coverage=result.coverage,
        metric=result.settings.metric,
        confounds=[confound.setting for confound in result.confounds],
        warnings=result.warnings,
        new_tasks=new,
        new_categories=sorted({categories.category(task) for task in new}) if categories else [],
    )


def _failed(pair: StudyPair, reason: str) -> FailedPair:
    return FailedPair(
        name=pair.name,
        attributes=pair.attributes,
        before_log=pair.before,
        after_log=pair.after,
        reason=reason,
    )


def _unlike(pairs: list[StudiedPair]) -> list[str]:
    """In what the pairs differ so that their numbers are not quite of the same thing."""
    told = []
    tasks = [set(pair.tasks) - set(pair.new_tasks) for pair in pairs]
    everywhere, somewhere = set.intersection(*tasks), set.union(*tasks)
    if everywhere != somewhere:
        fewest = min(range(len(pairs)), key=lambda number: len(tasks[number]))
        told.append(
            f"the pairs do not share all tasks: {len(everywhere)} of {len(somewhere)} are in all "
            f"of them, {clean(pairs[fewest].name, 60)} has {len(tasks[fewest])}; ranks compare the "
            "items that two pairs share, the other numbers do not"
        )
    metrics: dict[str, set[str]] = {}
    for pair in pairs:
        for task, metric in pair.metric.items():
            metrics.setdefault(task, set()).add(metric)
    if mixed := sorted(task for task, names in metrics.items() if len(names) > 1):
        told.append(f"pairs differ in the metric of {some(mixed)}; name one for all with --metric")
    partial = [pair for pair in pairs if _share(pair) < 1]
    if partial:
        least = min(partial, key=_share)
        told.append(
            f"{len(partial)} pairs are partial: {clean(least.name, 60)} compares "
            f"{_matched(least):,} of {_most_items(least):,} items; the JSON has the others"
        )
    if changed := [pair for pair in pairs if pair.confounds]:
        settings = some({name for pair in changed for name in pair.confounds})
        told.append(f"{len(changed)} pairs were run with other settings: {settings}")
    bases = {pair.old.lost.basis for pair in pairs}
    if len(bases) > 1:
        told.append(f"pairs differ in where their losses come from: {some(bases)}")
    if plain := sum(pair.old.lost.basis in ("single_run", "mixed") for pair in pairs):
        told.append(
            f"{plain} of {len(pairs)} pairs have one run each of right and wrong: ranks, means, "
            "slopes and claims count all that turned wrong there, noise and guessing included; "
            "repeats or probabilities would take these out"
        )
    if failed := [pair for pair in pairs if pair.drift and pair.drift.failure]:
        told.append(
            f"{len(failed)} pairs have no drift; {clean(failed[0].name, 60)}: "
            f"{failed[0].drift.failure if failed[0].drift else ''}"
        )
    return told


def _most_items(pair: StudiedPair) -> int:
    found = pair.coverage
    return max(found.items_before, found.items_after, 1) if found else 1


def _matched(pair: StudiedPair) -> int:
    return pair.coverage.matched if pair.coverage else 1


def _share(pair: StudiedPair) -> float:
    return _matched(pair) / _most_items(pair)
