"""EvalScope: `reviews/<model>/<dataset>_<subset>.jsonl`, and `reports/<model>/<dataset>.json`.

One line is one sample with its scores; up to 0.17 with one review for each choice. Samples of one
`group_id` are repeats. Checked against evalscope 1.14.1 and 1.0, `api/evaluator/cache.py`,
`api/metric/scorer.py` and `report/report.py`, and 0.17.1, `evaluator/evaluator.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from forgetmap.base.json import first_record
from forgetmap.base.values import file_name
from forgetmap.readers.framework import ReadOptions, as_object, asked, json_object
from forgetmap.readers.records import Answer, Format, Log, lines

COMPANIONS = ("predictions/*/*", "reports/*", "configs/*", "logs/*", "*.html", "*.log", "*.yaml")


def _fits(file: Path) -> bool:
    if "reviews" not in (file.parent.name, file.parent.parent.name):
        return False
    record = first_record(file)
    return "sample_score" in record or {"choices", "reviewed"} <= record.keys()


def _describe(file: Path, how: ReadOptions, _warnings: list[str]) -> Log:
    reviews = file.parent if file.parent.name == "reviews" else file.parent.parent
    model = "" if file.parent == reviews else file_name(file.parent)
    name = file_name(file).removesuffix(".jsonl")
    log = Log(model or file_name(reviews.parent), name, stamp=file_name(reviews.parent))
    folder = reviews.parent / "reports" / model
    for report in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        dataset = file_name(report).removesuffix(".json")
        if name.startswith(f"{dataset}_"):
            about = json_object(report, how, "not a report of EvalScope")
            log.count = _count(about, name.removeprefix(f"{dataset}_"))
    return log


def _count(report: dict[str, Any], subset: str) -> Any:
    """How many samples of a subset the first metric of a report is over."""
    for metric in report.get("metrics") or ():
        for category in metric.get("categories") or ():
            for part in category.get("subsets") or ():
                if part.get("name") == subset:
                    return part.get("num")
    return None


def _answers(record: dict[str, Any], _log: Log) -> Iterator[Answer]:
    if "sample_score" not in record:
        yield from _old_answers(record)
        return
    sample = as_object(record["sample_score"])
    score = as_object(sample["score"])
    messages = record.get("input") or record.get("messages") or []
    shown = [turn for turn in messages if not _is_answer(turn)]
    reference, target = sample.get("group_id"), record.get("target")
    if isinstance(target, list) and len(target) == 1:  # since 1.1 a list
        target = target[0]
    scores = as_object(score["value"])
    if scores:  # a sample that could not be scored has none
        yield Answer(
            record["index"] if reference is None else reference,
            scores,
            question=messages if isinstance(messages, str) else asked(shown) or None,
            target=target,
            answer=score.get("extracted_prediction"),
            response=score.get("prediction"),
        )


def _is_answer(turn: Any) -> bool:
    return isinstance(turn, dict) and turn.get("role") in ("assistant", "tool")


def _old_answers(record: dict[str, Any]) -> Iterator[Answer]:
    if not record["reviewed"]:
        return
    for choice in record["choices"]:
        review = choice["review"]
        result = review["result"]
        yield Answer(
            record["index"],
            result if isinstance(result, dict) else {"acc": result},
            question=record.get("raw_input"),
            target=review.get("gold"),
            answer=review.get("pred"),
            response=(choice.get("message") or {}).get("content"),
        )


_FORMAT = Format(
    harness="evalscope",
    what="an EvalScope review",
    pattern="*.jsonl",
    fits=_fits,
    records=lines,
    answers=_answers,
    describe=_describe,
)
sniff, read = _FORMAT.sniff, _FORMAT.read
