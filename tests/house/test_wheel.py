"""The docs followed literally, with the built package in an environment of its own."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from test_docs import FILE, PYTHON, blocks, commands

from places import ROOT

pytestmark = pytest.mark.slow

EXTRAS = "capabilities,figures,serve,study,summarise"
"""What the docs use of what `make test` installs."""
MOST_BYTES = 5_000_000


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """The wheel."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, ROOT],
        check=True, capture_output=True,
    )  # fmt: skip
    (wheel,) = folder.glob("forgetmap-*.whl")
    return wheel


@pytest.fixture(scope="module")
def bin_folder(built, tmp_path_factory) -> Path:
    """The programs of a fresh environment that holds the wheel and what it needs."""
    place = tmp_path_factory.mktemp("env")
    venv.create(place, with_pip=True)
    pip = [place / "bin" / "python", "-m", "pip", "install", "--quiet"]
    done = subprocess.run(
        [*pip, f"{built}[{EXTRAS}]", "pandas", "polars", "pytest"], capture_output=True
    )
    if done.returncode:
        pytest.skip(f"the packages cannot be installed here: {done.stderr.decode()[-300:]}")
    return place / "bin"


@pytest.fixture
def workplace(tmp_path) -> Path:
    """A folder with the examples and the test data, and nothing of the source tree."""
    for name in ("examples", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


def run(words: list[str], bin_folder: Path, workplace: Path) -> subprocess.CompletedProcess:
    clean = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    path = f"{bin_folder}{os.pathsep}{clean['PATH']}"
    return subprocess.run(
        words, cwd=workplace, env={**clean, "PATH": path}, capture_output=True, text=True
    )


def test_the_wheel_is_small(built):
    assert built.stat().st_size < MOST_BYTES


def test_the_demo_runs_from_the_wheel(bin_folder, workplace):
    done = run(["forgetmap", "demo", "--out", "demo"], bin_folder, workplace)
    assert done.returncode == 0, done.stderr
    assert (workplace / "demo" / "report.html").is_file()
    where = run(
        ["python", "-c", "import forgetmap; print(forgetmap.__file__)"], bin_folder, workplace
    )
    assert str(ROOT) not in where.stdout


@pytest.mark.parametrize("lines", list(commands()))
def test_every_command_of_the_docs_runs(lines, bin_folder, workplace):
    for line in lines:
        words = ["bash", "-c", line] if line.startswith("printf") else shlex.split(line)
        done = run(words, bin_folder, workplace)
        assert done.returncode == 0, f"{line}\n{done.stderr}"


@pytest.mark.parametrize(("page", "code"), PYTHON)
def test_every_python_block_of_the_docs_runs(page, code, bin_folder, workplace):
    for block in blocks(page, "python"):
        if FILE.match(block):
            (workplace / block.split()[1]).write_text(block, encoding="utf-8")
    (workplace / "block.py").write_text(code, encoding="utf-8")
    done = run(["python", "block.py"], bin_folder, workplace)
    assert done.returncode == 0, done.stderr
