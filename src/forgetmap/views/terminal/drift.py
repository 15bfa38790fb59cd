"""Manifest, scores and drift for people at a terminal, 100 columns wide."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from forgetmap.base.words import clean, percent, some
from forgetmap.capabilities.drift_result import signed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console, JustifyMethod

    from forgetmap.capabilities.drift_result import Aggregate, Drift, MetricDrift
    from forgetmap.capabilities.judge import Usage
    from forgetmap.capabilities.manifest import Manifest, Metric
    from forgetmap.capabilities.published import PublishedTable
    from forgetmap.capabilities.score import Scored

_COLOURS = {
    "worse": "red", "better": "green", "lower": "magenta", "higher": "cyan",
    "equivalent": "green", "undecided": "yellow",
}  # fmt: skip
_LEFT = {"verdict", "worst part", "metric", "scorer", "better", "role"}
Row = tuple[str | Text, ...]
_EXPLAINED = (
    "change: after minus before, with its 95 % interval over items. relative: the same over the "
    "base, withheld (-) where the base is near zero. flips: 1->0 / 0->1. fail: answers without a "
    "valid value, before / after, %. p: paired test, adjusted. lower and higher are the verdicts "
    "where neither is better. Aggregates are CapTrack's mean of relative changes; without one: "
    "their range when one part is left out."
)


def print_manifest(manifest: Manifest, out: Console) -> None:
    """List capabilities and their metrics."""
    counts = dict.fromkeys(("primary", "deep-dive"), 0)
    for metric in manifest.metrics.values():
        counts[metric.role] += 1
    judged = sum(metric.by == "judge" for metric in manifest.metrics.values())
    out.print(
        Text(
            f"{clean(manifest.name)}: {len(manifest.capabilities)} capabilities, "
            f"{len(manifest.task_names)} tasks, {counts['primary']} primary and "
            f"{counts['deep-dive']} deep-dive metrics, {judged} of them by a judge",
            style="bold",
        )
    )
    for group, meaning in manifest.groups.items():
        out.print(Text(f"\n{clean(group)}: {clean(meaning)}", style="bold"))
        rows: list[Row] = []
        for capability in manifest.capabilities:
            if capability.group == group:
                name = f"{clean(capability.code, 12)} {clean(capability.name)}"
                rows.append((Text(name, style="bold"),))
                rows += [_metric_row(metric) for metric in capability.metrics]
        out.print(_table(out.width, ("task", "metric", "scorer", "range", "better", "role"), rows))


def _metric_row(metric: Metric) -> Row:
    low, high = ("" if bound is None else f"{bound:g}" for bound in metric.range)
    scorer = f"judge: {metric.scorer}" if metric.by == "judge" else metric.scorer
    return (
        Text(f"  {clean(metric.task, 40)}"),
        *(clean(name, 30) for name in (metric.metric, scorer)),
        *(f"{low}..{high}", metric.direction, metric.role),
    )


def print_scored(scored: Scored, path: object, out: Console, usage: Usage | None = None) -> None:
    """Say what was scored, what was not, and what the judge has cost."""
    reused = f", {scored.reused} parts from an earlier run" if scored.reused else ""
    out.print(
        Text(
            f"{clean(path)}: {scored.rows:,} values of {len(scored.tasks)} tasks for "
            f"{clean(scored.model, 60)}{reused}",
            style="bold",
        )
    )
    failed = {name: n for name, n in scored.statuses.items() if name != "ok"}
    if failed:
        listed = ", ".join(f"{count:,} {clean(name)}" for name, count in sorted(failed.items()))
        out.print(Text(f"answers without a clean value: {listed}"))
    by_reason: dict[str, list[str]] = {}
    for gap in scored.gaps:
        by_reason.setdefault(gap.reason, []).append(f"{gap.task} {gap.metric}")
    for reason, names in by_reason.items():
        text = f"not scored, {reason}: {_counted(names)} ({some(names, 4)})"
        out.print(Text(clean(text, 300), style="yellow"))
    if usage is not None:
        out.print(Text(str(usage)))
    for warning in scored.warnings:
        out.print(Text(f"note: {clean(warning)}", style="dim"))


def print_drift(result: Drift, out: Console) -> None:
    """Print the drift: the answer, how far to trust it, groups, capabilities, metrics."""
    out.print(Text(result.headline(), style="bold"))
    out.print(Text(f"{clean(result.before, 45)} -> {clean(result.after, 45)}"))
    for text in _trust(result):
        out.print(Text(text))
    out.print()
    if result.groups:
        out.print(_aggregates(out.width, "group", [(group.name, group) for group in result.groups]))
        out.print()
    if result.capabilities:
        rows = [(f"{cell.code} {cell.name}", cell) for cell in result.capabilities]
        out.print(_aggregates(out.width, "capability", rows))
        out.print()
    for role in ("primary", "deep-dive"):
        chosen = [metric for metric in result.metrics if metric.role == role]
        if chosen:
            out.print(_metrics(out.width, f"{role} metric", chosen))
            out.print()
    for text in result.warnings:
        out.print(Text(f"note: {clean(text)}", style="dim"))
    out.print(Text(_EXPLAINED, style="dim"))


def _trust(result: Drift) -> list[str]:
    lines = []
    by_reason: dict[str, list[str]] = {}
    for gap in result.gaps:
        by_reason.setdefault(gap.reason, []).append(f"{gap.task} {gap.metric}")
    for reason, names in by_reason.items():
        lines.append(clean(f"not compared, {reason}: {_counted(names)} ({some(names, 3)})", 300))
    unpaired = sum(metric.only_before + metric.only_after for metric in result.primary)
    unscored = sum(metric.unscored for metric in result.primary)
    if unpaired or unscored:
        lines.append(
            f"items of primary metrics on one side only: {unpaired:,}; without a value on one "
            f"side: {unscored:,}"
        )
    shares = [cell.mde for cell in result.primary if cell.range == (0, 1)]
    if shares:
        lines.append(
            f"smallest change that a primary metric could have shown: {percent(min(shares))} to "
            f"{percent(max(shares))}, half of them {percent(median(shares))} or less"
        )
    lines += [
        f"confound: {clean(found.setting)} differs: {clean(found.before, 60)} / "
        f"{clean(found.after, 60)}"
        for found in result.confounds
    ]
    return lines


def _aggregates(width: int, title: str, cells: Sequence[tuple[str, Aggregate]]) -> Table:
    rows: list[Row] = []
    for name, cell in cells:
        found, out = cell.relative, cell.leave_one_out
        parts = len(cell.parts)
        rows.append(
            (
                clean(name, 40),
                f"{parts}/{parts + len(cell.left_out)}",
                "-" if found is None else _interval(found.value, found.low, found.high),
                "" if out is None else f"{_points(out.low)} to {_points(out.high)}",
                clean(cell.worst or "", 20),
                _p(cell.p_adjusted),
                _verdict(cell.verdict),
            )
        )
    names = ("parts", "relative change", "without one", "worst part", "p", "verdict")
    return _table(width, (title, *names), rows)


def _metrics(width: int, title: str, metrics: Sequence[MetricDrift]) -> Table:
    rows: list[Row] = []
    for cell in metrics:
        # Shares read best in points; counts and ratings as they are.
        unit = 100 if cell.range == (0, 1) else 1
        change = (unit * value for value in (cell.change.value, cell.change.low, cell.change.high))
        value, low, high = (f"{number:+.1f}" for number in change)
        rows.append(
            (
                f"{clean(cell.capability, 5)} {clean(cell.name, 40)}",
                f"{cell.n:,}",
                f"{unit * cell.before:.1f}→{unit * cell.after:.1f}",
                f"{value} ({low}, {high})",
                "-" if cell.relative is None else _points(cell.relative.value),
                f"{cell.flips.lost:.4g}/{cell.flips.gained:.4g}" if cell.flips else "",
                f"{_share(cell.failures_before)}/{_share(cell.failures_after)}",
                _p(cell.p_adjusted),
                _verdict(cell.verdict),
            )
        )
    names = ("n", "before→after", "change", "rel. %", "flips", "fail", "p", "verdict")
    return _table(width, (title, *names), rows)


def print_published(table: PublishedTable, out: Console) -> None:
    """Print CapTrack's own table: mean and deviation of relative changes, in percent."""
    out.print(Text(f"as CapTrack computes it ({table.protocol}), against {clean(table.base)}"))
    if table.zeros:
        out.print(Text(f"exactly 0.0 on some side: {some(table.zeros)}", style="yellow"))
    columns = [*table.models[0].columns, *table.models[0].groups]
    rows: list[Row] = []
    for name in columns:
        cells = [model.columns.get(name) or model.groups[name] for model in table.models]
        rows.append((name, *(f"{cell.mean:+.2f} ({cell.std:.2f})" for cell in cells)))
    out.print(_table(out.width, ("%", *(clean(model.name, 28) for model in table.models)), rows))


