"""Imports point downward only, and `make check` sees it when one does not, wherever it is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from places import ROOT

LINT = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())"
UPWARD = {
    "nothing": ("", 0),
    "at the top": ("\nimport forgetmap.api\n", 1),
    "within a function": ("\ndef upward():\n    from forgetmap.views import notebook\n", 1),
    "for types only": ("\nif TYPE_CHECKING:\n    from forgetmap.gate.policy import Policy\n", 1),
}


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the modules and of the contract."""
    folder = tmp_path_factory.mktemp("layers")
    only_modules = shutil.ignore_patterns("*.pyc", "*.js", "*.css", "*.json", "*.html")
    shutil.copytree(ROOT / "src" / "forgetmap", folder / "forgetmap", ignore=only_modules)
    shutil.copy(ROOT / ".importlinter", folder)
    return folder


@pytest.mark.parametrize("where", UPWARD)
def test_an_import_that_points_upward_is_found(sources: Path, where: str) -> None:
    added, code = UPWARD[where]
    module = sources / "forgetmap" / "base" / "words.py"
    text = module.read_text(encoding="utf-8")
    module.write_text(text + added, encoding="utf-8")
    try:
        done = subprocess.run(
            [sys.executable, "-c", LINT],
            cwd=sources,
            env={**os.environ, "PYTHONPATH": str(sources)},
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        module.write_text(text, encoding="utf-8")
    assert done.returncode == code, done.stdout + done.stderr
    assert ("forgetmap.base is not allowed to import" in done.stdout) == bool(added), done.stdout
