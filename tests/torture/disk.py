"""Lets the disk fail under verbs that write: killed, or full, at the Nth event.

    python tests/torture/disk.py                 # every event of every verb
    python tests/torture/disk.py --each 5        # five events of each, spread out

Each verb writes over what an earlier run left. After a failure every file must be as it was or as
the verb would have left it, never something between. A full disk must be told in one line, with
exit code 2. `failing_disk.c` is preloaded, which takes a C compiler; the verbs run in forks of one
process that has imported everything, so that a case takes a fraction of a second.
"""

from __future__ import annotations

import argparse
import ctypes
import json
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

from counts import finish

HERE = Path(__file__).resolve().parent
COUNT, KILL, FULL = 1, 2, 3
VERBS: dict[str, list[str]] = {
    "compare --save": ["compare", "before.jsonl", "after.jsonl", "--save", "saved"],
    "compare, all files": [
        *("compare", "before.jsonl", "after.jsonl", "--json", "map.json", "--csv", "map.csv"),
        *("--latex", "map.tex", "--flips", "flips.csv", "--report", "map.html"),
    ],
    "convert": ["convert", "after.jsonl", "log.parquet"],
    "baseline save": ["baseline", "save", "new", "after.jsonl"],
    "baseline compare": ["baseline", "compare", "base", "after.jsonl", "--json", "base.json"],
    "lineage": [
        *("lineage", "pipeline.yaml", "--json", "lineage.json", "--report", "lineage.html"),
    ],
    "gate init": ["gate", "init", "first.json", "--out", "gate.yaml"],
    "gate check": [
        *("gate", "check", "first.json", "--policy", "loose.yaml", "--json", "gate.json"),
        *("--junit", "gate.xml", "--markdown", "gate.md"),
    ],
}
"""What is run, in a folder with logs and the outputs of an earlier run."""


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


def torture(verbs: list[str], each: int | None) -> tuple[Counter[str], list[str]]:
    """Try every case; how many of each verb were tried, and what did not hold."""
    import forgetmap.cli.app  # noqa: F401  the forks share it

    tried: Counter[str] = Counter()
    faults: list[str] = []
    with tempfile.TemporaryDirectory(prefix="forgetmap-torture-") as name:
        bench = Bench(Path(name))
        for verb in verbs:
            for case in bench.cases(verb, each):
                tried[f"{verb}, {'killed' if case.how == KILL else 'disk full'}"] += 1
                try:
                    bench.check(case)
                except Fault as fault:
                    faults.append(f"{case}: {fault}")
    return tried, faults


class Bench:
    """A folder as the earlier run left it, and what each verb makes of it undisturbed."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.start = home / "start"
        self.start.mkdir()
        prepared = run(self.start, _prepare)
        if prepared.code:
            raise RuntimeError(f"the earlier run fails: {prepared.told}")

    def cases(self, verb: str, each: int | None) -> Iterator[Case]:
        """Each event of a verb, or some of them, as a kill and as a full disk."""
        made = self.home / f"made by {verb}"
        shutil.copytree(self.start, made)
        result = run(made, lambda: _verb(verb), COUNT)
        if result.code:
            raise RuntimeError(f"{verb} fails undisturbed: {result.told}")
        numbers = range(1, result.events + 1)
        chosen = random.Random(verb).sample(numbers, min(each, len(numbers))) if each else numbers
        for number in chosen:
            yield from (Case(verb, how, number) for how in (KILL, FULL))

    def check(self, case: Case) -> None:
        """Let one case happen; Fault where a promise does not hold."""
        place = self.home / "case"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(self.start, place)
        result = run(place, lambda: _verb(case.verb), case.how, case.number)
        if case.how == FULL and result.code:
            lines = result.told.strip().splitlines()
            if result.code != 2 or not lines or "Traceback" in result.told:
                raise Fault(f"exit code {result.code}: {result.told[-300:]}")
        made = self.home / f"made by {case.verb}"
        for path in sorted(path for path in place.rglob("*") if path.is_file()):
            name = path.relative_to(place)
            if name.name.endswith(".part") and case.how == KILL:
                continue  # swept by the next run
            if not any(_same(path, folder / name) for folder in (self.start, made)):
                raise Fault(f"{name} is neither as before nor as it should be")
        if case.verb == "gate init":
            (place / "gate.yaml").unlink(missing_ok=True)  # it never writes over a policy
        again = run(place, lambda: _verb(case.verb))
        if again.code:
            raise Fault(f"the next run fails: {again.told[-300:]}")


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


def _verb(verb: str) -> None:
    from forgetmap.cli.app import main as forgetmap

    sys.argv = ["forgetmap", *VERBS[verb]]
    forgetmap()


def _same(one: Path, other: Path) -> bool:
    """Whether two files hold the same, but for the time that they tell."""
    if not other.is_file():
        return False
    if one.read_bytes() == other.read_bytes():
        return True
    if one.parent.name != "names" and one.name != "history.jsonl":
        return False
    return [_without_time(line) for line in _objects(one)] == [
        _without_time(line) for line in _objects(other)
    ]


def _objects(path: Path) -> list[dict[str, object]]:
    text = path.read_text()
    lines = text.splitlines() if path.suffix == ".jsonl" else [text]
    try:
        return [json.loads(line) for line in lines if line.strip()]
    except json.JSONDecodeError:
        return []


def _without_time(line: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in line.items() if key not in ("time", "saved", "checksum")}


def _prepare() -> None:
    """Logs, and the outputs of an earlier run on other logs."""
    rng = random.Random(4)
    for name, right in (("before", 0.7), ("between", 0.6), ("after", 0.5), ("other", 0.4)):
        rows = [
            {
                "task": f"task{i % 3}",
                "question": f"what is {i}?",
                "response": f"{name} says {i * 7}",
                "correct": int(rng.random() < right),
            }
            for i in range(90)
        ]
        Path(f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("loose.yaml").write_text("version: 1\nlimits:\n  - {where: total, max: 1.0}\n")
    pipeline = "checkpoints:\n  before: {log: before.jsonl}\n"
    pipeline += "  between: {log: between.jsonl, parents: before}\n"
    Path("pipeline.yaml").write_text(f"{pipeline}  after: {{log: other.jsonl, parents: between}}\n")
    earlier = [
        *(VERBS[verb] for verb in ("compare --save", "compare, all files", "convert", "lineage")),
        ["baseline", "save", "base", "before.jsonl"],
        VERBS["baseline compare"],
        ["compare", "before.jsonl", "other.jsonl", "--json", "first.json"],
        VERBS["gate check"],
    ]
    from forgetmap.cli.app import main as forgetmap

    for command in earlier:
        sys.argv = [
            "forgetmap",
            *("other.jsonl" if one == "after.jsonl" else one for one in command),
        ]
        if code := _exit_code(forgetmap):
            raise SystemExit(code)
    Path("pipeline.yaml").write_text(f"{pipeline}  after: {{log: after.jsonl, parents: between}}\n")


if __name__ == "__main__":
    main()
