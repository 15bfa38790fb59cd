"""Two logs in, one comparison out: the map, the pairs behind it, the cause of every loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, get_args

import numpy as np

from forgetmap.base.errors import InputError
from forgetmap.base.files import looking_once, same_content
from forgetmap.base.words import some
from forgetmap.map import published
from forgetmap.map.cause_counts import count_causes
from forgetmap.map.cells import CellTable, Plan
from forgetmap.map.estimates import Floors, noise_floors
from forgetmap.map.flips import COLUMNS, changed_items, find_causes
from forgetmap.map.graded import score_change
from forgetmap.map.result import Cell, ComparedModel, ForgettingMap, MapSettings
from forgetmap.map.task_maps import TaskMap
from forgetmap.map.trained import WasTrained, mark_trained
from forgetmap.pairing.pairs import Pairs, ScoreSums
from forgetmap.pairing.two_logs import pair
from forgetmap.readers.framework import ReadOptions
from forgetmap.readers.registry import for_pairing, read_all
from forgetmap.readers.table_columns import check_columns
from forgetmap.samples.comparability import (
    Confound,
    Identity,
    check_whole,
    find_confounds,
    suspicions,
)
from forgetmap.samples.table import THRESHOLD, Samples

if TYPE_CHECKING:
    import pyarrow as pa

Sources = tuple[tuple[str | Path | Samples, str | None, str], ...]
"""Per side: the log, the model to take from it, and the side's name."""
AnySamples = TypeVar("AnySamples", bound=Samples)
DRAWS = 10_000
"""Bootstrap draws, unless the caller asks for another number."""


@dataclass(frozen=True)
class Comparison:
    """Two logs, compared. Writers of reports and tables take it; it never changes."""

    map: ForgettingMap
    pairs: Pairs
    causes: pa.ChunkedArray | None
    """The cause of every change in the order of `Pairs.flips`; None if the text was not read."""

    def changed(self, columns: pa.Schema = COLUMNS) -> Iterator[pa.Table]:
        """Stream the items that changed, with both answers and the cause of every loss."""
        if self.causes is None:
            raise InputError("the items were compared without their text; use causes=True")
        return changed_items(self.pairs, self.causes, columns)


class CompareOptions(TypedDict, total=False):
    """The options of `compare_logs`, for calls that pass them on."""

    before_model: str | None
    after_model: str | None
    task_map: str | Path | TaskMap | None
    metric: Mapping[str, str] | str | None
    threshold: float | None
    margin: float
    identity: Identity
    engine: str
    columns: Mapping[str, str] | None
    before_columns: Mapping[str, str] | None
    after_columns: Mapping[str, str] | None
    compat: str | None
    new: Iterable[str]
    was_trained: WasTrained | None
    taught: Iterable[str]
    deterministic: bool
    noise_before: str | Path | Samples | None
    noise_after: str | Path | Samples | None
    draws: int
    seed: int
    tick: Callable[[int], None] | None


