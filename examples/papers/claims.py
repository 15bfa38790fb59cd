"""What the papers claim, as comparisons between kinds of training, and the verdict by one rule.

A verdict needs three trainings or more on each side, and a 95 % interval over trainings and items
without zero, also where reshuffled guessing is left out. Everything else reads *cannot tell*,
whatever it shows. So does what was asked after looking, what compares sizes of two families, what
rests on right and wrong alone (noise and guessing turn items wrong, too), and what lost less where
it may have learned clearly less. A claim about several models is decided if one of them decides it
and none the other way. That something does not *reliably* help is not refuted by a case where it
helps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from forgetmap.stats.estimate import Estimate
from forgetmap.study.result import Beside

LEAST = 3
"""Trainings a side."""
NEAR = 0.05
"""A share is as theory says if its interval lies within so much of it; set before looking."""
AS_MUCH = 0.05
"""What lost less must surely have learned no more than so much less of the new task."""
Says = Literal["less", "more", "not reliably"]
SEEN = ("full", "small")
THEORY, CAPTRACK, HARMON, OURS = "theory", "CapTrack", "Harmon et al.", "we ask"


@dataclass(frozen=True)
class Claim:
    """That one kind of training loses less, or more, than another; or that it does not help."""

    text: str
    whose: str
    one: str
    other: str = "towns-sft"
    says: Says = "less"
    size: bool = False
    """`one` and `other` are models, which were trained alike by the kind in `by`."""
    by: str = ""
    late: tuple[str, ...] = ()
    """The settings whose scores had been seen when it was asked: there it decides nothing."""
    families: bool = False
    """Its models are of two families, so that family and size are one: it decides nothing."""

    def verdict(self, found: Beside, sure: Estimate | None, trainings: int, setting: str) -> str:
        """What a comparison with so many trainings a side says of it, at a setting.

        `sure` is how much more was lost where reshuffled guessing is left out; None where the logs
        hold right and wrong alone.
        """
        many = trainings if sure and setting not in self.late and not self.families else 0
        return decided(self.says, found.more_lost, many, found.more_right, sure)


CLAIMS = (
    Claim(
        "DPO after instruction tuning recovers part of the loss", CAPTRACK,
        "towns-then-dpo", "towns-then-tuned",
    ),
    Claim(
        "Preference training (DPO) is gentler than supervised training", CAPTRACK,
        "sums-dpo", "sums-sft",
    ),
    Claim(
        "Reward on the model's own samples (GRPO) after DPO adds to the loss", OURS,
        "towns-then-grpo", "towns-then-dpo", "more",
    ),
    Claim(
        "Merging with the model before does not reliably help", HARMON,
        "towns-then-merged", "towns-then-grpo", "not reliably",
    ),
    Claim(
        "... nor after instruction tuning alone", HARMON,
        "towns-merged", "towns-sft", "not reliably",
    ),
    Claim(
        "Stages cost more than instruction tuning alone for as many steps", OURS,
        "towns-then-grpo", "towns-tuned-long", "more",
    ),
    Claim(
        "Instruction tuning after continual pretraining loses more still", OURS,
        "towns-then-tuned", "domain-pretrained", "more",
    ),
    Claim(
        "Instruction tuning alone loses more than continual pretraining (asked after looking)",
        OURS, "towns-sft", "domain-pretrained", "more", late=SEEN,
    ),
    Claim(
        "Size gives no consistent protection", CAPTRACK,
        "qwen-1.5b", "qwen-0.5b", "not reliably", size=True, by="towns-sft",
    ),
    Claim(
        "... at the same score on the new task", CAPTRACK,
        "qwen-1.5b", "qwen-0.5b", "not reliably", size=True, by="towns-sft-until",
    ),
    Claim(
        "... nor between the smallest model and the largest", CAPTRACK,
        "qwen-1.5b", "smollm2", "not reliably", size=True, by="towns-sft", families=True,
    ),
    Claim(
        "... nor between 135M and 0.5B (asked when 1.5B had two trainings)", CAPTRACK,
        "qwen-0.5b", "smollm2", "not reliably", size=True, by="towns-sft",
        late=SEEN, families=True,
    ),
    Claim(
        "... these two where training ends near the same score (asked then, too)", CAPTRACK,
        "qwen-0.5b", "smollm2", "not reliably", size=True, by="towns-sft-until",
        late=SEEN, families=True,
    ),
    Claim(
        "More data of one domain loses more", HARMON,
        "towns-sft-much", "towns-sft-little", "more",
    ),
    Claim(
        "... and one pass over 20,000 examples more than ten over 2,000", OURS,
        "towns-sft-much-long", "towns-sft-long", "more",
    ),
    Claim("A mix of domains loses less than one domain of the same size", OURS, "mix-sft"),
    Claim("A pull towards the old model keeps the old", THEORY, "towns-anchor"),
    Claim(
        "... forward (keep what it could say) more than reverse", OURS,
        "towns-anchor", "towns-anchor-reverse",
    ),
    Claim("Replay of old questions keeps the old", THEORY, "towns-replay-drawn"),
    Claim("Replay of what the model wrote itself keeps the old", THEORY, "towns-replay-written"),
    Claim("A loss that holds right answers keeps the old", OURS, "towns-retention"),
    Claim("A low rate keeps the old", OURS, "towns-low-rate"),
    Claim(
        "... at as many steps, beside fewer steps at the usual rate (small: asked after looking)",
        OURS, "towns-low-rate", "towns-sft-short", late=("small",),
    ),
    Claim(
        "Remedies add up: anchor and low rate beside the anchor alone", OURS,
        "towns-anchor-low-rate", "towns-anchor",
    ),
    Claim(
        "... anchor and merge beside the anchor alone", OURS,
        "towns-anchor-merged", "towns-anchor",
    ),
    Claim(
        "Learning from the model's own samples (GRPO) forgets less", THEORY,
        "sums-grpo", "sums-sft",
    ),
    Claim("... so does learning from itself (SDFT)", THEORY, "sums-sdft", "sums-sft"),
)  # fmt: skip


def decided(
    says: Says,
    found: Estimate,
    trainings: int,
    more_learned: Estimate | None = None,
    sure: Estimate | None = None,
) -> str:
    """The verdict on one comparison, by the rule.

    Example:
        >>> less = Estimate(value=-0.03, low=-0.04, high=-0.02)
        >>> decided("less", less, 3), decided("less", less, 1), decided("more", less, 3)
        ('confirmed', 'cannot tell; it was so', 'refuted')
        >>> decided("not reliably", less, 3)
        'cannot tell; it was the other way'
        >>> decided("less", less, 3, more_learned=less)
        'cannot tell; what lost less learned less'
        >>> decided("less", less, 3, more_learned=Estimate(value=-0.05, low=-0.11, high=0.01))
        'cannot tell; what lost less may have learned less'
        >>> decided("less", less, 3, sure=Estimate(value=-0.01, low=-0.02, high=0.0))
        'cannot tell; it may be guessing'
    """
    if found.low <= 0 <= found.high:
        return "cannot tell"
    is_so = (found.high < 0) == (says == "less")
    if trainings < LEAST or not (is_so or says != "not reliably"):
        return f"cannot tell; it was {'so' if is_so else 'the other way'}"
    if more_learned and (how := _learned_less(found, more_learned)):
        return f"cannot tell; what lost less {how} less"
    if sure and not (sure.high < 0 if found.high < 0 else sure.low > 0):
        return "cannot tell; it may be guessing"
    return "confirmed" if is_so else "refuted"


def _learned_less(found: Estimate, more_learned: Estimate) -> str:
    """Whether the side that lost less learned less, or may have; "" where it learned as much."""
    low, high = more_learned.low, more_learned.high
    if found.low > 0:  # the other side lost less
        low, high = -high, -low
    return "learned" if high < 0 else "may have learned" if low < -AS_MUCH else ""


def together(verdicts: list[str]) -> str:
    """One verdict for all models.

    Example:
        >>> together(["confirmed", "cannot tell"]), together(["confirmed", "refuted"])
        ('confirmed', 'cannot tell; models differ')
        >>> together(["cannot tell; it was so", "cannot tell; it was the other way"])
        'cannot tell'
    """
    clear = {verdict for verdict in verdicts if verdict in ("confirmed", "refuted")}
    if len(clear) > 1:
        return "cannot tell; models differ"
    if clear:
        return clear.pop()
    return verdicts[0] if len({*verdicts}) == 1 else "cannot tell"


def near(limit: float, found: Estimate, trainings: int) -> str:
    """The verdict on a share for which theory gives a number.

    Example:
        >>> near(0.25, Estimate(value=0.26, low=0.24, high=0.28), 3)
        'confirmed'
        >>> near(0.25, Estimate(value=0.38, low=0.32, high=0.44), 3)
        'refuted'
    """
    if limit - NEAR <= found.low and found.high <= limit + NEAR:
        verdict = "confirmed"
    elif found.low <= limit + NEAR and found.high >= limit - NEAR:
        return "cannot tell"
    else:
        verdict = "refuted"
    if trainings >= LEAST:
        return verdict
    return f"cannot tell; it was {'so' if verdict == 'confirmed' else 'the other way'}"


def apart(one: Estimate, other: Estimate) -> str:
    """What is said of one that loses less than another, each with an interval over trainings.

    It decides nothing: such an interval says nothing of other items.

    Example:
        >>> less = Estimate(value=0.02, low=0.01, high=0.03)
        >>> apart(less, Estimate(value=0.1, low=0.09, high=0.2))
        'cannot tell; it was so'
    """
    if one.high >= other.low and other.high >= one.low:
        return "cannot tell"
    more = Estimate(value=0, low=one.low - other.high, high=one.high - other.low)
    return decided("less", more, trainings=0)
