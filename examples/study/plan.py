"""What the study trains: every run by name, most important first."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from forgetmap.mitigate.train.recipes import (
    Anchored,
    Preferred,
    PulledBack,
    Recipe,
    Replayed,
    Retained,
    Rewarded,
    SelfDistilled,
)

MODELS = ("smollm2", "gemma3-270m")


@dataclass(frozen=True)
class Run:
    """One training: a model, a task, a method."""

    model: str
    task: str
    """airports (narrow: a long tail of facts), sums (one skill), broad (nine third-party sets)."""
    method: str
    recipe: Recipe
    old: str = ""
    """What is replayed or anchored on: `text` the model wrote itself, `questions`, nothing, or
    what `forgetmap replay` draws from these questions for what the plain run forgot: `targeted`,
    or `domain` for the category that lost most, alone."""
    start: str = ""
    """The method whose weights are trained on; the model before, if none."""

    @property
    def name(self) -> str:
        """The folder of the run."""
        return f"{self.model}-{self.task}-{self.method}-{self.recipe.seed}"

    @property
    def started(self) -> str:
        """The folder of the run whose weights are trained on."""
        return replace(self, method=self.start).name

    @property
    def facts(self) -> dict[str, str | float]:
        """What study.yaml tells trainings apart by: the way, and how much of it."""
        way = WAYS.get(self.recipe.name, self.recipe.name)
        if isinstance(self.recipe, Replayed):
            way = "repair" if self.start else f"{way} of {REPLAYED.get(self.old, self.old)}"
            return {"way": way, "replay": self.recipe.share}
        if isinstance(self.recipe, Anchored):
            return {"way": f"{way} on {self.old or 'new data'}", "anchor": self.recipe.weight}
        return {"way": "LoRA" if self.recipe.lora else way}


@dataclass(frozen=True)
class Merge:
    """A trained model merged with the model before."""

    model: str
    parent: str
    """The method of its run of the airports task."""
    how: str

    @property
    def name(self) -> str:
        """The folder of its logs; the plain run is not named."""
        parent = "" if self.parent == "sft" else f"{self.parent}-"
        return f"{self.model}-airports-merge-{parent}{self.how}-{MENDED[self.model]}"

    @property
    def facts(self) -> dict[str, str | float]:
        """What study.yaml tells merges apart by: how, how much, and how the run was trained."""
        how, _, weight = self.how.rpartition("-")
        recipe, _ = FACTS[self.parent]
        trained = {name: getattr(recipe, name) for name in ("learning_rate", "steps", "batch")}
        return {"way": "merge", "merge": how, "merge_weight": float(weight), **trained}


WAYS = {"sft": "plain", "retention": "retention loss", "dpo": "DPO", "sdft": "SDFT", "grpo": "GRPO"}
"""What a kind of recipe is called in the study, where it is not called by its own name."""
REPLAYED = {"targeted": "what was lost", "domain": "what was lost"}


SIZE = {"steps": 600, "batch": 32, "learning_rate": 2e-4}
SLOWLY = {**SIZE, "learning_rate": 2e-5}
LITTLE = {**SLOWLY, "steps": 300}
REWARD = {"steps": 250, "batch": 128, "learning_rate": 1e-5}
FACTS = {
    "sft": (Recipe(**SIZE), ""),
    "sft-low-rate": (Recipe(**SLOWLY), ""),
    "lora": (Recipe(**{**SIZE, "learning_rate": 1e-3}, lora=16), ""),
    "replay-10": (Replayed(**SIZE, share=0.1), "text"),
    "replay-25": (Replayed(**SIZE, share=0.25), "text"),
    "replay-50": (Replayed(**SIZE, share=0.5), "text"),
    "replay-25-questions": (Replayed(**SIZE, share=0.25), "questions"),
    "anchor": (Anchored(**SIZE), "text"),
    "anchor-weak": (Anchored(**SIZE, weight=0.1), "text"),
    "anchor-reverse": (Anchored(**SIZE, direction="reverse"), "text"),
    "anchor-questions": (Anchored(**SIZE), "questions"),
    "anchor-new-data": (Anchored(**SIZE, weight=0.1), ""),
    "retention": (Retained(**SIZE), "questions"),
    "pull-back": (PulledBack(**SIZE), ""),
    "dpo": (Preferred(**LITTLE), ""),
    "sdft": (SelfDistilled(**LITTLE, longest_answer=8), ""),
    "sft-like-dpo": (Recipe(**LITTLE), ""),
    "anchor-low-rate": (Anchored(**SLOWLY), "text"),
    "anchor-questions-low-rate": (Anchored(**SLOWLY), "questions"),
    "retention-low-rate": (Retained(**SLOWLY), "questions"),
}
SKILL = {
    "sft": (Recipe(**{**SIZE, "steps": 300, "learning_rate": 5e-5}), ""),
    **{
        f"grpo-{beta:g}": (
            Rewarded(**REWARD, beta=beta, longest_answer=8), ""
        )
        for beta in (0.0, 0.2, 1.0)
    },
    "dpo": (Preferred(**LITTLE), ""),
    "sdft": (SelfDistilled(**LITTLE, longest_answer=8), ""),
    "sft-like-dpo": (Recipe(**LITTLE), ""),
    "sft-like-grpo": (Recipe(**REWARD), ""),
}  # fmt: skip
BROAD = {method: FACTS[method] for method in ("sft", "lora", "replay-25", "anchor", "retention")}
AFTERWARDS = {
    "replay-25-targeted": (Replayed(**SIZE, share=0.25), "targeted", ""),
    "replay-25-domain": (Replayed(**SIZE, share=0.25), "domain", ""),
    "repair-domain": (
        Replayed(steps=150, batch=32, learning_rate=5e-5, share=0.5), "domain", "sft"
    ),
}  # fmt: skip
"""What needs the map of the plain run; the last one mends the plain run's model."""
MERGED = {
    "sft": ("linear-0.25", "linear-0.5", "linear-0.75", "slerp-0.5", "ties-0.5", "dare-0.5"),
    "sft-low-rate": ("linear-0.5",),
}
"""Runs of the airports task that are merged: how, and the share of the trained model."""
MENDED = {"smollm2": 0, "gemma3-270m": 1}
"""The seed of the runs whose weights are merged, mended, and held against the model before's."""
SEVERAL_SEEDS = (
    "sft", "replay-25", "replay-25-questions", "anchor", "anchor-questions", "retention",
)  # fmt: skip
SEEDS = (1, 2)


