"""How long jobs will take: by a short calibration, and by jobs of their kind that are done."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from materials import right_answer
from plan import MODES, Training, recipe_of
from work import Place, in_form, opened

from forgetmap.base.files import write_text
from forgetmap.evaluate.run import evaluate
from forgetmap.mitigate.train.recipes import Materials

STEPS, FIRST, ASKED, WRITTEN = 4, 2, 24, 8
"""What a calibration trains, asks first (what is loaded then is not counted), and asks."""
TYPICAL = {"convert": 90.0, "merge": 10.0, "texts": 60.0, "calibrate": 90.0}
"""Seconds of what is not calibrated; a job of the kind that is done says it better."""
SLACK = 1.15
"""Estimates are a little too small: jobs share a machine, and begin with imports."""
ABILITIES, ABILITY_TIMES = 32, 3.0
"""Tasks of the capability suite, and how much longer an answer there takes than one here."""


UNKNOWN = 120.0
"""Seconds of a job of a model that could not be calibrated."""


class Speed(NamedTuple):
    """What was measured of a model; in seconds."""

    ask: float
    """One question with options."""
    write: float
    """One written answer of the new tasks."""
    load: float
    steps: Mapping[str, float]
    """One step, by recipe."""
    begin: Mapping[str, float]
    """What a training takes beside its steps, by recipe."""


def calibrate(place: Place, model: str) -> None:
    """Train a few steps by each recipe that a model will meet, and ask it a few questions."""
    asked, begun = opened(place, place.before(model)), time.perf_counter()
    _time(place, asked, "gate", model, FIRST)
    load = time.perf_counter() - begun
    ask = _time(place, asked, "gate", model, ASKED) / ASKED
    write = _time(place, asked, "choose", model, WRITTEN) / WRITTEN
    steps, begin = {}, {}
    for recipe, training in _one_of_each(place, model).items():
        steps[recipe], begin[recipe] = _step(place, training)
    path = place.work / "calibration" / f"{model}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(Speed(ask, write, load, steps, begin)._asdict()))


def is_outdated(place: Place, model: str) -> bool:
    """Whether a plan that has grown since trains a model by a recipe that was not timed."""
    path = place.work / "calibration" / f"{model}.json"
    timed = json.loads(path.read_text())["steps"] if path.is_file() else {}
    return path.is_file() and not timed.keys() >= _one_of_each(place, model).keys()


def _time(place: Place, asked: Any, suite: str, model: str, limit: int) -> float:
    out = place.run(f"calibration-{model}") / f"{suite}-{limit}"
    shutil.rmtree(out, ignore_errors=True)
    first = place.suite(suite)
    task = first.tasks[-1] if suite == "choose" else first.tasks[0]
    begun = time.perf_counter()
    evaluate(asked, replace(first, tasks=(task,)), out, limit=limit)
    return time.perf_counter() - begun


def _one_of_each(place: Place, model: str) -> dict[str, Training]:
    """A training for each recipe, that needs nothing which is not there yet."""
    found: dict[str, Training] = {}
    for training in place.plan.trainings(place.setting):
        entry = training.entry
        if training.model == model and entry.recipe and entry.recipe not in found:
            plain = entry.model_copy(update={"start": "", "old": "", "until": 0.0})
            found[entry.recipe] = replace(training, entry=plain)
    return found


def _step(place: Place, training: Training) -> tuple[float, float]:
    """(seconds of a step, seconds of all the rest) of a training, on data that need no model."""
    from callbacks import Clock

    from forgetmap.mitigate.train.recipes import train

    weights = place.weights(f"calibration-{training.model}-{training.entry.recipe}")
    shutil.rmtree(weights, ignore_errors=True)
    rows = place.rows(training)
    given = Materials(
        new=in_form(training.entry.recipe, rows), old=in_form("sft", rows),
        questions=place.suite("gate"), reward=right_answer,
    )  # fmt: skip
    recipe = replace(recipe_of(training.entry, place.setting, 1e-6, seed=0), steps=STEPS)
    clock, begun = Clock(), time.perf_counter()
    train(recipe, place.before(training.model), given, weights, callbacks=[clock])
    whole = time.perf_counter() - begun
    shutil.rmtree(weights, ignore_errors=True)
    return clock.step, whole - STEPS * clock.step


# --- estimates -----------------------------------------------------------------------------------


class Estimates:
    """What each job will take."""

    def __init__(self, place: Place) -> None:
        self._place = place
        files = (place.work / "calibration").glob("*.json")
        self._speeds = {path.stem: Speed(**json.loads(path.read_text())) for path in files}
        self._done: dict[str, list[float]] = {}
        for path in place.mark("*").parent.glob("*.json"):
            seconds = json.loads(path.read_text())["seconds"]
            self._done.setdefault(_kind_of(path.stem), []).append(seconds)

    def seconds(self, name: str, kind: str, what: Any) -> float:
        """Of one job: as those of its kind took, else by the calibration."""
        if known := self._done.get(_kind_of(name)):
            return sum(known) / len(known)
        if kind in ("convert", "texts", "calibrate"):
            return TYPICAL[kind]
        speed = self._speeds.get(what if kind == "before" else what.model)
        if speed is None:  # its calibration failed; what else of it works will be seen
            return UNKNOWN
        if kind in ("rate", "train") and what.entry.recipe not in speed.steps:
            return UNKNOWN  # timed before the plan had this recipe
        if kind == "before":
            return self._ask(speed) + speed.ask * self._items("gate")
        if kind == "merge":
            return TYPICAL["merge"] + self._ask(speed)
        return max(1.0, self._train(speed, kind, what))

    def _train(self, speed: Speed, kind: str, training: Training) -> float:
        setting, recipe = self._place.setting, training.entry.recipe
        step, begin = speed.steps[recipe], speed.begin[recipe]
        steps = max(1, setting.steps * training.entry.steps)
        if kind == "rate":
            rates = len(setting.rates.get(recipe, setting.rates["sft"]))
            choose = speed.load + speed.write * self._items("choose")
            return (rates > 1) * rates * (begin + steps * setting.steps_to_choose * step + choose)
        return begin + steps * step + (0 if recipe == MODES else self._ask(speed))

    def _ask(self, speed: Speed) -> float:
        """Old items, new items (written ones, at worst), and the capability suite."""
        setting = self._place.setting
        abilities = setting.abilities * ABILITIES * speed.write * ABILITY_TIMES
        new = speed.write * self._items("new")
        return 2 * speed.load + speed.ask * self._items("old") + new + abilities

    def _items(self, suite: str) -> int:
        files = (self._place.data / suite).glob("*.jsonl")
        return sum(path.read_bytes().count(b"\n") for path in files)


def _kind_of(name: str) -> str:
    """The name of a job without its seed."""
    return re.sub(r"-\d$", "", name)
