"""What a forecast works with: the items before, and what became of them in earlier trainings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from forgetmap.base.errors import InputError
from forgetmap.pairing.two_logs import pair
from forgetmap.readers.framework import ReadOptions
from forgetmap.readers.registry import read_all
from forgetmap.samples.table import Samples
from forgetmap.study.build import How
from forgetmap.study.file import Study, StudyPair
from forgetmap.study.items import tag_of

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Log = str | Path | Samples
MADE_OF_OTHERS = ("merge", "repair")
"""Ways to train that start from weights of the reference, so they share its fate."""
_SAME_MODEL = 0.02
"""Mean difference of an item's chance up to which two logs are of one model."""


@dataclass(frozen=True)
class Items:
    """The items of a model before training; arrays have one entry for each."""

    task: NDArray[np.object_]
    key: NDArray[np.uint64]
    identity: NDArray[np.uint64]
    """Key and task as one number, to find items in other logs."""
    chance: Floats
    """Of being right: the right option's probability, else the share of right runs."""
    knew: Bools
    """More than half of the runs were right."""
    options: Floats
    """How many there are to choose from; infinite for an open answer."""

    def __len__(self) -> int:
        return len(self.key)

    def only(self, chosen: NDArray[np.generic]) -> Items:
        """Some of the items."""
        return Items(**{name: value[chosen] for name, value in vars(self).items()})

    def with_others(self, items: Items) -> Items:
        """These items and, behind them, those of another log that are not among them."""
        _, there = find(self, items)
        if there.all():
            return self
        others = vars(items.only(~there))
        return Items(**{name: np.append(value, others[name]) for name, value in vars(self).items()})


class Training(NamedTuple):
    """What became of the items of a model in one training."""

    name: str
    regime: str
    """Trainings of one regime are left out together: the same new task taught in the same way."""
    model: int
    """Trainings from the same model before share a number."""
    taught: str
    """The new tasks."""
    place: NDArray[np.intp]
    """Into the items of its model."""
    loss: Floats
    """max(p - q, 0)."""
    chance_after: Floats
    flipped: Bools
    """Known before, and not after."""
    probe: Items | None = None
    """What a few steps of it had left of its items, which were then thrown away."""


class Tally(NamedTuple):
    """What became of the items of a model in the trainings of a regime, as means."""

    loss: Floats
    after: Floats
    asked: Floats


