"""Pairing: logs joined item by item, two or many, and reduced to small tables of counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap.base.exports import load_on_use

if TYPE_CHECKING:
    from forgetmap.pairing.many_logs import Outcomes
    from forgetmap.pairing.pairs import Pairs
    from forgetmap.pairing.scores import ScorePairs
    from forgetmap.pairing.two_logs import pair

__all__ = ["Outcomes", "Pairs", "ScorePairs", "pair"]

__getattr__ = load_on_use(
    __name__,
    {
        "many_logs": ["Outcomes"],
        "scores": ["ScorePairs"],
        "pairs": ["Pairs"],
        "two_logs": ["pair"],
    },
)
