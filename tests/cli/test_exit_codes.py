"""Exit codes say whose failure it was; an error of ours never looks like a broken gate."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from forgetmap.base.errors import InputError, WithheldError
from logs import Workplace, assert_one_line, child, content_of, items, write_jsonl

TEXT = "the question that nobody else may see"


def fail(error: Exception):
    def failing(*_args: object, **_named: object) -> None:
        raise error

    return failing


@pytest.fixture
def temporary(work: Workplace, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files, to see what is left there."""
    folder = work / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.mark.parametrize(
    "error",
    [
        KeyError(TEXT),
        ValueError(TEXT),
        RuntimeError(TEXT),
        RecursionError(TEXT),
        MemoryError(TEXT),
        EOFError(TEXT),
        OSError(5, TEXT),
        ExceptionGroup(TEXT, [KeyError(TEXT)]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_internal_error_is_70_with_a_report_to_send_in(
    work: Workplace,
    pair: tuple[str, str],
    temporary: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
) -> None:
    monkeypatch.setattr("forgetmap.api.compare", fail(error))
    words = ["compare", *pair, "--gate", "max-forgetting=0.5"]
    monkeypatch.setattr(sys, "argv", ["forgetmap", *words])
    found = work.run(*words)
    assert_one_line(found.exit_code, found.stdout, found.stderr, ("internal error",), 70)
    [report] = temporary.glob("forgetmap-error-*.txt")
    assert str(report) in found.stderr
    text = report.read_text()
    assert "test_exit_codes.py" in text
    assert "in failing" in text
    assert "command: forgetmap compare before.jsonl after.jsonl --gate" in text
    assert re.search(r"duckdb \d", text)
    assert TEXT not in text + found.stderr
    assert stat.S_IMODE(report.stat().st_mode) == 0o600


def test_the_errors_behind_an_error_are_told_too(work, pair, temporary, monkeypatch) -> None:
    def failing(*_args: object, **_named: object) -> None:
        try:
            raise KeyError(TEXT)
        except KeyError as error:
            raise RuntimeError(TEXT) from error

    monkeypatch.setattr("forgetmap.api.compare", failing)
    assert work.run("compare", *pair).exit_code == 70
    [report] = temporary.iterdir()
    assert re.search(r"KeyError\nwhich led to:\n(.|\n)*RuntimeError\n$", report.read_text())


def test_a_command_line_is_told_without_secrets(work, pair, temporary, monkeypatch) -> None:
    monkeypatch.setenv("FORGETMAP_JUDGE_KEY", "very-private-value")
    monkeypatch.setattr("forgetmap.api.compare", fail(KeyError("x")))
    secrets = [
        "very-private-value",
        "https://me:pass1234@host/v1#m",
        "http://host/v1?api_key=abcdef99",
        "lm-eval:openai:api_key=abcdef99,model=m",
        "sk-abcdefghijkl",
        "hf_abcdefghijkl",
    ]
    monkeypatch.setattr(sys, "argv", ["forgetmap", "compare", *secrets])
    assert work.run("compare", *pair).exit_code == 70
    [report] = temporary.iterdir()
    text = report.read_text()
    assert text.count("[hidden]") == len(secrets)
    for secret in ("private", "pass1234", "abcdef99", "abcdefghijkl"):
        assert secret not in text


def test_where_no_report_can_be_written_it_is_70_all_the_same(work, pair, monkeypatch) -> None:
    monkeypatch.setattr("forgetmap.api.compare", fail(KeyError("x")))
    monkeypatch.setattr(tempfile, "tempdir", str(work / "nowhere"))
    work.refused("compare", *pair, says=("internal error", "no report could be written"), code=70)


def test_a_failure_while_something_is_printed_is_not_a_broken_gate(
    work: Workplace, pair: tuple[str, str], temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind the part in which bad input is expected."""
    monkeypatch.setattr("forgetmap.views.terminal.maps.print_map", fail(ValueError("x")))
    assert work.run("compare", *pair).exit_code == 70
    monkeypatch.setattr("forgetmap.views.terminal.maps.print_map", fail(InputError("bad")))
    assert work.run("compare", *pair).exit_code == 2
    monkeypatch.setattr("forgetmap.views.terminal.maps.print_map", fail(WithheldError("no")))
    assert work.run("compare", *pair).exit_code == 3
    monkeypatch.setattr("forgetmap.views.terminal.maps.print_map", fail(KeyboardInterrupt()))
    assert work.run("compare", *pair).exit_code == 130


def test_as_part_of_another_program_errors_pass(work, pair, temporary, monkeypatch) -> None:
    from forgetmap.cli.app import app

    monkeypatch.setattr("forgetmap.api.compare", fail(KeyError("x")))
    with pytest.raises(KeyError):
        app(["compare", *pair], standalone_mode=False)
    assert content_of(temporary) == {}


@pytest.mark.parametrize(
    ("gate", "code"), [("max-forgetting=0.9", 0), ("max-forgetting=0.001", 1), ("max=x", 2)]
)
def test_the_gate_keeps_its_codes(work: Workplace, gate: str, code: int) -> None:
    write_jsonl(work / "before.jsonl", items([1] * 60))
    write_jsonl(work / "after.jsonl", items([1, 0] * 30))
    assert work.run("compare", "before.jsonl", "after.jsonl", "--gate", gate).exit_code == code


def test_the_pytest_plug_in_keeps_its_codes(work: Workplace) -> None:
    """A broken policy fails its test, and pytest ends with its own code."""
    (work / "test_it.py").write_text(
        "import forgetmap\n"
        "from forgetmap.pytest_plugin import assert_keeps\n"
        "def test_keeps():\n"
        "    assert_keeps(forgetmap.demo(), {'limits': [{'measure': 'drop', 'max': 0.02}]})\n"
        "def test_breaks():\n"
        "    assert_keeps(forgetmap.demo(), {'limits': [{'measure': 'raw', 'max': 0.05}]})\n"
    )
    ran = child("import pytest, sys; sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider']))")
    assert ran.returncode == 1, ran.stdout
    assert "BLOCK" in ran.stdout
    assert "1 failed, 1 passed" in ran.stdout


def test_a_reader_that_goes_away_is_not_a_broken_gate(work: Workplace) -> None:
    write_jsonl(work / "before.jsonl", items([1, 0] * 9))
    reading, writing = os.pipe()
    os.close(reading)
    code = "import sys; sys.argv[0] = 'forgetmap'; from forgetmap.cli.app import main; main()"
    ran = subprocess.run(
        [sys.executable, "-c", code, "compare", "before.jsonl", "before.jsonl"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writing)
    assert ran.returncode == 128 + signal.SIGPIPE, ran.stderr
    assert ran.stderr == ""


# --- full disks -----------------------------------------------------------------------------------

COMMANDS = """
import os, resource, signal, sys
from pathlib import Path
from typer.testing import CliRunner
from forgetmap.cli.app import app
def tell(*arguments):
    found = CliRunner().invoke(app, list(arguments))
    print(found.exit_code, found.stdout, found.stderr.strip(), sep="|", flush=True)
    return found
"""
LIMITED = """
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
"""


def logs_that_flip(work: Workplace, count: int = 1500) -> None:
    """Every item is forgotten, and the texts do not compress: there is much to write."""
    for side, score in (("before", 1), ("after", 0)):
        records = items([score] * count)
        for record in records:
            record["answer"] = os.urandom(100).hex()
        write_jsonl(work / f"{side}.jsonl", records)


@pytest.mark.parametrize(
    ("options", "named"),
    [(("--save", "out/saved"), "out/saved/items.parquet"), (("--report", "out/map.html"), "")],
)
def test_a_full_disk_is_one_line_and_nothing_half_written(
    work: Workplace, options: tuple[str, str], named: str
) -> None:
    """The limit on file size stands for the disk."""
    logs_that_flip(work)
    (work / "out").mkdir()
    (work / "temporary").mkdir()
    code = COMMANDS + LIMITED
    code += f"tell('compare', 'before.jsonl', 'after.jsonl', '--quiet', *{options!r})"
    ran = child("import tempfile; tempfile.tempdir = 'temporary'\n" + code)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("2||forgetmap: "), ran.stdout
    assert ran.stdout.count("\n") == 1
    assert named or "temporary/forgetmap-" in ran.stdout
    assert named in ran.stdout
    assert "File too large" in ran.stdout
    assert "make room" in ran.stdout
    assert options[1] in ran.stdout
    assert content_of(work / "out") == {}
    assert content_of(work / "temporary") == {}


def test_a_saved_comparison_survives_a_full_disk(work: Workplace) -> None:
    logs_that_flip(work, 20)
    work.worked("compare", "before.jsonl", "after.jsonl", "--quiet", "--save", "saved")
    there = content_of(work / "saved")
    logs_that_flip(work)
    words = ("compare", "before.jsonl", "after.jsonl", "--quiet", "--save", "saved")
    ran = child(COMMANDS + LIMITED + f"tell(*{words!r})")
    assert ran.stdout.startswith("2||forgetmap: saved/items.parquet: "), ran.stdout
    assert content_of(work / "saved") == there


def test_full_temporary_files_of_the_database_are_one_line(
    work: Workplace, pair: tuple[str, str], temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import duckdb

    told = 'Could not write file "/spill/duckdb_temp_0.tmp": No space left on device'
    monkeypatch.setattr("forgetmap.api.compare", fail(duckdb.IOException(told)))
    says = ("/spill/duckdb_temp_0.tmp", "No space left on device", "TMPDIR")
    work.refused("compare", *pair, says=says)


def test_real_full_disks(work: Workplace) -> None:
    """File systems of 256 KiB, in a mount namespace of the child's own."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a file system")
    logs_that_flip(work, 3000)
    Path("small").mkdir()
    mount = 'mount -t tmpfs -o size=256k none small && mkdir small/tmp && exec "$@"'
    prefix = ("unshare", "--mount", "sh", "-c", mount, "sh")
    if child("", prefix=prefix).returncode:
        pytest.skip("no file system can be mounted here")
    code = COMMANDS + (
        "import tempfile\n"
        "words = ('compare', 'before.jsonl', 'after.jsonl', '--quiet')\n"
        "Path('small/log.parquet').write_text('old')\n"
        "tell(*words, '--save', 'small/saved')\n"
        "tell(*words, '--report', 'small/map.html')\n"
        "tell(*words, '--flips', 'small/flips.csv')\n"
        "tell('convert', 'before.jsonl', 'small/log.parquet')\n"
        "tempfile.tempdir = 'small/tmp'\n"
        "tell(*words, '--report', 'map.html')\n"
        "print(sorted(str(path) for path in Path('small').rglob('*')), Path('map.html').exists())\n"
        "print(Path('small/log.parquet').read_text())"
    )
    ran = child(code, prefix=prefix)
    assert ran.returncode == 0, ran.stderr
    *lines, left, old = ran.stdout.splitlines()
    names = ("saved/items.parquet", "map.html", "flips.csv", "log.parquet", "tmp/forgetmap-")
    for line, name in zip(lines, names, strict=True):
        assert line.startswith(f"2||forgetmap: small/{name}"), line
        assert "No space left on device" in line
        assert "make room" in line
    assert left == "['small/log.parquet', 'small/tmp'] False"
    assert old == "old"