@looking_once()
def compare_logs(
    before: str | Path | Samples,
    after: str | Path | Samples,
    *,
    before_model: str | None = None,
    after_model: str | None = None,
    task_map: str | Path | TaskMap | None = None,
    metric: Mapping[str, str] | str | None = None,
    threshold: float | None = None,
    margin: float = 0.02,
    identity: Identity = "content",
    engine: str = "duckdb",
    columns: Mapping[str, str] | None = None,
    before_columns: Mapping[str, str] | None = None,
    after_columns: Mapping[str, str] | None = None,
    compat: str | None = None,
    causes: bool = False,
    new: Iterable[str] = (),
    was_trained: WasTrained | None = None,
    taught: Iterable[str] = (),
    deterministic: bool = False,
    noise_before: str | Path | Samples | None = None,
    noise_after: str | Path | Samples | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    tick: Callable[[int], None] | None = None,
) -> Comparison:
    """Compare two logs item by item.

    Args:
        before: Log of the model before post-training: a file, a folder, or Samples.
        after: Log of the model after it.
        before_model: Which model to take where the log before holds several.
        after_model: The same for the log after.
        task_map: Categories of the tasks: a built-in map's name, a CSV or YAML file.
        metric: Metric for all tasks, or per task; by default the most lenient to format.
        threshold: Score from which an answer counts as correct; by default the middle of each
            task's scale.
        margin: Change of accuracy, and share forgotten, that would matter to you.
        identity: `content`; `index` to pair by the harness's own ids; `row` to pair the rows of
            two tables by their number.
        engine: `duckdb`, or `spark` for Samples Parquet in a lake that outgrew one machine.
        columns: For plain tables, what forgetmap needs -> the column's name.
        before_columns: The same for the log before alone, such as a table that holds two models.
        after_columns: The same for the log after alone.
        compat: `post-forget` adds the table of the published pipeline.
        causes: Say why items were lost, in every cell; reads the text of the logs.
        new: Tasks that the training was meant to teach; they are reported apart.
        was_trained: Says of a prompt whether the training data ask it; such items are new too.
        taught: Right answers in the training data, to tell where they turn up elsewhere.
        deterministic: You vouch that a run has no noise: the same model answers the same again.
        noise_before: A second run of the model before, which measures its noise.
        noise_after: The same for the model after.
        draws: Draws of the test for clusters.
        seed: Seed of the draws.
        tick: Called with the number of bytes just read.

    Example:
        >>> from forgetmap.samples import Samples, content_hash
        >>> def log(*scores):
        ...     return Samples.from_rows({"item": content_hash(str(i)), "score": s}
        ...                              for i, s in enumerate(scores))
        >>> total = compare_logs(log(1, 1, 1, 0), log(1, 0, 1, 1)).map.total
        >>> total.raw.lost.value, total.raw.gained.value
        (0.25, 0.25)
    """
    check_threshold(threshold)
    plan = Plan(
        margin=margin,
        draws=draws,
        seed=seed,
        new=frozenset(new),
        deterministic=deterministic,
        same=before_model == after_model
        and (before_columns or {}) == (after_columns or {})
        and _is_one_log(before, after),
    )
    plan.check()
    _check_choices(identity, engine, compat, was_trained is not None)
    own_columns = before_columns or {}, after_columns or {}
    for named in (columns or {}, *own_columns):
        check_columns(named)
    categories = task_map if isinstance(task_map, TaskMap | None) else TaskMap.load(task_map)
    how = ReadOptions(
        text=causes or compat is not None or was_trained is not None,
        columns=columns or {},
        tick=tick or (lambda _bytes: None),
    )
    sources = ((before, before_model, "before"), (after, after_model, "after"))
    if engine == "spark":
        sides, pairs = _pair_in_lake(
            sources, how, metric=metric, threshold=threshold, identity=identity
        )
    else:
        sides = _read_sides(sources, how, own_columns)
        if was_trained is not None:
            marked = mark_trained(sides, was_trained)
            sides, plan = marked.sides, replace(plan, new=plan.new | marked.new)
            plan.notes.append(f"{marked.items:,} items are in the training data: they are new")
        pairs = pair(*sides, metric=metric, threshold=threshold, identity=identity)
    floors = _noise_floors(
        sides, (noise_before, noise_after), how, metric=pairs.metrics, threshold=threshold
    )
    if categories:
        pairs = with_task_map(pairs, categories)
    result = build_map(
        pairs,
        {task: categories.category(task) for task in pairs.patterns.tasks} if categories else {},
        replace(plan, floors=floors),
        sides=sides,
        threshold=threshold,
        task_map=categories.name if categories else None,
    )
    if compat:
        table = published.post_forget(sides[0], sides[1], pairs.metrics)
        result = result.model_copy(update={"compat": table})
    return with_causes(result, pairs, taught) if causes else Comparison(result, pairs, None)


def with_causes(result: ForgettingMap, pairs: Pairs, taught: Iterable[str] = ()) -> Comparison:
    """Work out the cause of every loss, and count the causes in every cell of the map."""
    causes = find_causes(pairs, result.settings.new, taught)
    counted = count_causes(result, changed_items(pairs, causes), pairs.churn())
    return Comparison(counted, pairs, causes)


