"""What the report says of its measures: what each counts, assumes and does not prove."""

from __future__ import annotations

from typing import NamedTuple


class Explained(NamedTuple):
    """One measure for people."""

    name: str
    label: str
    formula: str
    says: str
    assumes: str
    does_not_prove: str
    needs: str
    """Why it may be greyed out."""


ESTIMATORS = [
    Explained(
        "lost",
        "lost and gained",
        "mean of max(p − q, 0)",
        "How much less often items are right than before. What other items gained does not count.",
        "Repeats are independent runs; the options' probabilities say how sure the model is.",
        "That knowledge is gone: a change of format or length loses items too.",
        "It needs scores of both runs.",
    ),
    Explained(
        "raw",
        "raw flips",
        "mean of p (1 − q) over runs",
        "Share of items that were right before and are wrong after, as counted.",
        "Nothing.",
        "That anything was lost: two runs of one model flip too, by sampling and by lucky guesses.",
        "It needs scores of both runs.",
    ),
    Explained(
        "paper",
        "as published",
        "max(raw − (1 − a)(1 − b) / (k − 1), 0)",
        "The published correction for lucky guesses (Harmon et al. 2025).",
        "Not knowing before and not knowing after are independent between items.",
        "A change: for an unchanged model that guesses afresh it is above zero.",
        "It needs the number of options; these answers are open.",
    ),
]
"""p, q: an item's chance of a right answer before, after; a, b: their means; k: options."""
