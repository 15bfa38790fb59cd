"""How far training moved the weights: norms, angles, ranks of the change, intruder dimensions.

Everything comes from sums of products (Gram matrices) that are gathered block by block; a matrix
is taken apart only in its smaller dimension.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from forgetmap.base.model import Frozen
from forgetmap.mitigate.merge.merging import open_weights
from forgetmap.mitigate.merge.methods import cosine_of, products
from forgetmap.mitigate.merge.weights import Floats, Weights, check_alike

TOP = 10
"""Singular vectors of the model after that are looked at, as in the paper's figures."""
STRANGE = 0.5
"""Below this cosine with every singular vector of the model before, one is an intruder."""
LARGEST_SIDE = 4096
"""A matrix with a larger smaller side gets norms and angles only: its spectrum takes minutes."""
_NOTHING = 1e-6
"""Singular values below this share of the largest are rounding."""
_LAYER = re.compile(r"(?:^|\.)(\d+)\.")


class Spectral(NamedTuple):
    """The shape of a change."""

    effective_rank: float
    """exp of the entropy of its singular values: how many directions it is spread over."""
    stable_rank: float
    """Its squared norm over its largest squared singular value."""
    intruders: int
    """Leading directions of the matrix after that the matrix before did not have."""


class TensorDrift(Frozen):
    """How far one tensor moved."""

    name: str
    layer: int | None
    module: str
    norm: float
    """Of the change."""
    relative: float
    """The change's norm over that of the tensor before."""
    cosine: float
    """Between the tensor before and after."""
    effective_rank: float | None = None
    """None for vectors and for matrices too large to take apart."""
    stable_rank: float | None = None
    intruders: int | None = None


class DriftSummary(Frozen):
    """How far a group of tensors moved: norms and angle of all together, means of the ranks."""

    tensors: int
    norm: float
    relative: float
    cosine: float
    effective_rank: float | None
    stable_rank: float | None
    intruders: int | None
    """Sum over the matrices."""


class WeightDrift(Frozen):
    """How far a model moved, tensor by tensor and in sum."""

    before: str
    after: str
    top: int = TOP
    strange: float = STRANGE
    total: DriftSummary
    layers: dict[str, DriftSummary]
    modules: dict[str, DriftSummary]
    tensors: list[TensorDrift]


