"""promptfoo: `results.json` (nested since 2023, flat from its Node package) and `.jsonl` exports.

One record is one test under one prompt and one provider; `--repeat` repeats the test. A record that
could not be run is marked as failed too: `failureReason` tells an error from a wrong answer. The
text in `error` does not, since promptfoo puts the reason of a failed assertion there as well.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from forgetmap.base.errors import InputError
from forgetmap.base.files import head
from forgetmap.base.json import first_record
from forgetmap.base.values import file_name, number, optional_text
from forgetmap.readers.framework import (
    ReadOptions,
    as_object,
    json_lines,
    json_object,
    malformed,
    note_count,
    note_settings,
)
from forgetmap.samples.identity import content_hash
from forgetmap.samples.table import Meta, Samples

_HEAD = re.compile(
    rb'\{\s*(?:"evalId"\s*:\s*(?:"[^"]*"|null)\s*,\s*)?'
    rb'(?:"results"\s*:\s*\{\s*)?"version"\s*:\s*\d+\s*,\s*"(?:timestamp|prompts|results)"'
)
_ERROR = 2
"""failureReason: 0 none, 1 an assertion, 2 an error."""
_NEWEST = 4
_SAMPLING = ("temperature", "max_tokens", "top_p", "top_k", "seed", "stop", "reasoning_effort")
_ADDED_VARS = ("_conversation", "sessionId")
"""What promptfoo itself adds to the variables while it runs."""


def sniff(path: Path) -> bool:
    """Look at the first bytes of a JSON file, at the first line of a JSONL file."""
    return bool(_files(path))


def _files(path: Path) -> list[Path]:
    return [
        file
        for file in (sorted(path.iterdir()) if path.is_dir() else [path])
        if file.is_file() and _is_export(file)
    ]


def _is_export(file: Path) -> bool:
    if file.suffix == ".json":
        return bool(_HEAD.match(head(file)))
    wanted = {"vars", "success", "promptIdx", "testIdx"}
    return file.suffix == ".jsonl" and wanted <= first_record(file).keys()


def read(path: Path, how: ReadOptions) -> Samples:
    """Read one export, or all exports of a folder."""
    meta = Meta(harness="promptfoo")
    seen: Counter[tuple[str, str, int]] = Counter()
    refs: dict[tuple[str, str, int], str | None] = {}  # testIdx differs between repeats

    def rows() -> Iterator[dict[str, Any]]:
        for file in _files(path):
            for where, record in _records(file, how, meta):
                with malformed(file, where, "not a promptfoo result"):
                    sample, scores = _sample(as_object(record), file, how.text)
                key = sample["model"], sample["task"], sample["item"]
                sample["item_ref"] = refs.setdefault(key, sample["item_ref"])
                sample |= {"repeat": seen[key], "source": f"{file_name(file)}{where}"}
                seen[key] += 1
                how.tally.records += 1
                for metric, score in scores.items():
                    yield {**sample, "metric": metric, "score": score}

    return Samples.from_rows(rows(), meta)


def _records(file: Path, how: ReadOptions, meta: Meta) -> Iterator[tuple[str, dict[str, Any]]]:
    if file.suffix == ".jsonl":
        for line, record in json_lines(file, how, meta.warnings):
            yield f":{line}", record
        return
    export = json_object(file, how, "not a promptfoo export")
    nested = export.get("results")
    summary = nested if isinstance(nested, dict) else export
    records = summary.get("results")
    if not isinstance(records, list):
        raise InputError(f"{file}: has no list of results; is it a promptfoo export?")
    version = summary.get("version")
    if not isinstance(version, int) or version > _NEWEST:
        raise InputError(f"{file}: has promptfoo results version {version!r:.20}; this is unknown")
    config = export.get("config")
    config = config if isinstance(config, dict) else {}
    with malformed(file, what="not a promptfoo export"):
        _describe(export.get("metadata"), config.get("providers"), meta)
    stats = summary.get("stats")
    if isinstance(stats, dict):
        counts = [stats.get(name, 0) for name in ("successes", "failures", "errors")]
        told = sum(counts) if all(isinstance(count, int) for count in counts) else None
        note_count(file_name(file), told, len(records), meta.warnings)
    for index, record in enumerate(records):
        if isinstance(record, dict):
            record.setdefault("_description", config.get("description"))
        yield f" result {index}", record


def _describe(about: Any, providers: Any, meta: Meta) -> None:
    """Take the version and how answers were sampled; other settings may hold keys."""
    if isinstance(about, dict) and isinstance(about.get("promptfooVersion"), str):
        meta.version = about["promptfooVersion"]
    for provider in providers if isinstance(providers, list) else []:
        options = provider.get("config") if isinstance(provider, dict) else None
        if isinstance(options, dict):
            sampling = [f"{name}={options[name]}" for name in _SAMPLING if name in options]
            settings = {"generation": ", ".join(sampling), "harness version": meta.version}
            note_settings(meta, str(provider.get("label") or provider.get("id")), settings)


def _sample(
    record: dict[str, Any], file: Path, text: bool
) -> tuple[dict[str, Any], dict[str, float | None]]:
    variables, success = record["vars"], record["success"]
    if not isinstance(variables, dict) or not isinstance(success, bool):
        raise ValueError("vars must be an object, success true or false")
    content = {name: value for name, value in variables.items() if name not in _ADDED_VARS}
    test, grading = record.get("testCase") or {}, record.get("gradingResult")
    asserted = list(_flat(test.get("assert") or []))
    expected = [[assertion.get("type"), assertion.get("value")] for assertion in asserted]
    response = record.get("response") or {}
    sample: dict[str, Any] = {
        "model": _model(record, file),
        "run": file_name(file),
        "task": _task(record),
        "item": content_hash(content, expected),
        "item_ref": str(record["testIdx"]) if "testIdx" in record else None,
        "status": "refused" if response.get("isRefusal") else None,
    }
    if text:
        values = [value for _, value in expected if value is not None]
        sample["prompt"] = optional_text((record.get("prompt") or {}).get("raw"))
        sample["target"] = optional_text(values or None)
        sample["response"] = optional_text(response.get("output"))
    reason = record.get("failureReason")
    if reason == _ERROR or (reason is None and record.get("error") and not grading):
        named = [str(assertion["metric"]) for assertion in asserted if assertion.get("metric")]
        return sample | {"status": "error"}, dict.fromkeys(["correct", *named])
    return sample, {"correct": float(success), **_named(grading)}


def _model(record: dict[str, Any], file: Path) -> str:
    provider = record.get("provider")
    if isinstance(provider, dict):
        provider = provider.get("label") or provider.get("id")
    return str(provider or file_name(file).removesuffix(file.suffix))


def _task(record: dict[str, Any]) -> str:
    """The prompt's label, which is the whole prompt where nobody gave one; then it is cut."""
    prompt = record.get("prompt") or {}
    label = str(prompt.get("label") or prompt.get("display") or record.get("_description") or "all")
    short = " ".join(label.split())
    return short if len(short) <= 80 else f"{short[:70]}… {content_hash(label):016x}"


def _flat(assertions: list[Any]) -> Iterator[dict[str, Any]]:
    """Assertions, and those within sets of them."""
    for assertion in assertions:
        yield assertion
        yield from _flat(assertion.get("assert") or [])


def _named(grading: Any) -> dict[str, float | None]:
    """Scores of the assertions that have a name (`metric:`), several of one name as their mean."""
    by_name: dict[str, list[float]] = {}
    for part in (grading or {}).get("componentResults") or []:
        name = ((part or {}).get("assertion") or {}).get("metric")
        score = number(part.get("score")) if name else None
        if score is not None:
            by_name.setdefault(str(name), []).append(score)
    by_name.pop("correct", None)
    return {name: sum(scores) / len(scores) for name, scores in by_name.items()}
