"""Docs that cannot drift: every command and every Python block in them is run."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import forgetmap
from forgetmap.cli.app import app
from places import ROOT

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# \w+\.py\n")
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


PYTHON = [
    pytest.param(page, block, id=f"{page.name} {number}")
    for page in PAGES
    for number, block in enumerate(blocks(page, "python"))
]


@pytest.mark.parametrize(("page", "code"), PYTHON)
def test_python_in_the_docs_runs(page, code, workplace, monkeypatch):
    """A block that begins with a file's name can be imported by the others of its page."""
    modules = {block.split()[1]: block for block in blocks(page, "python") if FILE.match(block)}
    for name, block in modules.items():
        (workplace / name).write_text(block, encoding="utf-8")
    monkeypatch.syspath_prepend(str(workplace))
    exec(compile(code, str(page), "exec"), {"__name__": "__docs__"})
    for name in modules:
        sys.modules.pop(name.removesuffix(".py"), None)


def test_the_reader_of_the_docs_reads_a_good_log_and_names_a_bad_line(workplace, monkeypatch):
    """As a plug-in of another package: found by its entry point, compared, refused in one line."""
    page = ROOT / "docs/how-to/write-a-reader.md"
    info = workplace / "quizzer-1.0.dist-info"
    info.mkdir()
    (workplace / "quizzer.py").write_text(blocks(page, "python")[0], encoding="utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: quizzer\nVersion: 1.0\n")
    announced = blocks(page, "toml")[0].splitlines()[1].replace('"', "")
    (info / "entry_points.txt").write_text(f"[forgetmap.readers]\n{announced}\n")
    monkeypatch.syspath_prepend(str(workplace))
    head, answer = blocks(page, "json")[0].splitlines()
    for side, points in (("before", 1), ("after", 0)):
        log = workplace / side / "quiz-1.jsonl"
        log.parent.mkdir()
        text = answer.replace('"points": 1', f'"points": {points}')
        log.write_text(f"{head}\n{text}\n")
    result = forgetmap.compare("before", "after", draws=200)
    assert (result.before.harness, result.total.counts.n10) == ("quizzer", 1)
    log.write_text(f"{head}\n{answer}\n{answer.replace('points', 'marks')}\n")
    with pytest.raises(forgetmap.InputError) as error:
        forgetmap.compare("before", "after")
    assert str(error.value) == "after/quiz-1.jsonl:3: not an answer of Quizzer (no 'points')"
    sys.modules.pop("quizzer", None)


def test_the_command_line_reference_is_current(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import make_docs

    page = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    assert page == make_docs.reference(), "run `make reference`"


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


def test_the_numbers_of_the_readme_are_those_of_the_example():
    old = forgetmap.demo().old
    text = " ".join((ROOT / "README.md").read_text().split())
    rose = f"from {100 * old.accuracy_before:.1f} to {100 * old.accuracy_after:.1f} %"
    lost = f"lost {100 * old.lost.value:.1f} % of them"
    known = f"which is {100 * old.lost.of_known.value:.1f} % of what it knew"
    assert rose in text
    guessing = 100 * (old.lost.high_end - old.lost.low_end)
    assert f"{lost}, {known}. Up to {guessing:.1f} % may be reshuffled guessing" in text