def weight_drift(
    before: str | Path,
    after: str | Path,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> WeightDrift:
    """Measure how far the weights moved between two models, each a folder or BASE+ADAPTER.

    `progress` is called with the bytes looked at, and how many there are.
    """
    one, other = open_weights(before), open_weights(after)
    check_alike(one, other)
    stored = {
        name: tensor
        for held in one.shards.values()
        for name, tensor in held.items()
        if tensor.is_float
    }
    total = sum(tensor.size for tensor in stored.values())
    rows: list[tuple[TensorDrift, Floats]] = []
    done = 0
    for name, tensor in stored.items():
        rows.append(_tensor(name, one, other))
        done += tensor.size
        progress(done, total)
    layers = sorted({row.layer for row, _ in rows if row.layer is not None})
    modules = list(dict.fromkeys(row.module for row, _ in rows))
    return WeightDrift(
        before=one.name,
        after=other.name,
        total=_summary(rows),
        layers={str(key): _summary([row for row in rows if row[0].layer == key]) for key in layers},
        modules={key: _summary([row for row in rows if row[0].module == key]) for key in modules},
        tensors=[row for row, _ in rows],
    )


def spectral(blocks: Iterable[tuple[Floats, Floats]], *, is_tall: bool) -> Spectral:
    """Ranks of the change between two matrices, and intruder dimensions of the second.

    An intruder dimension (Shuttleworth et al., 2024, arXiv:2410.21228) is one of the leading left
    singular vectors of the matrix after whose cosine with every left singular vector of the matrix
    before is below one half.

    The Gram matrices of rows are taken apart; of a tall matrix those of columns, added up by block.
    The left singular vectors of a tall matrix W are W V / s, so that the cosines between those of
    two matrices follow from the product of the two as well.
    """
    grams: list[Floats] = []
    for before, after in blocks:
        one, other = before.astype(np.float64), after.astype(np.float64)
        if not is_tall:
            one, other = one.T, other.T
        change = other - one
        added = [one.T @ one, other.T @ other, change.T @ change]
        added += [one.T @ other] if is_tall else []
        grams = [a + b for a, b in zip(grams, added, strict=True)] if grams else added
    moved = np.sqrt(np.maximum(np.linalg.eigvalsh(grams[2]), 0))[::-1]
    if moved[0] == 0:
        return Spectral(0.0, 0.0, 0)
    (old_values, old), (new_values, new) = (_directions(gram) for gram in grams[:2])
    new = new[:, :TOP]
    cosines = np.abs(old.T @ (grams[3] @ new if is_tall else new))
    if is_tall:
        cosines /= np.outer(old_values, new_values[:TOP])
    intruders = int((cosines.max(axis=0) < STRANGE).sum())
    shares = moved[moved > _NOTHING * moved[0]] / moved[moved > _NOTHING * moved[0]].sum()
    return Spectral(
        effective_rank=round(float(np.exp(-(shares * np.log(shares)).sum())), 6),
        stable_rank=round(float((moved**2).sum() / moved[0] ** 2), 6),
        intruders=intruders,
    )


def _directions(gram: Floats) -> tuple[Floats, Floats]:
    """Singular values, the largest first, and vectors; those that are only rounding left out."""
    squares, vectors = np.linalg.eigh(gram)
    values = np.sqrt(np.maximum(squares, 0))[::-1]
    kept = max(1, int((values > _NOTHING * values[0]).sum()))
    return np.maximum(values[:kept], np.finfo(float).tiny), vectors[:, ::-1][:, :kept]


def _tensor(name: str, before: Weights, after: Weights) -> tuple[TensorDrift, Floats]:
    """A tensor's drift, and the sums that it adds to those of its groups."""
    tensor = before.tensors[name]
    sums = np.zeros(4)
    for block in tensor.blocks:
        one, other = before.read(name, *block), after.read(name, *block)
        change = other - one
        sums += [*products(one, other), products(change, change)[0]]
    shape = tensor.shape
    shape_of_change = None
    if len(shape) == 2 and 2 <= min(shape) <= LARGEST_SIDE:
        shape_of_change = Spectral(0.0, 0.0, 0)
        if sums[3]:
            blocks = _row_blocks(name, before, after)
            shape_of_change = spectral(blocks, is_tall=shape[0] > shape[1])
    layer = _LAYER.search(name)
    module = name[layer.end() :] if layer else name
    row = TensorDrift(
        name=name,
        layer=int(layer[1]) if layer else None,
        module=module.removesuffix(".weight"),
        **_shares(sums),
    )
    return row.model_copy(update=shape_of_change._asdict()) if shape_of_change else row, sums


def _row_blocks(name: str, before: Weights, after: Weights) -> Iterable[tuple[Floats, Floats]]:
    rows, columns = before.tensors[name].shape
    size = max(1, 2**20 // columns) if rows > columns else rows
    for start in range(0, rows, size):
        stop = min(start + size, rows)
        one, other = (
            model.read(name, start * columns, stop * columns).reshape(-1, columns)
            for model in (before, after)
        )
        yield one, other


def _shares(sums: Floats) -> dict[str, Any]:
    old, moved = math.sqrt(sums[0]), math.sqrt(sums[3])
    relative = moved / old if old else (0.0 if not moved else math.inf)
    return {"norm": moved, "relative": relative, "cosine": cosine_of([sums[:3]])}


def _summary(rows: Sequence[tuple[TensorDrift, Floats]]) -> DriftSummary:
    drifts = [row for row, _ in rows]

    def mean(name: str) -> float | None:
        known = [getattr(row, name) for row in drifts if getattr(row, name) is not None]
        return sum(known) / len(known) if known else None

    strange = [row.intruders for row in drifts if row.intruders is not None]
    return DriftSummary(
        tensors=len(drifts),
        **_shares(np.sum([sums for _, sums in rows], axis=0)),
        effective_rank=mean("effective_rank"),
        stable_rank=mean("stable_rank"),
        intruders=sum(strange) if strange else None,
    )