@dataclass(frozen=True)
class History:
    """Earlier trainings, and the items of the models that they began with."""

    models: list[Items]
    trainings: list[Training]
    notes: list[str]

    def without(self, left_out: Callable[[Training], bool]) -> History:
        """The same without some trainings."""
        kept = [training for training in self.trainings if not left_out(training)]
        return History(self.models, kept, self.notes)

    def probed(self, probes: Mapping[str, Items]) -> History:
        """The trainings that have a probe, by their name, and the items that their probes asked."""
        kept = [training for training in self.trainings if training.name in probes]
        asked = [np.ones(len(items), bool) for items in self.models]
        for training in kept:
            asked[training.model] &= find(probes[training.name], self.models[training.model])[1]
        trainings = []
        for training in kept:
            there = asked[training.model]
            inside = there[training.place]
            found = training._replace(
                place=(np.cumsum(there) - 1)[training.place[inside]],
                loss=training.loss[inside],
                chance_after=training.chance_after[inside],
                flipped=training.flipped[inside],
                probe=probes[training.name],
            )
            trainings.append(found)
        models = [items.only(there) for items, there in zip(self.models, asked, strict=True)]
        return History(models, trainings, self.notes)

    @cached_property
    def tallies(self) -> dict[tuple[int, str], Tally]:
        """By model and regime: means over its trainings of what became of each item."""
        found: dict[tuple[int, str], Tally] = {}
        many = Counter((training.model, training.regime) for training in self.trainings)
        for training in self.trainings:
            at = training.model, training.regime
            size = len(self.models[training.model])
            tally = found.setdefault(at, Tally(*(np.zeros(size) for _ in range(3))))
            tally.loss[training.place] += training.loss / many[at]
            tally.after[training.place] += training.chance_after / many[at]
            tally.asked[training.place] += 1 / many[at]
        return found

    def same_model(self, items: Items) -> int | None:
        """The model that gave the same answers before, by its number; None where there is none."""
        for number, known in enumerate(self.models):
            place, there = find(known, items)
            if there.sum() >= max(20, len(items) // 2):
                apart = np.abs(known.chance[place[there]] - items.chance[there])
                if apart.mean() < _SAME_MODEL:
                    return number
        return None


def find(known: Items, items: Items) -> tuple[NDArray[np.intp], Bools]:
    """Where items are among the known ones, and which of them are there at all."""
    order = np.argsort(known.identity)
    place = np.searchsorted(known.identity, items.identity, sorter=order)
    place = order[np.minimum(place, len(order) - 1)]
    return place, known.identity[place] == items.identity


def items_of(outcomes: pa.Table) -> Items:
    """The side before of paired logs."""
    task = np.array(outcomes["task"].to_pylist(), dtype=object)
    key = outcomes["key"].to_numpy()
    names, code = np.unique(task.astype(str), return_inverse=True)
    tags = np.array([tag_of(str(name)) for name in names], np.uint64)
    options = outcomes["k"].to_numpy().astype(float)
    return Items(
        task=task,
        key=key,
        identity=key ^ tags[code],
        chance=np.clip(outcomes["chance"].to_numpy().astype(float), 0, 1),
        knew=outcomes["knew"].to_numpy(zero_copy_only=False).astype(bool),
        options=np.where(np.isnan(options), np.inf, options),
    )


def read_items(log: Log) -> Items:
    """The items of one log, by the same rules by which two logs are paired."""
    (samples,) = read_all([log], ReadOptions())
    return items_of(pair(samples, samples).outcomes())


def read_history(
    study: str | Path | Study, tick: Callable[[int, int], None] = lambda _done, _all: None
) -> History:
    """What became of every old item in every training of a study."""
    study = study if isinstance(study, Study) else Study.load(study)
    how = How(ignore=study.ignore)
    samples: dict[str, Samples] = {}
    models: list[Items] = []
    trainings, notes = list[Training](), list(study.notes)
    for number, each in enumerate(study.pairs, 1):
        try:
            outcomes = _outcomes(each, how, samples)
        except InputError as error:
            notes.append(f"{each.name}: left out: {error}")
            continue
        trainings.append(_training(each, study, outcomes, models))
        tick(number, len(study.pairs))
    if not trainings:
        raise InputError(f"{study.path}: none of its trainings could be read; {notes[-1]}")
    return History(models, trainings, notes)


def _outcomes(each: StudyPair, how: How, samples: dict[str, Samples]) -> pa.Table:
    for log in (each.before, each.after):
        if log not in samples:
            samples[log] = read_all([log], ReadOptions())[0]
    sides = samples[each.before].only(each.before_model), samples[each.after].only(each.after_model)
    samples.pop(each.after)  # a log after belongs to one pair, the one before to many
    found = pair(*sides).outcomes()
    tasks = set(found["task"].to_pylist())
    left_out = {*how.ignored(tasks, each.new), *each.new}
    old = np.array([task not in left_out for task in found["task"].to_pylist()])
    if not old.any():
        raise InputError("it has no old item")
    return found.filter(pa.array(old))


def _training(each: StudyPair, study: Study, outcomes: pa.Table, models: list[Items]) -> Training:
    items = items_of(outcomes)
    number = History(models, [], []).same_model(items)
    if number is None:
        models.append(items)
        number = len(models) - 1
    models[number] = models[number].with_others(items)
    fall = outcomes["fall"].to_numpy().astype(float)
    knows = outcomes["knows"].to_numpy(zero_copy_only=False).astype(bool)
    taught = " ".join(sorted(each.new))
    return Training(
        name=each.name,
        regime=regime_of(each, study),
        model=number,
        taught=taught,
        place=find(models[number], items)[0],
        loss=np.maximum(fall, 0),
        chance_after=np.clip(items.chance - fall, 0, 1),
        flipped=items.knew & ~knows,
    )


def regime_of(each: StudyPair, study: Study) -> str:
    """What must be left out together to say that a forecast never saw a training.

    The new tasks and the way of training: what the study's curves are told apart by, else the
    method. What was made from the weights of the reference goes with the reference.
    """
    way = each.attributes.get(study.curve or "method", each.name)
    if study.against and way in MADE_OF_OTHERS:
        way = study.against[1]
    return f"{' '.join(sorted(each.new))}/{way}"


def groups(names: NDArray[np.object_]) -> Iterator[tuple[str, NDArray[np.intp]]]:
    """Where each name is, in the order of the names."""
    found, code = np.unique(names.astype(str), return_inverse=True)
    for number, name in enumerate(found):
        yield str(name), np.flatnonzero(code == number)
