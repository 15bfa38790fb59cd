"""What the report says in words: the verdict in one sentence, and what each number means."""

from __future__ import annotations

from typing import NamedTuple

from forgetmap.base.words import percent
from forgetmap.map.result import HEADLINE_MEANING, ForgettingMap
from forgetmap.stats.estimate import Estimate
from forgetmap.views.words import points


class Explained(NamedTuple):
    """One estimator for people."""

    name: str
    formula: str
    says: str
    assumes: str
    does_not_prove: str


ESTIMATORS = [
    Explained(
        "raw",
        "mean of p (1 − q)",
        "Share of items that were right before and are wrong after.",
        "Nothing.",
        "That anything was lost: two runs of one model flip too, by sampling and by lucky guesses.",
    ),
    Explained(
        "excess",
        "raw − noise floor; the floor is how often each model flips against itself",
        "Flips beyond the sampling noise of both models.",
        "Repeats of a model are independent runs.",
        "That knowledge is gone: a change of format or length is beyond noise too.",
    ),
    Explained(
        "soft",
        "mean of [(u − v)² + (u − v)] / 2; u and v are the right option's probability",
        "What excess would be if the model drew its answer from the options' probabilities.",
        "The probabilities of the options describe how unsure the model is.",
        "What a generated answer would be; it looks at the likelihood of given options only.",
    ),
    Explained(
        "latent",
        "(n10 − GG (1 − ρ) g (1 − g)) / (1 − g), where GG = n00 / ((1 − g) (ρ + (1 − ρ) (1 − g)))",
        "Share of items known before and not known after.",
        "An item is known or guessed, and a guess is repeated as often as measured (ρ).",
        "How much was known: slips on known items make ρ too small, and this number with it.",
    ),
    Explained(
        "paper",
        "max(raw − (1 − a)(1 − b) / (k − 1), 0)",
        "The published correction for lucky guesses (Harmon et al. 2025).",
        "Not knowing before and not knowing after are independent between items.",
        "A change: for an unchanged model that guesses afresh it is above zero.",
    ),
]
"""p, q: an item's share of right answers before, after; a, b: their means; k options, g = 1/k."""

NET = {
    "worse": "on the whole it got worse",
    "better": "on the whole it got better",
    "equivalent": "on the whole it is as good as before",
    "undecided": "whether it is better or worse on the whole is undecided",
}


def verdict_sentence(result: ForgettingMap) -> str:
    """The answer in one sentence for people, with its interval.

    Example:
        >>> import forgetmap
        >>> verdict_sentence(forgetmap.demo()).startswith("It forgot 3.4 % of 4,070 items")
        True
    """
    cell = result.total
    share, interval = percent(cell.forgot.value), f"95 % interval {_range(cell.forgot)}"
    opening = {
        "forgot": f"It forgot {share} of {cell.n:,} items ({interval})",
        "kept": f"It kept what it knew: it forgot {share} of {cell.n:,} items ({interval})",
        "undecided": f"Whether it forgot more than {percent(result.settings.margin)} of "
        f"{cell.n:,} items is undecided: the estimate is {share} ({interval})",
    }[cell.verdict.forgetting]
    gained = f"{percent(cell.gained.value)} ({_range(cell.gained)})"
    return f"{opening} and gained {gained}; {NET[cell.verdict.net]}."


def basis(result: ForgettingMap) -> str:
    """What the headline number counts, in one sentence."""
    name = result.settings.headline
    return f"Counted by {name}: {HEADLINE_MEANING[name]}."


def _range(estimate: Estimate) -> str:
    return f"{points(estimate.low)} to {percent(estimate.high)}"
