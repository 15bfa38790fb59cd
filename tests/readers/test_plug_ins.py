"""Readers of other packages: a broken one never stops others, and is always named."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest
from typer.testing import CliRunner

import forgetmap
from forgetmap.cli.app import app
from forgetmap.readers.registry import read
from logs import csv_text


class Broken:
    """A plug-in that takes every `.odd` file; what it does is given."""

    def __init__(self, sniff=None, read=None):
        self._sniff, self._read = sniff, read

    def sniff(self, path):
        return self._sniff() if self._sniff else path.suffix == ".odd"

    def read(self, path, how):
        return self._read()


def fail():
    raise RuntimeError("the moon is full")


class Missing(EntryPoint):
    """The entry point of a package that cannot be imported."""

    def load(self):
        raise ModuleNotFoundError("No module named 'moon'")


@pytest.fixture
def plug_in(monkeypatch):
    """Install one plug-in, by its object or entry point."""

    def install(reader):
        point = EntryPoint("odd", "odd_package:reader", "forgetmap.readers")
        if isinstance(reader, EntryPoint):
            point = reader
        else:
            monkeypatch.setattr(EntryPoint, "load", lambda _point: reader)
        monkeypatch.setattr("forgetmap.readers.registry._entry_points", lambda _path: [point])

    return install


BROKEN = {
    "cannot be imported": (
        Missing("odd", "moon", "forgetmap.readers"),
        "ModuleNotFoundError: No module named 'moon'",
    ),
    "sniff raises": (Broken(sniff=fail), "RuntimeError: the moon is full"),
    "has no sniff": (object(), "AttributeError: 'object' object has no attribute 'sniff'"),
}


@pytest.fixture(params=BROKEN)
def broken(request, plug_in):
    reader, says = BROKEN[request.param]
    plug_in(reader)
    return f"the reader plug-in 'odd' of unknown package failed and was passed over ({says})"


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "run.csv"
    path.write_text(csv_text([{"question": f"q{i}", "correct": i % 2} for i in range(6)]))
    return path


def test_another_format_is_read_and_the_broken_plug_in_named(broken, log):
    samples = read(log)
    assert len(samples) == 6
    assert broken in samples.meta.warnings


@pytest.mark.parametrize("command", [["show", "LOG"], ["compare", "LOG", "LOG"]])
def test_commands_work_and_name_the_broken_plug_in(command, broken, log):
    arguments = [str(log) if word == "LOG" else word for word in command]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "the reader plug-in 'odd' of unknown package" in " ".join(result.output.split())


def test_if_no_reader_takes_the_log_the_error_names_the_broken_plug_in(broken, tmp_path):
    log = tmp_path / "run.odd"
    log.write_text("moon")
    with pytest.raises(forgetmap.InputError, match="not a log that forgetmap knows") as error:
        read(log)
    assert broken in str(error.value)


@pytest.mark.parametrize(
    ("reads", "says"),
    [
        (fail, "RuntimeError: the moon is full"),
        (lambda: {}["score"], "KeyError: 'score'"),
        (lambda: None, "TypeError: it returned NoneType, not Samples"),
    ],
)
def test_a_plug_in_that_fails_to_read_is_one_clear_line(reads, says, plug_in, tmp_path):
    plug_in(Broken(read=reads))
    log = tmp_path / "run.odd"
    log.write_text("moon")
    result = CliRunner().invoke(app, ["show", str(log)])
    assert result.exit_code == 2
    said = " ".join(result.output.split())
    assert f"run.odd: the reader plug-in 'odd' of unknown package failed ({says})" in said
    assert "Traceback" not in said


def test_the_error_of_a_plug_in_about_its_log_is_kept(plug_in, tmp_path):
    def refuse():
        raise forgetmap.InputError("run.odd:3: no score")

    plug_in(Broken(read=refuse))
    log = tmp_path / "run.odd"
    log.write_text("moon")
    with pytest.raises(forgetmap.InputError, match=r"^run\.odd:3: no score$"):
        read(log)