def _table(width: int, names: Sequence[str], rows: Sequence[Row]) -> Table:
    """A table of which only the first column gives way where the terminal is narrow."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    columns = [[row[index] for row in rows if index < len(row)] for index in range(len(names))]
    widths = [max(map(len, [name, *cells])) for name, cells in zip(names, columns, strict=True)]
    widths[0] = max(12, min(widths[0], width - sum(widths[1:]) - len(widths)))
    for index, (name, wide) in enumerate(zip(names, widths, strict=True)):
        side: JustifyMethod = "left" if index == 0 or name in _LEFT else "right"
        table.add_column(name, justify=side, no_wrap=True, overflow="ellipsis", width=wide)
    for row in rows:
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    return table


def _interval(value: float, low: float, high: float) -> str:
    return f"{signed(value)} ({_points(low)}, {_points(high)})"


def _points(share: float) -> str:
    return signed(share).removesuffix(" %")


def _share(share: float) -> str:
    return percent(share, 0).removesuffix(" %")


def _counted(names: Sequence[str]) -> str:
    return f"{len(names)} metric{'s' * (len(names) != 1)}"


def _p(p: float) -> str:
    return f"{p:.3f}".lstrip("0") if p >= 0.001 else "<.001"


def _verdict(word: str) -> Text:
    return Text("?" if word == "undecided" else word, style=_COLOURS[word])
