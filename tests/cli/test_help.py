"""The command line explains itself: help in groups, completion, the doctor, hints that help."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from forgetmap.base import extras
from forgetmap.cli.app import app
from forgetmap.cli.help import GROUPS, PANELS
from places import ROOT


def shown(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments), prog_name="forgetmap", terminal_width=100)
    assert result.exit_code == 0, result.output
    return result.output


def every_command(command=None, words=()):
    command = command or get_command(app)
    yield words, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from every_command(inner, (*words, name))


def test_commands_are_listed_by_what_they_are_for():
    text = shown("--help")
    places = [text.index(f"\n{panel}:\n") for panel in PANELS]
    assert places == sorted(places)
    assert "..." not in text.partition("\nCompare:")[2], "a sentence is cut off"


@pytest.mark.parametrize(("words", "command"), list(every_command()))
def test_usage_lines_can_be_read(words, command):
    usage = shown(*words, "--help").splitlines()[0]
    assert not re.search(r"[{}<>]|\[\[|\.\.\.\.", usage), usage


@pytest.mark.parametrize(("words", "command"), list(every_command()))
def test_one_name_for_one_idea(words, command):
    """A page is --report, a table is a --csv file, wherever they are written."""
    metavars = {option: param.metavar for param in command.params for option in param.opts}
    assert "--html" not in metavars
    assert metavars.get("--csv", "FILE") == "FILE"
    assert metavars.get("--report", "FILE") == "FILE"
    assert metavars.get("--json", "FILE") == "FILE"


def test_many_options_are_grouped():
    text = shown("compare", "--help")
    for title in GROUPS:
        assert f"\n{title}:\n" in text
    assert "\nHow sure:\n" not in shown("show", "--help")


def test_every_grouped_option_is_an_option_of_a_command():
    known = {param.name for _, command in every_command() for param in command.params}
    assert {name for names in GROUPS.values() for name in names} <= known


def test_completion_can_be_shown():
    environment = {"_FORGETMAP_COMPLETE": "complete_bash", "COMP_WORDS": "forgetmap com",
                   "COMP_CWORD": "1"}  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", "from forgetmap.cli.app import app; app(prog_name='forgetmap')"],
        env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert "compare" in done.stdout.split()


def test_the_doctor_tells_of_every_extra():
    text = shown("doctor")
    for name in extras.ADDS:
        assert re.search(rf"^{name} ", text, re.MULTILINE)
    told = json.loads(shown("doctor", "--json", "-"))
    assert {extra["name"] for extra in told["extras"]} == set(extras.ADDS)
    assert told["cores"] > 0
    assert told["memory_gb"] > 0.1


def test_every_extra_of_the_package_is_explained():
    """`all` brings each of them; `bench` and `dev` are for those who work on forgetmap."""
    packages = extras.metadata.metadata("forgetmap").get_all("Provides-Extra")
    assert set(packages) - {"all", "bench", "dev"} == set(extras.ADDS)
    for name in extras.ADDS:
        assert extras.packages(name)


def test_the_docs_list_every_extra_in_the_same_words():
    page = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", page, re.MULTILINE))
    assert listed == extras.ADDS


def test_a_hint_names_all_that_is_missing_at_once(monkeypatch):
    lacking = {"eval": ["torch", "transformers"], "suites": ["holidays"], "figures": []}
    monkeypatch.setattr(extras, "missing", lambda extra: lacking[extra])
    assert str(extras.need("suite atlas", "suites", "eval", "figures")) == (
        "suite atlas needs holidays, torch, transformers; "
        "install with: pip install 'forgetmap[suites,eval]'"
    )
