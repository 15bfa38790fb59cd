"""OpenCompass: `<time>/results/<model>/<dataset>.json`, and `predictions` beside `results`.

Only the details of a results file say which answer was right; the predictions add the prompts where
the details lack them. Both may come in parts (`<dataset>_0.json`, `_1`, ...), each counting from 0.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from forgetmap.base.errors import InputError
from forgetmap.base.files import find_files, head
from forgetmap.base.values import file_name, number
from forgetmap.base.words import some
from forgetmap.readers.framework import (
    REPEATS_PER_RUN,
    ReadOptions,
    Run,
    as_object,
    json_object,
    malformed,
    number_repeats,
    rows_of_runs,
)
from forgetmap.samples.identity import content_hash
from forgetmap.samples.table import Meta, Samples

CORRECT = ("correct", "is_correct", "cascade_correct")
"""Where the evaluators say whether an answer was right, in order of preference."""

ADVICE = (
    "remove its results folder and score again: opencompass ... --reuse --mode eval "
    "--dump-eval-details"
)
COMPANIONS = ("*.py", "*.out", "summary_*", "summary/*")
"""Files of a run that hold no answers."""
_NOT_OURS = "not written by OpenCompass"
_HEADS = {
    "predictions": re.compile(rb'\{\s*"\d+"\s*:\s*\{.*"(prediction|label: )', re.DOTALL),
    "results": re.compile(rb'\{.*("details"|"accuracy"|"score")', re.DOTALL),
}


def sniff(path: Path) -> bool:
    """Look for the two folders, and at the head of a file in one of them."""
    if not path.is_dir():
        return _is_ours(path)
    return any(_is_ours(file) for name in _HEADS for file in _under(path, name)[:3])


def _under(path: Path, name: str) -> list[Path]:
    """The files `<name>/<model>/*.json` in or under the path, which may be any of the folders."""
    return [file for file in find_files(path, "*.json") if file.parent.parent.name == name]


def _is_ours(file: Path) -> bool:
    kind = file.parent.parent.name
    if kind not in _HEADS or file.suffix != ".json":
        return False
    start = head(file, 2**16)
    if not _HEADS[kind].match(start):
        return False
    beside = file.parent.parent.with_name("predictions") / file.parent.name
    return kind == "predictions" or beside.is_dir() or b'"details"' in start


def read(path: Path, how: ReadOptions) -> Samples:
    """Read all results under the path; a file stands for its dataset."""
    files = _under(path, "results") if path.is_dir() else [path]
    if not files or files[0].parent.parent.name != "results":
        raise InputError(f"{path}: predictions alone do not say what was right; {ADVICE}")
    meta = Meta(harness="opencompass")
    parts = _join_parts(files, meta.warnings)
    runs = [
        (Run(file_name(first.parent), task, None, first.parent.parent.parent.name), first)
        for first, (task, _) in parts.items()
    ]
    numbered = number_repeats(runs, meta.warnings)
    without: list[str] = []

    def rows_of(run: Run, first: Path) -> Iterator[dict[str, Any]]:
        return _rows(run, parts[first][1], how, meta.warnings)

    samples = Samples.from_rows(rows_of_runs(numbered, rows_of, without), meta)
    if len(without) == len(numbered):
        raise InputError(f"{path}: the results do not say which answers were right; {ADVICE}")
    if without:
        meta.warnings.append(
            f"no details of right and wrong, left out: {some(set(without))}; {ADVICE}"
        )
    return samples


def _join_parts(files: list[Path], warnings: list[str]) -> dict[Path, tuple[str, list[Path]]]:
    """By the first file of each dataset: its name and its parts in order."""
    there = set(files)
    parts: dict[Path, tuple[str, list[Path]]] = {}
    for file in files:
        stem, _, index = file.stem.rpartition("_")
        first, whole = file.with_name(f"{stem}_0.json"), file.with_name(f"{stem}.json")
        if not (stem and index.isdigit() and first in there and whole not in there):
            parts[file] = file_name(file).removesuffix(".json"), [file]
        elif file == first:
            joined = _parts(there, whole)
            parts[first] = stem, joined
            if len(joined) > 1:
                warnings.append(f"{stem}: {len(joined)} parts were joined")
        elif file not in _parts(there, whole):
            raise InputError(f"{file}: a part before it is missing (they are joined in order)")
    return parts


def _parts(there: set[Path], whole: Path) -> list[Path]:
    """The parts of a file in order: 0, 1, 2, ... as numbers, up to the first that is missing."""
    parts: list[Path] = []
    while (file := whole.with_name(f"{whole.stem}_{len(parts)}.json")) in there:
        parts.append(file)
    return parts


def _rows(
    run: Run, files: list[Path], how: ReadOptions, warnings: list[str]
) -> Iterator[dict[str, Any]]:
    details: list[tuple[Path, str, dict[str, Any]]] = []
    for file in files:
        results = json_object(file, how, _NOT_OURS)
        for key, detail in _details(results.get("details"), file):
            ref = detail.get("example_abbr")
            shifted = str(len(details)) if isinstance(key, int) else key
            details.append((file, str(ref if isinstance(ref, str) else shifted), detail))
    asked = _predictions(files, how)
    scored = [_scores(file, ref, detail) for file, ref, detail in details]
    if not any(score is not None for scores in scored for score in scores):
        how.tally.leave_out(len(details))
        return
    how.tally.records += len(details)
    most = max(len(scores) for scores in scored)
    if asked and len(asked) != len(details) * most:
        warnings.append(
            f"{run.task}: {len(asked)} predictions for {len(details) * most} results; "
            "they were not used"
        )
        asked = []
    for index, ((file, ref, detail), scores) in enumerate(zip(details, scored, strict=True)):
        for replica, score in enumerate(scores):
            place = replica * len(details) + index  # replicas follow each other in blocks
            with malformed(file, f" details[{ref}]"):
                item = _item(detail, asked[place] if asked else {}, replica, how.text)
            empty = item.pop("empty")
            yield {
                "model": run.model,
                "run": run.stamp,
                "task": run.task,
                "item_ref": ref,
                "repeat": replica,
                "metric": "accuracy",
                "score": score,
                "status": "no_answer" if empty and score == 0.0 else None,
                "source": f"{file_name(file)} {ref}",
                **item,
            }


def _details(details: object, file: Path) -> list[tuple[int | str, dict[str, Any]]]:
    """The answers in order: a list, or a dictionary by index (and its `type`)."""
    if details is None:
        return []
    keyed: list[tuple[int | str, Any]]
    if isinstance(details, list):
        keyed = list(enumerate(details))
    elif isinstance(details, dict):
        keyed = [
            (int(key) if key.isdecimal() else key, value)
            for key, value in details.items()
            if key != "type"
        ]
        if all(isinstance(key, int) for key, _ in keyed):
            keyed.sort(key=lambda pair: int(pair[0]))
            if [key for key, _ in keyed] != list(range(len(keyed))):
                raise InputError(f"{file}: its details do not count from 0 without a gap")
    else:
        raise InputError(f"{file}: details must be a list or a dictionary")
    for key, value in keyed:
        with malformed(file, f" details[{key}]"):
            as_object(value)
    return keyed


def _scores(file: Path, ref: str, detail: dict[str, Any]) -> list[float | None]:
    """One score per replica; since 0.4 even a single one comes in a list."""
    value = next((detail[name] for name in CORRECT if detail.get(name) is not None), None)
    replicas = value if isinstance(value, list) else [value]
    if not 0 < len(replicas) <= REPEATS_PER_RUN:
        raise InputError(f"{file} details[{ref}]: holds {len(replicas)} replicas")
    scores = []
    with malformed(file, f" details[{ref}]", "correct is not a score"):
        for replica in replicas:
            if isinstance(replica, list) and len(replica) == 1:
                replica = replica[0]
            score = number(replica)
            if score is not None and not 0 <= score <= 1:
                raise ValueError(f"{score:g} is not between 0 and 1")
            scores.append(score)
    return scores


def _predictions(files: list[Path], how: ReadOptions) -> list[dict[str, Any]]:
    """The predictions of the same dataset, all parts in order."""
    asked: list[dict[str, Any]] = []
    for file in files:
        whole = file.parent.parent.with_name("predictions") / file.parent.name / file.name
        there = set(whole.parent.glob("*.json")) if whole.parent.is_dir() else set()
        for part in [whole] if whole in there else _parts(there, whole):
            predictions = json_object(part, how, _NOT_OURS)
            for index in range(len(predictions)):
                entry = predictions.get(str(index))
                if not isinstance(entry, dict):
                    raise InputError(f"{part}: lacks the prediction {index} of {len(predictions)}")
                asked.append(entry)
    return asked


def _item(
    detail: dict[str, Any], asked: dict[str, Any], replica: int, text: bool
) -> dict[str, Any]:
    def of(name: str) -> Any:
        value = detail.get(name)
        if isinstance(value, list) and "example_abbr" in detail:
            return value[replica] if replica < len(value) else None
        return value

    labels = _labels(asked) or _labels(of("origin_prediction"))
    prompt = labels or of("prompt") or asked.get("origin_prompt") or None
    targets = (of("references"), of("answer"), asked.get("gold"))
    target = next((value for value in targets if value is not None), None)
    plain = _plain(prompt)
    said = asked.get("prediction") if labels or asked else of("origin_prediction")
    answer = of("predictions") if of("predictions") is not None else of("pred")
    item: dict[str, Any] = {
        "item": content_hash(plain, _text(target) or "") if plain else None,
        "prompt_hash": content_hash(prompt) if prompt else None,
        "k": len(labels) if len(labels) > 1 else None,
        "empty": answer == "" or said == "",
    }
    if text:
        item |= {
            "prompt": plain or None,
            "target": _text(target),
            "answer": _text(answer),
            "response": None if labels else _text(said),
        }
    return item


def _labels(prediction: object) -> list[str]:
    """What was asked about each option, where the options were compared by their perplexity."""
    return [
        f"{name.removeprefix('label: ')}: {option.get('testing input') or option.get('prompt')}"
        for name, option in sorted(prediction.items() if isinstance(prediction, dict) else ())
        if isinstance(option, dict) and "PPL" in option
    ]


def _plain(prompt: object) -> str:
    """The words of a prompt: a base model gets a text, a chat model turns with the same words.

    Example:
        >>> _plain([{"role": "HUMAN", "prompt": "2+2?"}, {"role": "BOT", "prompt": ""}])
        '2+2?'
    """
    if isinstance(prompt, list):
        return "\n".join(filter(None, map(_plain, prompt)))
    if isinstance(prompt, dict):
        prompt = prompt.get("prompt")
    if not isinstance(prompt, str | None):
        raise TypeError(f"the prompt {prompt!r:.40} is neither text nor turns")
    return (prompt or "").strip()


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return json.dumps(value, ensure_ascii=False)
