"""What each kind of job does: a model before, texts, a learning rate, a training, a merge.

A job leaves its result in the work folder, and last a mark that says it is done. One that was
stopped half-way begins again; the answers that an evaluation has are kept by `forgetmap` itself.
"""

from __future__ import annotations

import gc
import json
import logging
import math
import os
import shutil
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from materials import beginning, read_rows, right_answer, write_rows, write_texts
from plan import MODES, Plan, Setting, Training, recipe_of

from forgetmap.base.errors import InputError
from forgetmap.base.files import write_text
from forgetmap.evaluate.models import Model, Running, open_model
from forgetmap.evaluate.prompts import Asking, make_request
from forgetmap.evaluate.questions import Suite
from forgetmap.evaluate.results import SAMPLES
from forgetmap.evaluate.run import evaluate
from forgetmap.evaluate.suites import own
from forgetmap.mitigate.train.recipes import Examples, Materials, Recipe
from forgetmap.readers.summary import above_chance, show
from forgetmap.stats.tests import benjamini_hochberg

ABILITY_TOKENS = 48
COMPARED = 24
"""Texts of the new task on which a model is held against the one before."""
NOT_LOGGED = ("convert-", "texts-")
"""Jobs whose results no log holds."""
LOOKS_UNTIL = 20
"""How often a training that ends at a score looks at it, at most."""


@dataclass(frozen=True)
class Place:
    """A plan at a setting, and where its files are."""

    plan: Plan
    name: str
    """Of the setting."""
    work: Path
    models: Path

    @property
    def setting(self) -> Setting:
        """How much of everything."""
        return self.plan.settings[self.name]

    @property
    def data(self) -> Path:
        """What prepare.py wrote."""
        return self.work / "data"

    def before(self, model: str) -> Path:
        """The folder of a model before: as given, or as converted from a GGUF."""
        given = self.models / model
        return given if (given / "config.json").is_file() else self.work / "models" / model

    def weights(self, training: str) -> Path:
        """The folder of a trained model."""
        return self.work / "weights" / training

    def run(self, name: str) -> Path:
        """The folder of what a run left."""
        return self.work / "runs" / name

    def mark(self, job: str) -> Path:
        """What is there once a job is done."""
        return self.work / "done" / f"{job}.json"

    def suite(self, name: str) -> Suite:
        """One of the suites of prepare.py."""
        return own.load(self.data / f"{name}.yaml")

    def rows(self, training: Training) -> list[dict[str, str]]:
        """The new data of a training."""
        most = min(training.entry.examples or self.setting.examples, self.setting.most_examples)
        return read_rows(self.data / f"{training.entry.data}.jsonl")[:most]

    def known(self, model: str) -> list[str]:
        """The benchmarks that a model knows."""
        found: list[str] = json.loads((self.work / "known" / f"{model}.json").read_text())["known"]
        return found


def do(place: Place, name: str, kind: str, what: Any) -> None:
    """One job, and the mark that it is done."""
    os.environ.update(TRL_EXPERIMENTAL_SILENCE="1", TOKENIZERS_PARALLELISM="false")
    logging.disable(logging.WARNING)
    begun = time.perf_counter()
    KINDS[kind](place, what)
    _write(place.mark(name), {"seconds": time.perf_counter() - begun})
    release(place)


def free_memory() -> None:
    """Give a card's memory back: a process that waits must not hold what another one needs."""
    import torch

    gc.collect()
    torch.cuda.empty_cache()


def release(place: Place) -> None:
    """Delete the weights that no job needs any more."""
    needed = set()
    for training in place.plan.trainings(place.setting):
        if not place.mark(training.name).is_file():
            needed |= {training.name, training.parent}
        if training.entry.recipe and not place.mark(training.rate).is_file():
            needed.add(place.plan.chosen_by(training, place.setting).parent)
    for folder in (place.work / "weights").glob("*"):
        if folder.name not in needed and place.mark(folder.name).is_file():
            shutil.rmtree(folder, ignore_errors=True)


