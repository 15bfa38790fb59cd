"""The lineage for people at a terminal: the tree, the life lines, what merges and doses did."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from forgetmap.base.words import clean, percent
from forgetmap.lineage.result import DoseCurve, LifeLines, Lineage, Merge, Node, TrainingRun
from forgetmap.map.result import Cell
from forgetmap.stats.estimate import interval, range_words
from forgetmap.views.terminal.console import make_table, say, say_notes, say_table
from forgetmap.views.words import interval_or_dash, long_range, points, verdict_mark

_MOST_ROWS = 12
_NAME = 30


def print_lineage(result: Lineage, out: Console) -> None:
    """Print the lineage: one sentence, the tree, then a table for each question."""
    print_tree(result, out)
    for lines in result.life_lines:
        end = lines.path[-1]
        _print(out, f"life lines to {clean(end, _NAME)}", _life_lines(lines))
        if len(lines.path) > 2:
            title = f"where most was lost on the way to {clean(end, _NAME)}"
            _print(out, title, _worst(result, end))
    for merge in result.merges:
        _print(out, _merge_title(merge), _merge(merge))
    for curve in result.dose_curves:
        title = f"{curve.number} ({curve.form}), against {clean(curve.origin, _NAME)}"
        _print(out, title, _dose_curve(curve))
    for run in result.runs:
        _print(out, f"run to {clean(run.path[-1], _NAME)}", _run(run))
        _print(out, "items forgotten more than once", _most_forgotten(run))
    say_notes(out, result.warnings)
    say(
        out,
        f"{result.settings.majority} (life lines, merges, doses); missing items are never "
        "taken for wrong. first the verdicts: forgetting, net change; ? is can't tell. lost, "
        "gained: of the old skills, 95 % intervals in brackets.",
        "dim",
    )


def print_tree(result: Lineage, out: Console) -> None:
    """Print the sentence and the tree: every checkpoint, and what it lost and gained."""
    say(out, clean(result.headline(), 300), "bold")
    out.print()
    out.print(_tree(result))
    out.print()


def _print(out: Console, title: str, table: Table) -> None:
    if table.row_count:
        say(out, title, "bold")
        say_table(out, table)


def _tree(result: Lineage) -> Tree:
    root = result.node(result.root)
    tree = Tree(_label(result, root), guide_style="dim")
    places = {root.name: tree}
    one_line = len(result.life_lines) == 1  # needs no indenting, however long it is
    for node in result.nodes:
        if node.parents:
            above = tree if one_line else places[node.parents[0]]
            places[node.name] = above.add(_label(result, node))
    return tree


def _label(result: Lineage, node: Node) -> Text:
    text = Text(clean(node.name, _NAME), style="bold")
    more = [f"{name} {value:g}" for name, value in node.numbers.items()]
    if node.missing:
        more.append(f"{node.missing:,} items missing")
    known = node.known / node.items if node.items else 0.0
    text.append(f"  {percent(known)} known", style="not bold")
    if more:
        text.append(f" ({', '.join(more)})", style="not bold dim")
    for parent in node.parents:
        cell = result.comparison(parent, node.name).old
        name = f" {clean(parent, _NAME)}" if len(node.parents) > 1 else " parent"
        text.append(f"\n  against{name}: {_change(cell)}", style="not bold")
    if node.parents and result.root not in node.parents:
        cell = result.comparison(result.root, node.name).old
        text.append(f"\n  against root: {_change(cell)}", style="not bold")
    return text


def _change(cell: Cell) -> str:
    verdict = ", ".join(map(verdict_mark, (cell.verdict.forgetting, cell.verdict.net)))
    return f"{verdict} · lost {range_words(cell.lost)}, gained {range_words(cell.gained)}"


def _life_lines(lines: LifeLines) -> Table:
    rows = (
        (kind, f"{count:,}", percent(count / lines.items), clean(lines.stages(kind), 300))
        for kind, count in lines.counts.items()
        if count
    )
    return make_table(("life line", "items", "share", "stages"), rows, left=("stages",))


def _worst(result: Lineage, end: str) -> Table:
    stages = sorted(result.worst_stages[end], key=lambda stage: -stage.lost.value)
    rows = (
        (
            clean(stage.group, 40),
            f"{clean(stage.before, _NAME)} -> {clean(stage.after, _NAME)}",
            long_range(stage.lost),
            f"{stage.flipped:,.4g} / {stage.flipped_on_path:,.4g}",
            "yes" if stage.clear else "no",
        )
        for stage in stages[:_MOST_ROWS]
    )
    names = ("group", "stage", "lost %", "flips here / on the path", "clear")
    return make_table(names, rows, left=("stage",))


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


def _run(run: TrainingRun) -> Table:
    rows = (
        (
            clean(moment.checkpoint, _NAME),
            f"{stage if moment.dose is None else moment.dose:g}",
            points(moment.accuracy),
            *map(long_range, (moment.lost, moment.gained)),
            interval_or_dash(moment.recovered),
        )
        for stage, moment in enumerate(run.moments, 1)
    )
    number = run.number or "stage"
    names = ("checkpoint", number, "accuracy %", "lost %", "gained %", "recovered %")
    return make_table(names, rows)


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
