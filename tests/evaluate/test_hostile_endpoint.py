"""Every way in which a server may misbehave: a right answer, or a failure that is counted."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("httpx", reason="needs httpx")

from hostile_endpoint import MODES, broken_promises

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", MODES)
def test_a_failure_is_never_a_number_a_traceback_or_a_hang(name: str, tmp_path: Path) -> None:
    assert broken_promises(MODES[name], tmp_path) == []


def test_there_are_many_ways() -> None:
    kinds = Counter((mode.asks, mode.must) for mode in MODES.values())
    assert kinds.total() > 150
    assert min(kinds["options", "fail"], kinds["chat", "fail"], kinds["text", "fail"]) > 15
