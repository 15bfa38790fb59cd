"""What the theory pages show is what the commands print."""

from __future__ import annotations

import contextlib
import io
import re
import shlex

import pytest
from typer.testing import CliRunner

from forgetmap.cli.theory import app
from places import ROOT

BLOCK = r"((?:(?!^```).)*)^```"
SHOWN = re.compile(rf"^```(console|python)\n{BLOCK}\n\n```text\n{BLOCK}", re.MULTILINE | re.DOTALL)
PAGES = sorted((ROOT / "docs" / "how-to").glob("theory-*.md"))


def printed(kind, code):
    """What a block of a page prints."""
    if kind == "console":
        command = code.strip().removeprefix("$ forgetmap theory ")
        return CliRunner().invoke(app, shlex.split(command)).output
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "page", "exec"), {"__name__": "__docs__"})
    return out.getvalue()


@pytest.mark.parametrize(
    ("kind", "code", "shown"),
    [
        pytest.param(*found, id=f"{page.name}: {found[1].splitlines()[0][:60]}")
        for page in PAGES
        for found in SHOWN.findall(page.read_text(encoding="utf-8"))
    ],
)
def test_the_output_in_the_page_is_the_output(kind, code, shown, tmp_path, monkeypatch):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    assert shown == printed(kind, code)


def test_every_output_is_checked():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert text.count("```text") == len(SHOWN.findall(text)), page.name
