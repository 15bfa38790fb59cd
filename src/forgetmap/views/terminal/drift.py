"""Manifest, scores and drift for people at a terminal, of 80 columns or more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import median

from rich.console import Console
from rich.table import Table
from rich.text import Text

from forgetmap.base.words import clean, percent, some
from forgetmap.capabilities.drift_result import (
    Aggregate,
    Between,
    Drift,
    MetricDrift,
    MissingMetric,
    signed,
)
from forgetmap.capabilities.judge import Usage
from forgetmap.capabilities.manifest import Manifest, Metric
from forgetmap.capabilities.published import PublishedTable
from forgetmap.capabilities.score import Gap, Scored
from forgetmap.views.terminal.console import (
    Row,
    Step,
    make_table,
    say,
    say_notes,
    say_table,
    verdict_text,
    without_interval,
)
from forgetmap.views.words import p_value, points

_LEFT = {"verdict", "metric", "scorer", "better", "role"}
_TOLD = 4
"""Undecided metrics whose way out is printed; the page and the JSON have all."""
_EXPLAINED = (
    "change: after minus before, with its 95 % interval over items. relative: the same over the "
    "base, withheld (-) where too few items are above zero on either side; an aggregate then shows "
    "its change in points (pt). lost/gained: share of the score that got worse / better (fell / "
    "rose where neither is better), item by item, %: at least the net change, at most all that "
    "moved; single runs cannot tell luck from loss. p: paired test, adjusted. ?: can't tell. lower "
    "and higher are the verdicts where neither is better. Aggregates are CapTrack's mean of "
    "relative changes; without one: their range when one part is left out."
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
    for line in _ways_out(result):
        say(out, line, "yellow")
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


def _ways_out(result: Drift) -> Iterator[str]:
    """What would decide the primary metrics of which nothing is sure; missing answers first."""
    open_ones = [metric for metric in result.primary if metric.decides]
    open_ones.sort(key=lambda metric: metric.missing is None)
    for metric in open_ones[:_TOLD]:
        yield f"can't tell: {clean(metric.name, 50)}; {metric.decides} would"
    if len(open_ones) > _TOLD:
        yield f"can't tell: {len(open_ones) - _TOLD} more; --report and --json say what"


def _failures(result: Drift) -> Iterator[str]:
    """The primary metrics with most answers without a valid value."""
    failing = [metric for metric in result.primary if _failed(metric)]
    failing.sort(key=_failed, reverse=True)
    listed = [
        f"{clean(metric.name, 40)} {percent(metric.failures_before)} -> "
        f"{percent(metric.failures_after)}"
        for metric in failing
    ]
    if listed:
        yield f"answers without a valid value: {some(listed, 3)}"


def _failed(metric: MetricDrift) -> float:
    return max(metric.failures_before, metric.failures_after)


def _trust(result: Drift) -> list[str]:
    lines = list(_gap_lines("not compared", result.gaps, 3))
    unpaired = sum(metric.only_before + metric.only_after for metric in result.primary)
    unscored = sum(metric.unscored for metric in result.primary)
    if unpaired or unscored:
        lines.append(
            f"items of primary metrics on one side only: {unpaired:,}; without a value on one "
            f"side: {unscored:,}"
        )
    lacking = [metric for metric in result.primary if metric.missing]
    if lacking:
        most = max(lacking, key=lambda metric: metric.missing.share if metric.missing else 0)
        lines.append(_at_worst(most))
    lines += _failures(result)
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


def _at_worst(metric: MetricDrift) -> str:
    """What the missing answers of a metric could do."""
    missing = metric.missing
    if missing is None:
        return ""
    unit = _unit(metric)
    return (
        f"most missing: {clean(metric.name, 40)}, {missing.items:,} items "
        f"({percent(missing.share)}); at worst its change lies between {unit * missing.low:+.1f} "
        f"and {unit * missing.high:+.1f}"
    )


def _unit(metric: MetricDrift) -> int:
    """Shares read best in points; counts and ratings as they are."""
    return 100 if metric.range == (0, 1) else 1


def _apart(lost: Between | None, gained: Between | None) -> str:
    """What was lost and gained, in percent.

    Example:
        >>> from forgetmap.stats.estimate import Estimate
        >>> none, some = (Estimate(value=value, low=0, high=1) for value in (0.0, 0.3))
        >>> _apart(Between(at_least=none, at_most=some), Between(at_least=none, at_most=none))
        '0-30/0'
    """
    if lost is None or gained is None:
        return ""
    sides = (
        [points(end.value, 0) for end in (one.at_least, one.at_most)] for one in (lost, gained)
    )
    return "/".join(low if low == high else f"{low}-{high}" for low, high in sides)


def _aggregates(width: int, title: str, cells: Sequence[tuple[str, Aggregate]]) -> Table:
    rows: list[Row] = []
    for name, cell in cells:
        out, parts = cell.leave_one_out, len(cell.parts)
        rows.append(
            (
                clean(name, 40),
                f"{parts}/{parts + len(cell.left_out)}",
                _change(cell),
                "" if out is None else f"{_points(out.low)} to {_points(out.high)}",
                _apart(cell.lost, cell.gained),
                p_value(cell.p_adjusted),
                verdict_text(cell.verdict),
            )
        )
    names = ("parts", "relative change", "without one", "lost/gained", "p", "verdict")
    return _table(width, (title, *names), rows)


def _change(cell: Aggregate) -> str:
    """The relative change; the change in points where there is none."""
    found = cell.judged
    if found is None:
        return "-"
    value = signed(found.value) if cell.relative else f"{_points(found.value)} pt"
    return f"{value} ({_points(found.low)}, {_points(found.high)})"


def _metrics(width: int, title: str, metrics: Sequence[MetricDrift]) -> Table:
    rows: list[Row] = []
    for cell in metrics:
        unit = _unit(cell)
        change = (unit * value for value in (cell.change.value, cell.change.low, cell.change.high))
        value, low, high = (_points(number / 100) for number in change)
        rows.append(
            (
                f"{clean(cell.capability, 5)} {clean(cell.name, 40)}",
                f"{cell.n:,}",
                f"{unit * cell.before:.1f}→{unit * cell.after:.1f}",
                f"{value} ({low}, {high})",
                "-" if cell.relative is None else _points(cell.relative.value),
                _apart(cell.lost, cell.gained),
                p_value(cell.p_adjusted),
                verdict_text(cell.verdict),
            )
        )
    names = ("n", "before→after", "change", "rel. %", "lost/gained", "p", "verdict")
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


_NARROWER: tuple[Step, ...] = (
    ("p", None),
    ("role", None),
    ("rel. %", None),
    ("without one", None),
    ("better", None),
    ("n", None),
    ("parts", None),
    ("before→after", None),
    ("change", without_interval),
)
"""What a narrow terminal does without. What was lost and gained, and the verdict, always stay."""


def _table(width: int, names: Sequence[str], rows: Sequence[Row]) -> Table:
    return make_table(names, rows, left=_LEFT, width=width, gap=1, narrower=_NARROWER)


def _points(share: float) -> str:
    return signed(share).removesuffix(" %")
