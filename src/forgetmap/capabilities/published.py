"""CapTrack's own tables (arXiv:2603.06610), reproduced from its result files with its choices.

For comparing with published numbers only; docs/explanation/capability-drift.md says where its
choices mislead. Its result files write a task that was not scored as 0.0, which then reads as a
loss of 100 %, as infinity, or vanishes. Here a zero is refused unless asked for.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from forgetmap.base.errors import InputError
from forgetmap.base.files import open_binary
from forgetmap.base.model import Frozen
from forgetmap.base.words import brief, some, spreadsheet_safe

PROTOCOLS = ("captrack", "captrack-published")
"""The second keeps zeros as CapTrack does."""
_MAX_BYTES = 16 * 2**20
SCHEMA_VERSION = 1


class Column(NamedTuple):
    """One column of the published table, and which metrics of the result files it averages."""

    name: str
    group: str
    code: str
    label: str = ""
    """How the metric's label must begin; W1 and W2 are two columns each."""

    def holds(self, metric: str) -> bool:
        """Say whether a metric, called `<code> <label>`, belongs to the column."""
        code, _, label = metric.partition(" ")
        return code == self.code and label.startswith(self.label)


COLUMNS = (
    Column("C1 Knowledge", "CAN", "C1"),
    Column("C2 Reasoning", "CAN", "C2"),
    Column("C3 ICL Score", "CAN", "C3"),
    Column("C4 Faithfulness", "CAN", "C4"),
    Column("C5a Prompt Robust.", "CAN", "C5a"),
    Column("C5b Domain Robust.", "CAN", "C5b"),
    Column("C5c Multilingual", "CAN", "C5c"),
    Column("W1 Unsafe Refusal", "WILL", "W1", "Unsafe Refusal"),
    Column("W1 Underspec. Comp.", "WILL", "W1", "Compliance Rate"),
    Column("W2 Coverage", "WILL", "W2", "Coverage"),
    Column("W2 Overreach", "WILL", "W2", "Overreach"),
    Column("W3a Verbosity", "WILL", "W3a"),
    Column("W3b Formatting Use", "WILL", "W3b"),
    Column("H1 Instructions", "HOW", "H1"),
    Column("H2 Format Fidelity", "HOW", "H2"),
    Column("H3 Tool Use", "HOW", "H3"),
    Column("H4 Multi-turn", "HOW", "H4"),
    Column("H5 Long-Context", "HOW", "H5"),
    Column("H6 Citation Score", "HOW", "H6"),
)


class Spread(Frozen):
    """A mean of relative changes in percent, with the deviation CapTrack prints beside it."""

    mean: float
    std: float


class PublishedModel(Frozen):
    """One adapted model against the base."""

    name: str
    metrics: dict[str, float]
    """Relative change of every main metric, in percent."""
    columns: dict[str, Spread]
    groups: dict[str, Spread]


