"""tau-bench: `<strategy>-<model>-<temperature>_range_..._user-<model>-..._<time>.json`.

A list of trajectories; trials of the same task are repeats. A trial that broke off with an error
has the reward 0 in the file; here it has none. The domain is not in the file, but the instruction
is. Checked against sierra-research/tau-bench `tau_bench/run.py` and `types.py` of 2024 and 2025.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from forgetmap.base.values import file_name
from forgetmap.readers.framework import ReadOptions, as_object
from forgetmap.readers.records import Answer, Format, Log, begins, entries

_NAME = re.compile(r"(tool-calling|act|react|few-shot)-(.+)-([\d.]+)_range_.*?_user-(.+)_\d+\.json")


def _describe(file: Path, _how: ReadOptions, _warnings: list[str]) -> Log:
    name = _NAME.fullmatch(file_name(file))
    if not name:
        return Log(file_name(file).removesuffix(".json"), "tau-bench")
    strategy, model, temperature, user = name.groups()
    settings = {"agent": strategy, "generation": {"temperature": temperature}, "user": user}
    return Log(model, "tau-bench", settings)


def _answers(record: dict[str, Any], _log: Log) -> Iterator[Answer]:
    info = as_object(record["info"])
    task = as_object(info.get("task") or {})
    yield Answer(
        record["task_id"],
        {"reward": record["reward"]},
        question=task.get("instruction"),
        target=task.get("actions"),
        more=(task.get("outputs"),),
        status="error" if info.get("error") else None,
        answer=info.get("error"),
        response=record.get("traj"),
    )


_FORMAT = Format(
    harness="tau-bench",
    what="a tau-bench trajectory",
    pattern="*.json",
    fits=begins(rb'\[\s*\{\s*"task_id"\s*:\s*\d+\s*,\s*"reward"\s*:'),
    records=entries,
    answers=_answers,
    describe=_describe,
)
sniff, read = _FORMAT.sniff, _FORMAT.read
