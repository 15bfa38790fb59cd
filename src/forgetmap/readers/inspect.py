"""Inspect: `.eval` (a zip of JSON, one member per sample and epoch) and `.json` logs.

What headers and samples mean; how they are got out of a file is in `inspect_archive`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from forgetmap.base.errors import InputError
from forgetmap.base.files import find_files, head
from forgetmap.base.values import file_name, number, optional_text
from forgetmap.readers.framework import (
    ReadOptions,
    Run,
    note_count,
    note_settings,
    number_repeats,
    settings_text,
)
from forgetmap.readers.inspect_archive import naming, read_header, read_samples
from forgetmap.samples.identity import content_hash, wording_hash
from forgetmap.samples.table import Meta, Samples

LOG_VERSION = 2
_MOST_EPOCHS = 10_000
"""Epochs within one log are numbered below it, logs of other seeds in multiples of it."""

_GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
_REASONS = {
    "invalid_response_format": "no_answer",
    "no_response": "no_answer",
    "refusal": "refused",
}
_TIME_LIMITS = ("time", "working")
"""Inspect's limits on time; the others limit tokens, messages and cost."""
_STOPS = {"max_tokens": "truncated", "model_length": "truncated", "content_filter": "refused"}
_SENDING = {  # how requests are sent, not what is asked
    *("seed", "system_message", "max_connections", "adaptive_connections", "max_retries"),
    *("timeout", "attempt_timeout", "stream_idle_timeout", "cache", "cache_prompt", "batch"),
}
_SHOTS = ("num_fewshot", "fewshot", "few_shot", "n_shot", "num_shots", "shots")


def sniff(path: Path) -> bool:
    """Go by the suffix `.eval`; a `.json` must begin like a log of Inspect."""
    return bool(_files(path))


def _files(path: Path) -> list[Path]:
    logs = [file for file in find_files(path, "*.json") if _is_json_log(file)]
    return sorted([*find_files(path, "*.eval"), *logs])


def _is_json_log(file: Path) -> bool:
    start = head(file)
    keys = (b'"version"', b'"status"', b'"eval"')
    return start.startswith(b"{") and all(re.search(key + rb"\s*:", start) for key in keys)


class _Log(NamedTuple):
    """What the header of one log says."""

    run: Run
    version: str | None
    settings: dict[str, Any]
    scorers: list[str]
    samples: Any
    """How many the log counts."""
    warnings: list[str]


def read(path: Path, how: ReadOptions) -> Samples:
    """Read all logs under the path."""
    meta = Meta(harness="inspect")
    logs: dict[Path, _Log] = {file: _describe(file) for file in _files(path)}
    numbered = number_repeats([(log.run, file) for file, log in logs.items()], meta.warnings)
    for run, file, _ in numbered:
        log = logs[file]
        meta.version = meta.version or log.version
        meta.warnings.extend(log.warnings)
        note_settings(meta, run.model, log.settings, run.task)
        note_settings(meta, run.model, {"harness version": log.version})
    meta.warnings.extend(_mixed_runs([run for run, _, _ in numbered]))
    rows = (
        row
        for _, file, repeat in numbered
        for row in _rows(file, logs[file], repeat, how, meta.warnings)
    )
    return Samples.from_rows(rows, meta)


def _mixed_runs(runs: list[Run]) -> Iterator[str]:
    """Warn where runs that count as repeats differ in more than their seed."""
    arguments: dict[tuple[str, str], set[str]] = {}
    for run in runs:
        assert isinstance(run.seed, tuple)
        arguments.setdefault((run.model, run.task), set()).add(run.seed[1])
    for (_, task), variants in sorted(arguments.items()):
        if len(variants) > 1:
            yield (
                f"{task}: {len(variants)} logs differ in their task or model arguments, not only "
                "in the seed, and count as repeats; name a single log to compare just that"
            )


