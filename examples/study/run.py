"""Stage 2: train every run of the plan, evaluate each, and merge. Wants a graphics card.

    python run.py DATA MODELS WORK --workers 6

DATA is what prepare.py wrote. MODELS holds the folders smollm2 and gemma3-270m, as
`forgetmap fetch-model` makes them. WORK keeps what is finished: a stopped run goes on. Weights are
deleted once they are evaluated, but for those that are merged.
"""

import argparse
import fnmatch
import gc
import json
import logging
import os
import re
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))  # for what the studies share

from materials import exact_number, read_rows, sample_texts, write_texts
from plan import (
    MENDED,
    MERGED,
    MODELS,
    Merge,
    Run,
    answers_suite,
    merges,
    runs,
    runs_afterwards,
)

from forgetmap.base.jobs import Job, do_all, with_needs
from forgetmap.mitigate.train.recipes import Materials, Recipe

SELF_TEXTS = 4_000
PROBE_EVERY = 50
LOOKS = (0, 5, 10, 20, 40, 80, 160, 320)
"""Steps after which the theory's runs are sampled."""
SHARES = (0.0, 0.1, 0.25, 0.5)
SAMPLED = 500
BEGINNING = "<|im_start|>"
"""What SmolLM2 begins a text with; its tokenizer does not add it."""
CAPABILITY_TOKENS = 160
PLAIN = "airports-sft-0"
"""The run whose losses are drawn for, where none is mended."""
KEPT = {f"{model}-airports-{method}-{seed}" for model, seed in MENDED.items() for method in MERGED}
"""Runs whose weights are kept for the third stage."""
DRAWN = 600
"""Examples that `forgetmap replay` is asked for."""


