"""The lineage for people at a terminal: the tree, the life lines, what merges and doses did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from forgetmap.base.words import clean, percent
from forgetmap.stats.estimate import interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from forgetmap.lineage.result import DoseCurve, LifeLines, Lineage, Merge, Node, TrainingRun
    from forgetmap.map.result import Cell

_MOST_ROWS = 12
_NAME = 30


def print_lineage(result: Lineage, out: Console) -> None:
    """Print the lineage: one sentence, the tree, then a table for each question."""
    print_tree(result, out)
    for lines in result.life_lines:
        _print(out, f"life lines to {clean(lines.path[-1], _NAME)}", _life_lines(lines))
        if len(lines.path) > 2:
            _print(out, f"where most was lost on the way to {clean(lines.path[-1], _NAME)}",
               _worst(result, lines.path[-1]))  # fmt: skip
    for merge in result.merges:
        _print(out, _merge_title(merge), _merge(merge))
    for curve in result.dose_curves:
        title = f"{curve.number} ({curve.form}), against {clean(curve.origin, _NAME)}"
        _print(out, title, _dose_curve(curve))
    for run in result.runs:
        _print(out, f"run to {clean(run.path[-1], _NAME)}", _run(run))
        _print(out, "items forgotten more than once", _most_forgotten(run))
    for text in result.warnings:
        out.print(Text(f"note: {clean(text)}", style="dim"))
    out.print(
        Text(
            f"{result.settings.majority} (life lines, merges, doses); missing items are never "
            "taken for wrong. forgot, gained: headline estimator of the maps; 95 % intervals in "
            "brackets; then the verdicts: forgetting, net change; ? is undecided.",
            style="dim",
        )
    )


def print_tree(result: Lineage, out: Console) -> None:
    """Print the sentence and the tree: every checkpoint, and what it lost and gained."""
    out.print(Text(clean(result.headline(), 300), style="bold"))
    out.print()
    out.print(_tree(result))
    out.print()


def _print(out: Console, title: str, table: Table) -> None:
    if not table.row_count:
        return
    out.print(Text(title, style="bold"))
    out.print(table)
    out.print()


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
        cell = result.comparison(parent, node.name).total
        name = f" {clean(parent, _NAME)}" if len(node.parents) > 1 else " parent"
        text.append(f"\n  against{name}: {_change(cell)}", style="not bold")
    if node.parents and result.root not in node.parents:
        cell = result.comparison(result.root, node.name).total
        text.append(f"\n  against root: {_change(cell)}", style="not bold")
    return text


def _change(cell: Cell) -> str:
    words = (cell.verdict.forgetting, cell.verdict.net)
    verdict = ", ".join("?" if word == "undecided" else word for word in words)
    return f"forgot {interval(cell.forgot, ' %')}, gained {interval(cell.gained, ' %')}; {verdict}"


def _life_lines(lines: LifeLines) -> Table:
    table = _table(("life line", "items", "share", "stages"), text=1, tail=1)
    for kind, count in lines.counts.items():
        if count:
            stages = Text(clean(lines.stages(kind), 300))
            table.add_row(kind, f"{count:,}", percent(count / lines.items), stages)
    return table


def _worst(result: Lineage, end: str) -> Table:
    table = _table(("group", "stage", "forgot %", "lost here / on the path", "clear"), text=2)
    stages = sorted(result.worst_stages[end], key=lambda stage: -stage.forgetting.value)
    for stage in stages[:_MOST_ROWS]:
        table.add_row(
            Text(clean(stage.group, 40)),
            Text(f"{clean(stage.before, _NAME)} -> {clean(stage.after, _NAME)}"),
            interval(stage.forgetting),
            f"{stage.lost:,.4g} / {stage.lost_on_path:,.4g}",
            "yes" if stage.clear else "no",
        )
    return table


def _merge_title(merge: Merge) -> str:
    return (
        f"merge {clean(merge.name, _NAME)}: of {merge.items:,} items {merge.lost:,} lost by "
        f"merging, {merge.new:,} new"
        + (f"; {merge.incomplete:,} incomplete" if merge.incomplete else "")
    )


def _merge(merge: Merge) -> Table:
    table = _table(("known to", "items", "known after merging", "share %"), text=1)
    for part in merge.parts:
        names = " and ".join(clean(name, _NAME) for name in part.known_to) or "no parent"
        table.add_row(Text(names), f"{part.items:,}", f"{part.kept:,}", interval(part.share))
    return table


def _dose_curve(curve: DoseCurve) -> Table:
    table = _table(("checkpoint", curve.number, "old kept %", "new gained %"), text=1)
    for point in curve.points:
        shares = ("-" if s is None else interval(s) for s in (point.kept, point.gained))
        table.add_row(Text(clean(point.checkpoint, _NAME)), f"{point.dose:g}", *shares)
    return table


def _run(run: TrainingRun) -> Table:
    number = run.number or "stage"
    names = ("checkpoint", number, "accuracy %", "forgot %", "gained %", "recovered %")
    table = _table(names, text=1)
    for stage, moment in enumerate(run.moments, 1):
        recovered = "-" if moment.recovered is None else interval(moment.recovered)
        table.add_row(
            Text(clean(moment.checkpoint, _NAME)),
            f"{stage if moment.dose is None else moment.dose:g}",
            percent(moment.accuracy).removesuffix(" %"),
            interval(moment.forgotten),
            interval(moment.gained),
            recovered,
        )
    return table


def _most_forgotten(run: TrainingRun) -> Table:
    table = _table(("task", "item", "stages", "first learned", "first lost", "forgotten"), text=5)
    for item in run.most_forgotten[:_MOST_ROWS]:
        if item.times_forgotten < 2:
            break
        stages = (item.first_learned or "", item.first_lost or "")
        cells = (clean(text, _NAME) for text in (item.task, item.item, item.states, *stages))
        table.add_row(*map(Text, cells), f"{item.times_forgotten}x")
    return table


def _table(names: Sequence[str], text: int, tail: int = 0) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for place, name in enumerate(names):
        is_text = place < text or place >= len(names) - tail
        table.add_column(name, justify="left" if is_text else "right", overflow="fold")
    return table
