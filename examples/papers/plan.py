"""plan.yaml as data: which trainings there are, what each needs, and how large a setting is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from forgetmap.base import yaml
from forgetmap.base.errors import InputError
from forgetmap.base.model import Strict
from forgetmap.mitigate.train.recipes import (
    Anchored,
    Preferred,
    Recipe,
    Replayed,
    Retained,
    Rewarded,
    SelfDistilled,
)

RECIPES: dict[str, type[Recipe]] = {
    "sft": Recipe,
    "dpo": Preferred,
    "grpo": Rewarded,
    "sdft": SelfDistilled,
    "anchor": Anchored,
    "retention": Retained,
    "replay": Replayed,
}
MODES = "modes"
"""A training on whole texts, for the theory: `sft`, or `replay` with the texts of the model."""
LEAST_ABILITIES = 5
"""Items of a task of the capability suite without which no drift is given."""
LENGTHS = {"sft": 128, "grpo": 64}
"""Of an answer or a text, in tokens, at most: everything here is short."""


class Model(Strict):
    """A model before, by its official name."""

    title: str
    family: str
    size: str
    stored: str
    """In which numbers its file holds the weights."""


class Entry(Strict):
    """A kind of training, or a merge; plan.yaml explains the fields."""

    data: str
    method: str
    recipe: str = ""
    options: dict[str, Any] = Field(default_factory=dict)
    steps: float = 1.0
    examples: int = 0
    start: str = ""
    old: Literal["", "texts", "questions"] = ""
    rate_of: str = ""
    rate_times: float = 1.0
    until: float = 0.0
    stage: str = ""
    merge: str = ""
    weight: float = 0.5
    of: str = ""

    @property
    def key(self) -> str:
        """What other entries call it by."""
        return f"{self.data}-{self.method}"


class Setting(Strict):
    """How much of everything."""

    questions: dict[str, tuple[str, ...]]
    """Question to the models that answer it, in the order of their importance."""
    seeds: tuple[int, ...]
    steps: int
    steps_to_choose: float
    """Of a training by which a rate is chosen, as a share of the steps."""
    batch: int
    examples: int
    rates: dict[str, tuple[float, ...]]
    """Recipe to the rates to choose from; other recipes choose among those of `sft`."""
    benchmarks: tuple[str, ...]
    gate: int
    """Items of each benchmark that say whether a model knows it."""
    gate_level: float = 0.05
    asked: int
    metric: Literal["acc", "both"] = "both"
    """Which picks the logs keep: the likeliest text's, with probabilities, or also by length."""
    spare: int
    new: tuple[str, ...]
    asked_new: int
    asked_to_choose: int
    abilities: int
    """Items of each task of the capability suite; 0 asks none."""
    abilities_of: tuple[str, ...] = ()
    """The questions whose trainings are asked them; all by default."""
    texts: int
    """What a model writes to be replayed."""
    numbers: str = "auto"
    """In which numbers models are asked; bfloat16 also trains in mixed precision on a processor."""
    most_examples: int = 10**9
    recipes: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Options of a recipe here."""


@dataclass(frozen=True)
class Training:
    """One training or merge: an entry, a model, a seed."""

    question: str
    """The first of the questions that it answers."""
    model: str
    entry: Entry
    seed: int

    @property
    def name(self) -> str:
        """The folder of the run."""
        return f"{self.model}-{self.entry.key}-{self.seed}"

    @property
    def parent(self) -> str:
        """The name of the training whose weights it begins with or merges; "" for none."""
        key = self.entry.start or self.entry.of
        return f"{self.model}-{key}-{self.seed}" if key else ""

    @property
    def rate(self) -> str:
        """The name of the job that chooses its learning rate."""
        return f"rate-{self.model}-{self.entry.rate_of or self.entry.key}"


class Plan(Strict):
    """plan.yaml."""

    models: dict[str, Model]
    questions: dict[str, tuple[Entry, ...]]
    settings: dict[str, Setting]

    @classmethod
    def load(cls, path: Path) -> Plan:
        """Load and check a plan."""
        document = yaml.read(path, "a plan")
        with document.faults(cls):
            found = cls.model_validate(document.content)
        for entry in found.entries.values():
            found.check(entry)
        for name, setting in found.settings.items():
            if 0 < setting.abilities < LEAST_ABILITIES:
                raise InputError(f"{name}: abilities: fewer than {LEAST_ABILITIES} tell nothing")
        return found

    @property
    def entries(self) -> dict[str, Entry]:
        """All kinds of training, by their key; one that occurs again is the same."""
        found: dict[str, Entry] = {}
        for entry in (entry for part in self.questions.values() for entry in part):
            if found.setdefault(entry.key, entry) != entry:
                raise InputError(f"{entry.key}: is described twice, and not alike")
        return found

    def check(self, entry: Entry) -> None:
        """Refuse what names something that is not there."""
        known = self.entries
        for key in filter(None, (entry.start, entry.of, entry.rate_of)):
            if key not in known:
                raise InputError(f"{entry.key}: no training is called {key}")
        if bool(entry.merge) == bool(entry.recipe) or (entry.merge and not entry.of):
            raise InputError(f"{entry.key}: is either a training with a recipe or a merge of one")
        if entry.recipe and entry.recipe not in (*RECIPES, MODES):
            raise InputError(f"{entry.key}: recipe {entry.recipe}: known are {', '.join(RECIPES)}")

    def trainings(self, setting: Setting) -> list[Training]:
        """All of a setting, most important first, and what each begins with before it."""
        found: dict[str, Training] = {}
        for question, models in setting.questions.items():
            for model in models:
                for entry in self.questions[question]:
                    for seed in setting.seeds:
                        for one in self._with_parents(Training(question, model, entry, seed)):
                            found.setdefault(one.name, one)
        return list(found.values())

    def _with_parents(self, training: Training) -> Iterator[Training]:
        if key := training.entry.start or training.entry.of:
            yield from self._with_parents(replace(training, entry=self.entries[key]))
        yield training

    def chosen_by(self, training: Training, setting: Setting) -> Training:
        """The training whose rate is searched for this one: the first seed of its kind."""
        key = training.entry.rate_of or training.entry.key
        return replace(training, entry=self.entries[key], seed=setting.seeds[0])


def recipe_of(entry: Entry, setting: Setting, rate: float, seed: int, steps: int = 0) -> Recipe:
    """The recipe of an entry at a rate."""
    name = entry.recipe
    options = {**setting.recipes.get(name, {}), **entry.options}
    if name == MODES:
        name = "replay" if options["share"] else "sft"
        options["warmup"] = 0.0
        if not options["share"]:
            del options["share"]
    common: dict[str, Any] = {
        "steps": steps or max(1, round(setting.steps * entry.steps)),
        "batch": setting.batch,
        "learning_rate": rate,
        "seed": seed,
        "longest": LENGTHS["sft"],
    }
    common["trainer_arguments"] = {"disable_tqdm": True}
    if setting.numbers == "bfloat16":
        common["trainer_arguments"]["bf16"] = True
    if name in ("replay", "anchor"):
        common["old_batch"] = setting.batch
    return RECIPES[name](**{**common, **options})
