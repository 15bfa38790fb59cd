"""Hunt for logs that break a reader: malformed ones by the ten thousand.

    python tests/torture/fuzz.py --cases 20000 --seed 1 --out table.md

Each case is a golden log with its bytes, values or files damaged (`malformed`), known by its log,
number and seed. It must be read or refused with one clear line; every record of the file must be
among the rows that were read or among those left out; every fourth log is also paired with the good
one, and every row must be accounted for. A traceback, a hang or too much memory is a failure. It is
made as small as it can be and kept in `corpus/`, which the default tests replay.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "support"), str(HERE.parents[1] / "src")]

from forgetmap.readers.framework import ReadOptions  # noqa: E402
from forgetmap.readers.registry import read  # noqa: E402
from fuzzing import in_memory, pair_case, read_case, read_or_refuse, survives  # noqa: E402
from golden import ALL_LOGS, Files, write_files  # noqa: E402
from malformed import make_case  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from forgetmap.samples.table import Samples

CORPUS = HERE / "corpus"
SECONDS = 10
"""A case that takes longer hangs: in processor time, so that a busy machine makes no hangs."""
AT_A_STANDSTILL = 90
"""Seconds by the clock after which a worker that says nothing is given up."""
BYTES = 2**30
"""Memory that a case may take beyond what the program itself takes."""
PAIRED = 4
"""Every so many cases, what was read is also paired with the good log."""
WHOLE_WAY_OF_PAIRED = 10
"""Every so many of those, the log is also shown, compared and its flips are listed."""
WARM = ("table_jsonl", "samples_parquet")
"""Logs that are paired before memory is bounded, so that all code is loaded."""
AT_ONCE = 50
"""Cases handed to a worker in one go."""
SMALLER_STEPS = 150
"""Attempts to make a failure smaller."""


@dataclass(frozen=True)
class Found:
    """What became of one case."""

    log: str
    number: int
    outcome: str
    """read, refused or failed."""
    seconds: float
    why: str = ""
    """Of a failure: the kind of error and where it was raised."""


class Hang(BaseException):
    """A case took too long. Not an Exception, which a reader would turn into a refusal."""


def stop(_signal: int, _frame: object) -> None:
    """End a case that takes too long."""
    raise Hang(f"took longer than {SECONDS} s")


# --- one case -------------------------------------------------------------------------------------


def good_log(name: str) -> Samples:
    """The golden log that cases of that name were made from."""
    with tempfile.TemporaryDirectory() as folder:
        path = ALL_LOGS[name].write("before", Path(folder))
        return in_memory(read(path, ReadOptions(text=True, wording=True)))


def run_case(name: str, number: int, seed: int, good: Samples, paired: int = PAIRED) -> str:
    """Make a case and check all that must hold of it; every so many are paired."""
    with tempfile.TemporaryDirectory() as folder:
        case = make_case(ALL_LOGS[name], number, Path(folder), seed=seed)
        samples = read_case(case, good, Path(folder))
        if samples is None:
            return "refused"
        if number % paired == 0:
            pair_case(samples, good)
        if number % (WHOLE_WAY_OF_PAIRED * paired) == 0:
            survives(case.path)
        return "read"


def run_files(files: Files, good: Samples) -> str:
    """The same for files in memory."""
    with tempfile.TemporaryDirectory() as folder:
        samples = read_or_refuse(write_files(files, Path(folder)), Path(folder))
        if samples is None:
            return "refused"
        pair_case(in_memory(samples), good)
        return "read"


def attempt(check: Callable[[], str], name: str, number: int) -> Found:
    """Run a check in bounded time; whatever it raises is a failure."""
    start = time.monotonic()
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        outcome, why = check(), ""
    except (Exception, Hang) as error:
        outcome, why = "failed", describe(error)
    except BaseException as error:  # such as pytest's own, or Rust's panics
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        outcome, why = "failed", describe(error)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return Found(name, number, outcome, time.monotonic() - start, why)


def describe(error: BaseException) -> str:
    """The kind of an error and the last place of ours where it was raised: the same for one bug."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "forgetmap" in frame.filename or "support" in frame.filename
    ]
    where = f"{Path(frames[-1].filename).name}:{frames[-1].name}" if frames else "?"
    return f"{type(error).__name__} in {where}: {' '.join(str(error).split())[:160]}"


# --- many cases -----------------------------------------------------------------------------------

Task = tuple[str, range]


def work(tasks: Connection, seed: int, paired: int) -> None:
    """Run the cases that come in, one result each, until there is none left."""
    signal.signal(signal.SIGPROF, stop)
    share_database()
    good = {name: good_log(name) for name in ALL_LOGS}
    for name in WARM:
        pair_case(good[name], good[name])
    bound_memory()
    while task := tasks.recv():
        name, numbers = task
        for number in numbers:
            case = partial(run_case, name, number, seed, good[name], paired)
            tasks.send(attempt(case, name, number))
        tasks.send(None)


