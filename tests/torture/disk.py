"""Lets the disk fail under verbs that write: killed, or full, at the Nth event.

    python tests/torture/disk.py                 # every event of every verb
    python tests/torture/disk.py --each 5        # five events of each, spread out

Each verb writes over what an earlier run left. After a failure every file must be as it was or as
the verb would have left it, never something between. A full disk must be told in one line, with
exit code 2. The same command again must then leave what an undisturbed run leaves; it is not run
where the failure left everything as it was.
`failing_disk.c` is preloaded, which takes a C compiler; the verbs run in forks of processes that
have imported everything, so that a case takes a fraction of a second.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import importlib
import multiprocessing
import os
import random
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import verbs
from counts import finish
from verbs import VERBS

HERE = Path(__file__).resolve().parent
COUNT, KILL, FULL = 1, 2, 3
MEMORY, NEEDED = Path("/dev/shm"), 2 * 2**30
"""Where files need no real disk, if that many bytes are free: what fails is made up anyway."""
GROWING = ("answers.jsonl", "history.jsonl")
"""Files of which each line stands for itself, in any order."""


@dataclass(frozen=True)
class Case:
    """One verb, one failure."""

    verb: str
    how: int
    number: int

    def __str__(self) -> str:
        """For people to repeat it."""
        return f"{self.verb}: {'killed' if self.how == KILL else 'full'} at event {self.number}"


class Fault(Exception):
    """What did not hold."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--each", type=int, help="events of each verb; all, if not given")
    parser.add_argument("--verb", help="only this one")
    parser.add_argument("--json", type=Path, help="write the counts here")
    chosen = parser.parse_args()
    if "FORGETMAP_FAILING_DISK" not in os.environ:
        sys.exit(preloaded([sys.executable, *sys.argv]))
    tried, faults = torture([chosen.verb] if chosen.verb else list(VERBS), chosen.each)
    finish(tried, faults, "failures of the disk", chosen.json)


def preloaded(command: list[str]) -> int:
    """Run a command with the failing disk under it."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "failing_disk.so")
        build = ["cc", "-shared", "-fPIC", "-O1", "-o", library, HERE / "failing_disk.c", "-ldl"]
        subprocess.run(build, check=True)
        told = {"LD_PRELOAD": str(library), "FORGETMAP_FAILING_DISK": "1"}
        return subprocess.run(command, env={**os.environ, **told}, check=False).returncode


def torture(names: list[str], each: int | None) -> tuple[Counter[str], list[str]]:
    """Try every case; how many of each verb were tried, and what did not hold."""
    tried: Counter[str] = Counter()
    faults: list[str] = []
    with (
        tempfile.TemporaryDirectory(prefix="forgetmap-torture-", dir=_place()) as home,
        verbs.serving() as server,
    ):
        bench = Bench(Path(home), server)
        cases = [case for name in names for case in bench.cases(name, each)]
        with multiprocessing.get_context("fork").Pool(os.cpu_count()) as workers:
            for case, fault in workers.imap_unordered(bench.check, cases):
                tried[case.verb] += 1
                faults += [f"{case}: {fault}"] if fault else []
    return tried, sorted(faults)


def _place() -> Path | None:
    """A disk in memory, where there is one that is large enough."""
    return MEMORY if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > NEEDED else None


class Bench:
    """A folder as the earlier run left it, and what each verb makes of it undisturbed."""

    def __init__(self, home: Path, server: str) -> None:
        self.home, self.server = home, server
        self.start = home / "start"
        self.start.mkdir()
        prepared = run(self.start, self._prepare)
        if prepared.code:
            raise RuntimeError(f"the earlier run fails: {prepared.told}")
        for name in (home / "modules").read_text().split():
            with contextlib.suppress(Exception):  # some can only be imported by others
                importlib.import_module(name)

    def _prepare(self) -> None:
        verbs.prepare(self.server)
        (self.home / "modules").write_text("\n".join(sys.modules))

    def cases(self, verb: str, each: int | None) -> Iterator[Case]:
        """Each event of a verb, or some of them, as a kill and as a full disk."""
        made = self._made(verb)
        shutil.copytree(self.start, made)
        result = run(made, lambda: self._run(verb), COUNT)
        if result.code:
            raise RuntimeError(f"{verb} fails undisturbed: {result.told}")
        numbers = range(1, result.events + 1)
        chosen = random.Random(verb).sample(numbers, min(each, len(numbers))) if each else numbers
        for number in chosen:
            yield from (Case(verb, how, number) for how in (KILL, FULL))

    def check(self, case: Case) -> tuple[Case, str]:
        """Let one case happen, in a folder of this process; what did not hold, if anything."""
        place = self.home / f"process {os.getpid()}" / "case"
        try:
            shutil.rmtree(place.parent, ignore_errors=True)
            shutil.copytree(self.start, place)
            self._fail(case, place)
            if _all_files(place) != _all_files(self.start):
                self._repeat(case, place)  # else the next run is the undisturbed one
        except Fault as fault:
            return case, str(fault)
        return case, ""

    def _fail(self, case: Case, place: Path) -> None:
        """Run the verb with the disk failing; Fault where it leaves a file half written."""
        result = run(place, lambda: self._run(case.verb), case.how, case.number)
        if case.how == FULL and result.code:
            lines = result.told.strip().splitlines()
            if result.code != 2 or not lines or "Traceback" in result.told:
                raise Fault(f"exit code {result.code}: {result.told[-300:]}")
        for name, path in files(place).items():
            if case.how == KILL and any(part.endswith(".part") for part in name.parts):
                continue  # swept by a later run
            if not any(
                _same(path, folder / name) for folder in (self.start, self._made(case.verb))
            ):
                raise Fault(f"{name} is neither as before nor as it should be")

    def _repeat(self, case: Case, place: Path) -> None:
        """Run the verb again; Fault where that does not leave what an undisturbed run leaves."""
        for name in VERBS[case.verb].fresh.split():
            made = place / name  # it never writes over these
            shutil.rmtree(made) if made.is_dir() else made.unlink(missing_ok=True)
        again = run(place, lambda: self._run(case.verb))
        if again.code:
            raise Fault(f"the next run fails: {again.told[-300:]}")
        for name, path in files(self._made(case.verb)).items():
            if not _same(path, place / name):
                raise Fault(f"the next run leaves another {name}")

    def _made(self, verb: str) -> Path:
        return self.home / f"made by {verb}"

    def _run(self, verb: str) -> None:
        verbs.run(VERBS[verb].words, self.server)


def files(folder: Path) -> dict[Path, Path]:
    """All files by their names, but for databases: what is made of them must be right."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder): path for path in found if ".sqlite" not in path.name}


