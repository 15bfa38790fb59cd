"""verifiers (`vf-eval`, `prime eval`): `results.jsonl` beside `metadata.json`, up to 0.1.

One line is one rollout; rollouts of the same `example_id` are repeats. The reward is continuous. A
rollout that broke off with an error has the reward 0 in the file; here it has none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from forgetmap.base.files import find_files
from forgetmap.base.json import first_record
from forgetmap.base.values import file_name, number
from forgetmap.base.words import some
from forgetmap.readers.framework import (
    ReadOptions,
    asked,
    json_lines,
    json_object,
    malformed,
    note_count,
    note_settings,
)
from forgetmap.samples.identity import content_hash
from forgetmap.samples.table import Meta, Samples


def sniff(path: Path) -> bool:
    """Look for `results.jsonl` with an example id and a reward in its first line."""
    return bool(_files(path))


def _files(path: Path) -> list[Path]:
    return [file for file in find_files(path, "results.jsonl") if _has_rollouts(file)]


def _has_rollouts(file: Path) -> bool:
    record = first_record(file)
    if "reward" not in record:
        return False
    return "example_id" in record or ("id" in record and file.with_name("metadata.json").is_file())


def read(path: Path, how: ReadOptions) -> Samples:
    """Read all runs under the path."""
    meta = Meta(harness="verifiers")
    seen: Counter[tuple[str, str, str]] = Counter()
    items: dict[tuple[str, str, str], int] = {}  # a rollout that failed may lack its prompt

    def rows() -> Iterator[dict[str, Any]]:
        for file in _files(path):
            model, task, expected = _describe(file, how, meta)
            left_out: set[str] = set()
            lines = 0
            for line, record in json_lines(file, how, meta.warnings):
                with malformed(file, line, "not a rollout"):
                    sample = _sample(record, how.text)
                    left_out |= (record.get("metrics") or {}).keys()
                    own = str(record.get("task") or task)  # one environment may hold several tasks
                key = model, own, sample["item_ref"]
                if sample["item"] is None:
                    sample["item"] = items.get(key)
                else:
                    items[key] = sample["item"]
                yield {
                    "model": model,
                    "run": file_name(file.parent),
                    "task": task if own == "default" else own,
                    "repeat": seen[key],
                    "metric": "reward",
                    "source": f"{file_name(file)}:{line}",
                    **sample,
                }
                seen[key] += 1
                lines += 1
            how.tally.records += lines
            note_count(task, expected, lines, meta.warnings)
            if left_out:
                meta.warnings.append(
                    f"{task}: only the reward was read, not its parts ({some(left_out)})"
                )

    return Samples.from_rows(rows(), meta)


def _describe(file: Path, how: ReadOptions, meta: Meta) -> tuple[str, str, int | None]:
    """Find model, environment and number of rollouts; without metadata the folder names both."""
    metadata = file.with_name("metadata.json")
    about = json_object(metadata, how, "not a run's metadata") if metadata.is_file() else {}
    folder = file_name(file.parent.parent)  # <environment>--<model>/<run>
    environment, _, name = folder.partition("--")
    with malformed(metadata):
        model = str(about.get("model") or name.replace("--", "/") or folder)
        task = str(about.get("env_id") or environment)
    versions = about.get("version_info")
    versions = versions if isinstance(versions, dict) else {}
    settings = {
        "task version": versions.get("env_version"),
        "harness version": versions.get("vf_version"),
        "generation": about.get("sampling_args"),
        "task arguments": about.get("env_args"),
        "limit": about.get("num_examples"),
    }
    note_settings(meta, model, settings, task)
    examples, rollouts = about.get("num_examples"), about.get("rollouts_per_example")
    if not isinstance(examples, int) or not isinstance(rollouts, int) or examples < 1:
        return model, task, None
    return model, task, examples * rollouts


def _sample(record: dict[str, Any], text: bool) -> dict[str, Any]:
    reference = record["example_id"] if "example_id" in record else record["id"]
    if not isinstance(reference, int | str) or reference == "":
        raise ValueError(f"example_id is {reference!r:.40}")
    prompt, answer = record.get("prompt"), record.get("answer")
    failed = bool(record.get("error"))
    score = number(record["reward"])
    truncated = bool(record.get("is_truncated"))
    sample: dict[str, Any] = {
        "item": content_hash(asked(prompt), answer or "") if prompt else None,
        "item_ref": str(reference),
        "score": None if failed else score,
        "status": "error" if failed else "truncated" if truncated and score is not None else None,
    }
    if text:
        texts = {"prompt": prompt, "target": answer, "response": record.get("completion")}
        sample |= {name: str(value) for name, value in texts.items() if value is not None}
    return sample
