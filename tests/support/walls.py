"""Whether this machine can run what a model wrote, for the tests that need it."""

from __future__ import annotations

import functools

import pytest

from forgetmap.base.errors import InputError
from forgetmap.capabilities.scorers.sandbox.programs import find_boundary


@functools.cache
def why_no_sandbox() -> str:
    """The reason why no program can be run here; empty where it can."""
    try:
        find_boundary()
    except InputError as error:
        return str(error)
    return ""


needs_sandbox = pytest.mark.skipif(
    bool(why_no_sandbox()), reason=why_no_sandbox() or "there is a sandbox"
)
