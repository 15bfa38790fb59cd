"""Many jobs in several processes: each begins once what it needs is done, and none stops another.

What a job leaves behind says whether it is done; this is told by whoever plans the jobs. So a run
that was stopped begins again with what is not there yet.
"""

from __future__ import annotations

import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import NamedTuple

_MOST_BREAKS = 2
"""How often a job may be under way when a process dies, until it is taken for the reason."""


@dataclass(frozen=True)
class Job:
    """A piece of work; it goes to another process, so what it calls must be a module's function."""

    name: str
    do: Callable[[], object]
    needs: tuple[str, ...] = ()
    """Names of the jobs that must be done before."""


class _Told(NamedTuple):
    """What a process says of a job."""

    seconds: float
    error: str = ""


@dataclass
class Outcome:
    """What became of the jobs that were wanted."""

    done: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    """Name to the reason."""
    left: list[str] = field(default_factory=list)
    """Not begun: no time was left for them, or they need one that is not done."""


def with_needs(jobs: Mapping[str, Job], asked: Iterable[str]) -> list[str]:
    """The jobs that are asked for and all that they need, in the order of the plan.

    Example:
        >>> jobs = {"a": Job("a", print), "b": Job("b", print, ("a",)), "c": Job("c", print)}
        >>> with_needs(jobs, ["b"])
        ['a', 'b']
    """
    wanted = list(asked)
    for name in wanted:  # it grows
        wanted += [needed for needed in jobs[name].needs if needed not in wanted]
    return [name for name in jobs if name in wanted]


def do_all(
    jobs: Mapping[str, Job],
    wanted: Iterable[str],
    workers: int,
    *,
    after: Callable[[], object] | None = None,
    may_begin: Callable[[str], bool] = lambda _name: True,
    tell: Callable[[str], object] = print,
) -> Outcome:
    """Do the wanted jobs, earlier ones first; what is not wanted counts as done.

    Args:
        after: Called in the process after each job, such as to free memory.
        may_begin: Asked right before a job begins; one that may not is left.
    """
    waiting = list(wanted)
    done, found = set(jobs) - set(waiting), Outcome()
    under_way: dict[Future[_Told], str] = {}
    breaks: Counter[str] = Counter()
    pool = _pool(workers)
    try:
        while True:
            ready = [name for name in waiting if done.issuperset(jobs[name].needs)]
            for name in ready:
                if len(under_way) == workers:
                    break
                waiting.remove(name)
                if may_begin(name):
                    under_way[pool.submit(_do, jobs[name].do, after)] = name
                else:
                    found.left.append(name)
            if not under_way:  # what still waits needs something that is not done
                found.left += waiting
                return found
            is_broken = False
            for finished in wait(under_way, return_when=FIRST_COMPLETED).done:
                name = under_way.pop(finished)
                told = _told(finished)
                is_broken = is_broken or told is None
                if told is None and breaks[name] < _MOST_BREAKS - 1:
                    breaks[name] += 1
                    waiting.insert(0, name)
                    continue
                _note(name, told or _Told(0.0, "its process died"), found, done)
                left = len(waiting) + len(under_way)
                tell(f"{time.strftime('%H:%M:%S')} {left} left: {_said(name, told, found)}")
            if is_broken:
                waiting[:0] = under_way.values()  # the pool has lost them, too
                under_way.clear()
                pool.shutdown(wait=False)
                pool = _pool(workers)
    finally:
        pool.shutdown()


def _pool(workers: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"))


def _told(finished: Future[_Told]) -> _Told | None:
    """What a process says; None where it died."""
    try:
        return finished.result()
    except BrokenProcessPool:
        return None


def _note(name: str, told: _Told, found: Outcome, done: set[str]) -> None:
    if told.error:
        found.failed[name] = told.error
    else:
        found.done.append(name)
        done.add(name)


def _said(name: str, told: _Told | None, found: Outcome) -> str:
    if name in found.failed:
        return f"{name} FAILED: {found.failed[name]}"
    return f"{name}, {told.seconds if told else 0:.0f} s"


def _do(do: Callable[[], object], after: Callable[[], object] | None) -> _Told:
    """One job, in a process of the pool; a failure is told and does not stop the others."""
    begun = time.perf_counter()
    try:
        do()
        return _Told(time.perf_counter() - begun)
    except Exception as error:
        traceback.print_exc()
        return _Told(0.0, f"{type(error).__name__}: {error!s:.300}")
    finally:
        if after:
            after()
