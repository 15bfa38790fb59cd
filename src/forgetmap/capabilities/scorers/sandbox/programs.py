"""Run programs that nobody has read, and learn from outside how they did.

Each program gets two processes, each locked in on its own (see `boundary` and `inside`). One holds
the program, the other its tests. The tests call the program's functions over a pipe and get plain
data back, so the verdict is made where the program cannot reach. What comes out here is one word
of `OUTCOMES` for each test and never a text of the program's.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import secrets
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import IO, Any

from forgetmap.base.errors import InputError
from forgetmap.base.words import brief
from forgetmap.capabilities.scorers.sandbox.boundary import (
    MACHINES,
    Boundary,
    candidates,
    python_only,
)

CPU_SECONDS = 5
WALL_SECONDS = 30.0
"""For a program that sleeps; generous, since the machine may be busy."""
MEMORY = 2**30
OUTCOMES = (
    "passed",
    "failed",
    "error",
    "memory",
    "timeout",
    "ended",
    "not plain data",
    "not reached",
)
"""All that is ever said of a test."""
_MOST_REPORT = 2**20
_GRACE_SECONDS = 1.0
_KILLED, _OUT_OF_TIME = 9, 24
"""Signals of Linux, as numbers: other systems import this module too."""
_OVERTIME = {-_KILLED, 128 + _KILLED, -_OUT_OF_TIME, 128 + _OUT_OF_TIME}


@dataclass(frozen=True)
class Program:
    """What is run: definitions, then tests, each a piece of Python of its own."""

    code: str
    tests: Sequence[str]
    entry_point: str = ""
    """The function that the tests are about, if it is told."""
    given: str = ""
    """Python that the task gave: what it defines, the tests take from here."""


class _NotStartedError(Exception):
    """The walls do not stand; nothing was run."""


def run_all(programs: Sequence[Program]) -> list[list[str]]:
    """Run programs, some at a time; the outcome of each test of each."""
    if not programs:
        return []
    boundary = find_boundary()
    with ThreadPoolExecutor(max_workers=max(1, os.cpu_count() or 1)) as pool:
        return list(pool.map(functools.partial(run, boundary=boundary), programs))


def run(program: Program, boundary: Boundary | None = None) -> list[str]:
    """Run one program."""
    try:
        return _run(program, boundary or find_boundary())
    except _NotStartedError as error:
        raise InputError(f"code: the sandbox does not start ({brief(error)})") from error


def find_boundary() -> Boundary:
    """The best walls that stand on this machine; `InputError` where there are none."""
    if sys.platform != "linux" or os.uname().machine not in MACHINES:
        raise _no_sandbox("it needs Linux on x86-64 or ARM64")
    return _first_that_stands(tuple(candidates()), os.geteuid())


@functools.cache
def _first_that_stands(tried: tuple[Boundary, ...], _user: int) -> Boundary:
    reasons = [] if any(one.bwrap for one in tried) else ["bubblewrap: not installed"]
    for boundary in tried:
        try:
            if _run(Program("def f(): return 1", ["assert f() == 1"]), boundary) == ["passed"]:
                return boundary
            reasons.append(f"{boundary.name}: does not run Python")
        except _NotStartedError as error:
            reasons.append(f"{boundary.name}: {brief(error)}")
    raise _no_sandbox("; ".join(reasons))


def _no_sandbox(reason: str) -> InputError:
    return InputError(
        f"--run-code: no sandbox can be made here ({reason}), so no code is run; install "
        "bubblewrap, run where user name spaces are allowed, or score without --run-code"
    )


def _run(program: Program, boundary: Boundary) -> list[str]:
    """Start both sides, connect them, and wait for the verdicts."""
    nonce = secrets.token_hex(16)
    orders = {
        "nonce": nonce,
        "code": program.code,
        "tests": list(program.tests),
        "entry_point": program.entry_point,
        "given": program.given,
    }
    with contextlib.ExitStack() as stack:
        root = stack.enter_context(tempfile.TemporaryDirectory(prefix="forgetmap-root-"))
        complaints = stack.enter_context(tempfile.TemporaryFile())
        asked, requests = os.pipe()
        replies, answered = os.pipe()
        start = functools.partial(_start, boundary, root, complaints)
        try:
            tested = start(stdin=asked, stdout=answered)
            stack.callback(_end, tested)
            checker = start(pipes=(requests, replies))
            stack.callback(_end, checker)
        finally:
            for pipe in (asked, requests, replies, answered):
                os.close(pipe)
        report, late = _talk(checker, tested, json.dumps(orders).encode())
        complaints.seek(0)
        said = complaints.read(300).decode("utf-8", "replace")
    words = _words(report, nonce)
    if words[:1] != ["started"]:
        raise _NotStartedError(said.strip() or f"exit code {tested.returncode}")
    return _outcomes(words[1:], len(program.tests), "timeout" if late else "ended")


def _start(
    boundary: Boundary,
    root: str,
    complaints: IO[bytes],
    pipes: tuple[int, ...] = (),
    stdin: int = subprocess.PIPE,
    stdout: int = subprocess.PIPE,
) -> subprocess.Popen[bytes]:
    """Start one side; only the checker gets pipes to the other."""
    with open(os.devnull, "r+b", buffering=0) as nothing:
        wanted: dict[str, Any] = {
            "seconds": CPU_SECONDS,
            "memory": MEMORY,
            "pipes": pipes,
            "nothing": nothing.fileno(),
        }
        return subprocess.Popen(
            boundary.command(_view(), root, wanted),
            cwd="/",
            env={"PYTHONHASHSEED": "0"},
            stderr=complaints,
            pass_fds=(*pipes, nothing.fileno()),
            start_new_session=True,
            stdin=stdin,
            stdout=stdout,
        )


_view = functools.cache(python_only)


def _talk(
    checker: subprocess.Popen[bytes], tested: subprocess.Popen[bytes], orders: bytes
) -> tuple[bytes, bool]:
    """Give the orders and read the report, then end both; also whether one took too long."""
    assert checker.stdin is not None
    assert checker.stdout is not None
    sides = (checker, tested)
    late = threading.Event()

    def end_late() -> None:
        late.set()
        _end(*sides)

    timer = threading.Timer(WALL_SECONDS, end_late)
    timer.start()
    with contextlib.suppress(BrokenPipeError), checker.stdin as pipe:
        pipe.write(orders)
    with checker.stdout as pipe:
        report = pipe.read(_MOST_REPORT)
    timer.cancel()
    timer.join()
    for side in sides:  # without its pipes it ends by itself, unless it does not want to
        with contextlib.suppress(subprocess.TimeoutExpired):
            side.wait(_GRACE_SECONDS)
    overtime = any(side.poll() in _OVERTIME for side in sides)
    _end(*sides)
    return report, late.is_set() or overtime


def _end(*sides: subprocess.Popen[bytes]) -> None:
    """End processes with all they have started."""
    for side in sides:
        if side.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(side.pid, _KILLED)
            side.wait()


def _words(report: bytes, nonce: str) -> list[str]:
    """What the checker said, and nothing else."""
    lines = report.decode("ascii", "replace").splitlines()
    return [line.removeprefix(f"{nonce} ") for line in lines if line.startswith(f"{nonce} ")]


def _outcomes(words: Sequence[str], tests: int, cause: str) -> list[str]:
    """One outcome for each test; the first without one is where it ended."""
    known = [word if word in OUTCOMES else "error" for word in words[:tests]]
    missing = tests - len(known)
    return known + [cause] * (missing > 0) + ["not reached"] * (missing - 1)
