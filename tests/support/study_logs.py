"""Small made studies: logs of which the truth is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from forgetmap.samples.table import Meta, Samples, complete
from forgetmap.study.result import Number, Share, StudiedPair, StudyCell


def write_log(path: Path, right: np.ndarray, tasks: int = 2, model: str | None = None) -> Path:
    """A Samples file with one run of every item; the items are spread evenly over the tasks."""
    items = len(right)
    path.parent.mkdir(parents=True, exist_ok=True)
    batch = complete(
        {
            "model": pa.array([model or path.stem] * items),
            "task": pa.array([f"task{number * tasks // items}" for number in range(items)]),
            "item": pa.array(np.arange(items, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)),
            "item_ref": pa.array([f"q{number}" for number in range(items)]),
            "score": pa.array(right.astype(float)),
        }
    )
    Samples.collect([batch], Meta(harness="made")).write(path)
    return path


def lose(right: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """The same model after it lost an exact share of all items."""
    known = np.flatnonzero(right)
    gone = rng.choice(known, round(share * len(right)), replace=False)
    after = right.copy()
    after[gone] = False
    return after


def write_made_study(
    folder: Path, shares: dict[str, float], items: int = 400, seed: int = 0
) -> Path:
    """A study of one model before and several after that lost known shares; its file."""
    rng = np.random.default_rng(seed)
    before = rng.random(items) < 0.7
    write_log(folder / "base.parquet", before)
    lines = ["deterministic: true", "pairs:"]
    for name, share in shares.items():
        write_log(folder / f"{name}.parquet", lose(before, share, rng))
        lines.append(f"- {{name: {name}, before: base.parquet, after: {name}.parquet}}")
    (folder / "study.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder / "study.yaml"


def made_pair(
    name: str,
    attributes: dict[str, float | str],
    lost: float,
    gained: float = 0.0,
    learned: float | None = None,
    cells: dict[str, tuple[float, float]] | None = None,
) -> StudiedPair:
    """A pair without logs: what it lost, gained and learned; `cells` by task and as categories."""
    parts = {part: made_cell(*both) for part, both in (cells or {}).items()}
    return StudiedPair(
        name=name,
        attributes=attributes,
        before="before",
        after=name,
        before_log="before",
        after_log=name,
        old=made_cell(lost, gained),
        new=None if learned is None else made_cell(0.0, learned),
        categories=parts,
        tasks=parts,
        coverage=None,
        metric={},
        confounds=[],
        warnings=[],
    )


def made_cell(lost: float, gained: float) -> StudyCell:
    """A cell without items."""
    return StudyCell(
        n=100,
        accuracy_before=None,
        accuracy_after=None,
        change=Number(value=gained - lost),
        lost=Share(low_end=lost, high_end=lost, basis="published"),
        gained=Share(low_end=gained, high_end=gained, basis="published"),
        p_value=None,
        verdict=None,
    )