def share_database() -> None:
    """Open one database for all pairings of this process: opening takes longer than a pairing.

    Each pairing gets a connection of its own, so its views and tables stay its own too.
    """
    database = duckdb.connect(config={"threads": 1})
    duckdb.connect = lambda *_args, **_settings: database.cursor()


def bound_memory() -> None:
    """Let this process take no more than `BYTES` on top of what it has."""
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + BYTES
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


class Pool:
    """Workers that can hang or die without harm: the case is a failure, another takes over."""

    def __init__(self, workers: int, seed: int, paired: int = PAIRED) -> None:
        self.seed = seed
        self.paired = paired
        self.workers = [self._start() for _ in range(workers)]

    def _start(self) -> dict:
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.get_context("fork").Process(
            target=work, args=(theirs, self.seed, self.paired), daemon=True
        )
        process.start()
        theirs.close()
        return {"pipe": ours, "process": process, "left": [], "since": time.monotonic() + 60}

    def run(self, tasks: list[Task]) -> Iterator[Found]:
        """Run all tasks; results come in any order."""
        waiting = list(reversed(tasks))
        for worker in self.workers:
            self._give(worker, waiting)
        while busy := [worker for worker in self.workers if worker["left"]]:
            ready = wait([worker["pipe"] for worker in busy], timeout=1)
            for worker in busy:
                if worker["pipe"] in ready:
                    yield from self._take(worker, waiting)
                elif time.monotonic() - worker["since"] > AT_A_STANDSTILL:
                    yield from self._replace(worker, waiting, "Hang in code that cannot be stopped")

    def _give(self, worker: dict, waiting: list[Task]) -> None:
        if waiting:
            name, numbers = waiting.pop()
            worker["left"] = [(name, number) for number in numbers]
            worker["pipe"].send((name, numbers))

    def _take(self, worker: dict, waiting: list[Task]) -> Iterator[Found]:
        try:
            found = worker["pipe"].recv()
        except EOFError:
            yield from self._replace(worker, waiting, "the process died")
            return
        worker["since"] = time.monotonic()
        if found is None:
            worker["left"] = []
            self._give(worker, waiting)
        else:
            worker["left"].remove((found.log, found.number))
            if not worker["left"]:
                worker["left"] = [("", -1)]  # until it says that it is done
            yield found

    def _replace(self, worker: dict, waiting: list[Task], why: str) -> Iterator[Found]:
        worker["process"].kill()
        worker["process"].join()
        (name, number), *rest = worker["left"]
        since = worker["since"]
        waiting.extend((name, range(n, n + 1)) for _, n in rest)
        worker |= self._start()
        self._give(worker, waiting)
        if name:
            yield Found(name, number, "failed", time.monotonic() - since, why)

    def close(self) -> None:
        for worker in self.workers:
            worker["process"].kill()
            worker["process"].join()


# --- making failures small ------------------------------------------------------------------------


