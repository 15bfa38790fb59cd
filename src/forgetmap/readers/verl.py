"""verl: `<step>.jsonl` in the folder that `validation_data_dir` or `rollout_data_dir` names.

One line is one answer at one step of training; answers to the same prompt are repeats. Each step
is a model of its own. Checked against verl 0.9.1 and an older `trainer/ppo/ray_trainer.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from forgetmap.base.values import file_name
from forgetmap.readers.framework import ReadOptions
from forgetmap.readers.records import Answer, Format, Log, has_keys, lines


def _describe(file: Path, _how: ReadOptions, _warnings: list[str]) -> Log:
    return Log(f"step {file_name(file).removesuffix('.jsonl')}", "validation")


def _answers(record: dict[str, Any], _log: Log) -> Iterator[Answer]:
    """The reward, and `acc` where the reward is not the verdict."""
    yield Answer(
        None,
        {name: record[name] for name in ("score", "acc") if name in record},
        question=str(record["input"]),
        target=record.get("gts"),
        answer=record.get("pred"),
        response=record["output"],
    )


_FORMAT = Format(
    harness="verl",
    what="an answer that verl dumped",
    pattern="[0-9]*.jsonl",
    fits=has_keys("input", "output", "score", "step"),
    records=lines,
    answers=_answers,
    describe=_describe,
)
sniff, read = _FORMAT.sniff, _FORMAT.read
