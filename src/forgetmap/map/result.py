"""ForgettingMap: the result of a comparison, and its public JSON contract."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, ModelWrapValidatorHandler, model_validator

from forgetmap.base.display import Result
from forgetmap.base.files import write_text
from forgetmap.base.model import Frozen, parse_result, sealed_json
from forgetmap.base.version import __version__
from forgetmap.base.words import percent
from forgetmap.map.graded import ScoreChange
from forgetmap.map.old_maps import MERGED, merge_causes, upgrade
from forgetmap.samples.comparability import Confound, Coverage
from forgetmap.stats.estimate import Estimate, Range, range_words

MAP_SCHEMA_VERSION = 2

Net = Literal["worse", "better", "equal", "undecided"]
Forgetting = Literal["lost", "held", "undecided"]
FORGETTING_WORDS: dict[Forgetting, str] = {
    "lost": "lost",
    "held": "held",
    "undecided": "can't tell",
}
NET_WORDS: dict[Net, str] = {
    "worse": "worse",
    "better": "better",
    "equal": "equal",
    "undecided": "can't tell",
}


class Both(Frozen):
    """One estimator, in both directions."""

    lost: Estimate
    gained: Estimate


class Verdict(Frozen):
    """Two verdicts, since a gain does not make up for a loss."""

    net: Net
    forgetting: Forgetting
    would_decide: str | None = None
    """What would decide on forgetting, where nothing can be told yet."""
    p_lost: float | None = None
    """How likely the loss is at most the margin, before any correction; None in older maps."""
    p_held: float | None = None
    """How likely the loss is at least the margin, before any correction."""


class Influence(Frozen):
    """The task whose absence would change the loss most."""

    task: str
    change: float


class Counts(Frozen):
    """Items by outcome before and after; means over all pairings of repeats, times n."""

    n00: float
    n01: float
    n10: float
    n11: float


class Cell(Frozen):
    """One task, category or total.

    Example:
        >>> import forgetmap
        >>> cell = forgetmap.demo().tasks["atlas_time_zones"]
        >>> cell.n, round(cell.lost.value, 3), cell.verdict.forgetting
        (267, 0.195, 'lost')
    """

    n: int
    repeats_before: int
    repeats_after: int
    counts: Counts
    accuracy_before: float
    accuracy_after: float
    change: Estimate
    """Accuracy after minus before."""
    lost: Range
    gained: Range
    raw: Both
    """Items that flipped, with the noise of the runs still in it."""
    paper: Both | None
    """As Harmon et al. correct it for chance; None without options."""
    like_these: Both | None = None
    """For groups: the same if the tasks are a sample of tasks like these."""
    noise_floor: float | None
    """How often a model flips an item 1->0 between two of its own runs; None if not measured."""
    k: dict[str, int] | None
    p_value: float
    p_adjusted: float
    mde: float
    verdict: Verdict
    causes: dict[str, int] | None = None
    """Items right less often than before, by cause; None where the text was not read."""
    without: dict[str, Estimate] | None = None
    """Raw forgetting without the losses of each cause."""
    churn: int | None = None
    """Items wrong on both sides that got another wrong answer; None where answers are not known."""
    influence: Influence | None = None
    score: ScoreChange | None = None
    """Where scores are more than right or wrong: how far they fell and rose."""
    clustered: bool = False
    """Whether clusters of items are the units, in one of its tasks at least."""

    @model_validator(mode="wrap")
    @classmethod
    def _causes_of_today(cls, content: Any, read: ModelWrapValidatorHandler[Self]) -> Self:
        cell = read(content)
        if cell.causes is None or not MERGED.keys() & cell.causes.keys():
            return cell
        found = merge_causes(cell.causes, cell.without, cell.raw.lost.value, cell.n)
        return cell.model_copy(update=dict(zip(("causes", "without"), found, strict=True)))


class ComparedModel(Frozen):
    """Who was compared."""

    name: str
    harness: str
    runs: int


class MapSettings(Frozen):
    """How it was compared."""

    metric: dict[str, str]
    threshold: float
    margin: float
    seed: int
    new: list[str] = Field(default_factory=list)
    """Tasks that the training was meant to teach; `old` leaves them out."""
    deterministic: bool = False
    draws: int = 10_000
    task_map: str | None = None
    thresholds: dict[str, float] = Field(default_factory=dict)
    """Tasks whose scores have a scale of their own, each with its threshold."""


class PublishedRow(Frozen):
    """One cell as the published pipeline computes it (`--compat post-forget`)."""

    category: str
    metric: Literal["forgetting", "backward_transfer"]
    value: float
    std: float | None
    ceiling: float


class Compat(Frozen):
    """The published pipeline's own table."""

    protocol: str
    seeds: int
    rows: list[PublishedRow]
    skipped_tasks: list[str]