def answers_suite(run: Run | Merge) -> bool:
    """Whether its model also answers the capability suite: the first seed of each method does."""
    if isinstance(run, Merge) or not run.recipe.seed:
        return True
    return run.recipe.seed == MENDED[run.model] and bool(run.start or run.method in MERGED)


def runs() -> Iterator[Run]:
    """Every training that needs no other, in the order in which it is done."""
    small, other = MODELS
    yield from _all(small, "airports", FACTS)
    yield from _all(other, "airports", {name: FACTS[name] for name in _FOR_BOTH})
    for run in _all(other, "airports", {"sft-low-rate": FACTS["sft-low-rate"]}):
        yield replace(run, recipe=replace(run.recipe, seed=MENDED[other]))
    yield from _all(small, "sums", SKILL)
    yield from _all(small, "broad", BROAD)
    yield from _all(other, "broad", {name: BROAD[name] for name in ("sft", "anchor")})
    for model in MODELS:
        for seed in SEEDS:
            for run in _all(model, "airports", {name: FACTS[name] for name in SEVERAL_SEEDS}):
                yield replace(run, recipe=replace(run.recipe, seed=seed))


def runs_afterwards() -> Iterator[Run]:
    """Trainings that begin with what the plain run forgot."""
    for model in MODELS:
        for method, (recipe, old, start) in AFTERWARDS.items():
            seeded = replace(recipe, seed=MENDED[model] if start else 0)
            yield Run(model, "airports", method, seeded, old, start)


def merges() -> Iterator[Merge]:
    """Every merge."""
    for model in MODELS:
        yield from (Merge(model, parent, how) for parent in MERGED for how in MERGED[parent])


_FOR_BOTH = (
    "sft", "lora", "replay-25", "replay-25-questions", "anchor", "anchor-questions",
    "retention", "dpo", "sdft", "sft-like-dpo", "anchor-low-rate", "anchor-questions-low-rate",
    "retention-low-rate",
)  # fmt: skip


def _all(model: str, task: str, methods: dict[str, tuple[Recipe, str]]) -> Iterator[Run]:
    for method, (recipe, old) in methods.items():
        yield Run(model, task, method, recipe, old)