def build_map(
    pairs: Pairs,
    categories: Mapping[str, str],
    plan: Plan,
    *,
    sides: list[Samples],
    threshold: float | None,
    task_map: str | None,
) -> ForgettingMap:
    """Compute every cell from the pairs; costs the same for a thousand items and for millions."""
    check_whole(dict(zip(("before", "after"), sides, strict=True)))
    table = CellTable(pairs.patterns, categories, plan)
    plan = table.plan
    total = table.total()
    result = ForgettingMap(
        before=_side(sides[0], total.repeats_before),
        after=_side(sides[1], total.repeats_after),
        settings=MapSettings(
            metric=pairs.metrics,
            threshold=THRESHOLD if threshold is None else threshold,
            thresholds=pairs.thresholds,
            margin=plan.margin,
            seed=plan.seed,
            draws=plan.draws,
            new=sorted(plan.new),
            deterministic=plan.deterministic,
            task_map=task_map,
        ),
        coverage=pairs.coverage,
        confounds=[*_confounds(sides, pairs.patterns.tasks), *_changed_prompts(pairs)],
        warnings=[
            *(f"before: {text}" for text in sides[0].meta.warnings),
            *(f"after: {text}" for text in sides[1].meta.warnings),
            *pairs.warnings,
            *_conflict_warning(pairs),
            *_plan_notes(plan),
            *suspicions(sides[0], sides[1], flipped=_has_flipped(total)),
        ],
        total=total,
        old=(table.old() or total) if plan.new else total,
        new=table.new(),
        macro=table.macro(),
        categories=table.category_cells(),
        tasks=table.tasks(),
        task_categories=dict(categories),
    )
    return _with_scores(result, pairs.scores) if pairs.scores else result


def _with_scores(result: ForgettingMap, sums: Mapping[str, ScoreSums]) -> ForgettingMap:
    """The same map with how far scores fell and rose, where they are more than right or wrong."""

    def scored(cell: Cell, tasks: Iterable[str]) -> Cell:
        return cell.model_copy(update={"score": score_change(sums, tasks)})

    in_category: dict[str, list[str]] = {}
    for task, category in result.task_categories.items():
        in_category.setdefault(category, []).append(task)
    new = [task for task in result.tasks if task in result.settings.new]
    old = [task for task in result.tasks if task not in new]
    return result.model_copy(
        update={
            "total": scored(result.total, result.tasks),
            "old": scored(result.old, old or new),
            "new": result.new and scored(result.new, new),
            "categories": {
                name: scored(cell, in_category.get(name, []))
                for name, cell in result.categories.items()
            },
            "tasks": {name: scored(cell, [name]) for name, cell in result.tasks.items()},
        }
    )


def _has_flipped(total: Cell) -> bool:
    return total.raw.lost.value > 0 or total.raw.gained.value > 0


def _is_one_log(before: str | Path | Samples, after: str | Path | Samples) -> bool:
    """Whether the two logs are one and the same, or copies."""
    if isinstance(before, Samples) or isinstance(after, Samples):
        return before is after
    return same_content(Path(before), Path(after))


def _noise_floors(
    sides: list[Samples],
    noise: tuple[str | Path | Samples | None, str | Path | Samples | None],
    how: ReadOptions,
    **options: Any,
) -> Floors | None:
    """Pair each model with its own second run; None where there is none."""
    paired = [
        None
        if second is None
        else pair(side, _only(read_all([second], how)[0], None, f"noise-{name}"), **options)
        for side, second, name in zip(sides, noise, ("before", "after"), strict=True)
    ]
    before, after = (None if pairs is None else pairs.patterns for pairs in paired)
    return None if before is None and after is None else noise_floors(before, after)


def _plan_notes(plan: Plan) -> list[str]:
    """What a reader must know of how the map was made."""
    same = ["the two logs are one and the same: nothing can have been lost or gained"]
    return [*(same if plan.same else []), *plan.notes]


def check_threshold(threshold: float | None) -> None:
    """Refuse a score that none can be compared with."""
    if threshold is not None and not math.isfinite(threshold):
        raise InputError(f"the threshold must be a number, not {threshold}")


def check_identity(identity: str) -> None:
    """Refuse a way to tell items apart that there is not."""
    if identity not in get_args(Identity):
        raise InputError(f"--identity {identity}: must be {' or '.join(get_args(Identity))}")


def check_engine(engine: str) -> None:
    """Refuse an engine that is not known."""
    if engine not in ("duckdb", "spark"):
        raise InputError(f"--engine {engine}: must be duckdb or spark")


