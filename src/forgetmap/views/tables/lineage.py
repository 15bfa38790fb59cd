"""The lineage as tables: every map's cells, every item's life line, every flip of every edge."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from forgetmap.base.files import replacing
from forgetmap.base.words import spreadsheet_safe
from forgetmap.lineage.build import Builder
from forgetmap.lineage.result import Lineage

_NAMED = ("number", "category", "task", "item", "item_ref")


Output = str | Path | None


def write_tables(
    result: Lineage,
    builder: Builder,
    *,
    cells: Output = None,
    flips: Output = None,
    lives: Output = None,
) -> None:
    """Write the tables that were asked for, each whole or not at all."""
    if flips or lives:
        builder.name_all()
    _write(cells, _cells(result))
    _write(flips, _flips(builder))
    _write(lives, _life_lines(builder))


def to_csv(result: Lineage) -> str:
    """Every cell of every comparison, as text."""
    return _text(_cells(result))


def flips_to_csv(builder: Builder) -> str:
    """Every item that changed at a step, as text."""
    builder.name_all()
    return _text(_flips(builder))


def _text(rows: Iterable[Iterable[Any]]) -> str:
    out = io.StringIO()
    _fill(out, rows)
    return out.getvalue()


def _fill(file: TextIO, rows: Iterable[Iterable[Any]]) -> None:
    csv.writer(file).writerows([spreadsheet_safe(value) for value in row] for row in rows)


def _write(path: Output, rows: Iterable[Iterable[Any]]) -> None:
    if path is None:
        return
    with (
        replacing(Path(path)) as temporary,
        temporary.open("w", encoding="utf-8", newline="") as file,
    ):
        _fill(file, rows)


def _cells(result: Lineage) -> Iterator[Iterable[Any]]:
    ends = ("low_end", "high_end", "low", "high", "basis")
    ranges = [f"{name}_{end}" for name in ("lost", "gained") for end in ends]
    yield (
        *("before", "after", "edge", "against_root", "level", "name", "n"),
        *("accuracy_before", "accuracy_after", *ranges, "raw_lost", "raw_gained"),
        *("p_adjusted", "forgetting", "net"),
    )
    for step in result.comparisons:
        whole = step.map
        levels = {
            "total": {"all items": whole.total, "old items": whole.old},
            "category": whole.categories,
        }
        for level, cells in (levels | {"task": whole.tasks}).items():
            for name, cell in cells.items():
                yield (
                    *(step.before, step.after, int(step.edge), int(step.against_root)),
                    *(level, name, cell.n, cell.accuracy_before, cell.accuracy_after),
                    *(getattr(share, end) for share in (cell.lost, cell.gained) for end in ends),
                    *(cell.counts.n10, cell.counts.n01, cell.p_adjusted),
                    *(cell.verdict.forgetting, cell.verdict.net),
                )  # fmt: skip


def _life_lines(builder: Builder) -> Iterator[Iterable[Any]]:
    yield (
        *("path_end", *_NAMED, "kind", "states", "first_learned", "first_lost"),
        *("times_forgotten", "times_flipped"),
    )
    for path, lives in builder.lives.items():
        for item in np.flatnonzero(lives.present).tolist():
            traced = builder.traced(path, item)
            yield (
                *(path[-1], item, builder.group_name(item), traced.task, traced.item),
                *(traced.item_ref, lives.kind_of(item), " ".join(traced.states)),
                *(traced.first_learned, traced.first_lost),
                *(traced.times_forgotten, traced.times_flipped),
            )


def _flips(builder: Builder) -> Iterator[Iterable[Any]]:
    yield ("before", "after", *_NAMED, "transition", "share_before", "share_after")
    outcomes = builder.outcomes
    for before, after in builder.pipeline.edges:
        pair = [outcomes.index(before), outcomes.index(after)]
        runs = outcomes.runs[pair]
        with np.errstate(invalid="ignore"):
            shares = np.where(runs > 0, outcomes.right[pair] / runs, np.nan)
        changed = np.flatnonzero((runs > 0).all(axis=0) & (shares[0] != shares[1]))
        for item, was, now in zip(changed.tolist(), *shares[:, changed].tolist(), strict=True):
            yield (
                *(before, after, item, builder.group_name(item), *builder.item_name(item)),
                *("forgotten" if now < was else "gained", was, now),
            )