class PublishedTable(Frozen):
    """The published comparison: one row per adapted model."""

    schema_version: int = SCHEMA_VERSION
    protocol: str
    base: str
    models: list[PublishedModel]
    zeros: list[str]
    """Metrics that are exactly 0.0 on some side, most likely tasks that were never scored."""

    def to_csv(self, which: str = "mean") -> str:
        """The table in the layout of `relative_differences.csv`; `std` gives the other file's."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["", *(column.name for column in COLUMNS)])
        for model in self.models:
            values = (getattr(model.columns[column.name], which) for column in COLUMNS)
            writer.writerow([spreadsheet_safe(model.name), *values])
        return out.getvalue()


def captrack_table(
    base: Path, adapted: Path | Iterable[Path], protocol: str = "captrack"
) -> PublishedTable:
    """Compare CapTrack result files as CapTrack does.

    The files are the `*_averaged.csv` or `*_metrics.csv` of the base model and of adapted models (a
    file, several, or a folder). The protocol `captrack` refuses metrics that are exactly 0.0, which
    is how CapTrack writes a task it did not score; `captrack-published` computes with them.

    Example:
        >>> import tempfile; from pathlib import Path
        >>> folder = Path(tempfile.mkdtemp())
        >>> names = [f"{column.code} {column.label or 'x'}" for column in COLUMNS]
        >>> def result(name, value):
        ...     rows = [",".join([*names, "model_name"]), ",".join([value] * len(names) + [name])]
        ...     (folder / f"{name}.csv").write_text("\\n".join(rows))
        ...     return folder / f"{name}.csv"
        >>> table = captrack_table(result("base", "0.5"), [result("tuned", "0.4")])
        >>> round(table.models[0].groups["WILL"].mean, 6)
        -20.0
    """
    if protocol not in PROTOCOLS:
        raise InputError(f"--compat {protocol}: known are {', '.join(PROTOCOLS)}")
    base_name, before = _read(base)
    paths = _adapted(base, adapted)
    zeros: set[str] = set()
    models = []
    for path in paths:
        name, after = _read(path)
        _check_columns(base, before, path, after)
        zeros |= {metric for metric in before if 0 in (before[metric], after[metric])}
        models.append(_compare(name, before, after))
    if zeros and protocol == "captrack":
        raise InputError(
            f"{base}: exactly 0.0 on some side: {some(zeros)}; CapTrack writes a task it did not "
            "score as 0.0. Take these columns out, or use --compat captrack-published to "
            "compute with them as CapTrack does"
        )
    return PublishedTable(protocol=protocol, base=base_name, models=models, zeros=sorted(zeros))


def _adapted(base: Path, adapted: Path | Iterable[Path]) -> list[Path]:
    if not isinstance(adapted, Path):
        paths = list(adapted)
    elif adapted.is_dir():
        paths = sorted(file for file in adapted.glob("*.csv") if file.resolve() != base.resolve())
    else:
        paths = [adapted]
    if not paths:
        raise InputError(f"{adapted}: holds no CapTrack result CSV beside the base")
    return paths


def _read(path: Path) -> tuple[str, dict[str, float]]:
    """The model's name and the main metrics of the first row, which is all that CapTrack uses."""
    with open_binary(path) as file:
        content = file.read(_MAX_BYTES)
    try:
        text = content.decode("utf-8-sig")
        row = next(csv.DictReader(io.StringIO(text), strict=True), None)
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: is not a CapTrack result CSV ({brief(error)})") from error
    named = {str(name): value for name, value in (row or {}).items() if isinstance(value, str)}
    metrics = [name for name in named if any(column.holds(name) for column in COLUMNS)]
    if not metrics:
        raise InputError(
            f"{path}: is not a CapTrack result CSV (no column such as 'C1 Accuracy (GSM8K)')"
        )
    values = {}
    for name in metrics:
        try:
            values[name] = float(named[name])
        except ValueError:
            raise InputError(f"{path}: {name} is {named[name]!r:.40}, not a number") from None
        if not math.isfinite(values[name]):
            raise InputError(f"{path}: {name} is {named[name]}; a number was expected")
    return named.get("model_name") or path.stem, values


def _check_columns(
    base: Path, before: Mapping[str, float], path: Path, after: Mapping[str, float]
) -> None:
    if one_sided := set(before) ^ set(after):
        raise InputError(f"{base} and {path} differ in their columns: {some(one_sided)}")
    for column in COLUMNS:
        if not any(column.holds(metric) for metric in before):
            raise InputError(f"{base}: no metric of {column.name}")


def _compare(name: str, before: Mapping[str, float], after: Mapping[str, float]) -> PublishedModel:
    with np.errstate(divide="ignore", invalid="ignore"):
        base = np.array(list(before.values()))
        changes = 100 * (np.array([after[metric] for metric in before]) - base) / base
        relative = dict(zip(before, changes.tolist(), strict=True))
        columns = {
            column.name: _spread([r for metric, r in relative.items() if column.holds(metric)])
            for column in COLUMNS
        }
    return PublishedModel(name=name, metrics=relative, columns=columns, groups=_groups(columns))


def _spread(changes: list[float]) -> Spread:
    """Mean and population deviation; 0/0 has dropped out, as it does in CapTrack."""
    defined = [change for change in changes if not math.isnan(change)]
    if not defined:
        return Spread(mean=math.nan, std=math.nan)
    return Spread(mean=float(np.mean(defined)), std=float(np.std(defined)))


def _groups(columns: Mapping[str, Spread]) -> dict[str, Spread]:
    """The averages drawn in CapTrack's heat map; their spread is no standard error of anything."""
    groups: dict[str, list[Spread]] = {}
    for column in COLUMNS:
        groups.setdefault(column.group, []).append(columns[column.name])
    return {
        name: Spread(
            mean=float(np.mean([cell.mean for cell in cells])),
            std=math.sqrt(float(np.mean([cell.std**2 for cell in cells])) / len(cells)),
        )
        for name, cells in groups.items()
    }
