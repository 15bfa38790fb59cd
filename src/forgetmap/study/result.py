"""StudyResult: what a study found, and its public JSON contract (docs/reference/study.md)."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import Field

from forgetmap.base.display import Result
from forgetmap.base.files import write_text
from forgetmap.base.model import Frozen, parse_result, sealed_json
from forgetmap.base.version import __version__
from forgetmap.base.words import percent
from forgetmap.map.result import Cell, Verdict
from forgetmap.samples.comparability import Coverage
from forgetmap.stats.estimate import Basis, Estimate, Range, single_number
from forgetmap.study.file import Attribute

STUDY_SCHEMA_VERSION = 1
OverlapKind = Literal["other seeds", "same log before", "other log before"]
Outcome = Literal["lost", "gained"]
LearnedBy = Literal["new tasks", "gained"]
"""What learned means: the change on the new tasks, or the gain on the old ones."""


class Number(Frozen):
    """A number, with its 95 % interval where there is one."""

    value: float
    low: float | None = None
    high: float | None = None

    @property
    def estimate(self) -> Estimate | None:
        """The number with its interval; None where it has none."""
        if self.low is None or self.high is None:
            return None
        return Estimate(value=self.value, low=self.low, high=self.high)


class Share(Frozen):
    """A share of items that was lost or gained, as the `Range` of a map.

    Numbers that others published have no items behind them: then both ends are the published
    number, and there is no interval.
    """

    low_end: float
    high_end: float
    low: float | None = None
    high: float | None = None
    of_known: Estimate | None = None
    basis: Basis | Literal["published"]
    deviation: float | None = None
    """Standard deviation over runs, where it was published."""

    @classmethod
    def of(cls, found: Range) -> Share:
        """What a study keeps of a range of a map."""
        return cls(**dict(found))

    @cached_property
    def range(self) -> Range | None:
        """The same as a range of a map; None where there is no interval."""
        if self.low is None or self.high is None or self.basis == "published":
            return None
        return Range(
            low_end=self.low_end,
            high_end=self.high_end,
            low=self.low,
            high=self.high,
            of_known=self.of_known,
            basis=self.basis,
        )

    @property
    def exact(self) -> bool:
        """Whether the share is one number; see `Range.exact`."""
        return self.range.exact if self.range else True

    @property
    def value(self) -> float:
        """The one number to order and draw by; see `Range.value`."""
        return single_number(self.low_end, self.high_end, self.basis)

    @property
    def estimate(self) -> Estimate | None:
        """The one number with the whole interval; None where there is no interval."""
        return self.range.estimate if self.range else None


class StudyCell(Frozen):
    """One task, category or total of a pair; the verdict is corrected over all pairs.

    What only items can tell is None where numbers were published without them.
    """

    n: int | None
    accuracy_before: float | None
    accuracy_after: float | None
    change: Number
    lost: Share
    gained: Share
    p_value: float | None
    verdict: Verdict | None
    ceiling_before: float | None = None
    """Accuracy before less what guessing gives, where it was published."""
    ceiling_after: float | None = None
    marks: list[str] = Field(default_factory=list)
    """What to know about this cell; `StudyResult.marks` says what each means."""

    @classmethod
    def of(cls, cell: Cell) -> StudyCell:
        """What a study keeps of a cell of a map."""
        return cls(
            n=cell.n,
            accuracy_before=cell.accuracy_before,
            accuracy_after=cell.accuracy_after,
            change=Number(**dict(cell.change)),
            lost=Share.of(cell.lost),
            gained=Share.of(cell.gained),
            p_value=cell.p_value,
            verdict=cell.verdict,
        )


class CapabilityCell(Frozen):
    """A capability of a pair, or a group of them (CAN, WILL, HOW), as `forgetmap drift` gives it.

    Changes are oriented: negative is worse, or lower where a capability has no better side.
    """

    name: str
    group: str | None
    """None for a group itself."""
    relative: Estimate | None
    """None where it is withheld; `change` may still be there."""
    change: Estimate | None
    withheld: str | None
    """Why there is no relative change."""
    left_out: list[str]
    """Parts that do not count, as their relative change is withheld or missing."""
    p_value: float
    p_adjusted: float
    """Holm over all capabilities of all pairs; over all groups of all pairs for groups."""
    verdict: Literal["worse", "better", "lower", "higher", "equivalent", "undecided"]
    two_sided: bool = False


class PairDrift(Frozen):
    """How the behaviour of a pair changed, by capability."""

    before: str
    """The file of scores, or the saved drift."""
    after: str | None
    manifest: str
    groups: dict[str, CapabilityCell]
    capabilities: dict[str, CapabilityCell]
    """By code."""
    failure: str | None = None
    """Why there is none of it."""
    warnings: list[str] = Field(default_factory=list)


class StudiedPair(Frozen):
    """A pair that was compared."""

    name: str
    attributes: dict[str, Attribute]
    before: str
    """The name of the model before."""
    after: str
    before_log: str | None
    """None where numbers were published without their logs."""
    after_log: str | None
    old: StudyCell
    """All but the new tasks, as in a map."""
    new: StudyCell | None
    categories: dict[str, StudyCell]
    tasks: dict[str, StudyCell]
    coverage: Coverage | None
    metric: dict[str, str]
    confounds: list[str]
    """Settings in which the two runs differ."""
    warnings: list[str]
    new_tasks: list[str] = Field(default_factory=list)
    """Tasks that the training was meant to teach."""
    new_categories: list[str] = Field(default_factory=list)
    """Categories that such a task is in."""
    drift: PairDrift | None = None
    """By capability, where the study names scores."""
    outcomes: Path | None = Field(default=None, exclude=True)
    """Where what became of its items is stored on this machine; not in the JSON."""


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


class Beside(Frozen):
    """A kind of training beside its reference, on the same items."""

    attributes: dict[str, Attribute]
    pairs: list[str]
    references: list[str]
    items: int
    """Old items that all of them have."""
    lost: float
    reference_lost: float
    more_lost: Estimate
    """Below zero where the kind lost less than its reference."""
    right: float | None
    """Share of the new tasks that is right after; None where they share no new task."""
    reference_right: float | None
    more_right: Estimate | None
    p_value: float
    """That both lost as much."""
    p_adjusted: float
    """Holm over all kinds that are held against a reference."""
    unit: Literal["items", "trainings and items"]


class Against(Frozen):
    """Every kind of training beside a reference kind, all else equal."""

    attribute: str
    value: Attribute
    """The value that the references have."""
    kinds: list[Beside]
    left_out: dict[str, str]
    """Pairs without a reference, and why."""


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
    """None over all pairs; `family` within families together; `kind` within pairs that are alike in
    all texts, such as family, stage and method; else the one family."""
    held: list[str] = Field(default_factory=list)
    """Other attributes whose levels were taken out."""
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
    """Holm over all claims, effects, doses and findings, as `correction` has it."""
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


class CurvePoint(Frozen):
    """One kind of training on a trade-off curve."""

    learned: float
    lost: float
    pairs: list[str]


class Curve(Frozen):
    """What a method lost along what it learned."""

    value: Attribute
    """Of the attribute that the curves are told apart by."""
    points: list[CurvePoint]
    """Ordered by what they learned; replicates are one point."""
    fitted: list[tuple[float, float]]
    """The points of the curve, (learned, lost): the points, or where they fall, made to rise."""
    smoothed: bool
    """Whether more learning went with less loss somewhere, so that the points were averaged."""
    start: str = ""
    """The model that all its trainings start from; with its new tasks where these differ."""


class AtLearning(Frozen):
    """What one method lost at a level of learning."""

    value: Attribute
    lost: float | None
    """None where the method did not reach the level, or only beyond its points."""
    interval: Estimate | None
    why: str | None
    """Why there is no loss, or no interval."""


class EqualLearning(Frozen):
    """What the methods lost that learned as much."""

    learned: float
    methods: list[AtLearning]
    """The least loss first; those that did not reach the level last."""
    start: str = ""
    """The model that all trainings start from; with their new tasks where these differ."""


class TradeOff(Frozen):
    """What was lost against what was learned."""

    attribute: str | None
    """What tells the curves apart: `method`, or what the study names as `curve`."""
    learned_by: LearnedBy
    front: list[str]
    """Pairs that no other beats in both, by what they learned."""
    fronts: dict[str, list[str]] = Field(default_factory=dict)
    """The same among the pairs that start alike, by start; without curves, among all."""
    curves: list[Curve]
    equal: list[EqualLearning]
    unit: str
    """What the intervals take as independent; else why there are none."""
    note: str | None = None
    """Why there are no curves."""


class Effect(Frozen):
    """How much an attribute moves the loss or the gain, all other attributes equal."""

    attribute: str
    value: Attribute | None
    """The value that is compared with `reference`; None where a number doubles."""
    reference: Attribute | None
    estimate: Estimate
    p_value: float
    p_adjusted: float
    """Holm over all claims, effects, doses and findings, as `correction` has it."""
    claimed: bool


class FactorModel(Frozen):
    """Which attributes explain what was lost, or gained."""

    of: Outcome
    effects: list[Effect]
    marginal_r2: float | None
    """Share of the variance of the cells that the attributes explain."""
    conditional_r2: float | None
    """The same with pairs, tasks and families."""
    variances: dict[str, float]
    """Of `attributes`, `pair`, `task`, `family` and `residual`, as far as they are estimated."""
    cells: int
    pairs: int
    groups: int
    """Tasks, or categories where there are no tasks."""
    method: str
    unit: str
    summary: str
    """The answer in one sentence, also where nothing explains."""
    notes: list[str] = Field(default_factory=list)


class Factors(Frozen):
    """Which attributes explain losses and gains."""

    models: list[FactorModel]
    left_out: dict[str, str]
    """Attributes that cannot be told apart from others, and why."""
    note: str | None = None
    """Why there is no model."""


class DosePoint(Frozen):
    """The mean loss at one dose."""

    dose: float
    lost: float
    units: int


class Dose(Frozen):
    """How the loss of a category grows with a dose."""

    attribute: str
    category: str
    points: list[DosePoint]
    units: int
    per_doubling: Estimate
    p_value: float
    p_adjusted: float
    """Holm over all claims, effects, doses and findings, as `correction` has it."""
    claimed: bool
    unit: str


class Stage(Frozen):
    """All pairs of one regime of post-training."""

    name: str
    pairs: list[str]
    units: int
    lost: float
    gained: float
    lost_interval: Estimate | None
    gained_interval: Estimate | None
    """Over units; None for a single one."""
    categories_lost: dict[str, float]
    """The mean loss by category."""
    categories_gained: dict[str, float]
    unit: str = "pairs, replicates as one"


class Finding(Frozen):
    """Something that others published, and whether it holds here."""

    name: str
    text: str
    source: str
    verdict: Literal["holds", "does not hold", "can't tell"]
    estimate: Estimate | None
    p_value: float | None
    p_adjusted: float | None
    """Holm over all claims, effects, doses and findings, as `correction` has it."""
    unit: str | None
    why: str
    """What was compared, or why nothing could be."""


class Stages(Frozen):
    """Regimes of post-training, and whether published findings about them hold in this study."""

    stages: list[Stage]
    unknown: dict[str, int]
    """Values of `stage` that are no known regime, and how many pairs have each."""
    findings: list[Finding]


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
    """None where single items are not known, or are too many."""
    trade_off: TradeOff | None = None
    factors: Factors | None = None
    doses: list[Dose] = Field(default_factory=list)
    stages: Stages | None = None
    """None where no pair names its stage."""
    against: Against | None = None
    """None where the study names no reference."""


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


class StudyResult(Result):
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
    source: str | None = None
    """Who published the numbers; None where they were computed from logs."""
    marks: dict[str, str] = Field(default_factory=dict)
    """What the marks of cells mean."""

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
        failed = f"; {len(self.failures)} could not be compared" if self.failures else ""
        if not self.pairs:
            return f"0 pairs{failed}"
        verdicts = [pair.old.verdict for pair in self.pairs if pair.old.verdict]
        if not verdicts:
            losses = sorted(pair.old.lost.value for pair in self.pairs)
            least, most = f"{100 * losses[0]:.1f}", percent(losses[-1])
            return f"{len(self.pairs)} pairs lost {least} to {most}, as published by {self.source}"
        told = {
            verdict: sum(found.forgetting == verdict for found in verdicts)
            for verdict in ("lost", "held", "undecided")
        }
        margin = percent(self.settings.margin, 0)
        return (
            f"{len(self.pairs)} pairs: {told['lost']} lost more than {margin}, "
            f"{told['held']} held, {told['undecided']} can't tell{failed}"
        )
