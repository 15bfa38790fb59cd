"""Measuring: jobs in processes of their own, in turns, and a description of the machine."""

from __future__ import annotations

import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

JOBS = Path(__file__).with_name("jobs.py")
ENOUGH_SECONDS = 40
PACKAGES = ("forgetmap", "duckdb", "pyarrow", "numpy", "scipy", "polars", "pandas")


class JobError(Exception):
    """A job that did not end well; the message is the last thing it said."""


class Turn(NamedTuple):
    """One repetition of one job."""

    seconds: float
    cpu_seconds: float
    peak_mb: float
    result: Any = None


@dataclass
class Measurement:
    """All repetitions of one job."""

    turns: list[Turn]

    @property
    def best(self) -> float:
        """Seconds of the fastest turn: the one that other work on the machine disturbed least."""
        return min(turn.seconds for turn in self.turns)

    @property
    def median(self) -> float:
        """Median of the seconds."""
        return statistics.median(turn.seconds for turn in self.turns)

    @property
    def cpu(self) -> float:
        """Least processor seconds, over all cores; hardly touched by other work."""
        return min(turn.cpu_seconds for turn in self.turns)

    @property
    def peak_mb(self) -> float:
        """The highest peak memory of any turn."""
        return max(turn.peak_mb for turn in self.turns)


def run_job(name: str, **arguments: Any) -> Turn:
    """Run a job of jobs.py in a fresh process.

    This process must stay small: on Linux the peak memory of a child starts at the size that its
    parent had when it started it. Hence no numpy and no data here.
    """
    output = _run([sys.executable, str(JOBS), name, json.dumps(arguments)])
    return Turn(**json.loads(output))


def run_command(command: Sequence[str]) -> Turn:
    """Run a command and take its time from outside, start-up included."""
    used = _children_cpu()
    start = time.perf_counter()
    _run(command)
    return Turn(time.perf_counter() - start, _children_cpu() - used, 0.0)


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _run(command: Sequence[str]) -> str:
    # As installed, modules come compiled; to compile them anew in every process is not our work.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or [f"status {done.returncode}"]
        raise JobError(said[-1])
    return done.stdout


def in_turns(
    contestants: Mapping[str, Callable[[], Turn]], repetitions: int
) -> dict[str, Measurement]:
    """Measure in turns (A B C A B C ...), so that a slow minute of the machine meets all alike.

    A contestant that has taken long enough in its first turns gets no more of them.
    """
    found = {name: Measurement([]) for name in contestants}
    for _ in range(repetitions):
        for name, contestant in contestants.items():
            if sum(turn.seconds for turn in found[name].turns) < ENOUGH_SECONDS:
                found[name].turns.append(contestant())
    for name, measured in found.items():
        print(f"  {name}: {measured.best:.3f} s", flush=True)
    return found


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_gb() -> float:
    """Memory of the machine."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9


def available_gb() -> float:
    """Memory that is free for a new process, where the system tells it."""
    info = Path("/proc/meminfo")
    if not info.exists():
        return memory_gb()
    lines = dict(line.split(":", 1) for line in info.read_text().splitlines())
    return int(lines["MemAvailable"].split()[0]) * 1024 / 1e9


def describe_machine() -> list[str]:
    """Lines that say on what was measured."""
    packages = ", ".join(f"{name} {_version(name)}" for name in PACKAGES)
    return [
        f"Date: {date.today().isoformat()}",
        f"Machine: {cores()} cores ({_processor()}), {memory_gb():.0f} GB of memory, "
        f"{platform.system()}",
        f"Load average at the start: {os.getloadavg()[0]:.1f}",
        f"Python {platform.python_version()}, {packages}",
    ]


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # forgetmap straight from the source tree
        import forgetmap

        return forgetmap.__version__ if package == "forgetmap" else "missing"
