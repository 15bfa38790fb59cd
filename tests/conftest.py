"""Shared set-up of the tests."""

from __future__ import annotations

import contextlib
import functools
import gc
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
import typer.testing
from hypothesis import settings

import forgetmap
from forgetmap import api
from logs import Workplace, items, write_jsonl
from places import SHARED
from tiny_llama import make_tiny_model

settings.register_profile("default", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("default")

# Typer builds the whole tree of commands for each run of one, in a tenth of a second; the tests run
# more than a thousand commands, so they build it once.
typer.testing._get_command = functools.cache(typer.testing._get_command)


@functools.cache
def _demo() -> forgetmap.ForgettingMap:
    return api.demo()


def _demo_once(**files: Path) -> forgetmap.ForgettingMap:
    return api.demo(**files) if files else _demo()


# Many examples in docstrings and pages begin with the map of the bundled example.
forgetmap.demo = _demo_once


MODEL_EXAMPLES = (
    "forgetmap.evaluate.run.evaluate",
    "forgetmap.mitigate.merge.merging.merge",
)
"""Examples in docstrings that ask a model; they find two small ones in `models`."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # A package that can be called shows the docstring of its function; its example runs there.
    items[:] = [item for item in items if not callable(sys.modules.get(item.name))]
    for item in items:
        if item.name in MODEL_EXAMPLES:
            item.add_marker("model")
            item.runtest = functools.partial(_beside_models, item.runtest)  # type: ignore[method-assign]


def _beside_models(run: Callable[[], None]) -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for seed, name in enumerate(("before", "after")):
            make_tiny_model(Path("models", name), seed)
        run()


def pytest_collection_finish() -> None:
    """Collect garbage among what the tests make, not among all the modules they import."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    gc.unfreeze()


@pytest.fixture(scope="session")
def published() -> Path:
    """Folder of the published numbers; they are not part of the repository."""
    folder = SHARED / "reference" / "post_forget"
    if not folder.is_dir():
        pytest.skip("the published numbers (../shared/reference/post_forget) are not here")
    return folder


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workplace:
    monkeypatch.chdir(tmp_path)
    return Workplace(tmp_path)


@pytest.fixture
def pair(work: Workplace) -> tuple[str, str]:
    """Two good logs."""
    write_jsonl(work / "before.jsonl", items([1, 1, 1, 0]))
    write_jsonl(work / "after.jsonl", items([1, 0, 1, 1]))
    return "before.jsonl", "after.jsonl"
