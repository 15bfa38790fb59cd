"""BFCL: `score/<model>/.../<prefix>_<category>_score.json`, and the `result` tree beside `score`.

A score file lists failures only, below a summary: an item that is not listed has passed. The result
file says which items there are, so both are read, and their counts must agree. In the trees of 2024
the result files have a longer name than the score files, and items are known by their place
(checked against gorilla `eval_checker/eval_runner.py` and `model_handler/handler.py` of that year).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from forgetmap.base.errors import InputError
from forgetmap.base.files import find_files, head
from forgetmap.base.values import file_name, optional_text
from forgetmap.readers.framework import ReadOptions, json_lines, malformed, note_settings
from forgetmap.samples.table import Meta, Samples

_HEAD = re.compile(rb'\{[^{}]*"accuracy"[^{}]*"total_count"')
_2024 = "gorilla_openfunctions_v1_test_"
_NAME = re.compile(rf"(?:(BFCL_v\d+)_|{_2024})?(.+)_score\.json$")
COMPANIONS = ("data_*.csv",)
"""Tables of totals that BFCL writes beside the scores."""
_FAILED_CALL = "Error during inference"
"""How the answer begins if the model could not be asked."""
_STATUSES = {
    "ast_decoder": "no_answer",
    "executable_decoder": "no_answer",
    "multi_turn:empty_turn_model_response": "no_answer",
    "multi_turn:force_terminated": "truncated",
}
"""BFCL's `error_type`, or what stands before its colon, where it says that no call was read or that
the steps ran out. The other types say that a call was read and is wrong."""


def sniff(path: Path) -> bool:
    """Look for score files by name, and at the summary in their first line."""
    return bool(_files(path))


def _files(path: Path) -> list[Path]:
    return [file for file in find_files(path, "*_score.json") if _HEAD.match(head(file))]


def read(path: Path, how: ReadOptions) -> Samples:
    """Read all score files under the path, each with its result file."""
    meta = Meta(harness="bfcl")
    return Samples.from_rows((row for file in _files(path) for row in _rows(file, how, meta)), meta)


class _Answer(NamedTuple):
    line: int
    result: Any


def _rows(file: Path, how: ReadOptions, meta: Meta) -> Iterator[dict[str, Any]]:
    name = _NAME.match(file_name(file))
    version, category = name.groups() if name else (None, "all")
    model, result_file = _locate(file)
    answers = _read_answers(result_file, category, how, meta.warnings)
    failures, (total, correct) = _read_failures(file, category, answers, how, meta.warnings)
    if not len(answers) == total == correct + len(failures):
        raise InputError(
            f"{file}: counts {total} items with {correct} right and lists {len(failures)} "
            f"failures, {result_file.name} holds {len(answers)} items; evaluate again"
        )
    how.tally.records += len(answers)
    note_settings(meta, model, {"task version": version}, category)
    for reference, (line, result) in answers.items():
        failed = isinstance(result, str) and result.startswith(_FAILED_CALL)
        failure = failures.get(reference)
        row: dict[str, Any] = {
            "model": model,
            "run": file_name(file),
            "task": category,
            "item_ref": reference,
            "metric": "correct",
            "score": None if failed else float(failure is None),
            "status": "error" if failed else _status(failure),
            "source": f"{file_name(result_file)}:{line}",
        }
        if how.text:
            with malformed(result_file, line, "not a BFCL result"):
                row |= _texts(result, failure)
        yield row


def _status(failure: dict[str, Any] | None) -> str | None:
    """What BFCL's own type of error says of the answer; None where a call was read."""
    kind = str((failure or {}).get("error_type") or "")
    return _STATUSES.get(kind) or _STATUSES.get(kind.partition(":")[0])


def _texts(result: Any, failure: dict[str, Any] | None) -> dict[str, str | None]:
    """The response; where the item failed also the prompt, the target and what was read."""
    texts = {"response": optional_text(result)}
    if failure:
        prompt = failure.get("prompt")
        question = prompt.get("question") if isinstance(prompt, dict) else prompt
        texts["prompt"] = optional_text(question)
        texts["target"] = str(failure.get("possible_answer", "")) or None
        texts["answer"] = optional_text(failure.get("model_result_decoded")) or None
    return texts


def _locate(file: Path) -> tuple[str, Path]:
    """Find the model of a score file, and its result file."""
    name = file.name.removesuffix("_score.json") + "_result.json"
    names = (name, f"{_2024}{name}")
    score = next((folder for folder in file.parents if folder.name == "score"), None)
    inner = file.parent.relative_to(score).parts if score else ()
    candidates = [file.with_name(name) for name in names]
    if score and inner:
        results = score.parent / "result" / inner[0]
        candidates = [score.parent.joinpath("result", *inner, name) for name in names]
        candidates += find_files(results, name)
    for candidate in candidates:
        if candidate.is_file():
            return file_name(score / inner[0] if score and inner else file.parent), candidate
    raise InputError(
        f"{file}: lists failures only, and its result file is not at {candidates[0]}; "
        "keep the folder 'result' beside 'score'"
    )


def _read_answers(
    file: Path, category: str, how: ReadOptions, warnings: list[str]
) -> dict[str, _Answer]:
    answers: dict[str, _Answer] = {}
    for line, record in json_lines(file, how, warnings):
        reference = record.get("id")
        if file.name.startswith(_2024) and not isinstance(reference, str):
            reference = f"{category}_{len(answers)}"
        if not isinstance(reference, str) or reference in answers:
            raise InputError(f"{file}:{line}: the id {reference!r:.60} is not text or stands twice")
        answers[reference] = _Answer(line, record.get("result"))
    return answers


def _read_failures(
    file: Path,
    category: str,
    answers: dict[str, _Answer],
    how: ReadOptions,
    warnings: list[str],
) -> tuple[dict[str, dict[str, Any]], tuple[int, int]]:
    """Read the failures by id, and the summary's counts of items and of right ones."""
    failures: dict[str, dict[str, Any]] = {}
    counts: tuple[int, int] | None = None
    for line, record in json_lines(file, how, warnings):
        with malformed(file, line, "not a BFCL failure"):
            if counts is None:
                counts = int(record["total_count"]), int(record["correct_count"])
                continue
            reference = _reference(record, category)
            if record.get("valid"):
                raise ValueError("not a failure")
            if reference not in answers:
                raise ValueError(f"the id {reference!r:.60} is not in the result file")
            failures[reference] = record
    if counts is None:
        raise InputError(f"{file}: is empty")
    return failures, counts


def _reference(record: dict[str, Any], category: str) -> str:
    """The item's id; older releases number failures from 1 and keep the id, from 0, in `prompt`."""
    prompt = record.get("prompt")
    if isinstance(prompt, dict) and isinstance(prompt.get("id"), str):
        return str(prompt["id"])
    number = record["id"]
    return number if isinstance(number, str) else f"{category}_{int(number) - 1}"