def restore(place: Place, logs: Path, *, only_choices: bool = False) -> None:
    """Take over what earlier work left in its logs, where a machine keeps nothing.

    Rates, what models know, and times come back, and all that was done counts as done. With
    `only_choices` nothing that was trained does.
    """
    about = json.loads((logs / "about.json").read_text())
    if about["setting"]["name"] != place.name:
        raise InputError(f"{logs}: is of the setting {about['setting']['name']}, not {place.name}")
    found = {
        place.work / part / f"{name}.json": told
        for part in ("rates", "known", "calibration")
        for name, told in about[part].items()
    }
    kept = "rate-" if only_choices else ""
    for name, seconds in about["seconds"].items():
        if name.startswith(kept) and not name.startswith(NOT_LOGGED):
            found[place.mark(name)] = {"seconds": seconds}
    for path, told in found.items():
        if not path.is_file():  # what is there is newer
            _write(path, told)


def undone(place: Place, names: Iterable[str]) -> list[str]:
    """The jobs that are not done, and trainings whose weights one of them needs once more."""
    found = [name for name in names if not place.mark(name).is_file()]
    for training in reversed(place.plan.trainings(place.setting)):
        needed = {training.parent} if training.name in found else set[str]()
        if training.rate in found and training.entry.recipe:
            needed.add(place.plan.chosen_by(training, place.setting).parent)
        for parent in needed - {""}:
            if not (place.weights(parent) / "config.json").is_file() and parent not in found:
                found.append(parent)
    return [name for name in names if name in found]


# --- the model before ----------------------------------------------------------------------------


def convert(place: Place, model: str) -> None:
    """Make a folder of a GGUF, once."""
    from forgetmap.evaluate.convert import convert_gguf

    if place.before(model) == place.models / model:
        return
    found = place.models / f"{model}.gguf"
    if not found.is_file():
        raise InputError(f"{place.models}: holds neither the folder {model} nor {model}.gguf")
    shutil.rmtree(place.before(model), ignore_errors=True)
    place.before(model).parent.mkdir(parents=True, exist_ok=True)
    convert_gguf(found, place.before(model), tied=True)  # as all models of the plan are


def before(place: Place, model: str) -> None:
    """Find what a model knows, and ask it about that.

    What was never known cannot be forgotten. A benchmark counts if the model is clearly above
    chance on items that are not asked again, so that luck on those that are decides nothing.
    """
    asked, known = opened(place, place.before(model)), place.work / "known" / f"{model}.json"
    if not known.is_file():  # else by earlier work, which asked the same items
        evaluate(asked, place.suite("gate"), place.run(f"{model}-gate"))
        metric = "acc" if place.setting.metric == "acc" else "acc_norm"  # as the logs that are kept
        found = told_apart(place.run(f"{model}-gate"), place.setting.gate_level, metric)
        if not found["known"]:
            raise InputError(f"{model}: is not clearly above chance on any benchmark")
        _write(known, found)
        out = ", ".join(found["left_out"]) or "none"
        print(f"{model}: not clearly above chance on, and left out: {out}", flush=True)
    _ask(place, asked, model, f"{model}-before")
    _ask_abilities(place, place.before(model), f"{model}-before")
    about = place.plan.models[model]
    _write(place.run(f"{model}-before") / "run.json", {"size": about.size, "title": about.title})


def told_apart(folder: Path, level: float, metric: str) -> dict[str, Any]:
    """On which benchmarks a model was clearly above chance, on which not, and what was seen.

    Of the benchmarks that are kept, a share of `level` may be there by luck (Benjamini and
    Hochberg).
    """
    summary = show(folder)
    tested = [row for row in summary.tasks if row.metric == metric]
    found = above_chance(summary.model_copy(update={"tasks": tested}), level, benjamini_hochberg)
    known = [row.task for row in found]
    seen = {row.task: {"right": row.mean_score, "items": row.items, "chance": row.chance}
            for row in tested}  # fmt: skip
    return {"known": known, "left_out": [name for name in seen if name not in known], "seen": seen}


def texts(place: Place, model: str) -> None:
    """Have the model before write text to be replayed."""
    found = write_texts(place.before(model), place.setting.texts)
    path = place.work / "texts" / f"{model}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_rows(path, ({"text": text} for text in found))


# --- trainings -----------------------------------------------------------------------------------


