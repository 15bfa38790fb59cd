"""Code: does the program in an answer pass its tests, each run in a sandbox.

Calling `score` runs what a model wrote. `score_responses` calls it only where it is asked to
(`run_code`, on the command line `--run-code`).
"""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from collections.abc import Mapping, Sequence

from forgetmap.answers.items import Item, Value
from forgetmap.answers.text import looked_at
from forgetmap.capabilities.scorers.sandbox.programs import Program, run_all
from forgetmap.capabilities.scorers.scoring import EMPTY, NO_ANSWER, check_lengths, right_or_wrong

METRICS = ("accuracy", "tests_passed")
FIELDS = ("gold",)
VERSION = 2

_FENCE = re.compile(r"```[ \t]{0,4}\w{0,20}[ \t]{0,4}\n(.{0,100000}?)(?:```|\Z)", re.DOTALL)
_CODE_LINE = re.compile(r"^(?:def |class |import |from \w|@|async def )", re.MULTILINE)


def score(items: Sequence[Item], responses: Sequence[str]) -> dict[str, list[Value]]:
    """Run the tests of each item against the program of its answer.

    `gold` holds the tests: a text or list of tests, or an object with `test` or `tests` and, as
    HumanEval has it, `entry_point`. `accuracy`: all pass; `tests_passed`: the share that does.
    """
    check_lengths(items, responses)
    programs = [
        _program(item, looked_at(response)) for item, response in zip(items, responses, strict=True)
    ]
    outcomes = iter(run_all([one for one in programs if isinstance(one, Program)]))
    rows = [
        _values(next(outcomes)) if isinstance(program, Program) else (program, program)
        for program in programs
    ]
    return {name: [row[index] for row in rows] for index, name in enumerate(METRICS)}


def _program(item: Item, text: str) -> Program | Value:
    tests, entry_point = read_tests(item)
    if not tests:
        return Value(None, "invalid_gold", "the item has no tests")
    if not text.strip():
        return EMPTY
    prompt = item.prompt if isinstance(item.prompt, str) else ""
    code = extract(text, entry_point, prompt)
    if code is None:
        return NO_ANSWER
    given = prompt if entry_point and f"def {entry_point}" in prompt else ""
    return Program(code, tests, entry_point, given)


def _values(outcomes: list[str]) -> tuple[Value, Value]:
    passed = outcomes.count("passed")
    failed = [f"test {number}: {one}" for number, one in enumerate(outcomes, 1) if one != "passed"]
    said = "; ".join([f"{passed} of {len(outcomes)} tests passed", *failed])
    share = passed / len(outcomes)
    return right_or_wrong(share == 1, said), Value(share, answer=said[:200])


def read_tests(item: Item) -> tuple[list[str], str]:
    """The tests of an item and the name that they call, if it is told.

    Example:
        >>> read_tests(Item("h", "1", gold={"test": "def check(f): ...", "entry_point": "f"}))
        (['def check(f): ...\\n\\ncheck(f)'], 'f')
        >>> read_tests(Item("m", "1", gold="def f(): return 1", context=("assert f() == 1", "f")))
        (['assert f() == 1'], 'f')
    """
    gold, entry_point = item.gold, str(item.meta.get("entry_point") or "")
    if isinstance(gold, Mapping):
        entry_point = str(gold.get("entry_point") or entry_point)
        held = gold.get("tests") or gold.get("test") or gold.get("test_list") or []
    elif len(item.context) == 2 and not isinstance(item.context, str):
        held, entry_point = item.context  # CapTrack has them here; its gold may be a solution
    else:
        held = gold or []
    tests = [held] if isinstance(held, str) else [str(test) for test in held]
    if entry_point and len(tests) == 1 and "def check(" in tests[0]:
        tests = [f"{tests[0]}\n\ncheck({entry_point})"]
    return tests, entry_point


def extract(text: str, entry_point: str = "", prompt: str = "") -> str | None:
    """The program in an answer: fenced, or all of it; put after the prompt if it only goes on.

    Example:
        >>> extract("Sure:\\n```python\\ndef f(): pass\\n```\\nDone.", "f")
        'def f(): pass\\n'
        >>> extract("    return 1", "f", "def f():\\n")
        'def f():\\n    return 1'
    """
    fenced = [match[1] for match in _FENCE.finditer(text)]
    defining = [code for code in fenced if not entry_point or f"def {entry_point}" in code]
    if fenced:
        tried = [defining[-1] if defining else max(fenced, key=len)]
    else:
        start = _CODE_LINE.search(text)
        tried = [text, *([text[start.start() :]] if start else [])]
    if prompt and entry_point and f"def {entry_point}" in prompt and not defining:
        goes_on = tried[0] if tried[0][:1].isspace() else textwrap.indent(tried[0], "    ")
        tried = [code for code in tried if f"def {entry_point}" in code] or [prompt + goes_on]
    return next((code for code in tried if _is_python(code)), None)


def _is_python(code: str) -> bool:
    try:
        with warnings.catch_warnings():  # of odd but valid code
            warnings.simplefilter("ignore")
            ast.parse(code)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return True
