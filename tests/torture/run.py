"""All of it: malformed logs, failing disks, flipped bits, several writers, hostile answers.

    python tests/torture/run.py                     # everything, under an hour
    python tests/torture/run.py --short             # ten minutes
    python tests/torture/run.py --out ../torture.md # also write the table of counts

Exits with 1 if anything did not hold.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LEDGER = HERE / "ledger.jsonl"
"""Every run of the fuzzer that counts: `fuzz.py --ledger` adds a line."""
EVENTS = "3"
"""Of each command, at which the short part lets the disk fail."""


class Part(NamedTuple):
    """One kind of torture: a script of this folder, or tests whose cases count."""

    what: str
    """For the table; `{kinds}` stands for how many kinds of cases the script counts."""
    promise: str
    script: str = ""
    tests: str = ""
    whole: tuple[str, ...] = ()
    short: tuple[str, ...] = ()


PARTS = (
    Part(
        "malformed logs, over every reader",
        "read or refused in one line; every row accounted for; under 10 s and 1 GiB",
        script="fuzz.py", whole=("--cases", "20000"), short=("--cases", "3000"),
    ),
    Part(
        "kills and full disks, at file events of {kinds} commands that write",
        "each file is as before or as it should be; a full disk is one line; the same command "
        "again leaves what an undisturbed run leaves",
        script="disk.py", short=("--each", EVENTS),
    ),
    Part(
        "flipped bits, in {kinds} kinds of stored files",
        "refused, or harmless",
        script="flips.py", whole=("--each", "2000"), short=("--each", "200"),
    ),
    Part(
        "four writers of one thing at once",
        "one wins a name; a save is whole; no line is lost",
        script="writers.py", whole=("--rounds", "30"), short=("--rounds", "5"),
    ),
    Part(
        "ways in which an endpoint misbehaves",
        "a right answer, a counted failure or one line; never a number",
        tests="tests/evaluate/test_hostile_endpoint.py",
    ),
    Part(
        "attacks on the sandbox, in every mode that the machine has",
        "nothing gets out, nothing is forged",
        tests="tests/capabilities/test_sandbox.py",
    ),
)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="the part that takes ten minutes")
    parser.add_argument("--seed", default="1", help="of the malformed logs and the bits")
    parser.add_argument("--out", type=Path, help="write the table of counts here")
    asked = parser.parse_args()
    rows, held = [], True
    for part in PARTS:
        begun = time.monotonic()
        part, tried, faults = run(part, asked.short, asked.seed)
        held = held and faults == 0
        rows.append((part, tried, faults))
        print(f"{part.what}: {tried} tried, {faults} faults, {time.monotonic() - begun:.0f} s")
    if asked.out:
        asked.out.write_text(page(rows, asked.short, asked.seed))
    return int(not held)


def run(part: Part, short: bool, seed: str) -> tuple[Part, int | None, int]:
    """The part, cases tried (None where the machine cannot) and how many of them did not hold."""
    if part.script == "disk.py" and shutil.which("cc") is None:
        print("no C compiler: the disk cannot be made to fail")
        return part._replace(what=part.what.format(kinds="all")), None, 0
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder, "counts")
        if part.tests:
            command = ["-m", "pytest", "-q", "-m", "", f"--junit-xml={counts}", part.tests]
            subprocess.run([sys.executable, *command], cwd=ROOT, check=False)
            suite = ElementTree.parse(counts).getroot().find("testsuite")
            numbers = {
                name: int(suite.get(name)) for name in ("tests", "skipped", "failures", "errors")
            }
            faults = numbers["failures"] + numbers["errors"]
            return part, numbers["tests"] - numbers["skipped"], faults
        options = list(part.short if short else part.whole)
        if part.script in ("fuzz.py", "flips.py"):
            options += ["--seed", seed]
        command = [sys.executable, str(HERE / part.script), *options, "--json", str(counts)]
        code = subprocess.run(command, cwd=ROOT, check=False).returncode
        if not counts.is_file():
            raise SystemExit(f"{part.script} ended with {code} before it had counted")
        told = json.loads(counts.read_text())
        part = part._replace(what=part.what.format(kinds=len(told["tried"])))
        return part, sum(told["tried"].values()), len(told["faults"])


def ledger_lines() -> list[str]:
    """All malformed logs that were ever tried, by the code that read them."""
    runs = [json.loads(line) for line in LEDGER.read_text().splitlines()]
    tried, failed = (sum(run[name] for run in runs) for name in ("tried", "failed"))
    lines = [
        "",
        "## Malformed logs, all runs",
        "",
        f"{tried:,} malformed logs have been tried since {runs[0]['day']}, in {len(runs)} runs",
        f"with a seed each. {failed} of them failed. A failure is mended, and its log is kept and",
        "tried again by every `make test`. *slowest* is by the clock, beside other work.",
        "",
        "| day | commit | runs | tried | read | refused | failed | slowest, s |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    places = dict.fromkeys((run["day"], run["commit"]) for run in runs)
    for day, commit in places:
        mine = [run for run in runs if (run["day"], run["commit"]) == (day, commit)]
        names = ("tried", "read", "refused", "failed")
        counts = " | ".join(f"{sum(run[name] for run in mine):,}" for name in names)
        slowest = max(run["slowest"] for run in mine)
        lines.append(f"| {day} | {commit} | {len(mine)} | {counts} | {slowest} |")
    return lines


def page(rows: list[tuple[Part, int | None, int]], short: bool, seed: str) -> str:
    """The table for the docs."""
    lines = [
        "# What forgetmap was put through",
        "",
        "`make torture` attacks forgetmap in six ways and writes this page. It ends with an error",
        "if a case does not hold. `.ci/run` runs a short part of it.",
        "",
        f"This is {'the short' if short else 'a whole'} run with seed {seed}."
        + (f" It lets the disk fail at {EVENTS} events of each command." if short else ""),
        "",
        "| what | tried | held | the promise |",
        "| --- | --- | --- | --- |",
    ]
    for part, tried, faults in rows:
        counts = "not on this machine | " if tried is None else f"{tried:,} | {tried - faults:,}"
        lines.append(f"| {part.what} | {counts} | {part.promise} |")
    lines += ledger_lines()
    lines += [
        "",
        "The seed, the log and the number of a malformed log make it again. Those that once broke",
        "something are kept in `tests/torture/corpus` and tried by every `make test`.",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