def choose_rate(place: Place, training: Training) -> None:
    """The rate that brings the best score on the new task; nothing old is asked here."""
    setting, scores = place.setting, dict[str, float]()
    rates = setting.rates.get(training.entry.recipe, setting.rates["sft"])
    weights = place.weights(training.rate)
    for rate in rates if len(rates) > 1 else ():
        shutil.rmtree(weights, ignore_errors=True)
        _clear(place, f"{training.rate}-{rate:g}")
        train_into(place, training, short_recipe(place, training, rate), weights)
        scores[f"{rate:g}"] = _held_out(place, training, weights, f"{training.rate}-{rate:g}")
    shutil.rmtree(weights, ignore_errors=True)
    usable = [rate for rate in rates if math.isfinite(scores.get(f"{rate:g}", 0.0))]
    if not usable:
        raise InputError(f"{training.rate}: no rate gave a score that is a number")
    best = max(usable, key=lambda rate: (scores.get(f"{rate:g}", 0.0), -rate))
    _write(place.work / "rates" / f"{training.rate}.json", {"rate": best, "scores": scores})


def train_one(place: Place, training: Training) -> None:
    """Train, ask what was asked before, and say how far the model moved."""
    entry, weights = training.entry, place.weights(training.name)
    _clear(place, training.name)
    recipe = _recipe(place, training, _rate(place, training))
    begun = time.perf_counter()
    steps = train_into(place, training, recipe, weights)
    told = {**_plain(recipe), "seconds": time.perf_counter() - begun, "steps_done": steps}
    if entry.recipe == MODES:
        told |= json.loads((weights / "modes.json").read_text())
        told |= _limit(place, training)
    else:
        _ask(place, opened(place, weights), training.model, training.name)
        _ask_abilities(place, weights, training.name, training.question)
        told |= _moved(place, training)
    _write(place.run(training.name) / "run.json", {**_about(place, training), **told})


def merge_one(place: Place, training: Training) -> None:
    """Merge a trained model with the one before all training, and ask it."""
    from forgetmap.mitigate.merge.merging import merge

    entry, weights = training.entry, place.weights(training.name)
    _clear(place, training.name)
    trained = place.weights(training.parent)
    merge(place.before(training.model), trained, weights, method=entry.merge, weight=entry.weight)
    _ask(place, opened(place, weights), training.model, training.name)
    _ask_abilities(place, weights, training.name, training.question)
    told = {"merge": entry.merge, "merge_weight": entry.weight, **_moved(place, training)}
    _write(place.run(training.name) / "run.json", {**_about(place, training), **told})


def _clear(place: Place, run: str) -> None:
    """Remove what a stopped job left: trained again, its weights may differ in a last digit.

    What was done until its weights were wanted once more is not done while they are made.
    """
    place.mark(run).unlink(missing_ok=True)
    for folder in (place.weights(run), place.run(run)):
        shutil.rmtree(folder, ignore_errors=True)


def _rate(place: Place, training: Training) -> float:
    found = json.loads((place.work / "rates" / f"{training.rate}.json").read_text())
    return float(found["rate"]) * training.entry.rate_times


def short_recipe(place: Place, training: Training, rate: float) -> Recipe:
    """The recipe of a training by which a rate is chosen."""
    recipe = _recipe(place, training, rate)
    return replace(recipe, steps=max(1, round(recipe.steps * place.setting.steps_to_choose)))


def _recipe(place: Place, training: Training, rate: float) -> Recipe:
    return recipe_of(training.entry, place.setting, rate, training.seed)


