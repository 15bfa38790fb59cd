"""The database: bounded memory wherever it is opened."""

from __future__ import annotations

import re

from forgetmap.base.database import connect
from places import ROOT


def test_memory_is_bounded() -> None:
    settings = "SELECT current_setting('memory_limit'), current_setting('temp_directory')"
    limit, folder = connect().execute(settings).fetchone()
    assert limit == "1.3 GiB"
    assert "forgetmap-" in folder


def test_one_place_opens_the_database() -> None:
    source = ROOT / "src" / "forgetmap"
    opening = [
        str(file.relative_to(source))
        for file in sorted(source.rglob("*.py"))
        if re.search(r"duckdb\.connect\(", file.read_text(encoding="utf-8"))
    ]
    assert opening == ["base/database.py"]
