"""NeMo Evaluator from 0.4 on: `eval-<time>-<benchmark>.json` and `results.jsonl` in one folder.

One line is one problem in one repeat. The problem itself is not stored, so items are known by their
index. A problem that could not be run has the reward 0 in the file; here it has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from forgetmap.base.files import find_files, head
from forgetmap.base.values import file_name, number, optional_text
from forgetmap.base.words import some
from forgetmap.readers.framework import (
    ReadOptions,
    json_lines,
    json_object,
    malformed,
    note_count,
    note_settings,
)
from forgetmap.samples.table import Meta, Samples

_HEAD = re.compile(rb'\{\s*"run_id"\s*:\s*"eval-')
_GENERATION = ("temperature", "max_tokens", "top_p", "seed")
_MOST_REPEATS = 2**31
_TEXTS = {"target": "expected_answer", "answer": "extracted_answer", "response": "model_response"}
_NOT_A_BUNDLE = "not a NeMo Evaluator bundle"


def sniff(path: Path) -> bool:
    """Look for bundles by their name and first key, with results beside them."""
    return bool(_bundles(path))


def _bundles(path: Path) -> list[Path]:
    """The newest bundle of each folder; the results beside it are those of the last run."""
    files = find_files(path, "eval-*.json")
    if path.name == "results.jsonl":
        files = sorted(path.parent.glob("eval-*.json"))
    newest = {file.parent: file for file in files if _is_bundle(file)}
    return list(newest.values())


def _is_bundle(file: Path) -> bool:
    return file.with_name("results.jsonl").is_file() and bool(_HEAD.match(head(file)))


def read(path: Path, how: ReadOptions) -> Samples:
    """Read all runs under the path."""
    meta = Meta(harness="nemo")
    return Samples.from_rows(
        (row for bundle in _bundles(path) for row in _rows(bundle, how, meta)), meta
    )


def _describe(about: dict[str, Any], bundle: Path, meta: Meta) -> dict[str, str]:
    """The values that all rows of a run share."""
    config, task = about.get("config") or {}, str(about["benchmark"]["name"])
    model = str(config.get("model") or file_name(bundle.parent))
    meta.version = str(about["sdk_version"]) if about.get("sdk_version") else meta.version
    settings = {
        "generation": {name: config[name] for name in _GENERATION if config.get(name) is not None},
        "system prompt": config.get("system_prompt"),
        "limit": config.get("max_problems"),
        "order of problems": config.get("shuffle_seed"),
        "harness version": about.get("sdk_version"),
    }
    note_settings(meta, model, settings, task)
    return {"model": model, "task": task, "run": str(about["run_id"]), "metric": "reward"}


def _rows(bundle: Path, how: ReadOptions, meta: Meta) -> Iterator[dict[str, Any]]:
    about = json_object(bundle, how, _NOT_A_BUNDLE)
    with malformed(bundle, what=_NOT_A_BUNDLE):
        common = _describe(about, bundle, meta)
    file = bundle.with_name("results.jsonl")
    seen: set[tuple[int, int]] = set()
    left_out: set[str] = set()
    for line, record in json_lines(file, how, meta.warnings):
        with malformed(file, line, "not a NeMo Evaluator result"):
            index, repeat = (_whole(record, name) for name in ("problem_idx", "repeat"))
            if (index, repeat) in seen:
                raise ValueError(f"problem {index} stands twice in repeat {repeat}")
            seen.add((index, repeat))
            failed = bool((record.get("scoring_details") or {}).get("error_category"))
            left_out |= (record.get("scorer_rewards") or {}).keys()
            reward = number(record["reward"])
            texts = {name: optional_text(record.get(key)) for name, key in _TEXTS.items()}
        yield {
            **common,
            "item_ref": str(index),
            "repeat": repeat,
            "score": None if failed else reward,
            "status": "error" if failed else None,
            "source": f"{file_name(file)}:{line}",
            **(texts if how.text else {}),
        }
    task = common["task"]
    how.tally.records += len(seen)
    note_count(task, about.get("n_results"), len(seen), meta.warnings)
    if left_out:
        meta.warnings.append(f"{task}: only the reward was read, not {some(left_out)}")


def _whole(record: dict[str, Any], name: str) -> int:
    value = record[name]
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _MOST_REPEATS:
        raise ValueError(f"{name} is {value!r:.40}, not a whole number")
    return value