def _describe(file: Path) -> _Log:
    header, warnings = read_header(file)
    with naming(file, "header"):
        version = header.get("version")
        if version != LOG_VERSION:
            raise InputError(
                f"{file}: is an Inspect log of version {version!r:.20}; forgetmap knows "
                f"version {LOG_VERSION}"
            )
        spec, plan = header["eval"], header.get("plan") or {}
        status = header.get("status", "started")
        if status != "success":
            warnings.append(
                f"{file_name(file)}: the run's status is {status!r:.40}, not 'success'; "
                "the samples it has were read"
            )
        arguments = dict(spec.get("task_args") or {})
        config = _generation(spec, plan)
        seed = arguments.pop("seed", None), config.get("seed")
        other = repr((sorted(arguments.items()), sorted((spec.get("model_args") or {}).items())))
        task = str(spec["task"]).rpartition("/")[2]
        packages = spec.get("packages") or {}
        return _Log(
            run=Run(str(spec["model"]), task, (repr(seed), other), str(spec.get("created") or "")),
            version=packages.get("inspect_ai") and str(packages["inspect_ai"]),
            settings=_settings(spec, plan, config, arguments),
            scorers=[str(scorer["name"]) for scorer in spec.get("scorers") or []],
            samples=(header.get("results") or {}).get("total_samples"),
            warnings=warnings,
        )


def _generation(spec: dict[str, Any], plan: dict[str, Any]) -> dict[str, Any]:
    """The generation settings that were set; those of the run go before those of the model."""
    configs = (spec.get("model_generate_config") or {}, plan.get("config") or {})
    return {
        name: value for config in configs for name, value in config.items() if value is not None
    }


def _settings(
    spec: dict[str, Any], plan: dict[str, Any], config: dict[str, Any], arguments: dict[str, Any]
) -> dict[str, Any]:
    """Take the settings that matter for a fair comparison; what is off or empty says nothing."""
    limits = spec.get("config") or {}
    sent = {name: value for name, value in config.items() if name not in _SENDING}
    sent |= {
        name: value
        for name, value in limits.items()
        if name.endswith("_limit") and value is not None
    }
    steps = plan.get("steps") or []
    system = [
        (step.get("params") or {}).get("template")
        for step in steps
        if step.get("solver") == "system_message"
    ]
    shots = [arguments.pop(name) for name in _SHOTS if name in arguments]
    return {
        "task version": spec.get("task_version"),
        "generation": settings_text(sent),
        "limit": limits.get("limit"),
        "epochs": limits.get("epochs"),
        "few-shot examples": shots[0] if shots else None,
        "system prompt": config.get("system_message") or "\n".join(map(str, filter(None, system))),
        "task arguments": settings_text(arguments),
        "solver": " > ".join(_step(step) for step in steps),
    }


def _step(step: dict[str, Any]) -> str:
    passed = step.get("params_passed") or {}
    shown = "" if step.get("solver") == "system_message" else settings_text(passed)
    return f"{step.get('solver')}({shown})" if shown else str(step.get("solver"))


def _rows(
    file: Path, log: _Log, repeat: int, how: ReadOptions, warnings: list[str]
) -> Iterator[dict[str, Any]]:
    """Yield a row per sample and metric; a sample without a score has one under every metric."""
    notes: Counter[str] = Counter()
    seen: dict[str, None] = {}
    waiting: list[tuple[str, dict[str, Any]]] = []  # until it is known which metrics there are
    samples = 0
    for member, sample in read_samples(file, how):
        samples += 1
        with naming(file, member):
            item = _item(sample, how)
            item["repeat"] = repeat * _MOST_EPOCHS + _epoch(sample) - 1
            item["source"] = f"{file_name(file)}:{member}"
            item |= {"model": log.run.model, "run": log.run.stamp, "task": log.run.task}
            scores = list(_scores(sample, notes, how.text))
            how.tally.left_out += not scores
        for scorer, metric, score in scores:
            if metric is None and scorer in seen:
                metric = scorer
            if metric is None:
                waiting.append((scorer, item | score))
                continue
            seen[metric] = None
            degree = score.get("score") not in (0.0, 1.0, None)  # not a pick among k options
            yield item | score | {"metric": metric, "k": None if degree else item["k"]}
    for scorer, row in waiting:
        known = [name for name in seen if not scorer or f"{name}/".startswith(f"{scorer}/")]
        for metric in known or ([scorer] if scorer else log.scorers or ["score"]):
            yield row | {"metric": metric}
    how.tally.records += samples
    if samples:
        note_count(file_name(file), log.samples, samples, warnings)
    else:
        warnings.append(f"{file_name(file)}: holds no samples; --no-log-samples leaves them out")
    warnings.extend(f"{log.run.task}: {count} {text}" for text, count in sorted(notes.items()))


