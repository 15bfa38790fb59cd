"""lmms-eval: `<model>/<time>_samples_<task>.jsonl`, and `<time>_results.json` beside it.

One line is one item under one filter. Images are not stored and `doc_hash` is the same for all
items, so an item is known by its index together with its target. Checked against lmms-eval 0.3 to
0.7.3, `evaluator.py`, `loggers/evaluation_tracker.py` and the tasks MME, POPE and MMMU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from forgetmap.base.values import file_name
from forgetmap.readers.framework import ReadOptions
from forgetmap.readers.lm_eval import read_results
from forgetmap.readers.records import Answer, Format, Log, has_keys, lines

COMPANIONS = ("*_results.json", "*.log", "submissions/*")
_FIELDS = {
    *("doc_id", "doc", "target", "arguments", "input", "input_media", "resps", "filtered_resps"),
    *("doc_hash", "prompt_hash", "target_hash", "token_counts", "submission"),
}


def _describe(file: Path, how: ReadOptions, _warnings: list[str]) -> Log:
    stamp, _, task = file_name(file).removesuffix(".jsonl").partition("_samples_")
    log = Log(file_name(file.parent), task, stamp=stamp, extra=([], Counter()))
    results = file.with_name(f"{stamp}_results.json")
    if results.is_file():
        about = read_results(results, how)
        filters = about.filters.get(task, [])
        log.model, log.extra = about.model, (filters, Counter())
        log.settings = {
            name: value.get(task) if isinstance(value, dict) else value
            for name, value in about.settings.items()
        }
        count = about.counts.get(task)
        log.count = count * max(len(filters), 1) if isinstance(count, int) else None
    return log


def _answers(record: dict[str, Any], log: Log) -> Iterator[Answer]:
    """A score is a number, or stands as `score` among what the task keeps for its totals."""
    filters, seen = log.extra
    nth = seen[record["doc_id"]]  # the same item again is the next filter, which has no name here
    seen[record["doc_id"]] += 1
    suffix = f",{filters[nth]}" if len(filters) > max(nth, 1) else f",filter {nth + 1}" * bool(nth)
    scores = {}
    for name, value in record.items():
        score = value.get("score") if isinstance(value, dict) else value
        if name in _FIELDS:
            continue
        if isinstance(score, int | float):
            scores[f"{name}{suffix}"] = score
        else:
            log.unread.add(name)
    answer = record.get("filtered_resps")
    while isinstance(answer, list) and answer:
        answer = answer[0]
    if scores:
        yield Answer(
            record["doc_id"],
            scores,
            question=[record["doc_id"], record.get("doc_hash")],
            target=record.get("target"),
            prompt=record.get("input"),
            answer=answer,
            response=record.get("resps", answer),
        )


_FORMAT = Format(
    harness="lmms-eval",
    what="an lmms-eval sample",
    pattern="*_samples_*.jsonl",
    fits=has_keys("doc_id", "input", "filtered_resps", "doc_hash"),
    records=lines,
    answers=_answers,
    describe=_describe,
)
sniff, read = _FORMAT.sniff, _FORMAT.read
