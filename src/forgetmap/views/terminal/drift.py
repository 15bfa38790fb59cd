"""Manifest, scores and drift for people at a terminal, 100 columns wide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import median

from rich.console import Console
from rich.table import Table
from rich.text import Text

from forgetmap.base.words import clean, percent, some
from forgetmap.capabilities.drift_result import Aggregate, Drift, MetricDrift, MissingMetric, signed
from forgetmap.capabilities.judge import Usage
from forgetmap.capabilities.manifest import Manifest, Metric
from forgetmap.capabilities.published import PublishedTable
from forgetmap.capabilities.score import Gap, Scored
from forgetmap.views.terminal.console import (
    Row,
    make_table,
    say,
    say_notes,
    say_table,
    verdict_text,
)
from forgetmap.views.words import p_value, points

_LEFT = {"verdict", "worst part", "metric", "scorer", "better", "role"}
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
    say(
        out,
        f"{clean(manifest.name)}: {len(manifest.capabilities)} capabilities, "
        f"{len(manifest.task_names)} tasks, {counts['primary']} primary and "
        f"{counts['deep-dive']} deep-dive metrics, {judged} of them by a judge",
        "bold",
    )
    for group, meaning in manifest.groups.items():
        say(out, f"\n{clean(group)}: {clean(meaning)}", "bold")
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
    say(
        out,
        f"{clean(path)}: {scored.rows:,} values of {len(scored.tasks)} tasks for "
        f"{clean(scored.model, 60)}{reused}",
        "bold",
    )
    failed = {name: n for name, n in scored.statuses.items() if name != "ok"}
    if failed:
        listed = ", ".join(f"{count:,} {clean(name)}" for name, count in sorted(failed.items()))
        say(out, f"answers without a clean value: {listed}")
    for line in _gap_lines("not scored", scored.gaps, 4):
        say(out, line, "yellow")
    if usage is not None:
        say(out, str(usage))
    say_notes(out, scored.warnings)


def print_drift(result: Drift, out: Console) -> None:
    """Print the drift: the answer, how far to trust it, groups, capabilities, metrics."""
    say(out, result.headline(), "bold")
    say(out, f"{clean(result.before, 45)} -> {clean(result.after, 45)}")
    for line in _trust(result):
        say(out, line)
    out.print()
    if result.groups:
        groups = [(group.name, group) for group in result.groups]
        say_table(out, _aggregates(out.width, "group", groups))
    if result.capabilities:
        capabilities = [(f"{cell.code} {cell.name}", cell) for cell in result.capabilities]
        say_table(out, _aggregates(out.width, "capability", capabilities))
    for role in ("primary", "deep-dive"):
        chosen = [metric for metric in result.metrics if metric.role == role]
        if chosen:
            say_table(out, _metrics(out.width, f"{role} metric", chosen))
    say_notes(out, result.warnings)
    say(out, _EXPLAINED, "dim")


def _gap_lines(what: str, gaps: Iterable[Gap | MissingMetric], most: int) -> Iterator[str]:
    """What is missing, by reason."""
    by_reason: dict[str, list[str]] = {}
    for gap in gaps:
        by_reason.setdefault(gap.reason, []).append(f"{gap.task} {gap.metric}")
    for reason, names in by_reason.items():
        counted = f"{len(names)} metric{'s' * (len(names) != 1)}"
        yield clean(f"{what}, {reason}: {counted} ({some(names, most)})", 300)


def _trust(result: Drift) -> list[str]:
    lines = list(_gap_lines("not compared", result.gaps, 3))
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
        f"confound: {clean(confound.setting)} differs: {clean(confound.before, 60)} / "
        f"{clean(confound.after, 60)}"
        for confound in result.confounds
    ]
    return lines


def _aggregates(width: int, title: str, cells: Sequence[tuple[str, Aggregate]]) -> Table:
    rows: list[Row] = []
    for name, cell in cells:
        change, out = cell.relative, cell.leave_one_out
        parts = len(cell.parts)
        rows.append(
            (
                clean(name, 40),
                f"{parts}/{parts + len(cell.left_out)}",
                "-"
                if change is None
                else f"{signed(change.value)} ({_points(change.low)}, {_points(change.high)})",
                "" if out is None else f"{_points(out.low)} to {_points(out.high)}",
                clean(cell.worst or "", 20),
                p_value(cell.p_adjusted),
                verdict_text(cell.verdict),
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
                f"{points(cell.failures_before, 0)}/{points(cell.failures_after, 0)}",
                p_value(cell.p_adjusted),
                verdict_text(cell.verdict),
            )
        )
    names = ("n", "before→after", "change", "rel. %", "flips", "fail", "p", "verdict")
    return _table(width, (title, *names), rows)


def print_published(table: PublishedTable, out: Console) -> None:
    """Print CapTrack's own table: mean and deviation of relative changes, in percent."""
    say(out, f"as CapTrack computes it ({table.protocol}), against {clean(table.base)}")
    if table.zeros:
        say(out, f"exactly 0.0 on some side: {some(table.zeros)}", "yellow")
    columns = [*table.models[0].columns, *table.models[0].groups]
    rows: list[Row] = []
    for name in columns:
        cells = [model.columns.get(name) or model.groups[name] for model in table.models]
        rows.append((name, *(f"{cell.mean:+.2f} ({cell.std:.2f})" for cell in cells)))
    out.print(_table(out.width, ("%", *(clean(model.name, 28) for model in table.models)), rows))


def _table(width: int, names: Sequence[str], rows: Sequence[Row]) -> Table:
    return make_table(names, rows, left=_LEFT, width=width, gap=1)


def _points(share: float) -> str:
    return signed(share).removesuffix(" %")