def _epoch(sample: dict[str, Any]) -> int:
    epoch = sample.get("epoch", 1)
    if not isinstance(epoch, int) or not 1 <= epoch <= _MOST_EPOCHS:
        raise ValueError(f"epoch {epoch!r:.20} is not between 1 and {_MOST_EPOCHS}")
    return epoch


def _item(sample: dict[str, Any], how: ReadOptions) -> dict[str, Any]:
    """Everything about the sample that does not depend on the scorer."""
    question, target = _question(sample["input"]), sample.get("target", "")
    choices = sample.get("choices") or []
    if not isinstance(choices, list):
        raise TypeError("choices must be a list")
    several = isinstance(target, list) and len(target) > 1
    item: dict[str, Any] = {
        "item": content_hash(question, choices, target) if question else None,
        "item_ref": str(sample["id"]),
        "k": len(choices) if len(choices) > 1 and not several else None,
    }
    if how.wording and question and not several:
        item["wording"] = _wording(question, choices, target)
    if how.text:
        item["prompt"] = question
        item["target"] = "\n".join(map(str, target)) if isinstance(target, list) else str(target)
        item["response"] = (sample.get("output") or {}).get("completion")
    return item


def _wording(question: str, choices: list[Any], target: Any) -> int:
    """The item's words; the right option is known by its letter."""
    answer = str(target[0] if isinstance(target, list) and target else target)
    options = [str(option) for option in choices]
    place = ord(answer) - ord("A") if len(answer) == 1 else -1
    return wording_hash(question, options, options[place] if 0 <= place < len(options) else answer)


def _question(content: Any) -> str:
    """The text of the input; of a conversation what the user says, for its ids are random."""
    if isinstance(content, str):
        return content
    asked = [message for message in content if message.get("role") == "user"]
    return "\n".join(_message_text(message.get("content")) for message in asked or content)


def _message_text(content: Any) -> str:
    """Text as it is; an image or a sound by what the log keeps of it."""
    if isinstance(content, str):
        return content
    return "\n".join(
        str(part.get("text") or part.get(str(part.get("type"))) or "") for part in content or []
    )


def _scores(
    sample: dict[str, Any], notes: Counter[str], text: bool
) -> Iterator[tuple[str, str | None, dict[str, Any]]]:
    """Yield (scorer, metric, what it says); no metric where the whole scorer is without a value."""
    if sample.get("invalidation"):
        notes["samples are marked invalid and count as unscored"] += 1
        yield "", None, {"status": "unscored"}
        return
    if sample.get("error"):
        yield "", None, {"status": "error"}
        return
    scores = sample.get("scores") or {}
    if not scores:
        yield "", None, {"status": "unscored"}
    for scorer, score in scores.items():
        answer = score.get("answer") if text else None
        for metric, value in _values(scorer, score.get("value")):
            if isinstance(value, list | dict):
                notes[f"values of {metric!r:.80} are lists, not scores, and were left out"] += 1
                continue
            points = _number(metric, value, notes)
            row = {
                "score": points,
                "status": _status(sample, score, points),
                "answer": optional_text(answer),
            }
            yield scorer, None if points is None and metric == scorer else metric, row


def _values(scorer: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from ((f"{scorer}/{key}", part) for key, part in value.items())
    else:
        yield scorer, value


def _number(metric: str, value: Any, notes: Counter[str]) -> float | None:
    """A grade, number or truth value; anything else is not a score, and is noted."""
    if isinstance(value, str) and value in _GRADES:
        return _GRADES[value]
    try:
        return number(value)
    except ValueError:
        notes[f"values of {metric!r:.80} are not numbers and count as unscored"] += 1
        return None


def _status(sample: dict[str, Any], score: dict[str, Any], value: float | None) -> str:
    if value is None:
        return "unscored"
    if limit := sample.get("limit"):
        kind = limit.get("type") if isinstance(limit, dict) else limit
        return "timeout" if kind in _TIME_LIMITS else "truncated"
    choices = (sample.get("output") or {}).get("choices") or [{}]
    if stop := _STOPS.get(str(choices[0].get("stop_reason"))):
        return stop
    if value == 0 and score.get("answer") == "":
        return "no_answer"
    return _REASONS.get(str(score.get("reason")), "ok") if value == 0 else "ok"
