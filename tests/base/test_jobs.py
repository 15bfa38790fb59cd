"""Jobs in processes: what waits for what, what a failure stops, and a process that dies."""

from __future__ import annotations

import os
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from forgetmap.base.jobs import Job, do_all, with_needs


def note(path: Path, name: str) -> None:
    with (path / "order").open("a") as file:
        file.write(f"{name}\n")


def fail(why: str) -> None:
    raise ValueError(why)


def die_once(path: Path) -> None:
    """Kill this process the first time, as a machine without memory does."""
    if not (path / "died").exists():
        (path / "died").touch()
        os._exit(9)


def die_late_once(path: Path) -> None:
    time.sleep(0.5)
    die_once(path)


def die_when_done(path: Path) -> None:
    """Have this process die a moment after its job, and none of the next."""
    if not (path / "died").exists():
        threading.Timer(0.5, die_once, [path]).start()


def die() -> None:
    os._exit(9)


def die_late() -> None:
    time.sleep(0.5)
    os._exit(9)


def last_long(path: Path) -> None:
    time.sleep(1.5)
    note(path, "long")


def noting(path: Path, *jobs: Job) -> dict[str, Job]:
    plain = {name: Job(name, partial(note, path, name)) for name in ("first", "second")}
    return {**plain, **{job.name: job for job in jobs}}


def test_a_job_begins_when_what_it_needs_is_done(tmp_path: Path) -> None:
    late = Job("late", partial(note, tmp_path, "late"), ("first", "second"))
    jobs = {"late": late, **noting(tmp_path)}
    told: list[str] = []
    found = do_all(jobs, with_needs(jobs, ["late"]), 1, tell=told.append)
    assert (tmp_path / "order").read_text().split() == ["first", "second", "late"]
    assert found.done == ["first", "second", "late"]
    assert [line.split()[1] for line in told] == ["2", "1", "0"]


def test_a_failure_stops_what_needs_it_and_nothing_else(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    broken = Job("broken", partial(fail, "no such data"))
    after = Job("after", partial(note, tmp_path, "after"), ("broken",))
    jobs = {"broken": broken, "after": after, **noting(tmp_path)}
    found = do_all(jobs, jobs, 2)
    assert found.failed == {"broken": "ValueError: no such data"}
    assert found.left == ["after"]
    assert sorted(found.done) == ["first", "second"]
    assert "broken FAILED: ValueError: no such data" in capfd.readouterr().out


def test_what_is_not_wanted_counts_as_done(tmp_path: Path) -> None:
    jobs = noting(tmp_path, Job("late", partial(note, tmp_path, "late"), ("first",)))
    assert do_all(jobs, ["late"], 1).done == ["late"]
    assert (tmp_path / "order").read_text().split() == ["late"]


def test_what_may_not_begin_is_left_with_all_that_needs_it(tmp_path: Path) -> None:
    jobs = noting(tmp_path, Job("late", partial(note, tmp_path, "late"), ("first",)))
    found = do_all(jobs, jobs, 1, may_begin=lambda name: name != "first")
    assert found.done == ["second"]
    assert found.left == ["first", "late"]


def test_a_process_that_dies_takes_only_its_job_along(tmp_path: Path) -> None:
    jobs = noting(tmp_path, Job("deadly", die), Job("weak", partial(die_once, tmp_path)))
    found = do_all(jobs, jobs, 1)
    assert found.failed == {"deadly": "its process died"}
    assert sorted(found.done) == ["first", "second", "weak"]


@pytest.mark.parametrize("order", [("long", "deadly"), ("deadly", "long")])
def test_a_process_that_dies_fails_no_job_beside_it(tmp_path: Path, order: tuple[str, str]) -> None:
    both = {"long": Job("long", partial(last_long, tmp_path)), "deadly": Job("deadly", die_late)}
    jobs = {name: both[name] for name in order} | noting(tmp_path)
    found = do_all(jobs, jobs, 2)
    assert found.failed == {"deadly": "its process died"}
    assert sorted(found.done) == ["first", "long", "second"]


@pytest.mark.parametrize("beside", [True, False])
def test_a_process_that_dies_while_a_job_is_about_to_begin_stops_no_other(
    tmp_path: Path, beside: bool
) -> None:
    """Beside the job that ended, or right after its own job was told."""
    weak = Job("weak", partial(die_late_once if beside else die_when_done, tmp_path))
    jobs = {"weak": weak, **noting(tmp_path)}

    def may_begin(name: str) -> bool:
        until = time.monotonic() + 20
        while name == "second" and not (tmp_path / "died").exists() and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(1 if name == "second" else 0)  # the pool has seen it
        return True

    found = do_all(jobs, jobs, 2 if beside else 1, may_begin=may_begin)
    assert not found.failed
    assert sorted(found.done) == ["first", "second", "weak"]


def test_a_job_that_ends_the_program_ends_itself_alone(tmp_path: Path) -> None:
    jobs = noting(tmp_path, Job("ends", partial(sys.exit, "no such model")))
    found = do_all(jobs, jobs, 1)
    assert found.failed == {"ends": "SystemExit: no such model"}
    assert found.done == ["first", "second"]


def test_a_job_that_cannot_be_sent_or_tidied_up_after_stops_no_other(tmp_path: Path) -> None:
    jobs = noting(tmp_path, Job("local", lambda: None))
    found = do_all(jobs, jobs, 1, after=partial(fail, "the card is gone"))
    assert list(found.failed) == ["local"]
    assert found.done == ["first", "second"]
