"""What the page of a lineage draws, as plain data; checkpoints and groups are named by place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from forgetmap.base.words import clean, percent
from forgetmap.lineage.build import Builder
from forgetmap.lineage.lives import MEANINGS
from forgetmap.lineage.result import DoseCurve, LifeLines, Lineage, StageMap
from forgetmap.map.result import FORGETTING_WORDS, NET_WORDS, Cell
from forgetmap.stats.estimate import BASIS_MEANING, Estimate
from forgetmap.views.html.cells import cell_row, short
from forgetmap.views.html.shell import HEAT_STEPS
from forgetmap.views.words import is_split, most_lost, points


def finding(result: Lineage) -> str:
    """What was lost most, and at which stage, as short as a title."""
    worst, stage = _worst(result)
    lost = worst.map.old.lost
    said = (
        f"{clean(worst.after, 40)} lost most: {most_lost(lost)} against {clean(result.root, 40)}."
    )
    if stage is worst:
        return said
    return (
        f"{said} The stage that lost most is {clean(stage.before, 40)} → {clean(stage.after, 40)}: "
        f"{most_lost(stage.map.old.lost)}."
    )


def doubt(result: Lineage) -> str:
    """How sure that is, and which estimator every number of the page comes from."""
    worst, _ = _worst(result)
    lost, of = worst.map.old.lost, worst.map.old.n
    bases = {stage.map.old.lost.basis for stage in result.comparisons}
    basis = bases.pop() if len(bases) == 1 else "mixed"
    return (
        f"95 % interval {points(lost.low)} to {percent(lost.high)} of {of:,} items. The estimator "
        f"of all numbers: lost is the mean of max(p−q,0) over items, gained that of "
        f"max(q−p,0), {BASIS_MEANING[basis]}."
    )


def _worst(result: Lineage) -> tuple[StageMap, StageMap]:
    """The checkpoint that lost most against the root, and the stage that lost most."""

    def lost(stage: StageMap) -> float:
        return stage.map.old.lost.value

    against = max((stage for stage in result.comparisons if stage.against_root), key=lost)
    return against, max((stage for stage in result.comparisons if stage.edge), key=lost)


def page_data(result: Lineage, builder: Builder) -> dict[str, Any]:
    """All that the page shows, besides the items."""
    place = {node.name: number for number, node in enumerate(result.nodes)}
    maps = [stage.map for stage in result.comparisons]
    columns = {
        "category": list(dict.fromkeys(name for found in maps for name in found.categories)),
        "task": list(dict.fromkeys(name for found in maps for name in found.tasks)),
    }
    return {
        "margin": result.settings.margin,
        "words": {"forgetting": FORGETTING_WORDS, "net": NET_WORDS},
        "steps": HEAT_STEPS,
        "columns": columns,
        "taught": _taught(builder, columns),
        "category_of": {
            task: category for found in maps for task, category in found.task_categories.items()
        },
        "options": _options(result),
        "nodes": [
            {
                **node.model_dump(include={"name", "model", "harness", "numbers", "items"}),
                **node.model_dump(include={"missing", "known"}),
                "parents": [place[parent] for parent in node.parents],
                "way": [place[name] for name in builder.pipeline.main_line(node.name)],
            }
            for node in result.nodes
        ],
        "pairs": [_pair(stage, builder, place, columns) for stage in result.comparisons],
        "paths": [_path(lines, place) for lines in result.life_lines],
        "meanings": MEANINGS,
        "curves": [_curve(curve, place) for curve in result.dose_curves],
        "runs": [
            {
                "path": [place[name] for name in run.path],
                "number": run.number,
                "recovered": [_estimate(moment.recovered) for moment in run.moments],
                "lost_before": [moment.lost_before for moment in run.moments],
                "times_forgotten": list(run.times_forgotten.items()),
            }
            for run in result.runs
        ],
    }


def _options(result: Lineage) -> dict[str, int]:
    """How many options the items of a task have, where all have as many."""
    cells = {task: cell for stage in result.comparisons for task, cell in stage.map.tasks.items()}
    return {
        task: int(next(iter(cell.k)))
        for task, cell in cells.items()
        if cell.k is not None and len(cell.k) == 1 and next(iter(cell.k)).isdigit()
    }


def _taught(builder: Builder, columns: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Tasks that the training was meant to teach, and the categories that hold no others."""
    new = builder.plan.new
    inside: dict[str, set[str]] = {}
    for task in builder.outcomes.tasks:
        if builder.task_map:
            inside.setdefault(builder.task_map.category(task), set()).add(task)
    return {
        "task": [task for task in columns["task"] if task in new],
        "category": [name for name in columns["category"] if inside.get(name, {""}) <= new],
    }


def _pair(
    stage: StageMap,
    builder: Builder,
    place: Mapping[str, int],
    columns: Mapping[str, Sequence[str]],
) -> dict[str, Any]:
    found = stage.map
    was, now = (builder.states[builder.outcomes.index(n)] for n in (stage.before, stage.after))
    cells: dict[str, dict[str, Cell]] = {"category": found.categories, "task": found.tasks}
    return {
        "before": place[stage.before],
        "after": place[stage.after],
        "edge": stage.edge,
        "root": stage.against_root,
        "old": cell_row(found.old),
        "new": cell_row(found.new) if is_split(found) else None,
        "would_decide": found.old.verdict.would_decide,
        "flipped": [int(((was == 1) & (now == 0)).sum()), int(((was == 0) & (now == 1)).sum())],
        **{by: [cell_row(cells[by].get(name)) for name in names] for by, names in columns.items()},
    }


def _path(lines: LifeLines, place: Mapping[str, int]) -> dict[str, Any]:
    return {
        "nodes": [place[name] for name in lines.path],
        "items": lines.items,
        "counts": [
            (kind, count, lines.stages(kind)) for kind, count in lines.counts.items() if count
        ],
    }


def _curve(curve: DoseCurve, place: Mapping[str, int]) -> dict[str, Any]:
    return {
        "number": curve.number,
        "form": curve.form,
        "origin": place[curve.origin],
        "points": [
            (place[point.checkpoint], point.dose, _estimate(point.kept), _estimate(point.gained))
            for point in curve.points
        ],
    }


def _estimate(found: Estimate | None) -> list[float | None] | None:
    return None if found is None else [short(v) for v in (found.value, found.low, found.high)]
