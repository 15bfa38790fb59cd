"""Two logs in, one map out."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from forgetmap import compat as published
from forgetmap.cells import CellTable, Plan
from forgetmap.errors import InputError
from forgetmap.evaluate.describe import suspicions
from forgetmap.flips import check_suffix, write_flips
from forgetmap.map import Cell, Confound, CoverageReport, ForgettingMap, Settings, Side
from forgetmap.pairing import pair
from forgetmap.readers import ReadOptions, read
from forgetmap.readers.common import some
from forgetmap.readers.table import check_columns
from forgetmap.samples import THRESHOLD, Samples
from forgetmap.taskmap import IGNORED, UNMAPPED, TaskMap

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from forgetmap.logs import Identity
    from forgetmap.pairing import Pairs

Sources = tuple[tuple[str | Path | Samples, str | None, str], ...]
"""Per side: the log, the model to take from it, and the side's name."""
AnySamples = TypeVar("AnySamples", bound=Samples)
DRAWS = 10_000
"""Bootstrap draws, where nobody says how many."""
_EXAMPLE = "examples/study/pipeline.yaml"


def compare(
    before: str | Path | Samples,
    after: str | Path | Samples,
    *,
    before_model: str | None = None,
    after_model: str | None = None,
    task_map: str | Path | TaskMap | None = None,
    metric: Mapping[str, str] | str | None = None,
    threshold: float = THRESHOLD,
    margin: float = 0.02,
    identity: Identity = "content",
    engine: str = "duckdb",
    columns: Mapping[str, str] | None = None,
    compat: str | None = None,
    causes: bool = False,
    flips: str | Path | None = None,
    report: str | Path | None = None,
    save: str | Path | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    tick: Callable[[int], None] | None = None,
) -> ForgettingMap:
    """Map what was forgotten and gained between two logs.

    Args:
        before: Log of the model before post-training: a file, a folder, or Samples.
        after: Log of the model after it.
        before_model: Which model to take where the log before holds several.
        after_model: The same for the log after.
        task_map: Categories of the tasks: a built-in map's name, a CSV or YAML file.
        metric: Metric for all tasks, or per task; by default the most lenient to format.
        threshold: Score from which an answer counts as correct.
        margin: Change of accuracy, and share forgotten, that would matter to you.
        identity: `content`, or `index` to pair by the harness's own ids.
        engine: `duckdb`, or `spark` for Samples Parquet in a lake that outgrew one machine.
        columns: For plain tables, what forgetmap needs -> the column's name.
        compat: `post-forget` adds the table of the published pipeline.
        causes: Say why items were lost, in every cell; reads the text of the logs. So do `flips`,
            `report` and `save`.
        flips: Write the items that changed to this CSV, JSONL or Parquet file.
        report: Write the map as one HTML file to look at and send around.
        save: Write the comparison to this folder, for `forgetmap serve`.
        draws: Bootstrap draws.
        seed: Seed of the draws.
        tick: Called with the number of bytes just read.

    Example:
        >>> from forgetmap.samples import Samples, content_hash
        >>> def log(*scores):
        ...     return Samples.from_rows({"item": content_hash(str(i)), "score": s}
        ...                              for i, s in enumerate(scores))
        >>> result = compare(log(1, 1, 1, 0), log(1, 0, 1, 1))
        >>> result.total.forgetting.raw.value, result.total.backward_transfer.raw.value
        (0.25, 0.25)
    """
    check_threshold(threshold)
    plan = Plan(margin=margin, draws=draws, seed=seed)
    plan.check()
    _check_choices(identity, engine, compat)
    check_columns(columns or {})
    if flips is not None:
        check_suffix(flips)
    categories = task_map if isinstance(task_map, TaskMap | None) else TaskMap.load(task_map)
    causes = causes or any(found is not None for found in (flips, report, save))
    how = ReadOptions(
        text=causes or compat is not None,
        columns=columns or {},
        tick=tick or (lambda _bytes: None),
    )
    sources = ((before, before_model, "before"), (after, after_model, "after"))
    run = _pair_in_lake if engine == "spark" else _pair_here
    sides, pairs = run(sources, how, metric=metric, threshold=threshold, identity=identity)
    if categories:
        _apply(categories, pairs)
    result = build_map(
        pairs,
        {task: categories.category(task) for task in pairs.patterns.tasks} if categories else {},
        plan,
        sides=sides,
        threshold=threshold,
        task_map=categories.name if categories else None,
    )
    if compat:
        table = published.post_forget(sides[0], sides[1], pairs.metrics)
        result = result.model_copy(update={"compat": table})
    if causes:
        from forgetmap.causes import with_causes_counted

        result = with_causes_counted(result, pairs)
    _write_items(result, pairs, flips, report, save)
    return result


