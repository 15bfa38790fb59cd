"""Run a program that nobody has read: `code` sends it here, `sandbox_runner` runs it.

Each program gets a process of its own with limits on processor time, memory, files and their size,
in a session of its own that is killed as a whole. Before the program starts, the process gives up,
for good, the system calls that start processes, send signals, open sockets or load code into the
kernel (seccomp). Where the kernel allows, it also gets name spaces without network and with all
disks read-only but for a small one in memory; where it does not, it cannot write files at all.
Where seccomp is missing nothing is run.

What this does not do: a program can read what its user may read, though it can tell nobody. And it
runs beside its tests, so one that is made to cheat could report a success that was none.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from forgetmap.base.errors import InputError

CPU_SECONDS = 5
WALL_SECONDS = 30.0
"""For a program that sleeps; generous, since the machine may be busy."""
MEMORY = 2**30
_MOST_OUTPUT = 2**20
_RUNNER = Path(__file__).with_name("sandbox_runner.py")
_NO_SANDBOX = 97
"""Exit code of the runner where the kernel cannot confine it."""
_MACHINES = ("x86_64", "aarch64")


@dataclass(frozen=True)
class Program:
    """What is run: definitions, then tests, each a piece of Python of its own."""

    code: str
    tests: Sequence[str]


def run_all(programs: Sequence[Program]) -> list[list[str]]:
    """Run programs, some at a time; the outcome of each test of each.

    An outcome is "passed", the name of the exception, or "not reached" where the program ended or
    ran out of time or memory before.

    Example:
        >>> run_all([Program("def f(): return 1", ["assert f() == 1", "assert f() == 2"])])
        [['passed', 'AssertionError']]
    """
    with ThreadPoolExecutor(max_workers=max(1, os.cpu_count() or 1)) as pool:
        return list(pool.map(run, programs))


def run(program: Program) -> list[str]:
    """Run one program."""
    if sys.platform != "linux" or platform.machine() not in _MACHINES:
        raise _cannot_confine()
    token = secrets.token_hex(16)  # what the program prints cannot be taken for a report
    question = {"token": token, "code": program.code, "tests": list(program.tests)}
    with tempfile.TemporaryDirectory(prefix="forgetmap-code-") as folder:
        command = [sys.executable, "-P", "-s", "-B", str(_RUNNER)]
        process = subprocess.Popen(
            [*command, folder, str(CPU_SECONDS), str(MEMORY)],
            cwd=folder,
            env={"PATH": os.defpath, "HOME": folder, "TMPDIR": folder, "PYTHONHASHSEED": "0"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        output = _talk(process, json.dumps(question).encode())
    if process.returncode == _NO_SANDBOX:
        raise _cannot_confine()
    reports = _reports(output, token)
    if reports[:1] != ["ready"]:
        raise InputError(f"code: the sandbox does not start (exit code {process.returncode})")
    outcomes = ["not reached"] * len(program.tests)
    for report in reports[1:]:
        number, _, outcome = report.partition(" ")
        if number.isdecimal() and int(number[:9]) < len(outcomes):  # else it is no report of ours
            outcomes[int(number)] = outcome[:60]
    return outcomes


def _cannot_confine() -> InputError:
    return InputError(
        "code is only run where the kernel confines it (Linux with seccomp, on x86-64 or ARM64); "
        "score the code tasks on such a machine, or leave them out"
    )


def _talk(process: subprocess.Popen[bytes], question: bytes) -> bytes:
    """Ask, and read what is reported, for so long and so much; then the whole session is ended."""
    assert process.stdin is not None
    assert process.stdout is not None
    late = threading.Timer(WALL_SECONDS, os.killpg, (process.pid, signal.SIGKILL))
    late.start()
    with process.stdin as orders, contextlib.suppress(BrokenPipeError):
        orders.write(question)
    with process.stdout as reports:
        output = reports.read(_MOST_OUTPUT)
    late.cancel()
    late.join()
    if len(output) == _MOST_OUTPUT:  # else all its writers have ended
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return output


def _reports(output: bytes, token: str) -> list[str]:
    """What the runner said, and nothing that the program did."""
    lines = output.decode("utf-8", "replace").splitlines()
    return [line.removeprefix(f"{token} ") for line in lines if line.startswith(f"{token} ")]
