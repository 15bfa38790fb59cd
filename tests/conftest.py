"""Shared set-up of the tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("default", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("default")

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "tests" / "data"
SHARED = ROOT.parent / "shared"


@pytest.fixture(scope="session")
def published() -> Path:
    """Folder of the published numbers; they are not part of the repository."""
    folder = SHARED / "reference" / "post_forget"
    if not folder.is_dir():
        pytest.skip("the published numbers (../shared/reference/post_forget) are not here")
    return folder