def demo(flips: str | Path | None = None, report: str | Path | None = None) -> ForgettingMap:
    """Map the first step of the bundled example: a small language model before and after SFT.

    Example:
        >>> demo().total.n > 1000
        True
    """
    before, after = example_logs()
    tasks = before.parents[1] / "tasks.csv"
    return compare(before, after, task_map=tasks, flips=flips, report=report)


def example_pipeline() -> Path:
    """Where the bundled example lies, a pipeline file: in the wheel, or in the source tree."""
    packaged = Path(__file__).parent / "example" / "pipeline.yaml"
    source = Path(__file__).parents[2] / _EXAMPLE
    for path in (packaged, source):
        if path.is_file():
            return path
    raise InputError("the bundled example is missing; reinstall forgetmap")


def example_logs() -> list[Path]:
    """The logs of the bundled example's first step: the model before, and after plain SFT."""
    folder = example_pipeline().parent / "logs" / "told"
    return [folder / f"smollm2-{name}.parquet" for name in ("before", "airports-sft-0")]


def build_map(
    pairs: Pairs,
    categories: Mapping[str, str],
    plan: Plan,
    *,
    sides: list[Samples],
    threshold: float,
    task_map: str | None,
) -> ForgettingMap:
    """Compute every cell from the pairs; costs the same for a thousand items and for millions."""
    table = CellTable(pairs.patterns, categories, plan)
    total = table.total()
    return ForgettingMap(
        before=_side(sides[0], total.repeats_before),
        after=_side(sides[1], total.repeats_after),
        settings=Settings(
            metric=pairs.metrics,
            threshold=threshold,
            margin=plan.margin,
            seed=plan.seed,
            draws=plan.draws,
            headline=total.headline,
            task_map=task_map,
        ),
        coverage=CoverageReport(**asdict(pairs.coverage)),
        confounds=[*_confounds(sides, pairs.patterns.tasks), *_changed_prompts(pairs)],
        warnings=[
            *(f"before: {text}" for text in sides[0].meta.warnings),
            *(f"after: {text}" for text in sides[1].meta.warnings),
            *pairs.warnings,
            *_conflict_warning(pairs),
            *suspicions(sides[0], sides[1], flipped=_has_flipped(total)),
        ],
        total=total,
        macro=table.macro(),
        categories=table.category_cells(),
        tasks=table.tasks(),
        task_categories=dict(categories),
    )


def _has_flipped(total: Cell) -> bool:
    return total.forgetting.raw.value > 0 or total.backward_transfer.raw.value > 0


def check_threshold(threshold: float) -> None:
    """Refuse a score that none can be compared with."""
    if not math.isfinite(threshold):
        raise InputError(f"the threshold must be a number, not {threshold}")


def _check_choices(identity: str, engine: str, compat: str | None) -> None:
    if identity not in ("content", "index"):
        raise InputError(f"--identity {identity}: must be content or index")
    if engine not in ("duckdb", "spark"):
        raise InputError(f"--engine {engine}: must be duckdb or spark")
    if compat is not None and compat not in published.PROTOCOLS:
        raise InputError(f"--compat {compat}: known are {', '.join(published.PROTOCOLS)}")
    if engine == "spark" and compat:
        raise InputError("--compat reads whole logs; it works with --engine duckdb only")


