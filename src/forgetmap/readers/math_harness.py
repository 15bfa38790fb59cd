"""math-evaluation-harness: `<dataset>/<split>_<prompt>_<n>_seed<s>_t<t>_s<start>_e<end>.jsonl`.

One line is one problem with a list of answers and scores, which are repeats. Checked against
ZubinGou/math-evaluation-harness `math_eval.py` and `evaluate.py` of 2024; the evaluation of
Qwen2.5-Math writes the same.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from forgetmap.base.values import file_name
from forgetmap.readers.framework import ReadOptions, json_object
from forgetmap.readers.records import Answer, Format, Log, has_keys, lines

_NAME = re.compile(r"[^_]+_(.+)_(-?\d+)_seed-?\d+_t([\d.]+)_s-?\d+_e-?\d+\.jsonl")


def _describe(file: Path, how: ReadOptions, _warnings: list[str]) -> Log:
    name = _NAME.fullmatch(file_name(file))
    settings: dict[str, Any] = {}
    if name:
        limit = None if name[2] == "-1" else int(name[2])
        settings = {"template": name[1], "limit": limit, "generation": {"temperature": name[3]}}
    totals = sorted(file.parent.glob(f"{glob.escape(file.stem)}*_metrics.json"))
    told = json_object(totals[0], how, "not the metrics of a run") if totals else {}
    log = Log(file_name(file.parent.parent), file_name(file.parent), settings)
    log.count = told.get("num_scores")
    if log.count is not None and log.count == told.get("num_samples"):  # else of the first answers
        log.means = {"acc": told["acc"] / 100}
    return log


def _answers(record: dict[str, Any], _log: Log) -> Iterator[Answer]:
    scores, answers = record["score"], record["pred"]
    if not isinstance(scores, list) or len(scores) != len(answers):
        raise ValueError("there is not one score for each answer")
    codes = record.get("code")
    texts = codes if isinstance(codes, list) and len(codes) == len(scores) else [None] * len(scores)
    for score, answer, text in zip(scores, answers, texts, strict=True):
        yield Answer(
            record["idx"],
            {"acc": score},
            question=record["question"],
            target=record["gt"],
            status="no_answer" if answer == "" else None,
            answer=answer,
            response=text,
        )


_FORMAT = Format(
    harness="math-evaluation-harness",
    what="a result of math-evaluation-harness",
    pattern="*.jsonl",
    fits=has_keys("idx", "question", "gt", "pred", "score"),
    records=lines,
    answers=_answers,
    describe=_describe,
)
sniff, read = _FORMAT.sniff, _FORMAT.read
