"""SWE-bench: the summary `<model>.<run>.json`, or the tree of `<instance>/report.json`.

The issues are not in these files, so items are known by their instance id. An instance without a
verdict (its patch did not apply, or the run broke) has no score; SWE-bench counts it as not
resolved. Checked against SWE-bench 5.0.2 and an older `reporting.py` and `grading.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from forgetmap.base.values import file_name
from forgetmap.readers.framework import ReadOptions, as_object, json_object, note_count
from forgetmap.readers.records import Answer, Format, Log, Records, begins

COMPANIONS = ("report.json", "*.log", "*.diff", "*.sh", "test_output.txt", "*.jsonl")
"""Reports of single instances where there is a summary; logs, patches and predictions."""
_LISTS = ("resolved", "unresolved", "empty_patch", "error")
_IS_SUMMARY = begins(rb'\{\s*"total_instances".*"(submitted|completed)_instances"')
_IS_REPORT = begins(rb'\{\s*"[^"]+"\s*:\s*\{\s*"patch_is_None"')


def _fits(file: Path) -> bool:
    """Only files with a fitting name are opened: there may be very many others."""
    if file.name == "report.json":
        return _IS_REPORT(file)
    return "." in file.stem and _IS_SUMMARY(file)


def _choose(files: list[Path]) -> list[Path]:
    """The summaries, which also tell of instances without a report; else the reports."""
    return [file for file in files if _IS_SUMMARY(file)] or files


def _describe(file: Path, _how: ReadOptions, _warnings: list[str]) -> Log:
    """`<model>.<run>.json`; or `<run>/<model>/<instance>/report.json`."""
    name = file_name(file).removesuffix(".json")
    if name == "report":
        return Log(file_name(file.parent.parent), "swe-bench")
    return Log(name.rpartition(".")[0] or name, "swe-bench")


def _records(file: Path, how: ReadOptions, warnings: list[str]) -> Records:
    found = json_object(file, how, "not a SWE-bench report")
    if "total_instances" not in found:
        for instance, report in found.items():
            yield f" {instance:.80}", {"instance": instance, **as_object(report)}
        return
    broken = found.get("infra_failure_ids") or ()  # since 5.0; each of them also stands elsewhere
    seen: set[str] = set()
    for name in _LISTS:
        listed = found.get(f"{name}_ids")
        if not isinstance(listed, list):
            raise ValueError(f"{name}_ids is not a list")
        note_count(
            f"{file_name(file)}: {name}", found.get(f"{name}_instances"), len(listed), warnings
        )
        for instance in listed:
            shown = repr(instance)
            if shown in seen:
                raise ValueError(f"{shown:.60} stands twice")
            seen.add(shown)
            failed = name == "unresolved" and instance in broken
            verdict = "infra_failure" if failed else name
            yield f" {shown:.80}", {"instance": instance, "verdict": verdict}
    if missing := found.get("incomplete_ids"):
        warnings.append(f"{file_name(file)}: {len(missing)} instances have no prediction, no rows")


def _answers(record: dict[str, Any], log: Log) -> Iterator[Answer]:
    verdict = record.get("verdict")
    if verdict is None:
        if type(record["resolved"]) is not bool:
            raise ValueError(f"resolved is {record['resolved']!r:.40}")
        verdict = "resolved" if record["resolved"] else "unresolved"
        verdict = "empty_patch" if record.get("patch_is_None") else verdict
        verdict = "infra_failure" if record.get("infra_failure") else verdict
    if verdict in ("error", "infra_failure"):
        log.doubts["no verdict, so no score; SWE-bench counts it as not resolved"] += 1
    statuses = {"error": "error", "infra_failure": "error", "empty_patch": "no_answer"}
    yield Answer(
        record["instance"],
        {"resolved": verdict == "resolved"},
        status=statuses.get(verdict),
        answer=verdict,
    )


_FORMAT = Format(
    harness="swe-bench",
    what="a SWE-bench report",
    pattern="*.json",
    fits=_fits,
    records=_records,
    answers=_answers,
    describe=_describe,
    choose=_choose,
)
sniff, read = _FORMAT.sniff, _FORMAT.read
