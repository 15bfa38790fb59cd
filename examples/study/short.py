"""A short probe of every way to train: a few steps that are thrown away, and what they cost.

    python short.py DATA MODELS WORK logs/short

DATA and MODELS are those of run.py; any processor will do. Every recipe of the plan is trained for
16 steps with half of its batch and a seed that the study never used, so a probe is another training
and not the beginning of one that is in `logs/`. Then a fixed part of the old questions is asked:
400 of those with options, drawn by a seed before any probe was run.

One file is written for each probe, like those in `logs/`: hashes of items, right or wrong, the
probability of the right option. What is there already is not done again. Left out are merges and
repairs, which begin with weights that a training left behind, what is drawn by the map of a
finished training, and what writes its own answers (GRPO and SDFT), which takes too long here.
"""

import argparse
import json
import logging
import os
import random
import re
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))  # for what the studies share

import pyarrow as pa
import yaml
from compact import read_compact, with_column, without_texts
from materials import write_texts
from plan import Run, runs

from forgetmap.evaluate.questions import Suite, Task
from forgetmap.mitigate.train.recipes import Materials, Recipe
from forgetmap.samples.table import Samples
from run import Study, _materials

STEPS, BATCH = 16, 16
SEED = 100
"""Of every probe; the study's own seeds are 0, 1 and 2."""
ASKED, DRAWN_BY = 400, 17
TEXTS = STEPS * BATCH
"""What the model before writes to be replayed: as many texts as the steps use."""
LEFT_OUT = ("grpo", "sdft")
SAME = {"airports-sft-like-dpo": "airports-sft-low-rate", "airports-pull-back": "airports-sft"}
"""Ways whose first steps are those of another one: they differ in their length, or later."""
STUDY = Path(__file__).with_name("study.yaml")
FIRST = (
    "airports-sft", "sums-sft", "broad-sft", "airports-lora", "airports-sft-low-rate",
    "sums-sft-like-dpo", "airports-retention", "airports-replay-25-questions",
    "airports-anchor-questions", "airports-replay-25", "airports-anchor",
    "airports-anchor-new-data", "sums-sft-like-grpo", "airports-dpo", "sums-dpo",
    "airports-retention-low-rate", "airports-anchor-questions-low-rate",
    "airports-anchor-low-rate", "airports-replay-10", "airports-replay-50",
    "airports-anchor-weak", "airports-anchor-reverse", "broad-lora", "broad-retention",
    "broad-replay-25", "broad-anchor",
)  # fmt: skip
"""The order: every task early, then ways that stand for many trainings, variants of a way last."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("data", "models", "work", "out"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--only", default="", help="probes whose name matches this")
    chosen = parser.parse_args()
    for folder in (chosen.work, chosen.out):
        folder.mkdir(parents=True, exist_ok=True)
    os.environ.update(TOKENIZERS_PARALLELISM="false", TQDM_DISABLE="1")
    logging.disable(logging.WARNING)
    study = Study(chosen.data, chosen.models, chosen.work)
    suite = sample(chosen.data)
    for run in probes():
        if re.search(chosen.only, name_of(run)) and not path_of(run, chosen.out).is_file():
            begun = time.perf_counter()
            told = probe(run, study, suite, chosen.out)
            seconds = time.perf_counter() - begun
            print(f"{time.strftime('%H:%M:%S')} {name_of(run)}, {seconds:.0f} s {told}", flush=True)


def name_of(run: Run) -> str:
    """The probe of a run, which all its seeds share."""
    way = f"{run.task}-{run.method}"
    return f"{run.model}-{SAME.get(way, way)}"


def path_of(run: Run, out: Path) -> Path:
    """Where the answers of a probe are."""
    return out / f"{name_of(run)}.parquet"


def probes() -> Iterator[Run]:
    """One run for each probe, the first models and ways first."""
    found = {
        name_of(run): run
        for run in reversed(list(runs()))
        if run.recipe.name not in LEFT_OUT and f"{run.task}-{run.method}" not in SAME
    }

    def rank(name: str) -> tuple[bool, int]:
        family = found[name].model
        return family != "smollm2", FIRST.index(name.removeprefix(f"{family}-"))

    yield from (found[name] for name in sorted(found, key=rank))


def sample(data: Path) -> Suite:
    """The old questions with options, a fixed part of them."""
    from forgetmap.evaluate.suites import load

    ignored = set(yaml.safe_load(STUDY.read_text(encoding="utf-8"))["ignore"])
    old = load(data / "old.yaml")
    tasks = [task for task in old.tasks if task.name not in ignored]
    every = sorted((task.name, one.item) for task in tasks for one in task.questions())
    kept = set(random.Random(DRAWN_BY).sample(every, ASKED))
    return replace(old, tasks=tuple(_only(task, kept) for task in tasks))


def _only(task: Task, kept: set[tuple[str, int]]) -> Task:
    asked = tuple(one for one in task.questions() if (task.name, one.item) in kept)
    return replace(task, questions=lambda: asked)


def short(recipe: Recipe) -> Recipe:
    """A few steps of a recipe, with half of its batch."""
    changes: dict[str, Any] = {"steps": STEPS, "batch": BATCH, "seed": SEED}
    if hasattr(recipe, "old_batch"):
        changes["old_batch"] = min(recipe.old_batch, BATCH)
    return replace(recipe, **changes)


def probe(run: Run, study: Study, suite: Suite, out: Path) -> dict[str, float]:
    """Train a few steps, ask, and keep the answers alone."""
    from forgetmap.evaluate.prompts import Asking
    from forgetmap.evaluate.run import evaluate
    from forgetmap.mitigate.train.recipes import train

    name, recipe, before = name_of(run), short(run.recipe), study.models / run.model
    weights, answers = study.weights(name), study.work / name
    for left in (weights, answers):  # of a probe that was stopped
        shutil.rmtree(left, ignore_errors=True)
    begun = time.perf_counter()
    train(recipe, before, _few(run, study), weights)
    trained = time.perf_counter() - begun
    model = f"{before}+{weights}" if recipe.lora else str(weights)
    drawn = Asking(temperature=0.7, repeats=3)  # as run.py asks
    evaluate(model, suite, answers, asking=drawn)
    seconds = {"training": round(trained), "asking": round(time.perf_counter() - begun - trained)}
    told = {**recipe.describe(), "task": run.task, "old": run.old, "seconds": seconds}
    told["trainings"] = sorted(one.name for one in runs() if name_of(one) == name)
    path_of(run, out).with_suffix(".json").write_text(json.dumps(told) + "\n", encoding="utf-8")
    compact(answers / "samples.parquet", name).write(path_of(run, out))
    for done in (weights, answers):
        shutil.rmtree(done)
    return seconds


def compact(answers: Path, name: str) -> Samples:
    """Answers as in `logs/`, without the probabilities of wrong options."""
    samples = without_texts(read_compact(answers, name))
    table, column = samples.data, "option_probabilities"
    empty = pa.nulls(len(table), table.schema.field(column).type)
    return Samples(with_column(table, column, empty), samples.meta)


def _few(run: Run, study: Study) -> Materials:
    """What a run is trained with, no more of it than a few steps use."""
    if run.old == "text" and not study.texts(run.model).is_file():
        found = write_texts(study.models / run.model, TEXTS)
        lines = "".join(json.dumps({"text": text}) + "\n" for text in found)
        study.texts(run.model).write_text(lines, encoding="utf-8")
    whole = _materials(run, study)
    if whole.questions is None:
        return whole
    draw = random.Random(DRAWN_BY)
    every = [(task.name, one.item) for task in whole.questions.tasks for one in task.questions()]
    kept = set(draw.sample(every, 2 * TEXTS))  # all of them are asked before the first step
    tasks = tuple(_only(task, kept) for task in whole.questions.tasks)
    return replace(whole, questions=replace(whole.questions, tasks=tasks))


if __name__ == "__main__":
    main()
