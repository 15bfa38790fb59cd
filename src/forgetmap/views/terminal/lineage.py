"""The lineage for people at a terminal: the tree, the life lines, what merges and doses did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from forgetmap.base.words import clean, percent
from forgetmap.lineage.lives import KINDS
from forgetmap.lineage.result import DoseCurve, LifeLines, Lineage, Merge, Node, TrainingRun
from forgetmap.map.result import FORGETTING_WORDS, NET_WORDS
from forgetmap.stats.estimate import interval
from forgetmap.views.terminal.console import (
    Row,
    Step,
    make_table,
    say,
    say_notes,
    say_table,
    verdict_style,
    without_interval,
)
from forgetmap.views.words import interval_or_dash, points, short_interval, short_range

_MOST_ROWS = 12
_NAME = 30


def print_lineage(result: Lineage, out: Console) -> None:
    """Print the lineage: one sentence, the tree, then a table for each question."""
    print_tree(result, out)
    single = [lines for lines in result.life_lines if len(lines.path) == 2]
    if len(single) > 1:
        _print(out, "items by their life lines", _single_steps(single, out.width))
    for lines in result.life_lines:
        end = lines.path[-1]
        if len(single) > 1 and lines in single:
            continue
        _print(out, f"life lines to {clean(end, _NAME)}", _life_lines(lines))
        if len(lines.path) > 2:
            title = f"where most was lost on the way to {clean(end, _NAME)}"
            _print(out, title, _worst(result, end, out.width))
    for merge in result.merges:
        _print(out, _merge_title(merge), _merge(merge))
    for curve in result.dose_curves:
        title = f"{curve.number} ({curve.form}), against {clean(curve.origin, _NAME)}"
        _print(out, title, _dose_curve(curve))
    for run in result.runs:
        _print(out, f"run to {clean(run.path[-1], _NAME)}", _run(run, out.width))
        _print(out, "items forgotten more than once", _most_forgotten(run))
    say_notes(out, result.warnings)
    say(
        out,
        f"{result.settings.majority} (life lines, merges, doses); missing items are never "
        "taken for wrong. lost, gained: of the old skills, 95 % interval in brackets. Gains do not "
        "make up for losses. verdict: on what was lost; net: on the accuracy.",
        "dim",
    )
    say(out, "next: --report lineage.html shows the graph and every item that changed")


def print_tree(result: Lineage, out: Console) -> None:
    """Print the sentence and the tree: every checkpoint, and what it lost and gained."""
    say(out, clean(result.headline(), 300), "bold")
    out.print()
    say_table(out, _tree(result, out.width))


def _print(out: Console, title: str, table: Table) -> None:
    if table.row_count:
        say(out, title, "bold")
        say_table(out, table)


def _tree(result: Lineage, width: int) -> Table:
    """One row for every step, with the columns of a map; the names are drawn as a tree."""
    rows: list[Row] = []
    for node, stem in _drawn(result):
        known = points(node.known / node.items) if node.items else "-"
        name = f"{stem}{clean(node.name, _NAME)}"
        inside = stem.replace("├─", "│ ").replace("└─", "  ")
        first, others = (node.parents[0], node.parents[1:]) if node.parents else (None, [])
        rows.append((name, known, *_change(result, first, node.name)))
        rows += [
            (f"{inside}  from {clean(other, _NAME)}", "", *_change(result, other, node.name))
            for other in others
        ]
        if node.parents and result.root not in node.parents:
            since = f"{inside}  since {clean(result.root, _NAME)}"
            rows.append((since, "", *_change(result, result.root, node.name)))
        if node.missing:
            rows.append((f"{inside}  {node.missing:,} items missing",))
    names = ("checkpoint", "known %", "lost %", "gained %", "verdict", "net")
    left = ("verdict", "net")
    return make_table(names, rows, left=left, width=width, gap=1, narrower=_NARROWER)


_NARROWER: tuple[Step, ...] = (
    ("gained %", without_interval),
    ("known %", None),
    ("lost %", without_interval),
)


def _drawn(result: Lineage) -> Iterator[tuple[Node, str]]:
    """Every checkpoint with what stands before its name; one line of them is not indented."""
    children: dict[str, list[Node]] = {}
    for node in result.nodes:
        if node.parents:
            children.setdefault(node.parents[0], []).append(node)
    waiting = [(result.node(result.root), "", "")]
    while waiting:
        node, stem, below = waiting.pop()
        yield node, stem
        found = children.get(node.name, [])
        if len(found) == 1:
            waiting.append((found[0], below, below))
        else:
            last = len(found) - 1
            waiting += [
                (child, f"{below}{'└─' if place == last else '├─'} ",
                 f"{below}{'   ' if place == last else '│  '}")
                for place, child in reversed(list(enumerate(found)))
            ]  # fmt: skip


def _change(result: Lineage, before: str | None, after: str) -> tuple[str | Text, ...]:
    """What a step lost and gained, and both verdicts; the root has none."""
    if before is None:
        return ()
    cell = result.comparison(before, after).old
    ranges = (short_range(cell.lost), short_range(cell.gained))
    return (
        *ranges,
        Text(
            FORGETTING_WORDS[cell.verdict.forgetting], style=verdict_style(cell.verdict.forgetting)
        ),
        Text(NET_WORDS[cell.verdict.net], style=verdict_style(cell.verdict.net)),
    )


def _single_steps(paths: Sequence[LifeLines], width: int) -> Table:
    """Paths of one step beside each other: how many items of every kind."""
    kinds = [kind for kind in KINDS if any(lines.counts[kind] for lines in paths)]
    rows = (
        (clean(lines.path[-1], _NAME), *(f"{lines.counts[kind]:,}" for kind in kinds))
        for lines in paths
    )
    return make_table(("to", *kinds), rows, width=width)


def _life_lines(lines: LifeLines) -> Table:
    rows = (
        (kind, f"{count:,}", percent(count / lines.items), clean(lines.stages(kind), 300))
        for kind, count in lines.counts.items()
        if count
    )
    return make_table(("life line", "items", "share", "stages"), rows, left=("stages",))


def _worst(result: Lineage, end: str, width: int) -> Table:
    stages = sorted(result.worst_stages[end], key=lambda stage: -stage.lost.value)
    rows = (
        (
            clean(stage.group, 40),
            f"{clean(stage.before, _NAME)} → {clean(stage.after, _NAME)}",
            short_range(stage.lost),
            f"{stage.flipped:,.4g} / {stage.flipped_on_path:,.4g}",
            "yes" if stage.clear else "no",
        )
        for stage in stages[:_MOST_ROWS]
    )
    names = ("group", "stage", "lost %", "flips / on path", "clear")
    narrower: tuple[Step, ...] = (("flips / on path", None), ("lost %", without_interval))
    return make_table(names, rows, left=("stage",), width=width, narrower=narrower)


def _merge_title(merge: Merge) -> str:
    return (
        f"merge {clean(merge.name, _NAME)}: of {merge.items:,} items {merge.lost:,} lost by "
        f"merging, {merge.new:,} new"
        + (f"; {merge.incomplete:,} incomplete" if merge.incomplete else "")
    )


def _merge(merge: Merge) -> Table:
    rows = (
        (
            " and ".join(clean(name, _NAME) for name in part.known_to) or "no parent",
            f"{part.items:,}",
            f"{part.kept:,}",
            interval(part.share),
        )
        for part in merge.parts
    )
    return make_table(("known to", "items", "known after merging", "share %"), rows)


def _dose_curve(curve: DoseCurve) -> Table:
    rows = (
        (
            clean(point.checkpoint, _NAME),
            f"{point.dose:g}",
            interval_or_dash(point.kept),
            interval_or_dash(point.gained),
        )
        for point in curve.points
    )
    return make_table(("checkpoint", curve.number, "old kept %", "new gained %"), rows)


def _run(run: TrainingRun, width: int) -> Table:
    rows = (
        (
            clean(moment.checkpoint, _NAME),
            f"{stage if moment.dose is None else moment.dose:g}",
            points(moment.accuracy),
            *map(short_range, (moment.lost, moment.gained)),
            short_interval(moment.recovered),
        )
        for stage, moment in enumerate(run.moments, 1)
    )
    narrower: tuple[Step, ...] = (("gained %", without_interval), ("recovered %", without_interval))
    number = run.number or "stage"
    names = ("checkpoint", number, "accuracy %", "lost %", "gained %", "recovered %")
    return make_table(names, rows, width=width, gap=1, narrower=narrower)


def _most_forgotten(run: TrainingRun) -> Table:
    rows = []
    for item in run.most_forgotten[:_MOST_ROWS]:
        if item.times_forgotten < 2:
            break
        stages = (item.first_learned or "", item.first_lost or "")
        texts = (clean(text, _NAME) for text in (item.task, item.item, item.states, *stages))
        rows.append((*texts, f"{item.times_forgotten}x"))
    names = ("task", "item", "stages", "first learned", "first lost", "forgotten")
    return make_table(names, rows, left=names[:-1])