class LostExample(Frozen):
    """One lost item."""

    task: str
    item: str
    cause: str
    prompt: str
    before: str
    after: str


class LostGroup(Frozen):
    """Lost items that are alike."""

    items: int
    tasks: dict[str, int]
    """Task -> items, the largest first."""
    causes: dict[str, int]
    terms: list[str]
    """Words that are typical of these items, among all lost ones."""
    examples: list[LostExample]
    """The items nearest to the middle of the group."""
    sentence: str | None = None
    """What a judge says of the group, where one was asked."""

    @property
    def name(self) -> str:
        """Its typical words, or else its task."""
        return ", ".join(self.terms) or next(iter(self.tasks))


class LostSummary(Frozen):
    """The lost items in groups."""

    lost: int
    grouped: int
    """As many as were looked at: all of them, or a sample."""
    groups: list[LostGroup]


class ForgettingMap(Result):
    """What was forgotten and gained between two checkpoints, with how sure that is.

    Example:
        >>> import forgetmap
        >>> result = forgetmap.demo()
        >>> result.total.n == result.coverage.matched
        True
    """

    schema_version: int = MAP_SCHEMA_VERSION
    forgetmap_version: str = __version__
    before: ComparedModel
    after: ComparedModel
    settings: MapSettings
    coverage: Coverage
    confounds: list[Confound]
    warnings: list[str] = Field(default_factory=list)
    total: Cell
    old: Cell
    """All but the new tasks; the total where none is new. The headline and the gates look here."""
    new: Cell | None = None
    """The new tasks together."""
    macro: Cell
    categories: dict[str, Cell]
    tasks: dict[str, Cell]
    task_categories: dict[str, str] = Field(default_factory=dict)
    compat: Compat | None = None
    summary: LostSummary | None = None
    """The lost items in groups, in words; None where nobody asked."""

    def to_json(self) -> str:
        """The map in the public JSON contract (docs/reference/json.md)."""
        return sealed_json(self)

    @classmethod
    def from_json(cls, text: str | bytes) -> ForgettingMap:
        """Read a map back; a newer contract than known is refused."""
        return parse_result(cls, "map", MAP_SCHEMA_VERSION, text, upgrade)

    def write(self, path: str | Path) -> None:
        """Write the JSON, atomically."""
        write_text(path, self.to_json() + "\n")

    def headline(self) -> str:
        """The answer in one sentence or two, with its interval and verdicts."""
        cell = self.old
        items = "old items" if self.new else "items"
        known = ""
        if cell.lost.of_known is not None:
            known = f", {percent(cell.lost.of_known.value)} of what it knew"
        told = (
            f"lost {range_words(cell.lost)} of {cell.n:,} {items}{known}; "
            f"gained {range_words(cell.gained)}; "
            f"accuracy {percent(cell.accuracy_before)} -> {percent(cell.accuracy_after)}; "
            f"verdict: {FORGETTING_WORDS[cell.verdict.forgetting]}, "
            f"net {NET_WORDS[cell.verdict.net]}"
        )
        if self.new:
            before, after = self.new.accuracy_before, self.new.accuracy_after
            told += f". New skill: {percent(before)} -> {percent(after)}"
        return told
