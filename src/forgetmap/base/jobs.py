"""Many jobs in several processes: each begins once what it needs is done, and none stops another.

What a job leaves behind says whether it is done; this is told by whoever plans the jobs. So a run
that was stopped begins again with what is not there yet.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import NamedTuple


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

    A process that dies takes all others of the pool along, and does not say whose job it was. So
    each job that was under way begins again, by itself; one that dies then, too, was the reason.

    Args:
        after: Called in the process after each job, such as to free memory.
        may_begin: Asked right before a job begins; one that may not is left.
    """
    waiting = list(wanted)
    asked, done, found = len(waiting), set(jobs) - set(waiting), Outcome()
    under_way: dict[Future[_Told], str] = {}
    suspected: set[str] = set()
    pool = _pool(workers)
    try:
        while True:
            broken = False
            for name in [name for name in waiting if done.issuperset(jobs[name].needs)]:
                alone = suspected.intersection((name, *under_way.values()))
                if len(under_way) == workers or (alone and under_way):
                    break
                waiting.remove(name)
                if not may_begin(name):
                    found.left.append(name)
                elif begun := _begin(pool, jobs[name], after):
                    under_way[begun] = name
                else:
                    waiting.insert(0, name)
                    broken = True
                    break
            if broken and not under_way:  # its jobs were over when a process died
                pool.shutdown()
                pool = _pool(workers)
                continue
            if not under_way:  # what still waits needs something that is not done
                found.left += waiting
                return found
            ended = _wait(under_way)
            lost = [name for name, told in ended.items() if not told and name not in suspected]
            for name in (name for name in ended if name not in lost):
                said = _note(name, ended[name] or _Told(0.0, "its process died"), found, done)
                left = asked - len(found.done) - len(found.failed) - len(found.left)
                tell(f"{time.strftime('%H:%M:%S')} {left} left: {said}")
            if None in ended.values():
                waiting[:0] = lost
                suspected.update(lost)
                pool.shutdown()  # else two processes might be at one job for a moment
                pool = _pool(workers)
    finally:
        pool.shutdown()


def _pool(workers: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"))


def _begin(
    pool: ProcessPoolExecutor, job: Job, after: Callable[[], object] | None
) -> Future[_Told] | None:
    """Hand a job to the pool; None where a process died a moment ago, so that it takes no more."""
    try:
        return pool.submit(_do, job.do, after)
    except BrokenProcessPool:
        return None


def _wait(under_way: dict[Future[_Told], str]) -> dict[str, _Told | None]:
    """What is said of the jobs that end next; None where a process died, which ends them all."""
    ended = wait(under_way, return_when=FIRST_COMPLETED).done
    if any(isinstance(one.exception(), BrokenProcessPool) for one in ended):
        ended = wait(under_way).done
    return {under_way.pop(one): _told(one) for one in ended}


def _told(finished: Future[_Told]) -> _Told | None:
    error = finished.exception()
    if isinstance(error, BrokenProcessPool):
        return None
    return _failed(error) if error else finished.result()


def _failed(error: BaseException) -> _Told:
    return _Told(0.0, f"{type(error).__name__}: {error!s:.300}")


def _note(name: str, told: _Told, found: Outcome, done: set[str]) -> str:
    """Take down what became of a job; returns it in words."""
    if told.error:
        found.failed[name] = told.error
        return f"{name} FAILED: {told.error}"
    found.done.append(name)
    done.add(name)
    return f"{name}, {told.seconds:.0f} s"


def _do(do: Callable[[], object], after: Callable[[], object] | None) -> _Told:
    """One job, in a process of the pool; a failure is told and does not stop the others."""
    begun = time.perf_counter()
    try:
        do()
        return _Told(time.perf_counter() - begun)
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        return _failed(error)
    finally:
        try:
            if after:
                after()
        except Exception:  # what the job did is done all the same
            traceback.print_exc()