@dataclass(frozen=True)
class Study:
    """Where things are, and whether this is only a trial."""

    data: Path
    models: Path
    work: Path
    try_out: bool = False
    tasks: tuple[str, ...] = ()
    """The tasks that are asked; all of them, if none."""

    def texts(self, model: str) -> Path:
        """What the model before wrote, to be replayed."""
        return self.work / f"{model}-texts.jsonl"

    def weights(self, name: str) -> Path:
        """The folder of a trained model."""
        return self.work / "weights" / name

    def recipe(self, recipe: Recipe) -> Recipe:
        """The recipe, or a few steps of it."""
        return replace(recipe, steps=3) if self.try_out else recipe


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("models", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--workers", type=int, default=6)
    parser.add_argument("--only", default="", help="jobs whose name matches this, and their needs")
    parser.add_argument("--have", type=Path, help="logs of runs that need not be run again")
    parser.add_argument("--try-out", action="store_true", help="a few steps and questions of each")
    parser.add_argument(
        "--tasks", nargs="+", default=(), metavar="GLOB",
        help="ask these tasks alone, without probes and capabilities: questions that came later",
    )  # fmt: skip
    chosen = parser.parse_args()
    chosen.work.mkdir(parents=True, exist_ok=True)
    study = Study(chosen.data, chosen.models, chosen.work, chosen.try_out, tuple(chosen.tasks))
    there = [model for model in MODELS if (chosen.models / model / "config.json").is_file()]
    plan = {_name(*job): job for job in _jobs(there)}
    jobs = {
        name: Job(name, partial(_do, *job, study), tuple(_needs(*job)))
        for name, job in plan.items()
    }
    wanted = with_needs(jobs, _asked(plan, chosen.only, chosen.have))
    found = do_all(jobs, wanted, chosen.workers, after=_free_memory)
    if undone := [*found.failed, *found.left]:
        sys.exit(f"not done: {', '.join(undone)}; the same command again tries them again")


def _jobs(models: list[str]) -> Iterator[tuple[str, Any]]:
    """Everything that can be done, most important first."""
    yield from (("texts", model) for model in models)
    yield from (("before", model) for model in models)
    yield from (("abilities", model) for model in models)
    trained = [run for run in runs() if run.model in models]
    yield from (("train", run) for run in trained)
    yield from (("theory", share) for share in SHARES if "smollm2" in models)
    yield from (("train", run) for run in runs_afterwards() if run.model in models)
    yield from (("merge", merge) for merge in merges() if merge.model in models)
    yield from (("drift", run) for run in trained if run.name in KEPT)


def _asked(plan: Mapping[str, tuple[str, Any]], only: str, have: Path | None) -> Iterator[str]:
    """The names of what was asked for and is not there."""
    for name, (kind, what) in plan.items():
        if re.search(only, name) and kind != "texts" and not _is_there(kind, what, have):
            yield name


def _name(kind: str, what: Any) -> str:
    if kind in ("drift", "theory"):
        return f"drift-{what.name}" if kind == "drift" else f"theory-{what:g}"
    return what.name if isinstance(what, Run | Merge) else f"{kind}-{what}"


def _needs(kind: str, what: Any) -> list[str]:
    """The names of the jobs that must be done before this one."""
    if kind == "merge":
        return [f"{what.model}-airports-{what.parent}-{MENDED[what.model]}"]
    if kind == "drift":
        return [what.name]
    if kind == "theory":
        return ["texts-smollm2"]
    found = []
    if kind == "train":
        found += [f"texts-{what.model}"] if what.old == "text" else []
        drawn = what.old in ("targeted", "domain")
        found += [f"before-{what.model}", _forgetful(what)] if drawn else []
        found += [what.started] if what.start else []
    return found


def _is_there(kind: str, what: Any, logs: Path | None) -> bool:
    """Whether the logs of an earlier run hold what a job would make."""
    if logs is None:
        return False
    if kind in ("theory", "drift"):
        return (logs / f"{_name(kind, what)}.json").is_file()
    name = f"{what}-before" if kind in ("abilities", "before") else _name(kind, what)
    wanted = [logs / f"{name}.parquet"] if kind != "abilities" else []
    if kind == "abilities" or (kind != "before" and answers_suite(what)):
        wanted.append(logs / "scores" / f"{name}.parquet")
    return all(path.is_file() for path in wanted)


def _do(kind: str, what: Any, study: Study) -> None:
    os.environ.update(TRL_EXPERIMENTAL_SILENCE="1", TOKENIZERS_PARALLELISM="false")
    logging.disable(logging.WARNING)
    _KINDS[kind](what, study)


def _free_memory() -> None:
    """Give the card's memory back: a worker that waits must not hold what another one needs."""
    import torch

    gc.collect()
    torch.cuda.empty_cache()


def _texts(model: str, study: Study) -> None:
    """Have the model before write text to be replayed."""
    if not study.texts(model).is_file():
        found = write_texts(study.models / model, 64 if study.try_out else SELF_TEXTS)
        study.texts(model).write_text("".join(json.dumps({"text": text}) + "\n" for text in found))


def _before(model: str, study: Study) -> None:
    """Evaluate the model before."""
    _evaluate(study.models / model, study, study.work / f"{model}-before")


def _abilities(model: str, study: Study) -> None:
    """The capability suite, asked of the model before; it takes longer than all the rest."""
    _answer_capabilities(study.models / model, study, study.work / f"{model}-before")


def _train(run: Run, study: Study) -> None:
    from forgetmap.mitigate.train.callback import ForgettingCallback
    from forgetmap.mitigate.train.recipes import train

    logs, weights = study.work / run.name, study.weights(run.name)
    if (logs / "run.json").is_file():
        return
    shutil.rmtree(logs / "probes", ignore_errors=True)  # of a run that was killed
    callbacks = []
    is_main = run.task == "airports" and not run.recipe.seed
    if is_main and not study.tasks:
        every = 1 if study.try_out else PROBE_EVERY
        callbacks = [
            ForgettingCallback(study.data / "probe.yaml", every=every, out=logs / "probes")
        ]
    recipe, before = study.recipe(run.recipe), study.models / run.model
    if run.start:
        before = study.weights(run.started)
    materials = _materials(run, study)
    begun = time.perf_counter()
    train(recipe, before, materials, weights, callbacks=callbacks)
    seconds = time.perf_counter() - begun
    name = f"{before}+{weights}" if recipe.lora else str(weights)
    _evaluate(name, study, logs)
    if answers_suite(run):
        _answer_capabilities(name, study, logs)
    told = {**recipe.describe(), "task": run.task, "old": run.old, "seconds": seconds}
    told |= run.facts
    for what, key in (("replayed", "category"), ("replayed_tasks", "task")):
        told[what] = dict(Counter(row.get(key, "") for row in materials.old))
    (logs / "run.json").write_text(json.dumps(told))
    if run.name not in KEPT:
        shutil.rmtree(weights)


def _materials(run: Run, study: Study) -> Materials:
    from forgetmap.evaluate.suites import load

    rows = read_rows(study.data / f"{run.task}.jsonl")
    if run.recipe.name == "dpo":
        named = {"prompt": "prompt", "completion": "chosen", "rejected": "rejected"}
    else:
        named = {"prompt": "prompt", "completion": "completion"}
    if run.recipe.name == "grpo":
        named["completion"] = "answer"
    return Materials(
        new=[{new: row[old] for old, new in named.items()} for row in rows],
        old=_old(run, study),
        questions=load(study.data / "anchor.yaml") if run.recipe.name == "retention" else None,
        reward=exact_number,
    )


def _merge(what: Merge, study: Study) -> None:
    """Merge a run with the model before, and evaluate the result."""
    from forgetmap.mitigate.merge.merging import merge

    logs, weights = study.work / what.name, study.weights(what.name)
    if (logs / "run.json").is_file():
        return
    method, _, weight = what.how.rpartition("-")
    [trained] = map(study.weights, _needs("merge", what))
    merge(study.models / what.model, trained, weights, method=method, weight=float(weight))
    _evaluate(weights, study, logs)
    _answer_capabilities(weights, study, logs)
    told = {"method": f"merge {what.how}", "of": what.parent, "task": "airports", **what.facts}
    (logs / "run.json").write_text(json.dumps(told))
    shutil.rmtree(weights)


def _drift(run: Run, study: Study) -> None:
    """How far a run moved the weights."""
    from forgetmap.mitigate.merge.weight_drift import weight_drift

    before, after = study.models / run.model, study.weights(run.name)
    found = weight_drift(before, f"{before}+{after}" if run.recipe.lora else after)
    told = {"model": run.model, "method": run.method, **found.total.model_dump()}
    (study.work / f"drift-{run.name}.json").write_text(json.dumps(told))


def _evaluate(model: Path | str, study: Study, logs: Path) -> None:
    """All questions, old and new; written answers are drawn three times for the noise floor."""
    from forgetmap.evaluate.prompts import Asking
    from forgetmap.evaluate.run import evaluate
    from forgetmap.evaluate.suites import load

    drawn, limit = Asking(temperature=0.7, repeats=3), 2 if study.try_out else None
    for name in ("old", "new"):
        suite = load(study.data / f"{name}.yaml")
        named = tuple(
            one for one in study.tasks if fnmatch.filter((task.name for task in suite.tasks), one)
        )
        if named or not study.tasks:
            evaluate(str(model), suite, logs / name, asking=drawn, limit=limit, tasks=named)


def _answer_capabilities(model: Path | str, study: Study, logs: Path) -> None:
    if study.tasks:
        return
    from forgetmap.evaluate.prompts import Asking
    from forgetmap.evaluate.run import evaluate

    asking = Asking(chat="smollm2" in str(model), max_tokens=CAPABILITY_TOKENS)
    tasks, limit = (("facts*",), 2) if study.try_out else ((), None)
    out = logs / "capabilities"
    evaluate(str(model), "open-suite", out, asking=asking, limit=limit, tasks=tasks)


def _old(run: Run, study: Study) -> list[dict[str, str]]:
    if run.old == "text":
        return read_rows(study.texts(run.model))
    if run.old in ("targeted", "domain") and not study.try_out:  # a few steps forget nothing
        return _drawn(run, study)
    return _anchor_rows(study.data) if run.old else []


def _forgetful(run: Run) -> str:
    """The run whose losses are drawn for: the one that is mended, or the plain one."""
    return run.started if run.start else f"{run.model}-{PLAIN}"


def _drawn(run: Run, study: Study) -> list[dict[str, str]]:
    """Map what was forgotten, and draw from the questions for it, as a user would."""
    import forgetmap
    from forgetmap.mitigate.replay.build import PROMPTS, build_replay

    folder = study.work / run.name
    names = (f"{run.model}-before", _forgetful(run))
    before, after = (study.work / name / "old" for name in names)
    tasks = before / "tasks.csv"
    forgetmap.compare(before, after, task_map=tasks, save=folder / "map")
    pool = folder / "pool.jsonl"
    rows = _anchor_rows(study.data)
    pool.write_text("".join(json.dumps(row) + "\n" for row in rows))
    given: dict[str, Any] = {"logs": [before], "pool": pool}
    made = build_replay(folder / "map", folder / "replay", DRAWN, **given)
    if run.old == "domain":
        worst = next(iter(made.categories))
        build_replay(folder / "map", folder / "replay", DRAWN, categories=[worst], **given)
    drawn = read_rows(folder / "replay" / PROMPTS)
    return [rows[int(row["source"].rpartition(":")[2]) - 1] for row in drawn]


def _anchor_rows(data: Path) -> list[dict[str, str]]:
    """The questions that may be trained on, with their right answers."""
    from forgetmap.evaluate.prompts import Asking, make_request
    from forgetmap.evaluate.suites import load

    return [
        {
            "prompt": str(make_request(task, question, Asking()).prompt),
            "completion": f" {question.target}",
            "category": task.category,
            "task": task.name,
        }
        for task in load(data / "anchor.yaml").tasks
        for question in task.questions()
    ]


def _theory(share: float, study: Study) -> None:
    """Whole texts as the two modes: old is what the model writes by itself, new the airports.

    The loss counts every token, so that the model without a prompt learns which of the two to
    write. The old mass is the share of unprompted texts that are not about airports.
    """
    from transformers import TrainerCallback

    from forgetmap.mitigate.train.recipes import Replayed, train

    out = study.work / f"theory-{share:g}.json"
    if out.is_file():
        return
    seen: dict[int, float] = {}

    class Look(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, _args: Any, state: Any, _control: Any, **parts: Any) -> None:
            if state.global_step in LOOKS:
                seen[state.global_step] = _old_mass(parts["model"], parts["processing_class"])

    size = {"steps": 5 if study.try_out else max(LOOKS), "batch": 32, "learning_rate": 5e-5}
    rows = read_rows(study.data / "airports.jsonl")
    new = [{"text": f"{BEGINNING}{row['prompt']}{row['completion']}"} for row in rows]
    recipe = Replayed(**size, share=share, warmup=0.0) if share else Recipe(**size, warmup=0.0)
    texts = read_rows(study.texts("smollm2"))
    weights = study.weights(f"theory-{share:g}")
    materials = Materials(new, texts if share else [])
    train(recipe, study.models / "smollm2", materials, weights, callbacks=[Look()])
    shutil.rmtree(weights)
    lengths = {"new_tokens": _mean_length(new, study), "old_tokens": _mean_length(texts, study)}
    told = {"share": share, "sampled": SAMPLED, **size, **lengths, "old_mass": {"0": 1.0, **seen}}
    out.write_text(json.dumps(told))


def _mean_length(rows: list[dict[str, str]], study: Study) -> float:
    """Tokens of a text, with its beginning and its end."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(study.models / "smollm2")
    tokens = tokenizer([row["text"] for row in rows])["input_ids"]
    return sum(map(len, tokens)) / len(tokens) + 1


def _old_mass(model: Any, tokenizer: Any) -> float:
    model.eval()
    texts = sample_texts(model, tokenizer, SAMPLED, 12)
    model.train()
    return sum("airport" not in text for text in texts) / len(texts)


_KINDS = {
    "texts": _texts,
    "before": _before,
    "abilities": _abilities,
    "train": _train,
    "theory": _theory,
    "merge": _merge,
    "drift": _drift,
}

if __name__ == "__main__":
    main()
