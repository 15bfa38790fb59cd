"""BigCodeBench: `<samples>_eval_results.json`, and `<samples>_pass_at_k.json` beside it.

For every task a list of completions, which are repeats. The problems are not in the file, so items
are known by their task id. Checked against bigcode-project/bigcodebench `evaluate.py` and
`eval/__init__.py`, 0.1 and 0.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from forgetmap.base.values import file_name
from forgetmap.readers.framework import ReadOptions, as_object, json_object
from forgetmap.readers.records import Answer, Format, Log, Records, begins

COMPANIONS = ("*.jsonl", "*.txt")
"""The samples."""
_SUFFIX = "_eval_results.json"
_VERDICTS = {"pass": True, "fail": False, "timeout": False}


def _describe(file: Path, how: ReadOptions, _warnings: list[str]) -> Log:
    """The name of the samples file tells the model and the split."""
    name = file_name(file).removesuffix(_SUFFIX)
    split = re.search(r"bigcodebench-(?:hard-)?(?:complete|instruct)", name)
    model = name.partition("--")[0] if split else name
    if name == "eval_results.json":
        model = file_name(file.parent)
    totals = file.with_name(f"{file.name.removesuffix(_SUFFIX)}_pass_at_k.json")
    told = json_object(totals, how, "not pass@k values") if totals.is_file() else {}
    return Log(model, split[0] if split else "bigcodebench", means={"pass@1": told.get("pass@1")})


def _records(file: Path, how: ReadOptions, _warnings: list[str]) -> Records:
    found = json_object(file, how, "not a BigCodeBench results file")
    for name, completions in as_object(found["eval"]).items():
        yield f" {name:.80}", {"task_id": name, "completions": completions}


def _answers(record: dict[str, Any], _log: Log) -> Iterator[Answer]:
    for completion in map(as_object, record["completions"]):
        status = completion["status"]
        if not isinstance(status, str) or status not in _VERDICTS:
            raise ValueError(f"status {status!r:.40} is unknown")
        yield Answer(
            record["task_id"],
            {"pass@1": _VERDICTS[status]},
            answer=status,
            response=completion.get("solution"),
        )


_FORMAT = Format(
    harness="bigcodebench",
    what="a BigCodeBench result",
    pattern="*eval_results.json",
    fits=begins(rb'\{.*"eval"\s*:\s*\{\s*"BigCodeBench/'),
    records=_records,
    answers=_answers,
    describe=_describe,
)
sniff, read = _FORMAT.sniff, _FORMAT.read
