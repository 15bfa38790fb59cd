"""Docs that cannot drift: every command and every Python block in them is run."""

from __future__ import annotations

import re
import shlex
import subprocess

import pytest
from typer.testing import CliRunner

from forgetmap.cli.app import app
from places import ROOT

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PLACEHOLDER = "runs/"
"""Commands on made-up folders show the form; they cannot be run."""


def blocks(page, language):
    return [
        text for kind, text in BLOCK.findall(page.read_text(encoding="utf-8")) if kind == language
    ]


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """An empty folder that looks like a clone from above: examples and test data are there."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def commands():
    for page in PAGES:
        for block in blocks(page, "console"):
            lines = [line.removeprefix("$ ").split("  #")[0] for line in block.splitlines()]
            runnable = [line for line in lines if line.startswith(("forgetmap", "printf"))]
            if runnable and PLACEHOLDER not in block:
                yield pytest.param(runnable, id=f"{page.name}: {runnable[-1][:60]}")


@pytest.mark.parametrize("lines", list(commands()))
def test_commands_in_the_docs_run(lines, workplace):
    for line in lines:
        if line.startswith("printf"):
            subprocess.run(line, shell=True, check=True)
            continue
        result = CliRunner().invoke(app, shlex.split(line)[1:])
        assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("page", "code"),
    [
        pytest.param(page, block, id=f"{page.name} {number}")
        for page in PAGES
        for number, block in enumerate(blocks(page, "python"))
    ],
)
def test_python_in_the_docs_runs(page, code, workplace):
    exec(compile(code, str(page), "exec"), {"__name__": "__docs__"})


def test_the_command_line_reference_is_current(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import make_docs

    page = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    assert page == make_docs.reference(), "run `make docs`"


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_make_targets_named_in_the_docs_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"(?:`|\$ )make ([a-z]+)", page.read_text(encoding="utf-8")):
            assert f"\n{target}:" in makefile, f"{page.name} names make {target}"
