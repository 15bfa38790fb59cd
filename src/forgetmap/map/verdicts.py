"""What would decide on forgetting where nothing can be told yet."""

from __future__ import annotations

import math

from forgetmap.map.result import Cell
from forgetmap.stats.estimate import Basis, Range


def is_wide(lost: Range, margin: float) -> bool:
    """Whether the two ends lie on both sides of the margin: then no number of items decides."""
    around = lost.low_end <= margin <= lost.high_end
    return around and (not lost.exact or lost.high_end - lost.low_end > margin / 2)


def would_decide(cell: Cell, margin: float) -> str:
    """The one thing that would help most where the verdict is open, in words that stand alone."""
    lost = cell.lost
    if is_wide(lost, margin):
        return _MORE_KNOWN[lost.basis]
    near = min((lost.low_end, lost.high_end), key=lambda end: abs(end - margin))
    limit = lost.low if near > margin else lost.high
    width, gap = abs(limit - near), abs(near - margin)
    if gap < margin / 20:
        return "nothing would decide: the loss is about as large as the margin"
    # Where the interval alone is clear, the correction for many tasks asks for some more.
    more = cell.n * max((width / gap) ** 2 - 1, 0.25)
    return f"about {_round_up(max(more, 10.0)):,} more items would decide"


_MORE_KNOWN: dict[Basis, str] = {
    "single_run": "3 repeats of both models would decide, or option probabilities",
    "noise_run": "3 repeats of both models would decide, or option probabilities",
    "repeats": "more repeats of both models would decide, or option probabilities",
    "mixed": "repeats or option probabilities for all tasks would decide",
    "probabilities": "more options per item would decide: guessing among few hides what is known",
    "deterministic": "option probabilities would decide: they tell guesses from knowledge",
}


def _round_up(count: float) -> int:
    """Two digits are enough."""
    scale = 10 ** max(int(math.log10(count)) - 1, 0)
    return int(math.ceil(count / scale) * scale)
