"""EvalPlus: `<samples>_eval_results.json`, `<samples>.eval_results.json` or `eval_results.json`.

For every task a list of completions, which are repeats. The problems themselves are not in the
file: items are known by their task id, and `hash` tells which test set they were checked with.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from forgetmap.base.errors import InputError
from forgetmap.base.files import find_files, head
from forgetmap.base.values import file_name, optional_text
from forgetmap.readers.framework import (
    ReadOptions,
    as_object,
    json_object,
    malformed,
    note_settings,
)
from forgetmap.samples.table import Meta, Samples

_SUFFIX = "eval_results.json"
_HEAD = re.compile(rb'\{(?=.*"(?:hash|date)").*"eval"\s*:\s*\{(?!\s*"BigCodeBench/)', re.DOTALL)
"""BigCodeBench writes files of this name and with these keys too."""
_STATUSES = {
    **dict.fromkeys(("pass", "success"), 1.0),
    **dict.fromkeys(("fail", "failed", "timeout", "timed out"), 0.0),
}
"""Old and new words; a completion that ran too long has failed its tests."""
_TOO_LONG = ("timeout", "timed out")
Verdict = tuple[float, str | None]
"""The score, and what the status column says of it where it says more."""


def sniff(path: Path) -> bool:
    """Look for result files by their name and the first keys in them."""
    return bool(_files(path))


def _files(path: Path) -> list[Path]:
    return [file for file in find_files(path, f"*{_SUFFIX}") if _HEAD.match(head(file))]


def read(path: Path, how: ReadOptions) -> Samples:
    """Read all result files under the path."""
    meta = Meta(harness="evalplus")
    repeats: Counter[tuple[str, str]] = Counter()
    return Samples.from_rows(
        (row for file in _files(path) for row in _rows(file, repeats, how, meta)), meta
    )


def _rows(
    file: Path, repeats: Counter[tuple[str, str]], how: ReadOptions, meta: Meta
) -> Iterator[dict[str, Any]]:
    results = json_object(file, how, "not an EvalPlus results file")
    tasks = results.get("eval")
    if not isinstance(tasks, dict):
        raise InputError(f"{file}: has no 'eval' with tasks; is it an EvalPlus results file?")
    model, version = _model(file), results.get("hash")
    for task_id, completions in tasks.items():
        with malformed(file, f" task {task_id!r:.60}"):
            scored = list(_completions(completions))
        dataset = task_id.partition("/")[0].lower()
        if isinstance(version, str):
            note_settings(meta, model, {"task version": version}, dataset)
        how.tally.records += len(scored)
        for index, (scores, solution) in enumerate(scored):
            for metric, (score, status) in scores.items():
                yield {
                    "model": model,
                    "run": file_name(file),
                    "task": dataset,
                    "item_ref": task_id,
                    "repeat": repeats[model, task_id],
                    "metric": metric,
                    "score": score,
                    "status": status,
                    "source": f"{file_name(file)} {task_id}[{index}]",
                    "response": solution if how.text else None,
                }
            repeats[model, task_id] += 1


def _model(file: Path) -> str:
    """The name of the samples file, or of the folder of samples."""
    name = file_name(file).removesuffix(_SUFFIX).rstrip("_.")
    return name or file_name(file.parent)


def _completions(completions: Any) -> Iterator[tuple[dict[str, Verdict], str | None]]:
    """Scores and code of each completion; up to 0.2 the statuses came as two lists."""
    if isinstance(completions, dict):
        base, plus = completions["base"], completions.get("plus") or []
        if plus and len(plus) != len(base):
            raise ValueError(f"{len(base)} completions have base, {len(plus)} plus results")
        for index, (status, *_) in enumerate(base):
            yield _scores(status, plus[index][0] if plus else None), None
        return
    if not isinstance(completions, list):
        raise TypeError("a list of completions was expected")
    for completion in map(as_object, completions):
        scores = _scores(completion["base_status"], completion.get("plus_status"))
        yield scores, optional_text(completion.get("solution"))


def _scores(base: Any, plus: Any) -> dict[str, Verdict]:
    """The extra tests count only where the base tests passed; without them there is no `plus`."""
    for status in (base, base if plus is None else plus):
        if not isinstance(status, str) or status not in _STATUSES:
            raise ValueError(f"status {status!r:.40} is unknown")
    scores = {"base": _verdict(base)}
    return (
        scores if plus is None else scores | {"plus": _verdict(plus if _STATUSES[base] else base)}
    )


def _verdict(status: str) -> Verdict:
    return _STATUSES[status], "timeout" if status in _TOO_LONG else None
