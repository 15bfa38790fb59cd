"""NeMo Evaluator from 0.4 on: `eval-<time>-<benchmark>.json` and `results.jsonl` in one folder.

One line is one problem in one repeat. The problem itself is not stored, so items are known by their
index. A problem that could not be run has the reward 0 in the file; here it has none.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from forgetmap.base.errors import InputError
from forgetmap.base.files import find_files, open_binary
from forgetmap.base.json import read_json
from forgetmap.base.values import file_name, number
from forgetmap.base.words import brief, some
from forgetmap.readers.framework import json_lines, note_settings
from forgetmap.samples.table import Meta, Samples, batches

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from forgetmap.readers.framework import ReadOptions

_HEAD = re.compile(rb'\s*\{\s*"run_id"\s*:\s*"eval-')
_GENERATION = ("temperature", "max_tokens", "top_p", "seed")
_MOST_REPEATS = 2**31
_MALFORMED = (ValueError, TypeError, LookupError, AttributeError)


def sniff(path: Path) -> bool:
    """Look for bundles by their name and first key, with results beside them."""
    return bool(_bundles(path))


def _bundles(path: Path) -> list[Path]:
    """The newest bundle of each folder; the results beside it are those of the last run."""
    if path.is_dir():
        files = find_files(path, "eval-*.json")
    elif path.name == "results.jsonl":
        files = sorted(path.parent.glob("eval-*.json"))
    else:
        files = [path] if re.fullmatch(r"eval-.*\.json", path.name) else []
    newest = {file.parent: file for file in files if _is_bundle(file)}
    return list(newest.values())


def _is_bundle(file: Path) -> bool:
    if not file.with_name("results.jsonl").is_file():
        return False
    with open_binary(file) as opened:
        return bool(_HEAD.match(opened.read(256)))


def read(path: Path, how: ReadOptions) -> Samples:
    """Read all runs under the path."""
    meta = Meta(harness="nemo")

    def rows() -> Iterator[dict[str, Any]]:
        for bundle in _bundles(path):
            try:
                about = read_json(bundle)
                common = _describe(about, bundle, meta)
            except _MALFORMED as error:
                reason = f"no {error}" if isinstance(error, KeyError) else brief(error)
                raise InputError(f"{bundle}: not a NeMo Evaluator bundle ({reason})") from error
            yield from _rows(bundle.with_name("results.jsonl"), common, about, how, meta)

    return Samples.collect(batches(rows()), meta)


def _describe(about: dict[str, Any], bundle: Path, meta: Meta) -> dict[str, str]:
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
    note_settings(meta, model, task, settings)
    return {"model": model, "task": task, "run": str(about["run_id"]), "metric": "reward"}


def _rows(
    file: Path, common: dict[str, str], about: dict[str, Any], how: ReadOptions, meta: Meta
) -> Iterator[dict[str, Any]]:
    seen: set[tuple[int, int]] = set()
    left_out: set[str] = set()
    for line, record in json_lines(file, how, meta.warnings):
        try:
            index, repeat = (_whole(record, name) for name in ("problem_idx", "repeat"))
            if (index, repeat) in seen:
                raise ValueError(f"problem {index} stands twice in repeat {repeat}")
            failed = bool((record.get("scoring_details") or {}).get("error_category"))
            left_out |= (record.get("scorer_rewards") or {}).keys()
            reward = number(record["reward"])
        except _MALFORMED as error:
            reason = f"no {error}" if isinstance(error, KeyError) else brief(error)
            raise InputError(f"{file}:{line}: not a NeMo Evaluator result ({reason})") from error
        seen.add((index, repeat))
        sample: dict[str, Any] = {
            **common,
            "item_ref": str(index),
            "repeat": repeat,
            "score": None if failed else reward,
            "status": "error" if failed else None,
            "source": f"{file_name(file)}:{line}",
        }
        if how.text:
            texts = {"target": "expected_answer", "answer": "extracted_answer"}
            for column, name in (texts | {"response": "model_response"}).items():
                sample[column] = None if record.get(name) is None else str(record[name])
        yield sample
    task, expected = common["task"], about.get("n_results")
    if isinstance(expected, int) and expected != len(seen):
        meta.warnings.append(f"{task}: the run counted {expected} results, {len(seen)} are here")
    if left_out:
        meta.warnings.append(f"{task}: only the reward was read, not {some(left_out)}")


def _whole(record: dict[str, Any], name: str) -> int:
    value = record[name]
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _MOST_REPEATS:
        raise ValueError(f"{name} is {value!r:.40}, not a whole number")
    return value
