"""HELM: run folders with `per_instance_stats.json`, `scenario_state.json` and `run_spec.json`.

A run scores each instance by dozens of statistics, most of them about tokens and time; only those
that say how right the answer was are read. Questions and answers are in the scenario state. Copies
of an instance that were perturbed share its id: they are items of a task of their own.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from forgetmap.base.errors import InputError
from forgetmap.base.files import find_files
from forgetmap.base.json import read_json
from forgetmap.base.values import file_name, number
from forgetmap.base.words import brief, some
from forgetmap.readers.framework import Run, number_repeats
from forgetmap.samples.identity import content_hash
from forgetmap.samples.table import Meta, Samples, batches

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from forgetmap.readers.framework import ReadOptions

STATS, STATE, SPEC = "per_instance_stats.json", "scenario_state.json", "run_spec.json"

ACCURACY = re.compile(
    r"(\w+_)?exact_match(_indicator)?|math_equiv\w*|\w+_accuracy|f1_score|\w+_set_match"
    r"|chain_of_thought_correctness|code_eval_acc|pass"
)
"""Statistics that score an answer; never the best of k (`exact_match@5`)."""

_MOST_REPEATS = 1000
"""Trials within one run are numbered below it, runs in multiples of it."""

_Key = tuple[str, str, int]
"""Instance, perturbation (as JSON, empty for none) and trial."""


def sniff(path: Path) -> bool:
    """Go by the names of the files, which no other harness uses."""
    if path.is_dir():
        return bool(find_files(path, STATS) or find_files(path, STATE))
    return path.name == STATS


def read(path: Path, how: ReadOptions) -> Samples:
    """Read one run, or all runs under a folder."""
    folders = [file.parent for file in find_files(path, STATS)] if path.is_dir() else [path.parent]
    if not folders:
        raise InputError(f"{path}: no {STATS} (the run did not get as far as scoring)")
    meta = Meta(harness="helm")
    unscored = len({file.parent for file in find_files(path, STATE)} - set(folders))
    if unscored:
        meta.warnings.append(f"{unscored} runs have no {STATS} and were left out")
    runs, specs = [], {}
    for folder in folders:
        name, adapter = _spec(folder)
        model = str(adapter.get("model") or adapter.get("model_deployment") or "unnamed")
        task = _task(name)
        runs.append((Run(model, task, adapter.get("random"), folder.parent.name), folder))
        specs[folder] = adapter
        _settings(meta.settings.setdefault(model, {}), task, adapter)
    numbered = number_repeats(runs, meta.warnings)
    without: list[str] = []

    def rows() -> Iterator[dict[str, Any]]:
        for run, folder, repeat in numbered:
            count = 0
            for row in _rows(folder, run, specs[folder], how, meta.warnings):
                count += 1
                row["repeat"] += repeat * _MOST_REPEATS
                yield row
            if not count:
                without.append(run.task)
        if without:
            meta.warnings.append(f"no statistic of these says what was right: {some(without)}")

    samples = Samples.collect(batches(rows()), meta)
    if len(without) == len(numbered):
        raise InputError(f"{path}: no run has an accuracy (exact_match, math_equiv, ...)")
    return samples


def _spec(folder: Path) -> tuple[str, dict[str, Any]]:
    """The name of the run and how the model was asked."""
    for file in (folder / SPEC, folder / STATE):
        if not file.is_file():
            continue
        try:
            found = read_json(file)
            name, adapter = found.get("name") or file_name(folder), found["adapter_spec"]
            return str(name), dict(adapter)
        except (AttributeError, TypeError, ValueError, LookupError) as error:
            raise InputError(f"{file}: not written by HELM ({brief(error)})") from error
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


def _settings(into: dict[str, Any], task: str, adapter: dict[str, Any]) -> None:
    asked = ("temperature", "max_tokens", "stop_sequences", "num_outputs")
    told = ("method", "instructions", *(name for name in sorted(adapter) if name.endswith("fix")))
    settings = {
        "few-shot examples": adapter.get("max_train_instances"),
        "generation": {name: adapter[name] for name in asked if name in adapter} or None,
        "limit": adapter.get("max_eval_instances"),
        "prompt template": f"{content_hash([adapter.get(name) for name in told]):016x}",
    }
    for name, value in settings.items():
        if value is not None:
            into.setdefault(name, {})[task] = value


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
    metrics = sorted({metric for found in scores.values() for metric in found})
    known = Counter(splits.values())
    main = "test" if "test" in known or not known else min(known)
    if aside := sum(known.values()) - known[main]:
        others = some(set(known) - {main})
        warnings.append(f"{run.task}: {aside} answers of the split {others} were left out")
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


def _scores(
    file: Path, how: ReadOptions
) -> tuple[dict[_Key, dict[str, float | None]], dict[_Key, str]]:
    """The accuracies and the split of each answer; several metrics may list the same answer."""
    scores: dict[_Key, dict[str, float | None]] = {}
    splits: dict[_Key, str] = {}
    for where, entry in _entries(file, None, how):
        try:
            key = _key(entry["instance_id"], entry.get("perturbation"), entry)
            found = scores.setdefault(key, {})
            for stat in entry["stats"]:
                name = stat["name"]["name"]
                splits[key] = str(stat["name"].get("split") or "test")
                if not ACCURACY.fullmatch(name):
                    continue
                value = number(stat.get("mean"))
                if value is None and stat.get("count"):
                    value = number(stat["sum"] / stat["count"])
                if found.setdefault(name, value) != value:
                    raise ValueError(f"two values of {name} for {key[0]}")
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise InputError(f"{file} {where}: {_reason(error)}") from error
    return scores, splits


def _states(file: Path, method: str, how: ReadOptions) -> dict[_Key, dict[str, Any]]:
    """What was asked and answered; an instance asked once per option has several requests."""
    states: dict[_Key, dict[str, Any]] = {}
    for where, entry in _entries(file, "request_states", how):
        try:
            instance = entry["instance"]
            key = _key(instance["id"], instance.get("perturbation"), entry)
            result = entry.get("result") or {"success": False}
            if key not in states:
                states[key] = _state(entry, instance, key, method, how.text)
            if not result.get("success", True):
                states[key]["status"] = "error"
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise InputError(f"{file} {where}: {_reason(error)}") from error
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


def _entries(
    file: Path, under: str | None, how: ReadOptions
) -> Iterator[tuple[str, dict[str, Any]]]:
    found = read_json(file)
    how.tick(file.stat().st_size)
    if under is not None:
        found = found.get(under) if isinstance(found, dict) else None
    if not isinstance(found, list):
        raise InputError(f"{file}: not written by HELM (a list of answers was expected)")
    for index, entry in enumerate(found):
        if not isinstance(entry, dict):
            raise InputError(f"{file} [{index}]: a JSON object was expected")
        yield f"[{index}]", entry


def _key(instance: object, perturbation: object, entry: dict[str, Any]) -> _Key:
    trial = entry["train_trial_index"]
    if not isinstance(instance, str) or not isinstance(trial, int) or not 0 <= trial < 1000:
        raise ValueError("needs the text instance_id and the number train_trial_index")
    if perturbation is None:
        return instance, "", trial
    if not isinstance(perturbation, dict) or not isinstance(perturbation["name"], str):
        raise ValueError("perturbation needs a name")
    return instance, json.dumps(perturbation, sort_keys=True), trial


def _reason(error: Exception) -> str:
    return f"no {error}" if isinstance(error, KeyError) else brief(error)