def _all_files(folder: Path) -> dict[Path, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder): path.read_bytes() for path in found}


def _same(one: Path, other: Path) -> bool:
    """Whether two files hold the same; one that grows may have some of the other's lines."""
    if not other.is_file():
        return False
    if one.name in GROWING:
        return {*one.read_bytes().splitlines()} <= {*other.read_bytes().splitlines()}
    return one.read_bytes() == other.read_bytes()


@dataclass(frozen=True)
class Result:
    """How a verb ended."""

    code: int
    told: str
    events: int


def run(folder: Path, what: Callable[[], None], how: int = 0, number: int = 0) -> Result:
    """Do something in a fork, in a folder, with the disk failing as asked."""
    told, counts = folder.parent / "told.txt", folder.parent / "events.txt"
    child = os.fork()
    if not child:
        code = 71
        try:
            os.chdir(folder)
            temporary = folder.parent / "temporary"
            temporary.mkdir(exist_ok=True)
            tempfile.tempdir = str(temporary)
            stream = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            pipe, end = os.pipe()  # what is printed must not count as written to a file
            os.dup2(end, 1)
            os.dup2(end, 2)
            library = ctypes.CDLL(None)
            if how:
                library.arm(how, number)
            code = _exit_code(what)
            if how:
                library.disarm()
            counts.write_text(str(library.counted() if how else 0))
            sys.stdout.flush()
            sys.stderr.flush()
            os.set_blocking(pipe, False)
            os.write(stream, _drain(pipe))
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    events = int(counts.read_text()) if code >= 0 and counts.is_file() else 0
    return Result(max(code, 0), told.read_text(errors="replace") if code > 0 else "", events)


def _drain(pipe: int) -> bytes:
    try:
        return os.read(pipe, 2**16)
    except BlockingIOError:
        return b""


def _exit_code(what: Callable[[], None]) -> int:
    try:
        what()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except BaseException:
        traceback.print_exc()
        return 70
    return 0


if __name__ == "__main__":
    main()