def _check_choices(identity: str, engine: str, compat: str | None, trained: bool) -> None:
    check_identity(identity)
    check_engine(engine)
    if compat is not None and compat not in published.PROTOCOLS:
        raise InputError(f"--compat {compat}: known are {', '.join(published.PROTOCOLS)}")
    if engine == "spark" and trained:
        raise InputError("--trained-on reads whole logs; it works with --engine duckdb only")
    if engine == "spark" and compat:
        raise InputError("--compat reads whole logs; it works with --engine duckdb only")


def _read_sides(
    sources: Sources, how: ReadOptions, columns: tuple[Mapping[str, str], Mapping[str, str]]
) -> list[Samples]:
    """Read both logs, whatever harness wrote them."""
    how = for_pairing([source for source, _, _ in sources], how)
    logs = [
        read_all([source], replace(how, columns={**how.columns, **own}))[0]
        for (source, _, _), own in zip(sources, columns, strict=True)
    ]
    return [
        _only(samples, model, side) for samples, (_, model, side) in zip(logs, sources, strict=True)
    ]


def _pair_in_lake(
    sources: Sources,
    how: ReadOptions,  # noqa: ARG001  # Spark reads what it needs
    **options: Any,
) -> tuple[list[Samples], Pairs]:
    """Pair Samples Parquet with Spark, where it lies."""
    from forgetmap.pairing import spark

    lakes = [_only(spark.Lake(str(source)), model, side) for source, model, side in sources]
    return [*lakes], spark.pair(*lakes, **options)


def _only(samples: AnySamples, model: str | None, side: str) -> AnySamples:
    try:
        return samples.only(model)
    except InputError as error:
        raise InputError(f"{side}: {error} (--{side}-model)") from error


def with_task_map(pairs: Pairs, task_map: TaskMap) -> Pairs:
    """Take missing option counts from the task map, and leave out what it says to ignore."""
    applied = task_map.apply(pairs.patterns.tasks)
    kept = without_tasks(pairs, applied.ignored)
    k = kept.patterns.k.copy()
    for task, options in applied.options.items():
        k[(kept.patterns.task == task) & np.isinf(k)] = options
    return replace(
        kept,
        patterns=kept.patterns._replace(k=k),
        warnings=[*pairs.warnings, *applied.warnings],
    )


def without_tasks(pairs: Pairs, tasks: Collection[str]) -> Pairs:
    """The pairs of all other tasks."""
    return replace(
        pairs,
        patterns=pairs.patterns.where(~np.isin(pairs.patterns.task, list(tasks))),
        metrics={task: name for task, name in pairs.metrics.items() if task not in tasks},
    )


def _side(samples: Samples, runs: int) -> ComparedModel:
    name = samples.model or ", ".join(samples.models)
    version = f" {samples.meta.version}" if samples.meta.version else ""
    return ComparedModel(name=name, harness=f"{samples.meta.harness}{version}", runs=runs)


def _conflict_warning(pairs: Pairs) -> list[str]:
    if not pairs.conflicts:
        return []
    listed = ", ".join(f"{task}#{ref}" for task, ref in pairs.conflicts[:5])
    more = f" and {len(pairs.conflicts) - 5} more" if len(pairs.conflicts) > 5 else ""
    return [f"same id, different content, not paired: {listed}{more}"]


def _confounds(sides: list[Samples], tasks: list[str]) -> list[Confound]:
    # That the weights differ is why the two are compared.
    before, after = (
        {name: value for name, value in samples.settings.items() if name != "weights"}
        for samples in sides
    )
    one, other = (samples.meta.harness for samples in sides)
    if one == other:
        return find_confounds(before, after, tasks)
    # Harnesses tell different things; only what both tell in the same form can be compared.
    both = [
        name for name in before.keys() & after.keys() if type(before[name]) is type(after[name])
    ]
    before, after = ({name: settings[name] for name in both} for settings in (before, after))
    told = find_confounds(before, after, tasks)
    return [Confound(setting="harness", before=one, after=other), *told]


def _changed_prompts(pairs: Pairs) -> list[Confound]:
    """Tell in which tasks the two models were asked in other words."""
    if not pairs.prompts:
        return []
    changed, paired = (sum(column) for column in zip(*pairs.prompts.values(), strict=True))
    where = some(pairs.prompts)
    told = f"another in {changed:,} of {paired:,} items"
    return [Confound(setting=f"prompt ({where})", before="as asked", after=told)]
