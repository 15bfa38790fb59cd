"""StudyResult: what a study found, and its public JSON contract (docs/reference/study.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from forgetmap.base.files import write_text
from forgetmap.base.model import Frozen, parse_result, sealed_json
from forgetmap.base.version import __version__
from forgetmap.base.words import percent
from forgetmap.map.result import Cell, Verdict
from forgetmap.samples.comparability import Coverage
from forgetmap.stats.estimate import Estimate, Range
from forgetmap.study.file import Attribute

STUDY_SCHEMA_VERSION = 1
OverlapKind = Literal["other seeds", "same log before", "other log before"]


class StudyCell(Frozen):
    """One task, category or total of a pair; the verdict is corrected over all pairs."""

    n: int
    accuracy_before: float
    accuracy_after: float
    change: Estimate
    lost: Range
    gained: Range
    p_value: float
    verdict: Verdict

    @classmethod
    def of(cls, cell: Cell) -> StudyCell:
        """What a study keeps of a cell of a map."""
        return cls(**{name: getattr(cell, name) for name in cls.model_fields})


class StudiedPair(Frozen):
    """A pair that was compared."""

    name: str
    attributes: dict[str, Attribute]
    before: str
    """The name of the model before."""
    after: str
    before_log: str
    after_log: str
    old: StudyCell
    """All but the new tasks, as in a map."""
    new: StudyCell | None
    categories: dict[str, StudyCell]
    tasks: dict[str, StudyCell]
    coverage: Coverage
    metric: dict[str, str]
    confounds: list[str]
    """Settings in which the two runs differ."""
    warnings: list[str]


class FailedPair(Frozen):
    """A pair that could not be compared."""

    name: str
    attributes: dict[str, Attribute]
    before_log: str
    after_log: str
    reason: str


class Standing(Frozen):
    """A pair's place in the leaderboard: rank 1 lost least."""

    name: str
    rank: int
    best: int
    """The best rank that can be true: so many pairs, less one, surely lost less."""
    worst: int
    pareto: bool
    """No other pair lost less and learned more."""
    hidden: float
    """What the average hides: the loss that gains make up for, or the gain that losses do."""


class Replicates(Frozen):
    """Pairs with the same attributes and other seeds, as one."""

    attributes: dict[str, Attribute]
    pairs: list[str]
    lost: Estimate
    """The mean over seeds; the interval is over trainings and items."""
    gained: Estimate
    deviation: float
    """Standard deviation of the loss between seeds."""
    unit: str = "trainings and items"


class Level(Frozen):
    """All pairs with one value of an attribute."""

    attribute: str
    value: Attribute
    pairs: int
    units: int
    """Replicates count as one."""
    lost: float
    gained: float
    interval: Estimate | None
    """Of the loss, over units; None for a single one."""
    unit: str = "pairs, replicates as one"


class Slope(Frozen):
    """How the loss changes each time a number doubles."""

    attribute: str
    within: str | None
    """None over all pairs; `family` within families together; else the one family."""
    units: int
    per_doubling: Estimate
    p_value: float
    unit: str
    """What the interval takes as independent."""


class Claim(Frozen):
    """Something that the study might show, and whether it does."""

    text: str
    estimate: Estimate
    p_value: float
    p_adjusted: float
    """Holm over all claims of the study."""
    claimed: bool
    unit: str


class LostItem(Frozen):
    """An item and how many pairs lost it."""

    task: str
    item: str
    item_ref: str | None
    knew: int
    """Pairs whose model before knew it."""
    lost: int
    """Of these, how many lost it."""


class Overlap(Frozen):
    """How much what one pair lost tells about what another lost."""

    kind: OverlapKind
    comparisons: int
    together: int
    """Items lost in both, over all comparisons."""
    expected: float
    """As many would be by chance, within tasks."""
    beyond_chance: Estimate | None
    """0 as by chance, 1 as alike as can be; the interval leaves out one pair at a time."""


class Items(Frozen):
    """What became of the single items over all pairs."""

    items: int
    known_twice: int
    """Items that the models before of two or more pairs knew."""
    lost_in_all: int
    """Of these, how many were lost in every such pair."""
    lost_in_none: int
    most: list[LostItem]
    overlap: list[Overlap]


class Answers(Frozen):
    """What the pairs say together."""

    leaderboard: list[Standing]
    compared_by: str
    """What the ranks rest on."""
    replicates: list[Replicates]
    levels: list[Level]
    slopes: list[Slope]
    claims: list[Claim]
    items: Items | None


class StudySettings(Frozen):
    """How the pairs were compared."""

    task_map: str | None
    threshold: float | None
    margin: float
    identity: str
    deterministic: bool
    draws: int
    seed: int
    alpha: float = 0.05


class StudyResult(Frozen):
    """Many pairs of checkpoints, compared.

    Example:
        >>> StudyResult.model_fields["schema_version"].default
        1
    """

    schema_version: int = STUDY_SCHEMA_VERSION
    forgetmap_version: str = __version__
    pairs: list[StudiedPair]
    failures: list[FailedPair]
    answers: Answers
    settings: StudySettings
    warnings: list[str] = Field(default_factory=list)

    def pair(self, name: str) -> StudiedPair:
        """A pair by its name; KeyError where there is none."""
        for pair in self.pairs:
            if pair.name == name:
                return pair
        raise KeyError(name)

    def to_json(self) -> str:
        """The study in the public JSON contract."""
        return sealed_json(self, indent=1)

    @classmethod
    def from_json(cls, text: str | bytes) -> StudyResult:
        """Read a study back; a newer contract than known is refused."""
        return parse_result(cls, "study", STUDY_SCHEMA_VERSION, text)

    def write(self, path: str | Path) -> None:
        """Write the JSON, atomically."""
        write_text(path, self.to_json() + "\n")

    def headline(self) -> str:
        """The answer in one sentence."""
        told = {
            verdict: sum(pair.old.verdict.forgetting == verdict for pair in self.pairs)
            for verdict in ("lost", "held", "undecided")
        }
        margin = percent(self.settings.margin, 0)
        failed = f"; {len(self.failures)} could not be compared" if self.failures else ""
        return (
            f"{len(self.pairs)} pairs: {told['lost']} lost more than {margin}, "
            f"{told['held']} held, {told['undecided']} can't tell{failed}"
        )
