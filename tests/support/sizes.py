"""How much a test does: little in the default run, the full size by `make slow`."""

from __future__ import annotations

from typing import Any

import pytest


def sizes(quick: Any, full: Any) -> list[Any]:
    """Parameters of a test that takes long at its full size; tuples if it takes several."""
    few, many = (size if isinstance(size, tuple) else (size,) for size in (quick, full))
    return [pytest.param(*few, id="quick"), pytest.param(*many, id="full", marks=pytest.mark.slow)]
