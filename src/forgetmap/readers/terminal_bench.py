"""Terminal-Bench: `<run>/results.json` and `run_metadata.json`; or the trials of a run alone.

A list of trials; trials of the same task are repeats. A trial without a verdict has no score;
Terminal-Bench counts it as not resolved. Checked against terminal-bench 0.2.18,
`harness/models.py`, `harness/harness.py` and `agents/failure_mode.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from forgetmap.base.values import file_name
from forgetmap.readers.framework import ReadOptions, json_object
from forgetmap.readers.records import Answer, Format, Log, Records, begins

COMPANIONS = ("results.json", "tb.lock", "*.log", "*.txt", "*.cast", "commands.txt")
"""Trials where there is a list of them; logs and recordings."""
_TRUNCATED = ("context_length_exceeded", "output_length_exceeded")
_IS_RUN = begins(rb'\{\s*"id"\s*:\s*"[^"]*"\s*,\s*"results"\s*:\s*\[')
_IS_TRIAL = begins(rb'\{\s*"id"\s*:\s*"[^"]*"\s*,\s*"trial_name"\s*:')


def _choose(files: list[Path]) -> list[Path]:
    """The lists of trials, and trials that are in none of them."""
    runs = {file.parent for file in files if _IS_RUN(file)}
    return [file for file in files if file.parent in runs or not runs & set(file.parents)]


def _describe(file: Path, how: ReadOptions, _warnings: list[str]) -> Log:
    run = file.parent if _IS_RUN(file) else file.parent.parent.parent  # <run>/<task>/<trial>
    about: dict[str, Any] = {}
    if (run / "run_metadata.json").is_file():
        about = json_object(run / "run_metadata.json", how, "not the metadata of a run")
    model = about.get("model_name") or file_name(run)
    settings = {"agent": about.get("agent_name"), "task version": about.get("dataset_version")}
    log = Log(str(model), str(about.get("dataset_name") or "terminal-bench"), settings)
    if _IS_RUN(file):
        log.means = {"resolved": about.get("accuracy")}
    return log


def _records(file: Path, how: ReadOptions, _warnings: list[str]) -> Records:
    found = json_object(file, how, "not a Terminal-Bench result")
    if "results" not in found:
        yield "", found
        return
    for index, trial in enumerate(found["results"]):
        yield f"[{index}]", trial


def _answers(record: dict[str, Any], log: Log) -> Iterator[Answer]:
    resolved, failure = record["is_resolved"], record.get("failure_mode")
    if resolved is None:
        log.doubts["no verdict, so no score; Terminal-Bench counts it as not resolved"] += 1
    elif type(resolved) is not bool:
        raise ValueError(f"is_resolved is {resolved!r:.40}")
    yield Answer(
        record["task_id"],
        {"resolved": resolved},
        question=record["instruction"],
        more=(record["task_id"],),
        status="error" if resolved is None else "truncated" if failure in _TRUNCATED else None,
        answer=failure,
        response=record.get("parser_results"),
    )


_FORMAT = Format(
    harness="terminal-bench",
    what="a Terminal-Bench trial",
    pattern="results.json",
    fits=lambda file: _IS_RUN(file) or _IS_TRIAL(file),
    records=_records,
    answers=_answers,
    describe=_describe,
    choose=_choose,
)
sniff, read = _FORMAT.sniff, _FORMAT.read
