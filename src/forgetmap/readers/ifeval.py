"""IFEval: `eval_results_strict.jsonl` and `eval_results_loose.jsonl`.

One line is one prompt with a verdict for each of its instructions. The folder names the model.
Checked against google-research `instruction_following_eval/evaluation_lib.py` of 2025.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from forgetmap.base.values import file_name
from forgetmap.readers.framework import ReadOptions
from forgetmap.readers.records import Answer, Format, Log, has_keys, lines


def _describe(file: Path, _how: ReadOptions, _warnings: list[str]) -> Log:
    mode = "loose" if "loose" in file.name else "strict"
    return Log(file_name(file.parent), "ifeval", extra=mode)


def _answers(record: dict[str, Any], log: Log) -> Iterator[Answer]:
    followed, names = record["follow_instruction_list"], record["instruction_id_list"]
    if len(followed) != len(names) or not all(type(verdict) is bool for verdict in followed):
        raise ValueError("there is not one verdict for each instruction")
    if record["follow_all_instructions"] is not all(followed):
        raise ValueError("follow_all_instructions contradicts follow_instruction_list")
    yield Answer(
        None,
        {
            f"prompt_level_{log.extra}_acc": all(followed),
            f"inst_level_{log.extra}_acc": sum(followed) / len(followed) if followed else None,
        },
        question=str(record["prompt"]),
        more=(names,),
        response=record.get("response"),
    )


_FORMAT = Format(
    harness="ifeval",
    what="an IFEval result",
    pattern="eval_results_*.jsonl",
    fits=has_keys("follow_all_instructions", "follow_instruction_list", "instruction_id_list"),
    records=lines,
    answers=_answers,
    describe=_describe,
)
sniff, read = _FORMAT.sniff, _FORMAT.read
