"""Tiny logs for tests, and the command line run on them."""

from __future__ import annotations

import csv
import ctypes
import io
import json
import os
import random
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from forgetmap.cli.app import app
from forgetmap.map import comparison
from forgetmap.map.result import ForgettingMap

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from click.testing import Result

STAMP = "2026-01-31T12-00-00.000001"
QUICK = ("--draws", "100")
"""Few bootstrap draws: these tests ask whether an answer comes, not how wide its interval is."""


# --- records --------------------------------------------------------------------------------------


def items(scores: Iterable[Any], **more: Any) -> list[dict[str, Any]]:
    """Rows of a plain table, one per score: questions q0, q1, ..."""
    return [{"question": f"q{i}", "correct": s, **more} for i, s in enumerate(scores)]


def lm_eval_record(number: int, score: Any = 1.0, metric: str = "acc", **more: Any) -> dict:
    """One line of an lm-eval samples file."""
    return {
        "doc_id": number,
        "doc": {"question": f"q{number}"},
        "target": f"t{number}",
        "arguments": {"gen_args_0": {"arg_0": f"prompt {number}", "arg_1": {}}},
        "resps": [[f"response {number}"]],
        "filtered_resps": [f"answer {number}"],
        "filter": "none",
        "metrics": [metric],
        metric: score,
        **more,
    }


# --- files ----------------------------------------------------------------------------------------


def write_jsonl(path: Path, records: Iterable[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def csv_text(records: Sequence[dict[str, Any]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(records[0]))
    writer.writeheader()
    writer.writerows(records)
    return out.getvalue()


def write_csv(path: Path, records: Sequence[dict[str, Any]], encoding: str = "utf-8") -> Path:
    path.write_bytes(csv_text(records).encode(encoding))
    return path


def write_parquet(path: Path, records: Sequence[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(records)), path)
    return path


def write_lm_eval(
    folder: Path,
    records: Iterable[Any],
    task: str = "sums",
    results: Any = None,
    stamp: str = STAMP,
) -> Path:
    """Write an lm-eval folder: the samples of one task, and a results file where one is given."""
    write_jsonl(folder / f"samples_{task}_{stamp}.jsonl", records)
    if results is not None:
        (folder / f"results_{stamp}.json").write_text(json.dumps(results))
    return folder


def sparse(path: Path, size: int = 10 * 2**30, head: bytes = b"") -> Path:
    """Make a file of that size which takes no room on disk: a head, then zeros."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(head)
    os.truncate(path, size)
    return path


def content_of(folder: Path) -> dict[str, bytes | None]:
    """Every path under a folder, hidden ones too, with the content of plain files."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


# --- the command line -----------------------------------------------------------------------------


class Workplace:
    """A folder, and the command line run in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __truediv__(self, name: str) -> Path:
        return self.folder / name

    def run(self, *arguments: object) -> Result:
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    def refused(self, *arguments: object, says: Iterable[str] = (), code: int = 2) -> str:
        """Run what must fail: one clear line, the right code, and nothing written or changed."""
        there = content_of(self.folder)
        result = self.run(*arguments)
        assert_one_line(result.exit_code, result.stdout, result.stderr, says, code, result)
        assert content_of(self.folder) == there
        return result.stderr

    def compared(self, *arguments: object) -> ForgettingMap:
        """Run `compare` on what must work; returns the map."""
        result = self.worked("compare", *arguments, *QUICK, "--json", "-")
        return ForgettingMap.from_json(result.stdout)

    def worked(self, *arguments: object) -> Result:
        result = self.run(*arguments)
        assert (result.exit_code, result.stderr) == (0, ""), (result.stderr, result.exception)
        return result


def assert_one_line(
    code_found: int, out: str, err: str, says: Iterable[str], code: int, context: object = None
) -> None:
    """Assert the promise for bad input: `forgetmap: what, where, what to do`, and the exit code."""
    assert "Traceback" not in err, err
    assert code_found == code, (code_found, err, context, getattr(context, "exception", None))
    assert err.startswith("forgetmap: "), err
    assert err.endswith("\n")
    assert len(err.splitlines()) == 1, err
    assert_safe_for_a_terminal(err)
    assert out == ""
    for text in says:
        assert text in err, (text, err)


CONTROLS = {
    *map(chr, (*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))),
    *"\u061c\u200e\u200f\u2028\u2029",
}
"""What a terminal obeys instead of showing it, and what turns text around or breaks lines."""


def assert_safe_for_a_terminal(text: str) -> None:
    found = CONTROLS.intersection(text) - {"\n"}
    assert not found, sorted(found)
    assert max(len(line) for line in text.split("\n")) <= 700


# --- real processes -------------------------------------------------------------------------------


def child(
    code: str, *arguments: object, timeout: float = 120, prefix: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    """Run Python code in a process of its own, with this process's import path."""
    return subprocess.run(
        [*prefix, sys.executable, "-c", code, *(str(argument) for argument in arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=timeout,
    )


# --- shared by the tests of bad input -------------------------------------------------------------

ALL_OUTPUTS = (
    *("--json", "map.json", "--csv", "map.csv", "--latex", "map.tex"),
    *("--flips", "flips.csv"),
)


@contextmanager
def without_override() -> Iterator[None]:
    """Permissions hold for root too: it gives up CAP_DAC_OVERRIDE and _READ_SEARCH for a while."""
    if os.geteuid():
        yield
        return
    if sys.platform != "linux":
        pytest.skip("root may read and write everything here")
    libc = ctypes.CDLL(None, use_errno=True)
    version_and_process = (ctypes.c_uint32 * 2)(0x20080522, 0)
    usual = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; then the higher halves
    libc.capget(version_and_process, usual)
    fewer = (ctypes.c_uint32 * 6)(usual[0] & ~0b110, *usual[1:])
    assert libc.capset(version_and_process, fewer) == 0, os.strerror(ctypes.get_errno())
    try:
        yield
    finally:
        libc.capset(version_and_process, usual)


def details(number: int, **changed: object) -> dict:
    """One row of a lighteval details file (0.11 and later)."""
    return {
        "doc": {"query": f"q{number}", "choices": ["a", "b"], "gold_index": [0], "id": str(number)},
        "metric": {"acc": 1.0},
        "model_response": {"logprobs": [-1.0, -2.0], "text": ["a"], "input": f"q{number}"},
        **changed,
    }


def refused_by_every_command(work: Workplace, path: str, says: tuple[str, ...]) -> None:
    """Whichever command reads the path, on whichever side: refused, with the path in the line."""
    write_jsonl(work / "good.jsonl", items([1, 0, 1]))
    for arguments in (
        ["show", path, "--json", "summary.json"],
        ["convert", path, "out.parquet"],
        ["compare", path, "good.jsonl", *ALL_OUTPUTS],
        ["compare", "good.jsonl", path, *ALL_OUTPUTS],
    ):
        work.refused(*arguments, says=(path, *says))


NOISE = random.Random(0).randbytes(5000)
NO_SCORE = ("no column says what was right", "--column")
COMPARISON = comparison
"""The module in which a comparison looks up what it calls, to put something else there."""