def files_of(folder: Path) -> Files:
    """The plain files of a case; links and pipes cannot be kept."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def make_small(found: Found, seed: int) -> Files | None:
    """The smallest files that fail in the same way; None where files alone do not."""
    good = good_log(found.log)
    with tempfile.TemporaryDirectory() as folder:
        make_case(ALL_LOGS[found.log], found.number, Path(folder), seed=seed)
        files = files_of(Path(folder))
    wanted = found.why.partition(":")[0]
    steps = 0

    def fails(candidate: Files) -> bool:
        nonlocal steps
        steps += 1
        if not candidate or len({name.partition("/")[0] for name in candidate}) != 1:
            return False
        told = attempt(lambda: run_files(candidate, good), found.log, found.number)
        return told.why.partition(":")[0] == wanted

    if not fails(files):
        return None
    for name in sorted(files, key=lambda name: -len(files[name])):
        fewer = {other: content for other, content in files.items() if other != name}
        if steps < SMALLER_STEPS and fails(fewer):
            files = fewer
    for name in list(files):
        rest = partial(_with_file, files, name)
        for cut in (_in_lines, _in_chunks):
            files[name] = _fewer_parts(
                cut(files[name]),
                lambda content, rest=rest: fails(rest(content)),
                lambda: steps < SMALLER_STEPS,
            )
    return files


def _with_file(files: Files, name: str, content: bytes) -> Files:
    return {**files, name: content}


def _in_lines(content: bytes) -> list[bytes]:
    return content.splitlines(keepends=True)


def _in_chunks(content: bytes) -> list[bytes]:
    return [content[start : start + 32] for start in range(0, len(content), 32)]


def _fewer_parts(
    parts: list[bytes], fails: Callable[[bytes], bool], may_go_on: Callable[[], bool]
) -> bytes:
    """Drop runs of parts, halves first, as long as the rest still fails."""
    size = len(parts) // 2
    while size and may_go_on():
        start = 0
        while start < len(parts) and may_go_on():
            fewer = parts[:start] + parts[start + size :]
            if fails(b"".join(fewer)):
                parts = fewer
            else:
                start += size
        size //= 2
    return b"".join(parts)


def keep(found: Found, seed: int) -> Path:
    """Keep a failure in the corpus: its seed, and its files where they are small."""
    folder = CORPUS / f"{found.log}-{seed}-{found.number}"
    folder.mkdir(parents=True, exist_ok=True)
    files = make_small(found, seed)
    if files and sum(map(len, files.values())) < 64_000:
        write_files({f"files/{name}": content for name, content in files.items()}, folder)
    about = {"seed": seed, **asdict(found), "seconds": round(found.seconds, 1)}
    (folder / "case.json").write_text(json.dumps(about, indent=2) + "\n")
    return folder


# --- the command ----------------------------------------------------------------------------------


def table(found: list[Found], seed: int, seconds: float) -> str:
    """Counts for each log, as Markdown."""
    lines = [
        f"{len(found):,} malformed logs with the seed {seed}, {len(found) / seconds:.0f} a second. "
        f"Each may take {SECONDS} s and {BYTES // 2**30} GiB.",
        "",
        "| log | tried | read | refused | failed | slowest, s |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name in (*ALL_LOGS, "all"):
        of_log = [each for each in found if name in (each.log, "all")]
        if of_log:
            counts = Counter(each.outcome for each in of_log)
            listed = " | ".join(f"{counts[kind]:,}" for kind in ("read", "refused", "failed"))
            slowest = max(each.seconds for each in of_log)
            lines.append(f"| {name} | {len(of_log):,} | {listed} | {slowest:.1f} |")
    failures = [each for each in found if each.outcome == "failed"]
    lines += ["", *(f"- {each.log}-{each.number}: {each.why}" for each in failures)]
    return "\n".join(lines).rstrip() + "\n"


def in_short(found: list[Found], seed: int, seconds: float) -> dict:
    """One line for the ledger of all runs."""
    counts = Counter(each.outcome for each in found)
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True
    )
    return {
        "day": time.strftime("%Y-%m-%d"),
        "commit": commit.stdout.strip(),
        "seed": seed,
        "tried": len(found),
        **{outcome: counts[outcome] for outcome in ("read", "refused", "failed")},
        "slowest": round(max((each.seconds for each in found), default=0), 1),
        "seconds": round(seconds),
    }


def main() -> int:
    """Run the cases; the exit code is 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="write the table of counts here")
    parser.add_argument("--json", type=Path, help="write the counts here")
    parser.add_argument("--ledger", type=Path, help="add a line with the counts to this file")
    parser.add_argument(
        "--paired", type=int, default=PAIRED, help="pair every so many cases with the good log"
    )
    parser.add_argument("--workers", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--keep", type=int, default=5, help="keep as many failures of each kind")
    asked = parser.parse_args()
    each = -(-asked.cases // len(ALL_LOGS))
    tasks = [
        (name, range(start, min(start + AT_ONCE, each)))
        for start in range(0, each, AT_ONCE)
        for name in ALL_LOGS
    ]
    start, pool, found = time.monotonic(), Pool(asked.workers, asked.seed, asked.paired), []
    kinds: Counter[str] = Counter()
    try:
        for one in pool.run(tasks):
            found.append(one)
            if one.outcome == "failed":
                print(f"{one.log}-{one.number}: {one.why}", flush=True)
    except KeyboardInterrupt:
        print(f"stopped after {len(found):,} cases", flush=True)
    finally:
        pool.close()
    seconds = time.monotonic() - start
    signal.signal(signal.SIGPROF, stop)
    if asked.ledger:
        with asked.ledger.open("a") as ledger:
            ledger.write(json.dumps(in_short(found, asked.seed, seconds)) + "\n")
    for one in found:
        if one.outcome == "failed":
            kind = f"{one.log} {one.why.partition(':')[0]}"
            kinds[kind] += 1
            if kinds[kind] <= asked.keep:
                print(f"kept in {keep(one, asked.seed).relative_to(HERE.parents[1])}")
    text = table(found, asked.seed, seconds)
    print(text)
    if asked.out:
        asked.out.write_text(text)
    if asked.json:
        faults = [f"{one.log}-{one.number}: {one.why}" for one in found if one.outcome == "failed"]
        tried = Counter(one.log for one in found)
        asked.json.write_text(json.dumps({"tried": tried, "faults": faults}, indent=2))
    return int(bool(kinds))


if __name__ == "__main__":
    sys.exit(main())
