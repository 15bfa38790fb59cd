"""Mathematics: is the final expression equal to the right one, by math-verify.

Computer algebra on what a model wrote can take forever, so worker processes do it. Each has
`CPU_SECONDS` of processor time per answer; then the kernel ends it and a new one starts.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from forgetmap.answers.items import Item, Value
from forgetmap.answers.text import after_cue, last_boxed, looked_at, optional
from forgetmap.base.errors import InputError
from forgetmap.capabilities.scorers.scoring import EMPTY, NO_ANSWER, check_lengths, right_or_wrong

METRICS = ("accuracy",)
FIELDS = ("gold",)
VERSION = 1

CPU_SECONDS = 3.0
WALL_SECONDS = 60.0
"""For a worker that waits instead of working; generous, since the machine may be busy."""
_WORKER = Path(__file__).with_name("mathematics_worker.py")
_LONGEST = 2000
"""Characters of prose that are searched for an expression where nothing points to one."""
_LONGEST_LINE = 200


def score(items: Sequence[Item], responses: Sequence[str]) -> dict[str, list[Value]]:
    r"""Compare the final expression of each answer with the right one.

    Example:
        >>> item = Item("math", "1", gold=r"\frac{1}{2}")
        >>> values = score([item] * 2, [r"So it is $\dfrac{1}{2}$.", "Answer: 3/2"])
        >>> [value.value for value in values["accuracy"]]
        [1.0, 0.0]
    """
    check_lengths(items, responses)
    texts = [looked_at(response) for response in responses]
    golds = [read_gold(item.gold) for item in items]
    asked = {
        (gold, *candidates(text)): None
        for gold, text in zip(golds, texts, strict=True)
        if gold and text.strip()
    }
    golds_alone = {(gold, gold): None for gold in golds if gold}
    questions = list(asked | golds_alone)
    verdicts = dict(zip(questions, verify(questions), strict=True))
    return {
        "accuracy": [_value(gold, text, verdicts) for gold, text in zip(golds, texts, strict=True)]
    }


def _value(gold: str, text: str, verdicts: dict[tuple[str, ...], bool | None]) -> Value:
    if not gold or not verdicts[gold, gold]:
        return Value(None, "invalid_gold", gold[:80])
    if not text.strip():
        return EMPTY
    tried = candidates(text)
    verdict = verdicts[gold, *tried]
    return NO_ANSWER if verdict is None else right_or_wrong(verdict, tried[0])


def read_gold(gold: Any) -> str:
    r"""The right answer as one LaTeX expression in a box; empty where there is none.

    Example:
        >>> read_gold("It follows that $x$ is \\boxed{3}."), read_gold([r"\frac12"])
        ('\\boxed{3}', '\\boxed{\\frac12}')
    """
    if isinstance(gold, dict):
        gold = gold.get("answer") or gold.get("text")
    if isinstance(gold, list):
        gold = gold[0] if len(gold) == 1 else None
    if gold is None or isinstance(gold, bool):
        return ""
    text = str(gold).rpartition("####")[2]
    inner = last_boxed(text) or text.strip().strip("$").strip()
    return rf"\boxed{{{inner}}}" if inner else ""


def candidates(text: str) -> list[str]:
    r"""Where the final expression may stand, the plainest place alone if there is one.

    Example:
        >>> candidates("x+1"), candidates(r"so \boxed{7}, not 8")
        (['\\boxed{x+1}', 'x+1'], ['\\boxed{7}'])
    """
    if boxed := last_boxed(text):
        return [rf"\boxed{{{boxed}}}"]
    line = after_cue(text) or text.strip()
    if len(line) > _LONGEST_LINE or "\n" in line:
        return [line[-_LONGEST:]]
    bare = line.strip("*_ .").strip("$")
    return [rf"\boxed{{{bare}}}", line] if _is_expression(bare) else [line]


def _is_expression(line: str) -> bool:
    """Whether a line is mathematics alone: no words but those of LaTeX and of functions."""
    left = re.sub(r"\\[a-zA-Z]{1,20}|\b(?:sqrt|pi|sin|cos|tan|log|ln|exp)\b", "", line)
    return "$" not in line and not re.search(r"[^\W\d_]{2}", left)


def verify(questions: Sequence[Sequence[str]], count: int | None = None) -> list[bool | None]:
    """Say of each (gold, candidate, ...) whether a candidate equals gold; None: no verdict.

    They are expressions in LaTeX, boxed, or text that holds one. `count` worker processes do it; by
    default as many as there are processors, at most 4.
    """
    optional("math_verify")
    workers = [_Worker() for _ in range(count or min(4, os.cpu_count() or 1))]
    free: SimpleQueue[_Worker] = SimpleQueue()
    for worker in workers:
        free.put(worker)

    def ask(question: Sequence[str]) -> bool | None:
        worker = free.get()
        try:
            return worker.ask(question)
        finally:
            free.put(worker)

    try:
        with ThreadPoolExecutor(max_workers=len(workers)) as pool:
            return list(pool.map(ask, questions))
    finally:
        for worker in workers:
            worker.stop()


class _Worker:
    """A process that is asked one question at a time; started when needed, and again if it died."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, question: Sequence[str]) -> bool | None:
        if self._process is None:
            self._start()
        assert self._process is not None
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(question).encode() + b"\n")
            self._process.stdin.flush()
        answer = self._read_line()
        if not answer:
            self.stop()
        return {b"1\n": True, b"0\n": False}.get(answer)

    def _start(self) -> None:
        self._process = subprocess.Popen(
            # -P: the folder of the script holds a numbers.py that is not the standard library's.
            [sys.executable, "-P", str(_WORKER), str(CPU_SECONDS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        if self._read_line() != b"ready\n":
            self.stop()
            raise InputError("mathematics: the worker process does not start; is memory short?")

    def _read_line(self) -> bytes:
        """The next line; nothing if the process has ended or takes too long."""
        assert self._process is not None
        assert self._process.stdout is not None
        can_be_read, _, _ = select.select([self._process.stdout], [], [], WALL_SECONDS)
        return self._process.stdout.readline(100) if can_be_read else b""

    def stop(self) -> None:
        if self._process is None:
            return
        self._process.kill()
        with contextlib.suppress(BrokenPipeError), self._process:
            pass  # closes the pipes and waits
        self._process = None
