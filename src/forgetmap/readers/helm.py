"""HELM: run folders with `per_instance_stats.json`, `scenario_state.json` and `run_spec.json`.

A run scores each instance by dozens of statistics, most of them about tokens and time; only those
that say how right the answer was are read. Questions and answers are in the scenario state. Copies
of an instance that were perturbed share its id: they are items of a task of their own.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from forgetmap.base.errors import InputError
from forgetmap.base.files import find_files
from forgetmap.base.json import read_json
from forgetmap.base.values import file_name, number
from forgetmap.base.words import some
from forgetmap.readers.framework import (
    REPEATS_PER_RUN,
    ReadOptions,
    Run,
    as_object,
    malformed,
    note_count,
    note_settings,
    number_repeats,
    rows_of_runs,
)
from forgetmap.samples.identity import content_hash
from forgetmap.samples.table import Meta, Samples

STATS, STATE, SPEC = "per_instance_stats.json", "scenario_state.json", "run_spec.json"
TOTALS = "stats.json"
COMPANIONS = ("scenario.json", "instances.json", "display_*.json", "annotations.json", "*.txt")
"""Files of a run that hold no scores."""

ACCURACY = re.compile(
    r"(\w+_)?exact_match(_indicator)?|math_equiv\w*|\w+_accuracy|f1_score|\w+_set_match"
    r"|chain_of_thought_correctness|code_eval_acc|pass"
)
"""Statistics that score an answer; never the best of k (`exact_match@5`)."""

_Key = tuple[str, str, int]
"""Instance, perturbation (as JSON, empty for none) and trial."""


def sniff(path: Path) -> bool:
    """Go by the names of the files, which no other harness uses."""
    return bool(find_files(path, STATS) or (path.is_dir() and find_files(path, STATE)))


def read(path: Path, how: ReadOptions) -> Samples:
    """Read one run, or all runs under a folder."""
    folders = [file.parent for file in find_files(path, STATS)]
    if not folders:
        raise InputError(f"{path}: no {STATS} (the run did not get as far as scoring)")
    meta = Meta(harness="helm")
    unscored = len({file.parent for file in find_files(path, STATE)} - set(folders))
    if unscored:
        meta.warnings.append(f"{unscored} runs have no {STATS} and were left out")
    runs, specs = [], {}
    for folder in folders:
        name, adapter = _spec(folder, how)
        model = str(adapter.get("model") or adapter.get("model_deployment") or "unnamed")
        task = _task(name)
        runs.append((Run(model, task, adapter.get("random"), folder.parent.name), folder))
        specs[folder] = adapter
        note_settings(meta, model, _settings(adapter), task)
    numbered = number_repeats(runs, meta.warnings)
    without: list[str] = []

    def rows_of(run: Run, folder: Path) -> Iterator[dict[str, Any]]:
        return _rows(folder, run, specs[folder], how, meta.warnings)

    samples = Samples.from_rows(rows_of_runs(numbered, rows_of, without), meta)
    if len(without) == len(numbered):
        raise InputError(f"{path}: no run has an accuracy (exact_match, math_equiv, ...)")
    if without:
        meta.warnings.append(f"no statistic of these says what was right: {some(without)}")
    return samples


def _spec(folder: Path, how: ReadOptions) -> tuple[str, dict[str, Any]]:
    """The name of the run and how the model was asked."""
    for file in (folder / SPEC, folder / STATE):
        if not file.is_file():
            continue
        how.tally.files.add(file)
        with malformed(file, what="not written by HELM"):
            spec = as_object(read_json(file))
            return str(spec.get("name") or file_name(folder)), dict(spec["adapter_spec"])
    raise InputError(f"{folder}: neither {SPEC} nor {STATE} is here; the model is not known")


def _task(name: str) -> str:
    """The name of a run without its model, so that two models can be compared.

    Example:
        >>> _task("mmlu:subject=anatomy,method=multiple_choice_joint,model=openai_gpt2")
        'mmlu:subject=anatomy,method=multiple_choice_joint'
    """
    scenario, _, rest = name.partition(":")
    kept = [
        part for part in rest.split(",") if part and not re.match(r"model(_deployment)?=", part)
    ]
    return ":".join([scenario, ",".join(kept)] if kept else [scenario])


def _settings(adapter: dict[str, Any]) -> dict[str, Any]:
    sampling = ("temperature", "max_tokens", "stop_sequences", "num_outputs")
    affixes = [name for name in sorted(adapter) if name.endswith("fix")]
    template = [adapter.get(name) for name in ("method", "instructions", *affixes)]
    return {
        "few-shot examples": adapter.get("max_train_instances"),
        "generation": {name: adapter[name] for name in sampling if name in adapter},
        "limit": adapter.get("max_eval_instances"),
        "prompt template": f"{content_hash(template):016x}",
    }


def _rows(
    folder: Path, run: Run, adapter: dict[str, Any], how: ReadOptions, warnings: list[str]
) -> Iterator[dict[str, Any]]:
    scores, splits = _scores(folder / STATS, how)
    states: dict[_Key, dict[str, Any]] = {}
    if (folder / STATE).is_file():
        states = _states(folder / STATE, str(adapter.get("method", "")), how)
        splits |= {key: state.pop("split") for key, state in states.items()}
        if lost := scores.keys() - states.keys():
            raise InputError(f"{folder / STATE}: lacks {some(key[0] for key in lost)} of {STATS}")
    else:
        warnings.append(f"{run.task}: no {STATE}, so items pair by the ids of their instances")
    metrics = sorted({metric for by_metric in scores.values() for metric in by_metric})
    sizes = Counter(splits.values())
    main = "test" if "test" in sizes or not sizes else min(sizes)
    if aside := sum(sizes.values()) - sizes[main]:
        others = some(set(sizes) - {main})
        warnings.append(f"{run.task}: {aside} answers of the split {others} were left out")
    how.tally.leave_out(aside if metrics else sizes.total())
    how.tally.records += sizes[main] if metrics else 0
    instances = {key[0] for key, split in splits.items() if split == main and not key[1]}
    note_count(run.task, _counted(folder / TOTALS, main, how), len(instances), warnings)
    for key in [key for key, split in splits.items() if split == main]:
        instance, perturbation, trial = key
        task = f"{run.task}/{json.loads(perturbation)['name']}" if perturbation else run.task
        for metric in metrics:
            row = {
                "model": run.model,
                "run": file_name(folder),
                "task": task,
                "item_ref": instance,
                "repeat": trial,
                "metric": metric,
                "score": scores.get(key, {}).get(metric),
                "source": f"{STATS} {instance}",
                **states.get(key, {}),
            }
            if row.get("status") == "error":
                row["score"] = None
            elif row["score"] is None:
                row["status"] = "unscored"
            elif row["score"] and row.get("status") == "no_answer":
                row["status"] = "ok"
            if row["score"] not in (0.0, 1.0):  # a degree, not a pick among k options
                row["k"] = None
            yield row


def _counted(file: Path, split: str, how: ReadOptions) -> Any:
    """How many instances of a split HELM itself counted, where its totals say so."""
    if not file.is_file():
        return None
    for index, entry in enumerate(_entries(read_json(file), file, how)):
        with malformed(file, f" [{index}]"):
            name = as_object(entry)["name"]
            ours = not name.get("perturbation") and (name.get("split") or split) == split
            if ours and name["name"] == "num_instances":
                return entry.get("mean")
    return None


def _scores(
    file: Path, how: ReadOptions
) -> tuple[dict[_Key, dict[str, float | None]], dict[_Key, str]]:
    """The accuracies and the split of each answer; several metrics may list the same answer."""
    scores: dict[_Key, dict[str, float | None]] = {}
    splits: dict[_Key, str] = {}
    for index, entry in enumerate(_entries(read_json(file), file, how)):
        with malformed(file, f" [{index}]"):
            key = _key(as_object(entry)["instance_id"], entry.get("perturbation"), entry)
            by_metric = scores.setdefault(key, {})
            for stat in entry["stats"]:
                name = stat["name"]["name"]
                splits[key] = str(stat["name"].get("split") or "test")
                if not ACCURACY.fullmatch(name):
                    continue
                value = number(stat.get("mean"))
                if value is None and stat.get("count"):
                    value = number(stat["sum"] / stat["count"])
                if by_metric.setdefault(name, value) != value:
                    raise ValueError(f"two values of {name} for {key[0]}")
    return scores, splits


def _states(file: Path, method: str, how: ReadOptions) -> dict[_Key, dict[str, Any]]:
    """What was asked and answered; an instance asked once per option has several requests."""
    states: dict[_Key, dict[str, Any]] = {}
    content = read_json(file)
    asked = content.get("request_states") if isinstance(content, dict) else None
    for index, entry in enumerate(_entries(asked, file, how)):
        with malformed(file, f" [{index}]"):
            instance = as_object(entry)["instance"]
            key = _key(instance["id"], instance.get("perturbation"), entry)
            result = entry.get("result") or {"success": False}
            if key not in states:
                states[key] = _state(entry, instance, key, method, how.text)
            if not result.get("success", True):
                states[key]["status"] = "error"
    return states


def _state(
    entry: dict[str, Any], instance: dict[str, Any], key: _Key, method: str, text: bool
) -> dict[str, Any]:
    asked = instance["input"].get("text") or instance["input"]
    options = [reference["output"]["text"] for reference in instance["references"]]
    if not all(isinstance(option, str) for option in options):
        raise TypeError("a reference is not text")
    right = [
        option
        for option, reference in zip(options, instance["references"], strict=True)
        if "correct" in (reference.get("tags") or [])
    ]
    prompt = entry["request"].get("prompt")
    said = (entry.get("result") or {}).get("completions") or []
    response = str(said[0]["text"]) if said and entry.get("reference_index") is None else None
    mapping = entry.get("output_mapping") or {}
    state: dict[str, Any] = {
        "split": str(instance.get("split") or "test"),
        "item": content_hash(asked, options, right, key[1]),
        "k": len(options) if method.startswith("multiple_choice") and len(options) > 1 else None,
        "prompt_hash": content_hash(prompt) if prompt else None,
        "status": "no_answer" if response is not None and not response.strip() else None,
    }
    if text:
        state["prompt"] = str(prompt) if prompt else None
        state["target"] = right[0] if len(right) == 1 else json.dumps(right) if right else None
        state["answer"] = None if response is None else str(mapping.get(response.strip(), response))
        state["response"] = response
    return state


def _entries(content: Any, file: Path, how: ReadOptions) -> list[Any]:
    how.tick(file.stat().st_size)
    how.tally.files.add(file)
    if not isinstance(content, list):
        raise InputError(f"{file}: not written by HELM (a list of answers was expected)")
    return content


def _key(instance: object, perturbation: object, entry: dict[str, Any]) -> _Key:
    trial = entry["train_trial_index"]
    numbered = isinstance(trial, int) and 0 <= trial < REPEATS_PER_RUN
    if not isinstance(instance, str) or not numbered:
        raise ValueError("needs the text instance_id and the number train_trial_index")
    if perturbation is None:
        return instance, "", trial
    if not isinstance(perturbation, dict) or not isinstance(perturbation["name"], str):
        raise ValueError("perturbation needs a name")
    return instance, json.dumps(perturbation, sort_keys=True), trial
