"""What scripts and tests take from forgetmap is there: many of them run seldom."""

from __future__ import annotations

import ast
import importlib
import itertools
from pathlib import Path

import pytest

from places import ROOT

SCRIPTS = sorted(
    path
    for folder in ("benchmarks", "examples", "docs", "tests")
    for path in (ROOT / folder).rglob("*.py")
)


def taken(path: Path) -> set[tuple[str, str]]:
    """Every module of forgetmap that a file imports, with the names it takes from it."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    plain = (node.names for node in nodes if isinstance(node, ast.Import))
    names = {(alias.name, "") for alias in itertools.chain.from_iterable(plain)}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {(node.module, alias.name) for alias in node.names}
    return {(module, name) for module, name in names if module.split(".")[0] == "forgetmap"}


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_lead_somewhere(path: Path) -> None:
    for module, name in sorted(taken(path)):
        try:
            found = importlib.import_module(module)
            if name and not hasattr(found, name):
                importlib.import_module(f"{module}.{name}")
        except ModuleNotFoundError as error:
            missing = error.name or ""
            assert not missing.startswith("forgetmap"), f"{path}: {module} {name}"
