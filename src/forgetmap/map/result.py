"""ForgettingMap: the result of a comparison, and its public JSON contract."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from forgetmap.base.display import to_html
from forgetmap.base.files import write_text
from forgetmap.base.model import Frozen, parse_result
from forgetmap.base.version import __version__
from forgetmap.base.words import percent
from forgetmap.samples.comparability import Confound, Coverage
from forgetmap.stats.estimate import Estimate, interval

MAP_SCHEMA_VERSION = 1

Headline = Literal["excess", "soft", "raw"]
Net = Literal["worse", "better", "equivalent", "undecided"]
Forgetting = Literal["forgot", "kept", "undecided"]
Interval = Literal["bootstrap", "cluster bootstrap", "bayes"]
ESTIMATORS = ("raw", "paper", "latent", "excess", "soft")
HEADLINE_MEANING: dict[Headline, str] = {
    "excess": "flips beyond both models' own sampling noise, measured from repeats",
    "soft": "flips beyond chance if the model sampled among the options, from their probabilities",
    "raw": "share of items that flipped; sampling noise and lucky guesses are still in it",
}


class Transition(Frozen):
    """One direction of change, forgetting or backward transfer, in every estimator."""

    raw: Estimate
    paper: Estimate | None
    latent: Estimate | None
    excess: Estimate | None
    soft: Estimate | None
    ceiling: float | None
    guessing_bounds: tuple[float, float] | None

    def get(self, name: str) -> Estimate | None:
        """The estimator of that name, None where it is not defined for the cell."""
        estimate: Estimate | None = getattr(self, name)
        return estimate


class Verdict(Frozen):
    """Two verdicts, since a loss does not average out with a gain."""

    net: Net
    forgetting: Forgetting


class Influence(Frozen):
    """The task whose absence would change the headline forgetting most."""

    task: str
    change: float


class Counts(Frozen):
    """Items by outcome before and after; means over all pairings of repeats, times n."""

    n00: float
    n01: float
    n10: float
    n11: float


class Cell(Frozen):
    """One task, category or total."""

    n: int
    repeats_before: int
    repeats_after: int
    counts: Counts
    accuracy_before: float
    accuracy_after: float
    change: Estimate
    """Accuracy after minus before."""
    forgetting: Transition
    backward_transfer: Transition
    noise_floor: float | None
    persistence: float | None = None
    """Share of guesses that persist between runs of one model (rho), where repeats exist."""
    k: dict[str, int] | None
    p_value: float
    p_adjusted: float
    mde: float
    verdict: Verdict
    headline: Headline = "raw"
    interval: Interval = "bootstrap"
    causes: dict[str, int] | None = None
    """Items right less often than before, by cause; None where the text was not read."""
    without: dict[str, Estimate] | None = None
    """Raw forgetting without the losses of each cause."""
    churn: int | None = None
    """Items wrong on both sides that got another wrong answer; None where answers are not known."""
    influence: Influence | None = None

    @property
    def forgot(self) -> Estimate:
        """Forgetting by the headline estimator."""
        return self.forgetting.get(self.headline) or self.forgetting.raw

    @property
    def gained(self) -> Estimate:
        """Backward transfer by the headline estimator."""
        return self.backward_transfer.get(self.headline) or self.backward_transfer.raw


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
    headline: Headline
    draws: int = 10_000
    task_map: str | None = None


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


class ForgettingMap(Frozen):
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
    macro: Cell
    categories: dict[str, Cell]
    tasks: dict[str, Cell]
    task_categories: dict[str, str] = Field(default_factory=dict)
    compat: Compat | None = None

    def to_json(self) -> str:
        """The map in the public JSON contract (docs/reference/json.md)."""
        return self.model_dump_json(indent=2)

    @classmethod
    def from_json(cls, text: str | bytes) -> ForgettingMap:
        """Read a map back; a newer contract than known is refused."""
        return parse_result(cls, "map", MAP_SCHEMA_VERSION, text)

    def write(self, path: str | Path) -> None:
        """Write the JSON, atomically."""
        write_text(path, self.to_json() + "\n")

    def headline(self) -> str:
        """The answer in one sentence, with its interval, noise floor and verdicts."""
        cell = self.total
        forgot, gained = cell.forgot, cell.gained
        beyond = ""
        if cell.headline == "excess" and cell.noise_floor is not None:
            beyond = f" beyond noise {percent(cell.noise_floor)}"
        raw = ""
        if cell.headline != "raw":
            raw = f" ({cell.headline}; raw {percent(cell.forgetting.raw.value)})"
        return (
            f"forgot {interval(forgot, ' %')}{beyond}{raw}; gained {interval(gained, ' %')}; "
            f"accuracy {percent(cell.accuracy_before)} -> {percent(cell.accuracy_after)}; "
            f"verdict: {cell.verdict.forgetting}, net {cell.verdict.net}"
        )

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return to_html(self)
