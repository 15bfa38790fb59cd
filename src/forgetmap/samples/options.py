"""The probabilities of an item's options: made from likelihoods, and checked."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

OPTION_COLUMNS = ("option_probabilities", "right_option")
"""All options, and which of them is right."""
TOLERANCE = 1e-3
"""How far from 1 the probabilities of an item's options may sum up."""


def softmax(likelihoods: Sequence[float]) -> list[float] | None:
    """The probabilities of options from their log-likelihoods; None if one is not finite.

    Example:
        >>> softmax([-1.0, -1.0])
        [0.5, 0.5]
    """
    if not math.isfinite(sum(likelihoods)):
        return None
    top = max(likelihoods)
    weights = [math.exp(value - top) for value in likelihoods]
    total = sum(weights)
    return [weight / total for weight in weights]


def without_bad_options(
    parts: Iterable[pa.RecordBatch], warnings: list[str]
) -> Iterator[pa.RecordBatch]:
    """Batches of Samples, in which option probabilities that cannot be right became null.

    They are counted in a warning once the batches are through.
    """
    bad = 0
    for batch in parts:
        wrong = _bad_options(*(batch[name] for name in OPTION_COLUMNS))
        if (count := int(wrong.sum())) == 0:
            yield batch
            continue
        bad += count
        kept = pa.array(~wrong)
        columns = {name: batch[name] for name in batch.schema.names}
        columns |= {name: pc.if_else(kept, batch[name], None) for name in OPTION_COLUMNS}
        yield pa.RecordBatch.from_arrays(list(columns.values()), schema=batch.schema)
    if bad:
        warnings.append(bad_options_warning(bad))


def bad_options_warning(rows: int) -> str:
    """What to say of rows whose option probabilities cannot be right."""
    return (
        f"the option probabilities of {rows} rows were left out: they must be numbers from 0 on "
        "that sum up to 1, with the right option among them"
    )


def _bad_options(options: pa.ListArray, right: pa.Int32Array) -> NDArray[np.bool_]:
    """Which rows have option probabilities that are not a distribution."""
    if options.null_count == len(options):
        return np.zeros(len(options), bool)
    sizes = pc.fill_null(pc.list_value_length(options), 0).to_numpy()
    row = np.repeat(np.arange(len(options)), sizes)
    # A number that is missing counts as NaN, which no comparison lets through.
    values = pc.fill_null(options.flatten(), math.nan).to_numpy().astype(np.float64)
    negative = np.bincount(row, weights=~(values >= 0), minlength=len(options)) > 0
    sums = np.bincount(row, weights=values, minlength=len(options))
    place = pc.fill_null(right, 0).to_numpy()
    good = ~negative & (np.abs(sums - 1) <= TOLERANCE) & (place >= 0) & (place < sizes)
    bad: NDArray[np.bool_] = options.is_valid().to_numpy(zero_copy_only=False) & ~good
    return bad