def train_into(place: Place, training: Training, recipe: Recipe, weights: Path) -> int:
    """Train into a folder; returns the steps that were done."""
    from callbacks import Modes, Until

    from forgetmap.mitigate.train.recipes import train

    start = place.before(training.model)
    if training.entry.start:
        start = place.weights(training.parent)
    callbacks: list[Any] = []
    if training.entry.until:
        every = max(1, recipe.steps // LOOKS_UNTIL)
        suite, out = place.suite("choose"), place.run(training.name) / "until"
        shutil.rmtree(out, ignore_errors=True)
        callbacks = [Until(suite, training.entry.data, training.entry.until, every, out)]
    if training.entry.recipe == MODES:
        callbacks = [Modes(weights)]
    train(recipe, start, materials(place, training), weights, callbacks=callbacks)
    return callbacks[0].steps if training.entry.until else recipe.steps


def materials(place: Place, training: Training) -> Materials:
    """What a training works with, in the form that its trainer wants."""
    from transformers import AutoTokenizer

    entry, rows = training.entry, place.rows(training)
    old: list[dict[str, str]] = []
    if entry.old == "texts" or (entry.recipe == MODES and entry.options["share"]):
        old = read_rows(place.work / "texts" / f"{training.model}.jsonl")
    if entry.old == "questions":
        old = _spare_rows(place, training.model)
    asks_spare = entry.recipe == "retention"
    new = in_form(entry.recipe, rows)
    if entry.recipe == MODES:  # the model is asked to begin by itself, so it must see beginnings
        first = beginning(AutoTokenizer.from_pretrained(place.before(training.model)))
        new = [{"text": f"{first}{row['text']}"} for row in new]
    return Materials(
        new=new,
        old=old,
        questions=only(place.suite("spare"), place.known(training.model)) if asks_spare else None,
        reward=right_answer,
    )


def _limit(place: Place, training: Training) -> dict[str, float]:
    """The old mass in the end, by theory: the share of old texts in the loss.

    The share of replay weighs tokens. A text's weight is spread over its tokens, so that long texts
    count less: this is worked out from the data alone, before anything is sampled.
    """
    from transformers import AutoTokenizer

    share = float(training.entry.options["share"])
    given = materials(place, training)
    tokenizer = AutoTokenizer.from_pretrained(place.before(training.model))
    new, old = (learned(tokenizer, rows) for rows in (given.new, given.old or given.new))
    masses = share / old, (1 - share) / new
    told = {"share": share, "limit": masses[0] / sum(masses), "new_tokens": new}
    return told | ({"old_tokens": old} if given.old else {})


def learned(tokenizer: Any, rows: Examples) -> float:
    """Tokens of a text that are learned: its end is, and its first one is not."""
    tokens = tokenizer([row["text"] for row in rows])["input_ids"]
    return sum(map(len, tokens)) / len(tokens)


def in_form(recipe: str, rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """Rows under the names that a trainer knows."""
    if "text" in rows[0]:
        return rows
    if recipe == MODES:
        return [{"text": row["prompt"] + row["completion"]} for row in rows]
    if recipe == "dpo":
        names = {"prompt": "prompt", "completion": "chosen", "rejected": "rejected"}
    else:
        names = {"prompt": "prompt", "completion": "answer" if recipe == "grpo" else "completion"}
    return [{new: row[old] for old, new in names.items()} for row in rows]


def only(suite: Suite, names: Iterable[str]) -> Suite:
    """The suite with some of its tasks."""
    kept = set(names)
    return replace(suite, tasks=tuple(task for task in suite.tasks if task.name in kept))


def _spare_rows(place: Place, model: str) -> list[dict[str, str]]:
    """Benchmark items that are never evaluated, with their right answers, to be replayed."""
    return [
        {"prompt": str(make_request(task, one, Asking()).prompt), "completion": f" {one.target}"}
        for task in only(place.suite("spare"), place.known(model)).tasks
        for one in task.questions()
    ]


# --- asking --------------------------------------------------------------------------------------


def opened(place: Place, model: Path) -> Model:
    """A model, to be asked in the setting's numbers."""
    return open_model(str(model), Running(dtype=place.setting.numbers))


def _ask(place: Place, asked: Model, model: str, run: str) -> None:
    """The benchmarks that the model before knows, and the new tasks."""
    evaluate(asked, only(place.suite("old"), place.known(model)), place.run(run) / "old")
    evaluate(asked, place.suite("new"), place.run(run) / "new")


def _ask_abilities(place: Place, model: Path, run: str, question: str = "") -> None:
    """A few items of each task of the capability suite; answers to be scored by collect.py."""
    asked = place.setting.abilities_of
    if place.setting.abilities and (not asked or not question or question in asked):
        asking = Asking(chat=None, max_tokens=ABILITY_TOKENS)
        running = Running(dtype=place.setting.numbers)
        evaluate(
            str(model), "open-suite", place.run(run) / "abilities", asking=asking, running=running,
            limit=place.setting.abilities,
        )  # fmt: skip


def scores_of(folder: Path) -> list[dict[str, Any]]:
    """What an evaluation says of each item."""
    columns = ["task", "metric", "score", "gold_probability"]
    return pq.read_table(folder / SAMPLES, columns=columns).to_pylist()


def _held_out(place: Place, training: Training, weights: Path, run: str) -> float:
    """The new task's score on items that are not asked otherwise.

    The mean probability of the right option, or the share of written answers that are right; for
    plain text, the mean log-probability of a token of texts that were not trained.
    """
    if training.entry.data == "domain":
        held = [("", row["text"]) for row in read_rows(place.data / "domain-held.jsonl")]
        found = _apart(place.before(training.model), weights, held)
        return -math.log(found.perplexity_after.value)
    suite = place.suite("choose")
    if training.entry.data != "mix":
        suite = only(suite, [training.entry.data])
    asked = evaluate(opened(place, weights), suite, place.run(run) / "choose")
    rows = [row for row in scores_of(asked.folder) if row["metric"] != "acc_norm"]
    scores = [row["gold_probability"] or row["score"] for row in rows]
    return sum(scores) / len(scores)


def _moved(place: Place, training: Training) -> dict[str, float]:
    """How far a model is from the one before: on texts of the new tasks, and in its weights."""
    asked = [
        (str(make_request(task, one, Asking()).prompt), f" {one.target}")
        for task in place.suite("choose").tasks
        for one in task.questions()
    ]
    one, other = place.before(training.model), place.weights(training.name)
    found = _apart(one, other, asked[:: max(1, len(asked) // COMPARED)])
    moved = {"kl_forward_new": found.kl_forward, "kl_reverse_new": found.kl_reverse}
    told = {name: divergence.value for name, divergence in moved.items() if divergence}
    return told | {"weight_drift": _relative_change(one, other)}


def _apart(one: Path, other: Path, pairs: list[tuple[str, str]]) -> Any:
    from forgetmap.evaluate.divergence import Text, diverge

    given = {"new": [Text(prompt, completion) for prompt, completion in pairs]}
    return diverge(str(one), str(other), given, running=Running(dtype="float32")).on["new"]


def _relative_change(one: Path, other: Path) -> float:
    """The norm of the change of all weights, over the norm of the weights before."""
    from safetensors.torch import load_file

    def tensors(folder: Path) -> dict[str, Any]:
        parts = [load_file(path) for path in sorted(folder.glob("*.safetensors"))]
        return {name: tensor.float() for part in parts for name, tensor in part.items()}

    old, new = tensors(one), tensors(other)
    shared = old.keys() & new.keys()
    change = sum(float((new[name] - old[name]).square().sum()) for name in shared)
    return math.sqrt(change / sum(float(old[name].square().sum()) for name in shared))


# --- what is written down ------------------------------------------------------------------------


def _about(place: Place, training: Training) -> dict[str, Any]:
    """What a study tells trainings apart by."""
    entry, model = training.entry, place.plan.models[training.model]
    told = {
        "model": training.model, "title": model.title, "family": model.family, "size": model.size,
        "question": training.question, "data": entry.data, "method": entry.method,
        "seed": training.seed, "examples": entry.examples or place.setting.examples,
    }  # fmt: skip
    way = entry.recipe and f"{entry.recipe}{' after stages' if entry.start else ''}"
    more = {"stage": entry.stage, "start": entry.start, "of": entry.of, "old": entry.old}
    more["way"] = way  # what is held against each other at equal learning
    return {**told, **{name: value for name, value in more.items() if value}}


def _plain(recipe: Recipe) -> dict[str, Any]:
    """What a recipe says of itself, but for what every training has alike."""
    told = recipe.describe()
    told["recipe"] = told.pop("method")
    return {
        name: value for name, value in told.items() if name not in ("seed", "trainer_arguments")
    }


def _write(path: Path, told: dict[str, Any]) -> None:
    """Whole or not at all: a file that a killed job had half written would stop every later run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(told))


def _calibrate(place: Place, model: str) -> None:
    from budget import calibrate

    calibrate(place, model)


KINDS: dict[str, Callable[[Place, Any], None]] = {
    "convert": convert,
    "calibrate": _calibrate,
    "before": before,
    "texts": texts,
    "rate": choose_rate,
    "train": train_one,
    "merge": merge_one,
}