def _write_items(
    result: ForgettingMap,
    pairs: Pairs,
    flips: str | Path | None,
    report: str | Path | None,
    save: str | Path | None,
) -> None:
    """Write what shows single items; each road streams them once."""
    if flips:
        write_flips(pairs, flips)
    if report or save:
        from forgetmap.report import save_comparison, write_report

        if report:
            write_report(result, pairs, report)
        if save:
            save_comparison(result, pairs, save)


def _pair_here(sources: Sources, how: ReadOptions, **options: Any) -> tuple[list[Samples], Pairs]:
    """Read both logs, whatever harness wrote them, and pair them with DuckDB."""

    def load(how: ReadOptions) -> list[Samples]:
        return [
            _only(source if isinstance(source, Samples) else read(source, how), model, side)
            for source, model, side in sources
        ]

    sides = load(how)
    if sides[0].meta.harness != sides[1].meta.harness:
        sides = load(replace(how, wording=True))
    return sides, pair(*sides, **options)


def _pair_in_lake(
    sources: Sources,
    how: ReadOptions,  # noqa: ARG001  # Spark reads what it needs
    **options: Any,
) -> tuple[list[Samples], Pairs]:
    """Pair Samples Parquet with Spark, where it lies."""
    from forgetmap import spark

    lakes = [_only(spark.Lake(str(source)), model, side) for source, model, side in sources]
    return [*lakes], spark.pair(*lakes, **options)


def _only(samples: AnySamples, model: str | None, side: str) -> AnySamples:
    try:
        return samples.only(model)
    except InputError as error:
        raise InputError(f"{side}: {error} (--{side}-model)") from error


def _apply(task_map: TaskMap, pairs: Pairs) -> None:
    """Take missing option counts from the task map, and leave out what it says to ignore."""
    patterns = pairs.patterns
    for task in patterns.tasks:
        if k := task_map.options(task):
            patterns.k[(patterns.task == task) & np.isinf(patterns.k)] = k
    if unmapped := [task for task in patterns.tasks if task_map.category(task) == UNMAPPED]:
        pairs.warnings.append(f"not in the task map {task_map.name}: {', '.join(unmapped)}")
    ignored = [task for task in patterns.tasks if task_map.category(task) == IGNORED]
    if not ignored:
        return
    pairs.warnings.append(f"left out, as the task map says: {', '.join(ignored)}")
    pairs.patterns = patterns.where(~np.isin(patterns.task, ignored))
    if not len(pairs.patterns.n):
        raise InputError(f"the task map {task_map.name} says to ignore every task of the logs")
    for task in ignored:
        del pairs.metrics[task]


def _side(samples: Samples, runs: int) -> Side:
    name = samples.model or ", ".join(samples.models)
    version = f" {samples.meta.version}" if samples.meta.version else ""
    return Side(name=name, harness=f"{samples.meta.harness}{version}", runs=runs)


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


def find_confounds(
    before: Mapping[str, Any], after: Mapping[str, Any], tasks: list[str]
) -> list[Confound]:
    """List the settings in which two runs differ.

    A setting kept per task is compared over the given tasks; tasks that differ in the same way are
    told together.

    Example:
        >>> find_confounds({"few-shot": {"a": 0, "b": 0}}, {"few-shot": {"a": 5, "b": 5}}, ["a"])
        [Confound(setting='few-shot', before=0, after=5)]
    """
    found = []
    for name in sorted(before.keys() | after.keys()):
        ours, theirs = before.get(name), after.get(name)
        if not isinstance(ours, dict) or not isinstance(theirs, dict):
            if ours != theirs:
                found.append(Confound(setting=name, before=ours, after=theirs))
            continue
        differing: dict[str, list[str]] = {}
        for task in tasks:
            if ours.get(task) != theirs.get(task):
                differing.setdefault(repr((ours.get(task), theirs.get(task))), []).append(task)
        for group in differing.values():
            everywhere = len(group) == len(tasks)
            where = "" if everywhere else f" ({', '.join(group[:3])}{', ...' * (len(group) > 3)})"
            found.append(
                Confound(
                    setting=name + where, before=ours.get(group[0]), after=theirs.get(group[0])
                )
            )
    return found
