"""What Harmon et al. found about regimes of post-training, in our own words, as tests.

Their paper gives no limits for words such as "moderate": the numbers are ours, and are told with
each finding.
"""

from __future__ import annotations

from typing import NamedTuple

from forgetmap.study.result import Outcome

SOURCE = "Harmon et al., arXiv:2510.17776"
WEBSITE = "the website of Harmon et al. (post-forget.github.io)"

DOMAIN = "domain-continual pretraining"
INSTRUCT = "instruction tuning"
FROM_BASE = "reasoning from base"
LOW_DATA = "reasoning from instruct, low data"
HIGH_DATA = "reasoning from instruct, high data"
MERGE = "merge"
REGIMES: dict[str, tuple[str, ...]] = {
    DOMAIN: ("domain", "domain continual", "continual pretraining", "cpt"),
    INSTRUCT: ("instruct", "instruction", "instruction tuned"),
    FROM_BASE: ("trained from base", "reasoning base", "sft from base", "rl from base"),
    LOW_DATA: ("low data", "reasoning low data"),
    HIGH_DATA: ("high data", "reasoning high data"),
    MERGE: ("merged", "merging", "model merging"),
}
"""Regimes of post-training, and other names for them."""
FROM_INSTRUCT = ("reasoning from instruct", "trained from instruct", "reasoning instruct")
"""Names that need to know how much data there was."""
MOST_LOW_DATA = 10_000
"""Examples up to which there is little data; the published trainings have about 1,000 and 100,000
and more."""


class Below(NamedTuple):
    """The mean of a regime lies below a limit."""

    stages: tuple[str, ...]
    of: Outcome
    limit: float


class Less(NamedTuple):
    """The first regimes have less of it than the others."""

    stages: tuple[str, ...]
    of: Outcome
    than: tuple[str, ...]


class Alike(NamedTuple):
    """Two regimes differ by less than a margin."""

    stages: tuple[str, ...]
    of: Outcome
    than: tuple[str, ...]
    margin: float


class NotLess(NamedTuple):
    """The first regimes have no less of it than the others, to within a margin."""

    stages: tuple[str, ...]
    of: Outcome
    than: tuple[str, ...]
    margin: float


class Peak(NamedTuple):
    """Some categories have more of it than the others."""

    stages: tuple[str, ...]
    of: Outcome
    categories: tuple[str, ...]


class Wider(NamedTuple):
    """The trainings of the first regimes differ more from each other than those of the others."""

    stages: tuple[str, ...]
    of: Outcome
    than: tuple[str, ...]


class WithSize(NamedTuple):
    """It falls, or rises, with the size of the model."""

    stages: tuple[str, ...]
    of: Outcome
    falls: bool


Test = Below | Less | Alike | NotLess | Peak | Wider | WithSize


class Published(NamedTuple):
    """A finding, and the test of it."""

    name: str
    text: str
    test: Test
    source: str = SOURCE


_MODERATE = 0.15
_HARD = ("math", "logic")

FINDINGS = [
    Published(
        "domain-loss",
        "domain-continual pretraining loses little to moderately (our limit: 15 %)",
        Below((DOMAIN,), "lost", _MODERATE),
    ),
    Published(
        "domain-gain",
        "domain-continual pretraining gains less than instruction tuning and reasoning from base",
        Less((DOMAIN,), "gained", (INSTRUCT, FROM_BASE)),
    ),
    Published(
        "instruct-loss",
        "instruction tuning loses little to moderately (our limit: 15 %)",
        Below((INSTRUCT,), "lost", _MODERATE),
    ),
    Published(
        "instruct-gain",
        "instruction tuning gains more in Math and Logic than elsewhere",
        Peak((INSTRUCT,), "gained", _HARD),
    ),
    Published(
        "base-loss",
        "reasoning training from a base model loses little to moderately (our limit: 15 %)",
        Below((FROM_BASE,), "lost", _MODERATE),
    ),
    Published(
        "base-gain",
        "reasoning training from a base model gains more in Math and Logic than elsewhere",
        Peak((FROM_BASE,), "gained", _HARD),
    ),
    Published(
        "base-and-instruct",
        "reasoning training from a base model loses about as much as instruction tuning (within "
        "2 points)",
        Alike((FROM_BASE,), "lost", (INSTRUCT,), 0.02),
    ),
    Published(
        "base-less",
        "reasoning training from a base model loses less than instruction tuning",
        Less((FROM_BASE,), "lost", (INSTRUCT,)),
        WEBSITE,
    ),
    Published(
        "low-data-loss",
        "reasoning training of an instruct model with little data loses less than the other "
        "regimes",
        Less((LOW_DATA,), "lost", (DOMAIN, INSTRUCT, FROM_BASE, HIGH_DATA)),
    ),
    Published(
        "low-data-gain",
        "reasoning training of an instruct model with little data gains less than instruction "
        "tuning and reasoning from base",
        Less((LOW_DATA,), "gained", (INSTRUCT, FROM_BASE)),
    ),
    Published(
        "high-data-mixed",
        "with much data the losses differ more between trainings than with little",
        Wider((HIGH_DATA,), "lost", (LOW_DATA,)),
    ),
    Published(
        "size-loss",
        "larger models lose less (domain-continual pretraining and instruction tuning)",
        WithSize((DOMAIN, INSTRUCT), "lost", falls=True),
    ),
    Published(
        "size-gain",
        "larger models gain more (domain-continual pretraining and instruction tuning)",
        WithSize((DOMAIN, INSTRUCT), "gained", falls=False),
    ),
    Published(
        "merge",
        "merging two checkpoints does not help: merges lose no less than trainings (within 2 "
        "points)",
        NotLess((MERGE,), "lost", (DOMAIN, INSTRUCT, FROM_BASE, LOW_DATA, HIGH_DATA), 0.02),
    ),
]
