"""The verdict of a gate for people and machines: terminal, Markdown, JUnit XML, annotations.

Names of models, tasks and settings come from logs: each form here is safe against what they hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree

from rich.console import Console
from rich.text import Text

from forgetmap.base.words import clean, code_span
from forgetmap.capabilities.drift_result import Drift
from forgetmap.gate.judgement import Finding, Judgement, Verdict
from forgetmap.map.result import ForgettingMap

_STYLES: dict[Verdict, str] = {
    "PASS": "bold green",
    "WARN": "bold yellow",
    "BLOCK": "bold red",
    "WITHHELD": "bold magenta",
}
_MEANING: dict[Verdict, str] = {
    "PASS": "every limit holds",
    "WARN": "nothing stands in the way, but look at this",
    "BLOCK": "a limit is broken",
    "WITHHELD": "no honest answer is possible",
}
_MOST_ROWS = 50
"""Rows of a summary; what led to the verdict comes first."""
_ORDER: tuple[Verdict, ...] = ("BLOCK", "WITHHELD", "WARN", "PASS")
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def print_judgement(judgement: Judgement, out: Console) -> None:
    """Print the verdict and every reason, those that led to it first."""
    verdict = judgement.verdict
    out.print(Text(f"gate: {verdict}, {_MEANING[verdict]}", style=_STYLES[verdict]))
    for text in judgement.obstacles:
        out.print(Text(f"  {clean(text)}", style="magenta"))
    for finding in ordered(judgement):
        style = (
            "dim" if finding.verdict == "PASS" else _STYLES[finding.verdict].removeprefix("bold ")
        )
        out.print(Text(f"  {verdict.lower():8} {clean(finding.reason)}", style=style))
    for text in judgement.notes:
        out.print(Text(f"  note: {clean(text, 300)}", style="yellow"))


def ordered(judgement: Judgement) -> list[Finding]:
    """The findings, the weightiest first."""
    return sorted(judgement.findings, key=lambda finding: _ORDER.index(finding.verdict))


def to_markdown(judgement: Judgement, result: ForgettingMap, drift: Drift | None = None) -> str:
    """A summary fit for a pull request.

    Args:
        judgement: The verdict.
        result: The map that was judged.
        drift: The drift by capability that was judged with it.

    Example:
        >>> import forgetmap
        >>> from forgetmap.gate.judgement import judge
        >>> from forgetmap.gate.policy import Policy
        >>> result = forgetmap.demo()
        >>> to_markdown(judge(result, Policy(limits=[{"max": 0.5}])), result).splitlines()[0]
        '### forgetmap: PASS, every limit holds'
    """
    lines = [
        f"### forgetmap: {judgement.verdict}, {_MEANING[judgement.verdict]}",
        "",
        f"{code_span(result.before.name)} → {code_span(result.after.name)}, "
        f"{len(result.tasks):,} tasks: {result.headline()}.",
        "",
    ]
    if drift is not None:
        lines += [f"Drift by capability, {code_span(drift.headline(), 300)}.", ""]
    told = [*judgement.obstacles, *judgement.notes]
    lines += [*(f"- {code_span(text, 300)}" for text in told), *([""] if told else [])]
    failing = [one for one in ordered(judgement) if one.verdict != "PASS"]
    if failing:
        lines += ["| verdict | finding |", "| --- | --- |"]
        lines += [
            f"| {one.verdict} | {code_span(one.reason, 300)} |" for one in failing[:_MOST_ROWS]
        ]
        if len(failing) > _MOST_ROWS:
            lines += ["", f"{len(failing) - _MOST_ROWS:,} more are not listed."]
        lines.append("")
    lines.append(f"{len(judgement.findings) - len(failing):,} limits hold.")
    if result.confounds:
        differ = ", ".join(code_span(one.setting) for one in result.confounds)
        lines += ["", f"The two runs differ in: {differ}."]
    return "\n".join([*lines, ""])


def to_junit(judgement: Judgement) -> str:
    """JUnit XML: one test case per limit; a broken one fails, a withheld one is an error.

    Example:
        >>> import forgetmap
        >>> from forgetmap.gate.judgement import judge
        >>> from forgetmap.gate.policy import Policy
        >>> 'failures="1"' in to_junit(judge(forgetmap.demo(), Policy(limits=[{"max": 0}])))
        True
    """
    cases: list[tuple[str, str, Verdict, str]] = [
        ("comparable", "comparable", "WITHHELD", text) for text in judgement.obstacles
    ]
    cases += [(one.where, one.measure, one.verdict, one.reason) for one in judgement.findings]
    verdicts = [verdict for _, _, verdict, _ in cases]
    suite = ElementTree.Element(
        "testsuite",
        name="forgetmap gate",
        tests=str(len(cases)),
        failures=str(verdicts.count("BLOCK")),
        errors=str(verdicts.count("WITHHELD")),
    )
    for where, measure, verdict, reason in cases:
        case = ElementTree.SubElement(
            suite, "testcase", classname=_xml(where), name=_xml(f"{where} {measure}")
        )
        if verdict in ("BLOCK", "WITHHELD"):
            kind = "failure" if verdict == "BLOCK" else "error"
            ElementTree.SubElement(case, kind, message=_xml(reason), type=verdict)
        else:
            ElementTree.SubElement(case, "system-out").text = _xml(f"{verdict}: {reason}")
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(
        suite, encoding="unicode"
    )


def _xml(text: str) -> str:
    return _NOT_XML.sub("", clean(text, 400))


def to_annotations(judgement: Judgement) -> Iterator[str]:
    """Workflow commands that GitHub shows beside the change.

    Example:
        >>> import forgetmap
        >>> from forgetmap.gate.judgement import judge
        >>> from forgetmap.gate.policy import Policy
        >>> list(to_annotations(judge(forgetmap.demo(), Policy(limits=[{"max": 0}]))))[0][:38]
        '::error title=forgetmap BLOCK::old: lo'
    """
    told: list[tuple[Verdict, str]] = [("WITHHELD", text) for text in judgement.obstacles]
    told += [(one.verdict, one.reason) for one in ordered(judgement) if one.verdict != "PASS"]
    for verdict, reason in told[:_MOST_ROWS]:
        kind = "warning" if verdict == "WARN" else "error"
        text = clean(reason, 400).replace("%", "%25")
        yield f"::{kind} title=forgetmap {verdict}::{text}"
