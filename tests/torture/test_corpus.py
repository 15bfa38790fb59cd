"""The fuzzer itself, and all failures that it ever found: they stay mended."""

from __future__ import annotations

import json
import signal

import fuzz
import pytest

from logs import child

KEPT = sorted(path.parent for path in fuzz.CORPUS.glob("*/case.json"))


@pytest.fixture
def alarm():
    """The handler that stops a case which takes too long."""
    usual = signal.signal(signal.SIGPROF, fuzz.stop)
    yield
    signal.signal(signal.SIGPROF, usual)


@pytest.mark.parametrize("folder", KEPT, ids=lambda folder: folder.name)
def test_what_the_fuzzer_found_is_mended(folder, alarm):
    about = json.loads((folder / "case.json").read_text())
    name, good = about["log"], fuzz.good_log(about["log"])
    if (folder / "files").is_dir():
        files = fuzz.files_of(folder / "files")
        found = fuzz.attempt(lambda: fuzz.run_files(files, good), name, 0)
        assert found.outcome != "failed", found.why
    found = fuzz.attempt(
        lambda: fuzz.run_case(name, about["number"], about["seed"], good), name, about["number"]
    )
    assert found.outcome != "failed", found.why


# In a process of its own: workers are forked, which is best done before there are threads.
FEW = """
import json, os, signal, sys
import fuzz
fuzz.ALL_LOGS = {name: fuzz.ALL_LOGS[name] for name in ("bfcl", "table_csv")}
fuzz.WARM = ("table_csv",)
"""


def test_the_command_writes_a_table(tmp_path):
    out = tmp_path / "table.md"
    asked = ("--cases", 24, "--seed", 3, "--out", out, "--workers", 1)
    result = child(f"{FEW}sys.exit(fuzz.main())", *asked)
    assert result.returncode == 0, result.stderr
    counts = [line.split(" | ")[1:5] for line in out.read_text().splitlines()[4:7]]
    assert [int(tried) for tried, *_ in counts] == [12, 12, 24]
    for tried, *parts in counts:
        assert int(tried) == sum(map(int, parts))


POOL = """
usual, fuzz.SECONDS, fuzz.AT_A_STANDSTILL = fuzz.run_case, 1, 8

def hang():
    while True:
        pass

def hang_without_end():
    signal.signal(signal.SIGPROF, signal.SIG_IGN)
    hang()

def take_memory():
    return str(len(bytearray(4 * 2**30)))

def die():
    os._exit(1)

def have_a_bug():
    return {}["key"]

broken = dict(enumerate((hang, hang_without_end, take_memory, die, have_a_bug), start=1))

def run_case(name, number, *more):
    return broken[number]() if number in broken else usual(name, number, *more)

fuzz.run_case = run_case
pool = fuzz.Pool(1, seed=0)
print(json.dumps({each.number: each.why for each in pool.run([("table_csv", range(8))])}))
pool.close()
"""


def test_whatever_goes_wrong_is_a_failure_and_the_next_case_is_run():
    result = child(FEW + POOL)
    found = [why for _, why in sorted(json.loads(result.stdout).items())]
    wanted = ["", "Hang in ", "Hang in code that cannot be stopped", "MemoryError in ",
              "the process died", "KeyError in ", "", ""]  # fmt: skip
    assert len(found) == len(wanted), result.stderr
    for told, start in zip(found, wanted, strict=True):
        assert told.startswith(start), found
        assert bool(told) == bool(start), found


def test_a_failure_is_made_small_and_kept(tmp_path, monkeypatch, alarm):
    def run_files(files, _good):
        assert b"Nairobi" not in b"".join(files.values())
        return "read"

    monkeypatch.setattr(fuzz, "run_files", run_files)
    monkeypatch.setattr(fuzz, "CORPUS", tmp_path)
    bug = fuzz.attempt(lambda: run_files({"x": b"Nairobi"}, None), "openai_evals", 3)
    folder = fuzz.keep(bug, seed=0)
    (file,) = (path for path in (folder / "files").rglob("*") if path.is_file())
    assert b"Nairobi" in file.read_bytes()
    assert file.stat().st_size <= 64
    assert json.loads((folder / "case.json").read_text())["number"] == 3
