"""How much a test does: little in the default run, the full size by `make slow`."""

from __future__ import annotations

import pytest


def sizes(quick: object, full: object) -> list[object]:
    """Parameters of a test that takes long at its full size."""
    return [pytest.param(quick, id="quick"), pytest.param(full, id="full", marks=pytest.mark.slow)]
